/* Creates the class Tensor from its type slots (tensor_slots.h) and the tables of its methods and properties (tables.h). */
#include "dlpack.h"
#include "index.h"
#include "node.h"
#include "override.h"
#include "tables.h"
#include "tensor_slots.h"

#include <stddef.h>
#include <structmember.h>

/* ---- Garbage collection ------------------------------------------------------------------------------------------ */

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

/* Hashes by identity, so two Tensors are different dict keys even if their elements are equal. */
static Py_hash_t tensor_hash(PyObject *self)
{
    return PyBaseObject_Type.tp_hash(self);
}

/* ---- The slots --------------------------------------------------------------------------------------------------- */

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
    {Py_tp_dealloc, py_tensor_dealloc},
    {Py_tp_traverse, tensor_traverse},
    {Py_tp_clear, tensor_clear},
    {Py_tp_members, members},
    {Py_tp_getset, dict_property},
    {Py_tp_new, py_tensor_new},
    {Py_tp_repr, py_tensor_repr},
    {Py_tp_hash, tensor_hash},
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

/* ---- The tables -------------------------------------------------------------------------------------------------- */

/* If several tables contain the same name the first one wins, so hand-written methods come before generated ones. */
static PyMethodDef *const method_tables[] = {py_tensor_override_methods, py_tensor_methods,   py_numpy_methods,           py_dlpack_methods,
                                             py_storage_methods,         py_subclass_methods, py_tensor_autograd_methods, py_methods};

/* Adds `descriptor` to the class's dict unless `name` is already there. Takes over the reference. If `descriptor` is NULL an exception is already set
 * and the result is false. */
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

static bool add_class_attributes(void)
{
    PyObject *priority = PyLong_FromLong(1000), *capsule = py_exchange_capsule();
    const bool ok = priority != NULL && capsule != NULL &&
                    PyObject_SetAttrString((PyObject *)py_tensor_type, "__array_priority__", priority) == 0 &&
                    PyObject_SetAttrString((PyObject *)py_tensor_type, "__dlpack_c_exchange_api__", capsule) == 0;
    Py_XDECREF(priority);
    Py_XDECREF(capsule);
    return ok;
}

bool py_add_tensor(PyObject *module)
{
    py_exact_type_no_mode = py_tensor_type = (PyTypeObject *)PyType_FromSpec(&spec);
    if (py_tensor_type == NULL)
        return false;
    py_tensor_type->tp_name = "Tensor"; /* error messages show no module, as in PyTorch; __module__ is in the class dict */
    for (size_t i = 0; i < sizeof method_tables / sizeof *method_tables; i++)
        if (!add_methods(method_tables[i]))
            return false;
    if (!add_properties(py_tensor_properties) || !add_class_attributes())
        return false;
    PyType_Modified(py_tensor_type);
    return PyModule_AddObjectRef(module, "Tensor", (PyObject *)py_tensor_type) == 0;
}
