/* An operator as the dispatcher sees it: arguments, the function that unboxes, and a slot per dispatch key.
 * Operators of the schema are generated, each a variable of its own; slots are filled at load and by registration. */
#ifndef GRD_DISPATCH_OP_H
#define GRD_DISPATCH_OP_H

#include "base/error.h"
#include "core/tensor.h"
#include "gradus/dispatch.h"

struct grd_derivative; /* autograd/derivative.h */

struct grd_arg {
    const char *name;
    uint8_t kind; /* grd_kind */
    bool optional;
    uint8_t role;    /* grd_batch_role */
    grd_value value; /* default; kind NONE when there is none */
};

/* Says how an argument changes when the call is made with the physical tensors of batch tensors, which have the batch as an additional dimension 0.
 * Negative dims are wrapped first; an absent dim stands for all dims. */
enum grd_batch_role {
    GRD_ROLE_NONE,    /* unchanged */
    GRD_ROLE_DIM,     /* a dim: 1 is added */
    GRD_ROLE_DIMS,    /* a list of dims: 1 is added to each */
    GRD_ROLE_REDUCE,  /* as DIMS; an empty list also stands for all dims */
    GRD_ROLE_ORDER,   /* a permutation: as DIMS, with a 0 put in front */
    GRD_ROLE_SIZES,   /* sizes: the size of the batch is put in front */
    GRD_ROLE_STRIDES, /* strides: the first tensor's stride of the batch dimension is put in front */
    GRD_ROLE_FORMAT,  /* the element's memory format is checked, and then that of the batch is left open */
    GRD_ROLE_OFFSET   /* in a loop: more by where the element of the first tensor begins; absent ones stay so */
};

/* How a call with batch tensors becomes one with their physical tensors (src/transform/batch.c). */
enum grd_batch_rule {
    GRD_BATCH_DEFAULT,  /* a composite runs as it is, since the operators it calls have rules; others: ALIGN */
    GRD_BATCH_ALIGN,    /* elementwise: the batch dimensions of all tensors are aligned and broadcast together */
    GRD_BATCH_SHIFT,    /* arguments change as their roles say */
    GRD_BATCH_TRAILING, /* the same; what the tensor has too few dims for is refused before, since it has one more below */
    GRD_BATCH_FORMULA,
    GRD_BATCH_RANDOM, /* runs as the randomness of the level says */
    GRD_BATCH_LOOP,   /* runs once for each element of the batch, and warns */
    GRD_BATCH_REFUSE
};

/* The dtype of the floating tensors among the arguments while autocast is on (src/autograd/autocast.c). */
enum grd_autocast_rule {
    GRD_AUTOCAST_NONE,    /* unchanged */
    GRD_AUTOCAST_LOWER,   /* the dtype of autocast */
    GRD_AUTOCAST_FLOAT32, /* float32 */
    GRD_AUTOCAST_PROMOTE  /* float32 if one of them has it, otherwise unchanged */
};

/* The operator for physical tensors, each with the batch in front. Writes several results to `ret`. */
typedef grd_tensor *grd_batch_formula(const grd_value *args, grd_tensor **ret);

typedef void grd_kernel(void); /* a typed kernel, cast to its real type by generated functions */

/* Calls a typed kernel with generic values. */
typedef void grd_unbox(grd_kernel *kernel, grd_tensor *out, const grd_value *args, grd_value *ret_results);

/* A boxed kernel with its context. The context is written before the kernel is, and read after it. */
struct grd_boxed_slot {
    grd_boxed_kernel *_Atomic kernel;
    void *_Atomic context;
};

/* The dtype that an out= must have, for operators that do not convert into it. A dtype argument, if one is given, is the dtype of the result. */
enum grd_out_dtype {
    GRD_OUT_RESULT,   /* the dtype of each result; checked when results are copied, or by the operator itself */
    GRD_OUT_GIVEN,    /* the dtype argument; if that is absent, any to which the result can be cast */
    GRD_OUT_SELF,     /* the dtype of the first tensor */
    GRD_OUT_REAL,     /* the dtype of the first tensor, or of its real part */
    GRD_OUT_PROMOTED, /* the dtype that all tensors promote to */
    GRD_OUT_REST,     /* the dtype that all tensors but the first promote to */
    GRD_OUT_BOOL,
    GRD_OUT_INT64,
    GRD_OUT_COMPLEX,  /* any complex dtype */
    GRD_OUT_FLOATING, /* any floating dtype */
    GRD_OUT_CASTABLE  /* any to which the result can be cast */
};

struct grd_out_rule {
    uint8_t dtype;                      /* grd_out_dtype */
    const char *texts[GRD_MAX_RESULTS]; /* the error for each result; out.c says what stands in braces */
};

/* Says whether a one-dimensional result fills an out= with as many elements, whatever the sizes of that, as PyTorch's ranges do; and if so,
 * whether the length of the result is an argument. */
enum grd_fills { GRD_FILLS_NOT, GRD_FILLS_GIVEN, GRD_FILLS_COMPUTED };

/* An operator. Callers make no difference between those of the schema and those defined at run time. */
struct grd_op {
    const char *name, *schema;
    const struct grd_arg *args;
    uint8_t nargs, nresults;
    uint8_t forms; /* bit set of grd_form */
    grd_unbox *unbox;
    grd_kernel *kernel;                      /* from the tree */
    const struct grd_derivative *derivative; /* NULL: not differentiable, or a composite that is recorded by its parts */
    const struct grd_out_rule *out_rule;     /* NULL: an out= takes what can be cast to its dtype */
    const char *providers;                   /* of the tree, in the order they are tried: "blas native"; NULL: native alone */
    union {
        grd_batch_formula *formula; /* of GRD_BATCH_FORMULA */
        const char *refusal;        /* of GRD_BATCH_REFUSE: the error */
    } batched;
    uint8_t batch;      /* grd_batch_rule */
    atomic_bool looped; /* the warning has been given */
    uint8_t fills;      /* grd_fills */
    uint8_t autocast;   /* grd_autocast_rule */
    bool has_out;       /* typed kernels take `out` first: NULL allocates, args[0] is in place */
    bool is_view;       /* the result shares storage with args[0] */
    bool everywhere;    /* the kernel of the tree follows no address of a device: it serves them all */
    bool returns_list;
    bool defined;       /* at run time: it is part of a struct grd_defined_op (define.h) */
    bool composite;     /* the kernel only calls operators, so it serves every key; AUTOGRAD where there is no derivative */
    bool forward;       /* of a composite: its tangents have a rule, and do not follow from its parts */
    bool alone;         /* in place it changes where the memory of a tensor is, or its sizes: no other thread may use it meanwhile */
    bool counts_writes; /* a call bumps the version of what it writes; parts of a composite do so themselves */
    /* Per key: a typed kernel, or NULL and a boxed one; both NULL: no kernel. */
    grd_kernel *_Atomic typed[GRD_KEY_COUNT];
    struct grd_boxed_slot boxed[GRD_KEY_COUNT];
};

/* The operators of the schema, in the order of the schema. */
extern struct grd_op *const grd_op_table[];
extern const int64_t grd_op_table_size;

/* A function of numbers and sizes that gradient formulas can call besides operators. Its arguments are named by their position. */
struct grd_function {
    const char *name;
    const struct grd_arg *args;
    uint8_t nargs, kind; /* kind: grd_kind of the value */
    grd_value (*call)(const grd_value *args);
};

/* The functions that formulas of the schema call; a row without a name ends them. */
extern const struct grd_function grd_function_table[];

/* The forms of an operator, as bits. */
enum {
    GRD_FORM_NEW = 1 << GRD_FUNCTIONAL,
    GRD_FORM_INPLACE = 1 << GRD_INPLACE,
    GRD_FORM_OUT = 1 << GRD_OUT,
    GRD_FORMS_ALL = GRD_FORM_NEW | GRD_FORM_INPLACE | GRD_FORM_OUT
};

/* Sets the slots of an operator to the kernels that it has before anything is registered for it. */
void grd_reset_slots(struct grd_op *op);

/* Puts a boxed kernel in the place of a key's, and the other way round, while others may call. */
void grd_fill_slot(struct grd_op *op, grd_key key, grd_boxed_kernel *kernel, void *context);
void grd_reset_slot(struct grd_op *op, grd_key key);

/* Fills the slots; run once, before main, by the library's constructor. */
void grd_dispatch_init(void);
/* The parts of it that are about plug-ins (plugin.c) and operators defined at run time (define.c). */
void grd_plugin_init(void);
void grd_define_init(void);
void grd_lifetimes_dispatch_init(void);
/* Puts another kernel in the place of a key's fallback, which has no context. Others may compute meanwhile. */
void grd_replace_fallback(grd_key key, grd_boxed_kernel *kernel);

static inline grd_keyset grd_active_keys(grd_keyset keys)
{
    return (keys | grd_thread.include) & ~(grd_thread.exclude | grd_thread.grad_off);
}

static inline grd_key grd_top_key(grd_keyset keys)
{
    return (grd_key)(31u - (unsigned)__builtin_clz(keys | 1u << GRD_KEY_CPU));
}

/* Returns the typed kernel for the highest key, or NULL if that key has a boxed kernel or none. */
static inline grd_kernel *grd_typed_kernel(const struct grd_op *op, grd_keyset keys)
{
    return atomic_load_explicit(&op->typed[(unsigned)grd_top_key(keys)], memory_order_acquire);
}

/* Returns the union of the keys of the tensors and devices among the arguments. */
grd_keyset grd_keys_of_values(const struct grd_op *op, const grd_tensor *out, const grd_value *args);

/* Calls the kernel for the highest key. The caller has checked the values. */
void grd_dispatch_boxed(const struct grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results);

grd_keyset grd_keys_of_device(grd_device device);

/* Returns the key of a device argument; no key if the argument is absent. */
static inline grd_keyset grd_device_keys(grd_device device)
{
    return device.type == GRD_DEVICE_NONE ? 0 : grd_keys_of_device(device);
}

/* Marks a static function that is not inlined, so that its callers stay short. A file need not call it. */
#define GRD_APART static __attribute__((noinline, unused))
/* Marks a static function that is rarely called; it is not inlined. */
#define GRD_COLD static __attribute__((noinline, cold))

/* ---- Generic values: an initializer would clear the rest of them, for every call. ---------------------------------------- */
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
/* True if a boxed call from outside the library has an operator and room for arguments and results; otherwise TypeError, which names the function. */
bool grd_check_boxed(const struct grd_op *op, const grd_value *args, const grd_value *ret_results, const char *function);

/* Sets the results to those of a failed operator. */
void grd_fail_results(const struct grd_op *op, grd_value *ret_results);

/* Returns a value that is a number of any kind as a scalar. */
grd_scalar grd_value_scalar(const grd_value *value);

/* Returns the name of a kind in schemas, such as "int[]" for GRD_KIND_DIMS. */
const char *grd_kind_name(grd_kind kind);

static inline bool grd_is_dtype(grd_dtype dtype)
{
    return (unsigned)dtype < GRD_DTYPE_COUNT;
}

bool grd_check_writable_slow(const struct grd_op *op, const grd_tensor *out);

/* False after an error and, with RuntimeError, for NULL and for the failed tensor. */
static inline bool grd_check_writable(const struct grd_op *op, const grd_tensor *out)
{
    return GRD_LIKELY(grd_thread.error == 0 && out != NULL && !grd_is_failed(out)) || grd_check_writable_slow(op, out);
}

/* RuntimeError, in the operator's words, where the out= of result i has not the dtype that it must have. */
bool grd_check_out_dtype(const struct grd_op *op, int64_t i, const grd_tensor *out, grd_dtype result);
/* The same check for a call of the out form, with the tensors among its arguments and its dtype argument or GRD_DTYPE_NONE. */
bool grd_check_out_call(const struct grd_op *op, const grd_tensor *out, grd_tensors inputs, grd_dtype given);
bool grd_check_out_values(const struct grd_op *op, const grd_tensor *out, const grd_value *args);

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

/* Returns the keys of a tensor and of its base, which may have been set to require a gradient after the view was made. */
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

/* Returns the keys of a tensor; no key for NULL. */
GRD_INLINE grd_keyset grd_keys_if(const grd_tensor *t)
{
    return t != NULL ? grd_keys_of(t) : 0;
}

/* A call on its way: its typed kernel, or NULL where it is refused or goes on with generic values. */
struct grd_way {
    grd_kernel *kernel;
    int64_t mark; /* of the pool; -1: refused */
    grd_keyset keys;
};

/* The entry of a call with an argument that cannot be, such as NULL for a tensor, and of every call while an error is pending. */
static const struct grd_way grd_refused = {.mark = -1};

GRD_INLINE struct grd_way grd_enter(const struct grd_op *op, grd_keyset keys)
{
    if (GRD_UNLIKELY(grd_thread.error != 0))
        return grd_refused;
    const grd_keyset active = grd_active_keys(keys);
    return (struct grd_way){grd_typed_kernel(op, active), grd_pool_mark(), active};
}

/* A call without a typed kernel, from its entry to its end. */
grd_tensor *grd_boxed(const struct grd_op *op, grd_keyset keys, int64_t mark, grd_tensor *out, const grd_value *args);
grd_tensors grd_boxed_list(const struct grd_op *op, grd_keyset keys, int64_t mark, const grd_value *args);
void grd_boxed_many(const struct grd_op *op, grd_keyset keys, int64_t mark, const grd_value *args, grd_tensor **ret_results);

__attribute__((cold)) grd_tensor *grd_leave_failed(const struct grd_op *op, int64_t mark);

/* The way out of an operator: drops its temporaries, moves the result to the caller's scope, names the operator in an error. */
GRD_INLINE grd_tensor *grd_leave(const struct grd_op *op, int64_t mark, grd_tensor *result)
{
    if (GRD_LIKELY(grd_thread.error == 0) && grd_pool_return(mark, result))
        return result;
    return grd_leave_failed(op, mark);
}

/* Leaves an operator that may have written `out`. */
GRD_INLINE grd_tensor *grd_leave_written(const struct grd_op *op, int64_t mark, grd_tensor *result, grd_tensor *out)
{
    grd_written(out);
    return grd_leave(op, mark, result);
}

void grd_leave_many(const struct grd_op *op, int64_t mark, grd_tensor **results, int n);
/* The tensors of a list, and the list itself, stay in the caller's scope. */
grd_tensors grd_leave_list(const struct grd_op *op, int64_t mark, grd_tensors result);
/* A number given for a tensor argument, as a 0-d tensor; an error names the operator. */
grd_tensor *grd_number_argument(const struct grd_op *op, grd_scalar value);
grd_tensor *grd_leave_number_failed(int64_t mark);

/* Drops the 0-d tensor that was made of a number, and keeps the result. */
static inline grd_tensor *grd_leave_number(int64_t mark, grd_tensor *result)
{
    return GRD_LIKELY(grd_thread.error == 0) && grd_pool_return(mark, result) ? result : grd_leave_number_failed(mark);
}

#endif
