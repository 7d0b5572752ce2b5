/* Trains the digits network on the CPU and on the devices of plug-ins, and prints the losses of all devices side by side. The losses must be
 * equal to the last bit.
 *
 *     digits examples/data/digits.csv vault.so [safe.so ...]
 *
 * The name of a plug-in's file is the name of its device. The exit status is 1 if a loss differs. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gradus/gradus.h>

enum { IMAGES = 1797, PIXELS = 64, DIGITS = 10, HIDDEN = 128, BATCH = 32, EPOCHS = 6, TRAINED = 1200, MAX_DEVICES = 8 };
enum { W1, B1, W2, B2, PARAMETERS };

/* ---- Data, copied to the device ----------------------------------------------------------------------------------------------- */

static float pixels[IMAGES][PIXELS];
static int64_t digits[IMAGES];

static int read_digits(const char *path)
{
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        perror(path);
        return -1;
    }
    int found = 0, value = 0;
    for (int i = 0; i < IMAGES; i++) {
        for (int k = 0; k < PIXELS; k++) {
            found += fscanf(file, "%d,", &value);
            pixels[i][k] = (float)value / 16;
        }
        found += fscanf(file, "%d", &value);
        digits[i] = value;
    }
    fclose(file);
    if (found != IMAGES * (PIXELS + 1))
        fprintf(stderr, "%s: not %d lines of %d pixels and a digit\n", path, IMAGES, PIXELS);
    return found == IMAGES * (PIXELS + 1) ? 0 : -1;
}

/* ---- Training, on any device ---------------------------------------------------------------------------------------------------- */

struct network {
    grd_tensor *parameter[PARAMETERS], *mean[PARAMETERS], *square[PARAMETERS]; /* mean and square are AdamW's running averages */
    int steps;
};

static void network_init(struct network *net, grd_device device)
{
    const grd_dims sizes[] = {grd_dims(HIDDEN, PIXELS), grd_dims(HIDDEN), grd_dims(DIGITS, HIDDEN), grd_dims(DIGITS)};
    const double bounds[] = {1 / sqrt(PIXELS), 1 / sqrt(PIXELS), 1 / sqrt(HIDDEN), 1 / sqrt(HIDDEN)};
    for (int i = 0; i < PARAMETERS; i++) {
        grd_tensor *empty = grd_keep(grd_empty(sizes[i], .device = device));
        grd_uniform_(empty, .from = -bounds[i], .to = bounds[i]);
        net->parameter[i] = grd_set_requires_grad(empty, true);
        net->mean[i] = grd_keep(grd_zeros_like(empty));
        net->square[i] = grd_keep(grd_zeros_like(empty));
    }
    net->steps = 0;
}

static void network_done(struct network *net)
{
    for (int i = 0; i < PARAMETERS; i++) {
        grd_drop(net->parameter[i]);
        grd_drop(net->mean[i]);
        grd_drop(net->square[i]);
    }
}

static grd_tensor *network_forward(const struct network *net, grd_tensor *images)
{
    grd_tensor *hidden = grd_relu(grd_linear(images, net->parameter[W1], .bias = net->parameter[B1]));
    return grd_linear(hidden, net->parameter[W2], .bias = net->parameter[B2]);
}

static void adamw_step(struct network *net)
{
    const double lr = 3e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, decay = 0.01;
    const bool recording = grd_set_grad_enabled(false);
    net->steps++;
    const double correction1 = 1 - pow(beta1, net->steps), correction2 = 1 - pow(beta2, net->steps);
    for (int i = 0; i < PARAMETERS; i++) {
        grd_tensor *p = net->parameter[i], *m = net->mean[i], *v = net->square[i], *g = grd_grad_of(p);
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

static double train_step(struct network *net, grd_tensor *images, grd_tensor *labels)
{
    const grd_scope scope = grd_scope_open();
    grd_tensor *loss = grd_cross_entropy(network_forward(net, images), labels);
    grd_backward(loss);
    adamw_step(net);
    const double value = grd_item_double(loss);
    grd_scope_close(scope);
    return value;
}

/* Returns the accuracy on the images that were not used for training: all but the first TRAINED images. */
static double accuracy(const struct network *net, grd_tensor *images, grd_tensor *labels)
{
    const bool recording = grd_set_grad_enabled(false);
    grd_tensor *read = grd_argmax(network_forward(net, grd_slice(images, .start = TRAINED)), .dim = 1);
    grd_tensor *right = grd_eq(read, grd_slice(labels, .start = TRAINED));
    grd_set_grad_enabled(recording);
    return grd_item_double(grd_sum(right)) / (IMAGES - TRAINED);
}

/* Trains on a device. Writes the mean loss of each epoch to ret_losses and the final accuracy to *ret_accuracy. Returns false on failure. */
static bool train(grd_device device, double *ret_losses, double *ret_accuracy)
{
    const grd_scope scope = grd_scope_open();
    struct network net;
    grd_manual_seed(0);
    grd_tensor *images = grd_to(grd_from_data(pixels, grd_dims(IMAGES, PIXELS), GRD_FLOAT32), .device = device);
    grd_tensor *labels = grd_to(grd_from_data(digits, grd_dims(IMAGES), GRD_INT64), .device = device);
    network_init(&net, device);
    for (int epoch = 0; epoch < EPOCHS && grd_ok(); epoch++) {
        const grd_scope inner = grd_scope_open();
        grd_tensor *order = grd_randperm(TRAINED, .device = device);
        int batches = 0;
        ret_losses[epoch] = 0;
        for (int64_t i = 0; i + BATCH <= TRAINED; i += BATCH, batches++) {
            grd_tensor *chosen = grd_narrow(order, 0, i, BATCH);
            ret_losses[epoch] += train_step(&net, grd_index_select(images, 0, chosen), grd_index_select(labels, 0, chosen));
        }
        ret_losses[epoch] /= batches;
        grd_scope_close(inner);
    }
    *ret_accuracy = accuracy(&net, images, labels);
    network_done(&net);
    grd_scope_close(scope);
    return grd_ok();
}

/* ---- Comparison of the devices ----------------------------------------------------------------------------------------------------- */

/* Loads a plug-in and returns its device, which has the name of the file: "vault" for "build/vault.so". */
static grd_device load_device(const char *path)
{
    char name[64];
    const char *file = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    snprintf(name, sizeof name, "%.*s", (int)strcspn(file, "."), file);
    grd_load_library(path);
    return grd_device_find(name);
}

static int fail(void)
{
    fprintf(stderr, "%s: %s\n", grd_error_class(grd_error_get()), grd_error_message());
    return 1;
}

int main(int argc, char **argv)
{
    double losses[MAX_DEVICES][EPOCHS], read[MAX_DEVICES];
    grd_device devices[MAX_DEVICES] = {GRD_CPU};
    bool same = true;
    const int n = argc - 1;
    if (n < 2 || n > MAX_DEVICES) {
        fprintf(stderr, "usage: digits DATA PLUG-IN …, at most %d plug-ins\n", MAX_DEVICES - 1);
        return 1;
    }
    if (read_digits(argv[1]) < 0)
        return 1;
    for (int i = 1; i < n; i++)
        devices[i] = load_device(argv[i + 1]);
    for (int i = 0; i < n; i++)
        if (!train(devices[i], losses[i], &read[i]))
            return fail();

    printf("epoch");
    for (int i = 0; i < n; i++)
        printf("  %20s", grd_device_name(devices[i]));
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        printf("\n%5d", epoch + 1);
        for (int i = 0; i < n; i++) {
            printf("  %20.17f", losses[i][epoch]);
            same &= losses[i][epoch] == losses[0][epoch];
        }
    }
    printf("\nread right");
    for (int i = 0; i < n; i++)
        printf("  %.4f", read[i]);
    printf("\nlosses are %s\n", same ? "the same" : "NOT the same");
    return same ? 0 : 1;
}
