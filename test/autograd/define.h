/* Helpers for tests of operators that are defined at run time: example definitions and kernels, functions that compare derivatives with finite
 * differences, and a function that checks that a definition is refused. */
#ifndef GRD_TEST_AUTOGRAD_DEFINE_H
#define GRD_TEST_AUTOGRAD_DEFINE_H

#include "support.h"

static inline const grd_op *define(const char *schema, const char *arg, const char *formula, grd_boxed_kernel *kernel)
{
    const grd_op *op = grd_define_operator(&(grd_definition){.schema = schema, .gradients = {{arg, formula}}, .kernel = kernel});
    expect_ok();
    assert_non_null(op);
    return op;
}

static inline grd_value tensor_value(grd_tensor *t)
{
    return (grd_value){.kind = GRD_KIND_TENSOR, .v.tensor = t};
}

static inline grd_tensor *call1(const grd_op *op, grd_tensor *x)
{
    const grd_value arg = tensor_value(x);
    grd_value result;
    grd_call(op, GRD_FUNCTIONAL, &arg, 1, NULL, &result);
    return result.v.tensor;
}

/* ---- Kernels ------------------------------------------------------------------------------------------------------------------- */

static inline void give(grd_value *ret_results, grd_tensor *t)
{
    ret_results[0] = tensor_value(t);
}

static inline void add_to_itself(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results,
                                 void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    give(ret_results, grd_add(args[0].v.tensor, args[0].v.tensor));
}

static inline void multiply(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results,
                            void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    give(ret_results, args[1].v.tensor != NULL ? grd_mul(args[0].v.tensor, args[1].v.tensor) : grd_clone(args[0].v.tensor));
}

/* A kernel that doubles a float64 tensor in a C loop, which autograd cannot differentiate, and counts its calls in `context`. */
static inline void twice(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out;
    grd_tensor *x = grd_contiguous(args[0].v.tensor), *y = grd_empty_like(x);
    ++*(int *)context;
    for (int64_t i = 0; grd_ok() && i < grd_numel(x); i++)
        ((double *)grd_data(y))[i] = 2 * ((const double *)grd_data(x))[i];
    give(ret_results, y);
}

static inline void square(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    give(ret_results, grd_mul(args[0].v.tensor, args[0].v.tensor));
}

/* A kernel that calls another operator, to which `context` points, so that a test only has to define the derivative. */
static inline void same_as(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)keys, (void)out;
    grd_call(context, GRD_FUNCTIONAL, args, grd_op_arg_count(op), NULL, ret_results);
}

static inline grd_tensor *double_leaf(void)
{
    return grd_set_requires_grad(grd_from_data((const double[]){0.5, -1.5, 2, 1, 3, -0.25}, grd_dims(2, 3), GRD_FLOAT64), true);
}

static grd_scope test_scope;

static inline int open_scope(void **state)
{
    (void)state;
    test_scope = grd_scope_open();
    return 0;
}

static inline int close_scope(void **state)
{
    (void)state;
    grd_memory_fail_at(0, false);
    grd_error_clear();
    grd_set_grad_enabled(true);
    grd_scope_close(test_scope);
    return 0;
}

/* ---- Checking derivatives -------------------------------------------------------------------------------------------------------- */

/* An operator and its arguments for grd_gradcheck. The first `ntensors` arguments are replaced by the inputs of the check. */
struct checked {
    const grd_op *op;
    grd_value args[4];
    int nargs, ntensors;
};

static inline grd_tensors run_checked(grd_tensor *const *inputs, int n, void *context)
{
    static grd_tensor *outputs[4];
    struct checked *checked = context;
    grd_value args[4], results[GRD_MAX_RESULTS];
    for (int i = 0; i < checked->nargs; i++)
        args[i] = i < n ? tensor_value(inputs[i]) : checked->args[i];
    grd_call(checked->op, GRD_FUNCTIONAL, args, checked->nargs, NULL, results);
    const int count = grd_op_result_count(checked->op);
    for (int i = 0; i < count; i++)
        outputs[i] = results[i].v.tensor;
    return grd_tensors_from(outputs, count);
}

static inline void check_gradients(const grd_op *op, grd_tensors inputs, grd_value extra)
{
    struct checked checked = {.op = op, .nargs = (int)inputs.n + (extra.kind != GRD_KIND_NONE)};
    checked.args[inputs.n] = extra;
    if (!grd_gradcheck(run_checked, inputs, &checked, NULL) || !grd_gradgradcheck(run_checked, inputs, &checked, NULL))
        fail_msg("%s: %s", grd_op_name(op), grd_error_message());
}

static const grd_value nothing = {.kind = GRD_KIND_NONE};

/* ---- Refused definitions ---------------------------------------------------------------------------------------------------------------- */

static inline void refused(const grd_definition *definition, grd_error_code code, const char *text)
{
    assert_null(grd_define_operator(definition));
    assert_string_equal(grd_error_message(), text);
    assert_int_equal(grd_error_get(), code);
    grd_error_clear();
}

/* The cmocka entry of a test that defines operators. Operators are never freed, so the test is not checked for leaks. A test that is about memory
 * compares the memory statistics itself. */
#define DEFINES(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)

#endif
