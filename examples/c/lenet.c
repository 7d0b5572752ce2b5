/* Trains a convolutional network to read handwritten digits, and saves it.
 *
 *     lenet [examples/data/digits.csv [lenet.safetensors]]
 *
 * The parameters have the same names as in PyTorch, so that the file can be loaded in Python into
 *
 *     Sequential(Conv2d(1, 16, 3, padding=1), ReLU(), Conv2d(16, 32, 3, padding=1), ReLU(), MaxPool2d(2), Conv2d(32, 64, 3, padding=1), ReLU(),
 *                MaxPool2d(2), Flatten(), Linear(256, 64), ReLU(), Linear(64, 10)) */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <gradus/gradus.h>

#include "../data/digits.h"

enum { SIDE = 8, BATCH = 32, EPOCHS = 20, TEST = IMAGES / 3 };

/* ---- Data ---------------------------------------------------------------------------------------------------------- */

struct data {
    grd_tensor *images; /* [IMAGES, 1, SIDE, SIDE], values from 0 to 1 */
    grd_tensor *labels; /* [IMAGES], int64: the digit in each image */
};

static bool load(const char *path, struct data *ret_data)
{
    static float images[IMAGES][PIXELS];
    static int64_t labels[IMAGES];
    if (!read_digits(path, images, labels))
        return false;
    ret_data->images = grd_keep(grd_from_data(images, grd_dims(IMAGES, 1, SIDE, SIDE), GRD_FLOAT32));
    ret_data->labels = grd_keep(grd_from_data(labels, grd_dims(IMAGES), GRD_INT64));
    return true;
}

/* ---- Network --------------------------------------------------------------------------------------------------------- */

enum { LAYERS = 5, PARAMETERS = 2 * LAYERS };

struct network {
    grd_tensor *parameter[PARAMETERS]; /* weight and bias of the first layer, then those of the second layer, and so on */
    grd_optimizer *optimizer;
};

/* The names of each layer's weight and bias in the Sequential at the top of this file, and the layer's numbers of outputs and inputs (channels or
 * features). `kernel` is the height and width of a convolution's kernel, or 0 for a linear layer. */
static const struct {
    const char *weight, *bias;
    int64_t outputs, inputs, kernel;
} layers[LAYERS] = {{"0.weight", "0.bias", 16, 1, 3},
                    {"2.weight", "2.bias", 32, 16, 3},
                    {"5.weight", "5.bias", 64, 32, 3},
                    {"9.weight", "9.bias", 64, 256, 0},
                    {"11.weight", "11.bias", DIGITS, 64, 0}};

static grd_tensor *uniform_parameter(grd_dims sizes, int64_t inputs)
{
    const double bound = 1 / sqrt((double)inputs);
    return grd_set_requires_grad(grd_keep(grd_uniform_(grd_empty(sizes), .from = -bound, .to = bound)), true);
}

static void network_init(struct network *net)
{
    for (int i = 0; i < LAYERS; i++) {
        const int64_t n = layers[i].outputs, m = layers[i].inputs, k = layers[i].kernel;
        const int64_t inputs = k > 0 ? m * k * k : m;
        net->parameter[2 * i] = uniform_parameter(k > 0 ? grd_dims(n, m, k, k) : grd_dims(n, m), inputs);
        net->parameter[2 * i + 1] = uniform_parameter(grd_dims(n), inputs);
    }
    net->optimizer = grd_adamw_new(grd_tensors_from(net->parameter, PARAMETERS), 2e-3);
}

static void network_done(struct network *net)
{
    grd_optimizer_drop(net->optimizer);
    for (int i = 0; i < PARAMETERS; i++)
        grd_drop(net->parameter[i]);
}

static grd_tensor *convolved(const struct network *net, int layer, grd_tensor *x)
{
    return grd_relu(grd_conv2d(x, net->parameter[2 * layer], .bias = net->parameter[2 * layer + 1], .padding = grd_dims(1, 1)));
}

static grd_tensor *linear(const struct network *net, int layer, grd_tensor *x)
{
    return grd_linear(x, net->parameter[2 * layer], .bias = net->parameter[2 * layer + 1]);
}

/* Returns the scores [N, DIGITS] of the digits for images [N, 1, SIDE, SIDE]. */
static grd_tensor *network_forward(const struct network *net, grd_tensor *images)
{
    grd_tensor *x = convolved(net, 1, convolved(net, 0, images));
    x = convolved(net, 2, grd_max_pool2d(x, grd_dims(2)));
    x = grd_flatten(grd_max_pool2d(x, grd_dims(2)), .start_dim = 1);
    return linear(net, 4, grd_relu(linear(net, 3, x)));
}

static bool network_save(const struct network *net, const char *path)
{
    struct grd_named_tensor named[PARAMETERS];
    for (int i = 0; i < PARAMETERS; i++)
        named[i] = (struct grd_named_tensor){i % 2 == 0 ? layers[i / 2].weight : layers[i / 2].bias, net->parameter[i]};
    return grd_save(path, (grd_named_tensors){named, PARAMETERS});
}

/* ---- Training -------------------------------------------------------------------------------------------------------- */

/* Trains on a minibatch and returns its loss. `chosen` holds the indices of the images. */
static double train_step(struct network *net, const struct data *data, grd_tensor *chosen)
{
    const grd_scope scope = grd_scope_open();
    grd_tensor *images = grd_index_select(data->images, 0, chosen), *labels = grd_index_select(data->labels, 0, chosen);
    grd_tensor *loss = grd_cross_entropy(network_forward(net, images), labels);
    grd_backward(loss);
    grd_optimizer_step(net->optimizer);
    grd_optimizer_zero_grad(net->optimizer);
    const double value = grd_item_double(loss);
    grd_scope_close(scope);
    return value;
}

/* Returns the fraction of digits that the network recognizes in the images with the indices in `chosen`. */
static double accuracy(const struct network *net, const struct data *data, grd_tensor *chosen)
{
    const grd_scope scope = grd_scope_open();
    const bool recording = grd_set_grad_enabled(false);
    grd_tensor *read = grd_argmax(network_forward(net, grd_index_select(data->images, 0, chosen)), .dim = 1);
    grd_tensor *right = grd_eq(read, grd_index_select(data->labels, 0, chosen));
    const double share = grd_item_double(grd_mean(right, .dtype = GRD_FLOAT64));
    grd_set_grad_enabled(recording);
    grd_scope_close(scope);
    return share;
}

static double seconds(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void train_epoch(struct network *net, const struct data *data, grd_tensor *train, int epoch)
{
    const grd_scope scope = grd_scope_open();
    const int64_t n = grd_numel(train);
    grd_tensor *shuffled = grd_index_select(train, 0, grd_randperm(n));
    const double start = seconds();
    double loss = 0;
    int batches = 0;
    for (int64_t i = 0; i + BATCH <= n; i += BATCH, batches++)
        loss += train_step(net, data, grd_narrow(shuffled, 0, i, BATCH));
    printf("\repoch %2d/%d  loss %.4f  %7.0f images/s%s", epoch, EPOCHS, loss / batches, batches * BATCH / (seconds() - start),
           epoch < EPOCHS ? "" : "\n");
    fflush(stdout);
    grd_scope_close(scope);
}

int main(int argc, char **argv)
{
    struct data data;
    struct network net;
    const char *path = argc > 2 ? argv[2] : "lenet.safetensors";
    if (!load(argc > 1 ? argv[1] : "examples/data/digits.csv", &data))
        return 1;

    grd_manual_seed(0);
    grd_tensor *order = grd_randperm(IMAGES);
    grd_tensor *test = grd_keep(grd_narrow(order, 0, 0, TEST)), *train = grd_keep(grd_narrow(order, 0, TEST, IMAGES - TEST));
    network_init(&net);
    printf("%d images to learn from, %d to be tested on; kernels: %s, products: %s\n", IMAGES - TEST, TEST, grd_isa(), grd_blas());
    for (int epoch = 1; epoch <= EPOCHS && grd_ok(); epoch++)
        train_epoch(&net, &data, train, epoch);
    const double right = accuracy(&net, &data, test);
    network_save(&net, path);

    network_done(&net);
    grd_drop(test);
    grd_drop(train);
    grd_drop(data.images);
    grd_drop(data.labels);
    if (!grd_ok()) {
        fprintf(stderr, "error: %s\n", grd_error_message());
        return 1;
    }
    printf("saved as %s\ntest accuracy: %.4f\n", path, right);
    return 0;
}
