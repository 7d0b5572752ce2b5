/* Links each Python object of Tensor with a tensor of the library. If the object is freed before the tensor, preserves its class and attributes.
 *
 * Invariant: while a tensor has a Python object, the tensor's binding points into the object, and the object owns a reference to the tensor. When the
 * object is freed and the tensor has other owners, the class and attributes of the object move to a `struct shadow`. The tensor owns the shadow until
 * it gets a Python object again. */
#include "tensor_object.h"
#include "errors.h"

#include <stddef.h>
#include <structmember.h>

PyTypeObject *py_tensor_type;

/* ---- Objects ----------------------------------------------------------------------------------------------------- */

/* Free list of at most FREE_MAX freed objects of the class Tensor, linked through `dict`. It saves the allocation of an object for every result. */
enum { FREE_MAX = 256 };
static py_tensor *free_objects;
static int nfree;

static void forget_object(grd_binding *binding)
{
    (void)binding; /* never called: the tensor lives at least as long as the object, which owns a reference to the tensor */
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

/* Class and attributes of a freed Python object whose tensor still exists. */
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

/* Returns a new Python object for `t`, of class `type` and with the attributes `dict`, which may be NULL. Takes over the reference to `t`. */
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

/* Returns a new object for `t` with the class and attributes that `shadow` has preserved from a freed object, and frees the shadow. Takes over the
 * reference to `t`. */
static PyObject *revive(grd_tensor *t, struct shadow *shadow)
{
    PyObject *self = bind(shadow->type, shadow->dict, t);
    if (self != NULL)
        release_shadow(&shadow->binding);
    return self;
}

/* Returns the Python object of `t`, which is created if `t` has none. Takes over the reference to `t`. */
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

PyObject *py_tuple_of(grd_tensor *const *tensors, Py_ssize_t n)
{
    PyObject *tuple = PyTuple_New(n);
    for (Py_ssize_t i = 0; tuple != NULL && i < n; i++) {
        PyObject *item = py_wrap(tensors[i]);
        if (item == NULL)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, i, item);
    }
    return tuple;
}

PyObject *py_take_tuple(grd_scope scope, grd_tensors tensors)
{
    PyObject *tuple = grd_ok() ? py_tuple_of(tensors.data, (Py_ssize_t)tensors.n) : py_raise();
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

/* ---- Deallocation ------------------------------------------------------------------------------------------------ */

/* Moves the class and attributes of `self`, which is being freed, to a new struct shadow. The tensor's next Python object gets them from there.
 * Returns NULL if the tensor has no other owner or if there is nothing to preserve. Also returns NULL if memory is exhausted; the class and
 * attributes are then lost. */
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

void py_tensor_dealloc(PyObject *object)
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
