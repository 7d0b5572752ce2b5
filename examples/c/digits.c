/* Trains a two-layer network to read handwritten digits, with AdamW and minibatches.
 *
 *     digits [examples/data/digits.csv]
 *
 * The program shows how to use the library from C: tensors made from memory, scopes that own temporaries, operators with named options, a
 * backward pass, an optimizer, and a single check for errors after many calls. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <gradus/gradus.h>

#include "../data/digits.h"

enum { HIDDEN = 128, BATCH = 32, EPOCHS = 40, TEST = IMAGES / 3, SHOWN = 3 };

/* ---- Data ---------------------------------------------------------------------------------------------------------- */

struct data {
    grd_tensor *images; /* [IMAGES, PIXELS], values from 0 to 1 */
    grd_tensor *labels; /* [IMAGES], int64: the digit in each image */
};

static bool load(const char *path, struct data *ret_data)
{
    static float images[IMAGES][PIXELS];
    static int64_t labels[IMAGES];
    if (!read_digits(path, images, labels))
        return false;
    ret_data->images = grd_keep(grd_from_data(images, grd_dims(IMAGES, PIXELS), GRD_FLOAT32));
    ret_data->labels = grd_keep(grd_from_data(labels, grd_dims(IMAGES), GRD_INT64));
    return true;
}

/* ---- Network --------------------------------------------------------------------------------------------------------- */

enum { W1, B1, W2, B2, PARAMETERS };

struct network {
    grd_tensor *parameter[PARAMETERS];
    grd_optimizer *optimizer;
};

static grd_tensor *uniform_parameter(grd_dims sizes, int inputs)
{
    const double bound = 1 / sqrt(inputs);
    grd_tensor *values = grd_uniform_(grd_empty(sizes), .from = -bound, .to = bound);
    return grd_set_requires_grad(grd_keep(values), true);
}

static void network_init(struct network *net)
{
    net->parameter[W1] = uniform_parameter(grd_dims(HIDDEN, PIXELS), PIXELS);
    net->parameter[B1] = uniform_parameter(grd_dims(HIDDEN), PIXELS);
    net->parameter[W2] = uniform_parameter(grd_dims(DIGITS, HIDDEN), HIDDEN);
    net->parameter[B2] = uniform_parameter(grd_dims(DIGITS), HIDDEN);
    net->optimizer = grd_adamw_new(grd_tensors_from(net->parameter, PARAMETERS), 3e-3);
}

static void network_done(struct network *net)
{
    grd_optimizer_drop(net->optimizer);
    for (int i = 0; i < PARAMETERS; i++)
        grd_drop(net->parameter[i]);
}

/* Returns the scores [N, DIGITS] of the digits for images [N, PIXELS]. */
static grd_tensor *network_forward(const struct network *net, grd_tensor *images)
{
    grd_tensor *hidden = grd_relu(grd_linear(images, net->parameter[W1], .bias = net->parameter[B1]));
    return grd_linear(hidden, net->parameter[W2], .bias = net->parameter[B2]);
}

/* Trains on a minibatch and returns its loss. `chosen` holds the indices of the images. */
static double train_step(struct network *net, const struct data *data, grd_tensor *chosen)
{
    grd_scope scope = grd_scope_open();
    grd_tensor *images = grd_index_select(data->images, 0, chosen);
    grd_tensor *labels = grd_index_select(data->labels, 0, chosen);
    grd_tensor *loss = grd_cross_entropy(network_forward(net, images), labels);
    grd_backward(loss);
    grd_optimizer_step(net->optimizer);
    grd_optimizer_zero_grad(net->optimizer);
    const double value = grd_item_double(loss);
    grd_scope_close(scope);
    return value;
}

/* ---- Reporting ----------------------------------------------------------------------------------------------------------- */

static double seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void show_progress(int epoch, double loss, double rate)
{
    printf("\repoch %2d/%d  loss %.4f  %7.0f images/s%s", epoch, EPOCHS, loss, rate, epoch < EPOCHS ? "" : "\n");
    fflush(stdout);
}

static void draw(grd_tensor *image)
{
    float pixels[PIXELS];
    grd_to_memory(image, pixels, GRD_FLOAT32);
    for (int row = 0; row < 8; row++) {
        printf("    ");
        for (int column = 0; column < 8; column++) {
            const char shade = " .:-=+*#@"[(int)(pixels[8 * row + column] * 8)];
            printf("%c%c", shade, shade);
        }
        printf("\n");
    }
}

/* Prints a few misread digits and returns the accuracy. `chosen` holds the indices of the images to read. */
static double evaluate(const struct network *net, const struct data *data, grd_tensor *chosen)
{
    grd_scope scope = grd_scope_open();
    const bool recording = grd_set_grad_enabled(false);
    grd_tensor *images = grd_index_select(data->images, 0, chosen);
    grd_tensor *labels = grd_index_select(data->labels, 0, chosen);
    grd_tensor *read = grd_argmax(network_forward(net, images), .dim = 1);
    grd_tensor *wrong = grd_flatten(grd_nonzero(grd_ne(read, labels)));
    for (int64_t i = 0; i < SHOWN && i < grd_numel(wrong); i++) {
        const int64_t which = grd_item_int64(grd_select(wrong, 0, i));
        printf("\nread as %lld, is %lld:\n", (long long)grd_item_int64(grd_select(read, 0, which)),
               (long long)grd_item_int64(grd_select(labels, 0, which)));
        draw(grd_select(images, 0, which));
    }
    const double right = 1 - (double)grd_numel(wrong) / (double)grd_numel(chosen);
    grd_set_grad_enabled(recording);
    grd_scope_close(scope);
    return right;
}

int main(int argc, char **argv)
{
    struct data data;
    struct network net;
    if (!load(argc > 1 ? argv[1] : "examples/data/digits.csv", &data))
        return 1;

    grd_manual_seed(0);
    grd_tensor *order = grd_randperm(IMAGES);
    grd_tensor *test = grd_keep(grd_narrow(order, 0, 0, TEST));
    grd_tensor *train = grd_keep(grd_narrow(order, 0, TEST, IMAGES - TEST));
    network_init(&net);
    printf("%d images to learn from, %d to be tested on; kernels: %s, products: %s\n", IMAGES - TEST, TEST, grd_isa(), grd_blas());

    for (int epoch = 1; epoch <= EPOCHS && grd_ok(); epoch++) {
        grd_scope scope = grd_scope_open();
        grd_tensor *shuffled = grd_index_select(train, 0, grd_randperm(IMAGES - TEST));
        const double start = seconds();
        double loss = 0;
        int batches = 0;
        for (int64_t i = 0; i + BATCH <= IMAGES - TEST; i += BATCH, batches++)
            loss += train_step(&net, &data, grd_narrow(shuffled, 0, i, BATCH));
        show_progress(epoch, loss / batches, batches * BATCH / (seconds() - start));
        grd_scope_close(scope);
    }
    const double accuracy = evaluate(&net, &data, test);

    network_done(&net);
    grd_drop(test);
    grd_drop(train);
    grd_drop(data.images);
    grd_drop(data.labels);
    if (!grd_ok()) {
        fprintf(stderr, "error: %s\n", grd_error_message());
        return 1;
    }
    printf("\ntest accuracy: %.4f\n", accuracy);
    return 0;
}
