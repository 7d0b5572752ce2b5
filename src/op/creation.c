/* Factories: tensors made of nothing, of a number, or of a rule; and the triangles of matrices.
 *
 * Lives here: dtype inference, sizes, and the rules themselves, computed in int64 or float64 pieces and converted on the way out.
 * Random factories are elsewhere. Invariant: arguments are checked before memory is taken. */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "gen/impl/copy.h"
#include "gen/impl/creation.h"
#include "gradus/library.h"
#include "kernel/table.h"
#include "op/common.h"
#include "op/copy.h"

enum {
    PIECE = 512,            /* elements computed before they are converted */
    ELEMENTS_GRAIN = 32768, /* a multiple of PIECE */
    BYTES_GRAIN = 256 * 1024
};

/* ---- What every factory checks ---------------------------------------------------------------------------------------- */

static bool check_requires_grad(grd_dtype dtype, bool requires_grad)
{
    return !requires_grad || grd_dtype_is_floating(dtype) || grd_dtype_is_complex(dtype) ||
           grd_raise(GRD_ERROR_RUNTIME, "Only Tensors of floating point and complex dtype can require gradients");
}

static grd_tensor *new_tensor(grd_dims size, grd_dtype dtype, grd_device device, bool requires_grad)
{
    if (!check_requires_grad(dtype, requires_grad) || !grd_device_resolve(device, &device))
        return grd_failed;
    return grd_new(size, dtype, device);
}

/* The last step of a factory. */
static grd_tensor *finished(grd_tensor *t, bool requires_grad)
{
    if (requires_grad && !grd_is_failed(t))
        grd_mark_requires_grad(t, true);
    return t;
}

static grd_tensor *filled(grd_tensor *t, const void *element, bool requires_grad)
{
    if (!grd_is_failed(t))
        grd_fill_elements(t, element);
    return finished(t, requires_grad);
}

static grd_dtype dtype_or_default(grd_dtype dtype)
{
    return dtype == GRD_DTYPE_NONE ? grd_default_dtype() : dtype;
}

/* ---- Everywhere the same --------------------------------------------------------------------------------------------------- */

static grd_tensor *constant(grd_dims size, grd_scalar value, grd_dtype dtype, grd_device device, bool requires_grad)
{
    char element[16];
    if (!grd_scalar_write(value, dtype, element))
        return grd_failed;
    return filled(new_tensor(size, dtype, device, requires_grad), element, requires_grad);
}

grd_tensor *op_empty(grd_dims size, grd_dtype dtype, grd_device device, bool requires_grad)
{
    return finished(new_tensor(size, dtype_or_default(dtype), device, requires_grad), requires_grad);
}

grd_tensor *op_empty_strided(grd_dims size, grd_dims stride, grd_dtype dtype, grd_device device, bool requires_grad)
{
    dtype = dtype_or_default(dtype);
    if (size.n != stride.n)
        return grd_fail(GRD_ERROR_RUNTIME, "dimensionality of sizes (%lld) must match dimensionality of strides (%lld)", (long long)size.n,
                        (long long)stride.n);
    if (!check_requires_grad(dtype, requires_grad) || !grd_device_resolve(device, &device))
        return grd_failed;
    return finished(grd_new_strided(size, stride, dtype, device), requires_grad);
}

grd_tensor *op_zeros(grd_dims size, grd_dtype dtype, grd_device device, bool requires_grad)
{
    return constant(size, grd_int(0), dtype_or_default(dtype), device, requires_grad);
}

grd_tensor *op_ones(grd_dims size, grd_dtype dtype, grd_device device, bool requires_grad)
{
    return constant(size, grd_int(1), dtype_or_default(dtype), device, requires_grad);
}

grd_tensor *op_full(grd_dims size, grd_scalar fill_value, grd_dtype dtype, grd_device device, bool requires_grad)
{
    return constant(size, fill_value, dtype == GRD_DTYPE_NONE ? grd_scalar_dtype(fill_value) : dtype, device, requires_grad);
}

grd_tensor *op_scalar_tensor(grd_scalar s, grd_dtype dtype, grd_device device, bool requires_grad)
{
    return constant(GRD_NO_DIMS, s, dtype_or_default(dtype), device, requires_grad);
}

/* ---- Like another tensor ------------------------------------------------------------------------------------------------------- */

static grd_tensor *new_like(grd_tensor *self, grd_dtype dtype, grd_device device, bool requires_grad)
{
    if (dtype == GRD_DTYPE_NONE)
        dtype = self->dtype;
    if (!check_requires_grad(dtype, requires_grad) || (device.type != GRD_DEVICE_NONE && !grd_device_resolve(device, &device)))
        return grd_failed;
    if (device.type == GRD_DEVICE_NONE || (device.type == self->device && device.index == self->device_index))
        return grd_new_like(self, dtype);
    int64_t strides[GRD_MAX_DIMS];
    grd_shape_dense_strides(grd_sizes(self), self->strides, strides);
    return grd_new_strided(grd_sizes(self), grd_dims_from(strides, self->ndim), dtype, device);
}

static grd_tensor *constant_like(grd_tensor *self, grd_scalar value, grd_dtype dtype, grd_device device, bool requires_grad)
{
    char element[16];
    if (!grd_scalar_write(value, dtype == GRD_DTYPE_NONE ? (grd_dtype)self->dtype : dtype, element))
        return grd_failed;
    return filled(new_like(self, dtype, device, requires_grad), element, requires_grad);
}

grd_tensor *op_empty_like(grd_tensor *self, grd_dtype dtype, grd_device device, bool requires_grad)
{
    return finished(new_like(self, dtype, device, requires_grad), requires_grad);
}

grd_tensor *op_zeros_like(grd_tensor *self, grd_dtype dtype, grd_device device, bool requires_grad)
{
    return constant_like(self, grd_int(0), dtype, device, requires_grad);
}

grd_tensor *op_ones_like(grd_tensor *self, grd_dtype dtype, grd_device device, bool requires_grad)
{
    return constant_like(self, grd_int(1), dtype, device, requires_grad);
}

grd_tensor *op_full_like(grd_tensor *self, grd_scalar fill_value, grd_dtype dtype, grd_device device, bool requires_grad)
{
    return constant_like(self, fill_value, dtype, device, requires_grad);
}

/* ---- Ranges ---------------------------------------------------------------------------------------------------------------------- */

/* Element i of a range, as int64 (integer) or as real and imaginary float64. */
struct range {
    grd_loop_kernel *cast; /* from int64, float64 or complex128 to the dtype of the result */
    char *to;
    int64_t itemsize;
    bool integer, complex, logarithmic, single; /* single: steps are rounded to float32, as the result is */
    int64_t n, first, step;                     /* integer: first + i * step */
    double start[2], end[2], delta[2];          /* start + i * delta in the first half, from the end in the second */
    bool from_start;                            /* in both halves */
    double base;
};

/* In float32 where the result is: so that every step rounds as PyTorch's do. */
static void line_single(int64_t n, int64_t first, double start, double delta, double *ret, int64_t stride)
{
    float from = (float)start, step = (float)delta;
    for (int64_t i = 0; i < n; i++)
        ret[i * stride] = (double)(from + step * (float)(first + i));
}

static void line_double(int64_t n, int64_t first, double start, double delta, double *ret, int64_t stride)
{
    for (int64_t i = 0; i < n; i++)
        ret[i * stride] = start + delta * (double)(first + i);
}

/* Elements [first, first + n) of one part: from the start in the first half, from the end in the second. */
static void range_part(const struct range *r, int64_t first, int64_t n, int part, double *ret, int64_t stride)
{
    int64_t half = r->from_start ? r->n : r->n / 2, ahead = half - first;
    void (*line)(int64_t, int64_t, double, double, double *, int64_t) = r->single ? line_single : line_double;
    ahead = ahead < 0 ? 0 : ahead > n ? n : ahead;
    line(ahead, first, r->start[part], r->delta[part], ret, stride);
    line(n - ahead, first + ahead - (r->n - 1), r->end[part], r->delta[part], ret + ahead * stride, stride);
    for (int64_t i = 0; r->logarithmic && !r->complex && i < n; i++)
        ret[i * stride] = pow(r->base, ret[i * stride]);
}

/* base^(x + iy) = base^x (cos(y log(base)) + i sin(y log(base))), in place. */
static void complex_powers(const struct range *r, int64_t n, double *parts)
{
    for (int64_t i = 0; i < n; i++) {
        const double size = pow(r->base, parts[2 * i]), angle = parts[2 * i + 1] * log(r->base);
        parts[2 * i] = size * cos(angle);
        parts[2 * i + 1] = size * sin(angle);
    }
}

static void range_pieces(int64_t begin, int64_t end, void *context)
{
    const struct range *r = context;
    union {
        int64_t integers[PIECE];
        double parts[2 * PIECE];
    } piece;
    const int64_t strides[2] = {r->itemsize, r->complex ? 16 : 8};
    for (int64_t first = begin; first < end; first += PIECE) {
        int64_t n = end - first < PIECE ? end - first : PIECE;
        for (int64_t i = 0; r->integer && i < n; i++)
            piece.integers[i] = (int64_t)((uint64_t)r->first + (uint64_t)r->step * (uint64_t)(first + i));
        if (!r->integer)
            range_part(r, first, n, 0, piece.parts, r->complex ? 2 : 1);
        if (r->complex)
            range_part(r, first, n, 1, piece.parts + 1, 2);
        if (r->complex && r->logarithmic)
            complex_powers(r, n, piece.parts);
        r->cast(n, (char *const[]){r->to + first * r->itemsize, (char *)&piece}, strides, NULL);
    }
}

static double rounded(const struct range *r, double value)
{
    return r->single ? (double)(float)value : value;
}

static grd_tensor *run_range(struct range *r, grd_dtype dtype, grd_device device, bool requires_grad)
{
    grd_tensor *result = new_tensor(grd_dims(r->n), dtype, device, requires_grad);
    if (!grd_is_failed(result) && !grd_is_meta(result)) {
        r->cast = grd_kernels->cast[r->integer ? GRD_INT64 : r->complex ? GRD_COMPLEX128 : GRD_FLOAT64][dtype];
        r->to = result->data;
        r->itemsize = result->itemsize;
        grd_parallel_for(0, r->n, ELEMENTS_GRAIN, range_pieces, r);
    }
    return finished(result, requires_grad);
}

/* ceil((end - start) / step) of int64 numbers, whose difference may need 65 bits. */
static double integer_steps(int64_t start, int64_t end, int64_t step)
{
    return ceil((double)((__int128)end - start) / (double)step);
}

static bool check_range(double start, double end, double step)
{
    if (!(step > 0 || step < 0))
        return grd_raise(GRD_ERROR_RUNTIME, "step must be nonzero");
    if (!isfinite(start) || !isfinite(end))
        return grd_raise(GRD_ERROR_RUNTIME, "unsupported range: %g -> %g", start, end);
    if ((step > 0 && end < start) || (step < 0 && end > start))
        return grd_raise(GRD_ERROR_RUNTIME, "upper bound and lower bound inconsistent with step sign");
    return true;
}

static bool check_range_dtype(const char *name, grd_dtype dtype, bool complex_too)
{
    enum grd_category category = grd_category_of(dtype);
    return category == GRD_CATEGORY_INTEGER || (category == GRD_CATEGORY_FLOAT && dtype < GRD_FLOAT8_E4M3FN) ||
           (complex_too && category == GRD_CATEGORY_COMPLEX) || grd_raise_no_kernel(name, dtype);
}

grd_tensor *op_arange(grd_scalar start, grd_scalar end, grd_scalar step, grd_dtype dtype, grd_device device, bool requires_grad)
{
    if (end.kind == GRD_SCALAR_NONE) {
        end = start;
        start = grd_int(0);
    }
    bool integral = grd_scalar_is_integral(start) && grd_scalar_is_integral(end) && grd_scalar_is_integral(step);
    if (dtype == GRD_DTYPE_NONE)
        dtype = integral ? GRD_INT64 : grd_default_dtype();
    if (!check_range_dtype("arange", dtype, false))
        return grd_failed;
    struct range r = {.integer = grd_dtype_is_integer(dtype), .from_start = true};
    double a = grd_scalar_double(start), b = grd_scalar_double(end), by = grd_scalar_double(step), count;
    if (!check_range(a, b, by))
        return grd_failed;
    if (r.integer) {
        if (!grd_scalar_write(start, GRD_INT64, &r.first) || !grd_scalar_write(step, GRD_INT64, &r.step))
            return grd_failed;
    }
    if (dtype == GRD_INT64) {
        int64_t last;
        if (!grd_scalar_write(end, GRD_INT64, &last) || !check_range((double)r.first, (double)last, (double)r.step))
            return grd_failed;
        count = integer_steps(r.first, last, r.step);
    } else {
        count = ceil((b - a) / by);
    }
    if (!(count >= 0 && count < 9223372036854775807.0))
        return grd_fail(GRD_ERROR_RUNTIME, "invalid size, possible overflow?");
    r.n = (int64_t)count;
    r.start[0] = a;
    r.delta[0] = by;
    return run_range(&r, dtype, device, requires_grad);
}

static void scalar_parts(grd_scalar s, double *ret_parts)
{
    ret_parts[0] = grd_scalar_double(s);
    ret_parts[1] = s.kind == GRD_SCALAR_COMPLEX ? s.v.c.im : 0;
}

static grd_tensor *spaced(const char *name, grd_scalar start, grd_scalar end, int64_t steps, double base, bool logarithmic, grd_dtype dtype,
                          grd_device device, bool requires_grad)
{
    bool is_complex = start.kind == GRD_SCALAR_COMPLEX || end.kind == GRD_SCALAR_COMPLEX;
    if (dtype == GRD_DTYPE_NONE)
        dtype = is_complex ? grd_dtype_to_complex(grd_default_dtype()) : grd_default_dtype();
    if (steps < 0)
        return grd_fail(GRD_ERROR_RUNTIME, "number of steps must be non-negative");
    if (!check_range_dtype(name, dtype, true))
        return grd_failed;
    if (is_complex && !grd_dtype_is_complex(dtype))
        return grd_fail(GRD_ERROR_RUNTIME,
                        "inferred dtype complex for a range between complex numbers can't be safely cast to passed dtype %s",
                        grd_dtype_name(dtype));
    char element[16];
    if (grd_dtype_is_integer(dtype) &&
        ((steps > 0 && !grd_scalar_write(start, dtype, element)) || (steps > 1 && !grd_scalar_write(end, dtype, element))))
        return grd_failed;
    struct range r = {.n = steps, .complex = grd_dtype_is_complex(dtype), .logarithmic = logarithmic, .base = base};
    r.single = !logarithmic && dtype != GRD_FLOAT64 && dtype != GRD_COMPLEX128 && !grd_dtype_is_integer(dtype);
    scalar_parts(start, r.start);
    scalar_parts(end, r.end);
    for (int part = 0; part < 2; part++) {
        if (grd_dtype_is_integer(dtype) && !(logarithmic && steps == 1)) { /* a single power is computed before it is cut off */
            r.start[part] = trunc(r.start[part]);
            r.end[part] = trunc(r.end[part]);
        }
        r.start[part] = rounded(&r, r.start[part]);
        r.end[part] = rounded(&r, r.end[part]);
        r.delta[part] = steps > 1 ? rounded(&r, rounded(&r, r.end[part] - r.start[part]) / (double)(steps - 1)) : 0;
    }
    r.from_start = steps == 1;
    return run_range(&r, dtype, device, requires_grad);
}

grd_tensor *op_linspace(grd_scalar start, grd_scalar end, int64_t steps, grd_dtype dtype, grd_device device, bool requires_grad)
{
    return spaced("linspace", start, end, steps, 0, false, dtype, device, requires_grad);
}

grd_tensor *op_logspace(grd_scalar start, grd_scalar end, int64_t steps, double base, grd_dtype dtype, grd_device device,
                        bool requires_grad)
{
    return spaced("logspace", start, end, steps, base, true, dtype, device, requires_grad);
}

/* ---- Sizes --------------------------------------------------------------------------------------------------------------------------- */

grd_tensor *op_resize(grd_tensor *out, grd_tensor *self, grd_dims size)
{
    if (grd_requires_grad(self))
        return grd_fail(GRD_ERROR_RUNTIME, "cannot resize variables that require grad");
    if (grd_same_sizes(out, size))
        return out;
    if (!grd_resize(out, size))
        return grd_failed;
    grd_bump_version(out);
    return out;
}

/* ---- Matrices ------------------------------------------------------------------------------------------------------------------------ */

grd_tensor *op_eye(int64_t n, grd_scalar m, grd_dtype dtype, grd_device device, bool requires_grad)
{
    char one[16];
    int64_t columns = m.kind == GRD_SCALAR_NONE ? n : grd_scalar_int64(m);
    if (n < 0 || columns < 0)
        return grd_fail(GRD_ERROR_RUNTIME, "%s must be greater or equal to 0, got %lld", n < 0 ? "n" : "m",
                        (long long)(n < 0 ? n : columns));
    dtype = dtype_or_default(dtype);
    if (!grd_scalar_write(grd_int(1), dtype, one))
        return grd_failed;
    grd_tensor *result = new_tensor(grd_dims(n, columns), dtype, device, requires_grad);
    if (grd_is_failed(result))
        return result;
    grd_zero_elements(result);
    for (int64_t i = 0; !grd_is_meta(result) && i < n && i < columns; i++)
        memcpy(result->data + i * (columns + 1) * result->itemsize, one, result->itemsize);
    return finished(result, requires_grad);
}

struct triangle {
    char *to;
    const char *from;
    int64_t rows, columns, itemsize, diagonal;
    bool upper;
};

/* Row by row: what lies left of the boundary, and what lies right of it. */
static void triangle_rows(int64_t begin, int64_t end, void *context)
{
    const struct triangle *t = context;
    for (int64_t row = begin; row < end; row++) {
        int64_t boundary = row % t->rows + t->diagonal + (t->upper ? 0 : 1);
        boundary = boundary < 0 ? 0 : boundary > t->columns ? t->columns : boundary;
        size_t left = (size_t)(boundary * t->itemsize), right = (size_t)((t->columns - boundary) * t->itemsize);
        char *to = t->to + row * t->columns * t->itemsize;
        const char *from = t->from + row * t->columns * t->itemsize;
        if (t->upper) {
            memset(to, 0, left);
            memmove(to + left, from + left, right);
        } else {
            memmove(to, from, left);
            memset(to + left, 0, right);
        }
    }
}

static grd_tensor *triangle(grd_tensor *out, grd_tensor *self, int64_t diagonal, bool upper)
{
    if (self->ndim < 2)
        return grd_fail(GRD_ERROR_RUNTIME, "input tensor must have at least 2 dimensions");
    if (out != NULL && !grd_check_no_internal_overlap(out))
        return grd_failed;
    grd_tensor *from = grd_contiguous_as(self, GRD_DTYPE_NONE);
    bool direct = out != NULL && grd_is_contiguous(out);
    grd_tensor *result = grd_pending() ? grd_failed : direct ? out : grd_new(grd_sizes(self), self->dtype, grd_device_of(self));
    if (grd_is_failed(result) || self->numel == 0 || grd_is_meta(self))
        return grd_is_failed(result) || out == NULL ? result : out;
    int64_t rows = self->sizes[self->ndim - 2], columns = self->sizes[self->ndim - 1];
    struct triangle t = {result->data, from->data, rows, columns, self->itemsize, diagonal, upper};
    t.diagonal = diagonal < -rows ? -rows : diagonal > columns ? columns : diagonal;
    int64_t bytes = columns * t.itemsize;
    grd_parallel_for(0, self->numel / columns, bytes < BYTES_GRAIN ? BYTES_GRAIN / bytes : 1, triangle_rows, &t);
    if (out != NULL && !direct)
        grd_copy_strided(out, result);
    return out != NULL ? out : result;
}

grd_tensor *op_tril(grd_tensor *out, grd_tensor *self, int64_t diagonal)
{
    return triangle(out, self, diagonal, false);
}

grd_tensor *op_triu(grd_tensor *out, grd_tensor *self, int64_t diagonal)
{
    return triangle(out, self, diagonal, true);
}
