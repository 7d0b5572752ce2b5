/* Nodes of the graph as objects, and the contexts of Python that the library owns for a graph.
 *
 * The library calls back on any thread and without the GIL, which each callback takes (gil.h). A context that the library owns for a graph is a
 * reference of a Python object. It is a hook if its release function is py_release_object, and the context of a custom function if it is
 * py_release_context. */
#ifndef GRADUS_PYTHON_NODE_H
#define GRADUS_PYTHON_NODE_H

#include "extension.h"

typedef struct py_node {
    PyObject_HEAD grd_node *node; /* owned; that of a custom function's context is borrowed, and NULL once it is freed */
    PyObject *metadata, *weakrefs;
    struct py_node *next; /* in the chain of the hash table that leads from nodes to objects */
} py_node;

extern PyTypeObject *py_node_type;

/* Returns grad_fn of a tensor: the object of its node, or None for a leaf. */
PyObject *py_node_of(grd_tensor *t);
/* For the library: drops the context of a custom function, whose node is being freed. */
void py_release_context(void *context);
/* For tp_traverse: visit the Python objects that only the graph of a tensor, or a node, keeps alive. */
int py_traverse_graph(grd_tensor *t, visitproc visit, void *arg);
int py_traverse_node(grd_node *node, visitproc visit, void *arg);

#endif
