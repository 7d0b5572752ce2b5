/* See plain.h. */
#include "plain.h"

#include <math.h>

enum { MEMORIES = 64 };

static struct memory memories[MEMORIES];
static int memories_used;

/* ---- Tensors ----------------------------------------------------------------------------------------------------------------------- */

enum category { BOOLEAN, INTEGRAL, FLOATING, COMPLEX };

static enum category category_of(grd_dtype dtype)
{
    return dtype == GRD_BOOL ? BOOLEAN : grd_dtype_is_integer(dtype) ? INTEGRAL : grd_dtype_is_floating(dtype) ? FLOATING : COMPLEX;
}

void plain_reset(void)
{
    memories_used = 0;
}

static int64_t count(int ndim, const int64_t *sizes)
{
    int64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n = n <= PLAIN_CELLS ? n * sizes[i] : n;
    return n;
}

bool plain_new(struct plain *p, grd_dtype dtype, int ndim, const int64_t *sizes)
{
    if (ndim > PLAIN_DIMS || count(ndim, sizes) > PLAIN_CELLS || memories_used == MEMORIES)
        return false;
    *p = (struct plain){.dtype = dtype, .ndim = ndim, .n = (int)count(ndim, sizes), .memory = &memories[memories_used++]};
    memset(p->memory, 0, sizeof *p->memory);
    for (int i = 0; i < ndim; i++)
        p->sizes[i] = sizes[i];
    for (int i = 0; i < p->n; i++)
        p->at[i] = i;
    return true;
}

struct number *plain_at(const struct plain *p, int i)
{
    return &p->memory->cells[p->at[i]];
}

struct values {
    int64_t i[PLAIN_CELLS];
    double f[2 * PLAIN_CELLS];
};

static void read_values(grd_tensor *t, enum category category, struct values *ret)
{
    if (category <= INTEGRAL)
        grd_to_memory(t, ret->i, GRD_INT64);
    else
        grd_to_memory(t, ret->f, category == COMPLEX ? GRD_COMPLEX128 : GRD_FLOAT64);
}

void plain_read(struct plain *p, grd_tensor *t)
{
    struct values values;
    const enum category category = category_of(p->dtype);
    read_values(t, category, &values);
    for (int i = 0; i < p->n; i++) {
        struct number *x = plain_at(p, i);
        x->i = category <= INTEGRAL ? values.i[i] : 0;
        x->re = category == FLOATING ? values.f[i] : category == COMPLEX ? values.f[2 * i] : 0;
        x->im = category == COMPLEX ? values.f[2 * i + 1] : 0;
        bool finite = isfinite(x->re) && fabs(x->re) < 1e6;
        for (int k = 0; k < PLAIN_TRACKED; k++)
            finite &= fabs(x->d[k]) < 1e6;
        p->memory->lost |= !finite && category >= FLOATING;
    }
}

static bool same_shape(const struct plain *p, grd_tensor *t)
{
    const grd_dims sizes = grd_sizes(t);
    return sizes.n == p->ndim && memcmp(sizes.data, p->sizes, (size_t)p->ndim * sizeof *p->sizes) == 0 && grd_tensor_dtype(t) == p->dtype;
}

static bool same_double(double a, double b)
{
    return a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b);
}

bool plain_equals(const struct plain *p, grd_tensor *t)
{
    if (!same_shape(p, t))
        return false;
    struct values values;
    const enum category category = category_of(p->dtype);
    read_values(t, category, &values);
    for (int i = 0; i < p->n; i++) {
        const struct number *x = plain_at(p, i);
        if (category <= INTEGRAL   ? x->i != values.i[i]
            : category == FLOATING ? !same_double(x->re, values.f[i])
                                   : !same_double(x->re, values.f[2 * i]) || !same_double(x->im, values.f[2 * i + 1]))
            return false;
    }
    return true;
}

static double epsilon_of(grd_dtype dtype)
{
    return dtype == GRD_FLOAT16                             ? 9.8e-4
           : dtype == GRD_BFLOAT16                          ? 7.9e-3
           : dtype == GRD_FLOAT32 || dtype == GRD_COMPLEX64 ? 1.2e-7
                                                            : 2.3e-16;
}

static double largest_of(grd_dtype dtype)
{
    return dtype == GRD_FLOAT16 ? 65504 : dtype == GRD_FLOAT64 || dtype == GRD_COMPLEX128 ? 1.7e308 : 3.3e38;
}

/* Beyond the range of the dtype only that it is large, or not a number, is known. */
static bool near(double got, double wanted, double tolerance, double largest)
{
    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got);
    if (fabs(wanted) > largest * 0.99)
        return fabs(got) > largest * 0.9 && signbit(got) == signbit(wanted);
    return fabs(got - wanted) <= tolerance;
}

bool plain_near(const struct plain *p, grd_tensor *t, double ulps, grd_dtype computed_in)
{
    if (!same_shape(p, t))
        return false;
    struct values values;
    const enum category category = category_of(p->dtype);
    const double eps = fmax(epsilon_of(p->dtype), epsilon_of(computed_in)), largest = largest_of(p->dtype),
                 smallest = p->dtype == GRD_FLOAT16 ? 6e-8 : 1e-37;
    read_values(t, category, &values);
    for (int i = 0; i < p->n; i++) {
        const struct number *x = plain_at(p, i);
        const double tolerance = ulps * eps * fmax(x->size, fabs(x->re) + fabs(x->im)) + smallest;
        /* The parts of a complex number run into infinity together; intermediate sums may do so before the result. */
        const bool unknown = x->size > largest * 0.1 || (category == COMPLEX && !(isfinite(x->re) && isfinite(x->im)));
        if (category <= INTEGRAL ? x->i != values.i[i]
            : unknown            ? false
            : category == FLOATING
                ? !near(values.f[i], x->re, tolerance, largest)
                : !near(values.f[2 * i], x->re, tolerance, largest) || !near(values.f[2 * i + 1], x->im, tolerance, largest)) {
            fprintf(stderr, "element %d: got %.17g %.17g %lld, wanted %.17g %.17g %lld, size %g\n", i,
                    values.f[category == COMPLEX ? 2 * i : i], category == COMPLEX ? values.f[2 * i + 1] : 0,
                    category <= INTEGRAL ? (long long)values.i[i] : 0, x->re, x->im, (long long)x->i, x->size);
            return false;
        }
    }
    return true;
}

bool plain_overlaps_itself(const struct plain *p)
{
    bool seen[PLAIN_CELLS] = {false};
    for (int i = 0; i < p->n; i++) {
        if (seen[p->at[i]])
            return true;
        seen[p->at[i]] = true;
    }
    return false;
}

static int split_index(const struct plain *p, int place, int64_t *ret_index)
{
    for (int i = p->ndim - 1; i >= 0; i--) {
        ret_index[i] = place % p->sizes[i];
        place /= (int)p->sizes[i];
    }
    return place;
}

static int join_index(const struct plain *p, const int64_t *index)
{
    int64_t place = 0;
    for (int i = 0; i < p->ndim; i++)
        place = place * p->sizes[i] + index[i];
    return (int)place;
}

/* The element of x that stands at place i of `shape`, to which x is broadcast. */
static int broadcast_place(const struct plain *x, const struct plain *shape, int i)
{
    int64_t index[PLAIN_DIMS], own[PLAIN_DIMS];
    split_index(shape, i, index);
    for (int k = 0; k < x->ndim; k++)
        own[k] = x->sizes[k] == 1 ? 0 : index[k + shape->ndim - x->ndim];
    return join_index(x, own);
}

bool plain_overlaps(const struct plain *p, const struct plain *q)
{
    if (p->memory != q->memory)
        return false;
    bool same = true, shared = false;
    for (int i = 0; i < p->n; i++) {
        for (int k = 0; k < q->n; k++)
            shared |= p->at[i] == q->at[k];
        same &= q->n > 0 && q->ndim <= p->ndim && p->at[i] == q->at[broadcast_place(q, p, i)];
    }
    return shared && !same;
}

/* False when the shapes do not broadcast or are too many. */
static bool broadcast(const struct plain *const *inputs, int n, int *ret_ndim, int64_t *ret_sizes)
{
    int ndim = 0;
    for (int k = 0; k < n; k++)
        ndim = inputs[k]->ndim > ndim ? inputs[k]->ndim : ndim;
    for (int i = 0; i < ndim; i++) {
        int64_t size = 1;
        for (int k = 0; k < n; k++) {
            const int own = i - (ndim - inputs[k]->ndim);
            const int64_t present = own < 0 ? 1 : inputs[k]->sizes[own];
            if (present != 1 && size != 1 && present != size)
                return false;
            size = present != 1 ? present : size;
        }
        ret_sizes[i] = size;
    }
    *ret_ndim = ndim;
    return true;
}

/* ---- Numbers -------------------------------------------------------------------------------------------------------------------------- */

static int64_t wrap(int64_t i, grd_dtype dtype)
{
    switch (dtype) {
    case GRD_UINT8:
        return (uint8_t)i;
    case GRD_INT8:
        return (int8_t)i;
    case GRD_INT16:
        return (int16_t)i;
    case GRD_INT32:
        return (int32_t)i;
    default:
        return i;
    }
}

static double to_double(const struct number *x, grd_dtype dtype)
{
    return category_of(dtype) <= INTEGRAL ? (double)x->i : x->re;
}

static bool is_true(const struct number *x, grd_dtype dtype)
{
    return category_of(dtype) <= INTEGRAL ? x->i != 0 : x->re != 0 || x->im != 0;
}

/* What a float16 holds of a double, or the dtype of another float. */
static double round_to(double x, grd_dtype dtype)
{
    if (dtype == GRD_FLOAT32 || dtype == GRD_COMPLEX64)
        return (float)x;
    if (dtype != GRD_FLOAT16 && dtype != GRD_BFLOAT16)
        return x;
    if (!isfinite(x) || x == 0)
        return x;
    int exponent;
    frexp(x, &exponent);
    const int bits = dtype == GRD_FLOAT16 ? 11 : 8, lowest = dtype == GRD_FLOAT16 ? -13 : -125;
    const double unit = ldexp(1, (exponent < lowest ? lowest : exponent) - bits), rounded = rint(x / unit) * unit;
    return fabs(rounded) > (dtype == GRD_FLOAT16 ? 65504 : 3.3895313892515355e38) ? copysign(INFINITY, x) : rounded;
}

/* False where the value is undefined: a float outside the integers. */
static bool convert(const struct number *x, grd_dtype from, grd_dtype to, struct number *ret)
{
    const enum category source = category_of(from), target = category_of(to);
    struct number y = {.size = x->size};
    bool defined = true;
    if (target == BOOLEAN) {
        y.i = is_true(x, from);
    } else if (target == INTEGRAL) {
        defined = source <= INTEGRAL || fabs(x->re) < 127;
        y.i = source <= INTEGRAL ? wrap(x->i, to) : defined ? wrap((int64_t)x->re, to) : 0;
        defined &= source <= INTEGRAL || x->re >= 0 || to != GRD_UINT8;
    } else {
        y.re = round_to(to_double(x, from), to);
        y.im = target == COMPLEX ? round_to(x->im, to) : 0;
        if (source == FLOATING && target == FLOATING)
            memcpy(y.d, x->d, sizeof y.d);
    }
    *ret = y;
    return defined;
}

static grd_dtype to_float(grd_dtype dtype)
{
    return category_of(dtype) <= INTEGRAL ? grd_default_dtype() : dtype;
}

/* Results in less than float64 have no exact derivative; nor has what comes from a tensor without one. */
static void inherit(struct plain *ret, const struct plain *x)
{
    const bool precise = ret->dtype == GRD_FLOAT64 && (x->dtype == GRD_FLOAT64 || category_of(x->dtype) <= INTEGRAL);
    ret->memory->lost |= x->memory->lost || (category_of(ret->dtype) >= FLOATING && !precise);
}

/* y = f(...) with dy = slope * dx added. */
static void add_slope(struct number *y, const struct number *x, double slope)
{
    for (int k = 0; k < PLAIN_TRACKED; k++)
        if (x->d[k] != 0)
            y->d[k] += slope * x->d[k];
}

/* ---- Elementwise -------------------------------------------------------------------------------------------------------------------------- */

static bool unary_integer(enum plain_unary op, const struct number *x, grd_dtype dtype, struct number *y)
{
    const uint64_t bits = (uint64_t)x->i;
    switch (op) {
    case PLAIN_neg:
        y->i = wrap((int64_t)-bits, dtype);
        return true;
    case PLAIN_abs:
        y->i = wrap((int64_t)(x->i < 0 ? -bits : bits), dtype);
        return true;
    case PLAIN_square:
        y->i = wrap((int64_t)(bits * bits), dtype);
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
    const grd_dtype dtype = gives_bool ? GRD_BOOL : promotes ? x->dtype : to_float(x->dtype);
    if (!gives_bool && (category_of(dtype) == COMPLEX || dtype == GRD_BOOL))
        return UNSURE;
    if (!plain_new(ret, dtype, x->ndim, x->sizes))
        return TOO_LARGE;
    inherit(ret, x);
    for (int i = 0; i < x->n; i++) {
        const struct number *a = plain_at(x, i);
        struct number *y = plain_at(ret, i);
        double slope = 0;
        const bool floats = category_of(x->dtype) >= FLOATING;
        if (op == PLAIN_logical_not)
            y->i = !is_true(a, x->dtype);
        else if (op == PLAIN_isnan)
            y->i = floats && (isnan(a->re) || isnan(a->im));
        else if (op == PLAIN_isfinite)
            y->i = !floats || (isfinite(a->re) && isfinite(a->im));
        else if (category_of(dtype) == INTEGRAL ? !unary_integer(op, a, dtype, y)
                                                : !unary_float(op, round_to(to_double(a, x->dtype), dtype), y, &slope))
            return UNSURE;
        else if (category_of(dtype) == FLOATING)
            add_slope(y, a, slope);
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
    add_slope(z, x, by_x);
    add_slope(z, y, by_y);
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
    const bool integral = category_of(dtype) <= INTEGRAL;
    const bool less = integral ? x->i < y->i : x->re < y->re;
    const bool equal = integral ? x->i == y->i : x->re == y->re && x->im == y->im;
    const bool more = integral ? x->i > y->i : x->re > y->re;
    const bool a = is_true(x, dtype), b = is_true(y, dtype);
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
    return category_of(dtype) != COMPLEX || op < PLAIN_lt || op > PLAIN_ge;
}

enum verdict plain_binary(enum plain_binary op, const struct plain *x, const struct plain *y, grd_dtype common, double alpha,
                          struct plain *ret)
{
    const bool compares = op >= PLAIN_eq && op <= PLAIN_logical_xor;
    const bool to_floats = op == PLAIN_div || op == PLAIN_atan2;
    int ndim;
    int64_t sizes[PLAIN_DIMS];
    if (!broadcast((const struct plain *const[]){x, y}, 2, &ndim, sizes))
        return REFUSED;
    if (common == GRD_DTYPE_NONE)
        return UNSURE;
    const grd_dtype compute = to_floats ? to_float(common) : common;
    const enum category category = category_of(compute);
    if (category == BOOLEAN && !compares)
        return UNSURE;
    if (!plain_new(ret, compares ? GRD_BOOL : compute, ndim, sizes))
        return TOO_LARGE;
    inherit(ret, x);
    inherit(ret, y);
    for (int i = 0; i < ret->n; i++) {
        struct number a, b, *z = plain_at(ret, i);
        if (!convert(plain_at(x, broadcast_place(x, ret, i)), x->dtype, compute, &a) ||
            !convert(plain_at(y, broadcast_place(y, ret, i)), y->dtype, compute, &b))
            return UNSURE;
        const bool known = compares               ? compare_numbers(op, &a, &b, compute, &z->i)
                           : category == INTEGRAL ? binary_integer(op, &a, &b, alpha, z)
                           : category == FLOATING ? binary_float(op, &a, &b, alpha, z)
                                                  : binary_complex(op, &a, &b, alpha, z);
        if (!known)
            return UNSURE;
        z->i = compares ? z->i : wrap(z->i, compute);
    }
    return VALID;
}

enum verdict plain_where(const struct plain *c, const struct plain *x, const struct plain *y, grd_dtype common, struct plain *ret)
{
    int ndim;
    int64_t sizes[PLAIN_DIMS];
    if ((c->dtype != GRD_BOOL && c->dtype != GRD_UINT8) || !broadcast((const struct plain *const[]){c, x, y}, 3, &ndim, sizes))
        return REFUSED;
    if (common == GRD_DTYPE_NONE)
        return UNSURE;
    if (!plain_new(ret, common, ndim, sizes))
        return TOO_LARGE;
    inherit(ret, x);
    inherit(ret, y);
    for (int i = 0; i < ret->n; i++) {
        const struct plain *chosen = plain_at(c, broadcast_place(c, ret, i))->i ? x : y;
        if (!convert(plain_at(chosen, broadcast_place(chosen, ret, i)), chosen->dtype, common, plain_at(ret, i)))
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
        defined &= convert(plain_at(x, i), x->dtype, dtype, plain_at(ret, i));
    inherit(ret, x);
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
        convert(plain_at(x, broadcast_place(x, p, i)), x->dtype, p->dtype, &values[i]);
    for (int i = 0; i < p->n; i++)
        *plain_at(p, i) = values[i];
    p->memory->lost |= x->memory->lost;
    return true;
}

/* ---- Reductions ------------------------------------------------------------------------------------------------------------------------------ */

/* The elements that are reduced into one, in row-major order. */
struct group {
    int n;
    const struct number *x[PLAIN_CELLS];
};

static grd_dtype sum_dtype(grd_dtype dtype)
{
    return category_of(dtype) <= INTEGRAL ? GRD_INT64 : dtype;
}

static bool reduce_integers(enum plain_reduction op, const struct group *g, struct number *y)
{
    for (int i = 0; i < g->n; i++) {
        const int64_t x = g->x[i]->i;
        if (op == PLAIN_sum)
            y->i = (int64_t)((uint64_t)y->i + (uint64_t)x);
        else if (op == PLAIN_amax)
            y->i = i == 0 || x > y->i ? x : y->i;
        else if (op == PLAIN_amin)
            y->i = i == 0 || x < y->i ? x : y->i;
        else
            return false;
    }
    return op == PLAIN_sum || op == PLAIN_amax || op == PLAIN_amin;
}

static void add_up(const struct group *g, struct number *y)
{
    for (int i = 0; i < g->n; i++) {
        y->re += g->x[i]->re;
        y->im += g->x[i]->im;
        y->size += fabs(g->x[i]->re) + fabs(g->x[i]->im);
        add_slope(y, g->x[i], 1);
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
            add_slope(y, g->x[i], 1.0 / ties);
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
        add_slope(y, g->x[i], 2 * difference / left);
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
        add_slope(y, g->x[i], exp(g->x[i]->re - y->re));
}

static bool reduce_floats(enum plain_reduction op, const struct group *g, struct number *y)
{
    switch (op) {
    case PLAIN_sum:
        add_up(g, y);
        return true;
    case PLAIN_mean:
        add_up(g, y);
        y->re /= g->n;
        y->im /= g->n;
        y->size = g->n > 0 ? y->size / g->n : 0;
        for (int k = 0; k < PLAIN_TRACKED; k++)
            y->d[k] = g->n > 0 ? y->d[k] / g->n : 0;
        return true;
    case PLAIN_amax:
    case PLAIN_amin:
        find_extreme(g, op == PLAIN_amax ? 1 : -1, y);
        return true;
    case PLAIN_var:
        find_variance(g, y);
        return true;
    case PLAIN_logsumexp:
        find_logsumexp(g, y);
        return true;
    default:
        return false;
    }
}

static void reduce_truth(enum plain_reduction op, const struct group *g, grd_dtype dtype, struct number *y)
{
    y->i = op == PLAIN_all;
    for (int i = 0; i < g->n; i++) {
        const bool holds = is_true(g->x[i], dtype);
        y->i = op == PLAIN_any ? y->i || holds : op == PLAIN_all ? y->i && holds : y->i + holds;
    }
}

enum verdict plain_reduce(enum plain_reduction op, const struct plain *x, unsigned dims, bool keepdim, struct plain *ret)
{
    const enum category category = category_of(x->dtype);
    const bool truth = op == PLAIN_any || op == PLAIN_all || op == PLAIN_count_nonzero;
    int64_t sizes[PLAIN_DIMS];
    int ndim = 0;
    for (int i = 0; i < x->ndim; i++)
        if (!(dims >> i & 1))
            sizes[ndim++] = x->sizes[i];
        else if (keepdim)
            sizes[ndim++] = 1;
    const grd_dtype dtype = op == PLAIN_count_nonzero ? GRD_INT64
                            : truth                   ? (x->dtype == GRD_UINT8 ? GRD_UINT8 : GRD_BOOL)
                            : op == PLAIN_sum         ? sum_dtype(x->dtype)
                            : op == PLAIN_logsumexp   ? to_float(x->dtype)
                                                      : x->dtype;
    if ((category == COMPLEX && op != PLAIN_sum && op != PLAIN_mean && !truth) || (category == BOOLEAN && !truth && op != PLAIN_sum) ||
        (category <= INTEGRAL && op == PLAIN_logsumexp))
        return UNSURE;
    if ((op == PLAIN_mean || op == PLAIN_var) && category <= INTEGRAL)
        return REFUSED;
    if (!plain_new(ret, dtype, ndim, sizes))
        return TOO_LARGE;
    inherit(ret, x);
    int length = 1;
    for (int i = 0; i < x->ndim; i++)
        length *= dims >> i & 1 ? (int)x->sizes[i] : 1;
    if (length == 0 && (op == PLAIN_amax || op == PLAIN_amin))
        return UNSURE;
    for (int i = 0; i < ret->n; i++) {
        struct group g = {0};
        for (int k = 0; k < x->n; k++) {
            int64_t index[PLAIN_DIMS], own[PLAIN_DIMS];
            int n = 0;
            split_index(x, k, index);
            for (int d = 0; d < x->ndim; d++)
                if (!(dims >> d & 1))
                    own[n++] = index[d];
                else if (keepdim)
                    own[n++] = 0;
            if (join_index(ret, own) == i)
                g.x[g.n++] = plain_at(x, k);
        }
        struct number *y = plain_at(ret, i);
        if (truth)
            reduce_truth(op, &g, x->dtype, y);
        else if (category <= INTEGRAL ? !reduce_integers(op, &g, y) : !reduce_floats(op, &g, y))
            return UNSURE;
    }
    return VALID;
}

/* ---- Along one dimension ------------------------------------------------------------------------------------------------------------------------ */

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
        for (int k = 0; k < PLAIN_TRACKED && !integral; k++)
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
        sum += exp(g->x[i]->re - largest); /* NaN where the largest is infinite */
    const double shifted = g->x[place]->re - largest;
    y->re = logarithm ? shifted - log(sum) : exp(shifted) / sum;
    y->size = logarithm ? fabs(g->x[place]->re) + fabs(largest) + 1 : 1;
    for (int i = 0; i < g->n; i++) {
        const double share = exp(g->x[i]->re - largest) / sum;
        add_slope(y, g->x[i], logarithm ? (i == place) - share : y->re * ((i == place) - share));
    }
}

static int find_place(const struct group *g, grd_dtype dtype, double sign)
{
    int best = 0;
    for (int i = 1; i < g->n; i++) {
        const double x = to_double(g->x[i], dtype), y = to_double(g->x[best], dtype);
        if (!isnan(y) && (isnan(x) || x * sign > y * sign))
            best = i;
    }
    return best;
}

static bool along_value(enum plain_along op, const struct group *g, int place, const struct plain *x, struct number *y)
{
    const bool integral = category_of(x->dtype) <= INTEGRAL;
    struct group first = *g;
    first.n = place + 1;
    switch (op) {
    case PLAIN_cumsum:
        return integral ? reduce_integers(PLAIN_sum, &first, y) : reduce_floats(PLAIN_sum, &first, y);
    case PLAIN_cumprod:
        multiply_up(g, place + 1, integral, y);
        return true;
    case PLAIN_prod:
        multiply_up(g, g->n, integral, y);
        return true;
    case PLAIN_softmax:
    case PLAIN_log_softmax:
        find_softmax(g, place, op == PLAIN_log_softmax, y);
        return true;
    case PLAIN_argmax:
    case PLAIN_argmin:
        y->i = find_place(g, x->dtype, op == PLAIN_argmax ? 1 : -1);
        return true;
    default:
        return false;
    }
}

enum verdict plain_along(enum plain_along op, const struct plain *x, int dim, struct plain *ret)
{
    const enum category category = category_of(x->dtype);
    const bool keeps = op < PLAIN_prod, softmax = op == PLAIN_softmax || op == PLAIN_log_softmax, finds = op >= PLAIN_argmax;
    if ((softmax && category != FLOATING) || (finds && (category == COMPLEX || category == BOOLEAN)))
        return REFUSED;
    struct plain shape = *x;
    if (!keeps && x->ndim > 0) {
        shape.ndim--;
        for (int i = dim; i < shape.ndim; i++)
            shape.sizes[i] = x->sizes[i + 1];
    }
    if (!plain_new(ret, finds ? GRD_INT64 : softmax ? x->dtype : sum_dtype(x->dtype), shape.ndim, shape.sizes))
        return TOO_LARGE;
    inherit(ret, x);
    const int64_t length = x->ndim > 0 ? x->sizes[dim] : 1;
    if (finds && length == 0)
        return UNSURE;
    for (int i = 0; i < ret->n; i++) {
        int64_t index[PLAIN_DIMS] = {0}, source[PLAIN_DIMS] = {0};
        split_index(ret, i, index);
        for (int d = 0, next = 0; d < x->ndim; d++)
            source[d] = keeps || d != dim ? index[next++] : 0;
        const int place = keeps && x->ndim > 0 ? (int)index[dim] : 0;
        struct group g = {0};
        for (int64_t k = 0; k < length; k++) {
            if (x->ndim > 0)
                source[dim] = k;
            g.x[g.n++] = plain_at(x, join_index(x, source));
        }
        if (!along_value(op, &g, place, x, plain_at(ret, i)))
            return UNSURE;
    }
    return VALID;
}

/* ---- Products -------------------------------------------------------------------------------------------------------------------------------- */

/* Sizes of x as a stack of matrices, a vector becoming a row or a column. */
static struct plain as_matrices(const struct plain *x, bool row)
{
    struct plain m = *x;
    if (x->ndim == 1) {
        m.ndim = 2;
        m.sizes[0] = row ? 1 : x->sizes[0];
        m.sizes[1] = row ? x->sizes[0] : 1;
    }
    return m;
}

enum verdict plain_matmul(const struct plain *x, const struct plain *y, struct plain *ret)
{
    if (x->ndim == 0 || y->ndim == 0 || x->dtype != y->dtype)
        return REFUSED;
    if (x->dtype == GRD_BOOL)
        return UNSURE;
    const struct plain a = as_matrices(x, true), b = as_matrices(y, false);
    struct plain left = a, right = b;
    left.ndim -= 2;
    right.ndim -= 2;
    int ndim;
    int64_t sizes[PLAIN_DIMS + 2];
    const int64_t rows = a.sizes[a.ndim - 2], inner = a.sizes[a.ndim - 1], columns = b.sizes[b.ndim - 1];
    if (inner != b.sizes[b.ndim - 2] || !broadcast((const struct plain *const[]){&left, &right}, 2, &ndim, sizes))
        return REFUSED;
    struct plain full;
    sizes[ndim] = rows;
    sizes[ndim + 1] = columns;
    if (!plain_new(&full, x->dtype, ndim + 2, sizes))
        return TOO_LARGE;
    inherit(&full, x);
    inherit(&full, y);
    const enum category category = category_of(x->dtype);
    for (int i = 0; i < full.n; i++) {
        int64_t index[PLAIN_DIMS], in_a[PLAIN_DIMS], in_b[PLAIN_DIMS];
        struct number *z = plain_at(&full, i);
        split_index(&full, i, index);
        for (int d = 0; d < left.ndim; d++)
            in_a[d] = left.sizes[d] == 1 ? 0 : index[d + ndim - left.ndim];
        for (int d = 0; d < right.ndim; d++)
            in_b[d] = right.sizes[d] == 1 ? 0 : index[d + ndim - right.ndim];
        in_a[left.ndim] = index[ndim];
        in_b[right.ndim + 1] = index[ndim + 1];
        for (int64_t k = 0; k < inner; k++) {
            in_a[left.ndim + 1] = k;
            in_b[right.ndim] = k;
            const struct number *p = plain_at(&a, join_index(&a, in_a)), *q = plain_at(&b, join_index(&b, in_b));
            z->i = (int64_t)((uint64_t)z->i + (uint64_t)p->i * (uint64_t)q->i);
            z->re += p->re * q->re - p->im * q->im;
            z->im += p->re * q->im + p->im * q->re;
            z->size += (fabs(p->re) + fabs(p->im)) * (fabs(q->re) + fabs(q->im));
            add_slope(z, p, q->re);
            add_slope(z, q, p->re);
        }
        z->i = category == INTEGRAL ? wrap(z->i, x->dtype) : 0;
    }
    *ret = full;
    ret->ndim = 0;
    for (int d = 0; d < full.ndim; d++)
        if (!(d == ndim && x->ndim == 1) && !(d == ndim + 1 && y->ndim == 1))
            ret->sizes[ret->ndim++] = full.sizes[d];
    return VALID;
}

/* ---- Indices ---------------------------------------------------------------------------------------------------------------------------------- */

static int64_t size_along(const struct plain *x, int dim)
{
    return x->ndim > 0 ? x->sizes[dim] : 1;
}

static bool all_inside(const struct plain *at, int64_t size)
{
    for (int i = 0; i < at->n; i++)
        if (plain_at(at, i)->i < 0 || plain_at(at, i)->i >= size)
            return false;
    return true;
}

static bool is_index(const struct plain *at)
{
    return at->dtype == GRD_INT64 || at->dtype == GRD_INT32;
}

/* The place in x that element i of `at` names along dim. */
static int named_place(const struct plain *x, int dim, const struct plain *at, int i)
{
    int64_t index[PLAIN_DIMS];
    split_index(at, i, index);
    if (x->ndim > 0)
        index[dim] = plain_at(at, i)->i;
    return join_index(x, index);
}

/* Along `dim` any size will do; -1: along none. */
static bool index_fits(int dim, const struct plain *at, const struct plain *bound)
{
    if (bound->ndim != at->ndim && at->n > 0)
        return false;
    for (int d = 0; d < at->ndim && d < bound->ndim; d++)
        if (at->sizes[d] > bound->sizes[d] && d != dim)
            return false;
    return true;
}

enum verdict plain_gather(const struct plain *x, int dim, const struct plain *at, struct plain *ret)
{
    if (!is_index(at))
        return REFUSED;
    if (at->ndim != x->ndim || at->n == 0 || x->n == 0)
        return UNSURE;
    if (!index_fits(dim, at, x) || !all_inside(at, size_along(x, dim)))
        return REFUSED;
    if (!plain_new(ret, x->dtype, at->ndim, at->sizes))
        return TOO_LARGE;
    inherit(ret, x);
    for (int i = 0; i < at->n; i++)
        *plain_at(ret, i) = *plain_at(x, named_place(x, dim, at, i));
    return VALID;
}

enum verdict plain_index_select(const struct plain *x, int dim, const struct plain *at, struct plain *ret)
{
    if (!is_index(at) || at->ndim > 1)
        return REFUSED;
    if (x->ndim == 0 || at->ndim == 0)
        return UNSURE;
    if (!all_inside(at, x->sizes[dim]))
        return REFUSED;
    struct plain shape = *x;
    shape.sizes[dim] = at->n;
    if (!plain_new(ret, x->dtype, shape.ndim, shape.sizes))
        return TOO_LARGE;
    inherit(ret, x);
    for (int i = 0; i < ret->n; i++) {
        int64_t index[PLAIN_DIMS];
        split_index(ret, i, index);
        index[dim] = plain_at(at, (int)index[dim])->i;
        *plain_at(ret, i) = *plain_at(x, join_index(x, index));
    }
    return VALID;
}

enum verdict plain_scatter(const struct plain *x, int dim, const struct plain *at, const struct plain *source, bool add, struct plain *ret)
{
    if (!is_index(at) || source->dtype != x->dtype)
        return REFUSED;
    if (at->ndim != x->ndim || source->ndim != x->ndim || at->n == 0 || x->n == 0 || x->dtype == GRD_BOOL)
        return UNSURE;
    if (!index_fits(dim, at, x) || !index_fits(-1, at, source) || !all_inside(at, size_along(x, dim)))
        return REFUSED;
    if (!plain_new(ret, x->dtype, x->ndim, x->sizes))
        return TOO_LARGE;
    inherit(ret, x);
    inherit(ret, source);
    for (int i = 0; i < x->n; i++)
        *plain_at(ret, i) = *plain_at(x, i);
    bool named[PLAIN_CELLS] = {false}, twice = false;
    for (int i = 0; i < at->n; i++) {
        int64_t index[PLAIN_DIMS];
        split_index(at, i, index);
        const int place = named_place(x, dim, at, i);
        const struct number *s = plain_at(source, join_index(source, index));
        struct number *y = plain_at(ret, place);
        twice |= named[place];
        named[place] = true;
        if (!add) {
            *y = *s;
            continue;
        }
        y->i = wrap((int64_t)((uint64_t)y->i + (uint64_t)s->i), x->dtype);
        y->size = fmax(y->size, fabs(y->re) + fabs(y->im)) + fabs(s->re) + fabs(s->im);
        y->re += s->re;
        y->im += s->im;
        add_slope(y, s, 1);
    }
    /* Of several values for one element the last stays, but the gradient of all is that of the last: not defined. */
    ret->memory->lost |= twice && !add;
    return VALID;
}

enum verdict plain_cat(const struct plain *const *parts, int n, int dim, grd_dtype common, struct plain *ret)
{
    struct plain shape = *parts[0];
    for (int k = 0; k < n; k++)
        if (parts[k]->ndim == 0)
            return REFUSED;
    if (common == GRD_DTYPE_NONE)
        return UNSURE;
    for (int k = 0; k < n; k++)
        if (parts[k]->ndim == 1 && parts[k]->n == 0) /* left out, whatever the others are */
            return UNSURE;
    if (dim < 0)
        return REFUSED;
    for (int k = 1; k < n; k++) {
        if (parts[k]->ndim != shape.ndim)
            return REFUSED;
        for (int d = 0; d < shape.ndim; d++)
            if (d != dim && parts[k]->sizes[d] != shape.sizes[d])
                return REFUSED;
    }
    shape.sizes[dim] = 0;
    for (int k = 0; k < n; k++)
        shape.sizes[dim] += parts[k]->sizes[dim];
    if (!plain_new(ret, common, shape.ndim, shape.sizes))
        return TOO_LARGE;
    int64_t start = 0;
    for (int k = 0; k < n; k++) {
        inherit(ret, parts[k]);
        for (int i = 0; i < parts[k]->n; i++) {
            int64_t index[PLAIN_DIMS];
            split_index(parts[k], i, index);
            index[dim] += start;
            if (!convert(plain_at(parts[k], i), parts[k]->dtype, common, plain_at(ret, join_index(ret, index))))
                return UNSURE;
        }
        start += parts[k]->sizes[dim];
    }
    return VALID;
}

/* ---- Views ------------------------------------------------------------------------------------------------------------------------------------ */

/* A view of x: the sizes are set by the caller, the cells by what `source` says of each index. */
static enum verdict view_of(const struct plain *x, struct plain *ret, const struct plain *shape)
{
    const int64_t n = count(shape->ndim, shape->sizes);
    if (shape->ndim > PLAIN_DIMS || n > PLAIN_CELLS)
        return TOO_LARGE;
    *ret = *shape;
    ret->dtype = x->dtype;
    ret->memory = x->memory;
    ret->n = (int)n;
    return VALID;
}

enum verdict plain_transpose(const struct plain *x, int a, int b, struct plain *ret)
{
    struct plain shape = *x;
    if (x->ndim > 0) {
        shape.sizes[a] = x->sizes[b];
        shape.sizes[b] = x->sizes[a];
    }
    view_of(x, ret, &shape);
    for (int i = 0; i < ret->n; i++) {
        int64_t index[PLAIN_DIMS];
        split_index(ret, i, index);
        const int64_t kept = index[a];
        index[a] = x->ndim > 0 ? index[b] : 0;
        if (x->ndim > 0)
            index[b] = kept;
        ret->at[i] = x->at[join_index(x, index)];
    }
    return VALID;
}

enum verdict plain_select(const struct plain *x, int dim, int64_t index, struct plain *ret)
{
    if (x->ndim == 0 || index < -x->sizes[dim] || index >= x->sizes[dim])
        return REFUSED;
    struct plain shape = *x;
    shape.ndim--;
    for (int d = dim; d < shape.ndim; d++)
        shape.sizes[d] = x->sizes[d + 1];
    view_of(x, ret, &shape);
    for (int i = 0; i < ret->n; i++) {
        int64_t own[PLAIN_DIMS], from[PLAIN_DIMS];
        split_index(ret, i, own);
        for (int d = 0, next = 0; d < x->ndim; d++)
            from[d] = d == dim ? (index < 0 ? index + x->sizes[dim] : index) : own[next++];
        ret->at[i] = x->at[join_index(x, from)];
    }
    return VALID;
}

enum verdict plain_slice(const struct plain *x, int dim, int64_t start, int64_t end, int64_t step, struct plain *ret)
{
    if (x->ndim == 0 || step == 0)
        return REFUSED;
    const int64_t size = x->sizes[dim], low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    int64_t places[PLAIN_CELLS], n = 0;
    start = start < 0 ? start + size : start;
    end = end < 0 ? end + size : end;
    start = start < low ? low : start > high ? high : start;
    end = end < low ? low : end > high ? high : end;
    for (int64_t i = start; step > 0 ? i < end : i > end; i += step)
        places[n++] = i;
    struct plain shape = *x;
    shape.sizes[dim] = n;
    view_of(x, ret, &shape);
    for (int i = 0; i < ret->n; i++) {
        int64_t index[PLAIN_DIMS];
        split_index(ret, i, index);
        index[dim] = places[index[dim]];
        ret->at[i] = x->at[join_index(x, index)];
    }
    return VALID;
}

enum verdict plain_expand(const struct plain *x, int ndim, const int64_t *sizes, struct plain *ret)
{
    struct plain shape = {.ndim = ndim};
    if (ndim < x->ndim)
        return REFUSED;
    for (int d = 0; d < ndim; d++) {
        const int own = d - (ndim - x->ndim);
        const int64_t present = own < 0 ? 1 : x->sizes[own];
        if ((own < 0 && sizes[d] < 0) || sizes[d] < -1 || (sizes[d] != -1 && present != 1 && sizes[d] != present))
            return REFUSED;
        shape.sizes[d] = sizes[d] == -1 ? present : sizes[d];
    }
    if (view_of(x, ret, &shape) != VALID)
        return TOO_LARGE;
    for (int i = 0; i < ret->n; i++)
        ret->at[i] = x->at[broadcast_place(x, ret, i)];
    return VALID;
}

enum verdict plain_reshape(const struct plain *x, int ndim, const int64_t *sizes, struct plain *ret)
{
    struct plain shape = {.ndim = ndim};
    memcpy(shape.sizes, sizes, (size_t)ndim * sizeof *sizes);
    if (count(ndim, sizes) != x->n)
        return REFUSED;
    view_of(x, ret, &shape);
    memcpy(ret->at, x->at, sizeof ret->at);
    return VALID;
}

enum verdict plain_flip(const struct plain *x, unsigned dims, struct plain *ret)
{
    if (!plain_new(ret, x->dtype, x->ndim, x->sizes))
        return TOO_LARGE;
    inherit(ret, x);
    for (int i = 0; i < x->n; i++) {
        int64_t index[PLAIN_DIMS];
        split_index(ret, i, index);
        for (int d = 0; d < x->ndim; d++)
            if (dims >> d & 1)
                index[d] = x->sizes[d] - 1 - index[d];
        *plain_at(ret, i) = *plain_at(x, join_index(x, index));
    }
    return VALID;
}
