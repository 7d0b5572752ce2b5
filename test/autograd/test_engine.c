/* Tests the backward engine: graphs of several shapes, accumulation, several outputs, unused inputs, freed graphs, errors during backward and
 * threads. */
#include "core/shortcuts.h"
#include "core/tensor.h"
#include "support.h"

#include <pthread.h>

static void test_backward_through_a_chain_of_operators(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    grd_backward(grd_sum(grd_exp(grd_mul(x, x))));
    EXPECT_VALUES(grd_grad_of(x), 2 * exp(1), 4 * exp(4), 6 * exp(9));
}

static void test_backward_through_a_diamond_sums_gradients(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *a = grd_sin(x), *b = grd_mul(a, a), *c = grd_mul(a, x);
    grd_backward(grd_sum(grd_mul(b, c)));
    double expected[3];
    for (int i = 0; i < 3; i++) {
        double v = i + 1, s = sin(v);
        expected[i] = 3 * s * s * cos(v) * v + s * s * s;
    }
    expect_values(grd_grad_of(x), 3, expected);
}

static void test_gradients_of_a_repeated_input_are_summed(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_add(x, x);
    for (int i = 0; i < 10; i++)
        y = grd_add(y, y);
    grd_backward(grd_sum(y));
    EXPECT_VALUES(grd_grad_of(x), 2048, 2048, 2048);
}

static void test_gradients_accumulate_over_backward_passes(void **state)
{
    (void)state;
    grd_tensor *x = leaf3();
    grd_backward(grd_sum(grd_mul(x, x)));
    grd_tensor *first = grd_grad_of(x);
    grd_backward(grd_sum(x));
    assert_ptr_equal(grd_grad_of(x), first);
    EXPECT_VALUES(grd_grad_of(x), 3, 5, 7);
    grd_set_grad(x, NULL);
    assert_null(grd_grad_of(x));
    grd_backward(grd_sum(x));
    EXPECT_VALUES(grd_grad_of(x), 1, 1, 1);
}

static void test_the_caller_s_grad_output_is_not_modified(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *g = VECTOR(5, 6, 7), *y = grd_clone(x);
    grd_backward_all(grd_tensors(y), &(grd_backward_options){.grad_outputs = grd_tensors(g)});
    EXPECT_VALUES(grd_grad_of(x), 5, 6, 7);
    assert_ptr_not_equal(grd_grad_of(x), g);
    assert_false(grd_same_storage(grd_grad_of(x), g));
    grd_backward(grd_sum(x));
    EXPECT_VALUES(g, 5, 6, 7);
    EXPECT_VALUES(grd_grad_of(x), 6, 7, 8);
}

static void test_two_leaves_do_not_share_gradient_memory(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = leaf3();
    grd_backward(grd_sum(grd_mul_scalar(grd_add(x, y), grd_int(2))));
    assert_false(grd_same_storage(grd_grad_of(x), grd_grad_of(y)));
    grd_backward(grd_sum(x));
    EXPECT_VALUES(grd_grad_of(x), 3, 3, 3);
    EXPECT_VALUES(grd_grad_of(y), 2, 2, 2);
}

static void test_a_gradient_has_the_strides_of_its_leaf(void **state)
{
    (void)state;
    grd_tensor *x = grd_set_requires_grad(grd_clone(grd_t(grd_rand(grd_dims(3, 4)))), true);
    assert_int_equal(grd_stride(x, 0), 1);
    grd_backward(grd_sum(grd_mul(x, grd_rand(grd_dims(4, 3)))));
    expect_ok();
    assert_int_equal(grd_stride(grd_grad_of(x), 0), 1);
    assert_int_equal(grd_stride(grd_grad_of(x), 1), 4);
}

static void test_backward_through_a_million_nodes(void **state)
{
    (void)state;
    grd_tensor *x = grd_keep(grd_set_requires_grad(grd_ones(GRD_NO_DIMS), true)), *y = grd_keep(grd_clone(x));
    for (int i = 0; i < 1000000; i++) {
        grd_scope scope = grd_scope_open();
        grd_tensor *next = grd_keep(grd_neg(y));
        grd_drop(y);
        y = next;
        grd_scope_close(scope);
    }
    grd_backward(y);
    EXPECT_VALUES(grd_grad_of(x), 1);
    grd_drop(y);
    grd_drop(x);
}

/* Each node saves its input, whose grad_fn is the previous node. So the chain of nodes runs through saved tensors as well as through edges, and
 * freeing it recursively would overflow the stack. */
static void test_a_chain_of_a_million_nodes_is_freed_without_recursion(void **state)
{
    (void)state;
    grd_tensor *x = grd_keep(grd_set_requires_grad(grd_ones(GRD_NO_DIMS), true)), *y = grd_keep(grd_clone(x));
    for (int i = 0; i < 1000000; i++) {
        grd_scope scope = grd_scope_open();
        grd_tensor *next = grd_keep(grd_sin(y));
        grd_drop(y);
        y = next;
        grd_scope_close(scope);
    }
    grd_drop(y);
    grd_drop(x);
    expect_ok();
}

static void test_backward_through_a_node_of_200_inputs(void **state)
{
    (void)state;
    enum { WIDTH = 200 };
    grd_tensor *x = leaf3(), *parts[WIDTH];
    for (int i = 0; i < WIDTH; i++)
        parts[i] = grd_mul_scalar(x, grd_int(i));
    const grd_tensors list = {WIDTH, parts};
    grd_backward(grd_sum(grd_cat(list)));
    double sum = WIDTH * (WIDTH - 1) / 2.0;
    EXPECT_VALUES(grd_grad_of(x), sum, sum, sum);
}

static void test_backward_from_several_outputs(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *a = grd_mul(x, x), *b = grd_sin(a);
    grd_tensor *ga = VECTOR(1, 1, 1), *gb = VECTOR(2, 2, 2);
    grd_backward_all(grd_tensors(a, b), &(grd_backward_options){.grad_outputs = grd_tensors(ga, gb)});
    EXPECT_VALUES(grd_grad_of(x), 2 + 4 * cos(1), 4 + 8 * cos(4), 6 + 12 * cos(9));
}

static void test_backward_from_one_output_given_twice(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_sum(grd_mul(x, x));
    grd_backward_all(grd_tensors(y, y), NULL);
    EXPECT_VALUES(grd_grad_of(x), 4, 8, 12);
}

static void test_backward_from_a_leaf(void **state)
{
    (void)state;
    grd_tensor *x = grd_set_requires_grad(grd_ones(GRD_NO_DIMS), true);
    grd_backward(x);
    EXPECT_VALUES(grd_grad_of(x), 1);
}

static void test_grad_returns_gradients_of_chosen_tensors(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = leaf3(), *h = grd_mul(x, y), *loss = grd_sum(grd_mul(h, h)), *grads[3];
    assert_true(grd_grad(grd_tensors(loss), grd_tensors(x, h, loss), &(grd_backward_options){.retain_graph = true}, grads));
    EXPECT_VALUES(grads[0], 2, 16, 54);
    EXPECT_VALUES(grads[1], 2, 8, 18);
    EXPECT_VALUES(grads[2], 1);
    assert_null(grd_grad_of(x));
    assert_null(grd_grad_of(y));
}

static void test_grad_refuses_unused_inputs_unless_allowed(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = leaf3(), *loss = grd_sum(grd_mul(x, x)), *grads[2];
    assert_false(grd_grad(grd_tensors(loss), grd_tensors(x, y), &(grd_backward_options){.retain_graph = true}, grads));
    assert_ptr_equal(grads[0], grd_failed);
    expect_error("The differentiated Tensor at index 1 appears to not have been used in the graph. Set allow_unused=True if this is the "
                 "desired behavior.");
    assert_true(grd_grad(grd_tensors(loss), grd_tensors(x, y), &(grd_backward_options){.allow_unused = true}, grads));
    EXPECT_VALUES(grads[0], 2, 4, 6);
    assert_null(grads[1]);
    grd_grad(grd_tensors(loss), grd_tensors(VECTOR(1)), NULL, grads);
    expect_error("One of the differentiated Tensors does not require grad");
}

static void test_create_graph_allows_higher_derivatives(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_sum(grd_mul(grd_mul(x, x), x)), *g, *gg, *ggg;
    grd_backward_options create = {.create_graph = true};
    assert_true(grd_grad(grd_tensors(y), grd_tensors(x), &create, &g));
    EXPECT_VALUES(g, 3, 12, 27);
    assert_true(grd_grad(grd_tensors(grd_sum(g)), grd_tensors(x), &create, &gg));
    EXPECT_VALUES(gg, 6, 12, 18);
    assert_true(grd_grad(grd_tensors(grd_sum(gg)), grd_tensors(x), NULL, &ggg));
    EXPECT_VALUES(ggg, 6, 6, 6);
    assert_false(grd_requires_grad(ggg));
}

/* exp saves its own result. If the saved result had lost its grad_fn, the second derivative would be missing. */
static void test_double_backward_through_a_saved_output(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *g, *gg;
    assert_true(grd_grad(grd_tensors(grd_sum(grd_exp(x))), grd_tensors(x), &(grd_backward_options){.create_graph = true}, &g));
    assert_true(grd_grad(grd_tensors(grd_sum(grd_mul(g, g))), grd_tensors(x), NULL, &gg));
    EXPECT_VALUES(gg, 2 * exp(2), 2 * exp(4), 2 * exp(6));
}

static void test_backward_with_create_graph_records_the_gradient(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *gg;
    grd_backward_all(grd_tensors(grd_sum(grd_mul(grd_mul(x, x), x))), &(grd_backward_options){.create_graph = true});
    grd_tensor *g = grd_grad_of(x);
    assert_true(grd_requires_grad(g));
    assert_true(grd_grad(grd_tensors(grd_sum(g)), grd_tensors(x), NULL, &gg));
    EXPECT_VALUES(gg, 6, 12, 18);
    grd_set_grad(x, NULL);
}

static void test_backward_through_a_freed_graph_is_refused(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_sum(grd_mul(x, x));
    grd_backward_all(grd_tensors(y), &(grd_backward_options){.retain_graph = true});
    grd_backward(y);
    EXPECT_VALUES(grd_grad_of(x), 4, 8, 12);
    grd_backward(y);
    expect_error(
        "MulBackward0: Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed).");
}

static void test_backward_refuses_invalid_outputs_and_gradients(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_mul(x, x);
    grd_backward(y);
    expect_error("grad can be implicitly created only for scalar outputs");
    grd_backward(VECTOR(1));
    expect_error("element 0 of tensors does not require grad and does not have a grad_fn");
    grd_backward(NULL);
    expect_error("output 0 must be a tensor, not NULL");
    grd_tensor *wrong = VECTOR(1, 2);
    grd_backward_all(grd_tensors(y), &(grd_backward_options){.grad_outputs = grd_tensors(wrong)});
    expect_error("Mismatch in shape: grad_output[0] has a shape of [2] and output[0] has a shape of [3].");
    grd_backward_all(grd_tensors(y, y), &(grd_backward_options){.grad_outputs = grd_tensors(wrong)});
    expect_error("got 2 tensors and 1 gradients");
}

static void test_gradients_are_summed_to_the_shape_before_broadcasting(void **state)
{
    (void)state;
    grd_tensor *a = grd_set_requires_grad(grd_ones(grd_dims(2, 1)), true), *b = leaf3();
    grd_backward(grd_sum(grd_mul(a, b)));
    EXPECT_VALUES(grd_grad_of(a), 6, 6);
    EXPECT_VALUES(grd_grad_of(b), 2, 2, 2);
    assert_int_equal(grd_ndim(grd_grad_of(a)), 2);
}

static void test_a_gradient_has_the_dtype_of_its_leaf(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *d = grd_set_requires_grad(grd_ones(grd_dims(3), .dtype = GRD_FLOAT64), true);
    grd_backward(grd_sum(grd_mul(x, d)));
    expect_ok();
    assert_int_equal(grd_tensor_dtype(grd_grad_of(x)), GRD_FLOAT32);
    assert_int_equal(grd_tensor_dtype(grd_grad_of(d)), GRD_FLOAT64);
    EXPECT_VALUES(grd_grad_of(d), 1, 2, 3);
}

static void test_backward_does_nothing_while_an_error_is_pending(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *y = grd_sum(x);
    grd_error_set(GRD_ERROR_VALUE, "mine");
    grd_backward(y);
    expect_error("mine");
    assert_null(grd_grad_of(x));
}

/* The gradient of tan is grad * (1 + result * result). Each temporary is dropped after its last use, so at most two exist at the same time. */
static void test_temporaries_of_a_gradient_formula_are_freed_early(void **state)
{
    (void)state;
    enum { N = 1 << 20, BYTES = N * sizeof(float) };
    grd_tensor *x = grd_set_requires_grad(grd_zeros(grd_dims(N)), true), *y = grd_tan(x), *grad = grd_ones(grd_dims(N));
    expect_ok();
    grd_memory_reset_peak();
    int64_t before = grd_memory_get_stats().allocated;
    grd_accelerations = false;
    grd_backward_all(grd_tensors(y), &(grd_backward_options){.grad_outputs = grd_tensors(grad)});
    grd_accelerations = true;
    expect_ok();
    int64_t more = grd_memory_get_stats().peak - before;
    assert_true(more >= 2 * BYTES && more < 2 * BYTES + BYTES / 2);
}

/* Each allocation of a backward pass fails in turn. Each failure must end the pass with MemoryError. The teardown checks that nothing is leaked. */
static void test_backward_survives_failed_allocations(void **state)
{
    (void)state;
    int failures = 0;
    for (int n = 1; n < 200; n++) {
        grd_scope scope = grd_scope_open();
        grd_tensor *x = leaf3(), *y = leaf3();
        grd_tensor *loss = grd_sum(grd_mul(grd_exp(grd_mul(x, y)), grd_add(x, y)));
        expect_ok();
        grd_memory_fail_at(n, false);
        grd_backward(loss);
        grd_memory_fail_at(0, false);
        failures += !grd_ok();
        if (!grd_ok())
            assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
        grd_error_clear();
        grd_scope_close(scope);
    }
    assert_true(failures > 3);
}

static void test_recording_survives_failed_allocations(void **state)
{
    (void)state;
    int failures = 0;
    for (int n = 1; n < 60; n++) {
        grd_scope scope = grd_scope_open();
        grd_tensor *x = leaf3();
        grd_memory_fail_at(n, false);
        grd_tensor *y = grd_mul_(grd_select(grd_exp(grd_mul(x, x)), 0, 1), x);
        grd_backward(grd_sum(y));
        grd_memory_fail_at(0, false);
        failures += !grd_ok();
        grd_error_clear();
        grd_scope_close(scope);
    }
    assert_true(failures > 3);
}

enum { THREADS = 8, ROUNDS = 200 };

struct job {
    grd_tensor *shared;
    int index;
    bool ok;
};

static void *work(void *context)
{
    struct job *job = context;
    job->ok = true;
    for (int i = 0; i < ROUNDS; i++) {
        grd_scope scope = grd_scope_open();
        grd_tensor *own = leaf3();
        grd_backward(grd_sum(grd_mul(grd_mul(own, own), job->shared)));
        double got[3];
        grd_to_memory(grd_grad_of(own), got, GRD_FLOAT64);
        for (int k = 0; k < 3; k++)
            job->ok = job->ok && got[k] == 2.0 * (k + 1) * (k + 1);
        job->ok = job->ok && grd_ok();
        grd_scope_close(scope);
    }
    return NULL;
}

static void test_threads_accumulate_into_one_leaf(void **state)
{
    (void)state;
    grd_tensor *shared = leaf3();
    pthread_t threads[THREADS];
    struct job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i].shared = shared;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_true(jobs[i].ok);
    double n = THREADS * ROUNDS;
    EXPECT_VALUES(grd_grad_of(shared), n, 4 * n, 9 * n);
}

static void *backward_shared(void *context)
{
    grd_scope scope = grd_scope_open();
    struct job *job = context;
    grd_tensor *loss = job->shared;
    job->ok = true;
    for (int i = 0; i < ROUNDS; i++) {
        grd_backward_all(grd_tensors(loss), &(grd_backward_options){.retain_graph = true});
        job->ok = job->ok && grd_ok();
    }
    grd_scope_close(scope);
    return NULL;
}

static void test_threads_run_backward_through_one_graph(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *loss = grd_sum(grd_exp(grd_mul(x, VECTOR(0, 0, 0))));
    pthread_t threads[THREADS];
    struct job jobs[THREADS];
    for (int i = 0; i < THREADS; i++) {
        jobs[i].shared = loss;
        assert_int_equal(pthread_create(&threads[i], NULL, backward_shared, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++)
        assert_true(jobs[i].ok);
    EXPECT_VALUES(grd_grad_of(x), 0, 0, 0);
}

/* Thread function: runs backward through a graph that all threads share. Only threads with an index that is a multiple of 4 free the graph. Sets
 * job->ok if backward succeeds or reports that the graph is already freed. */
static void *backward_once(void *context)
{
    grd_scope scope = grd_scope_open();
    struct job *job = context;
    grd_backward_all(grd_tensors(job->shared), &(grd_backward_options){.retain_graph = job->index % 4 != 0});
    job->ok = grd_ok() || strstr(grd_error_message(), "backward through the graph a second time") != NULL;
    grd_error_clear();
    grd_scope_close(scope);
    return NULL;
}

/* Some threads free a graph through which other threads run backward. Each thread either computes its gradients completely or gets the error for a
 * freed graph. */
static void test_threads_may_free_a_graph_that_others_use(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        grd_scope scope = grd_scope_open();
        grd_tensor *x = leaf3(), *y = grd_exp(x), *loss = grd_sum(grd_mul(grd_mul(y, y), y));
        pthread_t threads[THREADS];
        struct job jobs[THREADS];
        for (int i = 0; i < THREADS; i++) {
            jobs[i] = (struct job){.shared = loss, .index = i};
            assert_int_equal(pthread_create(&threads[i], NULL, backward_once, &jobs[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        for (int i = 0; i < THREADS; i++)
            assert_true(jobs[i].ok);
        grd_scope_close(scope);
    }
}

static void test_complex_outputs_need_a_complex_grad_output(void **state)
{
    (void)state;
    grd_tensor *z = grd_set_requires_grad(grd_ones(GRD_NO_DIMS, .dtype = GRD_COMPLEX64), true);
    grd_backward(grd_mul(z, z));
    expect_whole_error("grad can be implicitly created only for real scalar outputs but got complex64");
    grd_tensor *g;
    assert_false(grd_grad(grd_tensors(grd_mul(z, z)), grd_tensors(z),
                          &(grd_backward_options){.grad_outputs = grd_tensors(grd_ones(GRD_NO_DIMS))}, &g));
    expect_whole_error("For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                       "grad_output[0] has a dtype of float32 and output[0] has a dtype of complex64.");
}

/* With the option `inputs`, only the tensors in `inputs` get gradients. A non-leaf tensor in `inputs` retains its gradient. */
static void test_backward_with_inputs_accumulates_only_into_them(void **state)
{
    (void)state;
    grd_tensor *x = leaf3(), *w = leaf3(), *h = grd_mul(x, w), *loss = grd_sum(grd_mul(h, h));
    grd_backward_all(grd_tensors(loss), &(grd_backward_options){.inputs = grd_tensors(w, h), .retain_graph = true});
    expect_ok();
    assert_null(grd_grad_of(x));
    EXPECT_VALUES(grd_grad_of(w), 2, 16, 54);
    EXPECT_VALUES(grd_grad_of(h), 2, 8, 18);
    grd_backward_all(grd_tensors(loss), &(grd_backward_options){.inputs = grd_tensors(x)});
    EXPECT_VALUES(grd_grad_of(x), 2, 16, 54);
    EXPECT_VALUES(grd_grad_of(w), 2, 16, 54);
    grd_backward_all(grd_tensors(loss), &(grd_backward_options){.inputs = {0, (grd_tensor *const *)&loss}});
    expect_whole_error("`inputs` argument to `backward()` cannot be empty.");
    grd_backward_all(grd_tensors(loss), &(grd_backward_options){.inputs = grd_tensors(VECTOR(1, 2))});
    expect_whole_error("One of the differentiated Tensors does not require grad");
}

/* ---- Anomaly mode --------------------------------------------------------------------------------------------------------------------- */
static char warned[256];
static int traces;

static void remember_warning(const char *text)
{
    snprintf(warned, sizeof warned, "%s", text);
}

static const char *trace_here(void)
{
    static char text[32];
    snprintf(text, sizeof text, "place %d", ++traces);
    return text;
}

static void test_anomaly_mode_reports_nan_and_the_forward_call(void **state)
{
    (void)state;
    bool check_nan = false;
    grd_tensor *x = leaf3();
    assert_false(grd_anomaly_mode(&check_nan));
    assert_true(check_nan);
    grd_set_warning_handler(remember_warning);
    grd_set_anomaly_tracer(trace_here);
    grd_set_anomaly_mode(true, true);
    grd_tensor *y = grd_mul(grd_sqrt(grd_neg(x)), grd_zeros(grd_dims(3))), *traced = grd_sum(y);
    assert_int_equal(traces, 4);
    grd_backward(traced);
    expect_error("Function 'SqrtBackward0' returned nan values in its 0th output.");
    assert_string_equal(warned, "Error detected in SqrtBackward0. Traceback of forward call that caused the error:\nplace 2");
    assert_null(grd_grad_of(x));
    grd_set_anomaly_mode(true, false);
    grd_backward(grd_sum(grd_mul(grd_sqrt(grd_neg(x)), grd_zeros(grd_dims(3)))));
    assert_true(grd_ok());
    grd_set_anomaly_mode(false, true);
    traces = 0;
    y = grd_sum(grd_mul(grd_sqrt(grd_neg(x)), grd_zeros(grd_dims(3))));
    assert_int_equal(traces, 0);
    grd_set_anomaly_mode(true, true);
    grd_backward(y);
    expect_error("Function 'SqrtBackward0' returned nan values in its 0th output.");
    assert_string_equal(warned, "Error detected in SqrtBackward0. No forward pass information available. Enable detect anomaly during "
                                "forward pass for more information.");
    grd_set_anomaly_mode(false, true);
    grd_set_anomaly_tracer(NULL);
    grd_set_warning_handler(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_backward_through_a_chain_of_operators),
        TEST(test_backward_through_a_diamond_sums_gradients),
        TEST(test_gradients_of_a_repeated_input_are_summed),
        TEST(test_gradients_accumulate_over_backward_passes),
        TEST(test_the_caller_s_grad_output_is_not_modified),
        TEST(test_two_leaves_do_not_share_gradient_memory),
        TEST(test_a_gradient_has_the_strides_of_its_leaf),
        TEST(test_backward_through_a_million_nodes),
        TEST(test_a_chain_of_a_million_nodes_is_freed_without_recursion),
        TEST(test_backward_through_a_node_of_200_inputs),
        TEST(test_backward_from_several_outputs),
        TEST(test_backward_from_one_output_given_twice),
        TEST(test_backward_from_a_leaf),
        TEST(test_grad_returns_gradients_of_chosen_tensors),
        TEST(test_grad_refuses_unused_inputs_unless_allowed),
        TEST(test_create_graph_allows_higher_derivatives),
        TEST(test_double_backward_through_a_saved_output),
        TEST(test_backward_with_create_graph_records_the_gradient),
        TEST(test_backward_through_a_freed_graph_is_refused),
        TEST(test_backward_refuses_invalid_outputs_and_gradients),
        TEST(test_gradients_are_summed_to_the_shape_before_broadcasting),
        TEST(test_a_gradient_has_the_dtype_of_its_leaf),
        TEST(test_backward_does_nothing_while_an_error_is_pending),
        TEST(test_temporaries_of_a_gradient_formula_are_freed_early),
        TEST(test_backward_survives_failed_allocations),
        TEST(test_recording_survives_failed_allocations),
        TEST(test_threads_accumulate_into_one_leaf),
        TEST(test_complex_outputs_need_a_complex_grad_output),
        TEST(test_threads_run_backward_through_one_graph),
        TEST(test_threads_may_free_a_graph_that_others_use),
        TEST(test_backward_with_inputs_accumulates_only_into_them),
        TEST(test_anomaly_mode_reports_nan_and_the_forward_call),
    };
    return cmocka_run_group_tests(tests, warm_up, NULL);
}
