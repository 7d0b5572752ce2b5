/* Declares the conversion of Python data to a tensor, which torch.as_tensor and the legacy constructors use. */
#ifndef GRADUS_PYTHON_AS_TENSOR_H
#define GRADUS_PYTHON_AS_TENSOR_H

#include "extension.h"

/* Returns a tensor with the elements of an array or of nested sequences. The tensor shares the memory of an array whose dtype is `dtype`; otherwise
 * it is a copy. */
grd_tensor *py_over_data(PyObject *object, grd_dtype dtype);

#endif
