/* What the files of value types, properties and hand-written functions share: everything the tables cannot say. */
#ifndef GRADUS_METHODS_H
#define GRADUS_METHODS_H

#include "extension.h"
#include "number.h"

/* A function of the module or a method written by hand. */
typedef PyObject *py_entry(PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names);

/* A row of a method table for a py_entry. */
#define PY_ENTRY(name, entry, doc)                                                                                                         \
    {                                                                                                                                      \
        (name), (PyCFunction)(void (*)(void))(entry), METH_FASTCALL | METH_KEYWORDS, (doc)                                                 \
    }

/* Parses the arguments of a hand-written function. False: the call is over and *ret_result is what to return, because the arguments do not
 * fit or because one of them has a __torch_function__ of its own. True: py_arguments_done must follow. */
bool py_accept(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
               struct py_arguments *ret_arguments, PyObject **ret_result);

/* The value of an argument, or what stands for it when it was left out or None. */
static inline bool py_bool_or(const struct py_arguments *arguments, int i, bool otherwise)
{
    return arguments->values[i].kind == GRD_KIND_BOOL ? arguments->values[i].v.boolean : otherwise;
}

static inline double py_float_or(const struct py_arguments *arguments, int i, double otherwise)
{
    return arguments->values[i].kind == GRD_KIND_FLOAT ? arguments->values[i].v.number : otherwise;
}

static inline grd_dtype py_dtype_or(const struct py_arguments *arguments, int i, grd_dtype otherwise)
{
    return arguments->values[i].kind == GRD_KIND_DTYPE ? arguments->values[i].v.dtype : otherwise;
}

static inline grd_device py_device_or(const struct py_arguments *arguments, int i, grd_device otherwise)
{
    return arguments->values[i].kind == GRD_KIND_DEVICE ? arguments->values[i].v.device : otherwise;
}

/* Adds an object to the module under a name; takes the reference, NULL is an error that is set already. */
bool py_add(PyObject *module, const char *name, PyObject *object);
/* Makes a type and adds it to the module; NULL on failure. Borrowed: the module keeps it, and nothing takes it out again. */
PyTypeObject *py_add_type(PyObject *module, PyType_Spec *spec, PyObject *bases);
/* tp_dealloc of objects that own nothing. */
void py_free_plain(PyObject *self);

/* ---- Value types: each adds its names ----------------------------------------------------------------------------------------- */
bool py_add_device(PyObject *module);
bool py_add_size(PyObject *module);
bool py_add_info(PyObject *module);
bool py_add_queries(PyObject *module);
bool py_add_shapes(PyObject *module);
bool py_add_plugins(PyObject *module);
bool py_add_allocator(PyObject *module);
bool py_add_files(PyObject *module);
bool py_add_default_device(PyObject *module);
/* Methods of torch.device that make it a context (default_device.c). */
PyObject *py_enter_device(PyObject *self, PyObject *none);
PyObject *py_exit_device(PyObject *self, PyObject *args);
/* The module, borrowed; it lives as long as the process. */
extern PyObject *py_module;
/* "Float" of torch.FloatTensor. */
const char *py_dtype_tensor_name(grd_dtype dtype);
/* True if the object is a dtype object; types of Python, which py_as_dtype takes, are not. */
bool py_is_dtype(PyObject *object);
bool py_dtype_is_signed(grd_dtype dtype);
bool py_dtype_is_quantized(grd_dtype dtype);
/* The number of dimensions a memory format is for, 0 for any. Of an object for which py_as_memory_format holds. */
int py_memory_format_ndim(PyObject *object);

/* ---- Elements (scalar.c) ---------------------------------------------------------------------------------------------------- */
/* The only element of a tensor. */
PyObject *py_item(grd_tensor *t);

/* ---- Methods that have files of their own (the table is in tensor_methods.c) --------------------------------------------------------- */
/* list.c, text.c */
PyObject *py_method_tolist(PyObject *self, PyObject *none);
PyObject *py_method_apply_(PyObject *self, PyObject *function);
PyObject *py_method_map_(PyObject *self, PyObject *args);
PyObject *py_method_map2_(PyObject *self, PyObject *args);
PyObject *py_method_format(PyObject *self, PyObject *format);
PyObject *py_draw_strides(PyObject *module, PyObject *t);
/* convert.c */
py_entry py_method_to, py_method_type, py_method_type_as, py_method_cpu, py_method_cuda;
py_entry py_method_bool, py_method_byte, py_method_char, py_method_short, py_method_int, py_method_long, py_method_half, py_method_bfloat16,
    py_method_float, py_method_double, py_method_chalf, py_method_cfloat, py_method_cdouble;
/* create.c */
py_entry py_method_new_tensor, py_method_new_empty, py_method_new_empty_strided, py_method_new_zeros, py_method_new_ones,
    py_method_new_full;
/* legacy.c */
PyObject *py_method_new(PyObject *self, PyObject *args, PyObject *keywords);
/* query.c */
py_entry py_method_equal, py_method_allclose, py_method_is_same_size;

#endif
