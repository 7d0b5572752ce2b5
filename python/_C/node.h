/* Declares the Python objects of graph nodes, and the functions that visit or release the Python objects that a graph owns.
 *
 * The library runs hooks and custom functions on any thread and without the GIL, so each callback takes the GIL (gil.h). The library passes each hook
 * or custom function a context pointer, which owns a reference to a Python object. The release function tells the kinds of contexts apart:
 * py_release_object for a hook, py_release_context for a custom function. */
#ifndef GRADUS_PYTHON_NODE_H
#define GRADUS_PYTHON_NODE_H

#include "extension.h"

typedef struct py_node {
    PyObject_HEAD grd_node *node; /* owned; borrowed if the object is the ctx of a custom function, and NULL once that node is freed */
    PyObject *metadata, *weakrefs;
    struct py_node *next; /* next object in the hash table's chain (node.c) */
} py_node;

extern PyTypeObject *py_node_type;

/* Returns t.grad_fn: the Python object of the tensor's node, or None for a leaf. */
PyObject *py_node_of(grd_tensor *t);
/* Release function of a custom function's context. The library calls it when the node is freed. Drops the node's reference to the ctx object. */
void py_release_context(void *context);
/* The two functions below serve tp_traverse. They visit the Python objects that only the graph of `t`, or only `node`, keeps alive. */
int py_traverse_graph(grd_tensor *t, visitproc visit, void *arg);
int py_traverse_node(grd_node *node, visitproc visit, void *arg);

#endif
