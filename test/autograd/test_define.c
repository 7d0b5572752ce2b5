/* Tests operators defined at run time: calls, kernels for dispatch keys, gradient functions, error texts, allocation failures and threads. First and
 * second derivatives are compared with finite differences. Gradient formulas are tested in test_define_formula.c. */
#include <pthread.h>

#include "define.h"

/* ---- Kernels ------------------------------------------------------------------------------------------------------------------- */

/* Kernel that computes self ** 3 * scale with calls of operators. */
static void cube(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    grd_tensor *x = args[0].v.tensor;
    give(ret_results, grd_mul(grd_mul(x, grd_mul(x, x)), grd_number(args[1].v.scalar)));
}

static void twice_meta(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    give(ret_results, grd_empty_like(args[0].v.tensor));
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------------------ */

static void test_a_defined_operator_can_be_found_and_called(void **state)
{
    (void)state;
    const int64_t before = grd_op_count();
    const grd_op *op = define("t1::cube(Tensor self, *, Scalar scale=1) -> Tensor", NULL, NULL, cube);
    assert_ptr_equal(grd_op_find("t1::cube"), op);
    assert_int_equal(grd_op_count(), before + 1);
    assert_ptr_equal(grd_op_at(before), op);
    assert_null(grd_op_at(before + 1));
    assert_string_equal(grd_op_name(op), "t1::cube");
    assert_string_equal(grd_op_schema(op), "t1::cube(Tensor self, *, Scalar scale=1) -> Tensor");
    assert_int_equal(grd_op_arg_count(op), 2);
    assert_string_equal(grd_op_arg_name(op, 1), "scale");
    assert_int_equal(grd_op_arg_kind(op, 1), GRD_KIND_SCALAR);
    assert_true(grd_op_arg_optional(op, 1) && !grd_op_arg_optional(op, 0));
    assert_int_equal(grd_op_forms(op), 1 << GRD_FUNCTIONAL);

    grd_value args[] = {tensor_value(VECTOR(1, 2, 3)), {.kind = GRD_KIND_INT, .v.integer = 2}}, result;
    assert_true(grd_call(op, GRD_FUNCTIONAL, args, 1, NULL, &result));
    EXPECT_VALUES(result.v.tensor, 1, 8, 27);
    assert_true(grd_call(op, GRD_FUNCTIONAL, args, 2, NULL, &result));
    EXPECT_VALUES(result.v.tensor, 2, 16, 54);
    assert_false(grd_call(op, GRD_FUNCTIONAL, args, 0, NULL, &result));
    expect_error("t1::cube: argument 'self' (position 1) is missing");
    assert_false(grd_call(op, GRD_INPLACE, args, 1, NULL, &result));
    expect_error("t1::cube: has no in-place form");
    args[1] = (grd_value){.kind = GRD_KIND_STRING, .v.string = "x"};
    assert_false(grd_call(op, GRD_FUNCTIONAL, args, 2, NULL, &result));
    expect_error("t1::cube: argument 'scale' (position 2) must be Scalar, not str");
}

static void test_a_composite_runs_on_any_device_and_is_differentiated(void **state)
{
    (void)state;
    const grd_op *op = define("t2::cube(Tensor self, *, Scalar scale=1) -> Tensor", NULL, NULL, cube);
    grd_tensor *meta = call1(op, grd_empty(grd_dims(2, 5), .device = GRD_META));
    expect_ok();
    assert_int_equal(grd_numel(meta), 10);
    grd_tensor *x = leaf3();
    grd_backward(grd_sum(call1(op, x)));
    EXPECT_VALUES(grd_grad_of(x), 3, 12, 27);
    check_gradients(op, grd_tensors(double_leaf()), nothing);
}

static void test_kernels_are_registered_for_dispatch_keys(void **state)
{
    (void)state;
    static int runs;
    const grd_op *op = define("t3::twice(Tensor self) -> Tensor", "self", "grad * 2", NULL);
    call1(op, double_leaf());
    expect_error("t3::twice: no kernel for dispatch key CPU; there are kernels for CONJUGATE, AUTOGRAD");
    grd_register_kernel("t3::twice", GRD_KEY_CPU, twice, &runs);
    grd_register_kernel("t3::twice", GRD_KEY_CPU, twice, &runs);
    expect_error("operator 't3::twice' has a kernel for dispatch key CPU already");
    check_gradients(op, grd_tensors(double_leaf()), nothing);
    assert_true(runs > 10);
    call1(op, grd_empty(grd_dims(4), .device = GRD_META));
    expect_error("t3::twice: no kernel for dispatch key META; there are kernels for CPU, CONJUGATE, AUTOGRAD");
    grd_register_kernel("t3::twice", GRD_KEY_META, twice_meta, NULL);
    assert_int_equal(grd_numel(call1(op, grd_empty(grd_dims(4), .device = GRD_META))), 4);
    expect_ok();
}

static void test_a_kernel_for_a_key_precedes_the_composite(void **state)
{
    (void)state;
    static int runs;
    const grd_op *op = define("t4::cube(Tensor self, *, Scalar scale=1) -> Tensor", NULL, NULL, cube);
    grd_register_kernel("t4::cube", GRD_KEY_CPU, twice, &runs);
    grd_tensor *x = grd_from_data((const double[]){5}, grd_dims(1), GRD_FLOAT64);
    EXPECT_VALUES(call1(op, x), 10);
    grd_unregister_kernel("t4::cube", GRD_KEY_CPU);
    EXPECT_VALUES(call1(op, x), 125);
    assert_int_equal(runs, 1);
}

/* ---- Kernels with invalid results ---------------------------------------------------------------------------------------------------- */

static void write_nothing(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)args, (void)ret_results, (void)context;
}

static void write_null(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)args, (void)context;
    ret_results[0] = (grd_value){.kind = GRD_KIND_TENSOR};
}

static void write_view(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    give(ret_results, grd_t(args[0].v.tensor));
}

static void write_view_of_own(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results,
                              void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    give(ret_results, grd_t(grd_mul(args[0].v.tensor, args[0].v.tensor)));
}

/* Kernel that returns a list of one tensor. The library must refuse this tensor. If `context` is NULL, the tensor is the first one of the list
 * argument; otherwise it is a transposed view of a copy of that one. */
static void write_list(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out;
    static grd_tensor *list[1];
    grd_tensor *first = args[0].v.tensors.data[0];
    list[0] = context != NULL ? grd_t(grd_clone(first)) : first;
    ret_results[0] = (grd_value){.kind = GRD_KIND_TENSORS, .v.tensors = {1, list}};
}

static void test_invalid_kernel_result_lists_are_refused(void **state)
{
    (void)state;
    static const char *const errors[] = {"t22::f0: result 0 of the kernel shares memory with argument 'tensors'; return a copy",
                                         "t22::f1: tensor 0 of the kernel's list is a view; return a copy"};
    grd_tensor *x = double_leaf(), *y = double_leaf(), *tensors[] = {y, x};
    const grd_value arg = {.kind = GRD_KIND_TENSORS, .v.tensors = {2, tensors}};
    for (int i = 0; i < 2; i++) {
        char schema[64];
        snprintf(schema, sizeof schema, "t22::f%d(Tensor[] tensors) -> Tensor[]", i);
        const grd_op *op = grd_define_operator(&(grd_definition){
            .schema = schema, .gradients = {{"tensors", "grads"}}, .kernel = write_list, .context = i == 0 ? NULL : tensors});
        grd_value result;
        assert_false(grd_call(op, GRD_FUNCTIONAL, &arg, 1, NULL, &result));
        assert_int_equal(result.v.tensors.n, 0);
        expect_error(errors[i]);
    }
}

static void test_invalid_kernel_results_are_refused(void **state)
{
    (void)state;
    const grd_op *empty = define("t5::nothing(Tensor self) -> Tensor", "self", "grad", write_nothing);
    assert_ptr_equal(call1(empty, leaf3()), grd_failed);
    expect_error("t5::nothing: the kernel for dispatch key CPU has not written result 0");
    const grd_op *null = define("t5::null(Tensor self) -> Tensor", NULL, NULL, write_null);
    assert_ptr_equal(call1(null, leaf3()), grd_failed);
    expect_error("t5::null: the kernel for dispatch key AUTOGRAD has not written result 0");
    const grd_op *list = define("t5::list(Tensor self) -> Tensor[]", "self", "None", write_null);
    const grd_value arg = tensor_value(leaf3());
    grd_value result;
    assert_false(grd_call(list, GRD_FUNCTIONAL, &arg, 1, NULL, &result));
    expect_error("t5::list: the kernel for dispatch key CPU has not written a list of tensors");

    const grd_op *view = define("t5::view(Tensor self) -> Tensor", "self", "t(grad)", write_view);
    call1(view, double_leaf());
    expect_error("t5::view: result 0 of the kernel shares memory with argument 'self'; return a copy");

    /* The kernel returns a view, the transpose of a temporary. The operator's result must be no view, and the gradient must be right after the
     * result has been written in place. */
    const grd_op *own = define("t5::own(Tensor self) -> Tensor", "self", "t(grad) * 2 * self", write_view_of_own);
    grd_tensor *x = double_leaf(), *y = call1(own, x);
    assert_null(grd_view_base(y));
    grd_mul_(y, grd_number(grd_int(10)));
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 10, -30, 40, 20, 60, -5);
    check_gradients(own, grd_tensors(double_leaf()), nothing);
}

/* ---- Gradient functions --------------------------------------------------------------------------------------------------------------- */

/* The gradient function of x * y * scale, which reads the saved tensors x and y. It counts its calls in the context. */
static void product_gradient(const grd_gradient *g, grd_value *ret_grads)
{
    grd_tensor *scaled = grd_mul(g->grads.data[0], grd_number(g->args[2].v.scalar));
    ++*(int *)g->context;
    if (g->needs & 1)
        ret_grads[0] = tensor_value(grd_mul(scaled, g->args[1].v.tensor));
    if (g->needs & 2)
        ret_grads[1] = tensor_value(grd_mul(scaled, g->args[0].v.tensor));
}

static void scaled_product(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    give(ret_results, grd_mul(grd_mul(args[0].v.tensor, args[1].v.tensor), grd_number(args[2].v.scalar)));
}

/* The gradient function of exp, which reads only the saved result. */
static void exp_gradient(const grd_gradient *g, grd_value *ret_grads)
{
    assert_int_equal(g->args[0].kind, GRD_KIND_NONE);
    ret_grads[0] = tensor_value(grd_mul(g->grads.data[0], g->results[0].v.tensor));
}

static void wrong_gradient(const grd_gradient *g, grd_value *ret_grads)
{
    ret_grads[0] = g->args[0];
    ret_grads[0].kind = GRD_KIND_INT;
}

static void no_gradient(const grd_gradient *g, grd_value *ret_grads)
{
    (void)g, (void)ret_grads;
}

static void test_gradients_can_be_given_as_functions(void **state)
{
    (void)state;
    static int runs;
    const grd_op *op = grd_define_operator(&(grd_definition){.schema = "t13::product(Tensor x, Tensor y, Scalar scale=3) -> Tensor",
                                                             .gradient = product_gradient,
                                                             .saves = "x, y",
                                                             .kernel = scaled_product,
                                                             .context = &runs});
    expect_ok();
    check_gradients(op, grd_tensors(double_leaf(), double_leaf()), (grd_value){.kind = GRD_KIND_FLOAT, .v.number = 0.5});
    assert_true(runs > 0);
    grd_tensor *x = leaf3();
    grd_value args[] = {tensor_value(x), tensor_value(VECTOR(1, 0, 2))}, result;
    grd_call(op, GRD_FUNCTIONAL, args, 2, NULL, &result);
    grd_backward(grd_sum(result.v.tensor));
    EXPECT_VALUES(grd_grad_of(x), 3, 0, 6);

    op = grd_define_operator(&(grd_definition){.schema = "t13::exp(Tensor self) -> Tensor",
                                               .gradient = exp_gradient,
                                               .saves = "result",
                                               .kernel = same_as,
                                               .context = (void *)(uintptr_t)grd_op_find("exp")});
    expect_ok();
    check_gradients(op, grd_tensors(double_leaf()), nothing);

    op = grd_define_operator(&(grd_definition){.schema = "t13::wrong(Tensor self) -> Tensor",
                                               .gradient = wrong_gradient,
                                               .kernel = same_as,
                                               .context = (void *)(uintptr_t)grd_op_find("exp")});
    grd_backward(grd_sum(call1(op, leaf3())));
    expect_error("t13::wrong: the gradient of argument 'self' must be Tensor, not int");
    op = grd_define_operator(&(grd_definition){.schema = "t13::none(Tensor self) -> Tensor",
                                               .gradient = no_gradient,
                                               .kernel = same_as,
                                               .context = (void *)(uintptr_t)grd_op_find("exp")});
    x = leaf3();
    grd_backward(grd_sum(call1(op, x)));
    expect_ok();
    assert_null(grd_grad_of(x));
}

/* ---- Saved values ----------------------------------------------------------------------------------------------------------------------- */

/* Kernel that computes weight times the sum of a list of tensors. The operator's gradient function reads a saved tensor, list, string and
 * generator. */
static void weighted(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    const grd_tensors list = args[1].v.tensors;
    give(ret_results, grd_mul(args[0].v.tensor, grd_sum(grd_stack(list), .dim = grd_dims(0))));
}

static void weighted_gradient(const grd_gradient *g, grd_value *ret_grads)
{
    grd_tensor **grads = g->context, *grad = g->grads.data[0];
    const grd_tensors list = g->args[1].v.tensors;
    assert_string_equal(g->args[2].v.string, "plain");
    assert_int_equal(g->args[3].kind, GRD_KIND_GENERATOR);
    ret_grads[0] = tensor_value(grd_mul(grad, grd_sum(grd_stack(list), .dim = grd_dims(0))));
    for (int64_t i = 0; i < list.n; i++)
        grads[i] = grd_mul(grad, g->args[0].v.tensor);
    ret_grads[1] = (grd_value){.kind = GRD_KIND_TENSORS, .v.tensors = {list.n, grads}};
}

static grd_tensor *call_weighted(const grd_op *op, grd_tensor *weight, grd_tensors list)
{
    grd_generator *generator = grd_generator_new(7);
    const grd_value args[] = {tensor_value(weight),
                              {.kind = GRD_KIND_TENSORS, .v.tensors = list},
                              {.kind = GRD_KIND_STRING, .v.string = "plain"},
                              {.kind = GRD_KIND_GENERATOR, .v.generator = generator}};
    grd_value result;
    grd_call(op, GRD_FUNCTIONAL, args, 4, NULL, &result);
    grd_generator_drop(generator);
    expect_ok();
    return result.v.tensor;
}

static void test_lists_strings_and_generators_are_saved_for_backward(void **state)
{
    (void)state;
    static grd_tensor *grads[2];
    const grd_op *op = grd_define_operator(
        &(grd_definition){.schema = "t22::weighted(Tensor weight, Tensor[] xs, str mode='', Generator? generator=None) -> Tensor",
                          .gradient = weighted_gradient,
                          .context = grads});
    grd_register_kernel("t22::weighted", GRD_KEY_CPU, weighted, NULL);
    expect_ok();
    const int64_t blocks = grd_memory_get_stats().blocks;
    const grd_scope scope = grd_scope_open();
    grd_tensor *weight = leaf3(), *x = VECTOR(4, 5, 6), *y = leaf3();
    grd_tensor *result = call_weighted(op, weight, grd_tensors(x, y));
    grd_backward_all(grd_tensors(grd_sum(result)), &(grd_backward_options){.retain_graph = true});
    EXPECT_VALUES(grd_grad_of(weight), 5, 7, 9);
    EXPECT_VALUES(grd_grad_of(y), 1, 2, 3);
    grd_zero_(x);
    grd_backward(grd_sum(result));
    expect_error("has been modified by an inplace operation");
    grd_backward(grd_sum(call_weighted(op, weight, grd_tensors(x, y))));
    EXPECT_VALUES(grd_grad_of(weight), 6, 9, 12);
    grd_tensor *once = grd_sum(call_weighted(op, weight, grd_tensors(x, y)));
    grd_backward(once);
    grd_backward(once);
    expect_error("backward through the graph a second time");
    /* The in-place addition gives x a grad_fn, through which x owns the node that has saved x. This must not make a reference cycle. Backward must
     * raise an error, because x was overwritten after it was saved. See Note [Saved and overwritten]. */
    grd_add_(x, call_weighted(op, weight, grd_tensors(y, x)));
    grd_backward(grd_sum(x));
    expect_error("has been modified by an inplace operation");
    grd_scope_close(scope);
    assert_int_equal(grd_memory_get_stats().blocks, blocks);
}

/* Kernel that returns the list [exp(x), 2 * exp(x)]. */
static void exponentials(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out;
    grd_tensor **list = context;
    list[0] = grd_exp(args[0].v.tensor);
    list[1] = grd_mul_scalar(list[0], grd_int(2));
    ret_results[0] = (grd_value){.kind = GRD_KIND_TENSORS, .v.tensors = {2, list}};
}

/* The node of a call saves the list of its own results. These results must still be differentiable twice. */
static void test_a_list_of_results_is_saved_for_double_backward(void **state)
{
    (void)state;
    static grd_tensor *list[2];
    define("t23::exponentials(Tensor self) -> Tensor[]", "self", "sum(stack(grads) * stack(result), [0])", NULL);
    grd_register_kernel("t23::exponentials", GRD_KEY_CPU, exponentials, list);
    expect_ok();
    grd_tensor *x = grd_set_requires_grad(VECTOR(0, 1, 2), true), *first, *second;
    const grd_value arg = tensor_value(x);
    grd_value result;
    grd_call(grd_op_find("t23::exponentials"), GRD_FUNCTIONAL, &arg, 1, NULL, &result);
    const grd_tensors outputs = result.v.tensors;
    const grd_backward_options again = {.create_graph = true};
    assert_true(grd_grad(grd_tensors(grd_sum(grd_add(outputs.data[0], outputs.data[1]))), grd_tensors(x), &again, &first));
    EXPECT_VALUES(first, 3, 3 * exp(1), 3 * exp(2));
    assert_true(grd_grad(grd_tensors(grd_sum(first)), grd_tensors(x), NULL, &second));
    EXPECT_VALUES(second, 3, 3 * exp(1), 3 * exp(2));
    grd_call(grd_op_find("t23::exponentials"), GRD_FUNCTIONAL, &arg, 1, NULL, &result);
    grd_tensor *sum = grd_sum(grd_add(result.v.tensors.data[0], result.v.tensors.data[1]));
    grd_set_grad_enabled(false);
    grd_zero_(result.v.tensors.data[1]);
    grd_set_grad_enabled(true);
    grd_backward(sum);
    expect_error("has been modified by an inplace operation: [FloatTensor [3]], which is output 0 of T23ExponentialsBackward0");
}

/* ---- Refused definitions ---------------------------------------------------------------------------------------------------------------- */

static void test_invalid_definitions_are_refused(void **state)
{
    (void)state;
    refused(NULL, GRD_ERROR_TYPE, "grd_define_operator: argument 'definition' must not be NULL");
    refused(&(grd_definition){0}, GRD_ERROR_TYPE, "grd_define_operator: a schema is required, not NULL");
    refused(&(grd_definition){.schema = "cube(Tensor self) -> Tensor"}, GRD_ERROR_VALUE,
            "schema: an operator defined at run time has a namespace, as in \"mylib::cube\"");
    refused(&(grd_definition){.schema = "t::cube(Tensor self -> Tensor"}, GRD_ERROR_VALUE,
            "schema: expected ')' at character 21 of \"t::cube(Tensor self -> Tensor\"");
    define("t14::one(Tensor self) -> Tensor", NULL, NULL, cube);
    refused(&(grd_definition){.schema = "t14::one(Tensor x) -> Tensor", .gradients = {{"x", "grad"}}}, GRD_ERROR_RUNTIME,
            "operator 't14::one' is already defined");
    refused(&(grd_definition){.schema = "t14::f(Tensor x) -> Tensor", .gradients = {{"x", "grad"}}, .gradient = no_gradient},
            GRD_ERROR_VALUE, "grd_define_operator: the gradient is either formulas or a function, not both");
    refused(&(grd_definition){.schema = "t14::f(Tensor x, int n) -> Tensor", .gradients = {{"n", "grad"}}}, GRD_ERROR_VALUE,
            "t14::f: gradient of 'n': no tensor argument of that name");
    refused(&(grd_definition){.schema = "t14::f(Tensor x) -> Tensor", .gradients = {{"x", NULL}}}, GRD_ERROR_VALUE,
            "t14::f: gradient of 'x': there is no formula");
    refused(&(grd_definition){.schema = "t14::f(Tensor x) -> Tensor", .gradients = {{"x", "grad"}, {"x", "grad"}}}, GRD_ERROR_VALUE,
            "t14::f: gradient of 'x': there are two formulas");
    refused(&(grd_definition){.schema = "t14::f(Tensor x) -> Tensor", .gradient = no_gradient, .saves = "x, z"}, GRD_ERROR_VALUE,
            "t14::f: saves: no argument or result of that name at character 4 of \"x, z\"");
    refused(&(grd_definition){.schema = "t14::f(Tensor x) -> Tensor", .gradient = no_gradient, .saves = "1"}, GRD_ERROR_VALUE,
            "t14::f: saves: expected a name at character 1 of \"1\"");
}

/* ---- Allocation failures ------------------------------------------------------------------------------------------------------------------ */

static void test_a_definition_survives_failed_allocations(void **state)
{
    (void)state;
    const grd_definition definition = {
        .schema = "t17::f(Tensor self, str mode='abc', int[] dims=[1, 2]) -> Tensor",
        .gradients = {{"self", "grad * 2 + (self if mode == 'abc' else grad) * 0 + sum(grad, [0], True) * 0 + grad * 0 * (n1 + 1)"}},
    };
    grd_definition good = definition;
    good.gradients[0].formula = "grad * 2 + (self if mode == 'abc' else grad) * 0 + sum(grad, [0], True) * 0 + grad * 0 * (1 + 1)";
    refused(
        &definition, GRD_ERROR_VALUE,
        "t17::f: gradient of 'self': unknown name 'n1'; known are grad, self, mode, dims, result at character 91 of \"grad * 2 + (self if "
        "mode == 'abc' else grad) * 0 + sum(grad, [0], True) * 0 + grad * 0 * (n1 + 1)\"");
    const grd_memory_stats before = grd_memory_get_stats();
    const int64_t count = grd_op_count();
    int n = 1;
    /* For each n, first all allocations from the n-th on fail, and then only the n-th one. */
    for (bool forever = true;; n += !forever, forever = !forever) {
        grd_memory_fail_at(n, forever);
        const grd_op *op = grd_define_operator(&good);
        grd_memory_fail_at(0, false);
        if (op != NULL)
            break;
        assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
        grd_error_clear();
        assert_int_equal(grd_memory_get_stats().blocks, before.blocks);
        assert_null(grd_op_find("t17::f"));
        assert_int_equal(grd_op_count(), count);
    }
    assert_true(n >= 6); /* a definition allocates at least the operator, the derivative, the formula, its strings and its nodes */
    expect_ok();
}

/* Allocations fail while a call is recorded or while its formula is evaluated. Each failure is one MemoryError, and the next backward works. */
static void test_backward_survives_failed_allocations(void **state)
{
    (void)state;
    const grd_op *op = define("t18::square(Tensor self, str mode='abc') -> Tensor", "self",
                              "sum(stack([grad, grad], 0), [0]) * self if mode == 'abc' else grad", square);
    int n = 1;
    for (bool done = false, forever = true; !done; n += !forever, forever = !forever) {
        const grd_scope scope = grd_scope_open();
        grd_tensor *x = leaf3();
        grd_memory_fail_at(n, forever);
        grd_tensor *y = grd_sum(call1(op, x)), *gradient;
        done = grd_grad(grd_tensors(y), grd_tensors(x), NULL, &gradient);
        grd_memory_fail_at(0, false);
        if (done) {
            EXPECT_VALUES(gradient, 2, 4, 6);
        } else {
            assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
            grd_error_clear();
            EXPECT_VALUES(x, 1, 2, 3);
        }
        grd_scope_close(scope);
    }
    assert_true(n > 10);
}

/* ---- Threads -------------------------------------------------------------------------------------------------------------------------------- */

enum { THREADS = 8, EACH = 12 };

/* Thread function: defines operators with names of its own, and tries to define operators with names that all threads use. Only one thread can define
 * such a shared name. Afterwards this thread calls operators of both kinds. Returns 1 plus the number of shared names that this thread defined, or
 * NULL if a check failed. */
static void *define_and_call(void *number)
{
    const int thread = (int)(intptr_t)number % THREADS;
    const grd_scope scope = grd_scope_open();
    intptr_t won = 0;
    for (int i = 0; i < EACH; i++) {
        char schema[96], name[32];
        snprintf(name, sizeof name, "t19::f%d_%d", thread, i);
        snprintf(schema, sizeof schema, "%s(Tensor self) -> Tensor", name);
        const grd_op *own = grd_define_operator(&(grd_definition){.schema = schema, .gradients = {{"self", "grad * 2 * self"}}});
        grd_register_kernel(name, GRD_KEY_CPU, square, NULL);
        if (own == NULL || grd_op_find(name) != own)
            return NULL;
        snprintf(schema, sizeof schema, "t19::shared%d(Tensor self) -> Tensor", i);
        won += grd_define_operator(&(grd_definition){.schema = schema, .kernel = add_to_itself}) != NULL;
        grd_error_clear();
        snprintf(name, sizeof name, "t19::shared%d", i);
        grd_tensor *x = leaf3();
        grd_backward(grd_sum(grd_add(call1(own, x), call1(grd_op_find(name), x))));
        double gradient[3];
        grd_to_memory(grd_grad_of(x), gradient, GRD_FLOAT64);
        if (!grd_ok() || gradient[2] != 8)
            return NULL;
        for (int64_t k = grd_op_count() - 1; k >= grd_op_count() - 4; k--)
            if (grd_op_schema(grd_op_at(k))[0] == '\0')
                return NULL;
    }
    grd_scope_close(scope);
    return (void *)(won + 1);
}

static void test_threads_define_and_call_operators(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    const int64_t before = grd_op_count();
    intptr_t won = 0;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, define_and_call, (void *)(intptr_t)i), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_non_null(result);
        won += (intptr_t)result - 1;
    }
    assert_int_equal(won, EACH); /* all threads tried to define each shared name, and exactly one succeeded */
    assert_int_equal(grd_op_count(), before + EACH * (THREADS + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEFINES(test_a_defined_operator_can_be_found_and_called),
        DEFINES(test_a_composite_runs_on_any_device_and_is_differentiated),
        DEFINES(test_kernels_are_registered_for_dispatch_keys),
        DEFINES(test_a_kernel_for_a_key_precedes_the_composite),
        DEFINES(test_invalid_kernel_results_are_refused),
        DEFINES(test_invalid_kernel_result_lists_are_refused),
        DEFINES(test_gradients_can_be_given_as_functions),
        DEFINES(test_lists_strings_and_generators_are_saved_for_backward),
        DEFINES(test_a_list_of_results_is_saved_for_double_backward),
        DEFINES(test_invalid_definitions_are_refused),
        DEFINES(test_a_definition_survives_failed_allocations),
        DEFINES(test_backward_survives_failed_allocations),
        DEFINES(test_threads_define_and_call_operators),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
