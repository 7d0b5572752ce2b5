/* The test cases of all operators. The code generator writes them to gen/test_cases.c, and matrix.c and other programs run them. */
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
    double lo, hi;    /* the range of the random elements */
    int64_t n;        /* for tensors the number of dimensions, for TEST_LIST and TEST_DIMS the length, otherwise the dtype or device */
    int64_t shape[8]; /* the sizes of a tensor, or the integers of TEST_DIMS */
    double diagonal;  /* a number that is added to the diagonal elements of the last two dimensions */
    const struct test_arg *items;
    const char *text;
    grd_scalar number;
};

struct test_case {
    const char *op, *text;
    int n;
    const struct test_arg *args;
    const char *skip; /* why results cannot be compared (random or uninitialised values); NULL if they can */
    /* Part of the error text with which vmap refuses some batches of this sample, because the sizes of the result depend on data. NULL if vmap
     * accepts all batches. */
    const char *batch;
    bool no_gradient, complex_only, contiguous_only;
    double tolerance; /* in ulps of the result's dtype; 0 means 4 */
    bool accuracy; /* if true, test/accuracy checks that float32 results are at most `ulps` floats away from the correctly rounded ones */
    double ulps;
    double (*reference)(const double *in);
};

/* The `n` test cases of one operator, which lie consecutively in memory from `cases` on. */
struct test_cases {
    const struct test_case *cases;
    int n;
};

static inline double test_tolerance(const struct test_case *test)
{
    return test->tolerance != 0 ? test->tolerance : 4;
}

/* The test cases of all operators. Those of one operator are consecutive. The last entry has op == NULL. */
extern const struct test_case test_cases[];

#endif
