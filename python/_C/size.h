/* torch.Size. */
#ifndef GRADUS_PYTHON_SIZE_H
#define GRADUS_PYTHON_SIZE_H

#include "extension.h"

PyObject *py_size(grd_dims dims);

#endif
