/* Declares the Python objects of graph nodes, and the functions that visit or release the Python objects that a graph owns.
 *
 * The library runs hooks and custom functions on any thread and without the GIL, so each callback takes the GIL (gil.h). The library passes each hook
 * or custom function a context pointer, which owns a reference to a Python object. The release function of a context tells whether
 * it belongs to a hook (py_release_object) or to a custom function (py_release_context). */
#ifndef GRADUS_PYTHON_NODE_H
#define GRADUS_PYTHON_NODE_H

#include "extension.h"

typedef struct py_node {
    PyObject_HEAD grd_node *node; /* owned; in the ctx of a custom function: borrowed, or NULL once the node is freed */
    PyObject *metadata, *weakrefs;
    struct py_node *next; /* next object in the same chain of the hash table of node.c */
} py_node;

extern PyTypeObject *py_node_type;

/* Returns t.grad_fn: the Python object of the tensor's node, or None for a leaf. */
PyObject *py_node_of(grd_tensor *t);
/* Called by the library when the node of a custom function is freed. Drops the node's reference to `context`, the ctx object. */
void py_release_context(void *context);
/* For tp_traverse. py_traverse_graph visits the Python objects that only the graph of `t` keeps alive, py_traverse_node those that only `node` keeps
 * alive. */
int py_traverse_graph(grd_tensor *t, visitproc visit, void *arg);
int py_traverse_node(grd_node *node, visitproc visit, void *arg);

#endif
