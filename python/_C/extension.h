/* What the files of the extension share. It is a client of the public header only.
 *
 * Conventions
 * - Functions that return PyObject * give a new reference, or NULL with a Python exception set; those that return bool or int set one on false or -1.
 * - The library's errors stick: between entering from Python and leaving, operators are called freely, and py_take or py_raise look once.
 * - Every entry opens a scope and closes it: py_take closes it and wraps the result.
 * - Python exceptions that arise inside callbacks of the library (hooks, custom functions) travel through it with py_carry, and come out of py_raise
 *   as they were. */
#ifndef GRADUS_EXTENSION_H
#define GRADUS_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "gradus/library.h"

#if PY_VERSION_HEX < 0x030A0000
static inline PyObject *Py_NewRef(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

static inline int PyModule_AddObjectRef(PyObject *module, const char *name, PyObject *value)
{
    return PyObject_SetAttrString(module, name, value);
}
#endif

#define PY_LIKELY(x) __builtin_expect(!!(x), 1)
#define PY_UNLIKELY(x) __builtin_expect(!!(x), 0)

struct py_arguments;

/* ---- Errors (error.c) ----------------------------------------------------------------------------------------------- */
/* Turns the pending error of the library into a Python exception, and clears it. Always NULL. */
PyObject *py_raise(void);
/* True unless the stack of the thread is nearly used up; otherwise RecursionError. For calls of Python code that may come back here. */
bool py_has_stack(void);
/* In a callback of the library: takes the Python exception that is set along as a pending error, to be raised by py_raise. */
void py_carry(void);
/* The library's warnings are Python's UserWarning, on any thread. */
void py_warn(const char *text);

/* ---- Tensor objects (tensor.c) ---------------------------------------------------------------------------------------- */
typedef struct py_tensor {
    PyObject_HEAD grd_tensor *tensor; /* kept; never NULL */
    grd_binding binding;
    PyObject *dict, *weakrefs;
} py_tensor;

extern PyTypeObject *py_tensor_type;

static inline bool py_is_exact(PyObject *object)
{
    return Py_TYPE(object) == py_tensor_type;
}

/* py_tensor_type, and NULL while a thread has a mode that takes over calls: so looking for plain Tensors is looking for modes, too. */
extern PyTypeObject *py_plain_type;

/* An exact Tensor whose calls are nobody's but the library's. */
static inline bool py_is_plain(PyObject *object)
{
    return Py_TYPE(object) == py_plain_type;
}

/* Tensor or a subclass. */
static inline bool py_is_tensor(PyObject *object)
{
    return py_is_exact(object) || PyType_IsSubtype(Py_TYPE(object), py_tensor_type);
}

/* Of an object for which py_is_tensor holds. Borrowed. */
static inline grd_tensor *py_tensor_of(PyObject *object)
{
    return ((py_tensor *)object)->tensor;
}

/* The object of a tensor that somebody else owns, the one it has already where it has one; None for NULL. */
PyObject *py_wrap(grd_tensor *t);
/* Closes the scope and wraps the result of what was called in it; when an error is pending, raises it. */
PyObject *py_take(grd_scope scope, grd_tensor *t);
/* The same for a list: a tuple. */
PyObject *py_take_tuple(grd_scope scope, grd_tensors tensors);
/* Closes the scope; None, or NULL with the pending error raised. */
PyObject *py_leave(grd_scope scope);
/* A new object of a subclass over `t`, which must have no object yet (a fresh detached view, for example). */
PyObject *py_wrap_as(PyTypeObject *type, grd_tensor *t);

/* ---- dtype, device, layout, memory format, Size (types.c) ----------------------------------------------------------------- */
/* The immortal object of a dtype: torch.float32. */
PyObject *py_dtype(grd_dtype dtype);
/* True if the object is a dtype, or one of the types float, int, bool, complex. Sets no exception. */
bool py_as_dtype(PyObject *object, grd_dtype *ret_dtype);
PyObject *py_device(grd_device device);
/* A device object, a string or an index. False with no exception when it is none of these; -1 with one when there is no such device. */
int py_as_device(PyObject *object, grd_device *ret_device);
/* The default device that this thread has set; NONE: none (default_device.c). */
grd_device py_default_device(void);
/* Gives the default device to a call of a function that makes tensors, unless it has a device. */
void py_fill_device(struct py_arguments *arguments);
/* torch.strided, torch.contiguous_format, … */
PyObject *py_layout(grd_layout layout);
bool py_as_layout(PyObject *object, grd_layout *ret_layout);
/* The name of a memory format ("contiguous", "preserve", "channels_last", "channels_last_3d"), or NULL with no exception. */
const char *py_as_memory_format(PyObject *object);
/* torch.Size. */
PyObject *py_size(grd_dims dims);
extern PyTypeObject *py_generator_type;
/* None gives NULL, which is the default generator. False with no exception when it is no generator. */
bool py_as_generator(PyObject *object, grd_generator **ret_generator);

/* ---- Numbers (scalar.c) ------------------------------------------------------------------------------------------------- */
/* bool, int, float, complex, NumPy scalars, 0-d tensors that need no gradient. 0 with no exception when it is none of these; -1 with one when
 * it does not fit. */
int py_as_scalar(PyObject *object, grd_scalar *ret_scalar);
/* Anything with __index__ except bool. As py_as_scalar. */
int py_as_int(PyObject *object, int64_t *ret_value);
/* py_as_int of the element `at` of a list, where it may be a bool unless it is the first. */
int py_as_element(PyObject *object, Py_ssize_t at, int64_t *ret_value);
/* TypeError: an element that is not the first of a list of integers is none. */
void py_refuse_element(const char *function, const char *name, PyObject *object, Py_ssize_t at);
PyObject *py_from_scalar(grd_scalar scalar);

/* ---- The argument parser (parse.c) ----------------------------------------------------------------------------------------- */
/* Kinds of parameters beyond those of operators. */
enum {
    PY_KIND_OUT = 32,
    PY_KIND_OUTS, /* of several results */
    PY_KIND_LAYOUT,
    PY_KIND_PIN_MEMORY,
    PY_KIND_SPARSE_GRAD,   /* True is refused */
    PY_KIND_MEMORY_FORMAT, /* of hand-written functions */
    PY_KIND_INPLACE,       /* True: the in-place form runs */
    PY_KIND_REDUCTION      /* a word, given as a number; left out: 0, "none", as PyTorch does, although its signatures say 1 */
};

enum py_param_flags {
    PY_OPTIONAL = 1, /* may be left out */
    PY_NONE = 2,     /* may be None */
    PY_KEYWORD = 4,  /* by keyword only */
    PY_OPTION = PY_OPTIONAL | PY_NONE | PY_KEYWORD,
    PY_NUMBER = 8,   /* of a tensor: a number may stand for it */
    PY_VALUE = 32,   /* of a number: a 0-d tensor stands for its value, also one that requires a gradient, which then gets none */
    PY_NUMBERS = 64, /* of a tensor: a tuple or list of numbers may stand for it */
    PY_NONES = 16    /* of a list of tensors: entries may be None */
};

struct py_param {
    const char *name;
    uint8_t kind, flags; /* grd_kind or PY_KIND_…; enum py_param_flags */
    const char *text;    /* the default as it is shown; NULL: none */
};

/* One way to call a function: parameters in the order of the operator's arguments, then those without effect. */
struct py_signature {
    const char *op; /* the operator */
    const struct py_param *params;
    uint8_t nparams, nvalues; /* all; those that are arguments of the operator */
    uint8_t positional;       /* may be given by position */
    grd_form form;            /* of the operator */
    struct py_result *result; /* several results: how they are named; NULL: a plain tuple */
    const uint8_t *order;     /* which argument of the operator each parameter is; NULL: the parameters begin with the arguments */
    uint8_t device;           /* the parameter that has the default device when it is not given; 0: none */
    bool loose;               /* one list of sizes that may be given as several arguments: view(2, 3) */
    bool keeps_dtype;         /* the result does not take that of out=, which must have its own */
    bool alone;               /* the call changes the memory of its tensor, or its sizes: no other thread may work meanwhile */
};

/* A named tuple of results: torch.return_types.max. */
struct py_result {
    const char *name;
    const char *fields[GRD_MAX_RESULTS + 1];
    PyTypeObject *type; /* made when it is first needed */
};

enum { PY_MAX_PARAMS = 20, PY_INLINE_INTS = 16, PY_MAX_OVERLOADED = 8 };

/* What a call gave, converted. Lives on the stack of the entry; py_arguments_done must follow py_parse that succeeded. */
struct py_arguments {
    const char *function; /* its name, for errors */
    const struct py_signature *signature;
    grd_form form;                     /* the signature's, or the one in place that an argument asks for */
    grd_value values[PY_MAX_PARAMS];   /* kind NONE: left out */
    PyObject *objects[PY_MAX_PARAMS];  /* what was given for each; borrowed; NULL: left out */
    grd_tensor *outs[GRD_MAX_RESULTS]; /* where the results go */
    int nouts;                         /* 0: to new tensors */
    int noverloaded;                   /* arguments whose type has a __torch_function__ of its own: the call is theirs */
    PyObject *overloaded[PY_MAX_OVERLOADED];
    void *blocks; /* of long lists */
    int nints;
    int64_t ints[PY_INLINE_INTS];
};

struct py_function {
    const char *name;
    const struct py_signature *signatures; /* the others follow */
    int nsignatures, nothers;              /* others are tried when no signature fits */
    /* Short cuts for calls with exactly one or two tensors and nothing else; may be NULL. */
    grd_tensor *(*unary)(grd_tensor *x);
    grd_tensor *(*binary)(grd_tensor *x, grd_tensor *y);
    enum {
        PY_FUNCTION,
        PY_METHOD,
        PY_NN,
        PY_LINALG,
        PY_SPECIAL,
        PY_FFT,
        PY_WINDOWS
    } home;             /* of the module, of Tensor, of a module in it */
    const grd_op **ops; /* the operators of the signatures, found on first use */
};

/* The ways to call a function, as its row in a table has them. */
typedef const struct py_signature py_ways[];

/* A generated function: what Python calls, which calls py_call with the table, and its docstring. */
struct py_listed {
    struct py_function function;
    PyObject *(*call)(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
    const char *doc;
};

/* Makes Python's own table of functions of `n` generated ones, once. `ops`: room for the operators of all their signatures. */
void py_fill(PyMethodDef *ret_table, struct py_listed *functions, int n, const grd_op **ops);

/* Finds the signature that fits and converts the arguments; `self` is NULL for a function. False with TypeError: what is wrong, when there is one
 * signature, and which there are, when there are several. */
bool py_parse(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
              struct py_arguments *ret_arguments);
void py_arguments_done(struct py_arguments *arguments);

/* ---- Calls (call.c) ------------------------------------------------------------------------------------------------------------ */
/* The whole of a generated function: short cut or parse, call the operator, wrap the results. */
PyObject *py_call(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
/* Operators of one and of two tensors. They and py_call let the interpreter go on where there is much to do. */
grd_tensor *py_call_unary(grd_tensor *(*call)(grd_tensor *), grd_tensor *x);
grd_tensor *py_call_binary(grd_tensor *(*call)(grd_tensor *, grd_tensor *), grd_tensor *x, grd_tensor *y);
/* More elements than this are much to do. */
enum { PY_MUCH = 32768 };

/* ---- Work without the interpreter's lock (work.c) --------------------------------------------------------------------------------------- */
/* Around long work that touches no Python object. Its tensors must be kept, since other threads may let go of their objects meanwhile. */
PyThreadState *py_begin_work(void);
void py_end_work(PyThreadState *thread);
/* Around a call of Python code that the library asks for, wherever it comes from. */
struct py_callback {
    PyGILState_STATE state;
    int interrupted; /* pieces of work */
};
struct py_callback py_begin_callback(void);
void py_end_callback(struct py_callback callback);
/* Around a change of a tensor's memory or sizes: waits, without the interpreter's lock, until no thread works without it. */
void py_begin_change(void);
void py_end_change(void);
bool py_add_work(PyObject *module);

/* ---- Classes with a __torch_function__ (override.c) ------------------------------------------------------------------------------- */
/* Adds an argument to the overloaded ones, unless one of its class is among them. */
void py_note_overloaded(PyObject *object, struct py_arguments *arguments);
/* Asks the mode of this thread, then the overloaded arguments, subclasses first. */
PyObject *py_call_overloaded(const struct py_function *function, struct py_arguments *arguments, PyObject *self, PyObject *const *args,
                             Py_ssize_t nargs, PyObject *names);
/* The same for the function as users see it, and the objects that overload it. Its arguments are a tuple and a dict. */
PyObject *py_call_override(const char *name, PyObject *public, PyObject *const *overloaded, int noverloaded, PyObject *args,
                           PyObject *kwargs);
/* The same for a hand-written method of Tensor; the tensors among its arguments, which may be NULL where there are none, are asked after self. */
PyObject *py_override(PyObject *self, const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
/* True if the class of the object has a __torch_function__ that is not switched off: a subclass of Tensor has, Tensor itself and Parameter have not. */
bool py_has_override(PyObject *object);
/* True if this thread has a mode that takes over calls. */
bool py_is_mode_active(void);
/* True if calls with the object are not the library's alone: its class, or a mode if it is a tensor, takes them over. */
bool py_is_overloaded(PyObject *object);

/* ---- Tables and parts of the module: each adds its names. ------------------------------------------------------------------------ */
/* Generated; empty until they are filled. */
extern PyMethodDef py_functions[];         /* of the module */
extern PyMethodDef py_nn_functions[];      /* of the module's nn */
extern PyMethodDef py_linalg_functions[];  /* of the module's linalg */
extern PyMethodDef py_special_functions[]; /* of the module's special */
extern PyMethodDef py_fft_functions[];     /* of the module's fft */
extern PyMethodDef py_windows_functions[]; /* of the module's windows */
extern PyMethodDef py_methods[];           /* of Tensor */
void py_functions_fill(void);
void py_nn_functions_fill(void);
void py_linalg_functions_fill(void);
void py_special_functions_fill(void);
void py_fft_functions_fill(void);
void py_windows_functions_fill(void);
void py_methods_fill(void);

extern PyMethodDef py_tensor_override_methods[]; /* __torch_function__ (override.c) */
extern PyMethodDef py_tensor_methods[];          /* hand-written (tensor_methods.c) */
extern PyMethodDef py_numpy_methods[];           /* numpy and what NumPy calls (numpy.c) */
extern PyMethodDef py_dlpack_methods[];          /* dlpack.c */
extern PyMethodDef py_storage_methods[];         /* storage.c */
extern PyMethodDef py_subclass_methods[];        /* as_subclass and _make_subclass (subclass.c) */
extern PyMethodDef py_tensor_autograd_methods[]; /* backward, hooks (autograd.c) */
extern PyGetSetDef py_tensor_properties[];       /* properties.c */

bool py_add_errors(PyObject *module);
bool py_add_overrides(PyObject *module);
bool py_add_types(PyObject *module);
bool py_add_tensor(PyObject *module);
bool py_add_generator(PyObject *module);
bool py_add_autograd(PyObject *module);
bool py_add_transforms(PyObject *module);
bool py_add_interop(PyObject *module);
bool py_add_runtime(PyObject *module);
bool py_add_nn_module(PyObject *module);

/* Indexing (index.c): slots of Tensor. */
PyObject *py_get_item(PyObject *self, PyObject *index);
int py_set_item(PyObject *self, PyObject *index, PyObject *value);

/* Visits the objects of Python that a tensor with no other owner keeps alive: hooks and contexts of custom functions (autograd.c). For tp_traverse. */
int py_traverse_graph(grd_tensor *t, visitproc visit, void *arg);
/* grad_fn of a tensor; None for a leaf (node.c). */
PyObject *py_node_of(grd_tensor *t);

#endif
