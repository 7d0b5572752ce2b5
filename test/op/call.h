/* Calls of the operator matrix: the arguments of a sample made for a dtype, strides and a device, and the operator run on them.
 * What is checked of the results is in the programs that use this. */
#ifndef TEST_CALL_H
#define TEST_CALL_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs some of the above */
#include <cmocka.h>

#include "matrix.h"

enum layout { CONTIGUOUS, TRANSPOSED, GAPS, NEGATIVE, LAYOUTS };

enum { MAX_ARGS = GRD_MAX_ARGS, MAX_TENSORS = 16, MAX_VALUES = 1 << 18, MAX_RESULTS = 16 };

struct setting {
    grd_dtype dtype;     /* of FLOATS arguments */
    grd_dtype values_as; /* the dtype whose rounding the values have been through */
    enum layout layout;
    grd_device device;
    bool requires_grad;
};

/* Arguments ready for grd_call; the tensors in them, flattened. */
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

/* Names the sample, for a failure: static text. */
const char *place(const struct test_case *test, const struct setting *s);

bool is_unsigned(grd_dtype dtype);
bool has_form(const grd_op *op, grd_form form);
bool is_differentiable(grd_tensor *t);

grd_tensor *with_layout(grd_tensor *t, enum layout layout);
/* The same values every time. */
void make_call(struct call *call, const struct test_case *test, const struct setting *s);
/* The operator's functional form; in place on a copy where it has no other. False when it failed. Of a list, the first MAX_RESULTS. */
bool run(const struct call *call, struct results *ret_results);
/* The operator as a function of its differentiable tensors: a grd_function whose context is the call. */
grd_tensors as_function(grd_tensor *const *inputs, int n, void *context);

/* One test per operator of the table, or of those named as arguments. What main returns. */
int run_matrix(void (*test_operator)(void **state), int argc, char **argv);

#endif
