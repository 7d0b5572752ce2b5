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
    double lo, hi;    /* of random values */
    int64_t n;        /* dimensions of a tensor; length of LIST and DIMS; the dtype; the device */
    int64_t shape[8]; /* of tensors; the values of DIMS */
    double diagonal;  /* more on the diagonal of matrices */
    const struct test_arg *items;
    const char *text;
    grd_scalar number;
};

struct test_case {
    const char *op, *text;
    int n;
    const struct test_arg *args;
    const char *skip;  /* why the results cannot be compared (random or uninitialised values) */
    const char *batch; /* a part of the error by which some batches are refused: what they are asked for depends on data */
    bool no_gradient, complex_only, contiguous_only;
    double tolerance; /* in units of the last place; 0 stands for 4 */
    bool accuracy; /* test/accuracy looks at the results for all floats, which may be `ulps` floats away from the correctly rounded ones */
    double ulps;
    double (*reference)(const double *in);
};

/* Those of one operator. */
struct test_cases {
    const struct test_case *cases;
    int n;
};

static inline double test_tolerance(const struct test_case *test)
{
    return test->tolerance != 0 ? test->tolerance : 4;
}

/* Those of one operator stand together; the last has no operator. */
extern const struct test_case test_cases[];

#endif
