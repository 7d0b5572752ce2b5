/* Generated from schema by codegen. Do not edit. */
#include <math.h>

#include "matrix.h"

static double tanh_reference(const double *in) { return tanh(in[0]); }

const struct test_case test_cases[] = {
    {"tanh", "T(3,4)", 1, (const struct test_arg[1]){{TEST_FLOATS, -3, 3, 2, {3, 4}}}, .reference = tanh_reference, .accuracy = true, .ulps = 1},
    {"tanh", "T()", 1, (const struct test_arg[1]){{TEST_FLOATS, -3, 3}}, .reference = tanh_reference},
    {"tanh", "T(0,3)", 1, (const struct test_arg[1]){{TEST_FLOATS, -3, 3, 2, {0, 3}}}, .reference = tanh_reference},
    {"add", "T(2,3), T(3), alpha=2", 3, (const struct test_arg[3]){{TEST_FLOATS, -2, 2, 2, {2, 3}}, {TEST_FLOATS, -2, 2, 1, {3}}, {TEST_NUMBER, .number = {.kind = GRD_SCALAR_INT,
     .v.i = 2}}}},
    {"sub", "T(3,4), T(3,4)", 2, (const struct test_arg[2]){{TEST_FLOATS, -2, 2, 2, {3, 4}}, {TEST_FLOATS, -2, 2, 2, {3, 4}}}},
    {"sub", "T(3,1), T(4)", 2, (const struct test_arg[2]){{TEST_FLOATS, -2, 2, 2, {3, 1}}, {TEST_FLOATS, -2, 2, 1, {4}}}},
    {"sub", "T(2,3), T()", 2, (const struct test_arg[2]){{TEST_FLOATS, -2, 2, 2, {2, 3}}, {TEST_FLOATS, -2, 2}}},
    {"sub", "T(0,3), T(3)", 2, (const struct test_arg[2]){{TEST_FLOATS, -2, 2, 2, {0, 3}}, {TEST_FLOATS, -2, 2, 1, {3}}}},
    {"mul", "T(3,4), T(3,4)", 2, (const struct test_arg[2]){{TEST_FLOATS, -2, 2, 2, {3, 4}}, {TEST_FLOATS, -2, 2, 2, {3, 4}}}},
    {"mul", "T(3,1), T(4)", 2, (const struct test_arg[2]){{TEST_FLOATS, -2, 2, 2, {3, 1}}, {TEST_FLOATS, -2, 2, 1, {4}}}},
    {"mul", "T(2,3), T()", 2, (const struct test_arg[2]){{TEST_FLOATS, -2, 2, 2, {2, 3}}, {TEST_FLOATS, -2, 2}}},
    {"mul", "T(0,3), T(3)", 2, (const struct test_arg[2]){{TEST_FLOATS, -2, 2, 2, {0, 3}}, {TEST_FLOATS, -2, 2, 1, {3}}}},
    {"neg", "T(3,4)", 1, (const struct test_arg[1]){{TEST_FLOATS, -2, 2, 2, {3, 4}}}, .accuracy = true, .ulps = 1},
    {"neg", "T()", 1, (const struct test_arg[1]){{TEST_FLOATS, -2, 2}}},
    {"neg", "T(0,3)", 1, (const struct test_arg[1]){{TEST_FLOATS, -2, 2, 2, {0, 3}}}},
    {"sin", "T(3,4)", 1, (const struct test_arg[1]){{TEST_FLOATS, -2, 2, 2, {3, 4}}}, .accuracy = true, .ulps = 1, .no_gradient = true},
    {"sin", "T()", 1, (const struct test_arg[1]){{TEST_FLOATS, -2, 2}}, .no_gradient = true},
    {"sin", "T(0,3)", 1, (const struct test_arg[1]){{TEST_FLOATS, -2, 2, 2, {0, 3}}}, .no_gradient = true},
    {"lt", "T(3,4), T(3,4)", 2, (const struct test_arg[2]){{TEST_FLOATS, -2, 2, 2, {3, 4}}, {TEST_FLOATS, -2, 2, 2, {3, 4}}}, .no_gradient = true},
    {"lt", "T(3,1), T(4)", 2, (const struct test_arg[2]){{TEST_FLOATS, -2, 2, 2, {3, 1}}, {TEST_FLOATS, -2, 2, 1, {4}}}, .no_gradient = true},
    {"lt", "T(2,3), T()", 2, (const struct test_arg[2]){{TEST_FLOATS, -2, 2, 2, {2, 3}}, {TEST_FLOATS, -2, 2}}, .no_gradient = true},
    {"lt", "T(0,3), T(3)", 2, (const struct test_arg[2]){{TEST_FLOATS, -2, 2, 2, {0, 3}}, {TEST_FLOATS, -2, 2, 1, {3}}}, .no_gradient = true},
    {"unbind", "T(2,3), dim=1", 2, (const struct test_arg[2]){{TEST_FLOATS, -2, 2, 2, {2, 3}}, {TEST_NUMBER, .number = {.kind = GRD_SCALAR_INT, .v.i = 1}}}},
    {"stack", "[T(2), T(2)]", 2, (const struct test_arg[2]){{TEST_LIST, .n = 2, .items = (const struct test_arg[]){{TEST_FLOATS, -2, 2, 1, {2}}, {TEST_FLOATS, -2, 2, 1, {2}}}}}},
    {"max_dim", "T(2,3), dim=1", 3, (const struct test_arg[3]){{TEST_FLOATS, -2, 2, 2, {2, 3}}, {TEST_NUMBER, .number = {.kind = GRD_SCALAR_INT, .v.i = 1}}}},
    {"scaled_tanh", "T(2,3), 1", 3, (const struct test_arg[3]){{TEST_FLOATS, -2, 2, 2, {2, 3}}, {TEST_NUMBER, .number = {.kind = GRD_SCALAR_INT, .v.i = 1}}}},
    {"scaled_tanh", "T(2,3), 1, mode='none'", 3, (const struct test_arg[3]){{TEST_FLOATS, -2, 2, 2, {2, 3}}, {TEST_NUMBER, .number = {.kind = GRD_SCALAR_INT, .v.i = 1}},
     {TEST_STRING, .text = "none"}}},
    {.op = NULL},
};
