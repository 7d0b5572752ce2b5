/* Declares the struct and the functions with which the files of src/transform run operators on batch tensors. */
#ifndef GRD_TRANSFORM_TRANSFORM_H
#define GRD_TRANSFORM_TRANSFORM_H

#include "core/tensor.h"
#include "dispatch/op.h"
#include "gradus/transform.h"

#define GRD_BATCH_BIT ((grd_keyset)1 << GRD_KEY_BATCH)

/* A call of an operator with batch tensors among its arguments. vmap passes batch tensors to its function; each of them looks like one element of
 * a batch. */
struct grd_batch_call {
    const struct grd_op *op;
    grd_tensor *out; /* the tensor that is written; NULL if the results are new tensors */
    /* the arguments as passed. Tensors can be batch tensors. Sizes and dims do not include the batch dimension. */
    const grd_value *args;
    grd_value values[GRD_MAX_ARGS]; /* the arguments for the call on the whole batch, with physical tensors (batch in dimension 0) */
    uint32_t batched;               /* bit i is 1 if argument i is a batch tensor, or a list that contains one */
    int64_t rank;                   /* largest number of dimensions of the tensor arguments, not counting the batch dimension */
};

/* True if the batch tensor `t` belongs to this thread's current call of vmap; otherwise raises RuntimeError. */
bool grd_batch_usable(const grd_tensor *t);
/* Returns the physical tensor of `t`, whose dimension 0 is the batch. If `t` is no batch tensor, returns `t` expanded by a batch dimension in
 * front. */
grd_tensor *grd_batch_front(grd_tensor *t);

/* Calls the operator's kernel for the dispatch keys of lower priority than BATCH, with physical tensors in `args`. False, with the error raised, on
 * failure. */
bool grd_batch_below(const struct grd_op *op, grd_tensor *out, const grd_value *args, grd_value *ret_results);
/* Replaces the results of an operator, which are physical tensors with the batch in dimension 0, by batch tensors. False, with the error raised,
 * on failure. */
bool grd_batch_wrap_results(const struct grd_op *op, grd_value *results);
/* Replaces the batch tensors in call->values by their physical tensors. With `all`, also expands all other tensors by a batch dimension in front.
 * False, with the error raised, on failure. */
bool grd_batch_unwrap(struct grd_batch_call *call, bool all);
/* Raises RuntimeError, because a tensor that is no batch tensor cannot store the elements of a batch in place. `name` and `suffix` together are
 * the operator's name. Always returns false. */
bool grd_batch_raise_inplace(const char *name, const char *suffix);

/* Runs an operator that draws random numbers. vmap's argument `randomness` says whether the elements of the batch get the same numbers or different
 * ones, or whether the call raises an error. False, with the error raised, on failure. */
bool grd_batch_random(struct grd_batch_call *call, grd_value *ret_results);

/* Registers the kernel of the BATCH key. The library's constructor calls this function once. */
void grd_transform_init(void);

#endif
