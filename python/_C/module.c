/* Initializes the module gradus._C with the functions and classes declared in tables.h. */
#include "errors.h"
#include "tables.h"

/* Adds a shorter name for each function whose name begins with the submodule's name, e.g. linalg.solve for linalg.linalg_solve. Returns false
 * with an exception. */
static bool add_short_names(PyObject *inner, const char *name, const PyMethodDef *functions)
{
    const size_t n = strlen(name);
    for (; functions->ml_name != NULL; functions++) {
        const char *full = functions->ml_name;
        if (strncmp(full, name, n) != 0 || full[n] != '_')
            continue;
        PyObject *function = PyObject_GetAttrString(inner, full);
        const bool ok = function != NULL && PyModule_AddObjectRef(inner, full + n + 1, function) == 0;
        Py_XDECREF(function);
        if (!ok)
            return false;
    }
    return true;
}

/* Adds the submodule `name` with the given functions, and makes it importable under `full_name`. Returns false with an exception on failure. */
static bool add_inner(PyObject *module, const char *name, const char *full_name, PyMethodDef *functions)
{
    PyObject *inner = PyModule_New(full_name);
    bool ok = inner != NULL && PyModule_AddFunctions(inner, functions) == 0 && add_short_names(inner, name, functions) &&
              PyModule_AddObjectRef(module, name, inner) == 0 && PyDict_SetItemString(PyImport_GetModuleDict(), full_name, inner) == 0;
    Py_XDECREF(inner);
    return ok;
}

/* Adds the submodules with functions that PyTorch has only in torch.nn.functional, torch.linalg, torch.special, torch.fft or torch.signal.windows. */
static bool add_inner_modules(PyObject *module)
{
    return add_inner(module, "nn", "gradus._C.nn", py_nn_functions) &&
           add_inner(module, "linalg", "gradus._C.linalg", py_linalg_functions) &&
           add_inner(module, "special", "gradus._C.special", py_special_functions) &&
           add_inner(module, "fft", "gradus._C.fft", py_fft_functions) &&
           add_inner(module, "windows", "gradus._C.windows", py_windows_functions);
}

/* Adds the functions of the files that define functions but no classes. */
static bool add_functions(PyObject *module)
{
    PyMethodDef *const tables[] = {py_as_tensor_functions, py_legacy_functions,       py_buffer_functions,         py_numpy_functions,
                                   py_dlpack_functions,    py_storage_functions,      py_shared_storage_functions, py_query_functions,
                                   py_variadic_functions,  py_memory_stats_functions, py_hook_functions,           py_autocast_functions,
                                   py_transform_functions, py_picture_functions};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (PyModule_AddFunctions(module, tables[i]) < 0)
            return false;
    return true;
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
    static py_adder *const parts[] = {
        py_add_errors,     py_add_overrides,  py_add_dtypes,   py_add_device,  py_add_size,           py_add_finfo,
        py_add_tensor,     py_add_generator,  py_add_autograd, py_add_node,    py_add_custom_context, py_add_custom_function,
        py_add_grad_modes, py_add_storage,    py_add_settings, py_add_plugins, py_add_safetensors,    py_add_nn_module,
        add_functions,     add_inner_modules, py_add_work};
    py_functions_fill();
    py_nn_functions_fill();
    py_linalg_functions_fill();
    py_special_functions_fill();
    py_fft_functions_fill();
    py_windows_functions_fill();
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
