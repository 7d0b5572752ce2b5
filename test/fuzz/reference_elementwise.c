/* Computes elementwise operators of reference tensors, converts reference tensors to other dtypes, and writes one reference tensor to another. */
#include "reference_parts.h"

static bool unary_integer(enum reference_unary op, const struct number *x, grd_dtype dtype, struct number *y)
{
    const uint64_t bits = (uint64_t)x->i;
    switch (op) {
    case REFERENCE_neg:
        y->i = number_wrap((int64_t)-bits, dtype);
        return true;
    case REFERENCE_abs:
        y->i = number_wrap((int64_t)(x->i < 0 ? -bits : bits), dtype);
        return true;
    case REFERENCE_square:
        y->i = number_wrap((int64_t)(bits * bits), dtype);
        return true;
    case REFERENCE_sign:
        y->i = (x->i > 0) - (x->i < 0);
        return true;
    case REFERENCE_relu:
        y->i = x->i > 0 ? x->i : 0;
        return true;
    case REFERENCE_floor:
    case REFERENCE_ceil:
    case REFERENCE_round:
    case REFERENCE_trunc:
        y->i = x->i;
        return true;
    default:
        return false;
    }
}

static bool unary_float(enum reference_unary op, double x, struct number *y, double *ret_slope)
{
    double v, slope = 0;
    y->size = 0;
    switch (op) {
    case REFERENCE_neg:
        v = -x, slope = -1;
        break;
    case REFERENCE_abs:
        v = fabs(x), slope = (x > 0) - (x < 0);
        break;
    case REFERENCE_square:
        v = x * x, slope = 2 * x;
        break;
    case REFERENCE_sign:
        v = (x > 0) - (x < 0);
        break;
    case REFERENCE_relu:
        v = x > 0 || isnan(x) ? x : 0, slope = x > 0;
        break;
    case REFERENCE_floor:
        v = floor(x);
        break;
    case REFERENCE_ceil:
        v = ceil(x);
        break;
    case REFERENCE_round:
        v = rint(x);
        break;
    case REFERENCE_trunc:
        v = trunc(x);
        break;
    case REFERENCE_exp:
        v = slope = exp(x);
        break;
    case REFERENCE_log:
        v = log(x), slope = 1 / x;
        break;
    case REFERENCE_sin:
        v = sin(x), slope = cos(x);
        break;
    case REFERENCE_cos:
        v = cos(x), slope = -sin(x);
        break;
    case REFERENCE_tanh:
        v = tanh(x), slope = 1 - v * v;
        break;
    case REFERENCE_sqrt:
        v = sqrt(x), slope = 0.5 / v;
        break;
    case REFERENCE_sigmoid:
        v = 1 / (1 + exp(-x)), slope = v * (1 - v);
        break;
    case REFERENCE_reciprocal:
        v = 1 / x, slope = -v * v;
        break;
    case REFERENCE_erf:
        v = erf(x), slope = 1.1283791670955126 * exp(-x * x);
        break;
    case REFERENCE_expm1:
        v = expm1(x), slope = v + 1;
        break;
    case REFERENCE_log1p:
        v = log1p(x), slope = 1 / (x + 1);
        break;
    case REFERENCE_atan:
        v = atan(x), slope = 1 / (1 + x * x);
        break;
    default:
        return false;
    }
    y->re = v;
    *ret_slope = slope;
    return true;
}

static bool unary_gives_bool(enum reference_unary op)
{
    return op == REFERENCE_logical_not || op == REFERENCE_isnan || op == REFERENCE_isfinite;
}

enum verdict reference_unary(enum reference_unary op, const struct reference *x, struct reference *ret)
{
    const bool promotes = op < REFERENCE_exp, gives_bool = unary_gives_bool(op);
    const grd_dtype dtype = gives_bool ? GRD_BOOL : promotes ? x->dtype : number_to_float(x->dtype);
    if (!gives_bool && (number_category(dtype) == COMPLEX || dtype == GRD_BOOL))
        return UNSURE;
    if (!reference_new(ret, dtype, x->ndim, x->sizes))
        return TOO_LARGE;
    reference_inherit(ret, x);
    for (int i = 0; i < x->n; i++) {
        const struct number *a = reference_at(x, i);
        struct number *y = reference_at(ret, i);
        double slope = 0;
        const bool floats = number_category(x->dtype) >= FLOATING;
        if (op == REFERENCE_logical_not)
            y->i = !number_is_true(a, x->dtype);
        else if (op == REFERENCE_isnan)
            y->i = floats && (isnan(a->re) || isnan(a->im));
        else if (op == REFERENCE_isfinite)
            y->i = !floats || (isfinite(a->re) && isfinite(a->im));
        else if (number_category(dtype) == INTEGRAL ? !unary_integer(op, a, dtype, y)
                                                    : !unary_float(op, number_round(number_to_double(a, x->dtype), dtype), y, &slope))
            return UNSURE;
        else if (number_category(dtype) == FLOATING)
            number_add_slope(y, a, slope);
    }
    return VALID;
}

static bool binary_integer(enum reference_binary op, const struct number *x, const struct number *y, double alpha, struct number *z)
{
    const uint64_t a = (uint64_t)x->i, b = (uint64_t)y->i, factor = (uint64_t)(int64_t)alpha;
    switch (op) {
    case REFERENCE_add:
        z->i = (int64_t)(a + factor * b);
        return true;
    case REFERENCE_sub:
        z->i = (int64_t)(a - factor * b);
        return true;
    case REFERENCE_mul:
        z->i = (int64_t)(a * b);
        return true;
    case REFERENCE_maximum:
        z->i = x->i > y->i ? x->i : y->i;
        return true;
    case REFERENCE_minimum:
        z->i = x->i < y->i ? x->i : y->i;
        return true;
    case REFERENCE_bitwise_and:
        z->i = x->i & y->i;
        return true;
    case REFERENCE_bitwise_or:
        z->i = x->i | y->i;
        return true;
    case REFERENCE_bitwise_xor:
        z->i = x->i ^ y->i;
        return true;
    default:
        return false;
    }
}

static bool binary_float(enum reference_binary op, const struct number *x, const struct number *y, double alpha, struct number *z)
{
    const double a = x->re, b = y->re;
    double by_x = 0, by_y = 0;
    z->size = 0;
    switch (op) {
    case REFERENCE_add:
        z->re = a + alpha * b, by_x = 1, by_y = alpha, z->size = fabs(a) + fabs(alpha * b);
        break;
    case REFERENCE_sub:
        z->re = a - alpha * b, by_x = 1, by_y = -alpha, z->size = fabs(a) + fabs(alpha * b);
        break;
    case REFERENCE_mul:
        z->re = a * b, by_x = b, by_y = a;
        break;
    case REFERENCE_div:
        z->re = a / b, by_x = 1 / b, by_y = -a / b / b;
        break;
    case REFERENCE_maximum:
        z->re = isnan(a) || isnan(b) ? NAN : a > b ? a : b, by_x = a == b ? 0.5 : a > b, by_y = 1 - by_x;
        break;
    case REFERENCE_minimum:
        z->re = isnan(a) || isnan(b) ? NAN : a < b ? a : b, by_x = a == b ? 0.5 : a < b, by_y = 1 - by_x;
        break;
    case REFERENCE_atan2:
        z->re = atan2(a, b), by_x = b / (a * a + b * b), by_y = -a / (a * a + b * b);
        break;
    default:
        return false;
    }
    number_add_slope(z, x, by_x);
    number_add_slope(z, y, by_y);
    return true;
}

static bool binary_complex(enum reference_binary op, const struct number *x, const struct number *y, double alpha, struct number *z)
{
    switch (op) {
    case REFERENCE_add:
    case REFERENCE_sub:
        alpha = op == REFERENCE_add ? alpha : -alpha;
        z->re = x->re + alpha * y->re;
        z->im = x->im + alpha * y->im;
        z->size = fabs(x->re) + fabs(x->im) + fabs(alpha * y->re) + fabs(alpha * y->im);
        return true;
    case REFERENCE_mul:
        z->re = x->re * y->re - x->im * y->im;
        z->im = x->re * y->im + x->im * y->re;
        z->size = (fabs(x->re) + fabs(x->im)) * (fabs(y->re) + fabs(y->im));
        return true;
    default:
        return false;
    }
}

static bool compare_numbers(enum reference_binary op, const struct number *x, const struct number *y, grd_dtype dtype, int64_t *ret)
{
    const bool integral = number_category(dtype) <= INTEGRAL;
    const bool less = integral ? x->i < y->i : x->re < y->re;
    const bool equal = integral ? x->i == y->i : x->re == y->re && x->im == y->im;
    const bool more = integral ? x->i > y->i : x->re > y->re;
    const bool a = number_is_true(x, dtype), b = number_is_true(y, dtype);
    switch (op) {
    case REFERENCE_eq:
        *ret = equal;
        break;
    case REFERENCE_ne:
        *ret = !equal;
        break;
    case REFERENCE_lt:
        *ret = less;
        break;
    case REFERENCE_le:
        *ret = less || equal;
        break;
    case REFERENCE_gt:
        *ret = more;
        break;
    case REFERENCE_ge:
        *ret = more || equal;
        break;
    case REFERENCE_logical_and:
        *ret = a && b;
        break;
    case REFERENCE_logical_or:
        *ret = a || b;
        break;
    case REFERENCE_logical_xor:
        *ret = a != b;
        break;
    default:
        return false;
    }
    return number_category(dtype) != COMPLEX || op < REFERENCE_lt || op > REFERENCE_ge;
}

enum verdict reference_binary(enum reference_binary op, const struct reference *x, const struct reference *y, grd_dtype common,
                              double alpha, struct reference *ret)
{
    const bool compares = op >= REFERENCE_eq && op <= REFERENCE_logical_xor;
    const bool to_floats = op == REFERENCE_div || op == REFERENCE_atan2;
    int ndim;
    int64_t sizes[REFERENCE_DIMS];
    if (!reference_broadcast((const struct reference *const[]){x, y}, 2, &ndim, sizes))
        return REFUSED;
    if (common == GRD_DTYPE_NONE)
        return UNSURE;
    const grd_dtype compute = to_floats ? number_to_float(common) : common;
    const enum category category = number_category(compute);
    if (category == BOOLEAN && !compares)
        return UNSURE;
    if (!reference_new(ret, compares ? GRD_BOOL : compute, ndim, sizes))
        return TOO_LARGE;
    reference_inherit(ret, x);
    reference_inherit(ret, y);
    for (int i = 0; i < ret->n; i++) {
        struct number a, b, *z = reference_at(ret, i);
        if (!number_convert(reference_at(x, reference_broadcast_place(x, ret, i)), x->dtype, compute, &a) ||
            !number_convert(reference_at(y, reference_broadcast_place(y, ret, i)), y->dtype, compute, &b))
            return UNSURE;
        const bool known = compares               ? compare_numbers(op, &a, &b, compute, &z->i)
                           : category == INTEGRAL ? binary_integer(op, &a, &b, alpha, z)
                           : category == FLOATING ? binary_float(op, &a, &b, alpha, z)
                                                  : binary_complex(op, &a, &b, alpha, z);
        if (!known)
            return UNSURE;
        z->i = compares ? z->i : number_wrap(z->i, compute);
    }
    return VALID;
}

enum verdict reference_where(const struct reference *c, const struct reference *x, const struct reference *y, grd_dtype common,
                             struct reference *ret)
{
    int ndim;
    int64_t sizes[REFERENCE_DIMS];
    if ((c->dtype != GRD_BOOL && c->dtype != GRD_UINT8) ||
        !reference_broadcast((const struct reference *const[]){c, x, y}, 3, &ndim, sizes))
        return REFUSED;
    if (common == GRD_DTYPE_NONE)
        return UNSURE;
    if (!reference_new(ret, common, ndim, sizes))
        return TOO_LARGE;
    reference_inherit(ret, x);
    reference_inherit(ret, y);
    for (int i = 0; i < ret->n; i++) {
        const struct reference *chosen = reference_at(c, reference_broadcast_place(c, ret, i))->i ? x : y;
        if (!number_convert(reference_at(chosen, reference_broadcast_place(chosen, ret, i)), chosen->dtype, common, reference_at(ret, i)))
            return UNSURE;
    }
    return VALID;
}

enum verdict reference_convert(const struct reference *x, grd_dtype dtype, struct reference *ret)
{
    if (!reference_new(ret, dtype, x->ndim, x->sizes))
        return TOO_LARGE;
    bool defined = true;
    for (int i = 0; i < x->n; i++)
        defined &= number_convert(reference_at(x, i), x->dtype, dtype, reference_at(ret, i));
    reference_inherit(ret, x);
    return defined ? VALID : UNSURE;
}

bool reference_write(struct reference *p, const struct reference *x)
{
    struct number values[REFERENCE_CELLS];
    if (x->ndim > p->ndim)
        return false;
    for (int k = 0; k < x->ndim; k++)
        if (x->sizes[k] != 1 && x->sizes[k] != p->sizes[k + p->ndim - x->ndim])
            return false;
    for (int i = 0; i < p->n; i++)
        number_convert(reference_at(x, reference_broadcast_place(x, p, i)), x->dtype, p->dtype, &values[i]);
    for (int i = 0; i < p->n; i++)
        *reference_at(p, i) = values[i];
    p->memory->lost |= x->memory->lost;
    return true;
}
