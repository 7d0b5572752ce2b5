/* Times single operators, small training steps and large arrays. torch_micro.py times the same cases in PyTorch under the same names.
 *
 *     bench_micro [PART]          nanoseconds of one call, a line "name<TAB>nanoseconds" for each name that contains PART
 *     bench_micro --count N NAME  makes N calls of NAME after some calls that warm up, and prints nothing; instructions.sh counts the instructions
 *
 * The calls are timed in many batches of about BATCH_SECONDS. The time printed is the mean time of a call in the fastest batch, because this is
 * the cost of a call when nothing else runs. Cases with large arrays are named name/threads. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gradus/gradus.h>

#include "by_hand.h"

enum { BATCHES = 40, LARGE = 4 << 20, SIDE = 2048, PRODUCTS = 6 };
static const double BATCH_SECONDS = 0.004;

struct bench {
    const char *name;
    void (*call)(int argument); /* makes one call; the results belong to a grd_scope that the caller has opened */
    int argument;
};

/* ---- Small tensors ------------------------------------------------------------------------------------------------------------- */

static grd_tensor *a, *b, *matrix, *turned, *one, *rows_of_8, *x, *y, *input[2], *weight[2], *bias[2];

static grd_tensor *uniform(grd_dims sizes)
{
    return grd_keep(grd_uniform_(grd_empty(sizes), .from = -1, .to = 1));
}

static void prepare_small(void)
{
    a = uniform(grd_dims(4));
    b = uniform(grd_dims(4));
    matrix = uniform(grd_dims(4, 4));
    turned = grd_keep(grd_t(uniform(grd_dims(4, 4))));
    rows_of_8 = uniform(grd_dims(4, 8));
    one = uniform(grd_dims(1));
    input[0] = uniform(grd_dims(1, 8));
    weight[0] = uniform(grd_dims(8, 8));
    bias[0] = uniform(grd_dims(8));
    input[1] = uniform(grd_dims(16, 64));
    weight[1] = uniform(grd_dims(32, 64));
    bias[1] = uniform(grd_dims(32));
    x = grd_set_requires_grad(uniform(grd_dims(4)), true);
    y = grd_set_requires_grad(uniform(grd_dims(4)), true);
}

static void add(int argument)
{
    (void)argument;
    grd_add(a, b);
}

/* Adds two batched tensors. The first call, which is not timed, begins a batch level (vmap). The level stays active for the timed calls, but no
 * other case may run in it. Therefore this case is the last one in the array `small`. After that array main() ends the level. */
static void add_batched(int argument)
{
    static grd_tensor *batched[2];
    (void)argument;
    if (batched[0] == NULL) {
        grd_batch_begin(4, GRD_RANDOMNESS_ERROR);
        batched[0] = grd_keep(grd_batch(a, 0));
        batched[1] = grd_keep(grd_batch(b, 0));
    }
    grd_add(batched[0], batched[1]);
}

static void add_number(int argument)
{
    (void)argument;
    grd_add_scalar(a, grd_float(2));
}

static void add_bias(int argument)
{
    (void)argument;
    grd_add(rows_of_8, bias[0]);
}

static void add_transposed(int argument)
{
    (void)argument;
    grd_add(matrix, turned);
}

static void softmax(int argument)
{
    (void)argument;
    grd_softmax(matrix, 1);
}

static void add_recorded(int argument)
{
    (void)argument;
    grd_add(x, b);
}

static void select_row(int argument)
{
    (void)argument;
    grd_select(matrix, 0, 1);
}

static void view(int argument)
{
    (void)argument;
    grd_view(a, grd_dims(2, 2));
}

static void transpose(int argument)
{
    (void)argument;
    grd_transpose(matrix, 0, 1);
}

static void zeros(int argument)
{
    (void)argument;
    grd_zeros(grd_dims(4));
}

static void sum(int argument)
{
    (void)argument;
    grd_sum(a);
}

static void mm(int argument)
{
    (void)argument;
    grd_mm(matrix, matrix);
}

static void linear(int argument)
{
    grd_linear(input[argument], weight[argument], .bias = bias[argument]);
}

static volatile double read_number;

static void item(int argument)
{
    (void)argument;
    read_number = grd_item_double(one);
}

static void backward(int argument)
{
    (void)argument;
    grd_backward(grd_sum(grd_mul(x, y)));
    grd_set_grad(x, NULL);
    grd_set_grad(y, NULL);
}

/* ---- A training step: 64-32-32-10, batch 16, AdamW by in-place operators, and by an optimizer ---------------------------------------------------------- */

enum { LAYERS = 3, BATCH = 16 };
static const int widths[LAYERS + 1] = {64, 32, 32, 10};

static struct network {
    grd_tensor *parameter[2 * LAYERS], *mean[2 * LAYERS], *square[2 * LAYERS];
    grd_tensor *images, *labels;
    int steps;
    grd_optimizer *optimizer;
} net;

static void prepare_network(void)
{
    static int64_t labels[BATCH];
    for (int i = 0; i < BATCH; i++)
        labels[i] = i % widths[LAYERS];
    net.images = uniform(grd_dims(BATCH, widths[0]));
    net.labels = grd_keep(grd_from_data(labels, grd_dims(BATCH), GRD_INT64));
    for (int i = 0; i < LAYERS; i++) {
        net.parameter[2 * i] = uniform(grd_dims(widths[i + 1], widths[i]));
        net.parameter[2 * i + 1] = uniform(grd_dims(widths[i + 1]));
    }
    for (int i = 0; i < 2 * LAYERS; i++) {
        grd_mul_scalar_(net.parameter[i], grd_float(0.1));
        grd_set_requires_grad(net.parameter[i], true);
        net.mean[i] = grd_keep(grd_zeros_like(net.parameter[i]));
        net.square[i] = grd_keep(grd_zeros_like(net.parameter[i]));
    }
    net.optimizer = grd_adamw_new(grd_tensors_from(net.parameter, 2 * LAYERS), 1e-3);
}

static void adamw(void)
{
    const double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0.01;
    const bool recording = grd_set_grad_enabled(false);
    net.steps++;
    const double correction1 = 1 - pow(beta1, net.steps), correction2 = 1 - pow(beta2, net.steps);
    for (int i = 0; i < 2 * LAYERS; i++) {
        grd_tensor *p = net.parameter[i], *m = net.mean[i], *v = net.square[i], *g = grd_grad_of(p);
        grd_mul_scalar_(p, grd_float(1 - lr * decay));
        grd_mul_scalar_(m, grd_float(beta1));
        grd_add_(m, g, .alpha = 1 - beta1);
        grd_mul_scalar_(v, grd_float(beta2));
        grd_addcmul_(v, g, g, .value = 1 - beta2);
        grd_tensor *size = grd_add_scalar(grd_sqrt(grd_div_scalar(v, grd_float(correction2))), grd_float(eps));
        grd_addcdiv_(p, m, size, .value = -lr / correction1);
        grd_set_grad(p, NULL);
    }
    grd_set_grad_enabled(recording);
}

static void make_gradients(void)
{
    grd_tensor *h = net.images;
    for (int i = 0; i < LAYERS; i++) {
        h = grd_linear(h, net.parameter[2 * i], .bias = net.parameter[2 * i + 1]);
        if (i + 1 < LAYERS)
            h = grd_relu(h);
    }
    grd_backward(grd_cross_entropy(h, net.labels));
}

static void training_step(int argument)
{
    (void)argument;
    make_gradients();
    adamw();
}

static void training_step_by_hand(int argument)
{
    (void)argument;
    by_hand_step();
}

static void training_step_optimizer(int argument)
{
    (void)argument;
    make_gradients();
    grd_optimizer_step(net.optimizer);
    grd_optimizer_zero_grad(net.optimizer);
}

static const struct bench small[] = {
    {"add", add, 0},
    {"add_number", add_number, 0},
    {"add_recorded", add_recorded, 0},
    {"add_bias", add_bias, 0},
    {"add_transposed", add_transposed, 0},
    {"softmax", softmax, 0},
    {"select", select_row, 0},
    {"view", view, 0},
    {"transpose", transpose, 0},
    {"zeros", zeros, 0},
    {"sum", sum, 0},
    {"mm", mm, 0},
    {"linear_1x8x8", linear, 0},
    {"linear_16x64x32", linear, 1},
    {"item", item, 0},
    {"backward", backward, 0},
    {"training_step", training_step, 0},
    {"training_step_by_hand", training_step_by_hand, 0},
    {"training_step_optimizer", training_step_optimizer, 0},
    {"add_batched", add_batched, 0},
};

/* ---- Large arrays: 4M elements ------------------------------------------------------------------------------------------------------ */

static grd_tensor *p, *q, *rows, *side, *i64, *j64, *left[PRODUCTS], *right[PRODUCTS];
static void *copied;

static void prepare_large(void)
{
    p = uniform(grd_dims(LARGE));
    q = uniform(grd_dims(LARGE));
    rows = grd_keep(grd_view(p, grd_dims(LARGE / 1024, 1024)));
    side = grd_keep(grd_t(grd_view(p, grd_dims(SIDE, LARGE / SIDE))));
    i64 = grd_keep(grd_arange(grd_int(LARGE)));
    j64 = grd_keep(grd_arange(grd_int(LARGE)));
    for (int i = 0; i < PRODUCTS; i++) {
        left[i] = uniform(grd_dims(64 << i, 64 << i));
        right[i] = uniform(grd_dims(64 << i, 64 << i));
    }
    copied = malloc(LARGE * sizeof(float));
}

static void large_memcpy(int argument)
{
    (void)argument;
    memcpy(copied, grd_data(p), LARGE * sizeof(float));
}

static void large_add(int argument)
{
    (void)argument;
    grd_add(p, q);
}

static void large_exp(int argument)
{
    (void)argument;
    grd_exp(p);
}

static void large_tanh(int argument)
{
    (void)argument;
    grd_tanh(p);
}

static void large_sum(int argument)
{
    (void)argument;
    grd_sum(p);
}

static void large_softmax(int argument)
{
    (void)argument;
    grd_softmax(rows, 1);
}

static void large_transpose(int argument)
{
    (void)argument;
    grd_contiguous(side);
}

static void large_add_int64(int argument)
{
    (void)argument;
    grd_add(i64, j64);
}

static void large_mm(int argument)
{
    grd_mm(left[argument], right[argument]);
}

static const struct bench large[] = {
    {"memcpy_4M", large_memcpy, 0},
    {"add_4M", large_add, 0},
    {"exp_4M", large_exp, 0},
    {"tanh_4M", large_tanh, 0},
    {"sum_4M", large_sum, 0},
    {"softmax_4M", large_softmax, 0},
    {"transpose_copy_4M", large_transpose, 0},
    {"add_int64_4M", large_add_int64, 0},
    {"mm_64", large_mm, 0},
    {"mm_128", large_mm, 1},
    {"mm_256", large_mm, 2},
    {"mm_512", large_mm, 3},
    {"mm_1024", large_mm, 4},
    {"mm_2048", large_mm, 5},
};

/* ---- Timing ---------------------------------------------------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void make_calls(const struct bench *bench, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        const grd_scope scope = grd_scope_open();
        bench->call(bench->argument);
        grd_scope_close(scope);
    }
}

static __attribute__((noinline)) void warm_up(const struct bench *bench)
{
    make_calls(bench, 20);
}

/* Makes `n` calls. Callgrind, which instructions.sh runs, counts instructions only inside this function. */
static __attribute__((noinline)) void repeat(const struct bench *bench, int64_t n)
{
    make_calls(bench, n);
}

static double seconds(const struct bench *bench, int64_t n)
{
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    repeat(bench, n);
    clock_gettime(CLOCK_MONOTONIC, &end);
    return (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
}

static double least_nanoseconds(const struct bench *bench)
{
    int64_t n = 1;
    double taken, least = INFINITY;
    warm_up(bench);
    for (taken = seconds(bench, n); taken < BATCH_SECONDS / 4 && n < 1 << 30; taken = seconds(bench, n))
        n *= 4;
    n = (int64_t)fmax(1, (double)n * BATCH_SECONDS / taken);
    for (int i = 0; i < BATCHES; i++)
        least = fmin(least, seconds(bench, n) / (double)n * 1e9);
    return least;
}

static void report(const char *part, const struct bench *benches, int n, int threads)
{
    for (int i = 0; i < n; i++) {
        char name[64];
        if (threads)
            snprintf(name, sizeof name, "%s/%d", benches[i].name, threads);
        else
            snprintf(name, sizeof name, "%s", benches[i].name);
        if (strstr(name, part) == NULL || (threads > 1 && benches[i].call == large_memcpy))
            continue;
        printf("%s\t%.1f\n", name, least_nanoseconds(&benches[i]));
        fflush(stdout);
    }
}

static int finish(void)
{
    if (grd_ok())
        return 0;
    fprintf(stderr, "error: %s\n", grd_error_message());
    return 1;
}

int main(int argc, char **argv)
{
    enum { SMALL = sizeof small / sizeof *small, LARGES = sizeof large / sizeof *large };
    grd_manual_seed(0);
    prepare_small();
    prepare_network();
    if (argc == 4 && strcmp(argv[1], "--count") == 0) {
        for (int i = 0; i < SMALL; i++)
            if (strcmp(small[i].name, argv[3]) == 0) {
                warm_up(&small[i]);
                repeat(&small[i], atoll(argv[2]));
            }
        return finish();
    }
    /* This call is not reached with --count. instructions.sh runs the program with --count in valgrind, and valgrind may not support all CPU
     * instructions in by_hand.c. */
    by_hand_prepare();
    const char *const part = argc > 1 ? argv[1] : "";
    fprintf(stderr, "gradus %s, kernels: %s, products: %s\n", grd_version(), grd_isa(), grd_blas());
    grd_set_num_threads(1);
    report(part, small, SMALL, 0);
    grd_batch_end();
    prepare_large();
    for (int threads = 1; threads <= 2; threads++) {
        grd_set_num_threads(threads);
        report(part, large, LARGES, threads);
    }
    return finish();
}
