/* Tensors that are conjugated, or negated, when they are read. */
#ifndef GRD_OP_CONJUGATE_H
#define GRD_OP_CONJUGATE_H

/* Registers the fallback of the key CONJUGATE; run once by the library's constructor. */
void grd_conjugate_init(void);

#endif
