/* Long work without the interpreter's lock, and what may not happen meanwhile.
 *
 * Operators over many elements and backward passes let other threads run Python code. Python code that gives a tensor other memory or another
 * size (`t.data = …`, resize_, detach_) then waits until no such work is under way, since that may read the tensor at any time.
 * Work that calls back into Python, for a hook or a custom function, looks at its tensors anew afterwards: it does not count meanwhile.
 * Invariant: whoever waits holds neither the interpreter's lock nor what others wait for, so there is no deadlock. */
#include "gil.h"
#include "tables.h"

#include <pthread.h>

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int working; /* pieces of work under way */
    int parked;  /* of those, by threads that wait to change a tensor: from a finalizer that runs in the middle of their work */
    int waiting; /* threads that wait to change a tensor, or do */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Thread_local int own; /* pieces of work of this thread, one inside the other */

/* Adds to the work under way. A thread that is in the middle of other work does not wait. */
static void add_work(int n)
{
    pthread_mutex_lock(&state.lock);
    while (state.waiting > 0 && own == 0)
        pthread_cond_wait(&state.changed, &state.lock);
    state.working += n;
    pthread_mutex_unlock(&state.lock);
    own += n;
}

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

/* Under the lock. */
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

/* The child has one thread. */
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
