/* torch.device, and the default device. */
#ifndef GRADUS_PYTHON_DEVICE_H
#define GRADUS_PYTHON_DEVICE_H

#include "extension.h"

PyObject *py_device(grd_device device);
/* Reads a device object, a string or an index: 1 if the object is one of these, 0 with no exception if it is none, -1 with an exception if there is
 * no such device. */
int py_as_device(PyObject *object, grd_device *ret_device);
/* Returns the default device that this thread has set; its type is GRD_DEVICE_NONE if the thread has set none. */
grd_device py_default_device(void);

#endif
