/* Declares the Python objects of the class Tensor, and their conversion from and to the library's tensors. */
#ifndef GRADUS_PYTHON_TENSOR_OBJECT_H
#define GRADUS_PYTHON_TENSOR_OBJECT_H

#include "extension.h"

typedef struct py_tensor {
    PyObject_HEAD grd_tensor *tensor; /* owned; never NULL */
    grd_binding binding;
    PyObject *dict, *weakrefs;
} py_tensor;

/* The class Tensor. */
extern PyTypeObject *py_tensor_type;

/* True if the class of `object` is Tensor itself, not a subclass. */
static inline bool py_is_exact(PyObject *object)
{
    return Py_TYPE(object) == py_tensor_type;
}

/* True if `object` is an instance of Tensor or of a subclass. */
static inline bool py_is_tensor(PyObject *object)
{
    return py_is_exact(object) || PyType_IsSubtype(Py_TYPE(object), py_tensor_type);
}

/* Returns the library's tensor of `object`, borrowed. py_is_tensor(object) must be true. */
static inline grd_tensor *py_tensor_of(PyObject *object)
{
    return ((py_tensor *)object)->tensor;
}

/* Returns the library's tensor of `tensor`. The innermost open scope owns the returned reference and drops it when it closes. */
static inline grd_tensor *py_lend(PyObject *tensor)
{
    return grd_scope_give(grd_keep(py_tensor_of(tensor)));
}

/* Returns a new reference to the Python object of `t`: the existing object, or else a new one. The caller keeps its reference to `t`. Returns None if
 * `t` is NULL. */
PyObject *py_wrap(grd_tensor *t);
/* Returns a tuple of the Python objects of n tensors, with None in place of NULL. */
PyObject *py_tuple_of(grd_tensor *const *tensors, Py_ssize_t n);
/* Closes `scope`, which frees the temporary tensors of the call, and returns the Python object of `t`, which was computed in that scope. If an error
 * is pending, raises it instead. */
PyObject *py_take(grd_scope scope, grd_tensor *t);
/* Closes `scope`, which frees the temporary tensors of the call, and returns a tuple of the Python objects of `tensors`. If an error is pending,
 * raises it instead. */
PyObject *py_take_tuple(grd_scope scope, grd_tensors tensors);
/* Closes `scope`, which frees the temporary tensors of the call, and returns None. If an error is pending, raises it instead. */
PyObject *py_leave(grd_scope scope);
/* Returns a new Python object for `t`, of class `type`, which is a subclass of Tensor. `t` must not have a Python object yet. */
PyObject *py_wrap_as(PyTypeObject *type, grd_tensor *t);
/* Deallocates an object of Tensor or of a subclass (tp_dealloc). */
void py_tensor_dealloc(PyObject *object);

#endif
