/* Chooses and calls the kernel of an operator, and registers kernels and fallbacks at run time. For each dispatch key an operator has two slots:
 * one for a typed kernel and one for a boxed kernel.
 *
 * Everything that changes slots is in this file. No operator is named here; operators are in the generated table.
 * Invariants
 * - A typed slot holds a kernel that is compiled into the library. A kernel that is registered at run time is boxed.
 * - Slots are read without a lock and written under a lock. The context of a boxed kernel is written before the kernel. A call that runs while
 *   one kernel replaces another finds one of the two. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/device.h"
#include "core/given.h"
#include "core/tensor.h"
#include "dispatch/define.h"
#include "dispatch/device.h"
#include "dispatch/option.h"

#include "base/fork.h"
#include "base/text.h"
#include "base/transaction.h"

static struct grd_boxed_slot fallbacks[GRD_KEY_COUNT];
static pthread_mutex_t registration = PTHREAD_MUTEX_INITIALIZER;

const char *grd_key_name(grd_key key)
{
    static const char *const names[] = {
#define GRD_KEY_NAME(name) #name,
        GRD_KEYS(GRD_KEY_NAME)
#undef GRD_KEY_NAME
    };
    return (unsigned)key < GRD_KEY_COUNT ? names[key] : "?";
}

grd_keyset grd_tensor_keys(const grd_tensor *t)
{
    return t != NULL && grd_given(t, "grd_tensor_keys", "t") ? grd_keys_read(t) : 0;
}

grd_key_guard grd_key_guard_set(grd_keyset include, grd_keyset exclude)
{
    const grd_keyset fixed = 1u << GRD_KEY_CPU | 1u << GRD_KEY_META | 1u << GRD_KEY_DEVICE | 1u << GRD_KEY_LIFETIMES;
    const grd_keyset kept = fixed | 1u << GRD_KEY_BATCH;
    grd_key_guard previous = {grd_thread.include, grd_thread.exclude};
    grd_thread.include |= include & ~fixed;
    grd_thread.exclude |= exclude & ~kept;
    return previous;
}

void grd_key_guard_restore(grd_key_guard previous)
{
    grd_thread.include = previous.include;
    grd_thread.exclude = previous.exclude;
}

grd_keyset grd_keys_of_device(grd_device device)
{
    const struct grd_device_entry *entry = grd_device_at(device.type);
    return entry ? (grd_keyset)1 << entry->key : 0;
}

/* True if the operator is a composite, i.e. its kernel only calls operators, and this kernel serves `key`. It serves every key with two
 * exceptions: LIFETIMES, and a key of gradients, tangents, autocast or batches for which the operator has its own rule. */
static bool composite_serves(const struct grd_op *op, grd_key key)
{
    return op->composite && key != GRD_KEY_LIFETIMES && (key != GRD_KEY_AUTOGRAD || op->derivative == NULL) &&
           (key != GRD_KEY_FORWARD || !op->forward) && (key != GRD_KEY_AUTOCAST || op->autocast == GRD_AUTOCAST_NONE) &&
           (key != GRD_KEY_BATCH || op->batch == GRD_BATCH_DEFAULT);
}

/* Returns the operator's built-in kernel if it serves `key`, otherwise NULL. The kernel of a composite, which only calls operators, serves most
 * keys. Any other built-in kernel serves CPU and META. */
static grd_kernel *tree_kernel(const struct grd_op *op, grd_key key)
{
    return composite_serves(op, key) || key == GRD_KEY_CPU || key == GRD_KEY_META ? op->kernel : NULL;
}

/* ---- Calling ------------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) void raise_no_kernel(const struct grd_op *op, grd_key key)
{
    struct grd_text keys = {0};
    for (int k = 0; k < GRD_KEY_LIFETIMES; k++)
        if (op->typed[k] || op->boxed[k].kernel || fallbacks[k].kernel)
            grd_text_add(&keys, "%s%s", keys.size ? ", " : "", grd_key_name((grd_key)k));
    grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "no kernel for dispatch key %s; there are kernels for %s", grd_key_name(key),
              keys.size ? keys.data : "no key");
    grd_text_done(&keys);
}

void grd_fail_results(const struct grd_op *op, grd_value *ret_results)
{
    for (int i = 0; i < op->nresults; i++)
        ret_results[i] =
            op->returns_list ? (grd_value){.kind = GRD_KIND_TENSORS} : (grd_value){.kind = GRD_KIND_TENSOR, .v.tensor = grd_failed};
}

/* Returns the boxed kernel for `key` with its context: the operator's own if there is one, otherwise the fallback of the key. */
static inline const struct grd_boxed_slot *boxed_slot(const struct grd_op *op, grd_key key)
{
    const struct grd_boxed_slot *own = &op->boxed[key];
    return atomic_load_explicit(&own->kernel, memory_order_acquire) != NULL ? own : &fallbacks[key];
}

static bool refuse_argument(const struct grd_op *op, int i, const char *rule)
{
    return grd_raise(GRD_ERROR_TYPE, "%s: argument '%s' (position %d) %s", op->name, op->args[i].name, i + 1, rule);
}

/* True if `value` can be the value of argument number `i`; otherwise raises an error. An absent argument (kind NONE) is accepted. */
static bool check_argument(const struct grd_op *op, int i, const grd_value *value)
{
    const bool required = !op->args[i].optional;
    switch (value->kind) {
    case GRD_KIND_TENSOR:
        return value->v.tensor != NULL || !required || refuse_argument(op, i, "must be a tensor, not NULL");
    case GRD_KIND_TENSORS:
        return grd_is_tensor_list(value->v.tensors) || refuse_argument(op, i, "must be a list of tensors without NULL");
    case GRD_KIND_DIMS:
        return grd_is_int_list(value->v.dims) ||
               refuse_argument(op, i, "must be a list of integers: it has a length but no data, or a negative length");
    case GRD_KIND_STRING:
        return value->v.string != NULL || !required || refuse_argument(op, i, "must be a string, not NULL");
    case GRD_KIND_DTYPE:
        if (required && value->v.dtype == GRD_DTYPE_NONE)
            return refuse_argument(op, i, "must be a dtype, not none");
        return grd_is_dtype(value->v.dtype) || grd_raise(GRD_ERROR_TYPE, "%s: argument '%s' (position %d) is no dtype: %d", op->name,
                                                         op->args[i].name, i + 1, (int)value->v.dtype);
    case GRD_KIND_DEVICE:
        return !grd_device_is_number(value->v.device) || refuse_argument(op, i, "must be a device, such as GRD_CPU, not a number");
    default:
        return true;
    }
}

/* Raises the error for the first invalid argument in `args`. Called by an operator's public function, which knows that an argument is invalid but
 * not which one. */
static void refuse_call(const struct grd_op *op, const grd_value *args)
{
    for (int i = 0; i < op->nargs && check_argument(op, i, &args[i]); i++)
        ;
}

/* Calls the kernel for the highest key of `keys`. This is the slow path of call_boxed, for operators that have several results, return a list or
 * are defined at run time. It also serves the keys of devices and wrappers, whose kernels belong to the device type or wrapper type and not to the
 * operator. */
static __attribute__((noinline)) void call_any(const struct grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args,
                                               grd_value *ret_results)
{
    const grd_key key = grd_top_key(keys);
    const struct grd_boxed_slot *slot = boxed_slot(op, key);
    grd_boxed_kernel *boxed = atomic_load_explicit(&slot->kernel, memory_order_acquire);
    grd_fail_results(op, ret_results);
    if (boxed != NULL)
        boxed(op, keys, out, args, ret_results, atomic_load_explicit(&slot->context, memory_order_relaxed));
    else if (grd_typed_kernel(op, keys) != NULL) /* a boxed kernel was there when the caller looked, but another thread has just
                                                  * unregistered it */
        grd_dispatch_boxed(op, keys, out, args, ret_results);
    else if (!grd_dispatch_device(op, keys, out, args, ret_results) && !grd_dispatch_wrapper(op, keys, out, args, ret_results)) {
        raise_no_kernel(op, key);
        return;
    }
    if (op->defined)
        grd_defined_check_results(op, key, args, ret_results);
}

/* Calls a typed kernel that writes to `out`, and increments the version counter of `out` if op->counts_writes says so. */
static __attribute__((noinline)) void dispatch_write(const struct grd_op *op, grd_kernel *typed, grd_tensor *out, const grd_value *args,
                                                     grd_value *ret_results)
{
    op->unbox(typed, out, args, ret_results);
    if (op->counts_writes)
        grd_written(out);
}

/* Calls the boxed kernel for the highest key of `keys`. First sets the result to the failed tensor, which stands for the result of every failed
 * call, because a kernel that fails may leave its result unwritten. The caller passes `one` = true if it knows that the operator comes from the
 * schema and has one tensor as its result. */
GRD_INLINE void call_boxed(const struct grd_op *op, bool one, grd_keyset keys, grd_tensor *out, const grd_value *args,
                           grd_value *ret_results)
{
    const struct grd_boxed_slot *slot = boxed_slot(op, grd_top_key(keys));
    grd_boxed_kernel *boxed = atomic_load_explicit(&slot->kernel, memory_order_acquire);
    if (GRD_LIKELY(boxed != NULL && (one || (op->nresults == 1 && !op->returns_list && !op->defined)))) {
        grd_set_tensor(&ret_results[0], &grd_failed_block.tensor);
        boxed(op, keys, out, args, ret_results, atomic_load_explicit(&slot->context, memory_order_relaxed));
    } else {
        call_any(op, keys, out, args, ret_results);
    }
}

void grd_dispatch_boxed(const struct grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    grd_kernel *typed = grd_typed_kernel(op, keys);
    if (GRD_UNLIKELY(typed == NULL))
        call_boxed(op, false, keys, out, args, ret_results);
    else if (GRD_UNLIKELY(out != NULL))
        dispatch_write(op, typed, out, args, ret_results);
    else
        op->unbox(typed, NULL, args, ret_results);
}

bool grd_check_boxed(const struct grd_op *op, const grd_value *args, const grd_value *ret_results, const char *function)
{
    const char *missing = op == NULL ? "op" : args == NULL && op->nargs > 0 ? "args" : ret_results == NULL ? "ret_results" : NULL;
    return missing == NULL || grd_raise(GRD_ERROR_TYPE, "%s: argument '%s' must not be NULL", function, missing);
}

void grd_redispatch(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    if (!grd_check_boxed(op, args, ret_results, "grd_redispatch"))
        return;
    if (grd_pending())
        grd_fail_results(op, ret_results);
    else
        grd_dispatch_boxed(op, keys, out, args, ret_results);
}

bool grd_check_writable_slow(const struct grd_op *op, const grd_tensor *out)
{
    if (grd_pending())
        return false;
    if (out == NULL)
        return grd_raise(GRD_ERROR_TYPE, "%s: the tensor to write must be a tensor, not NULL", op->name);
    if (grd_is_failed(out))
        return grd_raise(GRD_ERROR_RUNTIME, "%s: the failed tensor cannot be written", op->name);
    return true;
}

/* Ends a failed call: puts the operator's name before the error's text, and drops the temporary tensors of the call, i.e. those that were pooled
 * after `mark`. */
static void leave_failed(const struct grd_op *op, int64_t mark)
{
    if (op->name[0] != '_') /* an operator whose name begins with '_' is not public, so its name would not help users */
        grd_error_add_context(op->name);
    grd_pool_release(mark);
}

grd_tensor *grd_leave_failed(const struct grd_op *op, int64_t mark)
{
    leave_failed(op, mark);
    return grd_failed;
}

void grd_leave_many(const struct grd_op *op, int64_t mark, grd_tensor **results, int n)
{
    if (!grd_pending() && grd_pool_return_many(mark, (void *const *)results, n))
        return;
    leave_failed(op, mark);
    for (int i = 0; i < n; i++)
        results[i] = grd_failed;
}

grd_tensors grd_leave_list(const struct grd_op *op, int64_t mark, grd_tensors result)
{
    if (!grd_pending())
        return result;
    leave_failed(op, mark);
    return (grd_tensors){0};
}

/* ---- Calls with generic values -------------------------------------------------------------------------------------------- */

/* Calls `op` for a public function that found no typed kernel, and returns true. `mark` is the position in the pool of temporary tensors at the start
 * of the call, or -1 if the public function refused the call because of an invalid argument. If `mark` is -1, returns false and raises the error for
 * this argument, unless an error is already pending. */
GRD_INLINE bool call_entered(const struct grd_op *op, bool one, grd_keyset keys, int64_t mark, grd_tensor *out, const grd_value *args,
                             grd_value *ret_results)
{
    if (GRD_LIKELY(mark >= 0))
        call_boxed(op, one, keys, out, args, ret_results);
    else if (!grd_pending())
        refuse_call(op, args);
    return mark >= 0;
}

grd_tensor *grd_boxed(const struct grd_op *op, grd_keyset keys, int64_t mark, grd_tensor *out, const grd_value *args)
{
    grd_value result;
    return call_entered(op, true, keys, mark, out, args, &result) ? grd_leave(op, mark, result.v.tensor) : grd_failed;
}

grd_tensors grd_boxed_list(const struct grd_op *op, grd_keyset keys, int64_t mark, const grd_value *args)
{
    grd_value result;
    return call_entered(op, false, keys, mark, NULL, args, &result) ? grd_leave_list(op, mark, result.v.tensors) : (grd_tensors){0};
}

void grd_boxed_many(const struct grd_op *op, grd_keyset keys, int64_t mark, const grd_value *args, grd_tensor **ret_results)
{
    grd_value results[GRD_MAX_RESULTS];
    const bool called = call_entered(op, false, keys, mark, NULL, args, results);
    for (int i = 0; i < op->nresults; i++)
        ret_results[i] = called ? results[i].v.tensor : grd_failed;
    if (called)
        grd_leave_many(op, mark, ret_results, op->nresults);
}

grd_tensor *grd_number_argument(const struct grd_op *op, grd_scalar value)
{
    if (grd_pending())
        return grd_failed;
    grd_tensor *number = grd_number(value);
    if (grd_pending())
        grd_error_add_context(op->name);
    return number;
}

grd_tensor *grd_leave_number_failed(int64_t mark)
{
    grd_pool_release(mark);
    return grd_failed;
}

/* ---- Operators by name ------------------------------------------------------------------------------------------------ */

const grd_op *grd_op_find(const char *name)
{
    for (int64_t i = 0; name != NULL && i < grd_op_table_size; i++)
        if (strcmp(grd_op_table[i]->name, name) == 0)
            return grd_op_table[i];
    return name != NULL ? grd_defined_find(name) : NULL;
}

int64_t grd_op_count(void)
{
    return grd_op_table_size + grd_defined_count();
}

const grd_op *grd_op_at(int64_t index)
{
    if (index < 0)
        return NULL;
    return index < grd_op_table_size ? grd_op_table[index] : grd_defined_at(index - grd_op_table_size);
}

static bool is_op(const grd_op *op)
{
    return op != NULL || grd_raise(GRD_ERROR_TYPE, "an operator is required, not NULL");
}

static bool is_op_arg(const grd_op *op, int arg)
{
    return is_op(op) &&
           ((arg >= 0 && arg < op->nargs) || grd_raise(GRD_ERROR_INDEX, "%s: has %d arguments, no argument %d", op->name, op->nargs, arg));
}

const char *grd_op_name(const grd_op *op)
{
    return is_op(op) ? op->name : "";
}

const char *grd_op_schema(const grd_op *op)
{
    return is_op(op) ? op->schema : "";
}

int grd_op_arg_count(const grd_op *op)
{
    return is_op(op) ? op->nargs : 0;
}

int grd_op_result_count(const grd_op *op)
{
    return is_op(op) ? op->nresults : 0;
}

const char *grd_op_arg_name(const grd_op *op, int arg)
{
    return is_op_arg(op, arg) ? op->args[arg].name : "";
}

grd_kind grd_op_arg_kind(const grd_op *op, int arg)
{
    return is_op_arg(op, arg) ? (grd_kind)op->args[arg].kind : GRD_KIND_NONE;
}

bool grd_op_arg_optional(const grd_op *op, int arg)
{
    return is_op_arg(op, arg) && (op->args[arg].optional || op->args[arg].value.kind != GRD_KIND_NONE);
}

unsigned grd_op_forms(const grd_op *op)
{
    return is_op(op) ? op->forms : 0;
}

/* ---- Generic calls ------------------------------------------------------------------------------------------------------- */

const char *grd_kind_name(grd_kind kind)
{
    static const char *const names[] = {"None", "Tensor", "Tensor[]", "Scalar", "int", "float",
                                        "bool", "int[]",  "dtype",    "device", "str", "Generator"};
    return (unsigned)kind < sizeof names / sizeof *names ? names[kind] : "?";
}

static bool is_number(grd_kind kind)
{
    return kind == GRD_KIND_SCALAR || kind == GRD_KIND_INT || kind == GRD_KIND_FLOAT || kind == GRD_KIND_BOOL;
}

grd_scalar grd_value_scalar(const grd_value *value)
{
    switch (value->kind) {
    case GRD_KIND_INT:
        return grd_int(value->v.integer);
    case GRD_KIND_FLOAT:
        return grd_float(value->v.number);
    case GRD_KIND_BOOL:
        return grd_bool(value->v.boolean);
    default:
        return value->v.scalar;
    }
}

/* Converts the number `from` to the kind of argument `i`: a scalar, a number of another kind that can represent it, or a zero-dimensional tensor.
 * Returns false if `from` cannot be converted. */
static bool convert(const grd_value *from, const struct grd_op *op, int i, grd_value *ret_value)
{
    const struct grd_arg *arg = &op->args[i];
    *ret_value = (grd_value){.kind = (grd_kind)arg->kind};
    if (from->kind == arg->kind) {
        *ret_value = *from;
        return true;
    }
    if (!is_number(from->kind))
        return false;
    const grd_scalar s = grd_value_scalar(from);
    switch (arg->kind) {
    case GRD_KIND_SCALAR:
        ret_value->v.scalar = s;
        return true;
    case GRD_KIND_TENSOR:
        ret_value->v.tensor = grd_number_argument(op, s);
        return true;
    case GRD_KIND_INT:
        ret_value->v.integer = grd_scalar_int64(s);
        return s.kind == GRD_SCALAR_INT || s.kind == GRD_SCALAR_BOOL;
    case GRD_KIND_FLOAT:
        ret_value->v.number = grd_scalar_double(s);
        return s.kind != GRD_SCALAR_COMPLEX;
    case GRD_KIND_BOOL:
        ret_value->v.boolean = grd_scalar_int64(s) != 0;
        return s.kind == GRD_SCALAR_BOOL;
    default:
        return false;
    }
}

static bool is_absent(const grd_value *given)
{
    return given == NULL || given->kind == GRD_KIND_NONE || (given->kind == GRD_KIND_TENSOR && given->v.tensor == NULL) ||
           (given->kind == GRD_KIND_STRING && given->v.string == NULL);
}

/* Sets *ret_value to `given`, the value that a caller passed for argument `i`, converted if necessary. If `given` is absent, sets *ret_value to the
 * default of the argument, or to an absent value if there is no default. Returns false, with TypeError, if `given` is invalid, or if it is absent and
 * the argument is required. */
static bool complete(const struct grd_op *op, int i, const grd_value *given, grd_value *ret_value)
{
    const struct grd_arg *arg = &op->args[i];
    if (given != NULL && given->kind == arg->kind && !is_absent(given)) {
        *ret_value = *given;
        return check_argument(op, i, ret_value);
    }
    if (is_absent(given)) {
        *ret_value = arg->value;
        ret_value->kind = (grd_kind)arg->kind;
        return arg->optional || arg->value.kind != GRD_KIND_NONE || refuse_argument(op, i, "is missing");
    }
    if (!convert(given, op, i, ret_value))
        return grd_raise(GRD_ERROR_TYPE, "%s: argument '%s' (position %d) must be %s, not %s", op->name, arg->name, i + 1,
                         grd_kind_name((grd_kind)arg->kind), grd_kind_name(given->kind));
    return check_argument(op, i, ret_value);
}

/* Returns the dispatch keys of the tensors, or of the device, in `value`; no keys for other kinds. */
static grd_keyset value_keys(const grd_value *value)
{
    switch (value->kind) {
    case GRD_KIND_TENSOR:
        return value->v.tensor ? grd_keys_of(value->v.tensor) : 0;
    case GRD_KIND_TENSORS:
        return grd_list_keys(value->v.tensors);
    case GRD_KIND_DEVICE:
        return grd_device_keys(value->v.device);
    default:
        return 0;
    }
}

grd_keyset grd_keys_of_values(const struct grd_op *op, const grd_tensor *out, const grd_value *args)
{
    grd_keyset keys = grd_keys_if(out);
    for (int i = 0; i < op->nargs; i++)
        keys |= value_keys(&args[i]);
    return keys;
}

/* True if the operator has the given form and at least `n` parameters, where `n` is the number of arguments that the caller passes. Otherwise raises
 * an error. */
static bool check_form(const grd_op *op, grd_form form, const grd_value *args, int n)
{
    static const char *const form_names[] = {"functional", "in-place", "out"};
    if ((unsigned)form > GRD_OUT)
        return grd_raise(GRD_ERROR_VALUE, "%s: no form %d", op->name, (int)form);
    if (n > op->nargs)
        return grd_raise(GRD_ERROR_TYPE, "%s: takes %d arguments, %d were given", op->name, op->nargs, n);
    if (n > 0 && args == NULL)
        return grd_raise(GRD_ERROR_TYPE, "%s: argument 'args' of grd_call must not be NULL", op->name);
    return (op->forms >> form & 1) || grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "%s: has no %s form", op->name, form_names[form]);
}

/* Ends a call: moves its results to the caller's scope, and drops its temporary tensors, i.e. those that were pooled after `mark`. Returns false
 * if an error is pending. */
static bool leave_call(const struct grd_op *op, int64_t mark, grd_value *ret_results)
{
    if (op->returns_list) {
        ret_results[0].v.tensors = grd_leave_list(op, mark, ret_results[0].v.tensors);
        return !grd_pending();
    }
    if (GRD_LIKELY(op->nresults == 1 && !grd_pending() && grd_pool_return(mark, ret_results[0].v.tensor)))
        return true;
    grd_tensor *results[GRD_MAX_RESULTS];
    for (int i = 0; i < op->nresults; i++)
        results[i] = ret_results[i].v.tensor;
    grd_leave_many(op, mark, results, op->nresults);
    for (int i = 0; i < op->nresults; i++)
        ret_results[i].v.tensor = results[i];
    return !grd_pending();
}

bool grd_call(const grd_op *op, grd_form form, const grd_value *args, int n, grd_tensor *out, grd_value *ret_results)
{
    if (!is_op(op))
        return false;
    grd_fail_results(op, ret_results);
    if (grd_pending() || !check_form(op, form, args, n))
        return false;
    const int64_t mark = grd_pool_mark();
    grd_value values[GRD_MAX_ARGS];
    grd_keyset keys = 0;
    bool ok = true;
    for (int i = 0; i < op->nargs && ok; i++) {
        ok = complete(op, i, i < n ? &args[i] : NULL, &values[i]);
        keys |= ok ? value_keys(&values[i]) : 0;
    }
    grd_tensor *written = form == GRD_FUNCTIONAL ? NULL : form == GRD_OUT ? out : op->nargs > 0 && ok ? values[0].v.tensor : NULL;
    if (!ok || (form != GRD_FUNCTIONAL && !grd_check_writable(op, written)) ||
        (form == GRD_OUT && !grd_check_out_values(op, written, values))) {
        grd_pool_release(mark);
        return false;
    }
    keys |= written ? grd_keys_of(written) : 0;
    grd_dispatch_boxed(op, grd_active_keys(keys), written, values, ret_results);
    return leave_call(op, mark, ret_results);
}

/* ---- Registration ------------------------------------------------------------------------------------------------------------ */

static bool check_key(grd_key key)
{
    return (unsigned)key < GRD_KEY_COUNT || grd_raise(GRD_ERROR_VALUE, "no dispatch key %d", (int)key);
}

/* True if kernels for `key` are stored with the operator. Returns false, with RuntimeError, for the key DEVICE, because the kernels of a device
 * are stored with its device type. */
static bool check_not_device(grd_key key)
{
    return key != GRD_KEY_DEVICE ||
           grd_raise(GRD_ERROR_RUNTIME, "kernels for a device are part of its description: see grd_device_register");
}

static bool check_kernel(grd_boxed_kernel *kernel)
{
    return kernel != NULL || grd_raise(GRD_ERROR_TYPE, "a kernel is required, not NULL");
}

static struct grd_op *find_for_registration(const char *name)
{
    struct grd_op *op = (struct grd_op *)grd_op_find(name);
    if (op == NULL)
        grd_raise(GRD_ERROR_RUNTIME, "there is no operator '%s' to register a kernel for", name ? name : "(NULL)");
    return op;
}

static void fill_slot(struct grd_boxed_slot *slot, grd_boxed_kernel *kernel, void *context)
{
    atomic_store_explicit(&slot->context, context, memory_order_relaxed);
    atomic_store_explicit(&slot->kernel, kernel, memory_order_release);
}

/* Sets the operator's typed and boxed kernel for `key` to those that the operator had before any kernel was registered for it at run time. */
static void reset_slot(struct grd_op *op, grd_key key)
{
    const struct grd_defined_op *defined = grd_defined(op);
    const bool served = defined != NULL && key != GRD_KEY_LIFETIMES && (key < GRD_KEY_AUTOGRAD || op->derivative == NULL);
    atomic_store_explicit(&op->typed[key], tree_kernel(op, key), memory_order_release);
    fill_slot(&op->boxed[key], served ? defined->composite : NULL, served ? defined->context : NULL);
}

/* True if the operator already has a kernel for `key` that a registration must not replace. The built-in kernel of a composite, i.e. of an
 * operator that only calls operators, may be replaced. */
static bool is_taken(const struct grd_op *op, grd_key key)
{
    if (op->composite)
        return op->boxed[key].kernel != NULL && (!op->defined || op->boxed[key].kernel != grd_defined(op)->composite);
    return op->boxed[key].kernel != NULL || op->typed[key] != NULL;
}

void grd_reset_slots(struct grd_op *op)
{
    for (int key = 0; key < GRD_KEY_COUNT; key++)
        reset_slot(op, (grd_key)key);
}

void grd_reset_slot(struct grd_op *op, grd_key key)
{
    pthread_mutex_lock(&registration);
    reset_slot(op, key);
    pthread_mutex_unlock(&registration);
}

/* Removes the kernel that was registered for `key`, when a transaction is rolled back or the kernel is unregistered. */
static void take_kernel(void *op, int key)
{
    grd_reset_slot(op, (grd_key)key);
}

static void fill_boxed(struct grd_op *op, grd_key key, grd_boxed_kernel *kernel, void *context)
{
    fill_slot(&op->boxed[key], kernel, context);
    atomic_store_explicit(&op->typed[key], NULL, memory_order_release);
}

void grd_fill_slot(struct grd_op *op, grd_key key, grd_boxed_kernel *kernel, void *context)
{
    pthread_mutex_lock(&registration);
    fill_boxed(op, key, kernel, context);
    pthread_mutex_unlock(&registration);
}

static void take_fallback(void *none, int key)
{
    (void)none;
    pthread_mutex_lock(&registration);
    fill_slot(&fallbacks[key], NULL, NULL);
    pthread_mutex_unlock(&registration);
}

static const struct grd_step_type kernel_step = {.roll_back = take_kernel}, fallback_step = {.roll_back = take_fallback};

void grd_register_kernel(const char *op_name, grd_key key, grd_boxed_kernel *kernel, void *context)
{
    struct grd_op *op = find_for_registration(op_name);
    if (op == NULL || !check_key(key) || !check_not_device(key) || !check_kernel(kernel))
        return;
    pthread_mutex_lock(&registration);
    if (is_taken(op, key)) {
        grd_raise(GRD_ERROR_RUNTIME, "operator '%s' has a kernel for dispatch key %s already", op_name, grd_key_name(key));
    } else if (grd_transaction_add(&kernel_step, op, key)) {
        fill_boxed(op, key, kernel, context);
    }
    pthread_mutex_unlock(&registration);
}

void grd_register_fallback(grd_key key, grd_boxed_kernel *kernel, void *context)
{
    if (!check_key(key) || !check_not_device(key) || !check_kernel(kernel))
        return;
    pthread_mutex_lock(&registration);
    if (fallbacks[key].kernel != NULL)
        grd_raise(GRD_ERROR_RUNTIME, "dispatch key %s has a fallback already", grd_key_name(key));
    else if (grd_transaction_add(&fallback_step, NULL, key))
        fill_slot(&fallbacks[key], kernel, context);
    pthread_mutex_unlock(&registration);
}

void grd_replace_fallback(grd_key key, grd_boxed_kernel *kernel)
{
    pthread_mutex_lock(&registration);
    fill_slot(&fallbacks[key], kernel, NULL);
    pthread_mutex_unlock(&registration);
}

void grd_unregister_kernel(const char *op_name, grd_key key)
{
    struct grd_op *op = find_for_registration(op_name);
    if (op != NULL && check_key(key))
        take_kernel(op, key);
}

void grd_unregister_fallback(grd_key key)
{
    if (check_key(key))
        take_fallback(NULL, key);
}

/* ---- When the library is loaded -------------------------------------------------------------------------------------------------- */

void grd_dispatch_init(void)
{
    static struct grd_held_lock held = {.lock = &registration};
    for (int64_t i = 0; i < grd_op_table_size; i++)
        grd_reset_slots(grd_op_table[i]);
    grd_hold_around_fork(&held);
    grd_define_init();
    grd_lifetimes_dispatch_init();
}
