/* Converts errors of the library into Python exceptions. An exception raised in a callback passes through the library unchanged. */
#include "errors.h"
#include "tables.h"

/* The exception that a callback raised on this thread, or NULL. The call of the library that ran the callback fails, and py_raise then raises this
 * exception. */
static _Thread_local PyObject *carried;

void py_carry(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value == NULL)
        return;
    if (traceback != NULL)
        PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    Py_XSETREF(carried, value);
    grd_error_set(GRD_ERROR_RUNTIME, "a Python function raised an exception");
}

void py_warn(const char *text)
{
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *before = carried; /* the exception that a failed callback left for py_raise; hidden here, because showing the warning runs
                                 * Python code that may replace it */
    carried = NULL;
    if (PyErr_WarnEx(PyExc_UserWarning, text, 1) < 0) {
        Py_CLEAR(before);
        py_carry();
    } else {
        carried = before;
    }
    PyGILState_Release(state);
}

static PyObject *linalg_error; /* torch.linalg.LinAlgError */

bool py_add_errors(PyObject *module)
{
    linalg_error = PyErr_NewExceptionWithDoc("torch._C._LinAlgError", "A matrix is not of the kind that a decomposition needs.",
                                             PyExc_RuntimeError, NULL);
    return linalg_error != NULL && PyModule_AddObjectRef(module, "_LinAlgError", linalg_error) == 0;
}

static PyObject *class_of(grd_error_code code)
{
    switch (code) {
    case GRD_ERROR_VALUE:
        return PyExc_ValueError;
    case GRD_ERROR_TYPE:
        return PyExc_TypeError;
    case GRD_ERROR_INDEX:
        return PyExc_IndexError;
    case GRD_ERROR_NOT_IMPLEMENTED:
        return PyExc_NotImplementedError;
    case GRD_ERROR_MEMORY:
        return PyExc_MemoryError;
    case GRD_ERROR_IO:
        return PyExc_OSError;
    case GRD_ERROR_LINALG:
        return linalg_error;
    default:
        return PyExc_RuntimeError;
    }
}

/* Adds the text `note` to the exception that is set, as __notes__. On failure the exception stays unchanged. */
static void add_note(PyObject *note)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
#if PY_VERSION_HEX >= 0x030B0000
    static PyObject *name; /* interned once, because the method cache keeps each new name object */
    if (name == NULL)
        name = PyUnicode_InternFromString("add_note");
    PyObject *added = value != NULL && note != NULL && name != NULL ? PyObject_CallMethodOneArg(value, name, note) : NULL;
#else
    PyObject *added = note != NULL ? Py_BuildValue("[O]", note) : NULL;
    if (added != NULL && PyObject_SetAttrString(value, "__notes__", added) < 0)
        Py_CLEAR(added);
#endif
    if (added == NULL)
        PyErr_Clear();
    Py_XDECREF(added);
    PyErr_Restore(type, value, traceback);
}

/* Sets an exception of `class`. Bytes of the message that are not UTF-8, e.g. in a quoted path, are replaced. If `system` is a nonzero errno, OSError
 * becomes the matching subclass, such as FileNotFoundError. */
static void set_exception(PyObject *class, const char *message, int system)
{
    PyObject *text = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
    PyObject *value = text == NULL ? NULL : system != 0 ? Py_BuildValue("(iO)", system, text) : Py_NewRef(text);
    if (value != NULL)
        PyErr_SetObject(class, value);
    Py_XDECREF(value);
    Py_XDECREF(text);
}

/* Raises the pending error with PyTorch's text. Adds a note with the names of the operators in which the error was raised. */
static void raise_pending(void)
{
    const char *message = grd_error_message(), *text = grd_error_text();
    set_exception(class_of(grd_error_get()), text, grd_error_system());
    if (text > message) {
        PyObject *names = PyUnicode_FromStringAndSize(message, text - message - (Py_ssize_t)strlen(": "));
        PyObject *note = names != NULL ? PyUnicode_FromFormat("Raised in %U", names) : NULL;
        add_note(note);
        Py_XDECREF(names);
        Py_XDECREF(note);
    }
}

PyObject *py_raise(void)
{
    PyObject *value = carried;
    carried = NULL;
    if (value != NULL) {
        PyErr_SetObject((PyObject *)Py_TYPE(value), value);
        Py_DECREF(value);
    } else {
        raise_pending();
    }
    grd_error_clear();
    return NULL;
}

PyObject *py_abandon(grd_scope scope)
{
    grd_scope_close(scope);
    return grd_ok() ? NULL : py_raise();
}

bool py_has_stack(void)
{
    if (PY_LIKELY(grd_stack_left() > 0))
        return true;
    PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded: the stack of this thread is used up");
    return false;
}
