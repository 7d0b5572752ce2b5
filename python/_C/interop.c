/* What the exchange with the rest of Python adds to the module, and how its functions read their arguments. */
#include <string.h>

#include "interop.h"

PyObject *py_abandon(grd_scope scope)
{
    grd_scope_close(scope);
    return grd_ok() ? NULL : py_raise();
}

/* ---- Arguments -------------------------------------------------------------------------------------------------------------------------------- */

static int find_parameter(const struct py_simple *function, PyObject *name)
{
    for (int i = 0; function->parameters[i] != NULL; i++)
        if (PyUnicode_CompareWithASCIIString(name, function->parameters[i]) == 0)
            return i;
    return -1;
}

bool py_arrange(const struct py_simple *function, PyObject *const *args, Py_ssize_t nargs, PyObject *names, PyObject **ret_objects)
{
    if (nargs > function->positional) {
        PyErr_Format(PyExc_TypeError, "%s() takes %d positional argument%s but %zd were given", function->name, function->positional,
                     function->positional == 1 ? "" : "s", nargs);
        return false;
    }
    for (int i = 0; i < PY_SIMPLE_MAX; i++)
        ret_objects[i] = i < nargs ? args[i] : NULL;
    for (Py_ssize_t i = 0; names != NULL && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        const int at = find_parameter(function, name);
        if (at < 0 || ret_objects[at] != NULL) {
            PyErr_Format(PyExc_TypeError,
                         at < 0 ? "%s() got an unexpected keyword argument '%U'" : "%s() got multiple values for argument '%U'",
                         function->name, name);
            return false;
        }
        ret_objects[at] = args[nargs + i];
    }
    for (int i = 0; i < function->required; i++)
        if (ret_objects[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "%s() missing 1 required positional arguments: \"%s\"", function->name, function->parameters[i]);
            return false;
        }
    return true;
}

static bool refuse_argument(const char *function, const char *name, const char *type, PyObject *object)
{
    PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be %s, not %s", function, name, type, Py_TYPE(object)->tp_name);
    return false;
}

bool py_dtype_argument(const char *function, PyObject *object, grd_dtype *ret_dtype)
{
    return object == NULL || object == Py_None || py_as_dtype(object, ret_dtype) ||
           refuse_argument(function, "dtype", "torch.dtype", object);
}

bool py_device_argument(const char *function, PyObject *object, grd_device *ret_device)
{
    if (object == NULL || object == Py_None)
        return true;
    const int is_device = py_as_device(object, ret_device);
    return is_device > 0 || (is_device == 0 && refuse_argument(function, "device", "torch.device", object));
}

bool py_bool_argument(const char *function, const char *name, PyObject *object, bool *ret_value)
{
    if (object == NULL)
        return true;
    if (!PyBool_Check(object))
        return refuse_argument(function, name, "bool", object);
    *ret_value = object == Py_True;
    return true;
}

bool py_dims_argument(const char *function, const char *name, PyObject *object, int64_t *ret_values, int64_t *ret_n)
{
    if (!PyTuple_Check(object) && !PyList_Check(object))
        return refuse_argument(function, name, "tuple of ints", object);
    const Py_ssize_t n = PySequence_Size(object);
    if (n > GRD_MAX_DIMS) {
        PyErr_Format(PyExc_ValueError, "%s(): argument '%s' has %zd entries, the limit is %d", function, name, n, GRD_MAX_DIMS);
        return false;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(object, i);
        const int is_int = item != NULL ? py_as_element(item, i, &ret_values[i]) : -1;
        if (is_int == 0 && i > 0)
            py_refuse_element(function, name, item, i);
        else if (is_int == 0)
            PyErr_Format(PyExc_TypeError, "%s(): argument '%s' must be tuple of ints, but found element of type %s at pos %zd", function,
                         name, Py_TYPE(item)->tp_name, i);
        Py_XDECREF(item);
        if (is_int <= 0)
            return false;
    }
    *ret_n = n;
    return true;
}

/* ---- What is added -------------------------------------------------------------------------------------------------------------------------------- */

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

bool py_add_interop(PyObject *module)
{
    PyMethodDef *const functions[] = {py_construct_functions, py_legacy_functions,  py_memory_functions, py_numpy_functions,
                                      py_dlpack_functions,    py_storage_functions, py_share_functions};
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (PyModule_AddFunctions(module, functions[i]) < 0)
            return false;
    return add_class_attributes() && py_add_storage(module);
}
