/* What the files add to the module and to the class Tensor: module.c and tensor_type.c collect it. */
#ifndef GRADUS_PYTHON_TABLES_H
#define GRADUS_PYTHON_TABLES_H

#include "extension.h"

/* Generated functions; each table is empty until its …_fill is called. */
extern PyMethodDef py_functions[];         /* of the module */
extern PyMethodDef py_nn_functions[];      /* of the module's nn */
extern PyMethodDef py_linalg_functions[];  /* of the module's linalg */
extern PyMethodDef py_special_functions[]; /* of the module's special */
extern PyMethodDef py_fft_functions[];     /* of the module's fft */
extern PyMethodDef py_windows_functions[]; /* of the module's windows */
extern PyMethodDef py_methods[];           /* of Tensor */
void py_functions_fill(void);
void py_nn_functions_fill(void);
void py_linalg_functions_fill(void);
void py_special_functions_fill(void);
void py_fft_functions_fill(void);
void py_windows_functions_fill(void);
void py_methods_fill(void);

/* Hand-written methods and properties of Tensor. */
extern PyMethodDef py_tensor_override_methods[]; /* __torch_function__ (override.c) */
extern PyMethodDef py_tensor_methods[];          /* tensor_methods.c */
extern PyMethodDef py_numpy_methods[];           /* numpy() and what NumPy calls (numpy.c) */
extern PyMethodDef py_dlpack_methods[];          /* dlpack.c */
extern PyMethodDef py_storage_methods[];         /* storage.c */
extern PyMethodDef py_subclass_methods[];        /* as_subclass and _make_subclass (subclass.c) */
extern PyMethodDef py_tensor_autograd_methods[]; /* backward and hooks (autograd.c) */
extern PyGetSetDef py_tensor_properties[];       /* properties.c */

/* Hand-written functions of the module. */
extern PyMethodDef py_as_tensor_functions[], py_legacy_functions[], py_buffer_functions[], py_numpy_functions[], py_dlpack_functions[],
    py_storage_functions[], py_shared_storage_functions[], py_query_functions[], py_variadic_functions[], py_memory_stats_functions[],
    py_hook_functions[], py_autocast_functions[], py_transform_functions[], py_picture_functions[];

/* Each adds the names of its file to the module. py_add_tensor comes before those that make subclasses of Tensor or look at its class. */
typedef bool py_adder(PyObject *module);
py_adder py_add_errors, py_add_overrides, py_add_dtypes, py_add_device, py_add_size, py_add_finfo, py_add_tensor, py_add_generator,
    py_add_autograd, py_add_node, py_add_custom_context, py_add_custom_function, py_add_grad_modes, py_add_storage, py_add_settings,
    py_add_plugins, py_add_safetensors, py_add_nn_module, py_add_work;

#endif
