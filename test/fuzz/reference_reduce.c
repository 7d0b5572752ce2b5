/* Computes the reductions and scans of reference tensors. */
#include "reference_parts.h"

/* ---- Reductions ------------------------------------------------------------------------------------------------------------------------------ */

static grd_dtype sum_dtype(grd_dtype dtype)
{
    return number_category(dtype) <= INTEGRAL ? GRD_INT64 : dtype;
}

static bool reduce_integers(enum reference_reduction op, const struct group *g, struct number *y)
{
    for (int i = 0; i < g->n; i++) {
        const int64_t x = g->x[i]->i;
        if (op == REFERENCE_sum)
            y->i = (int64_t)((uint64_t)y->i + (uint64_t)x);
        else if (op == REFERENCE_amax)
            y->i = i == 0 || x > y->i ? x : y->i;
        else if (op == REFERENCE_amin)
            y->i = i == 0 || x < y->i ? x : y->i;
        else
            return false;
    }
    return op == REFERENCE_sum || op == REFERENCE_amax || op == REFERENCE_amin;
}

static void add_up(const struct group *g, struct number *y)
{
    for (int i = 0; i < g->n; i++) {
        y->re += g->x[i]->re;
        y->im += g->x[i]->im;
        y->size += fabs(g->x[i]->re) + fabs(g->x[i]->im);
        number_add_slope(y, g->x[i], 1);
    }
}

static void find_extreme(const struct group *g, double sign, struct number *y)
{
    int ties = 0;
    y->re = g->x[0]->re;
    for (int i = 1; i < g->n; i++)
        if (isnan(g->x[i]->re) || g->x[i]->re * sign > y->re * sign)
            y->re = isnan(y->re) ? y->re : g->x[i]->re;
    for (int i = 0; i < g->n; i++)
        ties += g->x[i]->re == y->re;
    for (int i = 0; i < g->n; i++)
        if (g->x[i]->re == y->re)
            number_add_slope(y, g->x[i], 1.0 / ties);
}

static void find_variance(const struct group *g, struct number *y)
{
    struct number mean = {0};
    double squares = 0;
    const double left = g->n > 1 ? g->n - 1 : 0;
    add_up(g, &mean);
    for (int i = 0; i < g->n; i++) {
        const double difference = g->x[i]->re - mean.re / g->n;
        squares += difference * difference;
        y->size += g->x[i]->re * g->x[i]->re;
        number_add_slope(y, g->x[i], 2 * difference / left);
    }
    y->re = squares / left;
}

static void find_logsumexp(const struct group *g, struct number *y)
{
    double largest = -INFINITY, sum = 0;
    for (int i = 0; i < g->n; i++)
        largest = isnan(g->x[i]->re) || g->x[i]->re > largest ? g->x[i]->re : largest;
    const double shift = isfinite(largest) ? largest : 0;
    for (int i = 0; i < g->n; i++)
        sum += exp(g->x[i]->re - shift);
    y->re = log(sum) + shift;
    y->size = fabs(shift) + 1;
    for (int i = 0; i < g->n; i++)
        number_add_slope(y, g->x[i], exp(g->x[i]->re - y->re));
}

static bool reduce_floats(enum reference_reduction op, const struct group *g, struct number *y)
{
    switch (op) {
    case REFERENCE_sum:
        add_up(g, y);
        return true;
    case REFERENCE_mean:
        add_up(g, y);
        y->re /= g->n;
        y->im /= g->n;
        y->size = g->n > 0 ? y->size / g->n : 0;
        for (int k = 0; k < REFERENCE_TRACKED; k++)
            y->d[k] = g->n > 0 ? y->d[k] / g->n : 0;
        return true;
    case REFERENCE_amax:
    case REFERENCE_amin:
        find_extreme(g, op == REFERENCE_amax ? 1 : -1, y);
        return true;
    case REFERENCE_var:
        find_variance(g, y);
        return true;
    case REFERENCE_logsumexp:
        find_logsumexp(g, y);
        return true;
    default:
        return false;
    }
}

static void reduce_truth(enum reference_reduction op, const struct group *g, grd_dtype dtype, struct number *y)
{
    y->i = op == REFERENCE_all;
    for (int i = 0; i < g->n; i++) {
        const bool holds = number_is_true(g->x[i], dtype);
        y->i = op == REFERENCE_any ? y->i || holds : op == REFERENCE_all ? y->i && holds : y->i + holds;
    }
}

enum verdict reference_reduce(enum reference_reduction op, const struct reference *x, unsigned dims, bool keepdim, struct reference *ret)
{
    const enum category category = number_category(x->dtype);
    const bool truth = op == REFERENCE_any || op == REFERENCE_all || op == REFERENCE_count_nonzero;
    int64_t sizes[REFERENCE_DIMS];
    int ndim = 0;
    for (int i = 0; i < x->ndim; i++)
        if (!(dims >> i & 1))
            sizes[ndim++] = x->sizes[i];
        else if (keepdim)
            sizes[ndim++] = 1;
    const grd_dtype dtype = op == REFERENCE_count_nonzero ? GRD_INT64
                            : truth                       ? (x->dtype == GRD_UINT8 ? GRD_UINT8 : GRD_BOOL)
                            : op == REFERENCE_sum         ? sum_dtype(x->dtype)
                            : op == REFERENCE_logsumexp   ? number_to_float(x->dtype)
                                                          : x->dtype;
    if ((category == COMPLEX && op != REFERENCE_sum && op != REFERENCE_mean && !truth) ||
        (category == BOOLEAN && !truth && op != REFERENCE_sum) || (category <= INTEGRAL && op == REFERENCE_logsumexp))
        return UNSURE;
    if ((op == REFERENCE_mean || op == REFERENCE_var) && category <= INTEGRAL)
        return REFUSED;
    if (!reference_new(ret, dtype, ndim, sizes))
        return TOO_LARGE;
    reference_inherit(ret, x);
    int length = 1;
    for (int i = 0; i < x->ndim; i++)
        length *= dims >> i & 1 ? (int)x->sizes[i] : 1;
    if (length == 0 && (op == REFERENCE_amax || op == REFERENCE_amin))
        return UNSURE;
    for (int i = 0; i < ret->n; i++) {
        struct group g = {0};
        for (int k = 0; k < x->n; k++) {
            int64_t index[REFERENCE_DIMS], own[REFERENCE_DIMS];
            int n = 0;
            reference_split_index(x, k, index);
            for (int d = 0; d < x->ndim; d++)
                if (!(dims >> d & 1))
                    own[n++] = index[d];
                else if (keepdim)
                    own[n++] = 0;
            if (reference_join_index(ret, own) == i)
                g.x[g.n++] = reference_at(x, k);
        }
        struct number *y = reference_at(ret, i);
        if (truth)
            reduce_truth(op, &g, x->dtype, y);
        else if (category <= INTEGRAL ? !reduce_integers(op, &g, y) : !reduce_floats(op, &g, y))
            return UNSURE;
    }
    return VALID;
}

/* ---- Along one dimension ---------------------------------------------------------------------------------------------------------------------- */

static void multiply_up(const struct group *g, int n, bool integral, struct number *y)
{
    y->i = 1;
    y->re = 1;
    y->im = 0;
    y->size = 0;
    for (int i = 0; i < n; i++) {
        const struct number before = *y, *x = g->x[i];
        y->i = (int64_t)((uint64_t)before.i * (uint64_t)x->i);
        y->re = before.re * x->re - before.im * x->im;
        y->im = before.re * x->im + before.im * x->re;
        for (int k = 0; k < REFERENCE_TRACKED && !integral; k++)
            y->d[k] = before.d[k] * x->re + before.re * x->d[k];
        y->size = fmax(before.size, 1) * fmax(fabs(x->re) + fabs(x->im), 1);
    }
}

static void find_softmax(const struct group *g, int place, bool logarithm, struct number *y)
{
    double largest = -INFINITY, sum = 0;
    for (int i = 0; i < g->n; i++)
        largest = isnan(g->x[i]->re) || g->x[i]->re > largest ? g->x[i]->re : largest;
    for (int i = 0; i < g->n; i++)
        sum += exp(g->x[i]->re - largest); /* NaN if the largest element is infinite */
    const double shifted = g->x[place]->re - largest;
    y->re = logarithm ? shifted - log(sum) : exp(shifted) / sum;
    y->size = logarithm ? fabs(g->x[place]->re) + fabs(largest) + 1 : 1;
    for (int i = 0; i < g->n; i++) {
        const double share = exp(g->x[i]->re - largest) / sum;
        number_add_slope(y, g->x[i], logarithm ? (i == place) - share : y->re * ((i == place) - share));
    }
}

static int find_place(const struct group *g, grd_dtype dtype, double sign)
{
    int best = 0;
    for (int i = 1; i < g->n; i++) {
        const double x = number_to_double(g->x[i], dtype), y = number_to_double(g->x[best], dtype);
        if (!isnan(y) && (isnan(x) || x * sign > y * sign))
            best = i;
    }
    return best;
}

static bool along_value(enum reference_along op, const struct group *g, int place, const struct reference *x, struct number *y)
{
    const bool integral = number_category(x->dtype) <= INTEGRAL;
    struct group first = *g;
    first.n = place + 1;
    switch (op) {
    case REFERENCE_cumsum:
        return integral ? reduce_integers(REFERENCE_sum, &first, y) : reduce_floats(REFERENCE_sum, &first, y);
    case REFERENCE_cumprod:
        multiply_up(g, place + 1, integral, y);
        return true;
    case REFERENCE_prod:
        multiply_up(g, g->n, integral, y);
        return true;
    case REFERENCE_softmax:
    case REFERENCE_log_softmax:
        find_softmax(g, place, op == REFERENCE_log_softmax, y);
        return true;
    case REFERENCE_argmax:
    case REFERENCE_argmin:
        y->i = find_place(g, x->dtype, op == REFERENCE_argmax ? 1 : -1);
        return true;
    default:
        return false;
    }
}

enum verdict reference_along(enum reference_along op, const struct reference *x, int dim, struct reference *ret)
{
    const enum category category = number_category(x->dtype);
    const bool keeps = op < REFERENCE_prod, softmax = op == REFERENCE_softmax || op == REFERENCE_log_softmax,
               finds = op >= REFERENCE_argmax;
    if ((softmax && category != FLOATING) || (finds && (category == COMPLEX || category == BOOLEAN)))
        return REFUSED;
    struct reference shape = *x;
    if (!keeps && x->ndim > 0) {
        shape.ndim--;
        for (int i = dim; i < shape.ndim; i++)
            shape.sizes[i] = x->sizes[i + 1];
    }
    if (!reference_new(ret, finds ? GRD_INT64 : softmax ? x->dtype : sum_dtype(x->dtype), shape.ndim, shape.sizes))
        return TOO_LARGE;
    reference_inherit(ret, x);
    const int64_t length = x->ndim > 0 ? x->sizes[dim] : 1;
    if (finds && length == 0)
        return UNSURE;
    for (int i = 0; i < ret->n; i++) {
        int64_t index[REFERENCE_DIMS] = {0}, source[REFERENCE_DIMS] = {0};
        reference_split_index(ret, i, index);
        for (int d = 0, next = 0; d < x->ndim; d++)
            source[d] = keeps || d != dim ? index[next++] : 0;
        const int place = keeps && x->ndim > 0 ? (int)index[dim] : 0;
        struct group g = {0};
        for (int64_t k = 0; k < length; k++) {
            if (x->ndim > 0)
                source[dim] = k;
            g.x[g.n++] = reference_at(x, reference_join_index(x, source));
        }
        if (!along_value(op, &g, place, x, reference_at(ret, i)))
            return UNSURE;
    }
    return VALID;
}
