/* Generated from schema by codegen. Do not edit. */
#include <math.h>

#include "matrix.h"

static double tanh_reference(const double *in)
{
    const double x = in[0];
    (void)x;
    return tanh(x);
}
static const struct test_case tanh_cases[] = {
    {.op = "tanh", .text = "T(3,4)", .n = 1, .differentiable = true, .tolerance = 4, .reference = tanh_reference, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {3, 4}, .lo = -3, .hi = 3}}},
    {.op = "tanh", .text = "T()", .n = 1, .differentiable = true, .tolerance = 4, .reference = tanh_reference, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 0, .shape = {0}, .lo = -3, .hi = 3}}},
    {.op = "tanh", .text = "T(0,3)", .n = 1, .differentiable = true, .tolerance = 4, .reference = tanh_reference, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {0, 3}, .lo = -3, .hi = 3}}},
};
static const struct test_case add_cases[] = {
    {.op = "add", .text = "T(2,3), T(3), alpha=2", .n = 3, .differentiable = true, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {2, 3}, .lo = -2, .hi = 2}, {.kind = TEST_FLOATS, .ndim = 1, .shape = {3}, .lo = -2, .hi = 2}, {.kind = TEST_NUMBER, .number = {.kind = GRD_SCALAR_INT, .v.i = 2}}}},
};
static const struct test_case sub_cases[] = {
    {.op = "sub", .text = "T(3,4), T(3,4)", .n = 2, .differentiable = true, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {3, 4}, .lo = -2, .hi = 2}, {.kind = TEST_FLOATS, .ndim = 2, .shape = {3, 4}, .lo = -2, .hi = 2}}},
    {.op = "sub", .text = "T(3,1), T(4)", .n = 2, .differentiable = true, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {3, 1}, .lo = -2, .hi = 2}, {.kind = TEST_FLOATS, .ndim = 1, .shape = {4}, .lo = -2, .hi = 2}}},
    {.op = "sub", .text = "T(2,3), T()", .n = 2, .differentiable = true, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {2, 3}, .lo = -2, .hi = 2}, {.kind = TEST_FLOATS, .ndim = 0, .shape = {0}, .lo = -2, .hi = 2}}},
    {.op = "sub", .text = "T(0,3), T(3)", .n = 2, .differentiable = true, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {0, 3}, .lo = -2, .hi = 2}, {.kind = TEST_FLOATS, .ndim = 1, .shape = {3}, .lo = -2, .hi = 2}}},
};
static const struct test_case mul_cases[] = {
    {.op = "mul", .text = "T(3,4), T(3,4)", .n = 2, .differentiable = true, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {3, 4}, .lo = -2, .hi = 2}, {.kind = TEST_FLOATS, .ndim = 2, .shape = {3, 4}, .lo = -2, .hi = 2}}},
    {.op = "mul", .text = "T(3,1), T(4)", .n = 2, .differentiable = true, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {3, 1}, .lo = -2, .hi = 2}, {.kind = TEST_FLOATS, .ndim = 1, .shape = {4}, .lo = -2, .hi = 2}}},
    {.op = "mul", .text = "T(2,3), T()", .n = 2, .differentiable = true, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {2, 3}, .lo = -2, .hi = 2}, {.kind = TEST_FLOATS, .ndim = 0, .shape = {0}, .lo = -2, .hi = 2}}},
    {.op = "mul", .text = "T(0,3), T(3)", .n = 2, .differentiable = true, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {0, 3}, .lo = -2, .hi = 2}, {.kind = TEST_FLOATS, .ndim = 1, .shape = {3}, .lo = -2, .hi = 2}}},
};
static const struct test_case neg_cases[] = {
    {.op = "neg", .text = "T(3,4)", .n = 1, .differentiable = true, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {3, 4}, .lo = -2, .hi = 2}}},
    {.op = "neg", .text = "T()", .n = 1, .differentiable = true, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 0, .shape = {0}, .lo = -2, .hi = 2}}},
    {.op = "neg", .text = "T(0,3)", .n = 1, .differentiable = true, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {0, 3}, .lo = -2, .hi = 2}}},
};
static const struct test_case sin_cases[] = {
    {.op = "sin", .text = "T(3,4)", .n = 1, .differentiable = false, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {3, 4}, .lo = -2, .hi = 2}}},
    {.op = "sin", .text = "T()", .n = 1, .differentiable = false, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 0, .shape = {0}, .lo = -2, .hi = 2}}},
    {.op = "sin", .text = "T(0,3)", .n = 1, .differentiable = false, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {0, 3}, .lo = -2, .hi = 2}}},
};
static const struct test_case lt_cases[] = {
    {.op = "lt", .text = "T(3,4), T(3,4)", .n = 2, .differentiable = false, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {3, 4}, .lo = -2, .hi = 2}, {.kind = TEST_FLOATS, .ndim = 2, .shape = {3, 4}, .lo = -2, .hi = 2}}},
    {.op = "lt", .text = "T(3,1), T(4)", .n = 2, .differentiable = false, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {3, 1}, .lo = -2, .hi = 2}, {.kind = TEST_FLOATS, .ndim = 1, .shape = {4}, .lo = -2, .hi = 2}}},
    {.op = "lt", .text = "T(2,3), T()", .n = 2, .differentiable = false, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {2, 3}, .lo = -2, .hi = 2}, {.kind = TEST_FLOATS, .ndim = 0, .shape = {0}, .lo = -2, .hi = 2}}},
    {.op = "lt", .text = "T(0,3), T(3)", .n = 2, .differentiable = false, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {0, 3}, .lo = -2, .hi = 2}, {.kind = TEST_FLOATS, .ndim = 1, .shape = {3}, .lo = -2, .hi = 2}}},
};
static const struct test_case unbind_cases[] = {
    {.op = "unbind", .text = "T(2,3), dim=1", .n = 2, .differentiable = true, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {2, 3}, .lo = -2, .hi = 2}, {.kind = TEST_NUMBER, .number = {.kind = GRD_SCALAR_INT, .v.i = 1}}}},
};
static const struct test_case stack_cases[] = {
    {.op = "stack", .text = "[T(2), T(2)]", .n = 2, .differentiable = true, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_LIST, .n = 2, .items = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 1, .shape = {2}, .lo = -2, .hi = 2}, {.kind = TEST_FLOATS, .ndim = 1, .shape = {2}, .lo = -2, .hi = 2}}}, {.kind = TEST_ABSENT}}},
};
static const struct test_case max_dim_cases[] = {
    {.op = "max_dim", .text = "T(2,3), dim=1", .n = 3, .differentiable = true, .tolerance = 4, .args = (const struct test_arg[]){{.kind = TEST_FLOATS, .ndim = 2, .shape = {2, 3}, .lo = -2, .hi = 2}, {.kind = TEST_NUMBER, .number = {.kind = GRD_SCALAR_INT, .v.i = 1}}, {.kind = TEST_ABSENT}}},
};

const struct test_cases test_table[] = {
    {tanh_cases, sizeof tanh_cases / sizeof *tanh_cases},
    {add_cases, sizeof add_cases / sizeof *add_cases},
    {sub_cases, sizeof sub_cases / sizeof *sub_cases},
    {mul_cases, sizeof mul_cases / sizeof *mul_cases},
    {neg_cases, sizeof neg_cases / sizeof *neg_cases},
    {sin_cases, sizeof sin_cases / sizeof *sin_cases},
    {lt_cases, sizeof lt_cases / sizeof *lt_cases},
    {unbind_cases, sizeof unbind_cases / sizeof *unbind_cases},
    {stack_cases, sizeof stack_cases / sizeof *stack_cases},
    {max_dim_cases, sizeof max_dim_cases / sizeof *max_dim_cases},
    {0, 0}};
