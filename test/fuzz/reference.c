/* Creates and compares reference tensors and converts their numbers (see reference.h). The operators are in the other files reference_*.c. */
#include "reference_parts.h"

enum { MEMORIES = 64 };

static struct memory memories[MEMORIES];
static int memories_used;

/* ---- Tensors ----------------------------------------------------------------------------------------------------------------------- */

void reference_reset(void)
{
    memories_used = 0;
}

int64_t reference_count(int ndim, const int64_t *sizes)
{
    int64_t n = 1;
    for (int i = 0; i < ndim; i++)
        n = n <= REFERENCE_CELLS ? n * sizes[i] : n;
    return n;
}

bool reference_new(struct reference *p, grd_dtype dtype, int ndim, const int64_t *sizes)
{
    if (ndim > REFERENCE_DIMS || reference_count(ndim, sizes) > REFERENCE_CELLS || memories_used == MEMORIES)
        return false;
    *p = (struct reference){.dtype = dtype, .ndim = ndim, .n = (int)reference_count(ndim, sizes), .memory = &memories[memories_used++]};
    memset(p->memory, 0, sizeof *p->memory);
    for (int i = 0; i < ndim; i++)
        p->sizes[i] = sizes[i];
    for (int i = 0; i < p->n; i++)
        p->at[i] = i;
    return true;
}

struct number *reference_at(const struct reference *p, int i)
{
    return &p->memory->cells[p->at[i]];
}

struct values {
    int64_t i[REFERENCE_CELLS];
    double f[2 * REFERENCE_CELLS];
};

static void read_values(grd_tensor *t, enum category category, struct values *ret)
{
    if (category <= INTEGRAL)
        grd_to_memory(t, ret->i, GRD_INT64);
    else
        grd_to_memory(t, ret->f, category == COMPLEX ? GRD_COMPLEX128 : GRD_FLOAT64);
}

void reference_read(struct reference *p, grd_tensor *t)
{
    struct values values;
    const enum category category = number_category(p->dtype);
    read_values(t, category, &values);
    for (int i = 0; i < p->n; i++) {
        struct number *x = reference_at(p, i);
        x->i = category <= INTEGRAL ? values.i[i] : 0;
        x->re = category == FLOATING ? values.f[i] : category == COMPLEX ? values.f[2 * i] : 0;
        x->im = category == COMPLEX ? values.f[2 * i + 1] : 0;
        bool finite = isfinite(x->re) && fabs(x->re) < 1e6;
        for (int k = 0; k < REFERENCE_TRACKED; k++)
            finite &= fabs(x->d[k]) < 1e6;
        p->memory->lost |= !finite && category >= FLOATING;
    }
}

static bool same_shape(const struct reference *p, grd_tensor *t)
{
    const grd_dims sizes = grd_sizes(t);
    return sizes.n == p->ndim && memcmp(sizes.data, p->sizes, (size_t)p->ndim * sizeof *p->sizes) == 0 && grd_tensor_dtype(t) == p->dtype;
}

static bool same_double(double a, double b)
{
    return a == b ? signbit(a) == signbit(b) : isnan(a) && isnan(b);
}

bool reference_equals(const struct reference *p, grd_tensor *t)
{
    if (!same_shape(p, t))
        return false;
    struct values values;
    const enum category category = number_category(p->dtype);
    read_values(t, category, &values);
    for (int i = 0; i < p->n; i++) {
        const struct number *x = reference_at(p, i);
        if (category <= INTEGRAL   ? x->i != values.i[i]
            : category == FLOATING ? !same_double(x->re, values.f[i])
                                   : !same_double(x->re, values.f[2 * i]) || !same_double(x->im, values.f[2 * i + 1]))
            return false;
    }
    return true;
}

static double epsilon_of(grd_dtype dtype)
{
    const grd_dtype real = grd_dtype_to_real(dtype);
    return real == GRD_FLOAT16 ? 9.8e-4 : real == GRD_BFLOAT16 ? 7.9e-3 : real == GRD_FLOAT32 ? 1.2e-7 : 2.3e-16;
}

static double largest_of(grd_dtype dtype)
{
    const grd_dtype real = grd_dtype_to_real(dtype);
    return real == GRD_FLOAT16 ? 65504 : real == GRD_FLOAT64 ? 1.7e308 : 3.3e38;
}

/* True if two numbers differ by at most `tolerance`. If `wanted` is beyond `largest`, the largest number of the dtype, `got` must only have the same
 * sign and be large. */
static bool near(double got, double wanted, double tolerance, double largest)
{
    if (isnan(wanted) || isnan(got))
        return isnan(wanted) && isnan(got);
    if (fabs(wanted) > largest * 0.99)
        return fabs(got) > largest * 0.9 && signbit(got) == signbit(wanted);
    return fabs(got - wanted) <= tolerance;
}

bool reference_near(const struct reference *p, grd_tensor *t, double ulps, grd_dtype computed_in)
{
    if (!same_shape(p, t))
        return false;
    struct values values;
    const enum category category = number_category(p->dtype);
    const double eps = fmax(epsilon_of(p->dtype), epsilon_of(computed_in)), largest = largest_of(p->dtype),
                 smallest = grd_dtype_to_real(p->dtype) == GRD_FLOAT16 ? 6e-8 : 1e-37;
    read_values(t, category, &values);
    for (int i = 0; i < p->n; i++) {
        const struct number *x = reference_at(p, i);
        const double tolerance = ulps * eps * fmax(x->size, fabs(x->re) + fabs(x->im)) + smallest;
        /* If the real or the imaginary part of a complex number overflows, the other one may be NaN. Intermediate sums may overflow although
         * the result does not. Such results are not compared. */
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

bool reference_overlaps_itself(const struct reference *p)
{
    bool seen[REFERENCE_CELLS] = {false};
    for (int i = 0; i < p->n; i++) {
        if (seen[p->at[i]])
            return true;
        seen[p->at[i]] = true;
    }
    return false;
}

int reference_split_index(const struct reference *p, int place, int64_t *ret_index)
{
    for (int i = p->ndim - 1; i >= 0; i--) {
        ret_index[i] = place % p->sizes[i];
        place /= (int)p->sizes[i];
    }
    return place;
}

int reference_join_index(const struct reference *p, const int64_t *index)
{
    int64_t place = 0;
    for (int i = 0; i < p->ndim; i++)
        place = place * p->sizes[i] + index[i];
    return (int)place;
}

int reference_broadcast_place(const struct reference *x, const struct reference *shape, int i)
{
    int64_t index[REFERENCE_DIMS], own[REFERENCE_DIMS];
    reference_split_index(shape, i, index);
    for (int k = 0; k < x->ndim; k++)
        own[k] = x->sizes[k] == 1 ? 0 : index[k + shape->ndim - x->ndim];
    return reference_join_index(x, own);
}

bool reference_shares(const struct reference *p, const struct reference *q)
{
    if (p->memory != q->memory)
        return false;
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < q->n; k++)
            if (p->at[i] == q->at[k])
                return true;
    return false;
}

bool reference_overlaps(const struct reference *p, const struct reference *q)
{
    if (!reference_shares(p, q))
        return false;
    for (int i = 0; i < p->n; i++)
        if (q->ndim > p->ndim || p->at[i] != q->at[reference_broadcast_place(q, p, i)])
            return true;
    return false;
}

bool reference_broadcast(const struct reference *const *inputs, int n, int *ret_ndim, int64_t *ret_sizes)
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

enum category number_category(grd_dtype dtype)
{
    return dtype == GRD_BOOL ? BOOLEAN : grd_dtype_is_integer(dtype) ? INTEGRAL : grd_dtype_is_floating(dtype) ? FLOATING : COMPLEX;
}

int64_t number_wrap(int64_t i, grd_dtype dtype)
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

double number_to_double(const struct number *x, grd_dtype dtype)
{
    return number_category(dtype) <= INTEGRAL ? (double)x->i : x->re;
}

bool number_is_true(const struct number *x, grd_dtype dtype)
{
    return number_category(dtype) <= INTEGRAL ? x->i != 0 : x->re != 0 || x->im != 0;
}

double number_round(double x, grd_dtype dtype)
{
    dtype = grd_dtype_to_real(dtype);
    if (dtype == GRD_FLOAT32)
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

bool number_convert(const struct number *x, grd_dtype from, grd_dtype to, struct number *ret)
{
    const enum category source = number_category(from), target = number_category(to);
    struct number y = {.size = x->size};
    bool defined = true;
    if (target == BOOLEAN) {
        y.i = number_is_true(x, from);
    } else if (target == INTEGRAL) {
        defined = source <= INTEGRAL || fabs(x->re) < 127;
        y.i = source <= INTEGRAL ? number_wrap(x->i, to) : defined ? number_wrap((int64_t)x->re, to) : 0;
        defined &= source <= INTEGRAL || x->re >= 0 || to != GRD_UINT8;
    } else {
        y.re = number_round(number_to_double(x, from), to);
        y.im = target == COMPLEX ? number_round(x->im, to) : 0;
        if (source == FLOATING && target == FLOATING)
            memcpy(y.d, x->d, sizeof y.d);
    }
    *ret = y;
    return defined;
}

grd_dtype number_to_float(grd_dtype dtype)
{
    return number_category(dtype) <= INTEGRAL ? grd_default_dtype() : dtype;
}

void reference_inherit(struct reference *ret, const struct reference *x)
{
    const bool precise = ret->dtype == GRD_FLOAT64 && (x->dtype == GRD_FLOAT64 || number_category(x->dtype) <= INTEGRAL);
    ret->memory->lost |= x->memory->lost || (number_category(ret->dtype) >= FLOATING && !precise);
}

void number_add_slope(struct number *y, const struct number *x, double slope)
{
    for (int k = 0; k < REFERENCE_TRACKED; k++)
        if (x->d[k] != 0)
            y->d[k] += slope * x->d[k];
}
