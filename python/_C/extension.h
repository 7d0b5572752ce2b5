/* Header that every file of the extension includes: Python's C API and the public header of the library. The extension uses only the public C
 * API.
 *
 * Conventions
 * - A function that returns PyObject * returns a new reference, or NULL with a Python exception set. A function that returns bool or int sets an
 *   exception when it returns false or -1. A function that deviates from this rule says so in its comment.
 * - The library's errors are sticky: while an error is pending, every operator returns at once. So a function called from Python runs operators
 *   without checking each of them; the final py_take, py_leave or py_raise checks once.
 * - A function called from Python that runs operators opens a scope, which owns the temporary tensors of the call. py_take, py_leave and
 *   py_abandon close the scope and free these tensors.
 * - An internal function that returns a tensor returns one that the innermost open scope owns, or NULL with a Python exception set or an error of
 *   the library pending. */
#ifndef GRADUS_PYTHON_EXTENSION_H
#define GRADUS_PYTHON_EXTENSION_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string.h>

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

/* Type of a C function that implements a module function or a Tensor method with keywords, in the calling convention METH_FASTCALL |
 * METH_KEYWORDS. */
typedef PyObject *py_entry(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);

/* Returns the name of the class of `object` without the module, for error messages. */
static inline const char *py_class_name(PyObject *object)
{
    const char *name = Py_TYPE(object)->tp_name, *dot = strrchr(name, '.');
    return dot != NULL ? dot + 1 : name;
}

/* True if an optional argument was given and is not None. `object` is NULL if the argument was left out. */
static inline bool py_is_given(PyObject *object)
{
    return object != NULL && object != Py_None;
}

/* Expands to the PyMethodDef of `entry`, a C function of type py_entry, under the Python name `name`. */
#define PY_ENTRY(name, entry, doc)                                                                                                         \
    {                                                                                                                                      \
        (name), (PyCFunction)(void (*)(void))(entry), METH_FASTCALL | METH_KEYWORDS, (doc)                                                 \
    }

#endif
