/* Tests vmap and batch tensors, i.e. the tensors that a function under vmap works on: nested vmaps, refused calls, random numbers, views and in-place
 * writes, gradients, printing, and operators without a batching rule, which run in a loop. batch.c tests the batching rule of each operator. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/shape.h"
#include "core/tensor.h"
#include "dispatch/op.h"
#include "support.h"

#define BATCHED(test) cmocka_unit_test_setup_teardown(test, begin, end)

static const char in_place[] = "inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in extra_args "
                               "that has more elements than `self`. This happened due to "
                               "`other` being vmapped over but `self` not being vmapped over in a vmap. Please try to use out-of-place "
                               "operators instead of inplace arithmetic. If said operator is being "
                               "called inside the PyTorch framework, please file a bug report instead.";
static const char not_random[] = "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
                                 "'different' randomness flags on vmap or perform "
                                 "the randomness operation out of vmap";
static const char no_item[] =
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor, please try to rewrite "
    "what you're "
    "doing with other operations. If error is occurring somewhere inside PyTorch internals, please file a bug report.";
static const char no_data[] = "Cannot access data pointer of Tensor that doesn't have storage";

static int begin(void **state)
{
    open_scope(state);
    return !grd_batch_begin(3, GRD_RANDOMNESS_ERROR);
}

static int end(void **state)
{
    grd_batch_end();
    grd_error_clear();
    return close_scope(state);
}

/* Checks that the pending error has the code `code` and a text that ends with `text`. The text may begin with an operator's name. Clears the
 * error. */
static void expect_ending(grd_error_code code, const char *text)
{
    const char *message = grd_error_message(), *found = strstr(message, text);
    if (found == NULL || strlen(found) != strlen(text))
        fail_msg("the error is \"%s\"", message);
    assert_int_equal(grd_error_get(), code);
    grd_error_clear();
}

static void expect_sizes(const grd_tensor *t, grd_dims sizes)
{
    assert_true(grd_dims_equal(grd_sizes(t), sizes));
}

/* ---- Levels ---------------------------------------------------------------------------------------------------------------------- */

static void test_vmap_levels_do_not_nest(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(3, 2));
    assert_int_equal(grd_batch_size(), -1);
    assert_true(grd_is_failed(grd_batch(x, 0)));
    expect_error(GRD_ERROR_RUNTIME, "grd_batch: no vmap is active on this thread");
    assert_false(grd_batch_begin(-1, GRD_RANDOMNESS_ERROR));
    expect_error(GRD_ERROR_VALUE, "grd_batch_begin: argument 'size' must not be negative, not -1");
    assert_false(grd_batch_begin(2, (grd_randomness)7));
    expect_error(GRD_ERROR_VALUE, "grd_batch_begin: argument 'randomness' is no grd_randomness: 7");
    assert_true(grd_batch_begin(3, GRD_RANDOMNESS_SAME));
    assert_int_equal(grd_batch_size(), 3);
    assert_int_equal(grd_batch_randomness(), GRD_RANDOMNESS_SAME);
    assert_false(grd_batch_begin(3, GRD_RANDOMNESS_SAME));
    expect_error(GRD_ERROR_RUNTIME, "vmap: nested vmap is not supported");
    grd_tensor *escaped = grd_batch(x, 0);
    assert_true(grd_is_batched(escaped));
    assert_true(grd_is_failed(grd_batch(escaped, 0)));
    expect_error(GRD_ERROR_RUNTIME, "grd_batch: argument 't' is a batch tensor already: nested vmap is not supported");
    grd_batch(iota(grd_dims(2)), 0);
    expect_error(GRD_ERROR_RUNTIME, "grd_batch: dimension 0 has size 2, the batch has 3");
    grd_batch(grd_number(grd_int(1)), 0);
    expect_error(GRD_ERROR_RUNTIME, "grd_batch: a zero-dimensional tensor has no batch dimension");
    grd_batch(x, 2);
    expect_error(GRD_ERROR_INDEX, "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
    grd_batch_end();
    grd_batch_end();
    grd_add(escaped, escaped);
    expect_error(GRD_ERROR_RUNTIME, "add: vmap: a batch tensor is used outside of the vmap that made it");
    assert_true(grd_batch_begin(3, GRD_RANDOMNESS_ERROR)); /* `escaped` belongs to the vmap level that has ended, not to this one */
    grd_neg(escaped);
    expect_error(GRD_ERROR_RUNTIME, "neg: vmap: a batch tensor is used outside of the vmap that made it");
    grd_batch_end();
}

static void test_batch_and_unbatch_move_the_batch_dimension(void **state)
{
    (void)state;
    grd_tensor *x = iota(grd_dims(2, 3)), *b = grd_batch(x, -1);
    expect_sizes(b, grd_dims(2));
    assert_int_equal(grd_stride(b, 0), 3);
    assert_int_equal(grd_tensor_dtype(b), GRD_FLOAT64);
    assert_int_equal(grd_tensor_device(b).type, GRD_DEVICE_CPU);
    assert_true(grd_equal(grd_batch_physical(b), grd_t(x)));
    assert_true(grd_equal(grd_unbatch(b, 1), x));
    assert_true(grd_same_storage(grd_unbatch(b, 1), x));
    assert_false(grd_is_batched(x));
    grd_tensor *same = grd_batch_expand(x);
    assert_ptr_equal(grd_batch_expand(same), same);
    expect_sizes(same, grd_dims(2, 3));
    expect_sizes(grd_unbatch(x, 1), grd_dims(2, 3, 3));
    grd_unbatch(b, 2);
    expect_error(GRD_ERROR_INDEX, "Dimension out of range (expected to be in range of [-2, 1], but got 2)");
}

static void *use_elsewhere(void *b)
{
    grd_scope scope = grd_scope_open();
    assert_int_equal(grd_batch_size(), -1);
    grd_neg(b);
    const bool refused = grd_error_get() == GRD_ERROR_RUNTIME;
    grd_error_clear();
    grd_scope_close(scope);
    return refused ? b : NULL;
}

static void test_a_vmap_level_is_thread_local(void **state)
{
    (void)state;
    grd_tensor *b = grd_batch(iota(grd_dims(3)), 0);
    pthread_t thread;
    void *refused = NULL;
    assert_int_equal(pthread_create(&thread, NULL, use_elsewhere, b), 0);
    pthread_join(thread, &refused);
    assert_ptr_equal(refused, b);
    assert_int_equal(grd_batch_size(), 3);
}

/* ---- Refused calls ------------------------------------------------------------------------------------------------------------------ */

static void test_reading_elements_of_a_batch_tensor_is_refused(void **state)
{
    (void)state;
    grd_tensor *b = grd_batch(iota(grd_dims(3, 1)), 0);
    double element;
    grd_item(b);
    expect_error(GRD_ERROR_RUNTIME, no_item);
    grd_item_double(b);
    expect_error(GRD_ERROR_RUNTIME, no_item);
    grd_item_int64(grd_sum(b));
    expect_error(GRD_ERROR_RUNTIME, no_item);
    grd_to_memory(b, &element, GRD_FLOAT64);
    expect_error(GRD_ERROR_RUNTIME, no_data);
    assert_null(grd_data(b));
    expect_error(GRD_ERROR_RUNTIME, no_data);
    grd_alias(b);
    expect_error(GRD_ERROR_RUNTIME, no_data);
    grd_set_data(b, iota(grd_dims(2)));
    expect_error(GRD_ERROR_RUNTIME, no_data);
    grd_set_data(iota(grd_dims(2)), b);
    expect_error(GRD_ERROR_RUNTIME, no_data);
    grd_from_storage(b, grd_dims(1), grd_dims(1), 0, GRD_FLOAT64);
    expect_error(GRD_ERROR_RUNTIME, no_data);
    grd_equal(b, b);
    expect_error(GRD_ERROR_RUNTIME, no_item);
    const grd_key_guard guard = grd_key_guard_set(0, 1u << GRD_KEY_BATCH); /* has no effect, because this key cannot be excluded */
    assert_true(grd_is_batched(grd_neg(b)));
    grd_key_guard_restore(guard);
}

static void test_operators_with_data_dependent_sizes_are_refused(void **state)
{
    (void)state;
    grd_nonzero(grd_batch(iota(grd_dims(3, 2)), 0));
    expect_error(GRD_ERROR_RUNTIME, "nonzero: vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap "
                                    "over aten::nonzero. Please file an issue at "
                                    "https://github.com/pytorch/pytorch/issues if you need this feature.");
    grd_resize_(grd_batch(iota(grd_dims(3, 2)), 0), grd_dims(1));
    expect_error(GRD_ERROR_RUNTIME, "resize: vmap: resize_ would change the sizes of a tensor that other batch tensors see.");
}

static void test_errors_name_the_sizes_of_one_element(void **state)
{
    (void)state;
    grd_tensor *b = grd_batch(iota(grd_dims(3, 2)), 0);
    grd_add(b, iota(grd_dims(3)));
    expect_error(GRD_ERROR_RUNTIME, "add: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0");
    grd_sum(b, .dim = 1);
    expect_error(GRD_ERROR_INDEX, "sum: Dimension out of range (expected to be in range of [-1, 0], but got 1)");
    grd_mm(b, b);
    expect_error(GRD_ERROR_RUNTIME, "mm: self must be a matrix");
    grd_tril(b);
    expect_error(GRD_ERROR_RUNTIME, "tril: input tensor must have at least 2 dimensions");
}

static void test_in_place_writes_need_a_batched_destination(void **state)
{
    (void)state;
    grd_tensor *b = grd_batch(iota(grd_dims(3, 2)), 0), *plain = iota(grd_dims(2)), *all = grd_clone(iota(grd_dims(3, 2)));
    grd_add_(plain, b);
    expect_ending(GRD_ERROR_RUNTIME, in_place);
    grd_index_add_(plain, 0, grd_to(plain, .dtype = GRD_INT64), b);
    assert_non_null(strstr(grd_error_message(), "vmap: index_add_(self, *extra_args) is not possible"));
    grd_error_clear();
    grd_add_out(plain, b, b);
    expect_error(GRD_ERROR_RUNTIME,
                 "add: Batching rule not implemented for aten::add.out; the fallback path doesn't work on out= or view ops.");
    /* A write to a view of a batch changes the tensor that was batched. */
    grd_tensor *view = grd_select(grd_batch(all, 0), 0, 1);
    const int64_t version = grd_tensor_version(all);
    assert_true(grd_is_failed(grd_add_(view, plain)));
    expect_error(GRD_ERROR_RUNTIME, "add: output with shape [] doesn't match the broadcast shape [2]");
    assert_ptr_equal(grd_fill_(view, grd_int(7)), view);
    assert_true(grd_tensor_version(all) > version);
    grd_batch_end();
    assert_true(grd_equal(all, grd_from_data((const double[]){0, 7, 2, 7, 4, 7}, grd_dims(3, 2), GRD_FLOAT64)));
}

/* ---- Promotion, lists, printing ------------------------------------------------------------------------------------------------------- */

static void test_promotion_and_split_see_one_element(void **state)
{
    (void)state;
    grd_tensor *numbers = grd_batch(iota(grd_dims(3)), 0), *floats = grd_to(iota(grd_dims(2)), .dtype = GRD_FLOAT32);
    assert_int_equal(grd_tensor_dtype(grd_add(numbers, floats)), GRD_FLOAT32);
    assert_int_equal(grd_tensor_dtype(grd_add(numbers, grd_number(grd_float(2)))), GRD_FLOAT64);
    assert_int_equal(grd_tensor_dtype(grd_add(grd_to(numbers, .dtype = GRD_FLOAT32), grd_view(iota(grd_dims(1)), GRD_NO_DIMS))),
                     GRD_FLOAT64);
    grd_tensors parts = grd_split(grd_batch(iota(grd_dims(3, 4)), 0), 3);
    assert_int_equal(parts.n, 2);
    expect_sizes(parts.data[1], grd_dims(1));
    assert_true(grd_is_batched(parts.data[1]));
}

static void test_batch_tensors_are_printed(void **state)
{
    (void)state;
    char *text = grd_to_string(grd_batch(iota(grd_dims(3, 2)), 0));
    assert_string_equal(text, "BatchedTensor(lvl=1, bdim=0, value=\n    tensor([[0., 1.],\n            [2., 3.],\n            [4., 5.]], "
                              "dtype=torch.float64)\n)");
    free(text);
    assert_null(grd_draw_strides(grd_batch(iota(grd_dims(3, 2)), 0)));
    expect_error(GRD_ERROR_RUNTIME,
                 "grd_draw_strides: argument 't' is a batch tensor, whose strides are those of one element of the batch: draw the "
                 "tensor it was made of");
}

/* ---- Random numbers ------------------------------------------------------------------------------------------------------------------------ */

static void test_random_operators_are_refused_in_error_mode(void **state)
{
    (void)state;
    grd_rand(grd_dims(2));
    expect_ending(GRD_ERROR_RUNTIME, not_random);
    grd_bernoulli(grd_batch(grd_full(grd_dims(3, 2), grd_float(0.5)), 0));
    expect_ending(GRD_ERROR_RUNTIME, not_random);
    grd_dropout(grd_batch(iota(grd_dims(3, 2)), 0));
    expect_ending(GRD_ERROR_RUNTIME, not_random);
    assert_true(grd_is_batched(grd_dropout(grd_batch(iota(grd_dims(3, 2)), 0), .training = false)));
}

/* True if all elements of the batch tensor `b` are equal. Ends the vmap level and begins a new one. */
static bool all_same(grd_tensor *b)
{
    grd_tensor *t = grd_unbatch(b, 0);
    grd_batch_end();
    const bool same = grd_equal(t, grd_expand_as(grd_select(t, 0, 0), t));
    assert_true(grd_batch_begin(3, GRD_RANDOMNESS_DIFFERENT));
    return same;
}

static void test_different_randomness_draws_for_each_element(void **state)
{
    (void)state;
    grd_batch_end();
    assert_true(grd_batch_begin(3, GRD_RANDOMNESS_DIFFERENT));
    grd_tensor *b = grd_batch(grd_full(grd_dims(3, 8), grd_float(0.5)), 0), *plain = grd_full(grd_dims(8), grd_float(0.5));
    expect_sizes(grd_rand(grd_dims(8)), grd_dims(8));
    assert_false(all_same(grd_rand(grd_dims(8))));
    assert_false(all_same(grd_randperm(8)));
    b = grd_batch(grd_full(grd_dims(3, 8), grd_float(0.5)), 0);
    assert_false(all_same(grd_rand_like(b)));
    assert_false(all_same(grd_rand_like(plain)));
    assert_false(all_same(grd_bernoulli(plain)));
    assert_false(all_same(grd_dropout(plain)));
    b = grd_batch(grd_full(grd_dims(3, 8), grd_float(0.5)), 0);
    assert_ptr_equal(grd_normal_(b), b);
    assert_false(all_same(b));
    grd_normal_(plain);
    expect_ending(GRD_ERROR_RUNTIME, "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same "
                                     "randomness. If this is necessary for your "
                                     "usage, please file an issue with functorch.");
    assert_false(all_same(grd_multinomial(plain, 4)));
    grd_tensor *rows = grd_batch(grd_full(grd_dims(3, 2, 8), grd_float(0.5)), 0);
    expect_sizes(grd_multinomial(rows, 4), grd_dims(2, 4));
    expect_sizes(grd_multinomial(rows, 9, .replacement = true), grd_dims(2, 9));
}

static void test_same_randomness_draws_once(void **state)
{
    (void)state;
    grd_batch_end();
    assert_true(grd_batch_begin(3, GRD_RANDOMNESS_SAME));
    grd_tensor *b = grd_batch(grd_clone(grd_full(grd_dims(3, 8), grd_float(0.5))), 0);
    grd_manual_seed(4);
    assert_false(grd_is_batched(grd_rand(grd_dims(8))));
    grd_tensor *once = grd_randn(grd_dims(8));
    grd_manual_seed(4);
    grd_rand(grd_dims(8));
    grd_normal_(b);
    grd_bernoulli(b);
    expect_ending(GRD_ERROR_RUNTIME,
                  "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch");
    grd_tensor *drawn = grd_unbatch(b, 0);
    grd_batch_end();
    assert_true(grd_equal(drawn, grd_expand(once, grd_dims(3, 8))));
}

/* ---- Gradients ------------------------------------------------------------------------------------------------------------------------------ */

static void test_gradients_of_a_batch_of_leaves(void **state)
{
    (void)state;
    grd_tensor *w = grd_batch_expand(iota(grd_dims(2))), *grad;
    grd_tensor *leaf = grd_set_requires_grad(grd_batch_physical(w), true), *x = grd_batch(iota(grd_dims(3, 2)), 0);
    assert_true(grd_requires_grad(leaf));
    w = grd_batch(leaf, 0); /* the batch tensor requires a gradient, because the leaf does */
    assert_true(grd_requires_grad(w));
    grd_tensor *loss = grd_sum(grd_mul(grd_mul(w, w), x));
    assert_true(grd_requires_grad(loss));
    assert_false(grd_is_leaf(loss));
    assert_true(grd_grad(grd_tensors(grd_sum(grd_unbatch(loss, 0))), grd_tensors(leaf), NULL, &grad));
    grd_batch_end();
    assert_true(grd_equal(grad, grd_from_data((const double[]){0, 2, 0, 6, 0, 10}, grd_dims(3, 2), GRD_FLOAT64)));
}

static void test_backward_accepts_a_batch_of_output_gradients(void **state)
{
    (void)state;
    grd_tensor *x = grd_set_requires_grad(iota(grd_dims(2)), true), *y = grd_add(grd_mul(x, x), grd_mul(x, iota(grd_dims(2)))), *grad;
    grd_tensor *rows = grd_batch(grd_eye(3, .m = grd_int(2), .dtype = GRD_FLOAT64), 0);
    const grd_backward_options options = {.grad_outputs = grd_tensors(rows), .retain_graph = true};
    assert_true(grd_grad(grd_tensors(y), grd_tensors(x), &options, &grad));
    assert_true(grd_is_batched(grad));
    grd_tensor *all = grd_unbatch(grad, 0);
    /* fails: the gradient is a batch tensor and the leaf is not, so the gradient cannot be accumulated in the leaf's .grad */
    grd_backward_all(grd_tensors(y), &options);
    assert_false(grd_ok());
    grd_error_clear();
    grd_batch_end();
    assert_true(grd_equal(all, grd_from_data((const double[]){0, 0, 0, 3, 0, 0}, grd_dims(3, 2), GRD_FLOAT64)));
}

/* Backward usually adds later gradients of z to the earliest one in place. Here the earliest one comes from `second` and is an ordinary tensor. The
 * later one comes from `first` and is a batch tensor, which cannot be added to an ordinary tensor in place. */
static void test_a_batch_of_gradients_is_added_to_a_single_gradient(void **state)
{
    (void)state;
    grd_tensor *x = grd_set_requires_grad(iota(grd_dims(2)), true), *z = grd_neg(x), *grad;
    grd_tensor *first = grd_mul_scalar(z, grd_int(2)), *second = grd_mul(z, iota(grd_dims(2)));
    grd_tensor *rows = grd_batch(iota(grd_dims(3, 2)), 0);
    const grd_backward_options options = {.grad_outputs = grd_tensors(rows, iota(grd_dims(2)))};
    assert_true(grd_grad(grd_tensors(first, second), grd_tensors(x), &options, &grad));
    grd_tensor *all = grd_unbatch(grad, 0);
    grd_batch_end();
    assert_true(grd_equal(all, grd_from_data((const double[]){0, -3, -4, -7, -8, -11}, grd_dims(3, 2), GRD_FLOAT64)));
}

static void ignore(grd_tensor *leaf, void *context)
{
    (void)leaf, (void)context;
}

static void test_autograd_history_belongs_to_the_physical_tensor(void **state)
{
    (void)state;
    grd_tensor *b = grd_batch(iota(grd_dims(3, 2)), 0);
    assert_ptr_equal(grd_set_requires_grad(b, true), b);
    assert_true(grd_requires_grad(b));
    grd_set_grad(b, b);
    assert_false(grd_ok());
    grd_error_clear();
    grd_hook_accumulated(b, ignore, NULL, NULL);
    expect_error(GRD_ERROR_RUNTIME, "vmap: a batch tensor has no autograd history; its physical tensor has it");
    assert_string_equal(grd_node_name(grd_grad_fn(grd_neg(b))), "NegBackward0");
    grd_set_requires_grad(b, false);
    assert_false(grd_requires_grad(b));
}

/* ---- Operators that run in a loop ------------------------------------------------------------------------------------------------------------- */

static char warned[512];
static int warnings;

static void note_warning(const char *text)
{
    snprintf(warned, sizeof warned, "%s", text);
    warnings++;
}

static void twice(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    ret_results[0].v.tensor = grd_mul_scalar(args[0].v.tensor, grd_int(2));
}

static void test_an_operator_without_batching_rule_runs_in_a_loop(void **state)
{
    (void)state;
    const grd_definition definition = {.schema = "test_transform::twice(Tensor self) -> Tensor"};
    const grd_op *op = grd_define_operator(&definition);
    assert_non_null(op);
    grd_register_kernel("test_transform::twice", GRD_KEY_CPU, twice, NULL);
    grd_value arg = {.kind = GRD_KIND_TENSOR, .v.tensor = grd_batch(iota(grd_dims(3, 2)), 0)}, result;
    grd_set_warning_handler(note_warning);
    for (int i = 0; i < 2; i++)
        assert_true(grd_call(op, GRD_FUNCTIONAL, &arg, 1, NULL, &result));
    grd_set_warning_handler(NULL);
    assert_int_equal(warnings, 1);
    assert_string_equal(warned, "There is a performance drop because we have not yet implemented the batching rule for "
                                "aten::test_transform::twice. Please file us an issue on "
                                "GitHub so that we could prioritize its implementation.");
    grd_tensor *all = grd_unbatch(result.v.tensor, 0);
    grd_batch_end();
    assert_true(grd_equal(all, grd_mul_scalar(iota(grd_dims(3, 2)), grd_int(2))));
}

/* Checks that only the operators listed here have no batching rule. A new name in the list needs a reason in the operator's schema entry. */
static void test_only_known_operators_lack_a_batching_rule(void **state)
{
    static const char *const known[] = {"as_strided_scatter",
                                        "_restride",
                                        "_embedding_bag",
                                        "_histogram",
                                        "histc",
                                        "histogram_bins",
                                        "histogram",
                                        "_histogramdd_bin_edges",
                                        "_histogramdd_from_bin_cts",
                                        "_histogramdd_from_bin_tensors"};
    int found = 0;
    (void)state;
    for (int64_t i = 0; i < grd_op_table_size; i++)
        if (grd_op_table[i]->batch == GRD_BATCH_LOOP) {
            bool is_known = false;
            for (int k = 0; k < GRD_LENGTH(known); k++)
                is_known |= strcmp(known[k], grd_op_table[i]->name) == 0;
            if (!is_known)
                fail_msg("%s loops", grd_op_table[i]->name);
            found++;
        }
    assert_int_equal(found, GRD_LENGTH(known));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(test_vmap_levels_do_not_nest),
        BATCHED(test_batch_and_unbatch_move_the_batch_dimension),
        BATCHED(test_a_vmap_level_is_thread_local),
        BATCHED(test_reading_elements_of_a_batch_tensor_is_refused),
        BATCHED(test_operators_with_data_dependent_sizes_are_refused),
        BATCHED(test_errors_name_the_sizes_of_one_element),
        BATCHED(test_in_place_writes_need_a_batched_destination),
        BATCHED(test_promotion_and_split_see_one_element),
        BATCHED(test_batch_tensors_are_printed),
        BATCHED(test_random_operators_are_refused_in_error_mode),
        BATCHED(test_different_randomness_draws_for_each_element),
        BATCHED(test_same_randomness_draws_once),
        BATCHED(test_gradients_of_a_batch_of_leaves),
        BATCHED(test_backward_accepts_a_batch_of_output_gradients),
        BATCHED(test_a_batch_of_gradients_is_added_to_a_single_gradient),
        BATCHED(test_autograd_history_belongs_to_the_physical_tensor),
        BATCHED(test_an_operator_without_batching_rule_runs_in_a_loop),
        cmocka_unit_test(test_only_known_operators_lack_a_batching_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
