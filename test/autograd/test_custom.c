/* Tests custom functions (torch.autograd.Function in PyTorch), whose forward and backward are callbacks written by the user. */
#include "support.h"

/* Forward of a custom function that computes x^2 * factor. The context of the function points to the factor. */
static void square_forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    grd_custom_save(call, inputs[0]);
    ret_outputs[0] = grd_mul_scalar(grd_mul(inputs[0], inputs[0]), grd_float(*(double *)grd_custom_context(call)));
}

static void square_backward(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    grd_tensor *x = grd_custom_saved(call, 0);
    ret_grads[0] = grd_mul(grad_outputs[0], grd_mul_scalar(x, grd_float(2 * *(double *)grd_custom_context(call))));
}

static double factor = 3;
static const grd_custom_function square = {"Square", square_forward, square_backward, 1, 1, &factor, NULL, NULL, NULL};

static grd_tensor *apply1(const grd_custom_function *function, grd_tensor *x)
{
    grd_tensor *result;
    grd_custom_apply(function, &x, &result);
    return result;
}

static void test_a_custom_function_computes_values_and_gradients(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = apply1(&square, x);
    assert_string_equal(grd_node_name(grd_grad_fn(y)), "SquareBackward");
    EXPECT_VALUES(y, 3, 12, 27);
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 6, 12, 18);
    grd_backward(grd_sum(y));
    expect_error("SquareBackward: Trying to backward through the graph a second time");
}

static void test_without_gradients_only_forward_runs(void **state)
{
    (void)state;
    grd_tensor *y = apply1(&square, VECTOR(1, 2));
    EXPECT_VALUES(y, 3, 12);
    assert_false(grd_requires_grad(y));
    grd_set_grad_enabled(false);
    assert_false(grd_requires_grad(apply1(&square, leaf3())));
}

static void test_custom_functions_can_be_differentiated_twice(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *g, *gg;
    grd_tensor *y = grd_sum(apply1(&square, apply1(&square, x))); /* `square` computes 3 x^2, so y is the sum of 27 x^4 */
    assert_true(grd_grad(grd_tensors(y), grd_tensors(x), &(grd_backward_options){.create_graph = true}, &g));
    EXPECT_VALUES(g, 108, 864, 2916);
    assert_true(grd_grad(grd_tensors(grd_sum(g)), grd_tensors(x), NULL, &gg));
    EXPECT_VALUES(gg, 324, 1296, 2916);
}

static void exp_forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    ret_outputs[0] = grd_exp(inputs[0]);
    grd_custom_save(call, ret_outputs[0]);
}

static void exp_backward(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    ret_grads[0] = grd_mul(grad_outputs[0], grd_custom_saved(call, 0));
}

static void test_a_custom_function_may_save_its_output(void **state)
{
    (void)state;
    const grd_custom_function function = {"Exp", exp_forward, exp_backward, 1, 1, NULL, NULL, NULL, NULL};
    grd_tensor *x = leaf3(), *y = apply1(&function, x), *g, *gg;
    assert_true(grd_grad(grd_tensors(grd_sum(y)), grd_tensors(x), &(grd_backward_options){.create_graph = true}, &g));
    assert_true(grd_grad(grd_tensors(grd_sum(g)), grd_tensors(x), NULL, &gg));
    EXPECT_VALUES(gg, exp(1), exp(2), exp(3));
    y = apply1(&function, x);
    grd_mul_(y, VECTOR(1, 1, 1));
    grd_backward(grd_sum(y));
    expect_error("has been modified by an inplace operation: [FloatTensor [3]], which is output 0 of ExpBackward, is at version 1; "
                 "expected version 0");
}

/* Forward of a function of two inputs and two outputs. It marks the second output non-differentiable. */
static void two_forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    ret_outputs[0] = grd_add(inputs[0], inputs[1]);
    ret_outputs[1] = grd_sign(inputs[0]);
    grd_custom_mark_non_differentiable(call, ret_outputs[1]);
    assert_true(grd_custom_needs_grad(call, 0));
    assert_false(grd_custom_needs_grad(call, 1));
}

static void two_backward(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    assert_null(grad_outputs[1]);
    assert_true(grd_custom_needs_grad(call, 0));
    ret_grads[0] = grad_outputs[0];
}

static void test_a_non_differentiable_output_gets_no_gradient(void **state)
{
    (void)state;
    const grd_custom_function function = {"Two", two_forward, two_backward, 2, 2, NULL, NULL, NULL, NULL};
    grd_tensor *x = leaf3(), *inputs[] = {x, VECTOR(1, 1, 1)}, *outputs[2];
    assert_true(grd_custom_apply(&function, inputs, outputs));
    assert_true(grd_requires_grad(outputs[0]));
    assert_false(grd_requires_grad(outputs[1]));
    grd_backward(grd_sum(outputs[0]));
    EXPECT_VALUES(grd_grad_of(x), 1, 1, 1);
}

static void double_forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    grd_custom_mark_dirty(call, inputs[0]);
    ret_outputs[0] = grd_mul_(inputs[0], grd_number(grd_int(2)));
}

static void double_backward(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    (void)call;
    ret_grads[0] = grd_mul_scalar(grad_outputs[0], grd_int(2));
}

static const grd_custom_function twice = {"Twice", double_forward, double_backward, 1, 1, NULL, NULL, NULL, NULL};

static void test_a_custom_function_may_write_an_input_in_place(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_clone(x);
    assert_ptr_equal(apply1(&twice, y), y);
    assert_string_equal(grd_node_name(grd_grad_fn(y)), "TwiceBackward");
    grd_tensor *row = grd_select(y, 0, 1);
    apply1(&twice, row);
    expect_ok();
    EXPECT_VALUES(y, 2, 8, 6);
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 2, 4, 2);
    apply1(&twice, x);
    expect_error("a leaf Variable that requires grad has been used in an in-place operation.");
}

static void same_forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    (void)call;
    ret_outputs[0] = inputs[0];
}

static void test_a_returned_input_becomes_a_new_tensor(void **state)
{
    (void)state;
    const grd_custom_function function = {"Same", same_forward, double_backward, 1, 1, NULL, NULL, NULL, NULL};
    grd_tensor *x = leaf3(), *y = apply1(&function, x);
    assert_ptr_not_equal(x, y);
    assert_true(grd_is_leaf(x));
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 2, 2, 2);
}

static void wrong_backward(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    (void)call;
    (void)grad_outputs;
    ret_grads[0] = VECTOR(1, 2);
}

static void raising_backward(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    (void)call;
    (void)grad_outputs;
    (void)ret_grads;
    grd_error_set(GRD_ERROR_VALUE, "no gradient today");
}

static void test_errors_in_backward_name_the_custom_function(void **state)
{
    (void)state;
    const grd_custom_function wrong = {"Wrong", square_forward, wrong_backward, 1, 1, &factor, NULL, NULL, NULL};
    const grd_custom_function raising = {"Raising", square_forward, raising_backward, 1, 1, &factor, NULL, NULL, NULL};
    grd_tensor *x = leaf3();
    grd_backward(grd_sum(apply1(&wrong, x)));
    expect_error("Function WrongBackward returned an invalid gradient at index 0 - got [2] but expected shape compatible with [3]");
    grd_backward(grd_sum(apply1(&raising, x)));
    expect_error("RaisingBackward: no gradient today");
    assert_null(grd_grad_of(x));
}

static void inner_backward(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    grd_tensor *x = grd_detach(grd_custom_saved(call, 0)), *g;
    bool enabled = grd_set_grad_enabled(true);
    grd_set_requires_grad(x, true);
    grd_grad(grd_tensors(grd_sum(grd_mul(x, x))), grd_tensors(x), NULL, &g);
    grd_set_grad_enabled(enabled);
    ret_grads[0] = grd_mul(grad_outputs[0], g);
}

/* As in checkpointing, the backward function computes the forward again and differentiates it. */
static void test_a_custom_backward_may_run_another_backward(void **state)
{
    (void)state;
    double one = 1;
    const grd_custom_function function = {"Again", square_forward, inner_backward, 1, 1, &one, NULL, NULL, NULL};
    grd_tensor *x = leaf3();
    grd_backward(grd_sum(apply1(&function, x)));
    EXPECT_VALUES(grd_grad_of(x), 2, 4, 6);
}

/* ---- Errors in custom functions -------------------------------------------------------------------------------------------------- */

/* Saves NULL and its input alternately, six tensors in all, so that the list of saved tensors has to grow. */
static void many_forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    for (int i = 0; i < 6; i++)
        grd_custom_save(call, i % 2 ? inputs[0] : NULL);
    ret_outputs[0] = grd_clone(inputs[0]);
}

static void many_backward(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    for (int i = 0; i < 6; i += 2)
        assert_null(grd_custom_saved(call, i));
    assert_true(grd_custom_needs_grad(call, 0));
    assert_false(grd_custom_needs_grad(call, 1));
    assert_false(grd_custom_needs_grad(call, -1));
    ret_grads[0] = grd_mul(grad_outputs[0], grd_mul(grd_custom_saved(call, 1), grd_custom_saved(call, 5)));
}

static void test_many_tensors_and_null_can_be_saved(void **state)
{
    (void)state;
    const grd_custom_function function = {NULL, many_forward, many_backward, 1, 1, NULL, NULL, NULL, NULL};
    grd_tensor *x = leaf3(), *y = apply1(&function, x);
    assert_string_equal(grd_node_name(grd_grad_fn(y)), "CustomBackward");
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 1, 4, 9);
}

enum { MANY = 130 };

static void many_inputs_forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    (void)call;
    ret_outputs[0] = grd_zeros(grd_dims(3));
    for (int i = 0; i < MANY; i++)
        grd_add_(ret_outputs[0], inputs[i]);
}

static void many_inputs_backward(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(grd_custom_needs_grad(call, i), i % 3 == 0);
        ret_grads[i] = grd_custom_needs_grad(call, i) ? grad_outputs[0] : NULL;
    }
    assert_false(grd_custom_needs_grad(call, MANY));
}

/* The function has more inputs than a 64-bit mask has bits, so the flags of the inputs that need gradients need several words. */
static void test_a_custom_function_may_have_130_inputs(void **state)
{
    (void)state;
    const grd_custom_function function = {"Sum", many_inputs_forward, many_inputs_backward, MANY, 1, NULL, NULL, NULL, NULL};
    grd_tensor *inputs[MANY], *sum;
    for (int i = 0; i < MANY; i++)
        inputs[i] = grd_set_requires_grad(VECTOR(1, 2, 3), i % 3 == 0);
    assert_true(grd_custom_apply(&function, inputs, &sum));
    grd_backward(grd_sum(sum));
    expect_ok();
    for (int i = 0; i < MANY; i++)
        if (i % 3 == 0)
            EXPECT_VALUES(grd_grad_of(inputs[i]), 1, 1, 1);
        else
            assert_null(grd_grad_of(inputs[i]));
}

static int
    too_late; /* selects which invalid call late_backward makes: 0 to 2 are allowed only in forward, and 3 and 4 use an index out of range */

static void late_backward(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    if (too_late == 0)
        grd_custom_save(call, grad_outputs[0]);
    if (too_late == 1)
        grd_custom_mark_dirty(call, grad_outputs[0]);
    if (too_late == 2)
        grd_custom_mark_non_differentiable(call, grad_outputs[0]);
    if (too_late > 2)
        assert_ptr_equal(grd_custom_saved(call, too_late == 3 ? 1 : -1), grd_failed);
    ret_grads[0] = grad_outputs[0];
}

static void test_save_and_mark_are_refused_in_backward(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "LateBackward: tensors can only be saved during forward",
        "LateBackward: only inputs can be marked dirty, and only during forward",
        "LateBackward: only outputs can be marked non-differentiable, and only during forward",
        "LateBackward: saved tensor 1 does not exist: 1 were saved",
        "LateBackward: saved tensor -1 does not exist: 1 were saved",
    };
    const grd_custom_function function = {"Late", square_forward, late_backward, 1, 1, &factor, NULL, NULL, NULL};
    grd_tensor *x = leaf3();
    for (too_late = 0; too_late < 5; too_late++) {
        grd_backward(grd_sum(apply1(&function, x)));
        expect_whole_error(texts[too_late]);
        assert_null(grd_grad_of(x));
    }
}

static void nothing_forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    (void)call;
    (void)inputs;
    (void)ret_outputs;
}

/* Forward that marks a tensor wrongly, which must be refused. If the context points to true, it marks an output as dirty, although only inputs can
 * be. Otherwise it marks an input as non-differentiable, although only outputs can be. */
static void marks_forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    ret_outputs[0] = grd_clone(inputs[0]);
    if (*(bool *)grd_custom_context(call)) {
        grd_custom_mark_dirty(call, inputs[0]);
        grd_custom_mark_dirty(call, inputs[0]); /* marking a tensor twice has no effect */
        grd_custom_mark_dirty(call, ret_outputs[0]);
    } else {
        grd_custom_mark_non_differentiable(call, ret_outputs[0]);
        grd_custom_mark_non_differentiable(call, ret_outputs[0]);
        grd_custom_mark_non_differentiable(call, inputs[0]);
    }
}

static void loses_dirty_forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    grd_custom_mark_dirty(call, inputs[0]);
    ret_outputs[0] = grd_clone(inputs[0]);
}

static void fails_to_apply(const grd_custom_function *function, grd_tensor *x, const char *text)
{
    assert_ptr_equal(apply1(function, x), grd_failed);
    expect_whole_error(text);
}

static void test_invalid_custom_forwards_are_refused(void **state)
{
    (void)state;
    bool dirty = true, constant = false;
    grd_tensor *x = leaf3();
    fails_to_apply(&(grd_custom_function){"Unset", nothing_forward, double_backward, 1, 1, NULL, NULL, NULL, NULL}, x,
                   "Unset: output 0 was not set");
    fails_to_apply(&(grd_custom_function){NULL, nothing_forward, NULL, 1, 1, NULL, NULL, NULL, NULL}, x,
                   "custom function: output 0 was not set");
    fails_to_apply(&(grd_custom_function){"Marks", marks_forward, NULL, 1, 1, &dirty, NULL, NULL, NULL}, x,
                   "Marks: only inputs can be marked dirty, and only during forward");
    fails_to_apply(&(grd_custom_function){"Marks", marks_forward, NULL, 1, 1, &constant, NULL, NULL, NULL}, x,
                   "Marks: only outputs can be marked non-differentiable, and only during forward");
    fails_to_apply(&(grd_custom_function){"Loses", loses_dirty_forward, NULL, 1, 1, NULL, NULL, NULL, NULL}, grd_clone(x),
                   "Loses: a tensor marked dirty must be an input that is also returned");
    fails_to_apply(&(grd_custom_function){"Negative", square_forward, NULL, -1, 1, NULL, NULL, NULL, NULL}, x,
                   "grd_custom_apply: a function cannot have -1 inputs and 1 outputs");
    assert_false(grd_custom_apply(&(grd_custom_function){"Negative", square_forward, NULL, 0, -1, NULL, NULL, NULL, NULL}, NULL, NULL));
    expect_whole_error("grd_custom_apply: a function cannot have 0 inputs and -1 outputs");
    fails_to_apply(&twice, grd_select(x, 0, 0),
                   "Twice: a view of a leaf Variable that requires grad is being used in an in-place operation.");
}

static void test_a_custom_function_without_backward_raises_in_backward(void **state)
{
    (void)state;
    const grd_custom_function function = {"Oneway", square_forward, NULL, 1, 1, &factor, NULL, NULL, NULL};
    grd_tensor *x = leaf3(), *y = apply1(&function, x);
    EXPECT_VALUES(y, 3, 12, 27);
    grd_backward(grd_sum(y));
    expect_whole_error("OnewayBackward: the function has no backward");
    assert_null(grd_grad_of(x));
}

/* Forward that multiplies its second input in place by the first one, marks it as dirty, and returns it. */
static void second_forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret_outputs)
{
    grd_custom_mark_dirty(call, inputs[1]);
    ret_outputs[0] = grd_mul_(inputs[1], inputs[0]);
}

static void test_a_view_written_in_place_must_be_the_first_input(void **state)
{
    (void)state;
    const grd_custom_function function = {"Second", second_forward, NULL, 2, 1, NULL, NULL, NULL, NULL};
    grd_tensor *x = leaf3(), *inputs[] = {grd_select(x, 0, 0), grd_select(grd_clone(x), 0, 1)}, *output;
    assert_false(grd_custom_apply(&function, inputs, &output));
    assert_ptr_equal(output, grd_failed);
    expect_whole_error("Second: Functions which modify views in-place must take the view first and return a single Variable");
}

static void test_a_returned_input_cannot_be_written_in_place(void **state)
{
    (void)state;
    const grd_custom_function function = {"Same", same_forward, double_backward, 1, 1, NULL, NULL, NULL, NULL};
    grd_tensor *y = apply1(&function, grd_clone(leaf3()));
    grd_mul_(y, VECTOR(2, 2, 2));
    expect_whole_error(
        "mul: Output 0 of Same is a view and is being modified inplace. This view was created inside a custom Function (or "
        "because an input was returned as-is) and the autograd logic to handle view+inplace would override the custom backward associated "
        "with the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of "
        "the custom Function.");
    EXPECT_VALUES(y, 1, 2, 3);
}

/* ---- grd_custom_begin and grd_custom_end --------------------------------------------------------------------------------------------- */
static int released;
static void count_release(void *context)
{
    (void)context;
    assert_true(grd_ok()); /* a pending error is set aside while a release function runs */
    released++;
}

static void sum_backward(grd_custom_call *call, grd_tensor *const *grad_outputs, grd_tensor **ret_grads)
{
    ret_grads[0] = grd_mul(grd_add(grad_outputs[0], grad_outputs[2]), grd_custom_saved(call, 0));
}

static const grd_custom_function sums = {.name = "Sums", .backward = sum_backward, .inputs = 2, .release = count_release};

/* Records a custom call whose outputs 0 and 2 are copies of x and whose output 1 is NULL. */
static grd_custom_call *begin_and_end(grd_tensor *x, grd_tensor **outputs)
{
    grd_custom_call *call = grd_custom_begin(&sums, (grd_tensor *[]){x, NULL});
    assert_non_null(call);
    assert_string_equal(grd_node_name(grd_custom_node(call)), "SumsBackward");
    grd_set_grad_enabled(false);
    outputs[0] = grd_clone(x);
    outputs[1] = NULL;
    outputs[2] = grd_clone(x);
    grd_set_grad_enabled(true);
    grd_custom_save(call, x);
    grd_custom_materialize_grads(call, true);
    assert_true(grd_custom_end(call, outputs, 3));
    return call;
}

static void test_custom_begin_and_end_record_a_call(void **state)
{
    (void)state;
    released = 0;
    grd_scope scope = grd_scope_open();
    grd_tensor *x = leaf3(), *outputs[3];
    grd_custom_call *call = begin_and_end(x, outputs);
    assert_ptr_equal(grd_node_custom_call(grd_grad_fn(outputs[2]), count_release), call);
    assert_null(grd_node_custom_call(grd_grad_fn(outputs[2]), NULL));
    assert_null(grd_node_custom_call(grd_grad_fn(grd_clone(x)), count_release));
    grd_backward(grd_sum(outputs[2])); /* output 0 gets a gradient of zeros, because of grd_custom_materialize_grads */
    EXPECT_VALUES(grd_grad_of(x), 1, 2, 3);
    assert_ptr_equal(grd_custom_saved(call, 0), grd_failed);
    expect_error("Trying to backward through the graph a second time");
    assert_int_equal(released, 0);
    grd_scope_close(scope);
    assert_int_equal(released, 1);
}

static void test_the_context_of_a_failed_call_is_released(void **state)
{
    (void)state;
    released = 0;
    grd_tensor *x = leaf3(), *output = x;
    assert_null(grd_custom_begin(&(grd_custom_function){.inputs = -1, .release = count_release}, &x));
    expect_whole_error("grd_custom_begin: a function cannot have -1 inputs");
    assert_int_equal(released, 1);
    grd_custom_call *call = grd_custom_begin(&(grd_custom_function){.name = "Fails", .inputs = 1, .release = count_release}, &x);
    grd_error_set(GRD_ERROR_VALUE, "no forward today");
    assert_false(grd_custom_end(call, &output, 1));
    expect_whole_error("Fails: no forward today");
    assert_ptr_equal(output, x);
    assert_int_equal(released, 2);
    assert_false(grd_custom_apply(&(grd_custom_function){.outputs = 1, .release = count_release}, NULL, &output));
    expect_error("grd_custom_apply: argument 'function->forward' must not be NULL");
    assert_int_equal(released, 3);
}

static void test_a_returned_input_without_gradient_becomes_a_view(void **state)
{
    (void)state;
    const grd_custom_function function = {"Same", same_forward, double_backward, 1, 1, NULL, NULL, NULL, NULL};
    grd_tensor *x = VECTOR(1, 2), *y = apply1(&function, x);
    assert_ptr_not_equal(x, y);
    assert_ptr_equal(grd_view_base(y), x);
    x = leaf3();
    grd_set_grad_enabled(false);
    y = apply1(&function, x);
    grd_set_grad_enabled(true);
    assert_ptr_not_equal(x, y);
    assert_true(grd_same_storage(x, y));
    assert_false(grd_requires_grad(y));
}

static void *owner; /* the context that took over the ownership of its node */
static bool take_over(void *context)
{
    const bool first = owner == NULL;
    owner = context;
    return first;
}

static void see_release(void *context)
{
    assert_non_null(context);
    count_release(context);
}

/* When the last reference to the node of a custom function is dropped, take_over() is called. Its first call returns true here. Then the node is not
 * freed, and the context owns the node until grd_drop_node. The second call returns false, and the node is freed. */
static void test_a_context_may_take_over_its_node(void **state)
{
    (void)state;
    released = 0;
    owner = NULL;
    grd_scope scope = grd_scope_open();
    int there;
    grd_tensor *x = grd_keep(leaf3()), *output;
    grd_custom_function function = {"Kept", NULL, square_backward, 1, 0, &there, see_release, take_over, NULL};
    grd_custom_call *call = grd_custom_begin(&function, &x);
    output = grd_clone(grd_detach(x));
    assert_true(grd_custom_end(call, &output, 1));
    grd_node *node = grd_grad_fn(output);
    assert_ptr_equal(node, grd_custom_node(call));
    grd_scope_close(scope);
    assert_ptr_equal(owner, &there);
    assert_int_equal(released, 0);
    assert_ptr_equal(grd_node_variable(grd_node_edge(node, 0, NULL)), x);
    grd_drop_node(node);
    assert_int_equal(released, 1);
    grd_drop(x);
}

/* ---- Contexts as a garbage collector sees them ------------------------------------------------------------------------------------------- */
static grd_tensor *same_gradient(grd_tensor *grad, void *context)
{
    (void)context;
    return grad;
}

static int count_context(void *context, void (*release)(void *context), void *arg)
{
    assert_ptr_equal(release, count_release);
    (void)context;
    return ++*(int *)arg == 3 ? -1 : 0;
}

static int contexts_of(grd_tensor *t)
{
    int n = 0;
    const int result = grd_visit_contexts(t, count_context, &n);
    assert_int_equal(result, n == 3 ? -1 : 0);
    return n;
}

static void test_visit_contexts_finds_contexts_owned_by_one_tensor(void **state)
{
    (void)state;
    grd_scope scope = grd_scope_open();
    grd_tensor *x = grd_keep(leaf3()), *y = NULL, *outputs[3];
    grd_hook_tensor(x, same_gradient, NULL, count_release);
    grd_scope_close(scope);
    assert_int_equal(contexts_of(x), 1);
    scope = grd_scope_open();
    begin_and_end(x, outputs);
    y = grd_keep(grd_neg(outputs[0]));
    /* The scope also holds a reference to y. So dropping ours would not free y, and grd_visit_contexts finds nothing that would be released. */
    assert_int_equal(contexts_of(y), 0);
    grd_scope_close(scope);
    assert_int_equal(contexts_of(x), 0); /* 0 because the graph also holds a reference to x */
    assert_int_equal(contexts_of(y), 1);
    scope = grd_scope_open();
    grd_hook_node(grd_grad_fn(y), true, NULL, NULL, NULL);
    grd_error_clear();
    grd_scope_close(scope);
    grd_hook_tensor(y, same_gradient, NULL, count_release);
    assert_int_equal(contexts_of(y), 2);
    scope = grd_scope_open();
    grd_node *node = grd_keep_node(grd_grad_fn(y));
    grd_scope_close(scope);
    assert_int_equal(contexts_of(y), 0);
    grd_drop(y);
    int n = 0;
    assert_int_equal(grd_node_visit_contexts(node, count_context, &n), 0);
    assert_int_equal(n, 2);
    /* Now only the graph owns the leaf x and its hook. The graph holds two references to x (a saved tensor and an edge). The visit only enters
     * tensors with one reference, so it does not count the hook. */
    grd_drop(x);
    n = 0;
    grd_node_visit_contexts(node, count_context, &n);
    assert_int_equal(n, 2);
    released = 0;
    grd_drop_node(node);
    assert_int_equal(released, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_custom_function_computes_values_and_gradients),
        TEST(test_without_gradients_only_forward_runs),
        TEST(test_custom_functions_can_be_differentiated_twice),
        TEST(test_a_custom_function_may_save_its_output),
        TEST(test_a_non_differentiable_output_gets_no_gradient),
        TEST(test_a_custom_function_may_write_an_input_in_place),
        TEST(test_a_returned_input_becomes_a_new_tensor),
        TEST(test_errors_in_backward_name_the_custom_function),
        TEST(test_a_custom_backward_may_run_another_backward),
        TEST(test_many_tensors_and_null_can_be_saved),
        TEST(test_a_custom_function_may_have_130_inputs),
        TEST(test_save_and_mark_are_refused_in_backward),
        TEST(test_invalid_custom_forwards_are_refused),
        TEST(test_a_custom_function_without_backward_raises_in_backward),
        TEST(test_a_view_written_in_place_must_be_the_first_input),
        TEST(test_a_returned_input_cannot_be_written_in_place),
        TEST(test_custom_begin_and_end_record_a_call),
        TEST(test_the_context_of_a_failed_call_is_released),
        TEST(test_a_returned_input_without_gradient_becomes_a_view),
        TEST(test_a_context_may_take_over_its_node),
        TEST(test_visit_contexts_finds_contexts_owned_by_one_tensor),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
