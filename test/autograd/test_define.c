/* Operators defined at run time: calls, kernels for keys, gradients as formulas and as functions, each checked against finite differences and against
 * the operators of the schema, twice; what is refused, in which words; allocation failures; threads. */
#include <pthread.h>

#include "support.h"

static const grd_op *define(const char *schema, const char *arg, const char *formula, grd_boxed_kernel *kernel)
{
    const grd_op *op = grd_define_operator(&(grd_definition){.schema = schema, .gradients = {{arg, formula}}, .kernel = kernel});
    expect_ok();
    assert_non_null(op);
    return op;
}

static grd_value tensor_value(grd_tensor *t)
{
    return (grd_value){.kind = GRD_KIND_TENSOR, .v.tensor = t};
}

static grd_tensor *call1(const grd_op *op, grd_tensor *x)
{
    const grd_value arg = tensor_value(x);
    grd_value result;
    grd_call(op, GRD_FUNCTIONAL, &arg, 1, NULL, &result);
    return result.v.tensor;
}

/* ---- Kernels ------------------------------------------------------------------------------------------------------------------- */

static void give(grd_value *ret_results, grd_tensor *t)
{
    ret_results[0] = tensor_value(t);
}

/* self ** 3 * scale, of operators. */
static void cube(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    grd_tensor *x = args[0].v.tensor;
    give(ret_results, grd_mul(grd_mul(x, grd_mul(x, x)), grd_number(args[1].v.scalar)));
}

static void add_to_itself(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    give(ret_results, grd_add(args[0].v.tensor, args[0].v.tensor));
}

static void multiply(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    give(ret_results, args[1].v.tensor != NULL ? grd_mul(args[0].v.tensor, args[1].v.tensor) : grd_clone(args[0].v.tensor));
}

/* A loop of its own, which autograd cannot look into: doubles float64. */
static void twice(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out;
    grd_tensor *x = grd_contiguous(args[0].v.tensor), *y = grd_empty_like(x);
    ++*(int *)context;
    for (int64_t i = 0; grd_ok() && i < grd_numel(x); i++)
        ((double *)grd_data(y))[i] = 2 * ((const double *)grd_data(x))[i];
    give(ret_results, y);
}

static void twice_meta(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    give(ret_results, grd_empty_like(args[0].v.tensor));
}

static grd_tensor *double_leaf(void)
{
    return grd_set_requires_grad(grd_from_data((const double[]){0.5, -1.5, 2, 1, 3, -0.25}, grd_dims(2, 3), GRD_FLOAT64), true);
}

static void square(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    give(ret_results, grd_mul(args[0].v.tensor, args[0].v.tensor));
}

static grd_scope test_scope;

static int open_scope(void **state)
{
    (void)state;
    test_scope = grd_scope_open();
    return 0;
}

static int close_scope(void **state)
{
    (void)state;
    grd_memory_fail_at(0, false);
    grd_error_clear();
    grd_set_grad_enabled(true);
    grd_scope_close(test_scope);
    return 0;
}

/* ---- Checking derivatives -------------------------------------------------------------------------------------------------------- */

/* An operator of tensors and the sum of what it returns, weighted so that no result counts like another. */
struct checked {
    const grd_op *op;
    grd_value args[4];
    int nargs, ntensors;
};

static grd_tensors run_checked(grd_tensor *const *inputs, int n, void *context)
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

static void check_gradients(const grd_op *op, grd_tensors inputs, grd_value extra)
{
    struct checked checked = {.op = op, .nargs = (int)inputs.n + (extra.kind != GRD_KIND_NONE)};
    checked.args[inputs.n] = extra;
    if (!grd_gradcheck(run_checked, inputs, &checked, NULL) || !grd_gradgradcheck(run_checked, inputs, &checked, NULL))
        fail_msg("%s: %s", grd_op_name(op), grd_error_message());
}

static const grd_value nothing = {.kind = GRD_KIND_NONE};

/* ---- Calls ------------------------------------------------------------------------------------------------------------------------ */

static void test_a_definition_is_an_operator_like_any_other(void **state)
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

static void test_a_composite_serves_devices_and_is_differentiated_through_its_parts(void **state)
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

static void test_kernels_for_keys(void **state)
{
    (void)state;
    static int runs;
    const grd_op *op = define("t3::twice(Tensor self) -> Tensor", "self", "grad * 2", NULL);
    call1(op, double_leaf());
    expect_error("t3::twice: no kernel for dispatch key CPU; there are kernels for AUTOGRAD");
    grd_register_kernel("t3::twice", GRD_KEY_CPU, twice, &runs);
    grd_register_kernel("t3::twice", GRD_KEY_CPU, twice, &runs);
    expect_error("operator 't3::twice' has a kernel for dispatch key CPU already");
    check_gradients(op, grd_tensors(double_leaf()), nothing);
    assert_true(runs > 10);
    call1(op, grd_empty(grd_dims(4), .device = GRD_META));
    expect_error("t3::twice: no kernel for dispatch key META; there are kernels for CPU, AUTOGRAD");
    grd_register_kernel("t3::twice", GRD_KEY_META, twice_meta, NULL);
    assert_int_equal(grd_numel(call1(op, grd_empty(grd_dims(4), .device = GRD_META))), 4);
    expect_ok();
}

static void test_a_kernel_for_a_key_comes_before_the_composite(void **state)
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

/* ---- Kernels that do not keep their word --------------------------------------------------------------------------------------------- */

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

/* A list of the argument's first tensor: itself, or the transpose of a copy. */
static void write_list(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out;
    static grd_tensor *list[1];
    grd_tensor *first = args[0].v.tensors.data[0];
    list[0] = context != NULL ? grd_t(grd_clone(first)) : first;
    ret_results[0] = (grd_value){.kind = GRD_KIND_TENSORS, .v.tensors = {list, 1}};
}

static void test_lists_that_a_kernel_writes_are_looked_at(void **state)
{
    (void)state;
    static const char *const errors[] = {"t22::f0: result 0 of the kernel shares memory with argument 'tensors'; return a copy",
                                         "t22::f1: tensor 0 of the kernel's list is a view; return a copy"};
    grd_tensor *x = double_leaf(), *y = double_leaf(), *tensors[] = {y, x};
    const grd_value arg = {.kind = GRD_KIND_TENSORS, .v.tensors = {tensors, 2}};
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

static void test_what_a_kernel_writes_is_looked_at(void **state)
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

    /* Writing over the result must not lose its history, as it would if it were a view of a tensor that has none. */
    const grd_op *own = define("t5::own(Tensor self) -> Tensor", "self", "t(grad) * 2 * self", write_view_of_own);
    grd_tensor *x = double_leaf(), *y = call1(own, x);
    assert_null(grd_view_base(y));
    grd_mul_(y, grd_number(grd_int(10)));
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 10, -30, 40, 20, 60, -5);
    check_gradients(own, grd_tensors(double_leaf()), nothing);
}

/* ---- Formulas ------------------------------------------------------------------------------------------------------------------------ */

/* Runs the operator of the schema that `context` points to, so that only the derivative is what is defined here. */
static void same_as(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)keys, (void)out;
    grd_call(context, GRD_FUNCTIONAL, args, grd_op_arg_count(op), NULL, ret_results);
}

static const grd_op *define_as(const char *name, const char *schema, const grd_gradient_formula *gradients, int n)
{
    grd_definition definition = {.schema = schema, .kernel = same_as, .context = (void *)(uintptr_t)grd_op_find(name)};
    for (int i = 0; i < n; i++)
        definition.gradients[i] = gradients[i];
    const grd_op *op = grd_define_operator(&definition);
    expect_ok();
    return op;
}

/* First and second derivatives are those of the operator that says the same. */
static void same_derivatives(const grd_op *a, const grd_op *b, grd_tensor *x, grd_value extra)
{
    const grd_op *ops[] = {a, b};
    grd_tensor *first[2], *second[2];
    for (int i = 0; i < 2; i++) {
        const grd_value args[] = {tensor_value(x), extra};
        grd_value result;
        grd_call(ops[i], GRD_FUNCTIONAL, args, extra.kind == GRD_KIND_NONE ? 1 : 2, NULL, &result);
        grd_tensor *y = grd_sum(grd_mul(result.v.tensor, result.v.tensor));
        grd_grad(grd_tensors(y), grd_tensors(x), &(grd_backward_options){.create_graph = true}, &first[i]);
        grd_grad(grd_tensors(grd_sum(grd_mul(first[i], first[i]))), grd_tensors(x), NULL, &second[i]);
    }
    expect_ok();
    assert_true(grd_allclose(first[0], first[1], 1e-10, 1e-10, false));
    assert_true(grd_allclose(second[0], second[1], 1e-10, 1e-10, false));
}

static void test_formulas_of_the_schema(void **state)
{
    (void)state;
    const grd_op *tanh =
        define_as("tanh", "t6::tanh(Tensor self) -> Tensor", (grd_gradient_formula[]){{"self", "grad * (1 - result * result)"}}, 1);
    assert_string_equal(grd_node_name(grd_grad_fn(call1(tanh, leaf3()))), "T6TanhBackward0");
    same_derivatives(tanh, grd_op_find("tanh"), double_leaf(), nothing);
    check_gradients(tanh, grd_tensors(double_leaf()), nothing);

    const grd_value dim = {.kind = GRD_KIND_INT, .v.integer = 1};
    const grd_op *cumsum = define_as("cumsum", "t6::cumsum(Tensor self, int dim, *, dtype? dtype=None) -> Tensor",
                                     (grd_gradient_formula[]){{"self", "flip(cumsum(flip(grad, [dim]), dim), (dim,))"}}, 1);
    same_derivatives(cumsum, grd_op_find("cumsum"), double_leaf(), dim);
    check_gradients(cumsum, grd_tensors(double_leaf()), dim);

    const grd_op *mm = define_as("mm", "t6::mm(Tensor self, Tensor mat2) -> Tensor",
                                 (grd_gradient_formula[]){{"mat2", "mm(transpose(conj(self), 0, 1), grad)"},
                                                          {"self", "mm(grad, transpose(conj(mat2), dim1=1, dim0=0))"}},
                                 2);
    check_gradients(mm, grd_tensors(double_leaf(), grd_set_requires_grad(grd_contiguous(grd_detach(grd_t(double_leaf()))), true)), nothing);

    const grd_op *pow = define_as("mul", "t6::square(Tensor self, Tensor other) -> Tensor",
                                  (grd_gradient_formula[]){{"self", "grad * other ** 1"}, {"other", "-(-grad) * self / 1.0"}}, 2);
    check_gradients(pow, grd_tensors(double_leaf(), double_leaf()), nothing);
}

/* Everything the language has besides operators, each in a place where a wrong value is a wrong gradient. */
static void test_the_language(void **state)
{
    (void)state;
    static const char *const twos[] = {
        "2",
        "1 + 1",
        "5 - 3",
        "4 / 2",
        "1 * 2.0",
        ".2e1",
        "-(-2)",
        "- -2",
        "3 + -1",
        "7 - 2 - 3",
        "1 + 2 * 3 - 5",
        "(1 + 2) * 2 - 4",
        "8 / 2 / 2",
        "2 if n == 3 else 5",
        "5 if n != 3 else 2",
        "2 if n >= 3 and n <= 3 else 5",
        "2 if n < 3 or n > 2 else 5",
        "2 if not n < 3 else 5",
        "2 if x is None else 5",
        "5 if n is None else 2",
        "2 if mode == 'a b' else 5",
        "5 if mode != \"a b\" else 2",
        "2 if mode is not None else 5",
        "2 if 0.5 else 5",
        "5 if False else 2",
        "5 if 0 else (5 if None is not None else 2)",
        "n - 1",
        "n - k + 0.5",
        "2 if keep else 5",
        "2 if dtype is None else 5",
        "sum(full([n - 1], 1), dtype='float64')",
        "sum(ones(shape(grad), dtype=dtype(grad))) / 3",
        "sum(ones(shape(self))) / 3",
        "sum(stack([grad, grad])) / sum(grad)",
        "offset(self) + offset(grad) + 2",
        "sum(ones(dims)) / 3",
        "t7::two(grad) / grad",
        "s",
        "s * 1",
        "-s + 4",
        "s + n - 3",
        "2 if s == 2 else 5",
        "2 if s > 1.5 else 5",
        "2 if k < 1.6 else 5",
        "2 if 1.5 == k else 5",
        "5 if k > 2.0 or k >= 1.6 else 2",
        "5 if k != 1.5 and k <= 1.6 else 2",
        "2 if s else 5",
        "sum(ones([z, s]))",
        "sum(ones(n)) - 1",
        "select(full([3], 2), 0, z)",
        "sum(diagonal(ones([2, 2]), offset=x))",
        "sum(ones([2, 1]), [0], keepdim=keep)",
        "2 if dims is not None else 5",
        "2 if device is None and s is not None and self is not None else 5",
        "5 if [1] is None or dtype(self) is None or keep is None else 2",
        "2 if n == 3 else grad",
        "5 if mode == 'b' or not mode == 'a b' else 2",
        "2 if 'a' < 'b' and 'b' >= 'a' and 'b' > 'a' and not 'b' <= 'a' and 'a' <= 'a' else 5",
        "sum(ones([])) * 2",
        "sum(ones(())) + sum(ones(shape(grad), dtype=dtype(result))) / 6",
        "1.5 + (0.5 if n else None)",
        "(1 if n == 3 else 0.5) * 2",
        "(None if n != 3 else 1) + 1",
        "sum(ones(strides(self))) - 1",
        "sum(ones(strides(grad))) + 2",
        "sum(ones(shape(result))) / 3 + offset(result)",
        "-True + 3 * True",
        "div(4, 2)",
        "sum(stack([sum(grad) * 0, 2]))",
        "sum(stack((2, sum(grad) * 0,)))",
        "2 if not (x is not None) else 5",
        "4 / n * 1.5",
    };
    static int runs;
    define("t7::two(Tensor self) -> Tensor", NULL, NULL, add_to_itself);
    for (size_t i = 0; i < sizeof twos / sizeof *twos; i++) {
        char schema[256], formula[128], name[16];
        snprintf(name, sizeof name, "t7::f%d", (int)i);
        snprintf(schema, sizeof schema,
                 "%s(Tensor self, int n=3, float k=1.5, str mode='a b', int? x=None, bool keep=True, dtype? dtype=None, int[] dims=[6], "
                 "Scalar s=2, int? z=1, device? device=None) -> Tensor",
                 name);
        snprintf(formula, sizeof formula, "grad * (%s)", twos[i]);
        const grd_op *op = define(schema, "self", formula, NULL);
        grd_register_kernel(name, GRD_KEY_CPU, twice, &runs);
        grd_tensor *x = double_leaf();
        grd_backward(grd_sum(call1(op, x)));
        if (!grd_ok())
            fail_msg("%s: %s", formula, grd_error_message());
        if (!grd_equal(grd_grad_of(x), grd_full(grd_dims(2, 3), grd_int(2), .dtype = GRD_FLOAT64)))
            fail_msg("%s is not 2", twos[i]);
    }
}

/* Several results, a list, an argument without a gradient, and one that is absent. */
static void divide(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    grd_tensor *a = args[0].v.tensor, *b = args[1].v.tensor;
    ret_results[0] = tensor_value(grd_mul(a, b));
    ret_results[1] = tensor_value(grd_sub(a, grd_mul(b, b)));
}

static void test_several_results(void **state)
{
    (void)state;
    const grd_op *op = grd_define_operator(&(grd_definition){
        .schema = "t8::both(Tensor a, Tensor b) -> (Tensor product, Tensor)",
        .gradients = {{"a", "grad_product * b + grad_result1"}, {"b", "grad * a - grad_result1 * 2 * b"}},
        .kernel = divide,
    });
    expect_ok();
    check_gradients(op, grd_tensors(double_leaf(), double_leaf()), nothing);

    grd_tensor *a = double_leaf(), *b = double_leaf();
    const grd_value args[] = {tensor_value(a), tensor_value(b)};
    grd_value results[2];
    grd_call(op, GRD_FUNCTIONAL, args, 2, NULL, results);
    grd_backward(grd_sum(results[1].v.tensor)); /* the other gradient is zeros */
    EXPECT_VALUES(grd_grad_of(a), 1, 1, 1, 1, 1, 1);
}

static void join(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    give(ret_results, grd_cat(args[0].v.tensors, .dim = grd_int(args[1].v.integer)));
}

/* Two copies. */
static void copies(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out;
    grd_tensor **list = context;
    list[0] = grd_clone(args[0].v.tensor);
    list[1] = grd_clone(args[0].v.tensor);
    ret_results[0] = (grd_value){.kind = GRD_KIND_TENSORS, .v.tensors = {list, 2}};
}

static void test_lists(void **state)
{
    (void)state;
    const grd_op *op =
        define("t9::join(Tensor[] tensors, int dim=0) -> Tensor", "tensors", "_cat_backward(grad, sizes_along(tensors, dim), dim)", join);
    grd_tensor *x = leaf3(), *y = leaf3(), *both[] = {x, y};
    grd_value args[] = {{.kind = GRD_KIND_TENSORS, .v.tensors = {both, 2}}}, result;
    grd_call(op, GRD_FUNCTIONAL, args, 1, NULL, &result);
    grd_backward(grd_sum(grd_mul(result.v.tensor, VECTOR(1, 2, 3, 4, 5, 6))));
    EXPECT_VALUES(grd_grad_of(x), 1, 2, 3);
    EXPECT_VALUES(grd_grad_of(y), 4, 5, 6);

    static grd_tensor *list[2];
    op = grd_define_operator(&(grd_definition){.schema = "t9::copies(Tensor self) -> Tensor[]",
                                               .gradients = {{"self", "sum(stack(grads), [0])"}},
                                               .kernel = copies,
                                               .context = list});
    expect_ok();
    for (int used = 1; used <= 2; used++) {
        x = leaf3();
        args[0] = tensor_value(x);
        assert_true(grd_call(op, GRD_FUNCTIONAL, args, 1, NULL, &result));
        assert_int_equal(result.v.tensors.n, 2);
        grd_tensor *sum = result.v.tensors.data[0];
        grd_backward(grd_sum(used == 1 ? sum : grd_add(sum, result.v.tensors.data[1])));
        EXPECT_VALUES(grd_grad_of(x), used, used, used);
    }
}

static void test_arguments_without_a_formula(void **state)
{
    (void)state;
    const grd_op *op = grd_define_operator(&(grd_definition){
        .schema = "t10::scale(Tensor self, Tensor? factor=None, Tensor? other=None) -> Tensor",
        .gradients = {{"self", "grad if factor is None else grad * factor"}, {"factor", "None"}},
        .kernel = multiply,
    });
    expect_ok();
    grd_tensor *x = leaf3(), *factor = grd_set_requires_grad(VECTOR(5, 6, 7), true);
    grd_backward(grd_sum(call1(op, x)));
    EXPECT_VALUES(grd_grad_of(x), 1, 1, 1);
    grd_value args[] = {tensor_value(x), tensor_value(factor), tensor_value(factor)}, result;
    grd_call(op, GRD_FUNCTIONAL, args, 2, NULL, &result);
    EXPECT_VALUES(result.v.tensor, 5, 12, 21);
    grd_backward(grd_sum(result.v.tensor));
    EXPECT_VALUES(grd_grad_of(x), 6, 7, 8);
    assert_null(grd_grad_of(factor));
    assert_false(grd_call(op, GRD_FUNCTIONAL, args, 3, NULL, &result));
    expect_error("t10::scale: the derivative for 'other' is not implemented");
}

static void test_an_operator_without_a_gradient(void **state)
{
    (void)state;
    static int runs;
    const grd_op *op = define("t11::twice(Tensor self) -> Tensor", NULL, NULL, NULL);
    grd_register_kernel("t11::twice", GRD_KEY_CPU, twice, &runs);
    grd_tensor *y = grd_sum(call1(op, double_leaf()));
    assert_true(grd_requires_grad(y));
    grd_backward(y);
    assert_int_equal(grd_error_get(), GRD_ERROR_RUNTIME);
    expect_error("derivative for t11::twice is not implemented");
}

/* Only what a formula names is saved: an argument that it does not name may be written. */
static void test_what_is_saved(void **state)
{
    (void)state;
    const grd_op *op = define("t12::mul(Tensor self, Tensor other) -> Tensor", "self", "grad * other", multiply);
    grd_tensor *x = leaf3(), *other = VECTOR(4, 5, 6);
    const grd_value args[] = {tensor_value(x), tensor_value(other)};
    grd_value result;
    grd_call(op, GRD_FUNCTIONAL, args, 2, NULL, &result);
    grd_set_grad_enabled(false);
    grd_zero_(x);
    grd_set_grad_enabled(true);
    grd_backward(grd_sum(result.v.tensor));
    EXPECT_VALUES(grd_grad_of(x), 4, 5, 6);
    grd_call(op, GRD_FUNCTIONAL, args, 2, NULL, &result);
    grd_zero_(other);
    grd_backward(grd_sum(result.v.tensor));
    expect_error("has been modified by an inplace operation");
}

/* ---- Functions ------------------------------------------------------------------------------------------------------------------------ */

/* The gradient of x * y * scale: reads both tensors. */
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

/* exp, whose gradient reads the result alone. */
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

static void test_gradients_as_functions(void **state)
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

/* ---- What is refused -------------------------------------------------------------------------------------------------------------------- */

static void refused(const grd_definition *definition, grd_error_code code, const char *text)
{
    assert_null(grd_define_operator(definition));
    assert_string_equal(grd_error_message(), text);
    assert_int_equal(grd_error_get(), code);
    grd_error_clear();
}

static void test_definitions_that_are_refused(void **state)
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
            "there is an operator 't14::one' already");
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

static void test_formulas_that_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "expected a value at character 1"},
        {"grad *", "expected a value at character 7"},
        {"grad * (3", "expected ')' at character 10"},
        {"grad 3", "expected the end or an operator at character 6"},
        {"grad // 3", "expected the end or an operator at character 6"},
        {"grad % 3", "expected the end or an operator at character 6"},
        {"selff", "unknown name 'selff'; known are grad, self, n, mode, w, result at character 1"},
        {"grad * cubed(self)", "'cubed' is not an operator at character 8"},
        {"max_dim(grad, 0)", "'max_dim' has several results; a formula needs one at character 1"},
        {"t15::", "expected the name of an operator at character 6"},
        {"mul(grad)", "'mul' needs 'other' at character 1"},
        {"mul(grad, self, self)", "'mul' takes 2 arguments at character 17"},
        {"mul(grad, oter=self)", "'mul' does not take 'oter' here at character 11"},
        {"mul(grad, self=self)", "'mul' does not take 'self' here at character 11"},
        {"mul(self=grad, self)", "an argument without a name follows one with a name at character 16"},
        {"mul(grad self)", "expected ',' at character 10"},
        {"mul(grad, mode)", "argument 'other' of 'mul' must be Tensor, not str at character 11"},
        {"sum(grad, dtype='float6')", "argument 'dtype' of 'sum' must be dtype, not str at character 17"},
        {"transpose(grad, 0, 1.5)", "argument 'dim1' of 'transpose' must be int, not float at character 20"},
        {"transpose(grad, None, 1)", "argument 'dim0' of 'transpose' must be int, not None at character 17"},
        {"[grad]", "the gradient of a Tensor cannot be Tensor[] at character 1"},
        {"mode", "the gradient of a Tensor cannot be str at character 1"},
        {"grad + mode", "'+' takes tensors and numbers, not str at character 6"},
        {"grad ** mode", "'**' takes tensors and numbers, not str at character 6"},
        {"2 ** 3", "'**' needs a tensor at character 3"},
        {"-mode", "expected a number, not str at character 1"},
        {"grad if self else 0", "Tensor is no condition: say 'is None' or compare at character 9"},
        {"grad if not mode else 0", "str is no condition: say 'is None' or compare at character 9"},
        {"grad if n and self else 0", "Tensor is no condition: say 'is None' or compare at character 15"},
        {"grad if n == 1 == 2 else 0", "expected 'else' at character 16"},
        {"grad if n", "expected 'else' at character 10"},
        {"grad if mode == 1 else 0", "expected a number, not str at character 9"},
        {"grad if n == mode else 0", "expected a number, not str at character 14"},
        {"grad if n is 3 else 0", "expected 'None' at character 14"},
        {"grad if n else mode", "one side is Tensor, the other str at character 1"},
        {"sum(grad, [mode])", "a list holds tensors or integers, not str at character 12"},
        {"sum(grad, [1.5])", "a list holds tensors or integers, not float at character 11"},
        {"shape(3)", "shape(...) takes a name at character 7"},
        {"zeros(shape(n))", "shape(...) takes a Tensor argument that is never absent, or a result at character 13"},
        {"zeros(shape(w))", "shape(...) takes a Tensor argument that is never absent, or a result at character 13"},
        {"zeros(shape(q))", "unknown name 'q'; known are grad, self, n, mode, w, result at character 13"},
        {"zeros(sizes_along(self, n))", "sizes_along(...) takes a Tensor[] argument at character 19"},
        {"zeros(sizes_along(self, mode))", "sizes_along(...) takes the name of an int argument at character 29"},
        {"zeros(shape(self, 1))", "expected ')' at character 17"},
        {"full([1], 'a)", "the string does not end at character 11"},
        {"grad * 1.5.5", "expected the end or an operator at character 11"},
        {"grad * 1j", "expected a number at character 8"},
        {"uniform(grad)", "'uniform' has no functional form at character 1"},
        {"a_name_that_is_longer_than_any_operator_has_and_so_is_none_in_any_case_whatever_it_may_be_that_somebody_has_defined_"
         "before_this_line(grad)",
         "'a_name_that_is_longer_than_any_operator_has_and_so_is_none_i' is not an operator at character 1"},
        {"zeros(sizes_along(self n))", "expected ',' at character 24"},
        {"zeros(sizes_along(result, n))", "sizes_along(...) takes a Tensor[] argument at character 19"},
        {"zeros([1 2])", "expected ',' at character 10"},
        {"zeros([1, )", "expected a value at character 11"},
        {"(grad, )", "the gradient of a Tensor cannot be Tensor[] at character 1"},
        {"(mode, 1)", "a list holds tensors or integers, not str at character 1"},
        {"grad - ", "expected a value at character 8"},
        {"grad ** ", "expected a value at character 9"},
        {"1 if n == ", "expected a value at character 11"},
        {"1 if n and ", "expected a value at character 12"},
        {"1 if ", "expected a value at character 6"},
        {"1 if n else ", "expected a value at character 13"},
        {"not ", "expected a value at character 5"},
        {"- ", "expected a value at character 3"},
        {"( ", "expected a value at character 3"},
        {"t15::f(", "expected a value at character 8"},
        {"lambda: 1", "unknown name 'lambda'; known are grad, self, n, mode, w, result at character 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "t15::f: gradient of 'self': %s of \"%s\"", cases[i][1], cases[i][0]);
        refused(&(grd_definition){.schema = "t15::f(Tensor self, int n, str mode, Tensor? w=None) -> Tensor",
                                  .gradients = {{"self", cases[i][0]}}},
                GRD_ERROR_VALUE, text);
    }
    assert_null(grd_op_find("t15::f"));
}

/* Four tensors and three facts of each are as much as can be saved. */
static void test_formulas_that_save_too_much(void **state)
{
    (void)state;
    char formula[1024] = "grad";
    for (char c = 'a'; c <= 'd'; c++) {
        char facts[128];
        snprintf(facts, sizeof facts, " * (2 if %c is None or shape(%c) is None or strides(%c) is None else offset(%c))", c, c, c, c);
        strcat(formula, facts);
    }
    grd_definition definition = {.schema = "t20::f(Tensor a, Tensor b, Tensor c, Tensor d) -> Tensor", .gradients = {{"a", formula}}};
    assert_non_null(grd_define_operator(&definition));
    expect_ok();
    strcat(formula, " * offset(result)");
    definition.schema = "t20::g(Tensor a, Tensor b, Tensor c, Tensor d) -> Tensor";
    assert_null(grd_define_operator(&definition));
    expect_error("t20::g: gradient of 'a': the formulas save more than 16 values at character");
}

/* The gradient of a result of integers does not exist. */
static void values_and_signs(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results,
                             void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    ret_results[0] = tensor_value(grd_mul(args[0].v.tensor, args[0].v.tensor));
    ret_results[1] = tensor_value(grd_to(grd_sign(args[0].v.tensor), .dtype = GRD_INT64));
}

static void test_a_result_without_a_gradient(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"grad * self + grad_signs * self", "argument 'self' (position 1) is missing"},
        {"grad * sum(ones(shape(grad_signs)))", "the formula takes a fact of the gradient of a result that has none"},
    };
    for (int i = 0; i < 2; i++) {
        char schema[80];
        snprintf(schema, sizeof schema, "t21::f%d(Tensor self) -> (Tensor squares, Tensor signs)", i);
        const grd_op *op = define(schema, "self", cases[i][0], values_and_signs);
        const grd_value arg = tensor_value(leaf3());
        grd_value results[2];
        assert_true(grd_call(op, GRD_FUNCTIONAL, &arg, 1, NULL, results));
        assert_false(grd_requires_grad(results[1].v.tensor));
        grd_backward(grd_sum(grd_add(results[0].v.tensor, results[1].v.tensor)));
        expect_error(cases[i][1]);
    }
}

/* Neither reading nor evaluating may run out of stack. */
static void test_long_and_deep_formulas(void **state)
{
    (void)state;
    enum { N = 100000 };
    static char text[2 * N + 16];
    static const struct {
        const char *unit, *end, *error;
    } cases[] = {
        {"(", "1", "nested more than 100 deep"},
        {"-", "1", "nested more than 100 deep"},
        {"not ", "1", "nested more than 100 deep"},
        {"1+", "grad", "a formula has at most 500 parts, not more"},
        {"1 if 1 else ", "1", "nested more than 100 deep"},
        {"2**", "grad", "nested more than 100 deep"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const size_t length = strlen(cases[i].unit);
        char *end = text;
        while (end + length < text + 2 * N)
            end = stpcpy(end, cases[i].unit);
        strcpy(end, cases[i].end);
        assert_null(grd_define_operator(&(grd_definition){.schema = "t16::f(Tensor self) -> Tensor", .gradients = {{"self", text}}}));
        assert_int_equal(grd_error_get(), GRD_ERROR_VALUE);
        expect_error(cases[i].error);
    }
}

/* ---- Allocation failures ------------------------------------------------------------------------------------------------------------------ */

static void test_allocations_that_fail(void **state)
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
    for (bool forever = true;; n += !forever, forever = !forever) { /* 1 from then on, 1 once, 2 from then on, ... */
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
    assert_true(n >= 6); /* operator, derivative, formula, strings, nodes, twice */
    expect_ok();
}

/* Recording and evaluating: one error, nothing left, and the next backward works. */
static void test_allocations_that_fail_in_backward(void **state)
{
    (void)state;
    const grd_op *op = define("t18::square(Tensor self, str mode='abc') -> Tensor", "self",
                              "sum(stack([grad, grad], 0), (0,)) * self if mode == 'abc' else grad", square);
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

/* Defines operators of its own, one name that all want, and calls whatever it finds. */
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

static void test_threads_define_and_call(void **state)
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
    assert_int_equal(won, EACH); /* each shared name has one definition */
    assert_int_equal(grd_op_count(), before + EACH * (THREADS + 1));
}

int main(void)
{
    /* Operators stay, so what a test defines is not counted against it: where memory matters the test counts itself. */
#define DEFINES(name) cmocka_unit_test_setup_teardown(name, open_scope, close_scope)
    const struct CMUnitTest tests[] = {
        DEFINES(test_a_definition_is_an_operator_like_any_other),
        DEFINES(test_a_composite_serves_devices_and_is_differentiated_through_its_parts),
        DEFINES(test_kernels_for_keys),
        DEFINES(test_a_kernel_for_a_key_comes_before_the_composite),
        DEFINES(test_what_a_kernel_writes_is_looked_at),
        DEFINES(test_lists_that_a_kernel_writes_are_looked_at),
        DEFINES(test_formulas_of_the_schema),
        DEFINES(test_the_language),
        DEFINES(test_several_results),
        DEFINES(test_lists),
        DEFINES(test_arguments_without_a_formula),
        DEFINES(test_an_operator_without_a_gradient),
        DEFINES(test_what_is_saved),
        DEFINES(test_gradients_as_functions),
        DEFINES(test_definitions_that_are_refused),
        DEFINES(test_formulas_that_are_refused),
        DEFINES(test_formulas_that_save_too_much),
        DEFINES(test_a_result_without_a_gradient),
        DEFINES(test_long_and_deep_formulas),
        DEFINES(test_allocations_that_fail),
        DEFINES(test_allocations_that_fail_in_backward),
        DEFINES(test_threads_define_and_call),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
