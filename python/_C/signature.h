/* Defines the signature tables, which the argument parser (parse.c) reads, and the converted arguments of a call, which the parser writes. */
#ifndef GRADUS_PYTHON_SIGNATURE_H
#define GRADUS_PYTHON_SIGNATURE_H

#include "extension.h"

/* Kinds of parameters that exist only in Python, in addition to those of operators (grd_kind). */
enum {
    PY_KIND_OUT = 32,
    PY_KIND_OUTS, /* out= with a tuple of tensors, for a function with several results */
    PY_KIND_LAYOUT,
    PY_KIND_PIN_MEMORY,
    PY_KIND_SPARSE_GRAD,   /* accepted only if it is False */
    PY_KIND_MEMORY_FORMAT, /* memory_format= of a hand-written function; operators take a string instead */
    PY_KIND_INPLACE,       /* inplace=: True runs the in-place form of the operator */
    /* 0 ("none"), 1 ("mean") or 2 ("sum"). The default is 0. PyTorch's signatures show 1 as the default, but its functions use 0. */
    PY_KIND_REDUCTION,
    PY_KIND_OBJECT /* any object; the hand-written function converts it */
};

enum py_param_flags {
    PY_OPTIONAL = 1, /* the argument may be left out */
    PY_NONE = 2,     /* the argument may be None */
    PY_KEYWORD = 4,  /* the argument is keyword-only */
    PY_OPTION = PY_OPTIONAL | PY_NONE | PY_KEYWORD,
    PY_NUMBER = 8,    /* for a tensor parameter: a number is accepted as a 0-d tensor */
    PY_VALUE = 16,    /* for a number parameter: a 0-d tensor is accepted and read; gradients do not flow to it */
    PY_NUMBERS = 32,  /* for a tensor parameter: a tuple or list of real numbers is accepted as a 1-d tensor */
    PY_NO_TENSOR = 64 /* for a number parameter: no tensor is accepted, because a later signature takes a tensor here */
};

struct py_param {
    const char *name;
    uint8_t kind, flags; /* kind is a grd_kind or a PY_KIND_... value; flags are of enum py_param_flags */
    const char *text;    /* the default value as text for error messages; NULL if the parameter is required */
};

/* A named tuple class for the several results of a function, such as torch.return_types.max. */
struct py_result {
    const char *name;
    const char *fields[GRD_MAX_RESULTS + 1];
    PyTypeObject *type; /* created on first use; NULL before */
};

/* One way to call a Python function. The first `nvalues` entries of `params` are arguments of the operator. The others, such as out=, exist only in
 * Python. */
struct py_signature {
    const char *op; /* name of the operator; NULL for a hand-written function */
    const struct py_param *params;
    uint8_t nparams, nvalues; /* nparams counts all parameters; nvalues only those that are arguments of the operator */
    uint8_t positional;       /* number of parameters that may be given by position */
    grd_form form;            /* form of the operator that runs: functional, in place or out */
    struct py_result *result; /* named tuple class for several results; NULL if they form an unnamed tuple */
    const uint8_t *order;     /* order[i] is the index of the operator's argument for parameter i; NULL if both orders are the same */
    uint8_t device;           /* index of the parameter that defaults to the default device; 0 if there is none */
    bool loose;               /* true if the sizes may be given as separate arguments, as in view(2, 3) */
    bool keeps_dtype;         /* true if out= must already have the dtype of the result; otherwise out= chooses the dtype */
    /* true if the call changes the memory or sizes of its tensor; it waits until no other thread runs operators without the GIL */
    bool alone;
};

enum { PY_MAX_PARAMS = 20, PY_INLINE_INTS = 16, PY_MAX_OVERLOADED = 8 };

/* The converted arguments of a call, allocated on the caller's stack. After a successful py_parse the caller must call py_arguments_done. */
struct py_arguments {
    const char *function; /* name of the function, for error messages */
    const struct py_signature *signature;
    grd_form form;                     /* the signature's form, or GRD_INPLACE after inplace=True */
    grd_value values[PY_MAX_PARAMS];   /* values[i].kind is GRD_KIND_NONE if argument i was left out */
    PyObject *objects[PY_MAX_PARAMS];  /* the argument objects, borrowed; NULL if an argument was left out */
    grd_tensor *outs[GRD_MAX_RESULTS]; /* the tensors of out= */
    int nouts;                         /* number of tensors in outs; 0 if out= was not given */
    /* `overloaded` holds the arguments with a __torch_function__, one for each class. If there is at least one, __torch_function__ takes over the
     * call. */
    int noverloaded;
    PyObject *overloaded[PY_MAX_OVERLOADED];
    void *blocks; /* linked list of memory blocks for converted lists; py_arguments_done frees them */
    int nints;
    int64_t ints[PY_INLINE_INTS];
};

/* The module or class that a Python function belongs to. */
enum py_home { PY_FUNCTION, PY_METHOD, PY_NN, PY_LINALG, PY_SPECIAL, PY_FFT, PY_WINDOWS };

struct py_function {
    const char *name;
    const struct py_signature *signatures; /* an array of nsignatures + nothers signatures */
    /* The parser tries the last `nothers` signatures, most of them deprecated, only if none of the first `nsignatures` fits. */
    int nsignatures, nothers;
    /* Operator for a call whose only arguments are one Tensor (`unary`) or two Tensors (`binary`); such a call skips the parser. NULL if there is
     * none. */
    grd_tensor *(*unary)(grd_tensor *x);
    grd_tensor *(*binary)(grd_tensor *x, grd_tensor *y);
    enum py_home home;
    const grd_op **ops; /* ops[i] is the operator of signature i, looked up on first use; NULL before */
};

/* Array type for the signatures of one function. The generated tables of functions contain compound literals of this type. */
typedef const struct py_signature py_ways[];

/* The five functions below return the value of argument i, or `otherwise` if the argument was left out or is None. */
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
