/* Declares the functions that release the GIL for long work and take it in callbacks. */
#ifndef GRADUS_PYTHON_GIL_H
#define GRADUS_PYTHON_GIL_H

#include "extension.h"

/* A call that reads at least this many elements releases the GIL. Smaller calls are too short to gain from releasing it. */
enum { PY_MUCH = 32768 };

/* py_begin_work releases the GIL and py_end_work takes it again. Between the two calls the thread must not use Python objects, and it must own the
 * tensors that it uses, because other threads may free the Python objects of these tensors. */
PyThreadState *py_begin_work(void);
void py_end_work(PyThreadState *thread);

/* py_begin_callback takes the GIL so that a callback of the library can call Python code, on any thread. py_end_callback releases it. */
struct py_callback {
    PyGILState_STATE state;
    /* number of open py_begin_work calls of this thread; they do not count during the callback, so py_begin_change does not wait for them */
    int interrupted;
};
struct py_callback py_begin_callback(void);
void py_end_callback(struct py_callback callback);

/* The caller changes a tensor's memory or sizes between these two calls. py_begin_change waits, without the GIL, until no other thread is between
 * py_begin_work and py_end_work. */
void py_begin_change(void);
void py_end_change(void);

/* Drops a reference to a Python object, on any thread, with or without the GIL. Does nothing after the interpreter has been finalized. The library
 * calls this function to release the contexts of hooks. */
void py_release_object(void *object);

#endif
