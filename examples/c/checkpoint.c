/* Trains a model in a way that can be interrupted. The program fits a line to points, and after every fifty steps saves its parameters and the
 * number of steps done. When it is started again, it continues from the saved file. The file is replaced atomically, so that a kill at any moment
 * leaves a file that can be loaded.
 *
 *     checkpoint line.safetensors 100 && checkpoint line.safetensors 300
 *
 * Python's safetensors package and gradus.safetensors can read the file. */
#include <stdio.h>
#include <stdlib.h>

#include <gradus/gradus.h>

enum { BETWEEN_SAVES = 50 };

/* Returns a parameter that the caller owns, so that the parameter outlives the scopes of the training steps. */
static grd_tensor *parameter(double value)
{
    return grd_keep(grd_set_requires_grad(grd_from_data(&(float){(float)value}, grd_dims(1), GRD_FLOAT32), true));
}

/* Returns the mean of (weight * x + bias - y)^2 over eleven points of the line y = 2 x + 1. */
static grd_tensor *loss_of(grd_tensor *weight, grd_tensor *bias)
{
    float x[11], y[11];
    for (int i = 0; i < 11; i++) {
        x[i] = (float)i / 10;
        y[i] = 2 * x[i] + 1;
    }
    grd_tensor *inputs = grd_from_data(x, grd_dims(11), GRD_FLOAT32), *targets = grd_from_data(y, grd_dims(11), GRD_FLOAT32);
    return grd_mean(grd_square(grd_sub(grd_add(grd_mul(weight, inputs), bias), targets)));
}

static bool file_exists(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file != NULL)
        fclose(file);
    return file != NULL;
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s FILE STEPS\n", argv[0]);
        return 2;
    }
    grd_tensor *weight = parameter(0), *bias = parameter(0), *done = grd_keep(grd_from_data(&(int64_t){0}, grd_dims(1), GRD_INT64));
    const grd_named_tensors model = grd_named_tensors({"weight", weight}, {"bias", bias}, {"done", done});
    grd_optimizer *optimizer = grd_sgd_new(grd_tensors(weight, bias), 0.5);
    if (file_exists(argv[1]) && grd_load_into(argv[1], model))
        printf("goes on after step %lld\n", (long long)grd_item_int64(done));

    while (grd_ok() && grd_item_int64(done) < atoll(argv[2])) {
        const grd_scope scope = grd_scope_open();
        grd_backward(loss_of(weight, bias));
        grd_optimizer_step(optimizer);
        grd_optimizer_zero_grad(optimizer);
        grd_add_(done, grd_number(grd_int(1)));
        if (grd_item_int64(done) % BETWEEN_SAVES == 0)
            grd_save(argv[1], model);
        grd_scope_close(scope);
    }
    printf("y = %.2f x + %.2f\n", grd_item_double(weight), grd_item_double(bias));

    const bool ok = grd_ok();
    if (!ok)
        fprintf(stderr, "%s\n", grd_error_message());
    grd_optimizer_drop(optimizer);
    grd_drop(weight);
    grd_drop(bias);
    grd_drop(done);
    return ok ? 0 : 1;
}
