/* Tables of functions, methods and properties, which module.c and tensor_type.c add to the module and to the class Tensor. */
#ifndef GRADUS_PYTHON_TABLES_H
#define GRADUS_PYTHON_TABLES_H

#include "extension.h"

/* Generated functions. Each table is empty until the function NAME_fill has been called. */
extern PyMethodDef py_functions[];         /* functions of the module gradus._C */
extern PyMethodDef py_nn_functions[];      /* functions of the submodule nn */
extern PyMethodDef py_linalg_functions[];  /* functions of the submodule linalg */
extern PyMethodDef py_special_functions[]; /* functions of the submodule special */
extern PyMethodDef py_fft_functions[];     /* functions of the submodule fft */
extern PyMethodDef py_windows_functions[]; /* functions of the submodule windows */
extern PyMethodDef py_methods[];           /* methods of Tensor */
void py_functions_fill(void);
void py_nn_functions_fill(void);
void py_linalg_functions_fill(void);
void py_special_functions_fill(void);
void py_fft_functions_fill(void);
void py_windows_functions_fill(void);
void py_methods_fill(void);

/* Hand-written methods and properties of Tensor. */
extern PyMethodDef py_tensor_override_methods[]; /* __torch_function__ (override.c) */
extern PyMethodDef py_tensor_methods[];          /* in tensor_methods.c */
extern PyMethodDef py_numpy_methods[];           /* numpy() and the methods that NumPy calls, e.g. __array__ (numpy.c) */
extern PyMethodDef py_dlpack_methods[];          /* in dlpack.c */
extern PyMethodDef py_storage_methods[];         /* in storage.c */
extern PyMethodDef py_subclass_methods[];        /* as_subclass and _make_subclass (subclass.c) */
extern PyMethodDef py_tensor_autograd_methods[]; /* backward and hooks (autograd.c) */
extern PyGetSetDef py_tensor_properties[];       /* in properties.c */

/* Tables of hand-written functions of the module gradus._C, one for each file. */
extern PyMethodDef py_as_tensor_functions[], py_legacy_functions[], py_buffer_functions[], py_numpy_functions[], py_dlpack_functions[],
    py_storage_functions[], py_shared_storage_functions[], py_query_functions[], py_variadic_functions[], py_memory_stats_functions[],
    py_hook_functions[], py_autocast_functions[], py_transform_functions[], py_picture_functions[];

/* Each of these functions adds the classes and functions of one file to the module. py_add_tensor creates the class Tensor, so functions
 * that need this class must be called later. */
typedef bool py_adder(PyObject *module);
py_adder py_add_errors, py_add_overrides, py_add_dtypes, py_add_device, py_add_size, py_add_finfo, py_add_tensor, py_add_generator,
    py_add_autograd, py_add_node, py_add_custom_context, py_add_custom_function, py_add_grad_modes, py_add_storage, py_add_settings,
    py_add_plugins, py_add_safetensors, py_add_nn_module, py_add_work;

#endif
