/* What every file of the extension includes: Python's C API and the public header of the library, of which the extension is a client.
 *
 * Conventions
 * - A function that returns PyObject * returns a new reference, or NULL with a Python exception set; one that returns bool or int sets an exception
 *   when it returns false or -1. Exceptions to this rule are stated at the function.
 * - The library's errors are sticky: an entry from Python calls operators without checking each, and py_take, py_leave or py_raise checks once.
 * - An entry that calls operators opens a scope. py_take, py_leave and py_abandon close it.
 * - An inner function that returns a tensor returns a pooled one, or NULL with a Python exception set or an error of the library pending. */
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

/* A function of the module or a method of Tensor that takes keywords, in the calling convention METH_FASTCALL | METH_KEYWORDS. */
typedef PyObject *py_entry(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);

/* Returns the name of an object's class without its module, for messages. */
static inline const char *py_class_name(PyObject *object)
{
    const char *name = Py_TYPE(object)->tp_name, *dot = strrchr(name, '.');
    return dot != NULL ? dot + 1 : name;
}

/* True if an argument was given and is not None; NULL stands for one that was left out. */
static inline bool py_is_given(PyObject *object)
{
    return object != NULL && object != Py_None;
}

/* The row of a py_entry in a table of methods. */
#define PY_ENTRY(name, entry, doc)                                                                                                         \
    {                                                                                                                                      \
        (name), (PyCFunction)(void (*)(void))(entry), METH_FASTCALL | METH_KEYWORDS, (doc)                                                 \
    }

#endif
