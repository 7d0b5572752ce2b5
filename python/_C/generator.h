/* torch.Generator. */
#ifndef GRADUS_PYTHON_GENERATOR_H
#define GRADUS_PYTHON_GENERATOR_H

#include "extension.h"

/* Reads a generator; None gives NULL, which stands for the default generator. False, with no exception, if the object is neither. */
bool py_as_generator(PyObject *object, grd_generator **ret_generator);

#endif
