/* Tests gradient formulas of operators defined at run time: the formula language, lists, several results, and error texts. First and second
 * derivatives are compared with finite differences and with those of built-in operators. */
#include "define.h"

static const grd_op *define_as(const char *name, const char *schema, const grd_gradient_formula *gradients, int n)
{
    grd_definition definition = {.schema = schema, .kernel = same_as, .context = (void *)(uintptr_t)grd_op_find(name)};
    for (int i = 0; i < n; i++)
        definition.gradients[i] = gradients[i];
    const grd_op *op = grd_define_operator(&definition);
    expect_ok();
    return op;
}

/* Checks that two operators that compute the same function have the same first and second derivatives. */
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

static void test_formulas_give_the_derivatives_of_built_in_operators(void **state)
{
    (void)state;
    const grd_op *tanh =
        define_as("tanh", "t6::tanh(Tensor self) -> Tensor", (grd_gradient_formula[]){{"self", "grad * (1 - result * result)"}}, 1);
    assert_string_equal(grd_node_name(grd_grad_fn(call1(tanh, leaf3()))), "T6TanhBackward0");
    same_derivatives(tanh, grd_op_find("tanh"), double_leaf(), nothing);
    check_gradients(tanh, grd_tensors(double_leaf()), nothing);

    const grd_value dim = {.kind = GRD_KIND_INT, .v.integer = 1};
    const grd_op *cumsum = define_as("cumsum", "t6::cumsum(Tensor self, int dim, *, dtype? dtype=None) -> Tensor",
                                     (grd_gradient_formula[]){{"self", "flip(cumsum(flip(grad, [dim]), dim), [dim])"}}, 1);
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

/* Each expression has the value 2 and is a factor of a gradient, so that a construct that is evaluated wrongly gives a wrong gradient. */
static void test_every_construct_of_the_formula_language_is_evaluated(void **state)
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
        "sum(ones(shape(grad * self))) / 3",
        "[5, 2, 7][n - 2]",
        "shape(self)[0]",
        "2 if dtype(self) in ('float32', 'float64') and not mode in ('a', 'b') else 5",
        "2 if dtype(self) != 'float32' and n in (1, 3) else 5",
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
        "2 if 'a' == 'a' and 'a' != 'b' else 5",
        "sum(ones([])) * 2",
        "sum(ones([])) + sum(ones(shape(grad), dtype=dtype(result))) / 6",
        "1.5 + (0.5 if n else None)",
        "(1 if n == 3 else 0.5) * 2",
        "(None if n != 3 else 1) + 1",
        "sum(ones(strides(self))) - 1",
        "sum(ones(strides(grad))) + 2",
        "sum(ones(shape(result))) / 3 + offset(result)",
        "-True + 3 * True",
        "div(4, 2)",
        "sum(stack([sum(grad) * 0, 2]))",
        "2 if n < inf else 5",
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

/* Kernel of an operator with two results, a * b and a - b * b. */
static void divide(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    grd_tensor *a = args[0].v.tensor, *b = args[1].v.tensor;
    ret_results[0] = tensor_value(grd_mul(a, b));
    ret_results[1] = tensor_value(grd_sub(a, grd_mul(b, b)));
}

static void test_formulas_for_operators_with_several_results(void **state)
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
    grd_backward(grd_sum(results[1].v.tensor)); /* results[0] is not used, so its gradient is zeros */
    EXPECT_VALUES(grd_grad_of(a), 1, 1, 1, 1, 1, 1);
}

static void join(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    give(ret_results, grd_cat(args[0].v.tensors, .dim = args[1].v.integer));
}

/* Kernel that returns a list of two copies of its argument. */
static void copies(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out;
    grd_tensor **list = context;
    list[0] = grd_clone(args[0].v.tensor);
    list[1] = grd_clone(args[0].v.tensor);
    ret_results[0] = (grd_value){.kind = GRD_KIND_TENSORS, .v.tensors = {2, list}};
}

static void test_formulas_for_list_arguments_and_results(void **state)
{
    (void)state;
    const grd_op *op =
        define("t9::join(Tensor[] tensors, int dim=0) -> Tensor", "tensors", "_cat_backward(grad, sizes_along(tensors, dim), dim)", join);
    grd_tensor *x = leaf3(), *y = leaf3(), *both[] = {x, y};
    grd_value args[] = {{.kind = GRD_KIND_TENSORS, .v.tensors = {2, both}}}, result;
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

static void test_arguments_without_a_formula_have_no_derivative(void **state)
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

static void test_backward_refuses_an_operator_without_gradient(void **state)
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

/* A call saves only the arguments that a formula names. Other arguments may be written in place before backward. */
static void test_only_tensors_named_in_a_formula_are_saved(void **state)
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

/* Kernel that returns a float result and an integer result. The integer result has no gradient. */
static void values_and_signs(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results,
                             void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    ret_results[0] = tensor_value(grd_mul(args[0].v.tensor, args[0].v.tensor));
    ret_results[1] = tensor_value(grd_to(grd_sign(args[0].v.tensor), .dtype = GRD_INT64));
}

static void test_formulas_may_not_use_an_undefined_gradient(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"grad * self + grad_signs * self", "argument 'self' (position 1) is missing"},
        {"grad * sum(ones(shape(grad_signs)))", "the formula reads the shape, dtype or device of an undefined gradient"},
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

/* Deeply nested and very long formulas are refused, because parsing them recursively could overflow the stack. */
static void test_long_and_deeply_nested_formulas_are_refused(void **state)
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

/* ---- Refused formulas ------------------------------------------------------------------------------------------------------------------- */

static void test_invalid_formulas_are_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "expected a value at character 1"},
        {"grad *", "expected a value at character 7"},
        {"grad * (3", "expected ')' at character 10"},
        {"grad 3", "expected the end or an operator at character 6"},
        {"grad // 3", "expected a value at character 7"},
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
        {"-mode", "'-' takes tensors and numbers, not str at character 1"},
        {"grad if self else 0", "Tensor is no condition: say 'is None' or compare at character 9"},
        {"grad if not mode else 0", "'not' takes numbers, not str at character 9"},
        {"grad if n and self else 0", "'and' takes numbers, not Tensor at character 11"},
        {"grad if n == 1 == 2 else 0", "comparisons are not chained at character 16"},
        {"grad if n", "expected 'else' at character 10"},
        {"grad if mode == 1 else 0", "'==' takes numbers, not str at character 14"},
        {"grad if n == mode else 0", "'==' takes numbers, not str at character 11"},
        {"grad if n is 3 else 0", "expected 'None' at character 14"},
        {"grad if n else mode", "one side is Tensor, the other str at character 1"},
        {"sum(grad, [mode])", "a list holds tensors or integers, not str at character 12"},
        {"sum(grad, [1.5])", "a list holds tensors or integers, not float at character 12"},
        {"shape(3)", "shape(...) takes a Tensor, not int at character 7"},
        {"zeros(shape(n))", "shape(...) takes a Tensor argument that is never absent, or a result at character 13"},
        {"zeros(strides(w))", "strides(...) takes a Tensor argument that is never absent, or a result at character 15"},
        {"zeros(shape(q))", "unknown name 'q'; known are grad, self, n, mode, w, result at character 13"},
        {"zeros(sizes_along(self, n))", "sizes_along(...) takes a Tensor[] argument at character 19"},
        {"zeros(sizes_along(self, mode))", "sizes_along(...) takes the name of an int argument at character 29"},
        {"zeros(shape(self + 1, 1))", "expected ')' at character 21"},
        {"zeros(sizes_along(grad + 1, n))", "unknown name 'grad'; known are grad, self, n, mode, w, result at character 19"},
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
        {"(grad, )", "expected ')' at character 6"},
        {"grad if 'a' < 'b' else 0", "'<' takes numbers, not str at character 13"},
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

/* The first formula saves 16 values, namely the presence, shape, strides and offset of four tensors. This is the limit, so the second formula,
 * which saves one value more, is refused. */
static void test_formulas_save_at_most_16_values(void **state)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        DEFINES(test_formulas_give_the_derivatives_of_built_in_operators),
        DEFINES(test_every_construct_of_the_formula_language_is_evaluated),
        DEFINES(test_formulas_for_operators_with_several_results),
        DEFINES(test_formulas_for_list_arguments_and_results),
        DEFINES(test_arguments_without_a_formula_have_no_derivative),
        DEFINES(test_backward_refuses_an_operator_without_gradient),
        DEFINES(test_only_tensors_named_in_a_formula_are_saved),
        DEFINES(test_invalid_formulas_are_refused),
        DEFINES(test_formulas_save_at_most_16_values),
        DEFINES(test_formulas_may_not_use_an_undefined_gradient),
        DEFINES(test_long_and_deeply_nested_formulas_are_refused),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
