/* Describes an operator for the dispatcher: its arguments, a generated function that calls its typed kernels with arguments in grd_values, and
 * its kernel for each dispatch key. An operator of the schema is a generated variable. Its kernels are set while the library is loaded, and later
 * by registrations at run time. */
#ifndef GRD_DISPATCH_OP_H
#define GRD_DISPATCH_OP_H

#include "base/error.h"
#include "core/tensor.h"
#include "gradus/dispatch.h"

struct grd_derivative; /* defined in autograd/derivative.h */

struct grd_arg {
    const char *name;
    uint8_t kind; /* a value of enum grd_kind */
    bool optional;
    uint8_t role;    /* a value of enum grd_batch_role */
    grd_value value; /* default value; its kind is NONE if there is no default */
};

/* Tells how an argument changes when a call with batch tensors becomes a call with their physical tensors, which have the batch as an additional
 * dimension 0. A negative dim is first counted from the end, and an absent dim means all dims. */
enum grd_batch_role {
    GRD_ROLE_NONE,    /* the argument is unchanged */
    GRD_ROLE_DIM,     /* the argument is a dim, which is increased by 1 */
    GRD_ROLE_DIMS,    /* the argument is a list of dims, each of which is increased by 1 */
    GRD_ROLE_REDUCE,  /* a list of dims, each of which is increased by 1; an empty list means all dims */
    GRD_ROLE_ORDER,   /* a permutation of the dims: each entry is increased by 1, and a 0 is inserted in front */
    GRD_ROLE_SIZES,   /* sizes; the number of elements in the batch is inserted in front */
    GRD_ROLE_STRIDES, /* strides; the stride of the batch dimension of the first tensor is inserted in front */
    GRD_ROLE_FORMAT,  /* a memory format; channels-last is dropped after a check that the call is valid for one element of the batch */
    GRD_ROLE_OFFSET   /* a storage offset, or absent; the offset of the batch element in the first tensor is added */
};

/* The rule by which a call with batch tensors becomes a call with their physical tensors, which have the batch as dimension 0
 * (src/transform/batch.c). */
enum grd_batch_rule {
    GRD_BATCH_DEFAULT,  /* an operator whose kernel only calls operators runs unchanged; others run as with GRD_BATCH_ALIGN */
    GRD_BATCH_ALIGN,    /* for elementwise operators: the batch dimensions of all tensors are aligned and the tensors are broadcast */
    GRD_BATCH_SHIFT,    /* each argument changes as its role says (enum grd_batch_role) */
    GRD_BATCH_TRAILING, /* like GRD_BATCH_SHIFT, after checking that the call is valid for one element of the batch */
    GRD_BATCH_FORMULA,  /* runs the operator's formula for batches (`batched.formula`) on the physical tensors */
    GRD_BATCH_RANDOM,   /* a random operator; the `randomness` of vmap decides whether elements get equal or different numbers */
    GRD_BATCH_LOOP,     /* the operator runs once for each element of the batch, and a warning is given */
    GRD_BATCH_REFUSE    /* the call with batch tensors raises an error */
};

/* The dtype to which autocast converts an operator's floating-point tensor arguments (src/autograd/autocast.c). */
enum grd_autocast_rule {
    GRD_AUTOCAST_NONE,    /* the arguments are not converted */
    GRD_AUTOCAST_LOWER,   /* the lower-precision dtype that is set for autocast, e.g. bfloat16 */
    GRD_AUTOCAST_FLOAT32, /* the dtype float32 */
    GRD_AUTOCAST_PROMOTE  /* float32 if at least one of the tensors is float32, otherwise the lower-precision dtype of autocast */
};

/* A formula that runs an operator on physical tensors, whose dimension 0 is the batch. Returns the result, or writes several results to `ret`. */
typedef grd_tensor *grd_batch_formula(const grd_value *args, grd_tensor **ret);

typedef void grd_kernel(void); /* a typed kernel, i.e. an ordinary C function with one parameter per argument; generated functions cast it
                                * to its real type */

/* Calls `kernel`, a typed kernel of the operator, with arguments in grd_values. Each operator has its own generated function of this type. */
typedef void grd_unbox(grd_kernel *kernel, grd_tensor *out, const grd_value *args, grd_value *ret_results);

/* A boxed kernel with its context, which is passed to each call. The context is written before the kernel and read after it, so that no call sees
 * a kernel without its context. */
struct grd_boxed_slot {
    grd_boxed_kernel *_Atomic kernel;
    void *_Atomic context;
};

/* The dtype that an out= tensor must have, for operators that do not convert their result to the dtype of out=. */
enum grd_out_dtype {
    GRD_OUT_RESULT,   /* the dtype of the result; checked by the operator itself or when the result is copied to out= */
    GRD_OUT_GIVEN,    /* the operator's `dtype` argument; without one, any dtype to which the result can be cast */
    GRD_OUT_SELF,     /* the dtype of the first tensor argument */
    GRD_OUT_REAL,     /* the dtype of the first tensor argument or, if this dtype is complex, the dtype of its real part */
    GRD_OUT_PROMOTED, /* the dtype to which all tensor arguments promote */
    GRD_OUT_REST,     /* the dtype to which all tensor arguments except the first promote */
    GRD_OUT_BOOL,
    GRD_OUT_INT64,
    GRD_OUT_COMPLEX,  /* any complex dtype */
    GRD_OUT_FLOATING, /* any floating-point dtype */
    GRD_OUT_CASTABLE  /* any dtype to which the result can be cast */
};

struct grd_out_rule {
    uint8_t dtype;                      /* a value of enum grd_out_dtype */
    const char *texts[GRD_MAX_RESULTS]; /* the error text for each result; words in braces are replaced in out.c */
};

/* The rule for the sizes of out= of an operator with a one-dimensional result. NOT: out= gets the sizes of the result. GIVEN and COMPUTED: out=
 * keeps its sizes if it has as many elements as the result, as with torch.arange. This number of elements is an argument of the operator (GIVEN)
 * or is computed (COMPUTED). */
enum grd_fills { GRD_FILLS_NOT, GRD_FILLS_GIVEN, GRD_FILLS_COMPUTED };

/* An operator of the schema, or one that is defined at run time. Both kinds are called in the same way. */
struct grd_op {
    const char *name, *schema;
    const struct grd_arg *args;
    uint8_t nargs, nresults;
    uint8_t forms; /* the forms that the operator has; bit 1 << f is set for each form f of enum grd_form */
    grd_unbox *unbox;
    grd_kernel *kernel; /* the built-in kernel; NULL for an operator defined at run time */
    /* NULL if the operator has no gradient, or gets its gradient from the operators that it calls */
    const struct grd_derivative *derivative;
    const struct grd_out_rule *out_rule; /* NULL if out= may have any dtype to which the result can be cast */
    const char *providers; /* built-in providers (implementations) in the order they are tried, e.g. "blas native"; NULL means "native" */
    union {
        grd_batch_formula *formula; /* for the rule GRD_BATCH_FORMULA: the function that runs the operator on whole batches */
        const char *refusal;        /* for the rule GRD_BATCH_REFUSE: the text of the error */
    } batched;
    uint8_t batch;      /* a value of enum grd_batch_rule */
    atomic_bool looped; /* true after the warning of GRD_BATCH_LOOP has been given for this operator */
    uint8_t fills;      /* a value of enum grd_fills */
    uint8_t autocast;   /* a value of enum grd_autocast_rule */
    bool has_out;       /* the first parameter of typed kernels is `out`: NULL to allocate, args[0] to work in place, or the out= tensor */
    bool is_view;       /* the result shares storage with args[0] */
    bool everywhere;    /* the built-in kernel serves every device, because it reads and writes no device memory itself */
    bool returns_list;
    bool defined;   /* defined at run time, and therefore part of a struct grd_defined_op (define.h) */
    bool composite; /* the kernel only calls operators, and therefore serves most dispatch keys (composite_serves in dispatch.c) */
    bool forward;   /* true for a composite operator that has its own rule for tangents */
    bool alone;     /* the in-place form changes the sizes, strides or storage of args[0], which no other thread may use during the call */
    /* True if a call must increment the version of the tensor it writes. False for a composite, because the operators that it calls do this. */
    bool counts_writes;
    /* The kernels for each dispatch key. A key has either a typed kernel, or NULL in `typed` and a boxed kernel. If both are NULL, the operator
     * has no kernel of its own for the key. */
    grd_kernel *_Atomic typed[GRD_KEY_COUNT];
    struct grd_boxed_slot boxed[GRD_KEY_COUNT];
};

/* The operators of the schema, in the order of the schema. The table has grd_op_table_size entries. */
extern struct grd_op *const grd_op_table[];
extern const int64_t grd_op_table_size;

/* A function of numbers and sizes that gradient formulas can call, in addition to operators. Arguments are passed by position. */
struct grd_function {
    const char *name;
    const struct grd_arg *args;
    uint8_t nargs, kind; /* `kind` is the grd_kind of the returned value */
    grd_value (*call)(const grd_value *args);
};

/* The functions of numbers and sizes that gradient formulas can call. The last entry has a NULL name. */
extern const struct grd_function grd_function_table[];

/* Bits for the forms (functional, in-place, out=) that an operator has. */
enum {
    GRD_FORM_NEW = 1 << GRD_FUNCTIONAL,
    GRD_FORM_INPLACE = 1 << GRD_INPLACE,
    GRD_FORM_OUT = 1 << GRD_OUT,
    GRD_FORMS_ALL = GRD_FORM_NEW | GRD_FORM_INPLACE | GRD_FORM_OUT
};

/* Sets all kernels of an operator to its built-in kernels, i.e. those that it had before any kernel was registered for it at run time. */
void grd_reset_slots(struct grd_op *op);

/* Sets the operator's kernel for `key` to a boxed kernel, i.e. one that gets its arguments as an array of grd_value. Other threads may call the
 * operator at the same time. */
void grd_fill_slot(struct grd_op *op, grd_key key, grd_boxed_kernel *kernel, void *context);
/* Sets the operator's kernel for `key` to its built-in kernel, i.e. removes a kernel that was registered at run time. Other threads may call the
 * operator at the same time. */
void grd_reset_slot(struct grd_op *op, grd_key key);

/* Writes the built-in kernels of all operators of the schema into the operators' tables of kernels. The library's constructor calls this function
 * once, before main. */
void grd_dispatch_init(void);
/* The three functions below prepare plug-ins (plugin.c), operators defined at run time (define.c) and the debug modes (lifetimes.c) when the
 * library is loaded. */
void grd_plugin_init(void);
void grd_define_init(void);
void grd_lifetimes_dispatch_init(void);
/* Sets the fallback kernel of the dispatch key `key`, which runs operators that have no kernel of their own for this key. Sets its context to
 * NULL. Other threads may call operators at the same time. */
void grd_replace_fallback(grd_key key, grd_boxed_kernel *kernel);

/* Returns the dispatch keys of a call on this thread: the keys of the tensors of the call (`keys`) and the keys that the thread includes in every
 * call, without the keys that the thread excludes. */
static inline grd_keyset grd_active_keys(grd_keyset keys)
{
    return (keys | grd_thread.include) & ~(grd_thread.exclude | grd_thread.grad_off);
}

/* Returns the highest key in a set, or CPU for an empty set. */
static inline grd_key grd_top_key(grd_keyset keys)
{
    return (grd_key)(31u - (unsigned)__builtin_clz(keys | 1u << GRD_KEY_CPU));
}

/* Returns the typed kernel for the highest key in `keys`. Returns NULL if the operator has a boxed kernel or no kernel for this key. */
static inline grd_kernel *grd_typed_kernel(const struct grd_op *op, grd_keyset keys)
{
    return atomic_load_explicit(&op->typed[(unsigned)grd_top_key(keys)], memory_order_acquire);
}

/* Returns the union of the keys of `out` and of the tensors and devices among the arguments. */
grd_keyset grd_keys_of_values(const struct grd_op *op, const grd_tensor *out, const grd_value *args);

/* Calls the operator's kernel for the dispatch key of highest priority in `keys`. The caller has checked the arguments. */
void grd_dispatch_boxed(const struct grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results);

/* Returns the key of a device, or an empty set if there is no such type of device. */
grd_keyset grd_keys_of_device(grd_device device);

/* Returns the key of a device argument, or an empty set if the argument is absent. */
static inline grd_keyset grd_device_keys(grd_device device)
{
    return device.type == GRD_DEVICE_NONE ? 0 : grd_keys_of_device(device);
}

/* Marks a static function that is not inlined, so that the machine code of its callers stays short. A file that does not call the function gets no
 * compiler warning. */
#define GRD_APART static __attribute__((noinline, unused))
/* Marks a static function that is rarely called; it is not inlined. */
#define GRD_COLD static __attribute__((noinline, cold))

/* The functions below set a grd_value. They assign the members one by one, because an initializer would also clear the rest of the union in every
 * call. */
static inline void grd_set_tensor(grd_value *value, grd_tensor *t)
{
    value->kind = GRD_KIND_TENSOR;
    value->v.tensor = t;
}

static inline void grd_set_tensors(grd_value *value, grd_tensors list)
{
    value->kind = GRD_KIND_TENSORS;
    value->v.tensors = list;
}

static inline void grd_set_scalar(grd_value *value, const grd_scalar *number)
{
    value->kind = GRD_KIND_SCALAR;
    value->v.scalar = *number;
}

static inline void grd_set_int(grd_value *value, int64_t number)
{
    value->kind = GRD_KIND_INT;
    value->v.integer = number;
}

static inline void grd_set_float(grd_value *value, double number)
{
    value->kind = GRD_KIND_FLOAT;
    value->v.number = number;
}

static inline void grd_set_bool(grd_value *value, bool truth)
{
    value->kind = GRD_KIND_BOOL;
    value->v.boolean = truth;
}

static inline void grd_set_dims(grd_value *value, grd_dims list)
{
    value->kind = GRD_KIND_DIMS;
    value->v.dims = list;
}

static inline void grd_set_dtype(grd_value *value, grd_dtype dtype)
{
    value->kind = GRD_KIND_DTYPE;
    value->v.dtype = dtype;
}

static inline void grd_set_device(grd_value *value, grd_device device)
{
    value->kind = GRD_KIND_DEVICE;
    value->v.device = device;
}

static inline void grd_set_string(grd_value *value, const char *text)
{
    value->kind = GRD_KIND_STRING;
    value->v.string = text;
}

static inline void grd_set_generator(grd_value *value, grd_generator *generator)
{
    value->kind = GRD_KIND_GENERATOR;
    value->v.generator = generator;
}

/* ---- What entry functions are made of ----------------------------------------------------------------------------- */
/* Checks the pointers in a call that a program makes with arguments in grd_values. If a required pointer is NULL, raises a TypeError that names
 * `function`, and returns false. */
bool grd_check_boxed(const struct grd_op *op, const grd_value *args, const grd_value *ret_results, const char *function);

/* Sets all results of a call to the failed tensor (a static object that marks results of failed calls), or to an empty list of tensors if the
 * operator returns a list. */
void grd_fail_results(const struct grd_op *op, grd_value *ret_results);

/* Returns the number in `value`, of any numeric kind, as a scalar. */
grd_scalar grd_value_scalar(const grd_value *value);

/* Returns the name that schemas use for a kind, e.g. "int[]" for GRD_KIND_DIMS. */
const char *grd_kind_name(grd_kind kind);

static inline bool grd_is_dtype(grd_dtype dtype)
{
    return (unsigned)dtype < GRD_DTYPE_COUNT;
}

/* Called by grd_check_writable if `out` cannot be written. Raises the error, unless one is pending already, and returns false. */
bool grd_check_writable_slow(const struct grd_op *op, const grd_tensor *out);

/* True if `out` can be written. False if an error is pending. Also false, with an error raised, if `out` is NULL or the failed tensor. */
static inline bool grd_check_writable(const struct grd_op *op, const grd_tensor *out)
{
    return GRD_LIKELY(grd_thread.error == 0 && out != NULL && !grd_is_failed(out)) || grd_check_writable_slow(op, out);
}

/* True if `out` has the dtype that the operator's rule (struct grd_out_rule) demands for result number `i`. `result` is the dtype that this result
 * has without out=. Otherwise raises RuntimeError with the text of the rule. */
bool grd_check_out_dtype(const struct grd_op *op, int64_t i, const grd_tensor *out, grd_dtype result);
/* Checks the dtype of `out` by the operator's rule before an out= call, and returns true if it is allowed. Otherwise raises RuntimeError.
 * `inputs` are the tensors among the arguments. `given` is the dtype argument, or GRD_DTYPE_NONE. */
bool grd_check_out_call(const struct grd_op *op, const grd_tensor *out, grd_tensors inputs, grd_dtype given);
/* Makes the check of grd_check_out_call for a call whose arguments are in `args`. The input tensors and the dtype argument are found in this
 * array. */
bool grd_check_out_values(const struct grd_op *op, const grd_tensor *out, const grd_value *args);

/* Increments the version counter of `out`, unless `out` is NULL or an error is pending. */
static inline void grd_written(grd_tensor *out)
{
    if (out != NULL && grd_thread.error == 0)
        grd_bump_version(out);
}

static inline bool grd_is_int_list(grd_dims list)
{
    return list.n == 0 || (list.n > 0 && list.data != NULL);
}

static inline bool grd_is_tensor_list(grd_tensors list)
{
    if (list.n != 0 && (list.n < 0 || list.data == NULL))
        return false;
    for (int64_t i = 0; i < list.n; i++)
        if (list.data[i] == NULL)
            return false;
    return true;
}

/* Returns the dispatch keys of `t` and, if `t` is a view, of its base, i.e. the tensor whose memory it views. The keys of the base count because
 * the base may have been set to require a gradient after the view was made. */
GRD_INLINE grd_keyset grd_keys_of(const grd_tensor *t)
{
    return t->base ? grd_keys_read(t) | grd_keys_read(t->base) : grd_keys_read(t);
}

static inline grd_keyset grd_list_keys(grd_tensors list)
{
    grd_keyset keys = 0;
    for (int64_t i = 0; i < list.n; i++)
        keys |= grd_keys_of(list.data[i]);
    return keys;
}

/* Returns the dispatch keys of `t` and of the tensor that `t` is a view of, or an empty set if `t` is NULL. */
GRD_INLINE grd_keyset grd_keys_if(const grd_tensor *t)
{
    return t != NULL ? grd_keys_of(t) : 0;
}

/* The state of a call after the operator's public function has looked for a kernel. `kernel` is the typed kernel. It is NULL if the call is
 * refused, or if it continues with a boxed kernel and arguments in grd_values. */
struct grd_way {
    grd_kernel *kernel;
    int64_t mark; /* position in the pool of temporary tensors at the start of the call; -1 if the call is refused */
    grd_keyset keys;
};

/* The state of a refused call. A call is refused if an argument is invalid, e.g. NULL for a required tensor, or if an error is pending. */
static const struct grd_way grd_refused = {.mark = -1};

/* Starts a call: finds the typed kernel for this thread's active keys, and notes the position in the pool of temporary tensors. */
GRD_INLINE struct grd_way grd_enter(const struct grd_op *op, grd_keyset keys)
{
    if (GRD_UNLIKELY(grd_thread.error != 0))
        return grd_refused;
    const grd_keyset active = grd_active_keys(keys);
    return (struct grd_way){grd_typed_kernel(op, active), grd_pool_mark(), active};
}

/* The three functions below make a complete call of an operator that has no typed kernel for `keys`. The first is for operators with one result,
 * the second for operators that return a list, the third for operators with several results. */
grd_tensor *grd_boxed(const struct grd_op *op, grd_keyset keys, int64_t mark, grd_tensor *out, const grd_value *args);
grd_tensors grd_boxed_list(const struct grd_op *op, grd_keyset keys, int64_t mark, const grd_value *args);
void grd_boxed_many(const struct grd_op *op, grd_keyset keys, int64_t mark, const grd_value *args, grd_tensor **ret_results);

/* Ends a call that raised an error: drops the temporary tensors pooled after `mark`, and puts the operator's name before the error's text.
 * Returns the failed tensor, a static object that stands for the result of every failed call. */
__attribute__((cold)) grd_tensor *grd_leave_failed(const struct grd_op *op, int64_t mark);

/* Ends a call: drops the temporary tensors of the call, i.e. those that were pooled after `mark`, and moves the result to the caller's scope.
 * After an error, puts the operator's name before the error's text and returns the failed tensor, which marks the result of a failed call. */
GRD_INLINE grd_tensor *grd_leave(const struct grd_op *op, int64_t mark, grd_tensor *result)
{
    if (GRD_LIKELY(grd_thread.error == 0) && grd_pool_return(mark, result))
        return result;
    return grd_leave_failed(op, mark);
}

/* Increments the version counter of `out`, which may be NULL, and then ends the call like grd_leave: drops the temporary tensors of the call and
 * returns the result, or the failed tensor after an error. */
GRD_INLINE grd_tensor *grd_leave_written(const struct grd_op *op, int64_t mark, grd_tensor *result, grd_tensor *out)
{
    grd_written(out);
    return grd_leave(op, mark, result);
}

/* Ends a call of an operator with `n` results: drops the temporary tensors that were pooled after `mark` and moves the results to the caller's
 * scope. After an error, puts the operator's name before the error's text and sets all results to the failed tensor. */
void grd_leave_many(const struct grd_op *op, int64_t mark, grd_tensor **results, int n);
/* Ends a call of an operator that returns a list. The list, its tensors and the temporaries all stay in the caller's scope. After an error,
 * returns an empty list. */
grd_tensors grd_leave_list(const struct grd_op *op, int64_t mark, grd_tensors result);
/* Returns a zero-dimensional tensor that holds `value`, a number that the caller passed for a tensor argument. On failure returns the failed
 * tensor, and the error's text begins with the operator's name. */
grd_tensor *grd_number_argument(const struct grd_op *op, grd_scalar value);
/* Called by grd_leave_number if there is an error: drops the temporary tensors that were pooled after `mark`, and returns the failed tensor,
 * which marks the result of a failed call. */
grd_tensor *grd_leave_number_failed(int64_t mark);

/* Drops the temporary tensors that were pooled after `mark`, e.g. a zero-dimensional tensor that was made of a number argument, and moves the
 * result to the caller's scope. After an error, returns the failed tensor. */
static inline grd_tensor *grd_leave_number(int64_t mark, grd_tensor *result)
{
    return GRD_LIKELY(grd_thread.error == 0) && grd_pool_return(mark, result) ? result : grd_leave_number_failed(mark);
}

#endif
