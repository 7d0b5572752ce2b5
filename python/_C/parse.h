/* The argument parser, which tables of signatures drive. */
#ifndef GRADUS_PYTHON_PARSE_H
#define GRADUS_PYTHON_PARSE_H

#include "signature.h"

/* Finds the signature that fits and converts the arguments; `self` is NULL for a function. Otherwise returns false with a TypeError that says what is
 * wrong if there is one signature, and lists the signatures if there are several. */
bool py_parse(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
              struct py_arguments *ret_arguments);
/* py_parse for a tuple and a dict, which tp_new gets. The dict may be NULL. */
bool py_parse_tuple(const struct py_function *function, PyObject *args, PyObject *keywords, struct py_arguments *ret_arguments);
void py_arguments_done(struct py_arguments *arguments);

/* py_parse for a hand-written function whose calls a __torch_function__ may take over. False: the call is over and *ret_result is its result (NULL
 * with the exception), because the arguments do not fit or because a __torch_function__ answered. */
bool py_accept(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
               struct py_arguments *ret_arguments, PyObject **ret_result);

#endif
