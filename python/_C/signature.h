/* Tables of signatures, and the converted arguments of a call: what the parser (parse.c) reads and writes. */
#ifndef GRADUS_PYTHON_SIGNATURE_H
#define GRADUS_PYTHON_SIGNATURE_H

#include "extension.h"

/* Kinds of parameters besides those of operators (grd_kind). */
enum {
    PY_KIND_OUT = 32,
    PY_KIND_OUTS, /* out= of several results */
    PY_KIND_LAYOUT,
    PY_KIND_PIN_MEMORY,
    PY_KIND_SPARSE_GRAD,   /* True is refused */
    PY_KIND_MEMORY_FORMAT, /* in hand-written functions; operators take the format as a string */
    PY_KIND_INPLACE,       /* True runs the in-place form */
    PY_KIND_REDUCTION,     /* a number that stands for a word; left out it is 0, "none", as PyTorch does, although its signatures show 1 */
    PY_KIND_OBJECT         /* any object, which the hand-written function reads itself */
};

enum py_param_flags {
    PY_OPTIONAL = 1, /* may be left out */
    PY_NONE = 2,     /* may be None */
    PY_KEYWORD = 4,  /* by keyword only */
    PY_OPTION = PY_OPTIONAL | PY_NONE | PY_KEYWORD,
    PY_NUMBER = 8,  /* of a tensor: a number may stand for it */
    PY_VALUE = 16,  /* of a number: a 0-d tensor may stand for its value; it gets no gradient even if it requires one */
    PY_NUMBERS = 32 /* of a tensor: a tuple or list of numbers may stand for it */
};

struct py_param {
    const char *name;
    uint8_t kind, flags; /* grd_kind or PY_KIND_…; enum py_param_flags */
    const char *text;    /* the default as errors show it; NULL: none */
};

/* A named tuple of results: torch.return_types.max. */
struct py_result {
    const char *name;
    const char *fields[GRD_MAX_RESULTS + 1];
    PyTypeObject *type; /* made on first use */
};

/* One way to call a function: the parameters in the order of the operator's arguments, then those that are no arguments of the operator. A signature
 * of a hand-written function has no operator. */
struct py_signature {
    const char *op; /* the operator's name */
    const struct py_param *params;
    uint8_t nparams, nvalues; /* the number of all parameters, and of those that are arguments of the operator */
    uint8_t positional;       /* how many may be given by position */
    grd_form form;            /* of the operator */
    struct py_result *result; /* the names of several results; NULL: an unnamed tuple */
    const uint8_t *order;     /* the operator's argument that each parameter is; NULL: parameter i is argument i */
    uint8_t device;           /* the parameter that defaults to the default device; 0: none */
    bool loose;               /* one list of sizes that may be given as several arguments: view(2, 3) */
    bool keeps_dtype;         /* out= does not choose the dtype of the result but must have it */
    bool alone; /* the call changes the memory or the sizes of its tensor: no other thread may work without the GIL meanwhile */
};

enum { PY_MAX_PARAMS = 20, PY_INLINE_INTS = 16, PY_MAX_OVERLOADED = 8 };

/* The converted arguments of a call, on the stack of the entry. py_arguments_done must follow a py_parse that succeeded. */
struct py_arguments {
    const char *function; /* its name, for errors */
    const struct py_signature *signature;
    grd_form form;                     /* the signature's, or GRD_INPLACE if an argument asks for it */
    grd_value values[PY_MAX_PARAMS];   /* of kind NONE where the argument was left out */
    PyObject *objects[PY_MAX_PARAMS];  /* the given objects, borrowed; NULL where the argument was left out */
    grd_tensor *outs[GRD_MAX_RESULTS]; /* the tensors of out= */
    int nouts;                         /* 0: there is no out= */
    int noverloaded;                   /* how many arguments have a type with a __torch_function__; then that takes over the call */
    PyObject *overloaded[PY_MAX_OVERLOADED];
    void *blocks; /* memory of long lists */
    int nints;
    int64_t ints[PY_INLINE_INTS];
};

/* The module, or the class, that a function belongs to. */
enum py_home { PY_FUNCTION, PY_METHOD, PY_NN, PY_LINALG, PY_SPECIAL, PY_FFT, PY_WINDOWS };

struct py_function {
    const char *name;
    const struct py_signature *signatures; /* nsignatures, then nothers */
    int nsignatures, nothers;              /* the others are tried when no signature fits */
    /* What a call with exactly one or two Tensors and nothing else runs; NULL: nothing special. */
    grd_tensor *(*unary)(grd_tensor *x);
    grd_tensor *(*binary)(grd_tensor *x, grd_tensor *y);
    enum py_home home;
    const grd_op **ops; /* the operators of the signatures, found on first use */
};

/* The type of the array of signatures in a row of a generated table. */
typedef const struct py_signature py_ways[];

/* Return the value of argument i, or `otherwise` if it was left out or None. */
static inline bool py_bool_or(const struct py_arguments *arguments, int i, bool otherwise)
{
    return arguments->values[i].kind == GRD_KIND_BOOL ? arguments->values[i].v.boolean : otherwise;
}

static inline int64_t py_int_or(const struct py_arguments *arguments, int i, int64_t otherwise)
{
    return arguments->values[i].kind == GRD_KIND_INT ? arguments->values[i].v.integer : otherwise;
}

static inline double py_float_or(const struct py_arguments *arguments, int i, double otherwise)
{
    return arguments->values[i].kind == GRD_KIND_FLOAT ? arguments->values[i].v.number : otherwise;
}

static inline grd_dtype py_dtype_or(const struct py_arguments *arguments, int i, grd_dtype otherwise)
{
    return arguments->values[i].kind == GRD_KIND_DTYPE ? arguments->values[i].v.dtype : otherwise;
}

static inline grd_device py_device_or(const struct py_arguments *arguments, int i, grd_device otherwise)
{
    return arguments->values[i].kind == GRD_KIND_DEVICE ? arguments->values[i].v.device : otherwise;
}

#endif
