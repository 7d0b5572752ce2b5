/* How hand-written functions and methods take their arguments. */
#include "methods.h"

bool py_accept(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
               struct py_arguments *ret_arguments, PyObject **ret_result)
{
    *ret_result = NULL;
    if (!py_parse(function, self, args, nargs, names, ret_arguments))
        return false;
    if (PY_LIKELY(ret_arguments->noverloaded == 0 && !py_is_mode_active()))
        return true;
    *ret_result = py_call_overloaded(function, ret_arguments, self, args, nargs, names);
    py_arguments_done(ret_arguments);
    return false;
}
