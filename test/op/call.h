/* Calls of the operator matrix: makes the arguments of a sample for a dtype, layout and device, and runs the operator on them.
 * The programs that include this header check the results. */
#ifndef TEST_CALL_H
#define TEST_CALL_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs some of the headers above. */
#include <cmocka.h>

#include "matrix.h"

enum layout { CONTIGUOUS, TRANSPOSED, GAPS, NEGATIVE, LAYOUTS };

enum { MAX_ARGS = GRD_MAX_ARGS, MAX_TENSORS = 16, MAX_VALUES = 1 << 18, MAX_RESULTS = 16 };

struct setting {
    grd_dtype dtype;     /* the dtype of FLOATS arguments */
    grd_dtype values_as; /* values are rounded to this dtype first, so that calls with different dtypes can have the same values */
    enum layout layout;
    grd_device device;
    bool requires_grad;
};

/* The arguments of a call, ready for grd_call, and a flat list of the tensors among them. */
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

/* Returns a static text that names the sample, for messages of failures. */
const char *place(const struct test_case *test, const struct setting *s);

bool is_unsigned(grd_dtype dtype);
bool has_form(const grd_op *op, grd_form form);
bool is_differentiable(grd_tensor *t);

grd_tensor *with_layout(grd_tensor *t, enum layout layout);
/* Makes the arguments of a call, with the same values every time. */
void make_call(struct call *call, const struct test_case *test, const struct setting *s);
/* Runs the operator's functional form, or its in-place form on a copy if it has no other. Returns false if the call failed. Of a list of results
 * only the first MAX_RESULTS are returned. */
bool run(const struct call *call, struct results *ret_results);
/* Runs the operator as a function of its differentiable tensors. It is a grd_function whose context is the call. */
grd_tensors as_function(grd_tensor *const *inputs, int n, void *context);

/* Runs one test per operator of the matrix, or per operator named in the arguments. Returns the exit status for main. */
int run_matrix(void (*test_operator)(void **state), int argc, char **argv);

#endif
