/* Declarations that the files of this floor share. */
#ifndef GRD_TRANSFORM_TRANSFORM_H
#define GRD_TRANSFORM_TRANSFORM_H

#include "core/tensor.h"
#include "dispatch/op.h"
#include "gradus/transform.h"

#define GRD_BATCH_BIT ((grd_keyset)1 << GRD_KEY_BATCH)

/* A call that has batch tensors among its arguments. */
struct grd_batch_call {
    const struct grd_op *op;
    grd_tensor *out;                /* the tensor that is written: args[0], or NULL */
    const grd_value *args;          /* the arguments of the call, as one element of the batch sees them */
    grd_value values[GRD_MAX_ARGS]; /* the arguments passed to the keys below */
    uint32_t batched;               /* bit i: argument i is a batch tensor, or a list with one */
    int64_t rank;                   /* the largest number of dimensions of an argument, without the batch dimension */
};

/* True if `t` is a batch tensor of the level; RuntimeError where its level has ended. */
bool grd_batch_usable(const grd_tensor *t);
/* Returns the physical tensor of a batch tensor; any other tensor is expanded by a batch dimension in front. */
grd_tensor *grd_batch_front(grd_tensor *t);

/* Calls the operator for the keys below BATCH. False, with the error raised, on failure. */
bool grd_batch_below(const struct grd_op *op, grd_tensor *out, const grd_value *args, grd_value *ret_results);
/* Makes batch tensors of the results, whose dimension 0 is the batch. */
bool grd_batch_wrap_results(const struct grd_op *op, grd_value *results);
/* Replaces batch tensors by physical ones, and with `all` expands the other tensors. */
bool grd_batch_unwrap(struct grd_batch_call *call, bool all);
/* RuntimeError: an unbatched tensor cannot take the elements of a batch. Always false. */
bool grd_batch_raise_inplace(const char *name, const char *suffix);

/* Runs an operator that draws random numbers. False, with the error raised, on failure. */
bool grd_batch_random(struct grd_batch_call *call, grd_value *ret_results);

void grd_transform_init(void);

#endif
