/* Distances between rows, and losses with margins or of probability models: composites over elementwise operators and norms. Schema: schema/loss.toml. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "gen/uses/op/loss_distance.h"
#include "gradus/library.h"
#include "op/common.h"
#include "op/composite.h"
#include "op/loss.h"

enum { LIST_CHARS = 512 }; /* of a formatted list in an error */

static grd_tensor *positive_part(grd_tensor *t)
{
    return grd_clamp_min(t, grd_int(0));
}

/* t where target is not `label`, 0 elsewhere. */
static grd_tensor *unless(grd_tensor *target, int label, grd_tensor *t)
{
    return grd_where(grd_ne_scalar(target, grd_int(label)), t, grd_number(grd_int(0)));
}

/* No smaller than `least`, with the gradient of t itself. */
static grd_tensor *raised(grd_tensor *t, double least)
{
    return grd_add(t, grd_sub(grd_clamp_min(grd_detach(t), grd_float(least)), grd_detach(t)));
}

/* ---- Distances ------------------------------------------------------------------------------------------------------------------ */

grd_tensor *op_cosine_similarity(grd_tensor *x1, grd_tensor *x2, int64_t dim, double eps)
{
    int64_t sizes[GRD_MAX_DIMS], n;
    const grd_dtype dtype = grd_promote((grd_dtype)x1->dtype, (grd_dtype)x2->dtype);
    if (!grd_dtype_is_floating(dtype) && !grd_dtype_is_complex(dtype))
        return grd_fail(GRD_ERROR_RUNTIME, "expected common dtype to be floating point, yet common dtype is %s",
                        grd_dtype_type_name(dtype));
    if (eps < 0)
        return grd_fail(GRD_ERROR_RUNTIME, "eps must be non-negative, got: %g", eps);
    if (!grd_shape_broadcast(grd_sizes(x1), grd_sizes(x2), sizes, &n))
        return grd_failed;
    x1 = grd_expand(grd_to(x1, .dtype = dtype), grd_dims_from(sizes, n));
    x2 = grd_expand(grd_to(x2, .dtype = dtype), grd_dims_from(sizes, n));
    const grd_dims along = grd_dims(dim);
    grd_tensor *n1 = raised(grd_norm(x1, .dim = along, .keepdim = true), eps),
               *n2 = raised(grd_norm(x2, .dim = along, .keepdim = true), eps);
    return grd_sum(grd_mul(grd_div(x1, n1), grd_div(x2, n2)), .dim = along);
}

grd_tensor *op_pairwise_distance(grd_tensor *x1, grd_tensor *x2, double p, double eps, bool keepdim)
{
    const int64_t n = x1->ndim > x2->ndim ? x1->ndim : x2->ndim;
    grd_tensor *difference = grd_add_scalar(grd_sub(x1, x2), grd_float(eps));
    return grd_hidden_norm(difference, grd_float(p), grd_dims(n > 0 ? n - 1 : 0), keepdim);
}

grd_tensor *op_normalize(grd_tensor *self, double p, int64_t dim, double eps)
{
    grd_tensor *norm = grd_norm(self, .p = grd_float(p), .dim = grd_dims(dim), .keepdim = true);
    return grd_div(self, grd_clamp_min(norm, grd_float(eps)));
}

/* ---- Margins ---------------------------------------------------------------------------------------------------------------------- */

grd_tensor *op_hinge_embedding_loss(grd_tensor *self, grd_tensor *target, double margin, const char *reduction)
{
    const enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (how == GRD_LOSS_INVALID)
        return grd_failed;
    grd_tensor *apart = positive_part(grd_sub(grd_full_like(self, grd_float(margin)), self));
    return grd_loss_reduce(grd_add(unless(target, 1, apart), unless(target, -1, self)), how);
}

grd_tensor *op_margin_ranking_loss(grd_tensor *input1, grd_tensor *input2, grd_tensor *target, double margin, const char *reduction)
{
    const enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    char a[LIST_CHARS], b[LIST_CHARS], c[LIST_CHARS];
    if (how != GRD_LOSS_INVALID && (input1->ndim != input2->ndim || input1->ndim != target->ndim))
        grd_raise(GRD_ERROR_RUNTIME, "All input tensors should have same dimension but got sizes: input1: %s, input2: %s, target: %s ",
                  grd_format_int64s(a, sizeof a, input1->sizes, input1->ndim), grd_format_int64s(b, sizeof b, input2->sizes, input2->ndim),
                  grd_format_int64s(c, sizeof c, target->sizes, target->ndim));
    if (grd_pending())
        return grd_failed;
    grd_tensor *loss = grd_add_scalar(grd_mul(grd_neg(target), grd_sub(input1, input2)), grd_float(margin));
    return grd_loss_reduce(positive_part(loss), how);
}

grd_tensor *op_soft_margin_loss(grd_tensor *self, grd_tensor *target, const char *reduction)
{
    const enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (how == GRD_LOSS_INVALID)
        return grd_failed;
    return grd_loss_reduce(grd_log1p(grd_exp(grd_neg(grd_mul(self, target)))), how);
}

grd_tensor *op_triplet_margin_loss(grd_tensor *anchor, grd_tensor *positive, grd_tensor *negative, double margin, double p, double eps,
                                   bool swap, const char *reduction)
{
    const enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (how != GRD_LOSS_INVALID && (anchor->ndim != positive->ndim || anchor->ndim != negative->ndim))
        grd_raise(GRD_ERROR_RUNTIME,
                  "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
                  "anchor %dD, positive %dD, and negative %dD inputs",
                  anchor->ndim, positive->ndim, negative->ndim);
    if (grd_pending())
        return grd_failed;
    const grd_pairwise_distance_options options = {.p = p, .eps = eps};
    grd_tensor *near = grd_with_pairwise_distance(anchor, positive, &options),
               *far = grd_with_pairwise_distance(anchor, negative, &options);
    if (swap)
        far = grd_minimum(far, grd_with_pairwise_distance(positive, negative, &options));
    return grd_loss_reduce(positive_part(grd_add_scalar(grd_sub(near, far), grd_float(margin))), how);
}

static bool check_cosine(const grd_tensor *input1, const grd_tensor *input2, const grd_tensor *target)
{
    char a[LIST_CHARS], b[LIST_CHARS];
    grd_format_int64s(a, sizeof a, input1->sizes, input1->ndim);
    grd_format_int64s(b, sizeof b, input2->sizes, input2->ndim);
    if (target->ndim > 1)
        return grd_raise(GRD_ERROR_RUNTIME, "0D or 1D target tensor expected, multi-target not supported");
    return (input1->ndim == target->ndim + 1 && input2->ndim == target->ndim + 1) ||
           grd_raise(GRD_ERROR_RUNTIME, "%dD target tensor expects %dD input tensors, but found inputs with sizes %s and %s.", target->ndim,
                     target->ndim + 1, a, b);
}

grd_tensor *op_cosine_embedding_loss(grd_tensor *input1, grd_tensor *input2, grd_tensor *target, double margin, const char *reduction)
{
    const enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    const grd_scalar small = grd_float(1e-12);
    if (how == GRD_LOSS_INVALID || !check_cosine(input1, input2, target))
        return grd_failed;
    const grd_dims along = grd_dims(target->ndim);
    grd_tensor *m1 = grd_add_scalar(grd_sum(grd_square(input1), .dim = along), small);
    grd_tensor *m2 = grd_add_scalar(grd_sum(grd_square(input2), .dim = along), small);
    grd_tensor *cosine = grd_div(grd_sum(grd_mul(input1, input2), .dim = along), grd_sqrt(grd_mul(m1, m2)));
    grd_tensor *same = grd_add_scalar(grd_neg(cosine), grd_int(1)), *other = positive_part(grd_sub_scalar(cosine, grd_float(margin)));
    grd_tensor *zero = grd_number(grd_int(0));
    return grd_loss_reduce(
        grd_add(grd_where(grd_eq_scalar(target, grd_int(1)), same, zero), grd_where(grd_eq_scalar(target, grd_int(-1)), other, zero)), how);
}

/* ---- Probability models -------------------------------------------------------------------------------------------------------------- */

static const double two_pi = 6.283185307179586;

grd_tensor *op_poisson_nll_loss(grd_tensor *input, grd_tensor *target, bool log_input, bool full, double eps, const char *reduction)
{
    const enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (how == GRD_LOSS_INVALID)
        return grd_failed;
    grd_tensor *loss = log_input ? grd_sub(grd_exp(input), grd_mul(target, input))
                                 : grd_sub(input, grd_mul(target, grd_log(grd_add_scalar(input, grd_float(eps)))));
    if (full) { /* Stirling's approximation of log(target!) */
        grd_tensor *entropy = grd_sub(grd_mul(target, grd_log(target)), target);
        grd_tensor *stirling = grd_add(entropy, grd_mul_scalar(grd_log(grd_mul_scalar(target, grd_float(two_pi))), grd_float(0.5)));
        loss = grd_add(loss, grd_masked_fill(stirling, grd_le_scalar(target, grd_int(1)), grd_int(0)));
    }
    return grd_loss_reduce(loss, how);
}

/* The variance with a last dimension of 1 where it has one number for each row. */
static grd_tensor *variance_of(const grd_tensor *input, grd_tensor *var)
{
    const grd_dims sizes = grd_sizes(input), rows = grd_dims_from(input->sizes, input->ndim > 0 ? input->ndim - 1 : 0);
    if (grd_same_sizes(var, sizes))
        return var;
    if (input->ndim > 0 && grd_same_sizes(var, rows))
        return grd_unsqueeze(var, -1);
    if (input->ndim > 0 && var->ndim == input->ndim && var->sizes[var->ndim - 1] == 1 &&
        memcmp(var->sizes, input->sizes, (size_t)rows.n * sizeof *var->sizes) == 0)
        return var;
    return grd_fail(GRD_ERROR_VALUE, "var is of incorrect size");
}

grd_tensor *op_gaussian_nll_loss(grd_tensor *input, grd_tensor *target, grd_tensor *var, bool full, double eps, const char *reduction)
{
    const enum grd_loss_reduction how = grd_loss_reduction_of(reduction);
    if (how == GRD_LOSS_INVALID)
        return grd_failed;
    var = variance_of(input, var);
    double least;
    if (grd_composite_extremes(var, &least, NULL) && least < 0)
        return grd_fail(GRD_ERROR_VALUE, "var has negative entry/entries");
    var = raised(var, eps);
    grd_tensor *loss = grd_mul_scalar(grd_add(grd_log(var), grd_div(grd_square(grd_sub(input, target)), var)), grd_float(0.5));
    return grd_loss_reduce(full ? grd_add_scalar(loss, grd_float(0.5 * log(two_pi))) : loss, how);
}
