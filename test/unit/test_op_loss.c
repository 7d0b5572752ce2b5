/* Compares losses with their formulas, written as loops in C: values, gradients and reductions. Also tests error texts. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "support.h"

enum { N = 3, C = 4, D = 5, IGNORED = 2 };

static void expect_near(double got, double want)
{
    assert_string_equal(grd_error_message(), "");
    assert_true(fabs(got - want) <= fmin(1e-12 * (1 + fabs(want)), DBL_MAX));
}

static grd_tensor *random_input(grd_dims sizes)
{
    return grd_randn(sizes, .dtype = GRD_FLOAT64);
}

/* Expected values of nll_loss for an input x of shape (N, C, D): the loss -weight[t] * x[t] of each of the N * D targets t, the mean and the sum
 * of the losses, and the gradients of the mean and of the sum with respect to x. */
struct reference {
    double losses[N * D], mean, sum, grad_sum[N * C * D], grad_mean[N * C * D];
};

static void nll_reference(grd_tensor *x, grd_tensor *target, grd_tensor *weight, struct reference *ret)
{
    double total = 0;
    *ret = (struct reference){.sum = 0};
    for (int n = 0; n < N; n++)
        for (int d = 0; d < D; d++) {
            int64_t t = (int64_t)element_at(target, n * D + d);
            if (t == IGNORED)
                continue;
            double w = element_at(weight, t);
            ret->losses[n * D + d] = -w * element_at(x, (n * C + t) * D + d);
            ret->sum += ret->losses[n * D + d];
            ret->grad_sum[(n * C + t) * D + d] = -w;
            total += w;
        }
    ret->mean = ret->sum / total;
    for (int i = 0; i < N * C * D; i++)
        ret->grad_mean[i] = ret->grad_sum[i] / total;
}

static void test_nll_loss_and_its_gradient_equal_the_definition(void **state)
{
    (void)state;
    struct reference want;
    grd_tensor *x = random_input(grd_dims(N, C, D)), *target = grd_randint(0, C, grd_dims(N, D));
    grd_tensor *weight = grd_rand(grd_dims(C), .dtype = GRD_FLOAT64);
    nll_reference(x, target, weight, &want);
    grd_set_requires_grad(x, true);
    grd_tensor *mean = grd_nll_loss(x, target, .weight = weight, .ignore_index = IGNORED);
    expect_near(grd_item_double(mean), want.mean);
    grd_backward(mean);
    for (int i = 0; i < N * C * D; i++)
        expect_near(element_at(grd_grad_of(x), i), want.grad_mean[i]);
    grd_set_grad(x, NULL);
    grd_tensor *sum = grd_nll_loss(x, target, .weight = weight, .reduction = "sum", .ignore_index = IGNORED);
    expect_near(grd_item_double(sum), want.sum);
    grd_tensor *none = grd_nll_loss(x, target, .weight = weight, .reduction = "none", .ignore_index = IGNORED);
    for (int i = 0; i < N * D; i++)
        expect_near(element_at(none, i), want.losses[i]);
    grd_backward(grd_sum(none));
    for (int i = 0; i < N * C * D; i++)
        expect_near(element_at(grd_grad_of(x), i), want.grad_sum[i]);
}

static void test_nll_loss_of_an_empty_batch(void **state)
{
    (void)state;
    grd_tensor *x = random_input(grd_dims(0, C)), *target = grd_zeros(grd_dims(0), .dtype = GRD_INT64);
    assert_true(isnan(grd_item_double(grd_nll_loss(x, target))));
    assert_true(grd_item_double(grd_nll_loss(x, target, .reduction = "sum")) == 0);
}

/* Returns element `class` of the log_softmax of row `row` of x, computed from the definition. */
static double log_p(grd_tensor *x, int row, int class)
{
    double sum = 0;
    for (int c = 0; c < C; c++)
        sum += exp(element_at(x, row * C + c));
    return element_at(x, row * C + class) - log(sum);
}

static void test_cross_entropy_with_smoothing_and_probabilities(void **state)
{
    (void)state;
    const double smoothing = 0.25;
    grd_tensor *x = random_input(grd_dims(N, C)), *target = grd_randint(0, C, grd_dims(N));
    double plain = 0, smooth = 0;
    for (int n = 0; n < N; n++) {
        int t = (int)element_at(target, n);
        plain -= log_p(x, n, t) / N;
        for (int c = 0; c < C; c++)
            smooth -= ((c == t) * (1 - smoothing) + smoothing / C) * log_p(x, n, c) / N;
    }
    expect_near(grd_item_double(grd_cross_entropy(x, target)), plain);
    expect_near(grd_item_double(grd_cross_entropy(x, target, .label_smoothing = smoothing)), smooth);
    grd_tensor *probabilities = grd_zeros(grd_dims(N, C), .dtype = GRD_FLOAT64);
    for (int n = 0; n < N; n++)
        grd_fill_(grd_select(grd_select(probabilities, 0, n), 0, (int64_t)element_at(target, n)), grd_int(1));
    expect_near(grd_item_double(grd_cross_entropy(x, probabilities)), plain);
    expect_near(grd_item_double(grd_cross_entropy(x, probabilities, .label_smoothing = smoothing)), smooth);
}

static void test_mse_l1_smooth_l1_and_huber_losses(void **state)
{
    (void)state;
    grd_tensor *x = random_input(grd_dims(N, C)), *y = random_input(grd_dims(N, C));
    double squares = 0, lengths = 0, smooth = 0, huber = 0;
    const double beta = 0.5;
    for (int i = 0; i < N * C; i++) {
        double d = fabs(element_at(x, i) - element_at(y, i));
        squares += d * d;
        lengths += d;
        smooth += d < beta ? d * d / (2 * beta) : d - beta / 2;
        huber += d <= beta ? d * d / 2 : beta * (d - beta / 2);
    }
    expect_near(grd_item_double(grd_mse_loss(x, y)), squares / (N * C));
    expect_near(grd_item_double(grd_mse_loss(x, y, .reduction = "sum")), squares);
    expect_near(element_at(grd_mse_loss(x, y, .reduction = "none"), 3), pow(element_at(x, 3) - element_at(y, 3), 2));
    expect_near(grd_item_double(grd_l1_loss(x, y)), lengths / (N * C));
    expect_near(grd_item_double(grd_smooth_l1_loss(x, y, .reduction = "sum", .beta = beta)), smooth);
    expect_near(grd_item_double(grd_huber_loss(x, y, .reduction = "sum", .delta = beta)), huber);
}

static void test_binary_cross_entropy_with_probabilities_and_logits(void **state)
{
    (void)state;
    grd_tensor *x = random_input(grd_dims(N, C)), *y = grd_rand(grd_dims(N, C), .dtype = GRD_FLOAT64), *p = grd_sigmoid(x);
    double want = 0;
    for (int i = 0; i < N * C; i++)
        want -= element_at(y, i) * log(element_at(p, i)) + (1 - element_at(y, i)) * log(1 - element_at(p, i));
    expect_near(grd_item_double(grd_binary_cross_entropy(p, y, .reduction = "sum")), want);
    expect_near(grd_item_double(grd_binary_cross_entropy_with_logits(x, y, .reduction = "sum")), want);
    grd_tensor *far = grd_from_data((const double[]){0, 800, -800}, grd_dims(3), GRD_FLOAT64), *ones = grd_ones_like(far);
    grd_set_requires_grad(far, true);
    grd_tensor *loss = grd_binary_cross_entropy_with_logits(far, ones, .reduction = "sum");
    expect_near(grd_item_double(loss), 800 + log(2));
    grd_backward(loss);
    expect_near(element_at(grd_grad_of(far), 0), -0.5);
    expect_near(element_at(grd_grad_of(far), 1), 0);
    expect_near(element_at(grd_grad_of(far), 2), -1);
}

static void test_kl_div_reduces_by_mean_batch_and_sum(void **state)
{
    (void)state;
    grd_tensor *x = random_input(grd_dims(2)), *t = grd_from_data((const double[]){0, 0.75}, grd_dims(2), GRD_FLOAT64);
    double want = 0.75 * (log(0.75) - element_at(x, 1));
    expect_near(grd_item_double(grd_kl_div(x, t)), want / 2);
    expect_near(grd_item_double(grd_kl_div(x, t, .reduction = "batchmean")), want / 2);
    expect_near(grd_item_double(grd_kl_div(x, t, .reduction = "sum")), want);
}

static void test_losses_refuse_invalid_arguments(void **state)
{
    (void)state;
    grd_tensor *x = random_input(grd_dims(N, C)), *target = grd_from_data((const int64_t[]){0, 5, 1}, grd_dims(N), GRD_INT64);
    grd_nll_loss(x, target);
    expect_error(GRD_ERROR_INDEX, "nll_loss: nll_loss_forward: Target 5 is out of bounds.");
    grd_nll_loss(x, grd_zeros(grd_dims(2), .dtype = GRD_INT64));
    expect_error(GRD_ERROR_VALUE, "nll_loss: nll_loss_forward: Expected input batch_size (3) to match target batch_size (2).");
    grd_nll_loss(x, grd_zeros(grd_dims(N)));
    expect_error(GRD_ERROR_RUNTIME, "nll_loss: nll_loss_forward: expected target dtype to be Long or Byte, but got Float");
    grd_cross_entropy(x, grd_zeros(grd_dims(N), .dtype = GRD_INT64), .label_smoothing = 1.5);
    expect_error(GRD_ERROR_RUNTIME, "cross_entropy: label_smoothing must be between 0.0 and 1.0. Got: 1.5");
    grd_mse_loss(x, x, .reduction = "xyz");
    expect_error(GRD_ERROR_VALUE, "mse_loss: xyz is not a valid value for reduction: \"none\", \"mean\" or \"sum\"");
    grd_smooth_l1_loss(x, x, .beta = -1);
    expect_error(GRD_ERROR_RUNTIME, "smooth_l1_loss: smooth_l1_loss does not support negative values for beta.");
    grd_binary_cross_entropy(grd_full(grd_dims(2), grd_float(1.5)), grd_zeros(grd_dims(2)));
    expect_error(GRD_ERROR_RUNTIME, "binary_cross_entropy: all elements of input should be between 0 and 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(test_nll_loss_and_its_gradient_equal_the_definition),
        IN_SCOPE(test_nll_loss_of_an_empty_batch),
        IN_SCOPE(test_cross_entropy_with_smoothing_and_probabilities),
        IN_SCOPE(test_mse_l1_smooth_l1_and_huber_losses),
        IN_SCOPE(test_binary_cross_entropy_with_probabilities_and_logits),
        IN_SCOPE(test_kl_div_reduces_by_mean_batch_and_sum),
        IN_SCOPE(test_losses_refuse_invalid_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
