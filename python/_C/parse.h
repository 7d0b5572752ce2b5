/* Declares the argument parser, which converts Python arguments by tables of signatures. */
#ifndef GRADUS_PYTHON_PARSE_H
#define GRADUS_PYTHON_PARSE_H

#include "signature.h"

/* Finds the first signature that fits the call and converts the arguments. `self` is NULL for a module function. Returns false with a TypeError if no
 * signature fits. If the function has one signature the text says what is wrong; if it has several the text lists them. */
bool py_parse(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
              struct py_arguments *ret_arguments);
/* Does what py_parse does for the argument tuple and keyword dict that tp_new of a class gets. `keywords` may be NULL. Returns false with
 * TypeError if the arguments do not fit. */
bool py_parse_tuple(const struct py_function *function, PyObject *args, PyObject *keywords, struct py_arguments *ret_arguments);
/* Frees the memory that py_parse allocated for the arguments. */
void py_arguments_done(struct py_arguments *arguments);

/* Converts the arguments like py_parse, for a hand-written function whose calls a __torch_function__ may take over. If the result is false the
 * call is over, and the caller returns *ret_result: NULL with an exception if the arguments do not fit, otherwise what __torch_function__
 * returned. */
bool py_accept(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
               struct py_arguments *ret_arguments, PyObject **ret_result);

#endif
