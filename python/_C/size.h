/* Declares the function that creates a torch.Size. */
#ifndef GRADUS_PYTHON_SIZE_H
#define GRADUS_PYTHON_SIZE_H

#include "extension.h"

/* Returns a new torch.Size with the sizes `dims`. */
PyObject *py_size(grd_dims dims);

#endif
