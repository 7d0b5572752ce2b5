/* Work without the interpreter's lock (the GIL), and callbacks that take it. */
#ifndef GRADUS_PYTHON_GIL_H
#define GRADUS_PYTHON_GIL_H

#include "extension.h"

/* A call that reads more elements than this releases the GIL. */
enum { PY_MUCH = 32768 };

/* Begin and end work that touches no Python object: they release the GIL and take it again. The caller must own the tensors of the work, because
 * other threads may drop their objects meanwhile. */
PyThreadState *py_begin_work(void);
void py_end_work(PyThreadState *thread);

/* Begin and end a call of Python code from a callback of the library, on any thread: they take the GIL and release it again. */
struct py_callback {
    PyGILState_STATE state;
    int interrupted; /* how many pieces of this thread's work do not count while the callback runs */
};
struct py_callback py_begin_callback(void);
void py_end_callback(struct py_callback callback);

/* Begin and end a change of a tensor's memory or sizes. py_begin_change waits, without the GIL, until no other thread is between py_begin_work and
 * py_end_work. */
void py_begin_change(void);
void py_end_change(void);

/* For the library: drops a reference of a Python object, on any thread. Does nothing after the interpreter has ended. */
void py_release_object(void *object);

#endif
