/* Runs steps of Adafactor and Muon, the optimizers that treat a parameter as a matrix, by calls of other operators. Formulas: schema/optim.toml.
 *
 * Invariant: sizes are checked before anything is written. */
#include <math.h>
#include <string.h>

#include "gen/uses/op/optim_matrix.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "op/optim.h"
#include "op/dtypes.h"
#include "op/sizes.h"

static bool check_count(grd_tensors list, int64_t n, const char *name)
{
    return list.n == n || grd_raise(GRD_ERROR_RUNTIME, "%s has %lld tensors for %lld parameters", name, (long long)list.n, (long long)n);
}

static bool check_real(const grd_tensor *param)
{
    return grd_category_of((grd_dtype)param->dtype) == GRD_CATEGORY_FLOAT ||
           grd_raise(GRD_ERROR_RUNTIME, "parameters must be real floating point numbers, not %s", grd_dtype_name((grd_dtype)param->dtype));
}

static bool check_sizes(const grd_tensor *param, const grd_tensor *t, const char *name, int64_t i)
{
    return grd_same_sizes(t, grd_sizes(param)) || grd_raise(GRD_ERROR_RUNTIME, "%s[%lld] has sizes %s where the parameter has %s", name,
                                                            (long long)i, grd_list_text(grd_sizes(t)), grd_list_text(grd_sizes(param)));
}

/* Returns a zero-dimensional tensor with the given value and t's dtype and device. */
static grd_tensor *number_like(const grd_tensor *t, double value)
{
    return grd_full(GRD_NO_DIMS, grd_float(value), .dtype = (grd_dtype)t->dtype, .device = grd_tensor_device(t));
}

/* Returns the zero-dimensional tensor `number` converted to t's dtype and device. */
static grd_tensor *convert_like(grd_tensor *number, const grd_tensor *t)
{
    return grd_to(number, .dtype = (grd_dtype)t->dtype, .device = grd_tensor_device(t));
}

/* ---- Adafactor ------------------------------------------------------------------------------------------------------------------- */

struct adafactor {
    double lr, beta2_decay, eps1, eps2, d, weight_decay;
    bool maximize;
};

/* Returns the root mean square of all elements of t as a zero-dimensional tensor. */
static grd_tensor *root_mean_square(grd_tensor *t)
{
    return grd_mul_scalar(grd_norm(t), grd_float(1 / sqrt((double)t->numel)));
}

/* Updates row_var and col_var, the running means of g^2 over each row and over each column. Returns an estimate of the running mean of g^2 for each
 * element. The estimate is the outer product of row_var and col_var, divided by the mean of row_var. */
static grd_tensor *factored_squares(grd_tensor *g, grd_tensor *row_var, grd_tensor *col_var, grd_tensor *weight, double eps)
{
    grd_tensor *squares = grd_mul(g, g);
    grd_lerp_(row_var, grd_mean(squares, .dim = grd_dims(-1), .keepdim = true), weight);
    grd_lerp_(col_var, grd_mean(squares, .dim = grd_dims(-2), .keepdim = true), weight);
    return grd_div(grd_matmul(row_var, col_var), grd_clamp_min(grd_mean(row_var, .dim = grd_dims(-2), .keepdim = true), grd_float(eps)));
}

/* Updates and returns `variance`, the running mean of g^2 for each element. Used for parameters for which the mean is not factored into rows and
 * columns. */
static grd_tensor *squares_of(grd_tensor *g, grd_tensor *variance, grd_tensor *weight)
{
    grd_lerp_(variance, grd_mul(g, g), weight);
    return variance;
}

static void adafactor_step(grd_tensor *param, grd_tensor *grad, grd_tensor *row_var, grd_tensor *col_var, grd_tensor *step,
                           const struct adafactor *x)
{
    grd_add_scalar_(step, grd_float(1));
    grd_tensor *weight = convert_like(grd_pow_scalar(step, grd_float(x->beta2_decay)), param);
    grd_tensor *rate = convert_like(grd_clamp_max(grd_rsqrt(step), grd_float(x->lr)), param);
    grd_tensor *g = x->maximize ? grd_neg(grad) : grad;
    grd_tensor *scale = grd_mul(grd_clamp_min(root_mean_square(param), grd_float(x->eps2)), rate);
    if (x->weight_decay != 0)
        grd_mul_scalar_(param, grd_float(1 - x->lr * x->weight_decay));
    grd_tensor *squares = param->ndim > 1 ? factored_squares(g, row_var, col_var, weight, x->eps1) : squares_of(g, row_var, weight);
    grd_tensor *update = grd_mul(grd_rsqrt(grd_clamp_min(squares, grd_float(x->eps1 * x->eps1))), g);
    grd_tensor *size = grd_clamp_min(grd_mul_scalar(root_mean_square(update), grd_float(1 / x->d)), grd_float(1));
    grd_sub_(param, grd_mul(update, grd_div(scale, size)));
}

/* Raises RuntimeError if the sizes of `t` are wrong. They must be those of `param`, except that dimension ndim - from_end of `t` has size 1 if
 * `param` has at least 2 dimensions. */
static bool check_means(const grd_tensor *param, const grd_tensor *t, int from_end, const char *name, int64_t i)
{
    int64_t sizes[GRD_MAX_DIMS];
    if (param->ndim > 0)
        memcpy(sizes, param->sizes, (size_t)param->ndim * sizeof *sizes);
    if (param->ndim > 1)
        sizes[param->ndim - from_end] = 1;
    const grd_dims wanted = grd_dims_from(sizes, param->ndim);
    return grd_same_sizes(t, wanted) || grd_raise(GRD_ERROR_RUNTIME, "%s[%lld] has sizes %s, not %s", name, (long long)i,
                                                  grd_list_text(grd_sizes(t)), grd_list_text(wanted));
}

grd_tensors op_adafactor_step(grd_tensors params, grd_tensors grads, grd_tensors row_vars, grd_tensors col_vars, grd_tensors steps,
                              double lr, double beta2_decay, double eps1, double eps2, double d, double weight_decay, bool maximize)
{
    const struct adafactor x = {lr, beta2_decay, eps1, eps2, d, weight_decay, maximize};
    const grd_tensors none = {0};
    if (!check_count(grads, params.n, "grads") || !check_count(row_vars, params.n, "row_vars") ||
        !check_count(col_vars, params.n, "col_vars") || !check_count(steps, params.n, "steps"))
        return none;
    for (int64_t i = 0; i < params.n; i++)
        if (!check_real(params.data[i]) || !check_sizes(params.data[i], grads.data[i], "grads", i) ||
            !check_means(params.data[i], row_vars.data[i], 1, "row_vars", i) ||
            !check_means(params.data[i], col_vars.data[i], 2, "col_vars", i))
            return none;
    for (int64_t i = 0; i < params.n && !grd_pending(); i++)
        adafactor_step(params.data[i], grads.data[i], row_vars.data[i], col_vars.data[i], steps.data[i], &x);
    return grd_pending() ? none : params;
}

/* ---- Muon ------------------------------------------------------------------------------------------------------------------------ */

struct muon {
    double lr, weight_decay, momentum, a, b, c, eps;
    int64_t iterations;
    bool nesterov;
};

/* Returns a matrix with the singular vectors of g and singular values near 1, by Newton-Schulz iterations in bfloat16. The iteration starts with x =
 * g / |g| and repeats x = a x + (b x x^T + c (x x^T)^2) x. A tall matrix is transposed first, so that x x^T is small. */
static grd_tensor *orthogonalized(grd_tensor *g, const struct muon *m)
{
    const bool tall = g->sizes[0] > g->sizes[1];
    grd_tensor *x = grd_to(g, .dtype = GRD_BFLOAT16);
    if (tall)
        x = grd_transpose(x, 0, 1);
    x = grd_div(x, grd_clamp_min(grd_norm(x), grd_float(m->eps)));
    for (int64_t i = 0; i < m->iterations && !grd_pending(); i++) {
        grd_tensor *gram = grd_matmul(x, grd_transpose(x, 0, 1));
        grd_tensor *polynomial = grd_addmm(gram, gram, gram, .beta = grd_float(m->b), .alpha = grd_float(m->c));
        x = grd_addmm(x, polynomial, x, .beta = grd_float(m->a));
    }
    return tall ? grd_transpose(x, 0, 1) : x;
}

/* Returns the learning rate `lr`, adjusted to the shape of the matrix `param`. "match_rms_adamw" multiplies by 0.2 sqrt(max(rows, columns)), so that
 * updates are as large as those of AdamW. Otherwise the factor is sqrt(max(1, rows / columns)). */
static double muon_rate(double lr, const char *adjust_lr_fn, const grd_tensor *param)
{
    const double rows = (double)param->sizes[0], columns = (double)param->sizes[1];
    const bool match = adjust_lr_fn != NULL && strcmp(adjust_lr_fn, "match_rms_adamw") == 0;
    return lr * (match ? 0.2 * sqrt(fmax(rows, columns)) : sqrt(fmax(1, rows / columns)));
}

static void muon_step(grd_tensor *param, grd_tensor *grad, grd_tensor *buffer, double rate, const struct muon *m)
{
    grd_lerp_(buffer, grad, number_like(buffer, 1 - m->momentum));
    grd_tensor *update = m->nesterov ? grd_lerp(grad, buffer, number_like(grad, m->momentum)) : buffer;
    update = orthogonalized(update, m);
    grd_mul_scalar_(param, grd_float(1 - m->lr * m->weight_decay));
    grd_add_(param, update, .alpha = grd_float(-rate));
}

static bool check_rate(const char *adjust_lr_fn)
{
    return adjust_lr_fn == NULL || strcmp(adjust_lr_fn, "original") == 0 || strcmp(adjust_lr_fn, "match_rms_adamw") == 0 ||
           grd_raise(GRD_ERROR_VALUE, "Adjust learning rate function %s is not supported: it is \"original\" or \"match_rms_adamw\"",
                     adjust_lr_fn);
}

static bool check_matrix(const grd_tensor *param)
{
    return param->ndim == 2 || grd_raise(GRD_ERROR_VALUE, "Param gradient must be a 2D matrix");
}

grd_tensors op_muon_step(grd_tensors params, grd_tensors grads, grd_tensors momentum_buffers, double lr, double weight_decay,
                         double momentum, bool nesterov, double a, double b, double c, double eps, int64_t ns_steps,
                         const char *adjust_lr_fn)
{
    const struct muon m = {lr, weight_decay, momentum, a, b, c, eps, ns_steps, nesterov};
    const grd_tensors none = {0};
    if (!check_count(grads, params.n, "grads") || !check_count(momentum_buffers, params.n, "momentum_buffers") || !check_rate(adjust_lr_fn))
        return none;
    if (ns_steps >= 100) {
        grd_raise(GRD_ERROR_VALUE, "Number of steps must be less than 100 for computational efficiency");
        return none;
    }
    for (int64_t i = 0; i < params.n; i++)
        if (!check_matrix(params.data[i]) || !check_real(params.data[i]) || !check_sizes(params.data[i], grads.data[i], "grads", i) ||
            !check_sizes(params.data[i], momentum_buffers.data[i], "momentum_buffers", i))
            return none;
    for (int64_t i = 0; i < params.n && !grd_pending(); i++)
        muon_step(params.data[i], grads.data[i], momentum_buffers.data[i], muon_rate(lr, adjust_lr_fn, params.data[i]), &m);
    return grd_pending() ? none : params;
}
