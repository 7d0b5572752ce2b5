/* Declares the conversion of torch.Generator objects. */
#ifndef GRADUS_PYTHON_GENERATOR_H
#define GRADUS_PYTHON_GENERATOR_H

#include "extension.h"

/* Converts a torch.Generator object. None gives NULL, which stands for the default generator. Returns false, without an exception, if `object` is
 * neither. */
bool py_as_generator(PyObject *object, grd_generator **ret_generator);

#endif
