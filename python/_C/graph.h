/* What the files of automatic differentiation share: calls, nodes and their Python objects.
 *
 * The library calls back on any thread, and without the lock of the interpreter: each callback takes it. Contexts that the library keeps for us are
 * references of Python objects; py_release_hook and py_release_context tell which, and give them up. */
#ifndef GRADUS_GRAPH_H
#define GRADUS_GRAPH_H

#include "extension.h"

#include <string.h>

/* ---- Calls (autograd.c) ------------------------------------------------------------------------------------------------- */
/* Sorts the arguments of a call of `name` by parameter; NULL where none was given. The first `required` must be. False with TypeError. */
bool py_bind(const char *name, const char *const *params, int nparams, int required, PyObject *const *args, Py_ssize_t nargs,
             PyObject *names, PyObject **ret_values);
/* The name of an object's class, as messages give it. */
static inline const char *py_class_name(PyObject *object)
{
    const char *name = Py_TYPE(object)->tp_name, *dot = strrchr(name, '.');
    return dot != NULL ? dot + 1 : name;
}
/* The tensor of an object, for the library to use until the innermost scope closes. */
static inline grd_tensor *py_lend(PyObject *tensor)
{
    return grd_scope_give(grd_keep(py_tensor_of(tensor)));
}
/* Tensors, None where NULL. */
PyObject *py_tuple_of(grd_tensor *const *tensors, Py_ssize_t n);
/* Visits the contexts that a node of ours keeps alone. For tp_traverse. */
int py_traverse_node(grd_node *node, visitproc visit, void *arg);

/* ---- Nodes (node.c) --------------------------------------------------------------------------------------------------------- */
typedef struct py_node {
    PyObject_HEAD grd_node *node; /* kept; that of a context is borrowed, and NULL when it has gone */
    PyObject *metadata, *weakrefs;
    struct py_node *next; /* with the same place in the table of nodes that have an object */
} py_node;

extern PyTypeObject *py_node_type;

/* The object of a node, the one it has already where it has one; None for NULL. */
PyObject *py_node_object(grd_node *node);
bool py_add_node(PyObject *module);

/* ---- Hooks (hooks.c) ----------------------------------------------------------------------------------------------------------- */
void py_release_hook(void *context);
PyObject *py_tensor_register_hook(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
PyObject *py_tensor_register_accumulated(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
PyObject *py_tensor_retain_grad(PyObject *self, PyObject *nothing);
PyObject *py_node_register_hook(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
PyObject *py_node_register_prehook(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);
bool py_add_hooks(PyObject *module);

/* ---- Custom functions (function.c) ------------------------------------------------------------------------------------------------ */
void py_release_context(void *context);
bool py_add_function(PyObject *module);

/* ---- Modes (modes.c) ---------------------------------------------------------------------------------------------------------------- */
bool py_add_modes(PyObject *module);

/* ---- Autocast (autocast.c) ----------------------------------------------------------------------------------------------------------- */
bool py_add_autocast(PyObject *module);

#endif
