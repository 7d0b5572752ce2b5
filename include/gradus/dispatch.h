/* Declares the dispatch keys, which choose the kernel of a call, and functions that look up and call operators by name, register kernels, and define
 * operators at run time. */
#ifndef GRADUS_DISPATCH_H
#define GRADUS_DISPATCH_H

#include "gradus/types.h"

GRD_BEGIN_DECLS

/* Dispatch keys, lowest priority first. Each tensor has a set of keys. A call of an operator runs the kernel for the highest key that one of its
 * arguments has and that this thread does not exclude (grd_key_guard_set). All devices of plug-ins share the key DEVICE; for this key, the type of
 * the device selects the kernel (gradus/device.h). Tensors whose elements are the conjugates or negatives of the values in memory have the key
 * CONJUGATE (grd_is_conj). If the environment variable GRADUS_DEBUG is "lifetimes" or "races", every call has the key LIFETIMES. */
#define GRD_KEYS(X) X(CPU) X(META) X(DEVICE) X(CONJUGATE) X(AUTOGRAD) X(FORWARD) X(AUTOCAST) X(BATCH) X(WRAPPER) X(LIFETIMES)

typedef enum grd_key {
#define GRD_KEY_ENUM(name) GRD_KEY_##name,
    GRD_KEYS(GRD_KEY_ENUM)
#undef GRD_KEY_ENUM
        GRD_KEY_COUNT
} grd_key;

typedef uint32_t grd_keyset; /* bit k is set if key k is in the set */

GRD_API const char *grd_key_name(grd_key key);
GRD_API grd_keyset grd_tensor_keys(const grd_tensor *t);

/* Sets of keys that change the choice of kernels on this thread. Each call of an operator gets the keys of its arguments, plus the keys in
 * `include`, minus the keys in `exclude`. grd_key_guard_set adds keys to both sets and returns the previous sets, which grd_key_guard_restore sets
 * again. The keys CPU, META, DEVICE and LIFETIMES are ignored in both sets, because they tell where the data is and how the process is debugged.
 * BATCH cannot be excluded. */
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
    GRD_KIND_SCALAR, /* a grd_scalar, which may be absent (kind GRD_SCALAR_NONE) */
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

/* The largest numbers of arguments and of results of an operator. */
enum { GRD_MAX_ARGS = 16, GRD_MAX_RESULTS = 4 };

/* Returns the operator called `name`, e.g. "add", or NULL if there is none. */
GRD_API const grd_op *grd_op_find(const char *name);
/* Returns the number of operators. */
GRD_API int64_t grd_op_count(void);
/* Returns operator number `index`, from 0 to grd_op_count() - 1, or NULL for any other number. */
GRD_API const grd_op *grd_op_at(int64_t index);
GRD_API const char *grd_op_name(const grd_op *op);
/* Returns the signature of the operator, e.g. "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor". */
GRD_API const char *grd_op_schema(const grd_op *op);
GRD_API int grd_op_arg_count(const grd_op *op);
GRD_API int grd_op_result_count(const grd_op *op); /* a list of tensors counts as one result */
GRD_API const char *grd_op_arg_name(const grd_op *op, int arg);
GRD_API grd_kind grd_op_arg_kind(const grd_op *op, int arg);
/* True if argument number `arg` may be left out, i.e. if it is optional or has a default. */
GRD_API bool grd_op_arg_optional(const grd_op *op, int arg);
/* Returns the forms that the operator has: bit 1 << GRD_INPLACE is set if it has an in-place form, and likewise for the other values of grd_form. */
GRD_API unsigned grd_op_forms(const grd_op *op);

/* The form of a call. The operator writes its result to a new tensor (GRD_FUNCTIONAL), to its first argument (GRD_INPLACE), or to `out` (GRD_OUT). */
typedef enum grd_form { GRD_FUNCTIONAL, GRD_INPLACE, GRD_OUT } grd_form;

/* Calls an operator in the given form. `args` holds one generic value for each of the `n` arguments of its schema, where kind GRD_KIND_NONE
 * stands for an absent argument or the default. `out` is given only for GRD_OUT. Writes grd_op_result_count results to ret_results; the innermost
 * open scope owns their tensors. Returns false on failure. */
GRD_API bool grd_call(const grd_op *op, grd_form form, const grd_value *args, int n, grd_tensor *out, grd_value *ret_results);

/* Writes results[i] to outs[i], for an operator that has no out form or returns several results. Resizes outs[i] to the sizes of results[i] and
 * copies the elements, converted to the dtype of outs[i]. `inputs` holds the tensors that the operator has read. If one result cannot be written,
 * none is. Raises TypeError if the numbers of tensors and results differ. Raises RuntimeError if a dtype cannot be cast, the devices differ,
 * elements of `outs` share memory with each other or with an input, or autograd would have to record the write. */
GRD_API bool grd_write_results(const grd_op *op, grd_tensors_view inputs, grd_tensors_view outs, grd_tensors_view results);

/* A kernel that can run any operator. `args` holds the arguments of the operator's schema. For an operator with an out form, `out` is the tensor
 * to write, or NULL to allocate the result. The kernel writes grd_op_result_count results to ret_results. `keys` are the keys of this call, to be
 * passed to grd_redispatch. `context` is the pointer that was registered with the kernel. */
typedef void grd_boxed_kernel(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results,
                              void *context);

/* Runs the kernel of the operator for the highest key in `keys`. A kernel hands the call on to the next kernel by calling this function with its
 * own key removed from `keys`. */
GRD_API void grd_redispatch(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results);

/* ---- Operators defined at run time --------------------------------------------------------------------------------------- */

/* The argument of a gradient function. It describes the call of an operator whose gradients are to be computed. */
typedef struct grd_gradient {
    const grd_op *op;
    const grd_value *args;    /* arguments of the call; kind GRD_KIND_NONE for each tensor that grd_definition.saves does not list */
    const grd_value *results; /* results of the call; kind GRD_KIND_NONE for each tensor that grd_definition.saves does not list */
    /* The gradients of the results, or of the tensors in a list result. An undefined gradient is a tensor of zeros; the entry of an integer
     * result is NULL. */
    grd_tensors_view grads;
    unsigned needs; /* bit i is set if argument i needs a gradient */
    void *context;
} grd_gradient;

/* A gradient function: writes the gradient of each argument that needs one to ret_grads. A gradient has the argument's sizes and is of kind
 * GRD_KIND_TENSOR, or GRD_KIND_TENSORS for a list. An argument left at GRD_KIND_NONE has no gradient. If the function calls only operators, the
 * gradients can themselves be differentiated. The function reports failure with grd_error_set. */
typedef void grd_gradient_function(const grd_gradient *gradient, grd_value *ret_grads);

typedef struct grd_gradient_formula {
    const char *arg, *formula;
} grd_gradient_formula;

/* The definition of an operator at run time. The library copies the strings. */
typedef struct grd_definition {
    /* The name and signature of the operator: "mylib::cube(Tensor self, *, Scalar scale=1) -> Tensor". The name has a namespace, and the signature
     * is written as in the files of the folder schema. After the arrow stand the results: "Tensor", a list "Tensor[]", or several tensors such as
     * "(Tensor a, Tensor b)". Unnamed results are called result, or result0, result1, ... */
    const char *schema;
    /* The gradients of arguments as formulas, e.g. {"self", "grad * 3 * scale * self * self"}. A formula may use the names of arguments and
     * results and the name grad (grad_<name> if there are several results, grads if the result is a list). A tensor in a formula is saved for
     * backward, unless it occurs only inside shape(x), strides(x), offset(x), dtype(x), device(x) or sizes_along(xs, dim). sizes_along gives -1
     * for a one-dimensional tensor without elements. Operators such as + - * / **, comparisons, "x if condition else y", calls, numbers, strings,
     * lists and None mean what they mean in Python. A formula may call the operator being defined and operators defined before it. Gradients given
     * by formulas can be differentiated again. */
    grd_gradient_formula gradients[GRD_MAX_ARGS];
    /* A function that computes the gradients of all arguments, in place of formulas. `saves` lists the tensors among arguments and results that
     * this function reads, e.g. "self result"; NULL stands for all of them. */
    grd_gradient_function *gradient;
    const char *saves;
    /* A kernel that calls other operators and so works on every device. Without a gradient, the operator is differentiated through the operators
     * that `kernel` calls. If `kernel` is NULL, the program must register a kernel for each key that it uses (grd_register_kernel). If the
     * operator has a gradient, its kernels must return new tensors. */
    grd_boxed_kernel *kernel;
    void *context; /* passed to `gradient` and `kernel` */
} grd_definition;

/* Defines an operator that has only the functional form and is called with grd_call. The operator cannot be removed. If `definition` has neither a
 * gradient nor a `kernel`, calls with tensors that require gradients succeed, but the backward pass raises RuntimeError. Returns NULL on failure:
 * ValueError, with the position, if a string cannot be parsed; RuntimeError if the name is taken. */
GRD_API const grd_op *grd_define_operator(const grd_definition *definition);

/* ---- Kernels ------------------------------------------------------------------------------------------------------------ */

/* The next four functions register and unregister the kernel of one operator for a key, and the fallback of a key. A fallback runs every operator
 * that has no kernel of its own for the key. Registering raises RuntimeError if a kernel or fallback is already registered. It also raises
 * RuntimeError for the key DEVICE, because devices register their own kernels (gradus/device.h). Threads may register kernels while others call
 * operators. A kernel must not be running when it is unregistered. */
GRD_API void grd_register_kernel(const char *op_name, grd_key key, grd_boxed_kernel *kernel, void *context);
GRD_API void grd_register_fallback(grd_key key, grd_boxed_kernel *kernel, void *context);
GRD_API void grd_unregister_kernel(const char *op_name, grd_key key);
GRD_API void grd_unregister_fallback(grd_key key);

/* ---- Providers ---------------------------------------------------------------------------------------------------------- */

/* A provider is an implementation of an operator on the CPU that a program registers (grd_register_provider). It runs a call only if its condition,
 * `takes`, returns true. Before `run` is called, the library has checked the arguments and allocated results[i] with the sizes, dtype and strides of
 * the result, so that `run` only has to compute the elements. The results are copied to out=, or to the first argument of an in-place call, only when
 * `run` has succeeded. So a failed run changes no tensor. `run` reports failure with grd_error_set and returns false. */
typedef bool grd_provider_condition(const grd_op *op, const grd_value *args, void *context);
typedef bool grd_provider_run(const grd_op *op, const grd_value *args, grd_tensor *const *results, void *context);

/* Does the work of a boxed kernel of `op`, except that `run` computes the elements. Checks the arguments, allocates the results, calls `run`, and
 * writes the results to `out` or ret_results. Raises the errors of the operator, and RuntimeError for an operator that cannot have a provider
 * (grd_register_provider). */
GRD_API void grd_run_planned(const grd_op *op, grd_tensor *out, const grd_value *args, grd_value *ret_results, grd_provider_run *run,
                             void *context);

/* Registers a provider, an implementation of an operator on the CPU. Providers are tried in the order of registration, before the library's own
 * implementations. If `takes` is NULL, the provider runs every call. Raises RuntimeError if the operator does not exist, calls only other operators
 * (a composite), is a view, or returns a list. Also raises RuntimeError if the operator already has a provider called `name` or a registered kernel.
 * A provider of an operator whose result sizes depend on the elements of its arguments can be registered, but calls of this provider raise
 * NotImplementedError. */
GRD_API void grd_register_provider(const char *op_name, const char *name, grd_provider_condition *takes, grd_provider_run *run,
                                   void *context);

/* Returns the names of an operator's providers (implementations on the CPU) in the order in which they are tried, e.g. "mine blas native". Returns
 * "" for a composite, an operator that calls only other operators. The text stays valid until this thread calls the function again. The
 * environment variable GRADUS_PROVIDER selects and forbids providers: "mm:native,-blas". Raises RuntimeError if the operator does not exist. */
GRD_API const char *grd_providers(const char *op_name);

GRD_END_DECLS
#endif
