/* Implements the class torch.Generator, and functions for the default generator, such as manual_seed. */
#include "generator.h"
#include "add_type.h"
#include "device.h"
#include "errors.h"
#include "tables.h"
#include "tensor_object.h"

#include <structmember.h>

struct generator {
    PyObject_HEAD grd_generator *generator; /* owned */
    PyObject *weakrefs;
};

static PyTypeObject *generator_type;
static PyObject *default_generator;

/* Seed of a new generator, as in PyTorch. */
static const uint64_t default_seed = 67280421310721;

static grd_generator *generator_of(PyObject *self)
{
    return ((struct generator *)self)->generator;
}

/* Returns a new Python object that takes over the reference to `generator`. If `generator` is NULL or an error is pending, raises the error. */
static PyObject *new_generator(PyTypeObject *type, grd_generator *generator)
{
    if (!grd_ok() || generator == NULL)
        return py_raise();
    PyObject *self = type->tp_alloc(type, 0);
    if (self == NULL)
        grd_generator_drop(generator);
    else
        ((struct generator *)self)->generator = generator;
    return self;
}

bool py_as_generator(PyObject *object, grd_generator **ret_generator)
{
    if (object != Py_None && Py_TYPE(object) != generator_type)
        return false;
    *ret_generator = object == Py_None ? NULL : generator_of(object);
    return true;
}

static PyObject *generator_new(PyTypeObject *type, PyObject *args, PyObject *named)
{
    static char *names[] = {"device", NULL};
    PyObject *given = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, named, "|O:Generator", names, &given))
        return NULL;
    grd_device device = GRD_CPU;
    const int is_device = given == Py_None ? 1 : py_as_device(given, &device);
    if (is_device < 0)
        return NULL;
    if (is_device == 0)
        return PyErr_Format(PyExc_TypeError, "Generator(): argument 'device' (position 1) must be torch.device, not %s",
                            Py_TYPE(given)->tp_name);
    if (device.type != GRD_DEVICE_CPU)
        return PyErr_Format(PyExc_RuntimeError, "Device type %s is not supported for torch.Generator() api.", grd_device_name(device));
    return new_generator(type, grd_generator_new(default_seed));
}

static void generator_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    if (((struct generator *)self)->weakrefs != NULL)
        PyObject_ClearWeakRefs(self);
    grd_generator_drop(generator_of(self));
    type->tp_free(self);
    Py_DECREF(type);
}

/* Converts an integer in the range of int64 or uint64 to a seed. Returns false with RuntimeError for anything else. */
static bool as_seed(PyObject *object, uint64_t *ret_seed)
{
    if (PyBool_Check(object) || !PyIndex_Check(object)) {
        PyErr_Format(PyExc_RuntimeError, "manual_seed expected a long, but got %s", Py_TYPE(object)->tp_name);
        return false;
    }
    PyObject *number = PyNumber_Index(object);
    if (number == NULL)
        return false;
    int overflow;
    const int64_t seed = PyLong_AsLongLongAndOverflow(number, &overflow);
    *ret_seed = overflow > 0 ? PyLong_AsUnsignedLongLong(number) : (uint64_t)seed;
    Py_DECREF(number);
    if (overflow < 0 || PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "Overflow when unpacking long long");
        return false;
    }
    return true;
}

static PyObject *generator_manual_seed(PyObject *self, PyObject *given)
{
    uint64_t seed;
    if (!as_seed(given, &seed))
        return NULL;
    grd_generator_seed(generator_of(self), seed);
    Py_INCREF(self);
    return self;
}

static PyObject *generator_seed(PyObject *self, PyObject *Py_UNUSED(none))
{
    return PyLong_FromUnsignedLongLong(grd_generator_seed_randomly(generator_of(self)));
}

static PyObject *generator_initial_seed(PyObject *self, PyObject *Py_UNUSED(none))
{
    return PyLong_FromUnsignedLongLong(grd_generator_initial_seed(generator_of(self)));
}

static PyObject *generator_get_state(PyObject *self, PyObject *Py_UNUSED(none))
{
    const int64_t size = (int64_t)grd_generator_state_size();
    void *state = PyMem_Malloc((size_t)size);
    if (state == NULL)
        return PyErr_NoMemory();
    grd_generator_get_state(generator_of(self), state);
    grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_from_data(state, grd_dims(size), GRD_UINT8);
    PyMem_Free(state);
    return py_take(scope, t);
}

static PyObject *generator_set_state(PyObject *self, PyObject *given)
{
    if (!py_is_tensor(given))
        return PyErr_Format(PyExc_TypeError, "expected a torch.ByteTensor, but got %s", Py_TYPE(given)->tp_name);
    grd_tensor *t = py_tensor_of(given);
    const int64_t size = (int64_t)grd_generator_state_size();
    if (grd_tensor_dtype(t) != GRD_UINT8 || grd_tensor_device(t).type != GRD_DEVICE_CPU)
        return PyErr_Format(PyExc_TypeError, "RNG state must be a torch.ByteTensor");
    if (grd_numel(t) != size)
        return PyErr_Format(PyExc_RuntimeError,
                            "Expected a CPUGeneratorImplState of size %lld but found the input RNG state size to be %lld", (long long)size,
                            (long long)grd_numel(t));
    void *state = PyMem_Malloc((size_t)size);
    if (state == NULL)
        return PyErr_NoMemory();
    grd_to_memory(t, state, GRD_UINT8);
    grd_generator_set_state(generator_of(self), state, (size_t)size);
    PyMem_Free(state);
    if (grd_error_get() == GRD_ERROR_VALUE) {
        grd_error_clear();
        return PyErr_Format(PyExc_RuntimeError, "Invalid mt19937 state");
    }
    if (!grd_ok())
        return py_raise();
    Py_INCREF(self);
    return self;
}

static PyObject *generator_clone_state(PyObject *self, PyObject *Py_UNUSED(none))
{
    PyObject *clone = new_generator(Py_TYPE(self), grd_generator_new(default_seed));
    PyObject *state = clone != NULL ? generator_get_state(self, NULL) : NULL;
    PyObject *same = state != NULL ? generator_set_state(clone, state) : NULL;
    Py_XDECREF(state);
    Py_XDECREF(clone);
    return same;
}

static PyObject *generator_refuse_offset(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(given))
{
    return PyErr_Format(PyExc_RuntimeError, "CPU Generator does not use offset");
}

static PyObject *generator_reduce(PyObject *self, PyObject *Py_UNUSED(none))
{
    PyObject *state = generator_get_state(self, NULL), *device = py_device(GRD_CPU);
    if (state == NULL || device == NULL) {
        Py_XDECREF(state);
        Py_XDECREF(device);
        return NULL;
    }
    return Py_BuildValue("O(N)(KON)", Py_TYPE(self), device, (unsigned long long)grd_generator_initial_seed(generator_of(self)), Py_None,
                         state);
}

static PyObject *generator_setstate(PyObject *self, PyObject *given)
{
    PyObject *seed, *offset, *state;
    uint64_t number;
    if (!PyTuple_Check(given) || !PyArg_ParseTuple(given, "OOO:__setstate__", &seed, &offset, &state))
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "__setstate__() expected a tuple, not %s", Py_TYPE(given)->tp_name);
    if (!as_seed(seed, &number))
        return NULL;
    grd_generator_seed(generator_of(self), number);
    PyObject *same = generator_set_state(self, state);
    Py_XDECREF(same);
    if (same == NULL)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *generator_device(PyObject *Py_UNUSED(self), void *Py_UNUSED(closure))
{
    return py_device(GRD_CPU);
}

static PyMethodDef generator_methods[] = {
    {"manual_seed", generator_manual_seed, METH_O,
     "manual_seed($self, seed)\n--\n\nStarts the sequence that belongs to a seed of 64 bits; a negative one is its 64 bits.\n"
     "ValueError when it needs more."},
    {"seed", generator_seed, METH_NOARGS, "seed($self)\n--\n\nSeeds with a number nobody can foresee, and returns it."},
    {"initial_seed", generator_initial_seed, METH_NOARGS, "initial_seed($self)\n--\n\nThe seed the sequence started from."},
    {"get_state", generator_get_state, METH_NOARGS,
     "get_state($self)\n--\n\nWhere in its sequence the generator is: a uint8 tensor of 5056 elements, as PyTorch's."},
    {"set_state", generator_set_state, METH_O,
     "set_state($self, state)\n--\n\nGoes on where get_state() was called. TypeError unless `state` is a uint8 tensor; RuntimeError when "
     "it is no state."},
    {"clone_state", generator_clone_state, METH_NOARGS,
     "clone_state($self)\n--\n\nA new generator at the same place of the same sequence."},
    {"get_offset", generator_refuse_offset, METH_NOARGS, "get_offset($self)\n--\n\nRuntimeError: generators on the cpu have no offset."},
    {"set_offset", generator_refuse_offset, METH_O,
     "set_offset($self, offset, /)\n--\n\nRuntimeError: generators on the cpu have no offset."},
    {"__reduce__", generator_reduce, METH_NOARGS, "How pickle makes the generator again."},
    {"__setstate__", generator_setstate, METH_O, "Restores what __reduce__ gave."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef generator_properties[] = {
    {"device", generator_device, NULL, "Where it makes numbers: the cpu.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef generator_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct generator, weakrefs), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot generator_slots[] = {
    {Py_tp_doc, "Generator(device='cpu')\n--\n\nA sequence of random numbers, mt19937, the same as PyTorch's for the same seed."},
    {Py_tp_new, generator_new},
    {Py_tp_dealloc, generator_dealloc},
    {Py_tp_methods, generator_methods},
    {Py_tp_getset, generator_properties},
    {Py_tp_members, generator_members},
    {0, NULL},
};

static PyType_Spec generator_spec = {"gradus.Generator", sizeof(struct generator), 0, Py_TPFLAGS_DEFAULT, generator_slots};

/* ---- Functions of the default generator -------------------------------------------------------------------------- */

static PyObject *manual_seed(PyObject *Py_UNUSED(module), PyObject *given)
{
    PyObject *number = PyNumber_Long(given);
    PyObject *generator = number != NULL ? generator_manual_seed(default_generator, number) : NULL;
    Py_XDECREF(number);
    return generator;
}

static PyObject *seed(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return generator_seed(default_generator, NULL);
}

static PyObject *initial_seed(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return generator_initial_seed(default_generator, NULL);
}

static PyObject *get_rng_state(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(none))
{
    return generator_get_state(default_generator, NULL);
}

static PyObject *set_rng_state(PyObject *Py_UNUSED(module), PyObject *state)
{
    PyObject *generator = generator_set_state(default_generator, state);
    Py_XDECREF(generator);
    if (generator == NULL)
        return NULL;
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    {"manual_seed", manual_seed, METH_O,
     "manual_seed($module, seed)\n--\n\nSeeds the default generator and returns it; the seed may be anything int() takes.\n\n"
     ">>> import gradus as torch\n>>> torch.manual_seed(0).initial_seed()\n0"},
    {"seed", seed, METH_NOARGS, "seed($module)\n--\n\nSeeds the default generator with a number nobody can foresee, and returns it."},
    {"initial_seed", initial_seed, METH_NOARGS, "initial_seed($module)\n--\n\nThe seed of the default generator."},
    {"get_rng_state", get_rng_state, METH_NOARGS,
     "get_rng_state($module)\n--\n\nThe state of the default generator: see Generator.get_state."},
    {"set_rng_state", set_rng_state, METH_O,
     "set_rng_state($module, new_state)\n--\n\nSets the state of the default generator: see Generator.set_state."},
    {NULL, NULL, 0, NULL},
};

bool py_add_generator(PyObject *module)
{
    generator_type = py_add_type(module, &generator_spec, NULL);
    if (generator_type == NULL)
        return false;
    default_generator = new_generator(generator_type, grd_generator_keep(grd_generator_default()));
    Py_XINCREF(default_generator);
    return py_add(module, "default_generator", default_generator) && PyModule_AddFunctions(module, functions) == 0;
}
