/* Calls that devices from outside and wrappers serve. */
#ifndef GRD_DISPATCH_DEVICE_H
#define GRD_DISPATCH_DEVICE_H

#include "core/tensor.h"
#include "dispatch/op.h"

/* ---- The tensors of a call ------------------------------------------------------------------------------------------ */
/* `out`, then the tensor arguments and those of lists; absent ones are left out. */
struct grd_tensor_walk {
    const struct grd_op *op;
    grd_tensor *out;
    const grd_value *args;
    int arg;
    int64_t item;
};

static inline struct grd_tensor_walk grd_walk_tensors(const struct grd_op *op, grd_tensor *out, const grd_value *args)
{
    return (struct grd_tensor_walk){.op = op, .out = out, .args = args};
}

/* The next one, or NULL. */
grd_tensor *grd_next_tensor(struct grd_tensor_walk *walk);

/* Returns an argument with each of its tensors replaced by replace(context, tensor). The error is raised where there is no memory for a list. */
grd_value grd_replace_tensors(const grd_value *value, grd_tensor *(*replace)(const void *context, grd_tensor *t), const void *context);

/* The device of a call's tensors and the one its results go to, which a device argument may set apart; absent ones are the cpu. 0-d cpu tensors have
 * no say. False, with the error raised, when tensors lie on several devices or a device does not exist. */
bool grd_devices_of_call(const struct grd_op *op, grd_tensor *out, const grd_value *args, grd_device *ret_from, grd_device *ret_to);

/* ---- Keys whose kernels are found by an argument -------------------------------------------------------------------- */
/* Runs the operator for the highest key, which has no kernel in the slots, when that is DEVICE or the key of a wrapper; false when there is none
 * to ask. */
bool grd_dispatch_device(const struct grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results);
bool grd_dispatch_wrapper(const struct grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results);

#endif
