/* Creates the Python objects of graph nodes (grad_fn, next_functions), and visits the Python objects in a graph for the garbage collector.
 *
 * A node has at most one Python object; a hash table maps nodes to these objects. Each kind of node has a class named after it, e.g.
 * AddBackward0. The object of a custom function's node is its ctx, which the node owns (custom_context.c). */
#include "node.h"
#include "errors.h"
#include "gil.h"
#include "hooks.h"
#include "tables.h"
#include "tensor_object.h"

#include <structmember.h>

PyTypeObject *py_node_type;

/* ---- The table --------------------------------------------------------------------------------------------------- */
enum { FIRST_PLACES = 64 };

/* Hash table with chaining, from nodes to their Python objects. The GIL protects it. */
static struct {
    py_node **places;
    size_t count, capacity; /* count: number of objects; capacity: number of chains, a power of two */
} table;

static inline py_node **place_of(const grd_node *node)
{
    const uint64_t hash = (uint64_t)(uintptr_t)node * 0x9e3779b97f4a7c15u;
    return &table.places[hash >> 32 & (table.capacity - 1)];
}

static void insert(py_node *object)
{
    py_node **place = place_of(object->node);
    object->next = *place;
    *place = object;
}

static bool grow_table(void)
{
    py_node **old = table.places;
    const size_t n = table.capacity, capacity = n > 0 ? 2 * n : FIRST_PLACES;
    py_node **places = PyMem_Calloc(capacity, sizeof *places);
    if (places == NULL) {
        PyErr_NoMemory();
        return false;
    }
    table.places = places;
    table.capacity = capacity;
    for (size_t i = 0; i < n; i++)
        for (py_node *object = old[i], *next; object != NULL; object = next) {
            next = object->next;
            insert(object);
        }
    PyMem_Free(old);
    return true;
}

static py_node *look_up(const grd_node *node)
{
    py_node *object = table.capacity > 0 ? *place_of(node) : NULL;
    while (object != NULL && object->node != node)
        object = object->next;
    return object;
}

/* Removes an object from the hash table. */
static void take_out(const py_node *object)
{
    py_node **link = place_of(object->node);
    while (*link != object)
        link = &(*link)->next;
    *link = object->next;
    table.count--;
}

/* ---- Python objects that a graph owns ---------------------------------------------------------------------------- */

void py_release_context(void *context)
{
    if (!Py_IsInitialized())
        return;
    const PyGILState_STATE state = PyGILState_Ensure();
    ((py_node *)context)->node = NULL;
    Py_DECREF((PyObject *)context);
    PyGILState_Release(state);
}

struct visitor {
    visitproc visit;
    void *arg;
};

static int visit_context(void *context, void (*release)(void *context), void *arg)
{
    const struct visitor *visitor = arg;
    return release == py_release_object || release == py_release_context ? visitor->visit(context, visitor->arg) : 0;
}

int py_traverse_graph(grd_tensor *t, visitproc visit, void *arg)
{
    return grd_visit_contexts(t, visit_context, &(struct visitor){visit, arg});
}

int py_traverse_node(grd_node *node, visitproc visit, void *arg)
{
    return grd_node_visit_contexts(node, visit_context, &(struct visitor){visit, arg});
}

/* ---- Classes of nodes -------------------------------------------------------------------------------------------- */
/* Returns the Python class for nodes of this kind, borrowed. Creates the class on first use. */
static PyTypeObject *type_of(const grd_node *node)
{
    static PyObject *types; /* a dict: name of the kind of node -> class */
    if (types == NULL && (types = PyDict_New()) == NULL)
        return NULL;
    PyObject *name = PyUnicode_FromString(grd_node_name(node));
    if (name == NULL)
        return NULL;
    PyObject *type = PyDict_GetItemWithError(types, name);
    if (type == NULL && !PyErr_Occurred()) {
        type = PyObject_CallFunction((PyObject *)&PyType_Type, "O(O){sssN}", name, py_node_type, "__module__", "gradus.autograd.graph",
                                     "__slots__", PyTuple_New(0));
        if (type != NULL && PyDict_SetItem(types, name, type) != 0)
            Py_CLEAR(type);
        Py_XDECREF(type);
    }
    Py_DECREF(name);
    return (PyTypeObject *)type;
}

static PyObject *node_object(grd_node *node)
{
    if (node == NULL)
        Py_RETURN_NONE;
    grd_custom_call *call = grd_node_custom_call(node, py_release_context);
    PyObject *known = call != NULL ? grd_custom_context(call) : (PyObject *)look_up(node);
    if (known != NULL) {
        Py_INCREF(known);
        return known;
    }
    PyTypeObject *type = type_of(node);
    if (type == NULL || (table.count >= table.capacity && !grow_table()))
        return NULL;
    py_node *object = (py_node *)type->tp_alloc(type, 0);
    if (object == NULL)
        return NULL;
    object->node = grd_keep_node(node);
    insert(object);
    table.count++;
    return (PyObject *)object;
}

PyObject *py_node_of(grd_tensor *t)
{
    const grd_scope scope = grd_scope_open();
    grd_node *node = grd_grad_fn(t);
    PyObject *object = PY_LIKELY(grd_ok()) ? node_object(node) : py_raise();
    grd_scope_close(scope);
    return object;
}

/* ---- The type ---------------------------------------------------------------------------------------------------- */
static int node_traverse(PyObject *object, visitproc visit, void *arg)
{
    const py_node *self = (const py_node *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->metadata);
    return self->node != NULL ? py_traverse_node(self->node, visit, arg) : 0;
}

static int node_clear(PyObject *object)
{
    Py_CLEAR(((py_node *)object)->metadata);
    return 0;
}

static void node_dealloc(PyObject *object)
{
    py_node *self = (py_node *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weakrefs != NULL)
        PyObject_ClearWeakRefs(object);
    node_clear(object);
    if (self->node != NULL) {
        take_out(self);
        grd_drop_node(self->node);
    }
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *node_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<%s object at %p>", py_class_name(self), self);
}

/* Returns the node of the Python object `self`. Returns NULL with RuntimeError if the object is a ctx whose node has been freed. */
static grd_node *node_of(PyObject *self, const char *attribute)
{
    grd_node *node = ((py_node *)self)->node;
    if (node == NULL)
        PyErr_Format(PyExc_RuntimeError, "Attribute '%s' is invalid: the graph of this context has been freed", attribute);
    return node;
}

static PyObject *node_name(PyObject *self, PyObject *nothing)
{
    (void)nothing;
    const char *name = py_class_name(self);
    const bool is_operator = strcmp(name, "AccumulateGrad") != 0 && strcmp(name, "CopySlices") != 0;
    return PyUnicode_FromFormat("%s%s", is_operator ? "" : "torch::autograd::", name);
}

/* Converts `args`, a tuple with a tensor or None for each output of a node. Returns false with TypeError. */
static bool read_gradients(PyObject *args, grd_tensor **ret_grads)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
        PyObject *item = PyTuple_GET_ITEM(args, i);
        if (item != Py_None && !py_is_tensor(item)) {
            PyErr_Format(PyExc_TypeError, "argument %zd is not a Variable", i);
            return false;
        }
        ret_grads[i] = item != Py_None ? py_tensor_of(item) : NULL;
    }
    return true;
}

/* Runs the backward of `node` with `grads`, the gradients of its n outputs. Returns the gradient of the only input, or a tuple if there are
 * several inputs. */
static PyObject *run_on(grd_node *node, grd_tensor *const *grads, int n, grd_tensor **results, int nresults)
{
    const grd_scope scope = grd_scope_open();
    const bool ok = grd_node_run(node, grads, n, results);
    if (ok && nresults == 1)
        return py_take(scope, results[0]);
    return py_take_tuple(scope, grd_tensors_from(results, ok ? nresults : 0));
}

/* Implements grad_fn(*grad_outputs): runs the node and returns the gradients of its inputs. */
static PyObject *node_call(PyObject *self, PyObject *args, PyObject *names)
{
    grd_node *node = ((py_node *)self)->node;
    if (node == NULL || grd_node_custom_call(node, py_release_context) != NULL)
        return PyErr_Format(PyExc_TypeError, "'%s' object is not callable", py_class_name(self));
    if (names != NULL && PyDict_GET_SIZE(names) > 0)
        return PyErr_Format(PyExc_TypeError, "%s() takes no keyword arguments", py_class_name(self));
    const int n = (int)PyTuple_GET_SIZE(args), nresults = grd_node_edge_count(node);
    grd_tensor **grads = PyMem_New(grd_tensor *, (size_t)n + (size_t)nresults + 1);
    if (grads == NULL)
        return PyErr_NoMemory();
    PyObject *result = read_gradients(args, grads) ? run_on(node, grads, n, grads + n, nresults) : NULL;
    PyMem_Free(grads);
    return result;
}

static PyObject *get_next_functions(PyObject *self, void *nothing)
{
    (void)nothing;
    grd_node *node = node_of(self, "next_functions");
    if (node == NULL)
        return NULL;
    const int n = grd_node_edge_count(node);
    PyObject *result = PyTuple_New(n);
    for (int i = 0; result != NULL && i < n; i++) {
        int output = 0;
        PyObject *next = node_object(grd_node_edge(node, i, &output));
        PyObject *pair = next != NULL ? Py_BuildValue("(Ni)", next, output) : NULL;
        if (pair == NULL)
            Py_CLEAR(result);
        else
            PyTuple_SET_ITEM(result, i, pair);
    }
    return result;
}

static PyObject *get_metadata(PyObject *self, void *nothing)
{
    (void)nothing;
    py_node *node = (py_node *)self;
    if (node->metadata == NULL)
        node->metadata = PyDict_New();
    Py_XINCREF(node->metadata);
    return node->metadata;
}

static PyObject *get_variable(PyObject *self, void *nothing)
{
    (void)nothing;
    const grd_node *node = ((py_node *)self)->node;
    grd_tensor *variable = node != NULL ? grd_node_variable(node) : NULL;
    if (variable == NULL)
        return PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'", py_class_name(self));
    return py_wrap(variable);
}

/* _gradient_edge(tensor) in Python: returns (node, i), where the gradient of `tensor` flows to output i of `node`. */
static PyObject *gradient_edge(PyObject *module, PyObject *tensor)
{
    (void)module;
    if (!py_is_tensor(tensor))
        return PyErr_Format(PyExc_TypeError, "get_gradient_edge(): expected a Tensor, not %s", py_class_name(tensor));
    if (!grd_requires_grad(py_tensor_of(tensor)))
        return PyErr_Format(PyExc_RuntimeError, "It is not possible to get the gradient edge for a Tensor that does not require gradients");
    int output = 0;
    const grd_scope scope = grd_scope_open();
    grd_node *node = grd_gradient_edge(py_tensor_of(tensor), &output);
    PyObject *object = node != NULL ? node_object(node) : py_raise();
    grd_scope_close(scope);
    return object != NULL ? Py_BuildValue("(Ni)", object, output) : NULL;
}

static PyObject *node_register_hook(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return py_hook_node(((py_node *)self)->node, false, args, nargs, names);
}

static PyObject *node_register_prehook(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names)
{
    return py_hook_node(((py_node *)self)->node, true, args, nargs, names);
}

static PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, PyDoc_STR("name($self)\n--\n\nThe name of the node: 'AddBackward0'.")},
    PY_ENTRY(
        "register_hook", node_register_hook,
        PyDoc_STR("register_hook($self, /, fn)\n--\n\n"
                  "Calls fn(grad_inputs, grad_outputs) after the node ran; a tuple it returns replaces grad_inputs. Returns a handle with "
                  "remove().")),
    PY_ENTRY("register_prehook", node_register_prehook,
             PyDoc_STR(
                 "register_prehook($self, /, fn)\n--\n\n"
                 "Calls fn(grad_outputs) before the node runs; a tuple it returns replaces grad_outputs. Returns a handle with remove().")),
    {0},
};

static PyGetSetDef node_properties[] = {
    {"next_functions", get_next_functions, NULL,
     PyDoc_STR("For each input the node its gradient goes to, and the output of that node it stands for."), NULL},
    {"metadata", get_metadata, NULL, PyDoc_STR("A dict for the user's notes, which lives as long as this object."), NULL},
    {"variable", get_variable, NULL, PyDoc_STR("The leaf of an AccumulateGrad."), NULL},
    {0},
};

static PyMemberDef node_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_node, weakrefs), READONLY, NULL},
    {0},
};

static PyType_Slot node_slots[] = {
    {Py_tp_doc, (void *)"A node of the graph: what computes gradients of inputs from those of outputs."},
    {Py_tp_traverse, node_traverse},
    {Py_tp_clear, node_clear},
    {Py_tp_dealloc, node_dealloc},
    {Py_tp_repr, node_repr},
    {Py_tp_call, node_call},
    {Py_tp_methods, node_methods},
    {Py_tp_getset, node_properties},
    {Py_tp_members, node_members},
    {0, NULL},
};

static PyType_Spec node_spec = {
    .name = "gradus.autograd.graph.Node",
    .basicsize = sizeof(py_node),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = node_slots,
};

static PyMethodDef functions[] = {
    {"_gradient_edge", gradient_edge, METH_O, PyDoc_STR("The node and output that the gradient of a tensor belongs to.")},
    {0},
};

bool py_add_node(PyObject *module)
{
    py_node_type = (PyTypeObject *)PyType_FromSpec(&node_spec);
    return py_node_type != NULL && PyModule_AddFunctions(module, functions) == 0 &&
           PyModule_AddObjectRef(module, "_Node", (PyObject *)py_node_type) == 0;
}
