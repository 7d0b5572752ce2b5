/* Runs operators for the operator matrix, i.e. the tests of every operator with every dtype, layout and device. These functions make the arguments
 * of a call from a sample in the schema, and run the operator on them. The programs that include this header check the results. */
#ifndef TEST_CALL_H
#define TEST_CALL_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h uses some of the headers above without including them. */
#include <cmocka.h>

#include "matrix.h"

enum layout { CONTIGUOUS, TRANSPOSED, GAPS, NEGATIVE, LAYOUTS };

enum { MAX_ARGS = GRD_MAX_ARGS, MAX_TENSORS = 16, MAX_VALUES = 1 << 18, MAX_RESULTS = 16 };

struct setting {
    grd_dtype dtype;     /* the dtype of TEST_FLOATS and TEST_CONSTANTS arguments */
    grd_dtype values_as; /* elements are rounded to this dtype first, so that calls with different dtypes can have equal elements */
    enum layout layout;
    grd_device device;
    bool requires_grad;
};

/* The arguments of a call for grd_call. `lists` holds the tensors of list arguments. `differentiable` holds the tensors that may require a
 * gradient (kind TEST_FLOATS), including those in `lists`. */
struct call {
    const struct test_case *test;
    const grd_op *op;
    grd_value args[MAX_ARGS];
    grd_tensor *lists[MAX_ARGS][MAX_TENSORS];
    grd_tensor *differentiable[MAX_TENSORS];
    int ndifferentiable;
};

struct results {
    grd_tensor *tensors[MAX_RESULTS];
    int n;
};

/* Returns a text for failure messages: the sample, the setting and the command that reproduces the failure. The text lies in a static buffer. */
const char *place(const struct test_case *test, const struct setting *s);

bool is_unsigned(grd_dtype dtype);
bool has_form(const grd_op *op, grd_form form);
bool is_differentiable(grd_tensor *t);

grd_tensor *with_layout(grd_tensor *t, enum layout layout);
/* Stores the operator and new arguments in *call. With the same `test` and `s` the arguments always have the same elements. */
void make_call(struct call *call, const struct test_case *test, const struct setting *s);
/* Runs the operator's functional form. An operator without a functional form runs in place on a copy of its first argument. If a result is a list,
 * only its first MAX_RESULTS tensors are returned. Returns false if the call failed. */
bool run(const struct call *call, struct results *ret_results);
/* Function for grd_gradcheck: runs the call in `context` (a struct call) with its differentiable tensors replaced by the n `inputs`. Returns the
 * results that require gradients. */
grd_tensors as_function(grd_tensor *const *inputs, int n, void *context);

/* Runs one test for each operator, or only for those named in argv, or for all except those named after --without. Returns the exit status for
 * main. */
int run_matrix(void (*test_operator)(void **state), int argc, char **argv);

#endif
