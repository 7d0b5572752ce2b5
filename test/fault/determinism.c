/* Tests that results do not depend on the number of threads. Every operator of the schema, forward and backward, must give the same bits with 1, 2,
 * 3 and 8 threads on tensors large enough to be split. The arguments are those of the schema's samples with their sizes multiplied. Each operator is
 * one test, and `test_determinism sum` runs only the test of sum. */
#include "call.h"

enum { MAX_LIST = 8, WANTED = 70000, LIMIT = 1 << 30 };

/* ---- Larger samples ------------------------------------------------------------------------------------------------------------------ */

/* Selects which sizes of each tensor are multiplied by a factor: all sizes, the last one, or the first one. Sizes of 1 are never multiplied. */
enum scaling { ALL, LAST, FIRST, SCALINGS };

static int64_t elements_of(const struct test_arg *arg)
{
    int64_t n = 1;
    for (int i = 0; i < arg->n; i++)
        n *= arg->shape[i];
    return n;
}

static bool is_tensor(const struct test_arg *arg)
{
    return arg->kind == TEST_FLOATS || arg->kind == TEST_CONSTANTS || arg->kind == TEST_INTEGERS || arg->kind == TEST_BOOLEANS;
}

static void scale_shape(int64_t *shape, int64_t n, enum scaling scaling, int64_t factor)
{
    for (int64_t i = 0; i < n; i++)
        if (shape[i] > 1 && (scaling == ALL || (scaling == LAST && i == n - 1) || (scaling == FIRST && i == 0)))
            shape[i] *= factor;
}

struct sample {
    struct test_case test;
    struct test_arg args[MAX_ARGS], items[MAX_ARGS][MAX_LIST];
};

/* Copies `test` into `sample` with larger tensors. Multiplies by `factor` all sizes above 1 of the tensor arguments and of arguments whose names
 * begin with "size". `scaling` selects the dimensions: the first, the last or all. Returns the number of elements of the largest tensor. */
static int64_t scale_sample(struct sample *sample, const struct test_case *test, enum scaling scaling, int64_t factor)
{
    const grd_op *op = grd_op_find(test->op);
    int64_t largest = 0;
    sample->test = *test;
    sample->test.args = sample->args;
    for (int i = 0; i < test->n; i++) {
        struct test_arg *arg = &sample->args[i];
        *arg = test->args[i];
        if (is_tensor(arg))
            scale_shape(arg->shape, arg->n, scaling, factor);
        if (arg->kind == TEST_DIMS && strncmp(grd_op_arg_name(op, i), "size", 4) == 0)
            scale_shape(arg->shape, arg->n, scaling, factor);
        if (is_tensor(arg) && elements_of(arg) > largest)
            largest = elements_of(arg);
        for (int64_t k = 0; arg->kind == TEST_LIST && k < arg->n; k++) {
            sample->items[i][k] = arg->items[k];
            scale_shape(sample->items[i][k].shape, sample->items[i][k].n, scaling, factor);
            if (elements_of(&sample->items[i][k]) > largest)
                largest = elements_of(&sample->items[i][k]);
        }
        if (arg->kind == TEST_LIST)
            arg->items = sample->items[i];
    }
    return largest;
}

/* Returns a factor for scale_sample. Tries factors in ascending order, each about 1/8 larger than the one before. The result is the last factor with
 * which the largest tensor has at most `wanted` elements, or 1 if there is none. Also returns 1 if no size can be multiplied. */
static int64_t best_factor(struct sample *sample, const struct test_case *test, enum scaling scaling, int64_t wanted)
{
    if (scale_sample(sample, test, scaling, 2) == scale_sample(sample, test, scaling, 1))
        return 1;
    int64_t factor = 1;
    while (scale_sample(sample, test, scaling, factor + factor / 8 + 1) <= wanted)
        factor += factor / 8 + 1;
    return factor;
}

/* ---- Comparing -------------------------------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, const void *data, int64_t nbytes)
{
    const uint8_t *bytes = data;
    for (int64_t i = 0; i < nbytes; i += 8) {
        uint64_t word = 0;
        memcpy(&word, bytes + i, (size_t)(nbytes - i < 8 ? nbytes - i : 8));
        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* Returns `hash` updated with every bit of the elements of t. */
static uint64_t hash_tensor(uint64_t hash, grd_tensor *t)
{
    grd_tensor *c = grd_contiguous(t);
    return grd_numel(c) > 0 ? mix(hash, grd_data(c), grd_numel(c) * grd_dtype_size(grd_tensor_dtype(c))) : hash;
}

static bool run_forward(struct call *call, uint64_t *ret_hash)
{
    struct results results;
    if (!run(call, &results))
        return false;
    for (int i = 0; i < results.n; i++)
        *ret_hash = hash_tensor(*ret_hash, results.tensors[i]);
    return grd_ok();
}

static bool run_backward(struct call *call, uint64_t *ret_hash)
{
    grd_tensor *seeds[MAX_RESULTS], *grads[MAX_TENSORS];
    const grd_tensors outputs = as_function(call->differentiable, call->ndifferentiable, call);
    for (int64_t i = 0; i < outputs.n; i++)
        seeds[i] = grd_add_scalar(grd_mul_scalar(grd_detach(outputs.data[i]), grd_float(0.5)), grd_float(0.25));
    const grd_backward_options options = {.grad_outputs = grd_tensors_from(seeds, outputs.n), .allow_unused = true};
    if (!grd_ok() || outputs.n == 0 || !grd_grad(outputs, grd_tensors_from(call->differentiable, call->ndifferentiable), &options, grads))
        return false;
    for (int i = 0; i < call->ndifferentiable; i++)
        if (grads[i] != NULL)
            *ret_hash = hash_tensor(*ret_hash, grads[i]);
    return grd_ok();
}

static int split_calls; /* number of samples whose tensors are large enough to be split */

/* Checks that the results, or with `backward` the gradients, are the same bit for bit with 1, 2, 3 and 8 threads. Returns false if the operator
 * refuses the sample with these sizes. */
static bool check_sample(const struct sample *sample, int64_t largest, grd_dtype dtype, bool backward)
{
    static const int threads[] = {1, 2, 3, 8};
    const grd_scope scope = grd_scope_open();
    const struct setting s = {dtype, dtype, CONTIGUOUS, GRD_CPU, backward};
    uint64_t first = 0;
    bool works = true;
    for (int i = 0; i < (int)(sizeof threads / sizeof *threads) && works; i++) {
        const grd_scope round = grd_scope_open();
        struct call call;
        uint64_t hash = 1;
        grd_set_num_threads(threads[i]);
        make_call(&call, &sample->test, &s);
        grd_manual_seed(3);
        make_call(&call, &sample->test, &s); /* made again for each run, because some operators write to their arguments */
        works = backward ? run_backward(&call, &hash) : run_forward(&call, &hash);
        if (works && i > 0 && hash != first)
            fail_msg("%s differs with %d threads (largest tensor: %lld elements) in %s", backward ? "the gradient" : "the result",
                     threads[i], (long long)largest, place(&sample->test, &s));
        first = i == 0 ? hash : first;
        grd_scope_close(round);
    }
    grd_error_clear();
    grd_scope_close(scope);
    return works;
}

static void check_case(const struct test_case *test, grd_dtype dtype)
{
    static const int64_t wanted[] = {WANTED, WANTED / 40};
    static struct sample sample;
    for (int k = 0; k < 2; k++)
        for (int scaling = ALL; scaling < SCALINGS; scaling++) {
            const int64_t factor = best_factor(&sample, test, (enum scaling)scaling, wanted[k]);
            const int64_t largest = scale_sample(&sample, test, (enum scaling)scaling, factor);
            if (factor == 1 || !check_sample(&sample, largest, dtype, false))
                continue;
            check_sample(&sample, largest, dtype, true);
            split_calls += largest > WANTED / 2;
            return;
        }
}

static void test_operator(void **state)
{
    const struct test_cases *cases = *state;
    grd_memory_set_limit(LIMIT);
    for (int i = 0; i < cases->n; i++)
        if (!cases->cases[i].skip || strncmp(cases->cases[i].skip, "the elements are not set", 24) != 0)
            check_case(&cases->cases[i], cases->cases[i].complex_only ? GRD_COMPLEX64 : GRD_FLOAT32);
    grd_memory_set_limit(0);
}

int main(int argc, char **argv)
{
    const int failed = run_matrix(test_operator, argc, argv);
    printf("%d calls were large enough to be split\n", split_calls);
    return failed || (argc == 1 && split_calls < 200);
}
