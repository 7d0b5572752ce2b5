/* What the files of the exchange with the rest of Python share: indexing, making tensors of Python data, NumPy, DLPack, storages, copies.
 *
 * Convention: an inner function that returns a tensor returns a pooled one, or NULL with either a Python exception set or an error of the library
 * pending; the entry that opened the scope ends with py_take, or with py_abandon, which raises either. */
#ifndef GRADUS_INTEROP_H
#define GRADUS_INTEROP_H

#include "extension.h"

/* ---- Entries (interop.c) -------------------------------------------------------------------------------------------------------- */
/* Closes the scope; always NULL, with the exception that was set, or the library's error as one. */
PyObject *py_abandon(grd_scope scope);

/* A function whose arguments are not those of an operator: names in order, of which the first `positional` may be given by position and the first
 * `required` must be given. */
struct py_simple {
    const char *name;
    const char *const *parameters; /* ends with NULL */
    int positional, required;
};
enum { PY_SIMPLE_MAX = 8 };
/* Writes what was given for each parameter, borrowed, or NULL. False with TypeError. */
bool py_arrange(const struct py_simple *function, PyObject *const *args, Py_ssize_t nargs, PyObject *names, PyObject **ret_objects);
/* Arguments in which NULL and None mean: not given. False with an exception. */
bool py_dtype_argument(const char *function, PyObject *object, grd_dtype *ret_dtype);
bool py_device_argument(const char *function, PyObject *object, grd_device *ret_device);
bool py_bool_argument(const char *function, const char *name, PyObject *object, bool *ret_value);
/* The sizes of a sequence of integers. False with TypeError, or ValueError beyond GRD_MAX_DIMS. */
bool py_dims_argument(const char *function, const char *name, PyObject *object, int64_t *ret_values, int64_t *ret_n);

bool py_add_storage(PyObject *module);

/* ---- Memory of others (memory.c) ------------------------------------------------------------------------------------------------- */
/* A tensor over memory of another owner, with strides of any sign in elements; release(context) is called when the last tensor over it goes, and
 * at once on failure. */
grd_tensor *py_over_memory(void *data, grd_dims sizes, grd_dims strides, grd_dtype dtype, void (*release)(void *context), void *context);
/* True if the object shows its memory by __array_struct__ or __array_interface__, as NumPy's arrays and scalars do. Sets no exception. */
bool py_is_array(PyObject *object);
/* A tensor over the memory of such an object, which it keeps alive. */
grd_tensor *py_over_array(PyObject *object, bool *ret_writable);
/* The same over an object with the buffer protocol, as a row of elements; count -1: all of them. */
grd_tensor *py_over_buffer(PyObject *object, grd_dtype dtype, Py_ssize_t count, Py_ssize_t offset);
/* The warning that memory which must not be written to is now a tensor's. False when it was made an exception. */
bool py_warn_not_writable(const char *what);
/* True if buffers, and so NumPy, know the dtype. */
bool py_has_buffer_format(grd_dtype dtype);

/* ---- Data (sequence.c, construct.c) --------------------------------------------------------------------------------------------------- */
/* A new tensor of the numbers in nested sequences, which may hold tensors and arrays, too. NONE: the dtype that they suggest. */
grd_tensor *py_from_sequence(PyObject *object, grd_dtype dtype);
/* A new tensor of anything that torch.tensor takes, but for tensors. */
grd_tensor *py_from_data(PyObject *object, grd_dtype dtype);
/* As py_from_data, but over the memory of an array that has the dtype. */
grd_tensor *py_over_data(PyObject *object, grd_dtype dtype);

/* ---- DLPack (dlpack.c) --------------------------------------------------------------------------------------------------------------- */
/* True if the object can hand its data over by DLPack. */
bool py_has_dlpack(PyObject *object);
/* Returns the tensor that it hands over; `copy`: -1 where it is needed, 0 never, 1 always. */
grd_tensor *py_over_dlpack(PyObject *object, int copy);
/* True if the object is a capsule that nobody has taken; and the tensor over what it holds, which the capsule gives away. */
bool py_is_dlpack(PyObject *object);
grd_tensor *py_take_dlpack(PyObject *capsule, int copy);
/* The C exchange API in its capsule: Tensor.__dlpack_c_exchange_api__. */
PyObject *py_exchange_capsule(void);

/* ---- Storages (storage.c) --------------------------------------------------------------------------------------------------------------- */
/* The storage object of a tensor, the one it has already where it has one. */
PyObject *py_storage_of(grd_tensor *t);
/* The bytes of a storage object as a tensor, or NULL with no exception when it is none. Borrowed. */
grd_tensor *py_storage_bytes(PyObject *object);
/* Gives the object the length of its storage, whose number of bytes has changed. False with the error of the library pending. */
bool py_storage_fit(PyObject *object);

/* ---- Functions of the module; each table ends with an entry of zeros ---------------------------------------------------------------------------------------------- */
extern PyMethodDef py_construct_functions[], py_legacy_functions[], py_memory_functions[], py_numpy_functions[], py_dlpack_functions[],
    py_storage_functions[], py_share_functions[];

#endif
