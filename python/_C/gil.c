/* Makes code that changes the memory or sizes of a tensor wait for work that runs without the GIL.
 *
 * Operators over many elements and backward passes release the GIL. Code that changes the memory or the sizes of a tensor (`t.data = ...`, resize_,
 * detach_) waits until no thread runs operators without the GIL, because operators may read any tensor. A thread that calls back into Python, for a
 * hook or a custom function, does not count during the callback, because it reads the sizes and memory of its tensors again afterwards.
 *
 * Invariant: a thread that waits in this file holds neither the GIL nor anything else that other threads wait for, so there is no deadlock. */
#include "gil.h"
#include "tables.h"

#include <pthread.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int working; /* number of open py_begin_work calls of all threads (calls whose py_end_work has not run yet) */
    int parked;  /* number of open py_begin_work calls whose thread is itself between py_begin_change and py_end_change, e.g. because
                  * a finalizer runs during the call */
    int waiting; /* number of threads that wait in py_begin_change or are between py_begin_change and py_end_change */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Thread_local int own; /* number of open, nested py_begin_work calls of this thread */

/* Adds n to the counts of open py_begin_work calls. If this thread has no open call yet, first waits until no other thread changes a tensor. A thread
 * with an open call must not wait, because the changing thread may be waiting for that call to end. */
static void add_work(int n)
{
    pthread_mutex_lock(&state.lock);
    while (state.waiting > 0 && own == 0)
        pthread_cond_wait(&state.changed, &state.lock);
    state.working += n;
    pthread_mutex_unlock(&state.lock);
    own += n;
}

/* Subtracts n from the counts of open py_begin_work calls, and wakes threads that wait to change a tensor. */
static void take_work_away(int n)
{
    own -= n;
    pthread_mutex_lock(&state.lock);
    state.working -= n;
    if (state.waiting > 0)
        pthread_cond_broadcast(&state.changed);
    pthread_mutex_unlock(&state.lock);
}

PyThreadState *py_begin_work(void)
{
    PyThreadState *thread = PyEval_SaveThread();
    add_work(1);
    return thread;
}

void py_end_work(PyThreadState *thread)
{
    take_work_away(1);
    PyEval_RestoreThread(thread);
}

struct py_callback py_begin_callback(void)
{
    const int interrupted = own;
    if (interrupted > 0)
        take_work_away(interrupted);
    return (struct py_callback){PyGILState_Ensure(), interrupted};
}

void py_end_callback(struct py_callback callback)
{
    PyGILState_Release(callback.state);
    if (callback.interrupted > 0)
        add_work(callback.interrupted);
}

void py_release_object(void *object)
{
    if (!Py_IsInitialized())
        return;
    const PyGILState_STATE state_of_gil = PyGILState_Ensure();
    Py_DECREF((PyObject *)object);
    PyGILState_Release(state_of_gil);
}

/* True if some thread runs operators without the GIL. Such a thread has called py_begin_work and not yet py_end_work, and it is not between
 * py_begin_change and py_end_change. The caller holds state.lock. */
static bool others_work(void)
{
    return state.working > state.parked;
}

void py_begin_change(void)
{
    pthread_mutex_lock(&state.lock);
    state.waiting++;
    state.parked += own;
    if (own > 0)
        pthread_cond_broadcast(&state.changed);
    while (others_work()) {
        pthread_mutex_unlock(&state.lock);
        PyThreadState *thread = PyEval_SaveThread();
        pthread_mutex_lock(&state.lock);
        while (others_work())
            pthread_cond_wait(&state.changed, &state.lock);
        pthread_mutex_unlock(&state.lock);
        PyEval_RestoreThread(thread);
        pthread_mutex_lock(&state.lock);
    }
    pthread_mutex_unlock(&state.lock);
}

void py_end_change(void)
{
    pthread_mutex_lock(&state.lock);
    state.waiting--;
    state.parked -= own;
    pthread_cond_broadcast(&state.changed);
    pthread_mutex_unlock(&state.lock);
}

/* Resets the state in the child process after fork(), where the other threads no longer exist. */
static void start_anew(void)
{
    pthread_mutex_init(&state.lock, NULL);
    pthread_cond_init(&state.changed, NULL);
    state.working = own;
    state.parked = state.waiting = 0;
}

bool py_add_work(PyObject *module)
{
    (void)module;
    if (pthread_atfork(NULL, NULL, start_anew) == 0)
        return true;
    PyErr_NoMemory();
    return false;
}
