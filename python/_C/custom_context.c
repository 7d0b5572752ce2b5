/* Implements FunctionCtx, the class of the object `ctx` that forward and backward of an autograd.Function receive.
 *
 * The graph node of a call owns the ctx of this call. The ctx is also the Python object of the node (grad_fn). The ctx borrows the node through a
 * pointer, which py_release_context clears when the node is freed. If the node loses its last owner while Python code still holds the ctx, the ctx
 * becomes the owner of the node (py_take_over_node). From then on ctx and node own each other until the garbage collector frees both. */
#include "custom_function.h"
#include "tables.h"
#include "tensor_object.h"

#include <stddef.h>
#include <structmember.h>

/* ---- Ownership of the node --------------------------------------------------------------------------------------- */
bool py_take_over_node(void *context)
{
    py_context *self = context;
    if (!Py_IsInitialized())
        return false;
    const PyGILState_STATE state = PyGILState_Ensure();
    const bool taken = !self->forward && !self->owns_node && Py_REFCNT(self) > 1;
    self->owns_node |= taken;
    PyGILState_Release(state);
    return taken;
}

void py_context_forget(py_context *context)
{
    Py_CLEAR(context->to_save);
    Py_CLEAR(context->for_forward);
    Py_CLEAR(context->dirty);
    Py_CLEAR(context->non_differentiable);
}

/* ---- Methods and attributes of ctx ------------------------------------------------------------------------------- */
/* Stores the arguments of a method of ctx, e.g. save_for_backward, in *slot. `items` is the tuple of the arguments, and `slot` points to a member
 * of the context. Returns None. */
static PyObject *note(PyObject **slot, PyObject *items)
{
    Py_INCREF(items);
    Py_XSETREF(*slot, items);
    Py_RETURN_NONE;
}

static PyObject *context_save_for_backward(PyObject *self, PyObject *tensors)
{
    return note(&((py_context *)self)->to_save, tensors);
}

static PyObject *context_mark_dirty(PyObject *self, PyObject *tensors)
{
    return note(&((py_context *)self)->dirty, tensors);
}

static PyObject *context_mark_non_differentiable(PyObject *self, PyObject *tensors)
{
    return note(&((py_context *)self)->non_differentiable, tensors);
}

static PyObject *context_save_for_forward(PyObject *self, PyObject *tensors)
{
    return note(&((py_context *)self)->for_forward, tensors);
}

static PyObject *context_set_materialize_grads(PyObject *self, PyObject *value)
{
    const int truth = PyObject_IsTrue(value);
    if (truth < 0)
        return NULL;
    ((py_context *)self)->materialize = truth;
    Py_RETURN_NONE;
}

static inline grd_custom_call *call_of(const py_context *self)
{
    return self->node.node != NULL ? grd_node_custom_call(self->node.node, py_release_context) : NULL;
}

static PyObject *get_saved_tensors(PyObject *object, void *nothing)
{
    (void)nothing;
    const py_context *self = (const py_context *)object;
    if (self->for_forward != NULL) {
        Py_INCREF(self->for_forward);
        return self->for_forward;
    }
    enum { INLINE = 8 };
    grd_tensor *inline_saved[INLINE], **saved = inline_saved;
    grd_custom_call *call = call_of(self);
    if (self->nsaved > 0 && call == NULL)
        return PyErr_Format(PyExc_RuntimeError, "the saved tensors of this context have been freed with its graph");
    if (self->nsaved > INLINE && (saved = PyMem_New(grd_tensor *, (size_t)self->nsaved)) == NULL)
        return PyErr_NoMemory();
    const grd_scope scope = grd_scope_open();
    for (int i = 0; i < self->nsaved; i++)
        saved[i] = grd_custom_saved(call, i);
    PyObject *result = py_take_tuple(scope, grd_tensors_from(saved, self->nsaved));
    if (saved != inline_saved)
        PyMem_Free(saved);
    return result;
}

static int context_traverse(PyObject *object, visitproc visit, void *arg)
{
    const py_context *self = (const py_context *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->node.metadata);
    Py_VISIT(self->function);
    Py_VISIT(self->to_save);
    Py_VISIT(self->for_forward);
    Py_VISIT(self->dirty);
    Py_VISIT(self->non_differentiable);
    return self->owns_node && self->node.node != NULL ? py_traverse_node(self->node.node, visit, arg) : 0;
}

static int context_clear(PyObject *object)
{
    py_context *self = (py_context *)object;
    Py_CLEAR(self->node.metadata);
    py_context_forget(self);
    if (self->owns_node && self->node.node != NULL)
        grd_drop_node(self->node.node);
    self->owns_node = false;
    return 0;
}

static void context_dealloc(PyObject *object)
{
    py_context *self = (py_context *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->node.weakrefs != NULL)
        PyObject_ClearWeakRefs(object);
    context_clear(object);
    Py_CLEAR(self->function);
    Py_CLEAR(self->needs_input_grad);
    PyMem_Free(self->is_tensor);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyObject *context_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    (void)args;
    (void)names;
    py_context *self = (py_context *)type->tp_alloc(type, 0);
    if (self != NULL)
        self->materialize = true;
    return (PyObject *)self;
}

static PyMethodDef context_methods[] = {
    {"save_for_backward", context_save_for_backward, METH_VARARGS,
     PyDoc_STR(
         "save_for_backward($self, /, *tensors)\n--\n\nKeeps tensors for backward, where they are ctx.saved_tensors. Some may be None.")},
    {"save_for_forward", context_save_for_forward, METH_VARARGS,
     PyDoc_STR("save_for_forward($self, /, *tensors)\n--\n\nThe tensors that jvp finds as saved_tensors.")},
    {"mark_dirty", context_mark_dirty, METH_VARARGS,
     PyDoc_STR("mark_dirty($self, /, *args)\n--\n\nSays which inputs forward wrote in place.")},
    {"mark_non_differentiable", context_mark_non_differentiable, METH_VARARGS,
     PyDoc_STR("mark_non_differentiable($self, /, *args)\n--\n\nSays which outputs have no gradient.")},
    {"set_materialize_grads", context_set_materialize_grads, METH_O,
     PyDoc_STR("set_materialize_grads($self, value, /)\n--\n\nWhether backward gets zeros, or None, for outputs that nothing depends on.")},
    {0},
};

static PyGetSetDef context_properties[] = {
    {"saved_tensors", get_saved_tensors, NULL, PyDoc_STR("The tensors that forward saved, as a tuple."), NULL},
    {0},
};

static PyMemberDef context_members[] = {
    {"needs_input_grad", T_OBJECT_EX, offsetof(py_context, needs_input_grad), 0,
     PyDoc_STR("For each argument of forward whether it needs a gradient.")},
    {"to_save", T_OBJECT, offsetof(py_context, to_save), 0, PyDoc_STR("The tensors of save_for_backward, during forward.")},
    {"dirty_tensors", T_OBJECT, offsetof(py_context, dirty), 0, PyDoc_STR("The tensors of mark_dirty, during forward.")},
    {"non_differentiable", T_OBJECT, offsetof(py_context, non_differentiable), 0,
     PyDoc_STR("The tensors of mark_non_differentiable, during forward.")},
    {"materialize_grads", T_BOOL, offsetof(py_context, materialize), 0, PyDoc_STR("As set by set_materialize_grads.")},
    {0},
};

static PyType_Slot context_slots[] = {
    {Py_tp_doc, (void *)"The context of one call of a Function, which its forward and backward share. It is also the node of the call."},
    {Py_tp_new, context_new},
    {Py_tp_traverse, context_traverse},
    {Py_tp_clear, context_clear},
    {Py_tp_dealloc, context_dealloc},
    {Py_tp_methods, context_methods},
    {Py_tp_getset, context_properties},
    {Py_tp_members, context_members},
    {0, NULL},
};

static PyType_Spec context_spec = {
    .name = "gradus.autograd.function.FunctionCtx",
    .basicsize = sizeof(py_context),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = context_slots,
};

bool py_add_custom_context(PyObject *module)
{
    PyObject *bases = PyTuple_Pack(1, py_node_type), *type = bases != NULL ? PyType_FromSpecWithBases(&context_spec, bases) : NULL;
    const bool ok = type != NULL && PyModule_AddObjectRef(module, "_FunctionCtx", type) == 0;
    Py_XDECREF(bases);
    Py_XDECREF(type);
    return ok;
}
