/* Chooses the kernel of a call whose tensors are on the device of a plug-in or are wrapper tensors, and registers devices with their kernels.
 *
 * The table of devices is in core/device.c. fallback.c runs an operator on the CPU for a device that has no kernel. Invariant: all tensors that a
 * device's own kernel gets are on this device, except for zero-dimensional CPU tensors. */
#include "dispatch/device.h"

#include <ctype.h>
#include <string.h>

#include "base/memory.h"
#include "core/device.h"
#include "core/tensor.h"
#include "core/wrapper.h"

/* ---- The tensors of a call ------------------------------------------------------------------------------------------ */

grd_tensor *grd_next_tensor(struct grd_tensor_walk *walk)
{
    grd_tensor *out = walk->out;
    walk->out = NULL;
    if (out != NULL)
        return out;
    for (; walk->arg < walk->op->nargs; walk->arg++) {
        const grd_value *value = &walk->args[walk->arg];
        if (value->kind == GRD_KIND_TENSORS && walk->item < value->v.tensors.n)
            return value->v.tensors.data[walk->item++];
        walk->item = 0;
        if (value->kind == GRD_KIND_TENSOR && value->v.tensor != NULL) {
            walk->arg++;
            return value->v.tensor;
        }
    }
    return NULL;
}

grd_value grd_replace_tensors(const grd_value *value, grd_tensor *(*replace)(const void *context, grd_tensor *t), const void *context)
{
    grd_value made = *value;
    if (value->kind == GRD_KIND_TENSOR && value->v.tensor != NULL)
        made.v.tensor = replace(context, value->v.tensor);
    if (value->kind == GRD_KIND_TENSORS && value->v.tensors.n > 0) {
        grd_tensor **list = grd_pool_alloc((size_t)value->v.tensors.n * sizeof *list);
        for (int64_t i = 0; list != NULL && i < value->v.tensors.n; i++)
            list[i] = replace(context, value->v.tensors.data[i]);
        made.v.tensors.data = list;
    }
    return made;
}

static bool same_device(grd_device a, grd_device b)
{
    return a.type == b.type && a.index == b.index;
}

/* True for a zero-dimensional CPU tensor that is not `out`. Like a number, it can be combined with tensors on any device. */
static bool goes_anywhere(const grd_tensor *t, const grd_tensor *out)
{
    return t != out && t->ndim == 0 && t->device == GRD_DEVICE_CPU;
}

bool grd_devices_of_call(const struct grd_op *op, grd_tensor *out, const grd_value *args, grd_device *ret_from, grd_device *ret_to)
{
    grd_device from = {GRD_DEVICE_NONE, 0}, to = {GRD_DEVICE_NONE, 0};
    struct grd_tensor_walk walk = grd_walk_tensors(op, out, args);
    for (grd_tensor *t; (t = grd_next_tensor(&walk)) != NULL;) {
        const grd_device device = grd_device_of(t);
        if (goes_anywhere(t, out))
            continue;
        if (from.type == GRD_DEVICE_NONE)
            from = device;
        /* An operator with `everywhere` set copies between devices itself, so its tensors may be on several devices. */
        if (!same_device(from, device) && !op->everywhere)
            return grd_raise_devices(from, device);
    }
    for (int i = 0; i < op->nargs; i++)
        if (args[i].kind == GRD_KIND_DEVICE && args[i].v.device.type != GRD_DEVICE_NONE)
            to = args[i].v.device;
    return grd_device_resolve(from, ret_from) && grd_device_resolve(to.type != GRD_DEVICE_NONE ? to : *ret_from, ret_to);
}

/* ---- Calling ------------------------------------------------------------------------------------------------------------ */

static void raise_no_kernel(const struct grd_op *op, const struct grd_device_entry *entry)
{
    grd_raise(GRD_ERROR_NOT_IMPLEMENTED,
              "Could not run '%s' with arguments from the '%s' backend. The device has no kernel for this operator and has not enabled the "
              "fallback to the cpu.",
              op->name, entry->type.name);
}

/* Returns the kernel that runs the operator on the device of `entry`. If all tensors of the call are on this device (`at_home`) and the device has
 * its own kernel for the operator, returns this kernel. Otherwise returns the device's fallback, or NULL if the operator's built-in kernel serves
 * every device. */
static grd_boxed_kernel *choose(const struct grd_op *op, const struct grd_device_entry *entry, bool at_home)
{
    grd_boxed_kernel *kernel = at_home ? grd_device_kernel_of(entry, op) : NULL;
    return kernel != NULL || op->everywhere ? kernel : entry->type.fallback;
}

/* True if `device` was registered at run time and all tensors of the call are on it. Zero-dimensional CPU tensors are also allowed. */
static bool is_at_home(const struct grd_op *op, grd_tensor *out, const grd_value *args, grd_device device)
{
    struct grd_tensor_walk walk = grd_walk_tensors(op, out, args);
    if (!grd_is_extra(device))
        return false;
    for (grd_tensor *t; (t = grd_next_tensor(&walk)) != NULL;)
        if (!same_device(grd_device_of(t), device) && !goes_anywhere(t, out))
            return false;
    return true;
}

bool grd_dispatch_device(const struct grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    grd_device from, to;
    if (grd_top_key(keys) != GRD_KEY_DEVICE)
        return false;
    if (!grd_devices_of_call(op, out, args, &from, &to))
        return true;
    const grd_device asked = grd_is_extra(from) ? from : to;
    if (!grd_is_extra(asked) && !op->everywhere)
        return false;
    const struct grd_device_entry *entry = grd_device_at(asked.type);
    grd_boxed_kernel *kernel = choose(op, entry, is_at_home(op, out, args, asked));
    if (kernel != NULL)
        kernel(op, keys, out, args, ret_results, NULL);
    else if (op->everywhere)
        op->unbox(op->kernel, out, args, ret_results);
    else
        raise_no_kernel(op, entry);
    grd_written(out);
    return true;
}

bool grd_dispatch_wrapper(const struct grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    if (grd_top_key(keys) != GRD_KEY_WRAPPER)
        return false;
    struct grd_tensor_walk walk = grd_walk_tensors(op, out, args);
    const grd_wrapper_type *type = NULL;
    for (grd_tensor *t; type == NULL && (t = grd_next_tensor(&walk)) != NULL;)
        type = grd_wrapper_type_of(t);
    if (type != NULL)
        type->kernel(op, keys, out, args, ret_results, NULL);
    return type != NULL;
}

void grd_wrapper_refuse(const grd_wrapper_type *type, const grd_op *op)
{
    if (op == NULL || type == NULL)
        grd_raise(GRD_ERROR_TYPE, "grd_wrapper_refuse: argument '%s' must not be NULL", type == NULL ? "type" : "op");
    else
        grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "Could not run '%s' with arguments from the '%s' wrapper.", op->name, type->name);
}

/* ---- Registration -------------------------------------------------------------------------------------------------------- */

/* True if `name` can be the name of a device: a letter, then letters, digits and '_', at most 31 characters. */
static bool is_name(const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && name[i] != '_')
            return false;
    return length > 0 && length < sizeof((struct grd_device_entry *)0)->name && isalpha((unsigned char)name[0]);
}

static bool check_type(const grd_device_type *type)
{
    if (type == NULL || type->name == NULL || type->allocate == NULL || type->release == NULL || type->copy == NULL)
        return grd_raise(GRD_ERROR_TYPE, "grd_device_register: a device needs a name, allocate, release and copy");
    if (!is_name(type->name))
        return grd_raise(GRD_ERROR_VALUE,
                         "grd_device_register: '%s' cannot be a device's name: a letter, then letters, digits and '_', at most 31 in all",
                         type->name);
    if (type->count < 1 || type->count > INT8_MAX + 1)
        return grd_raise(GRD_ERROR_VALUE, "grd_device_register: device '%s' must have a count of 1 to %d, not %d", type->name, INT8_MAX + 1,
                         type->count);
    return (type->nkernels >= 0 && (type->nkernels == 0 || type->kernels != NULL)) ||
           grd_raise(GRD_ERROR_TYPE, "grd_device_register: device '%s' says it has %d kernels and gives none", type->name, type->nkernels);
}

/* Sets ret_ops[i] to the operator that type->kernels[i] is for. Returns false, with RuntimeError, for an invalid entry. An entry is invalid if its
 * kernel is NULL, or if its operator does not exist, only calls other operators, or occurs in an earlier entry. */
static bool find_ops(const grd_device_type *type, const grd_op **ret_ops)
{
    for (int i = 0; i < type->nkernels; i++) {
        const grd_device_kernel *given = &type->kernels[i];
        const grd_op *op = grd_op_find(given->op);
        if (op == NULL || given->kernel == NULL)
            return grd_raise(GRD_ERROR_RUNTIME, "device '%s': there is no %s '%s'", type->name,
                             op == NULL ? "operator" : "kernel given for operator", given->op != NULL ? given->op : "(NULL)");
        if (op->composite)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "device '%s': operator '%s' is made of other operators, so a kernel for it would never run; register kernels "
                             "for those operators",
                             type->name, op->name);
        for (int k = 0; k < i; k++)
            if (ret_ops[k] == op)
                return grd_raise(GRD_ERROR_RUNTIME, "device '%s': two kernels are given for operator '%s'", type->name, op->name);
        ret_ops[i] = op;
    }
    return true;
}

grd_device grd_device_register(const grd_device_type *type)
{
    const grd_device absent = {GRD_DEVICE_NONE, 0};
    if (grd_pending() || !check_type(type))
        return absent;
    const size_t size = ((size_t)type->nkernels + 1) * sizeof(grd_op *);
    const grd_op **ops = grd_alloc(size);
    uint8_t place;
    const bool added = ops != NULL && find_ops(type, ops) && grd_device_add(type, ops, &place);
    grd_free(ops, size);
    return added ? (grd_device){place, 0} : absent;
}
