/* Dispatch: keys, operators by name, boxed calls; kernels registered and operators defined at run time. */
#ifndef GRADUS_DISPATCH_H
#define GRADUS_DISPATCH_H

#include "gradus/types.h"

GRD_BEGIN_DECLS

/* Dispatch keys, lowest priority first. An operator runs for the highest key of its arguments that is not excluded. All devices of plug-ins share
 * DEVICE: which kernel runs is then found by the type of device (gradus/device.h). CONJUGATE is that of tensors that are conjugated, or negated,
 * when they are read (grd_is_conj). LIFETIMES is that of every call while GRADUS_DEBUG=lifetimes or races. */
#define GRD_KEYS(X) X(CPU) X(META) X(DEVICE) X(CONJUGATE) X(AUTOGRAD) X(FORWARD) X(AUTOCAST) X(BATCH) X(WRAPPER) X(LIFETIMES)

typedef enum grd_key {
#define GRD_KEY_ENUM(name) GRD_KEY_##name,
    GRD_KEYS(GRD_KEY_ENUM)
#undef GRD_KEY_ENUM
        GRD_KEY_COUNT
} grd_key;

typedef uint32_t grd_keyset; /* bit k stands for key k */

GRD_API const char *grd_key_name(grd_key key);
GRD_API grd_keyset grd_tensor_keys(const grd_tensor *t);

/* Keys added to and removed from every dispatch of this thread; set returns the previous sets for restoring. The keys of devices say where
 * data is, and LIFETIMES is a mode of the process, so they can be neither: they are left out of the sets. */
typedef struct grd_key_guard {
    grd_keyset include, exclude;
} grd_key_guard;
GRD_API grd_key_guard grd_key_guard_set(grd_keyset include, grd_keyset exclude);
GRD_API void grd_key_guard_restore(grd_key_guard previous);

/* ---- Generic values ------------------------------------------------------------------------------------------------- */
typedef enum grd_kind {
    GRD_KIND_NONE,
    GRD_KIND_TENSOR,
    GRD_KIND_TENSORS,
    GRD_KIND_SCALAR, /* also optional numbers */
    GRD_KIND_INT,
    GRD_KIND_FLOAT,
    GRD_KIND_BOOL,
    GRD_KIND_DIMS,
    GRD_KIND_DTYPE,
    GRD_KIND_DEVICE,
    GRD_KIND_STRING,
    GRD_KIND_GENERATOR
} grd_kind;

typedef struct grd_value {
    grd_kind kind;
    union {
        grd_tensor *tensor;
        grd_tensors_view tensors;
        grd_scalar scalar;
        int64_t integer;
        double number;
        bool boolean;
        grd_dims_view dims;
        grd_dtype dtype;
        grd_device device;
        const char *string;
        grd_generator *generator;
    } v;
} grd_value;

/* ---- Operators --------------------------------------------------------------------------------------------------------- */
typedef struct grd_op grd_op;

/* An operator has at most this many arguments and results. */
enum { GRD_MAX_ARGS = 16, GRD_MAX_RESULTS = 4 };

/* Returns the operator of that name, e.g. "add", or NULL. */
GRD_API const grd_op *grd_op_find(const char *name);
GRD_API int64_t grd_op_count(void);
GRD_API const grd_op *grd_op_at(int64_t index);
GRD_API const char *grd_op_name(const grd_op *op);
/* "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" */
GRD_API const char *grd_op_schema(const grd_op *op);
GRD_API int grd_op_arg_count(const grd_op *op);
GRD_API int grd_op_result_count(const grd_op *op); /* a list counts as one */
GRD_API const char *grd_op_arg_name(const grd_op *op, int arg);
GRD_API grd_kind grd_op_arg_kind(const grd_op *op, int arg);
/* True if the argument may be left out: it is optional or has a default. */
GRD_API bool grd_op_arg_optional(const grd_op *op, int arg);
/* Bit set of grd_form: 1 << GRD_INPLACE is set where the operator has an in-place form. */
GRD_API unsigned grd_op_forms(const grd_op *op);

/* Where an operator writes its result: to a new tensor, to its first argument, or to `out`. */
typedef enum grd_form { GRD_FUNCTIONAL, GRD_INPLACE, GRD_OUT } grd_form;

/* Calls an operator with generic values, one for each argument of its schema (kind NONE: absent or default).
 * `out` is given for GRD_OUT only. Results (tensors, or one list) are pooled and written to ret_results. */
GRD_API bool grd_call(const grd_op *op, grd_form form, const grd_value *args, int n, grd_tensor *out, grd_value *ret_results);

/* Writes results into tensors of the caller, for an operator that has no out form, or several results: outs[i] takes the sizes of results[i] and
 * its elements, converted. `inputs` are the tensors the operator has read. Nothing is written unless every result can be. TypeError: not as many
 * tensors as results. RuntimeError: a dtype that cannot be cast, another device, elements that share memory with each other or with an input, or a
 * gradient that would be recorded. */
GRD_API bool grd_write_results(const grd_op *op, grd_tensors_view inputs, grd_tensors_view outs, grd_tensors_view results);

/* A kernel for any operator: args are those of the schema; for an operator with an out form, `out` is the tensor to write
 * (NULL: allocate). Writes grd_op_result_count results. `keys` is the set being dispatched, for grd_redispatch; `context` is what was
 * registered with the kernel. */
typedef void grd_boxed_kernel(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results,
                              void *context);

/* Runs the operator for the highest key in `keys`. A kernel calls this, with its own key removed, to pass a call on. */
GRD_API void grd_redispatch(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results);

/* ---- Operators defined at run time --------------------------------------------------------------------------------------- */

/* The call whose gradients a gradient function computes. */
typedef struct grd_gradient {
    const grd_op *op;
    const grd_value *args;    /* of the call; kind NONE for a tensor that `saves` leaves out */
    const grd_value *results; /* likewise */
    grd_tensors_view grads;   /* of the results, or of the tensors of a list; zeros where undefined, NULL for a result of integers */
    unsigned needs;           /* bit i: argument i needs a gradient */
    void *context;
} grd_gradient;

/* Writes the gradient of each argument that needs one, in its shape: kind TENSOR, or TENSORS for a list. What it leaves (kind NONE) has none. Made of
 * operators, it can be differentiated again. Reports failure with grd_error_set. */
typedef void grd_gradient_function(const grd_gradient *gradient, grd_value *ret_grads);

typedef struct grd_gradient_formula {
    const char *arg, *formula;
} grd_gradient_formula;

/* The definition of an operator. Texts are copied. */
typedef struct grd_definition {
    /* "mylib::cube(Tensor self, *, Scalar scale=1) -> Tensor": a namespace and a name, then a signature as in schema/ and in
     * grd_op_schema. Results are "Tensor", "Tensor[]" or "(Tensor a, Tensor b)"; those without a name are called result, or result0, result1. */
    const char *schema;
    /* The gradient of an argument as an expression of operators: {"self", "grad * 3 * scale * self * self"}. Names are arguments, results and
     * grad (of several results grad_<name>, of a list grads); shape(x), strides(x), offset(x), dtype(x), device(x) and sizes_along(xs, dim) (-1 of
     * vectors without elements) save no tensor; + - * / ** and comparisons, "x if condition else y", calls, numbers, strings, lists and None as in
     * Python. Operators that are called are defined before, or the one that is being defined. What a formula computes can be differentiated again. */
    grd_gradient_formula gradients[GRD_MAX_ARGS];
    /* Instead of formulas: a function for all arguments, and the tensors among arguments and results that it reads, "self result";
     * NULL: all of them. */
    grd_gradient_function *gradient;
    const char *saves;
    /* A kernel made of operators serves every device, and where no gradient is given it is differentiated through them. NULL: kernels are
     * registered for each key. It returns new tensors when the operator has a gradient, as every kernel then does. */
    grd_boxed_kernel *kernel;
    void *context; /* handed to gradient and kernel */
} grd_definition;

/* Defines an operator, for good, with the functional form alone; it is called with grd_call. One that has neither a gradient nor a kernel made of
 * operators can be run on tensors that require gradients, but not differentiated: RuntimeError in the backward pass.
 * NULL on failure: ValueError, with the place, for a text that cannot be read; RuntimeError when the name is taken. */
GRD_API const grd_op *grd_define_operator(const grd_definition *definition);

/* ---- Kernels ------------------------------------------------------------------------------------------------------------ */

/* Registration: one operator for a key, or every operator that has no kernel of its own for it. RuntimeError when taken, and for DEVICE: a
 * device brings its kernels itself. Threads may register while others call; what is unregistered must not be running. */
GRD_API void grd_register_kernel(const char *op_name, grd_key key, grd_boxed_kernel *kernel, void *context);
GRD_API void grd_register_fallback(grd_key key, grd_boxed_kernel *kernel, void *context);
GRD_API void grd_unregister_kernel(const char *op_name, grd_key key);
GRD_API void grd_unregister_fallback(grd_key key);

/* ---- Providers ---------------------------------------------------------------------------------------------------------- */

/* A provider is another implementation of an operator on the cpu, for the calls that it takes. The library has made the plan: arguments are
 * checked, and results[i], fresh memory, has the sizes, dtype and strides that the result will have. What remains is to compute. Its results go to
 * out= or the first argument of an in-place call only when it has succeeded: a provider that fails, with grd_error_set and false, has changed
 * nothing. */
typedef bool grd_provider_condition(const grd_op *op, const grd_value *args, void *context);
typedef bool grd_provider_run(const grd_op *op, const grd_value *args, grd_tensor *const *results, void *context);

/* Has a call planned, then run, and its results delivered, as that of a provider: with this a boxed kernel, of a device or a key, leaves
 * everything but the computing to the library. RuntimeError for the operators that cannot have a provider, and those of the operator itself. */
GRD_API void grd_run_planned(const grd_op *op, grd_tensor *out, const grd_value *args, grd_value *ret_results, grd_provider_run *run,
                             void *context);

/* Registers a provider, to be tried before those of the library and after those registered before it. takes NULL: it takes every call.
 * RuntimeError: there is no such operator, it is a composite, a view or one that returns a list, it has a provider of that name, or a kernel was
 * registered for it. Operators whose sizes depend on data, which the meta device refuses, cannot be provided: their calls raise
 * NotImplementedError. */
GRD_API void grd_register_provider(const char *op_name, const char *name, grd_provider_condition *takes, grd_provider_run *run,
                                   void *context);

/* The providers of an operator in the order they are tried, "mine blas native"; "" for a composite. Valid until this thread asks again.
 * The environment variable GRADUS_PROVIDER wants or forbids some, by commas: "mm:native,-blas". RuntimeError: there is no such operator. */
GRD_API const char *grd_providers(const char *op_name);

GRD_END_DECLS
#endif
