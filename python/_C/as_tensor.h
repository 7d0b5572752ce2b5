/* torch.as_tensor for the legacy constructors. */
#ifndef GRADUS_PYTHON_AS_TENSOR_H
#define GRADUS_PYTHON_AS_TENSOR_H

#include "extension.h"

/* Returns a tensor of an array or of nested sequences. It lies over the memory of an array that has the dtype. */
grd_tensor *py_over_data(PyObject *object, grd_dtype dtype);

#endif
