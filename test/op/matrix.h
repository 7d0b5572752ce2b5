/* The generated operator matrix: what codegen writes into gen/test_cases.c and matrix.c runs. */
#ifndef TEST_MATRIX_H
#define TEST_MATRIX_H

#include "gradus/gradus.h"

enum test_kind {
    TEST_ABSENT,
    TEST_FLOATS,
    TEST_CONSTANTS,
    TEST_INTEGERS,
    TEST_BOOLEANS,
    TEST_LIST,
    TEST_NUMBER,
    TEST_DIMS,
    TEST_STRING,
    TEST_DTYPE,
    TEST_DEVICE
};

struct test_arg {
    enum test_kind kind;
    int ndim;
    int64_t shape[8]; /* of tensors; the values of DIMS */
    double lo, hi;    /* of random values */
    int64_t n;        /* length of LIST and DIMS; the dtype; the device */
    const struct test_arg *items;
    const char *text;
    grd_scalar number;
};

struct test_case {
    const char *op, *text;
    const char *skip; /* why the results cannot be compared (random or uninitialised values) */
    int n;
    bool differentiable, complex_only, contiguous_only;
    double tolerance; /* in units of the last place */
    double (*reference)(const double *in);
    const struct test_arg *args;
};

struct test_cases {
    const struct test_case *cases;
    int n;
};

/* Ends with a NULL entry. */
extern const struct test_cases test_table[];

#endif
