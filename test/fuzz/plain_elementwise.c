/* Elementwise operators of reference tensors, with conversion and writing. */
#include "plain_parts.h"

static bool unary_integer(enum plain_unary op, const struct number *x, grd_dtype dtype, struct number *y)
{
    const uint64_t bits = (uint64_t)x->i;
    switch (op) {
    case PLAIN_neg:
        y->i = number_wrap((int64_t)-bits, dtype);
        return true;
    case PLAIN_abs:
        y->i = number_wrap((int64_t)(x->i < 0 ? -bits : bits), dtype);
        return true;
    case PLAIN_square:
        y->i = number_wrap((int64_t)(bits * bits), dtype);
        return true;
    case PLAIN_sign:
        y->i = (x->i > 0) - (x->i < 0);
        return true;
    case PLAIN_relu:
        y->i = x->i > 0 ? x->i : 0;
        return true;
    case PLAIN_floor:
    case PLAIN_ceil:
    case PLAIN_round:
    case PLAIN_trunc:
        y->i = x->i;
        return true;
    default:
        return false;
    }
}

static bool unary_float(enum plain_unary op, double x, struct number *y, double *ret_slope)
{
    double v, slope = 0;
    y->size = 0;
    switch (op) {
    case PLAIN_neg:
        v = -x, slope = -1;
        break;
    case PLAIN_abs:
        v = fabs(x), slope = (x > 0) - (x < 0);
        break;
    case PLAIN_square:
        v = x * x, slope = 2 * x;
        break;
    case PLAIN_sign:
        v = (x > 0) - (x < 0);
        break;
    case PLAIN_relu:
        v = x > 0 || isnan(x) ? x : 0, slope = x > 0;
        break;
    case PLAIN_floor:
        v = floor(x);
        break;
    case PLAIN_ceil:
        v = ceil(x);
        break;
    case PLAIN_round:
        v = rint(x);
        break;
    case PLAIN_trunc:
        v = trunc(x);
        break;
    case PLAIN_exp:
        v = slope = exp(x);
        break;
    case PLAIN_log:
        v = log(x), slope = 1 / x;
        break;
    case PLAIN_sin:
        v = sin(x), slope = cos(x);
        break;
    case PLAIN_cos:
        v = cos(x), slope = -sin(x);
        break;
    case PLAIN_tanh:
        v = tanh(x), slope = 1 - v * v;
        break;
    case PLAIN_sqrt:
        v = sqrt(x), slope = 0.5 / v;
        break;
    case PLAIN_sigmoid:
        v = 1 / (1 + exp(-x)), slope = v * (1 - v);
        break;
    case PLAIN_reciprocal:
        v = 1 / x, slope = -v * v;
        break;
    case PLAIN_erf:
        v = erf(x), slope = 1.1283791670955126 * exp(-x * x);
        break;
    case PLAIN_expm1:
        v = expm1(x), slope = v + 1;
        break;
    case PLAIN_log1p:
        v = log1p(x), slope = 1 / (x + 1);
        break;
    case PLAIN_atan:
        v = atan(x), slope = 1 / (1 + x * x);
        break;
    default:
        return false;
    }
    y->re = v;
    *ret_slope = slope;
    return true;
}

static bool unary_gives_bool(enum plain_unary op)
{
    return op == PLAIN_logical_not || op == PLAIN_isnan || op == PLAIN_isfinite;
}

enum verdict plain_unary(enum plain_unary op, const struct plain *x, struct plain *ret)
{
    const bool promotes = op < PLAIN_exp, gives_bool = unary_gives_bool(op);
    const grd_dtype dtype = gives_bool ? GRD_BOOL : promotes ? x->dtype : number_to_float(x->dtype);
    if (!gives_bool && (number_category(dtype) == COMPLEX || dtype == GRD_BOOL))
        return UNSURE;
    if (!plain_new(ret, dtype, x->ndim, x->sizes))
        return TOO_LARGE;
    plain_inherit(ret, x);
    for (int i = 0; i < x->n; i++) {
        const struct number *a = plain_at(x, i);
        struct number *y = plain_at(ret, i);
        double slope = 0;
        const bool floats = number_category(x->dtype) >= FLOATING;
        if (op == PLAIN_logical_not)
            y->i = !number_is_true(a, x->dtype);
        else if (op == PLAIN_isnan)
            y->i = floats && (isnan(a->re) || isnan(a->im));
        else if (op == PLAIN_isfinite)
            y->i = !floats || (isfinite(a->re) && isfinite(a->im));
        else if (number_category(dtype) == INTEGRAL ? !unary_integer(op, a, dtype, y)
                                                    : !unary_float(op, number_round(number_to_double(a, x->dtype), dtype), y, &slope))
            return UNSURE;
        else if (number_category(dtype) == FLOATING)
            number_add_slope(y, a, slope);
    }
    return VALID;
}

static bool binary_integer(enum plain_binary op, const struct number *x, const struct number *y, double alpha, struct number *z)
{
    const uint64_t a = (uint64_t)x->i, b = (uint64_t)y->i, factor = (uint64_t)(int64_t)alpha;
    switch (op) {
    case PLAIN_add:
        z->i = (int64_t)(a + factor * b);
        return true;
    case PLAIN_sub:
        z->i = (int64_t)(a - factor * b);
        return true;
    case PLAIN_mul:
        z->i = (int64_t)(a * b);
        return true;
    case PLAIN_maximum:
        z->i = x->i > y->i ? x->i : y->i;
        return true;
    case PLAIN_minimum:
        z->i = x->i < y->i ? x->i : y->i;
        return true;
    case PLAIN_bitwise_and:
        z->i = x->i & y->i;
        return true;
    case PLAIN_bitwise_or:
        z->i = x->i | y->i;
        return true;
    case PLAIN_bitwise_xor:
        z->i = x->i ^ y->i;
        return true;
    default:
        return false;
    }
}

static bool binary_float(enum plain_binary op, const struct number *x, const struct number *y, double alpha, struct number *z)
{
    const double a = x->re, b = y->re;
    double by_x = 0, by_y = 0;
    z->size = 0;
    switch (op) {
    case PLAIN_add:
        z->re = a + alpha * b, by_x = 1, by_y = alpha, z->size = fabs(a) + fabs(alpha * b);
        break;
    case PLAIN_sub:
        z->re = a - alpha * b, by_x = 1, by_y = -alpha, z->size = fabs(a) + fabs(alpha * b);
        break;
    case PLAIN_mul:
        z->re = a * b, by_x = b, by_y = a;
        break;
    case PLAIN_div:
        z->re = a / b, by_x = 1 / b, by_y = -a / b / b;
        break;
    case PLAIN_maximum:
        z->re = isnan(a) || isnan(b) ? NAN : a > b ? a : b, by_x = a == b ? 0.5 : a > b, by_y = 1 - by_x;
        break;
    case PLAIN_minimum:
        z->re = isnan(a) || isnan(b) ? NAN : a < b ? a : b, by_x = a == b ? 0.5 : a < b, by_y = 1 - by_x;
        break;
    case PLAIN_atan2:
        z->re = atan2(a, b), by_x = b / (a * a + b * b), by_y = -a / (a * a + b * b);
        break;
    default:
        return false;
    }
    number_add_slope(z, x, by_x);
    number_add_slope(z, y, by_y);
    return true;
}

static bool binary_complex(enum plain_binary op, const struct number *x, const struct number *y, double alpha, struct number *z)
{
    switch (op) {
    case PLAIN_add:
    case PLAIN_sub:
        alpha = op == PLAIN_add ? alpha : -alpha;
        z->re = x->re + alpha * y->re;
        z->im = x->im + alpha * y->im;
        z->size = fabs(x->re) + fabs(x->im) + fabs(alpha * y->re) + fabs(alpha * y->im);
        return true;
    case PLAIN_mul:
        z->re = x->re * y->re - x->im * y->im;
        z->im = x->re * y->im + x->im * y->re;
        z->size = (fabs(x->re) + fabs(x->im)) * (fabs(y->re) + fabs(y->im));
        return true;
    default:
        return false;
    }
}

static bool compare_numbers(enum plain_binary op, const struct number *x, const struct number *y, grd_dtype dtype, int64_t *ret)
{
    const bool integral = number_category(dtype) <= INTEGRAL;
    const bool less = integral ? x->i < y->i : x->re < y->re;
    const bool equal = integral ? x->i == y->i : x->re == y->re && x->im == y->im;
    const bool more = integral ? x->i > y->i : x->re > y->re;
    const bool a = number_is_true(x, dtype), b = number_is_true(y, dtype);
    switch (op) {
    case PLAIN_eq:
        *ret = equal;
        break;
    case PLAIN_ne:
        *ret = !equal;
        break;
    case PLAIN_lt:
        *ret = less;
        break;
    case PLAIN_le:
        *ret = less || equal;
        break;
    case PLAIN_gt:
        *ret = more;
        break;
    case PLAIN_ge:
        *ret = more || equal;
        break;
    case PLAIN_logical_and:
        *ret = a && b;
        break;
    case PLAIN_logical_or:
        *ret = a || b;
        break;
    case PLAIN_logical_xor:
        *ret = a != b;
        break;
    default:
        return false;
    }
    return number_category(dtype) != COMPLEX || op < PLAIN_lt || op > PLAIN_ge;
}

enum verdict plain_binary(enum plain_binary op, const struct plain *x, const struct plain *y, grd_dtype common, double alpha,
                          struct plain *ret)
{
    const bool compares = op >= PLAIN_eq && op <= PLAIN_logical_xor;
    const bool to_floats = op == PLAIN_div || op == PLAIN_atan2;
    int ndim;
    int64_t sizes[PLAIN_DIMS];
    if (!plain_broadcast((const struct plain *const[]){x, y}, 2, &ndim, sizes))
        return REFUSED;
    if (common == GRD_DTYPE_NONE)
        return UNSURE;
    const grd_dtype compute = to_floats ? number_to_float(common) : common;
    const enum category category = number_category(compute);
    if (category == BOOLEAN && !compares)
        return UNSURE;
    if (!plain_new(ret, compares ? GRD_BOOL : compute, ndim, sizes))
        return TOO_LARGE;
    plain_inherit(ret, x);
    plain_inherit(ret, y);
    for (int i = 0; i < ret->n; i++) {
        struct number a, b, *z = plain_at(ret, i);
        if (!number_convert(plain_at(x, plain_broadcast_place(x, ret, i)), x->dtype, compute, &a) ||
            !number_convert(plain_at(y, plain_broadcast_place(y, ret, i)), y->dtype, compute, &b))
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

enum verdict plain_where(const struct plain *c, const struct plain *x, const struct plain *y, grd_dtype common, struct plain *ret)
{
    int ndim;
    int64_t sizes[PLAIN_DIMS];
    if ((c->dtype != GRD_BOOL && c->dtype != GRD_UINT8) || !plain_broadcast((const struct plain *const[]){c, x, y}, 3, &ndim, sizes))
        return REFUSED;
    if (common == GRD_DTYPE_NONE)
        return UNSURE;
    if (!plain_new(ret, common, ndim, sizes))
        return TOO_LARGE;
    plain_inherit(ret, x);
    plain_inherit(ret, y);
    for (int i = 0; i < ret->n; i++) {
        const struct plain *chosen = plain_at(c, plain_broadcast_place(c, ret, i))->i ? x : y;
        if (!number_convert(plain_at(chosen, plain_broadcast_place(chosen, ret, i)), chosen->dtype, common, plain_at(ret, i)))
            return UNSURE;
    }
    return VALID;
}

enum verdict plain_convert(const struct plain *x, grd_dtype dtype, struct plain *ret)
{
    if (!plain_new(ret, dtype, x->ndim, x->sizes))
        return TOO_LARGE;
    bool defined = true;
    for (int i = 0; i < x->n; i++)
        defined &= number_convert(plain_at(x, i), x->dtype, dtype, plain_at(ret, i));
    plain_inherit(ret, x);
    return defined ? VALID : UNSURE;
}

bool plain_write(struct plain *p, const struct plain *x)
{
    struct number values[PLAIN_CELLS];
    if (x->ndim > p->ndim)
        return false;
    for (int k = 0; k < x->ndim; k++)
        if (x->sizes[k] != 1 && x->sizes[k] != p->sizes[k + p->ndim - x->ndim])
            return false;
    for (int i = 0; i < p->n; i++)
        number_convert(plain_at(x, plain_broadcast_place(x, p, i)), x->dtype, p->dtype, &values[i]);
    for (int i = 0; i < p->n; i++)
        *plain_at(p, i) = values[i];
    p->memory->lost |= x->memory->lost;
    return true;
}
