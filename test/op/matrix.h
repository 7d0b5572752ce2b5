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
    double lo, hi;    /* the range of random values */
    int64_t n;        /* TENSOR: number of dimensions; LIST and DIMS: length; else the dtype or the device */
    int64_t shape[8]; /* the sizes of a tensor, or the values of DIMS */
    double diagonal;  /* a number that is added to the diagonal of matrices */
    const struct test_arg *items;
    const char *text;
    grd_scalar number;
};

struct test_case {
    const char *op, *text;
    int n;
    const struct test_arg *args;
    const char *skip;  /* the reason why results cannot be compared (random or uninitialised values); NULL: they can */
    const char *batch; /* part of the error by which some batches are refused, because the result's shape depends on data; NULL: none are */
    bool no_gradient, complex_only, contiguous_only;
    double tolerance; /* in ulps; 0 stands for 4 */
    bool accuracy; /* test/accuracy compares the results for all floats; they may be `ulps` floats away from the correctly rounded ones */
    double ulps;
    double (*reference)(const double *in);
};

/* The test cases of one operator. */
struct test_cases {
    const struct test_case *cases;
    int n;
};

static inline double test_tolerance(const struct test_case *test)
{
    return test->tolerance != 0 ? test->tolerance : 4;
}

/* The test cases of all operators; those of one operator are consecutive, and the last entry has op == NULL. */
extern const struct test_case test_cases[];

#endif
