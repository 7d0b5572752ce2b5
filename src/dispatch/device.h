/* Declares the functions that run operators on devices of plug-ins and on wrapper tensors. */
#ifndef GRD_DISPATCH_DEVICE_H
#define GRD_DISPATCH_DEVICE_H

#include "core/tensor.h"
#include "dispatch/op.h"

/* ---- The tensors of a call ------------------------------------------------------------------------------------------ */
/* Iterates over the tensors of a call: first `out`, then the tensor arguments and the tensors in list arguments. NULL tensors are skipped. */
struct grd_tensor_walk {
    const struct grd_op *op;
    grd_tensor *out;
    const grd_value *args;
    int arg;      /* index in `args` of the next argument */
    int64_t item; /* index of the next tensor in that argument, if it is a list */
};

static inline struct grd_tensor_walk grd_walk_tensors(const struct grd_op *op, grd_tensor *out, const grd_value *args)
{
    return (struct grd_tensor_walk){.op = op, .out = out, .args = args};
}

/* Returns the next tensor of the call, or NULL after the last one. */
grd_tensor *grd_next_tensor(struct grd_tensor_walk *walk);

/* Returns a copy of the argument `value` in which each tensor is replaced by replace(context, tensor). If there is no memory for a list, raises
 * MemoryError. */
grd_value grd_replace_tensors(const grd_value *value, grd_tensor *(*replace)(const void *context, grd_tensor *t), const void *context);

/* Writes the device of the call's tensors to *ret_from and the device of its results to *ret_to. They differ only if an argument of the call is a
 * device. Without any tensor or device argument, both are the CPU. Zero-dimensional CPU tensors do not count, because they can be combined with
 * tensors of any device. Returns false, with the error raised, if the tensors are on several devices or a device does not exist. */
bool grd_devices_of_call(const struct grd_op *op, grd_tensor *out, const grd_value *args, grd_device *ret_from, grd_device *ret_to);

/* ---- Keys whose kernels are found by an argument -------------------------------------------------------------------- */
/* If the highest key in `keys` is DEVICE and the call is for a device that was registered at run time, runs the operator on this device and returns
 * true. Otherwise returns false, with nothing done. */
bool grd_dispatch_device(const struct grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results);
/* If the highest key in `keys` is WRAPPER, runs the operator and returns true. The first wrapper tensor among the arguments decides which kernel is
 * called (grd_wrapper_type.kernel). Otherwise returns false, with nothing done. */
bool grd_dispatch_wrapper(const struct grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results);

#endif
