/* Calls that a __torch_function__ takes over: that of a class, or that of a mode. */
#ifndef GRADUS_PYTHON_OVERRIDE_H
#define GRADUS_PYTHON_OVERRIDE_H

#include "signature.h"
#include "tensor_object.h"

/* py_tensor_type, or NULL while any thread has a mode. Comparing a type with it tests for subclasses and for modes at once. */
extern PyTypeObject *py_exact_type_no_mode;

/* True if the object is a Tensor of no subclass and no thread has a mode: then the library alone runs its calls. */
static inline bool py_is_exact_no_mode(PyObject *object)
{
    return Py_TYPE(object) == py_exact_type_no_mode;
}

/* True if the class of the object has a __torch_function__ that is not switched off. A subclass of Tensor has one; Tensor itself and Parameter have
 * none. */
bool py_has_override(PyObject *object);
/* True if this thread has a mode that takes over calls. */
bool py_is_mode_active(void);
/* True if something takes over the calls of the object: its class, or a mode if the object is a Tensor. */
bool py_is_overloaded(PyObject *object);

/* Adds an object to arguments->overloaded unless one of the same class is there. */
void py_note_overloaded(PyObject *object, struct py_arguments *arguments);
/* Asks the mode of this thread, then the overloaded arguments, subclasses first. */
PyObject *py_call_overloaded(const struct py_function *function, struct py_arguments *arguments, PyObject *self, PyObject *const *args,
                             Py_ssize_t nargs, PyObject *names);
/* The same for a function object `public` as users see it, and the objects that overload it. */
PyObject *py_call_override(const char *name, PyObject *public, PyObject *const *overloaded, int noverloaded, PyObject *args,
                           PyObject *kwargs);
/* The same for a hand-written method of Tensor: `self` and its positional arguments are asked. `args` may be NULL if there are none. */
PyObject *py_override(PyObject *self, const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *names);

#endif
