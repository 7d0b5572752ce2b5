/* Declares the registration of the fallback for tensors with the dispatch key CONJUGATE, whose elements are conjugated (real ones negated) when
 * read. See Note [Conjugated when read] in complex.c. */
#ifndef GRD_OP_CONJUGATE_H
#define GRD_OP_CONJUGATE_H

/* Registers the fallback that runs operators on tensors with the dispatch key CONJUGATE, whose elements are conjugated when they are read. The
 * constructor of the library calls this once. */
void grd_conjugate_init(void);

#endif
