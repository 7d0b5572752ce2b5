/* Declares the argument parser, which converts Python arguments by tables of signatures. */
#ifndef GRADUS_PYTHON_PARSE_H
#define GRADUS_PYTHON_PARSE_H

#include "signature.h"

/* Finds the first signature that fits the call and converts the arguments. `self` is NULL for a module function. Returns false with a TypeError if
 * no signature fits; the message says what is wrong if the function has one signature, and lists the signatures if it has several. */
bool py_parse(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
              struct py_arguments *ret_arguments);
/* Works like py_parse, but takes the arguments in the form in which tp_new of a class gets them. `args` is a tuple; `keywords` is a dict or NULL.
 * Returns false with TypeError if the arguments do not fit. */
bool py_parse_tuple(const struct py_function *function, PyObject *args, PyObject *keywords, struct py_arguments *ret_arguments);
/* Frees the memory that py_parse allocated for the arguments. */
void py_arguments_done(struct py_arguments *arguments);

/* Converts the arguments like py_parse, for a hand-written function. Returns false if the call is over, because a __torch_function__ took it over
 * or the arguments do not fit. The caller then returns *ret_result, which is the result of __torch_function__, or NULL with an exception. */
bool py_accept(const struct py_function *function, PyObject *self, PyObject *const *args, Py_ssize_t nargs, PyObject *names,
               struct py_arguments *ret_arguments, PyObject **ret_result);

#endif
