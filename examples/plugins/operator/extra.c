/* A plug-in that defines two operators.
 *
 *     extra::cube(Tensor self, *, Scalar scale=1) -> Tensor     scale * self^3; its gradient is a formula
 *     extra::square_distances(Tensor points) -> Tensor          the [n, n] squared distances of n points [n, d]; its gradient is a function
 *
 * The second operator has loops for float32 and float64. Its kernel for the meta device returns a tensor with the shape of the result without
 * computing any element. */
#include <gradus/gradus.h>

static grd_value tensor_value(grd_tensor *t)
{
    grd_value value = {.kind = GRD_KIND_TENSOR, .v.tensor = t};
    return value;
}

/* ---- cube ----------------------------------------------------------------------------------------------------------------------- */

/* The kernel of cube. It consists of calls of the library's operators, so it runs on every device. */
static void cube(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    grd_tensor *x = args[0].v.tensor;
    ret_results[0] = tensor_value(grd_mul(grd_mul(x, grd_mul(x, x)), grd_number(args[1].v.scalar)));
}

/* ---- square_distances ---------------------------------------------------------------------------------------------------------- */

/* Computes the squared distances of `n` points, result[i, j] = sum over k of (x[i, k] - x[j, k])^2, where k is less than `d`. */
static void distances_float(int64_t n, int64_t d, const float *x, float *result)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = 0;
            for (int64_t k = 0; k < d; k++)
                sum += (x[i * d + k] - x[j * d + k]) * (x[i * d + k] - x[j * d + k]);
            result[i * n + j] = sum;
        }
}

static void distances_double(int64_t n, int64_t d, const double *x, double *result)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < d; k++)
                sum += (x[i * d + k] - x[j * d + k]) * (x[i * d + k] - x[j * d + k]);
            result[i * n + j] = sum;
        }
}

/* Checks the argument of square_distances. Returns an uninitialised [n, n] tensor for the result, or grd_failed with an error set. */
static grd_tensor *new_distances(grd_tensor *points)
{
    const grd_dtype dtype = grd_tensor_dtype(points);
    if (grd_ndim(points) != 2)
        grd_error_set(GRD_ERROR_RUNTIME, "points must be a matrix [n, d], not a tensor of %d dimensions", (int)grd_ndim(points));
    else if (dtype != GRD_FLOAT32 && dtype != GRD_FLOAT64)
        grd_error_set(GRD_ERROR_TYPE, "points must be float32 or float64, not %s", grd_dtype_name(dtype));
    if (!grd_ok())
        return grd_failed;
    const int64_t n = grd_size(points, 0);
    return grd_empty(grd_dims(n, n), .dtype = dtype, .device = grd_tensor_device(points));
}

static void distances_cpu(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    grd_tensor *points = grd_contiguous(args[0].v.tensor), *result = new_distances(points);
    if (!grd_ok())
        return;
    const int64_t n = grd_size(points, 0), d = grd_size(points, 1);
    if (grd_tensor_dtype(points) == GRD_FLOAT32)
        distances_float(n, d, grd_data(points), grd_data(result));
    else
        distances_double(n, d, grd_data(points), grd_data(result));
    ret_results[0] = tensor_value(result);
}

static void distances_meta(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    ret_results[0] = tensor_value(new_distances(args[0].v.tensor));
}

/* Computes the gradient of square_distances, dx[i] = 2 * sum over j of s[i, j] * (x[i] - x[j]), where s = grad + grad^T. The function only calls
 * operators, so the gradient can itself be differentiated. */
static void distances_gradient(const grd_gradient *gradient, grd_value *ret_grads)
{
    grd_tensor *x = gradient->args[0].v.tensor, *grad = gradient->grads.data[0];
    grd_tensor *s = grd_add(grad, grd_t(grad));
    grd_tensor *rows = grd_sum(s, .dim = grd_dims(1), .keepdim = true);
    ret_grads[0] = tensor_value(grd_mul(grd_sub(grd_mul(rows, x), grd_mm(s, x)), grd_number(grd_int(2))));
}

/* ---- The plug-in ------------------------------------------------------------------------------------------------------------------ */

static bool load(void)
{
    grd_define_operator(&(grd_definition){
        .schema = "extra::cube(Tensor self, *, Scalar scale=1) -> Tensor",
        .gradients = {{"self", "grad * 3 * scale * self * self"}},
        .kernel = cube,
    });
    grd_define_operator(&(grd_definition){
        .schema = "extra::square_distances(Tensor points) -> Tensor",
        .gradient = distances_gradient,
        .saves = "points",
    });
    grd_register_kernel("extra::square_distances", GRD_KEY_CPU, distances_cpu, NULL);
    grd_register_kernel("extra::square_distances", GRD_KEY_META, distances_meta, NULL);
    return grd_ok();
}

GRD_PLUGIN("extra", load)
