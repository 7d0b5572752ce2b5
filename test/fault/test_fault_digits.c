/* Trains the network of examples/c/digits.c, to which dropout is added, with 1, 2, 3 and 8 threads. The weights must be the same bit for bit. With
 * small batches, as in the example, few loops are split among threads. With one large batch almost all loops are split. */
#include <stdio.h>
#include <string.h>

#include "../../examples/data/digits.h"
#include "../unit/support.h"

enum { PARAMETERS = 4 };

static float pixels[IMAGES][PIXELS];
static int64_t labels[IMAGES];

static int load(void **state)
{
    (void)state;
    return read_digits(GRADUS_SOURCE_DIR "/examples/data/digits.csv", pixels, labels) ? 0 : 1;
}

struct size {
    int64_t hidden, batch;
    int epochs;
};

static grd_tensor *parameter(grd_dims sizes)
{
    return grd_set_requires_grad(grd_uniform_(grd_empty(sizes), .from = -0.1, .to = 0.1), true);
}

static void train_step(grd_tensor *const *net, grd_tensor *images, grd_tensor *wanted)
{
    const grd_scope scope = grd_scope_open();
    grd_tensor *hidden = grd_dropout(grd_relu(grd_linear(images, net[0], .bias = net[1])), .p = 0.25);
    grd_backward(grd_cross_entropy(grd_linear(hidden, net[2], .bias = net[3]), wanted));
    const bool recording = grd_set_grad_enabled(false);
    for (int i = 0; i < PARAMETERS && grd_ok(); i++) {
        grd_sub_(net[i], grd_grad_of(net[i]), .alpha = grd_float(0.2));
        grd_set_grad(net[i], NULL);
    }
    grd_set_grad_enabled(recording);
    grd_scope_close(scope);
}

/* Trains with the given number of threads and returns all weights as one vector. */
static grd_tensor *train(int threads, const struct size *size)
{
    grd_set_num_threads(threads);
    grd_manual_seed(0);
    grd_tensor *images = grd_from_data(pixels, grd_dims(IMAGES, PIXELS), GRD_FLOAT32),
               *wanted = grd_from_data(labels, grd_dims(IMAGES), GRD_INT64);
    grd_tensor *const net[PARAMETERS] = {parameter(grd_dims(size->hidden, PIXELS)), parameter(grd_dims(size->hidden)),
                                         parameter(grd_dims(DIGITS, size->hidden)), parameter(grd_dims(DIGITS))};
    for (int epoch = 0; epoch < size->epochs; epoch++) {
        grd_tensor *order = grd_randperm(IMAGES);
        for (int64_t i = 0; i + size->batch <= IMAGES; i += size->batch) {
            grd_tensor *chosen = grd_narrow(order, 0, i, size->batch);
            train_step(net, grd_index_select(images, 0, chosen), grd_index_select(wanted, 0, chosen));
        }
    }
    return grd_cat(grd_tensors(grd_flatten(net[0]), net[1], grd_flatten(net[2]), net[3]));
}

static void check_threads(const struct size *size)
{
    static const int counts[] = {2, 3, 8};
    grd_tensor *one = grd_detach(train(1, size));
    const size_t nbytes = (size_t)grd_numel(one) * sizeof(float);
    assert_string_equal(grd_error_message(), "");
    for (int i = 0; i < GRD_LENGTH(counts); i++) {
        const grd_scope scope = grd_scope_open();
        grd_tensor *many = train(counts[i], size);
        assert_string_equal(grd_error_message(), "");
        assert_memory_equal(grd_data(many), grd_data(one), nbytes);
        grd_scope_close(scope);
    }
    /* The compared weights must not all be zero or NaN, so the sum of their absolute values must be of moderate size. */
    const double size_of_weights = grd_item_double(grd_sum(grd_abs(one)));
    assert_true(size_of_weights > 1 && size_of_weights < 1e5);
}

static void test_training_with_small_batches_does_not_depend_on_threads(void **state)
{
    (void)state;
    check_threads(&(struct size){.hidden = 128, .batch = 32, .epochs = 1});
}

static void test_training_with_a_large_batch_does_not_depend_on_threads(void **state)
{
    (void)state;
    check_threads(&(struct size){.hidden = 256, .batch = IMAGES, .epochs = 4});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(test_training_with_small_batches_does_not_depend_on_threads),
        IN_SCOPE(test_training_with_a_large_batch_does_not_depend_on_threads),
    };
    return cmocka_run_group_tests(tests, load, NULL);
}
