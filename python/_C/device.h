/* Declares conversions between the library's devices and objects of the class torch.device, and the default device. */
#ifndef GRADUS_PYTHON_DEVICE_H
#define GRADUS_PYTHON_DEVICE_H

#include "extension.h"

/* Returns a new torch.device object for `device`. */
PyObject *py_device(grd_device device);
/* Converts a device object, a string such as "cpu:0", or an index. Returns 1 on success, 0 without an exception if `object` is none of these, and -1
 * with an exception if there is no such device. */
int py_as_device(PyObject *object, grd_device *ret_device);
/* Returns the default device that this thread has set; its type is GRD_DEVICE_NONE if the thread has set none. */
grd_device py_default_device(void);

#endif
