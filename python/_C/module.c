/* The module gradus._C: every part adds its names. */
#include "extension.h"
#include "number.h"

PyMethodDef *py_tensor_tables[] = {py_tensor_override_methods, py_tensor_methods,  py_numpy_methods,
                                   py_dlpack_methods,          py_storage_methods, py_subclass_methods,
                                   py_tensor_autograd_methods, py_methods,         NULL};
PyGetSetDef *py_tensor_property_tables[] = {py_tensor_properties, NULL};

/* gradus._C.nn: functions that PyTorch has in torch.nn.functional alone. */
static bool add_nn(PyObject *module)
{
    PyObject *nn = PyModule_New("gradus._C.nn");
    bool ok = nn != NULL && PyModule_AddFunctions(nn, py_nn_functions) == 0 && PyModule_AddObjectRef(module, "nn", nn) == 0 &&
              PyDict_SetItemString(PyImport_GetModuleDict(), "gradus._C.nn", nn) == 0;
    Py_XDECREF(nn);
    return ok;
}

static struct PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "gradus._C",
    .m_doc = "Gradus in C: tensors, operators, automatic differentiation.",
    .m_size = -1,
    .m_methods = py_functions,
};

PyMODINIT_FUNC PyInit__C(void);

PyMODINIT_FUNC PyInit__C(void)
{
    bool (*const parts[])(PyObject *) = {py_add_overrides,  py_add_types,   py_add_tensor,  py_add_generator, py_add_autograd,
                                         py_add_transforms, py_add_interop, py_add_runtime, py_add_nn_module, add_nn,
                                         py_add_work};
    py_functions_fill();
    py_nn_functions_fill();
    py_methods_fill();
    PyObject *module = PyModule_Create(&definition);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && module != NULL; i++)
        if (!parts[i](module))
            Py_CLEAR(module);
    grd_set_warning_handler(py_warn);
    if (module == NULL && !PyErr_Occurred())
        PyErr_SetString(PyExc_ImportError, "gradus._C could not be set up");
    return module;
}
