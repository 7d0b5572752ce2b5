/* The Tensor type: how an object and a tensor find each other, and how they end.
 *
 * Invariant: while an object of a tensor is alive, the tensor's binding is that object's and the object owns a reference of the tensor. When
 * the object goes and others still own the tensor, what makes the object more than a plain Tensor (its class, its attributes) is put aside,
 * owned by the tensor, until the tensor comes back to Python. */
#include "extension.h"
#include "number.h"

#include <stddef.h>
#include <structmember.h>

PyTypeObject *py_tensor_type;

/* ---- Objects ---------------------------------------------------------------------------------------------------------- */

/* Objects of exact Tensors that are not in use, linked through `dict`. */
enum { FREE_MAX = 256 };
static py_tensor *free_objects;
static int nfree;

static void forget_object(grd_binding *binding)
{
    (void)binding; /* an object's tensor outlives the object: nobody owns a binding of this kind */
}

static py_tensor *new_object(PyTypeObject *type)
{
    py_tensor *self;
    if (type == py_tensor_type && free_objects != NULL) {
        self = free_objects;
        free_objects = (py_tensor *)self->dict;
        nfree--;
        PyObject_Init((PyObject *)self, type);
        self->dict = self->weakrefs = NULL;
        PyObject_GC_Track(self);
    } else {
        self = (py_tensor *)type->tp_alloc(type, 0);
        if (self == NULL)
            return NULL;
    }
    self->binding.release = forget_object;
    return self;
}

/* What is kept of an object that went before its tensor. */
struct shadow {
    grd_binding binding;
    PyTypeObject *type;
    PyObject *dict;
};

static void release_shadow(grd_binding *binding)
{
    struct shadow *shadow = (struct shadow *)binding;
    if (!Py_IsInitialized())
        return;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_XDECREF(shadow->dict);
    Py_DECREF(shadow->type);
    PyMem_Free(shadow);
    PyGILState_Release(state);
}

/* Gives the tensor, whose reference is handed over, a new object. */
static PyObject *bind(PyTypeObject *type, PyObject *dict, grd_tensor *t)
{
    py_tensor *self = new_object(type);
    if (self == NULL) {
        grd_drop(t);
        return NULL;
    }
    self->tensor = t;
    Py_XINCREF(dict);
    self->dict = dict;
    grd_binding_set(t, &self->binding, false);
    return (PyObject *)self;
}

static PyObject *object_of(grd_binding *binding)
{
    return (PyObject *)((char *)binding - offsetof(py_tensor, binding));
}

/* The object of a tensor that has been put aside comes back. Takes over the reference. */
static PyObject *revive(grd_tensor *t, struct shadow *shadow)
{
    PyObject *self = bind(shadow->type, shadow->dict, t);
    if (self != NULL)
        release_shadow(&shadow->binding);
    return self;
}

/* The object of a tensor; takes over a reference of it. */
static PyObject *wrap_owned(grd_tensor *t)
{
    grd_binding *binding = grd_binding_of(t);
    if (PY_LIKELY(binding == NULL))
        return bind(py_tensor_type, NULL, t);
    if (binding->release == forget_object) {
        PyObject *self = object_of(binding);
        Py_INCREF(self);
        grd_drop(t);
        return self;
    }
    if (binding->release == release_shadow)
        return revive(t, (struct shadow *)binding);
    grd_drop(t);
    PyErr_SetString(PyExc_RuntimeError, "the tensor belongs to another language binding");
    return NULL;
}

PyObject *py_wrap(grd_tensor *t)
{
    if (t == NULL)
        Py_RETURN_NONE;
    return wrap_owned(grd_keep(t));
}

PyObject *py_wrap_as(PyTypeObject *type, grd_tensor *t)
{
    return bind(type, NULL, grd_keep(t));
}

PyObject *py_take(grd_scope scope, grd_tensor *t)
{
    if (PY_UNLIKELY(!grd_ok())) {
        grd_scope_close(scope);
        return py_raise();
    }
    if (t == NULL) {
        grd_scope_close(scope);
        Py_RETURN_NONE;
    }
    return wrap_owned(grd_scope_take(scope, t));
}

PyObject *py_take_tuple(grd_scope scope, grd_tensors tensors)
{
    PyObject *tuple = grd_ok() ? PyTuple_New((Py_ssize_t)tensors.n) : py_raise();
    for (int64_t i = 0; tuple != NULL && i < tensors.n; i++) {
        PyObject *item = py_wrap(tensors.data[i]);
        if (item == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, item);
    }
    grd_scope_close(scope);
    return tuple;
}

PyObject *py_leave(grd_scope scope)
{
    grd_scope_close(scope);
    if (!grd_ok())
        return py_raise();
    Py_RETURN_NONE;
}

/* ---- Their end -------------------------------------------------------------------------------------------------------------- */

/* Puts aside what is more than a plain Tensor where the tensor lives on. Without memory for that it is lost, as the object is. */
static grd_binding *put_aside(py_tensor *self, PyTypeObject *type)
{
    if ((type == py_tensor_type && self->dict == NULL) || grd_is_sole_owner(self->tensor))
        return NULL;
    struct shadow *shadow = PyMem_Malloc(sizeof *shadow);
    if (shadow == NULL)
        return NULL;
    shadow->binding.release = release_shadow;
    shadow->type = (PyTypeObject *)Py_NewRef((PyObject *)type);
    shadow->dict = self->dict;
    self->dict = NULL;
    return &shadow->binding;
}

static void tensor_dealloc(PyObject *object)
{
    py_tensor *self = (py_tensor *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weakrefs != NULL)
        PyObject_ClearWeakRefs(object);
    if (self->tensor != NULL) {
        grd_tensor *t = self->tensor;
        grd_binding *shadow = put_aside(self, type);
        grd_binding_set(t, shadow, shadow != NULL);
        self->tensor = NULL;
        grd_drop(t);
    }
    Py_CLEAR(self->dict);
    if (type == py_tensor_type && nfree < FREE_MAX) {
        self->dict = (PyObject *)free_objects;
        free_objects = self;
        nfree++;
    } else {
        type->tp_free(object);
    }
    Py_DECREF(type);
}

static int tensor_traverse(PyObject *object, visitproc visit, void *arg)
{
    py_tensor *self = (py_tensor *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->dict);
    return self->tensor == NULL ? 0 : py_traverse_graph(self->tensor, visit, arg);
}

static int tensor_clear(PyObject *object)
{
    Py_CLEAR(((py_tensor *)object)->dict);
    return 0;
}

/* ---- The type ----------------------------------------------------------------------------------------------------------------- */

static PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(py_tensor, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(py_tensor, weakrefs), READONLY, NULL},
    {0},
};

static PyGetSetDef dict_property[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL},
    {0},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A strided tensor: sizes, strides, an offset, a dtype and a device over a storage that views share."},
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_traverse, tensor_traverse},
    {Py_tp_clear, tensor_clear},
    {Py_tp_members, members},
    {Py_tp_getset, dict_property},
    {Py_tp_new, py_tensor_new},
    {Py_tp_repr, py_tensor_repr},
    {Py_tp_hash, py_tensor_hash},
    {Py_tp_richcompare, py_tensor_compare},
    {Py_tp_iter, py_tensor_iter},
    {Py_mp_length, py_tensor_length},
    {Py_mp_subscript, py_get_item},
    {Py_mp_ass_subscript, py_set_item},
    {Py_sq_contains, py_tensor_contains},
    {Py_nb_bool, py_tensor_bool},
    {Py_nb_int, py_tensor_int},
    {Py_nb_float, py_tensor_float},
    {Py_nb_index, py_tensor_index},
    {Py_nb_add, py_number_add},
    {Py_nb_subtract, py_number_subtract},
    {Py_nb_multiply, py_number_multiply},
    {Py_nb_true_divide, py_number_true_divide},
    {Py_nb_floor_divide, py_number_floor_divide},
    {Py_nb_remainder, py_number_remainder},
    {Py_nb_power, py_number_power},
    {Py_nb_matrix_multiply, py_number_matmul},
    {Py_nb_and, py_number_and},
    {Py_nb_or, py_number_or},
    {Py_nb_xor, py_number_xor},
    {Py_nb_lshift, py_number_lshift},
    {Py_nb_rshift, py_number_rshift},
    {Py_nb_negative, py_number_negative},
    {Py_nb_positive, py_number_positive},
    {Py_nb_absolute, py_number_absolute},
    {Py_nb_invert, py_number_invert},
    {Py_nb_inplace_add, py_number_inplace_add},
    {Py_nb_inplace_subtract, py_number_inplace_subtract},
    {Py_nb_inplace_multiply, py_number_inplace_multiply},
    {Py_nb_inplace_true_divide, py_number_inplace_true_divide},
    {Py_nb_inplace_floor_divide, py_number_inplace_floor_divide},
    {Py_nb_inplace_remainder, py_number_inplace_remainder},
    {Py_nb_inplace_power, py_number_inplace_power},
    {Py_nb_inplace_and, py_number_inplace_and},
    {Py_nb_inplace_or, py_number_inplace_or},
    {Py_nb_inplace_xor, py_number_inplace_xor},
    {Py_nb_inplace_lshift, py_number_inplace_lshift},
    {Py_nb_inplace_rshift, py_number_inplace_rshift},
    {Py_bf_getbuffer, py_tensor_get_buffer},
    {Py_bf_releasebuffer, py_tensor_release_buffer},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "gradus.Tensor",
    .basicsize = sizeof(py_tensor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = slots,
};

/* Methods and properties come from tables of several files; a name that is there already stays. */
static bool add_descriptor(PyObject *dict, PyObject *descriptor, const char *name)
{
    bool ok = descriptor != NULL && (PyDict_GetItemString(dict, name) != NULL || PyDict_SetItemString(dict, name, descriptor) == 0);
    Py_XDECREF(descriptor);
    return ok;
}

static bool add_methods(PyMethodDef *methods)
{
    for (PyMethodDef *method = methods; method->ml_name != NULL; method++) {
        PyObject *descriptor = method->ml_flags & METH_CLASS    ? PyDescr_NewClassMethod(py_tensor_type, method)
                               : method->ml_flags & METH_STATIC ? PyStaticMethod_New(PyCFunction_New(method, NULL))
                                                                : PyDescr_NewMethod(py_tensor_type, method);
        if (!add_descriptor(py_tensor_type->tp_dict, descriptor, method->ml_name))
            return false;
    }
    return true;
}

static bool add_properties(PyGetSetDef *properties)
{
    for (PyGetSetDef *property = properties; property->name != NULL; property++)
        if (!add_descriptor(py_tensor_type->tp_dict, PyDescr_NewGetSet(py_tensor_type, property), property->name))
            return false;
    return true;
}

bool py_add_tensor(PyObject *module)
{
    py_plain_type = py_tensor_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (py_tensor_type == NULL)
        return false;
    py_tensor_type->tp_name = "Tensor"; /* what messages say, as PyTorch's; its module stands in the dict */
    for (PyMethodDef **table = py_tensor_tables; *table != NULL; table++)
        if (!add_methods(*table))
            return false;
    for (PyGetSetDef **table = py_tensor_property_tables; *table != NULL; table++)
        if (!add_properties(*table))
            return false;
    PyType_Modified(py_tensor_type);
    return PyModule_AddObjectRef(module, "Tensor", (PyObject *)py_tensor_type) == 0;
}
