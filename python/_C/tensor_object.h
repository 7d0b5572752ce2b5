/* Objects of the class Tensor and the tensors that they stand for. */
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

/* True if the object is a Tensor and of no subclass. */
static inline bool py_is_exact(PyObject *object)
{
    return Py_TYPE(object) == py_tensor_type;
}

/* True if the object is a Tensor or of a subclass. */
static inline bool py_is_tensor(PyObject *object)
{
    return py_is_exact(object) || PyType_IsSubtype(Py_TYPE(object), py_tensor_type);
}

/* Returns the tensor of an object for which py_is_tensor holds, borrowed. */
static inline grd_tensor *py_tensor_of(PyObject *object)
{
    return ((py_tensor *)object)->tensor;
}

/* Returns the tensor of an object as a pooled reference, which stays valid until the innermost scope closes. */
static inline grd_tensor *py_lend(PyObject *tensor)
{
    return grd_scope_give(grd_keep(py_tensor_of(tensor)));
}

/* Returns the object of a tensor that somebody else owns: its existing one, or else a new one. None for NULL. */
PyObject *py_wrap(grd_tensor *t);
/* Returns a tuple of the objects of n tensors, with None for NULL. */
PyObject *py_tuple_of(grd_tensor *const *tensors, Py_ssize_t n);
/* Closes the scope and returns the object of `t`, which was computed in it. Raises the error if one is pending. */
PyObject *py_take(grd_scope scope, grd_tensor *t);
/* Returns the objects of a list of tensors as a tuple. */
PyObject *py_take_tuple(grd_scope scope, grd_tensors tensors);
/* Closes the scope and returns None; raises the error if one is pending. */
PyObject *py_leave(grd_scope scope);
/* Returns a new object of a subclass for `t`, which must not have an object yet (a new view, for example). */
PyObject *py_wrap_as(PyTypeObject *type, grd_tensor *t);
/* tp_dealloc of Tensor. */
void py_tensor_dealloc(PyObject *object);

#endif
