/* Installs the handling of tensors that are conjugated, or negated, when they are read. See Note [Conjugated when read] in complex.c. */
#ifndef GRD_OP_CONJUGATE_H
#define GRD_OP_CONJUGATE_H

/* Registers the function that runs operators on tensors with the dispatch key CONJUGATE, whose elements are conjugated when they are read. The
 * library's constructor calls it once. */
void grd_conjugate_init(void);

#endif
