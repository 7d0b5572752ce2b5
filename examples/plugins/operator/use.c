/* Loads the plug-in named on the command line, calls its operators, differentiates them, and checks the derivatives against finite differences. */
#include <stdio.h>

#include <gradus/gradus.h>

/* Returns the result of the operator called `name` for its only argument `x`, or grd_failed after an error. */
static grd_tensor *call(const char *name, grd_tensor *x)
{
    const grd_op *op = grd_op_find(name);
    const grd_value arg = {.kind = GRD_KIND_TENSOR, .v.tensor = x};
    grd_value result;
    return grd_call(op, GRD_FUNCTIONAL, &arg, 1, NULL, &result) ? result.v.tensor : grd_failed;
}

/* The function that grd_gradcheck checks. It calls the operator called `name` with one input. grd_gradcheck passes its context as `name`. */
static grd_tensors checked(grd_tensor *const *inputs, int n, void *name)
{
    static grd_tensor *output;
    (void)n;
    output = call(name, inputs[0]);
    return grd_tensors_from(&output, 1);
}

static void show(const char *name)
{
    const grd_op *op = grd_op_find(name);
    if (op == NULL) {
        grd_error_set(GRD_ERROR_RUNTIME, "the plug-in has no operator %s", name);
        return;
    }
    printf("%s\n", grd_op_schema(op));
    grd_tensor *x = grd_set_requires_grad(grd_from_data((const double[]){0, 1, 3, 1, -2, 2}, grd_dims(3, 2), GRD_FLOAT64), true);
    grd_tensor *y = call(name, x);
    grd_print(y);
    grd_backward(grd_sum(grd_mul(y, y)));
    grd_print(grd_grad_of(x));
    char context[64];
    snprintf(context, sizeof context, "%s", name);
    printf("gradcheck: %s\n", grd_gradcheck(checked, grd_tensors(x), context, NULL) ? "passed" : "failed");
    printf("gradgradcheck: %s\n", grd_gradgradcheck(checked, grd_tensors(x), context, NULL) ? "passed" : "failed");
}

int main(int argc, char **argv)
{
    const grd_scope scope = grd_scope_open();
    if (argc == 2 && grd_load_library(argv[1])) {
        show("extra::cube");
        show("extra::square_distances");
    }
    if (argc != 2)
        fprintf(stderr, "usage: use extra.so\n");
    const bool ok = argc == 2 && grd_ok();
    if (!grd_ok())
        fprintf(stderr, "%s: %s\n", grd_error_class(grd_error_get()), grd_error_message());
    grd_scope_close(scope);
    return ok ? 0 : 1;
}
