/* The default device: where functions that make tensors put them unless told otherwise. It is set for a thread, by set_default_device or for the
 * block of `with torch.device(…)`. Functions that make a tensor like another one, and Tensor(…), do not look at it. */
#include "methods.h"

enum { MAX_BLOCKS = 64 };

static _Thread_local struct {
    grd_device device; /* NONE: the cpu */
    int nblocks;
    grd_device outer[MAX_BLOCKS]; /* what it was outside of each block that is open */
} state;

grd_device py_default_device(void)
{
    return state.device;
}

void py_fill_device(struct py_arguments *arguments)
{
    grd_value *value = &arguments->values[arguments->signature->device];
    if (state.device.type != GRD_DEVICE_NONE && value->kind == GRD_KIND_NONE && arguments->nouts == 0)
        *value = (grd_value){.kind = GRD_KIND_DEVICE, .v.device = state.device};
}

static PyObject *get_default_device(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return py_device(state.device.type != GRD_DEVICE_NONE ? state.device : GRD_CPU);
}

static PyObject *set_default_device(PyObject *Py_UNUSED(module), PyObject *given)
{
    grd_device device = {0};
    const int is_device = given == Py_None ? 1 : py_as_device(given, &device);
    if (is_device == 0)
        PyErr_Format(PyExc_TypeError, "set_default_device(): argument 'device' must be torch.device, not %s", Py_TYPE(given)->tp_name);
    if (is_device <= 0)
        return NULL;
    state.device = device;
    Py_RETURN_NONE;
}

PyObject *py_enter_device(PyObject *self, PyObject *Py_UNUSED(none))
{
    grd_device device = {0};
    if (py_as_device(self, &device) < 0)
        return NULL;
    if (state.nblocks == MAX_BLOCKS)
        return PyErr_Format(PyExc_RuntimeError, "at most %d blocks of a default device may be open in a thread", MAX_BLOCKS);
    state.outer[state.nblocks++] = state.device;
    state.device = device;
    return Py_NewRef(self);
}

PyObject *py_exit_device(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(args))
{
    if (state.nblocks == 0) {
        PyErr_SetString(PyExc_RuntimeError, "no block of a default device is open in this thread");
        return NULL;
    }
    state.device = state.outer[--state.nblocks];
    Py_RETURN_NONE;
}

bool py_add_default_device(PyObject *module)
{
    static PyMethodDef functions[] = {
        {"get_default_device", get_default_device, METH_NOARGS,
         "get_default_device($module)\n--\n\nThe device of new tensors unless another is given: the cpu, or what this thread has set."},
        {"set_default_device", set_default_device, METH_O,
         "set_default_device($module, device)\n--\n\nSets the device of new tensors for this thread; None: the cpu."},
        {NULL, NULL, 0, NULL},
    };
    return PyModule_AddFunctions(module, functions) == 0;
}
