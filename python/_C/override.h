/* Declares the functions by which the __torch_function__ of an argument's class, or of a mode, takes over a call. */
#ifndef GRADUS_PYTHON_OVERRIDE_H
#define GRADUS_PYTHON_OVERRIDE_H

#include "signature.h"
#include "tensor_object.h"

/* Equal to py_tensor_type, or NULL while any thread has a __torch_function__ mode. So one comparison of an object's type with this pointer rules out
 * both subclasses and modes. */
extern PyTypeObject *py_exact_type_no_mode;

/* True if the type of `object` is exactly Tensor and no thread has a __torch_function__ mode. Then nothing can take over a call with `object`. */
static inline bool py_is_exact_no_mode(PyObject *object)
{
    return Py_TYPE(object) == py_exact_type_no_mode;
}

/* True if the class of `object` has a __torch_function__ that is not disabled. Tensor itself and Parameter have none; other subclasses of Tensor
 * inherit one. */
bool py_has_override(PyObject *object);
/* True if this thread has a __torch_function__ mode, which takes over calls. */
bool py_is_mode_active(void);
/* True if calls with `object` are taken over, either by the class of `object` or, if `object` is a Tensor, by a __torch_function__ mode of this
 * thread. */
bool py_is_overloaded(PyObject *object);

/* Appends `object` to arguments->overloaded unless an object of the same class is already in the array. */
void py_note_overloaded(PyObject *object, struct py_arguments *arguments);
/* Calls __torch_function__ of this thread's innermost mode, then of each overloaded argument (subclasses first), and returns the first result that is
 * not NotImplemented. Raises TypeError if there is none. */
PyObject *py_call_overloaded(const struct py_function *function, struct py_arguments *arguments, PyObject *self, PyObject *const *args,
                             Py_ssize_t nargs, PyObject *names);
/* Calls the __torch_function__ of this thread's innermost mode, then of each object in `overloaded`, and returns the first result that is not
 * NotImplemented. Each __torch_function__ gets `public`, a Python function object, as its argument `func`. If all return NotImplemented,
 * raises TypeError with `name` in the message. */
PyObject *py_call_override(const char *name, PyObject *public, PyObject *const *overloaded, int noverloaded, PyObject *args,
                           PyObject *kwargs);
/* Passes a call of the hand-written Tensor method `name` to the __torch_function__ of this thread's innermost mode, then of `self` and the
 * positional arguments. Returns the first result that is not NotImplemented, or raises TypeError. `args` may be NULL if nargs is 0. */
PyObject *py_override(PyObject *self, const char *name, PyObject *const *args, Py_ssize_t nargs, PyObject *names);

#endif
