/* Implements the factories (empty, full, ranges, eye), fill, resize, tril and triu. Random factories are in random_fill.c and random_indices.c. */
#include <math.h>
#include <string.h>

#include "base/integer.h"
#include "base/parallel.h"
#include "gen/uses/op/creation.h"
#include "core/dtype.h"
#include "core/new.h"
#include "core/resize.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "kernel/range.h"
#include "kernel/table.h"
#include "op/copy.h"
#include "op/formula.h"
#include "op/plan.h"

enum {
    PIECE = 512,            /* elements of a range that are computed at a time and then converted to the result's dtype */
    ELEMENTS_GRAIN = 32768, /* elements of a task; a multiple of PIECE */
    BYTES_GRAIN = 256 * 1024
};

static grd_dtype dtype_or(grd_dtype dtype, grd_dtype otherwise)
{
    return dtype == GRD_DTYPE_NONE ? otherwise : dtype;
}

/* ---- Of nothing ------------------------------------------------------------------------------------------------------------------ */

/* Returns the memory format for the result of a factory function that is given sizes, e.g. empty. Returns GRD_FORMAT_FAILED, with the error raised,
 * if `memory_format` is invalid. "preserve" is invalid here, because there is no tensor whose format could be preserved. */
static enum grd_memory_format factory_format(const char *memory_format, int64_t ndim)
{
    const enum grd_memory_format format = grd_memory_format_of(memory_format, GRD_FORMAT_CONTIGUOUS, ndim);
    if (format != GRD_FORMAT_PRESERVE)
        return format;
    grd_raise(GRD_ERROR_RUNTIME, "unsupported memory format Preserve");
    return GRD_FORMAT_FAILED;
}

bool plan_empty(struct grd_plan *p, grd_dims size, grd_dtype dtype, grd_device device, bool requires_grad, const char *memory_format)
{
    dtype = dtype_or(dtype, grd_default_dtype());
    const enum grd_memory_format format = factory_format(memory_format, size.n);
    return format != GRD_FORMAT_FAILED && grd_plan_factory(p, dtype, device, requires_grad) &&
           grd_plan_in_order(p, size, grd_is_channels_last_format(format), dtype);
}

bool plan_empty_strided(struct grd_plan *p, grd_dims size, grd_dims stride, grd_dtype dtype, grd_device device, bool requires_grad)
{
    dtype = dtype_or(dtype, grd_default_dtype());
    if (size.n != stride.n)
        return grd_raise(GRD_ERROR_RUNTIME, "dimensionality of sizes (%lld) must match dimensionality of strides (%lld)", (long long)size.n,
                         (long long)stride.n);
    return grd_plan_factory(p, dtype, device, requires_grad) && grd_plan_strided(p, size, stride.data, dtype);
}

bool plan_empty_like(struct grd_plan *p, grd_tensor *self, grd_dtype dtype, grd_device device, bool requires_grad,
                     const char *memory_format)
{
    dtype = dtype_or(dtype, (grd_dtype)self->dtype);
    const enum grd_memory_format format = grd_memory_format_of(memory_format, GRD_FORMAT_PRESERVE, self->ndim);
    return format != GRD_FORMAT_FAILED &&
           grd_plan_factory(p, dtype, device.type == GRD_DEVICE_NONE ? grd_device_of(self) : device, requires_grad) &&
           grd_plan_in_format(p, self, format, dtype);
}

/* Runs the factory functions that leave the memory of the result uninitialized, e.g. empty. It does nothing. */
void run_nothing(const struct grd_plan *p)
{
    (void)p;
}

/* ---- Of a number ------------------------------------------------------------------------------------------------------------------ */

/* Fills the result with the element that the plan function wrote to p->state. The element has the result's dtype. */
void run_constant(const struct grd_plan *p)
{
    grd_fill_elements(p->results[0], p->state);
}

bool plan_full(struct grd_plan *p, grd_dims size, grd_scalar fill_value, grd_dtype dtype, grd_device device, bool requires_grad)
{
    dtype = dtype_or(dtype, grd_scalar_dtype(fill_value));
    return grd_scalar_write(fill_value, dtype, p->state) && grd_plan_new(p, size, dtype, device, requires_grad);
}

bool plan_scalar_tensor(struct grd_plan *p, grd_scalar s, grd_dtype dtype, grd_device device, bool requires_grad)
{
    return plan_full(p, GRD_NO_DIMS, s, dtype_or(dtype, grd_default_dtype()), device, requires_grad);
}

bool plan_full_like(struct grd_plan *p, grd_tensor *self, grd_scalar fill_value, grd_dtype dtype, grd_device device, bool requires_grad,
                    const char *memory_format)
{
    return grd_scalar_write(fill_value, dtype_or(dtype, (grd_dtype)self->dtype), p->state) &&
           plan_empty_like(p, self, dtype, device, requires_grad, memory_format);
}

/* ---- fill ---------------------------------------------------------------------------------------------------------------------------- */

/* Plans fill: describes the result and writes `value`, converted to the result's dtype, to p->state, where run_constant reads it. */
bool plan_fill(struct grd_plan *p, grd_tensor *self, grd_scalar value)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    p->device = grd_device_of(self);
    p->any_strides = p->repeats = true;
    return grd_scalar_write(value, dtype, p->state) && grd_plan_like(p, self, dtype);
}

grd_tensor *shortcut_fill(grd_tensor *out, grd_tensor *self, grd_scalar value)
{
    return self->device != GRD_DEVICE_CPU ? NULL : grd_filled(out != NULL ? out : grd_new_like(self, GRD_DTYPE_NONE), value);
}

grd_tensor *op_fill_tensor(grd_tensor *out, grd_tensor *self, grd_tensor *value)
{
    if (value->ndim > 0)
        return grd_fail(GRD_ERROR_RUNTIME, "fill_ only supports 0-dimension value tensor but got tensor with %d dimensions.", value->ndim);
    const bool loses_imaginary =
        grd_dtype_is_complex(value->dtype) &&
        !grd_dtype_is_complex(self->dtype); /* as in PyTorch, a complex tensor loses its imaginary part, but a complex scalar is refused */
    const bool is_known = value->device == GRD_DEVICE_CPU;
    if (!loses_imaginary && (is_known || grd_is_meta(self))) {
        const grd_scalar number = is_known ? grd_item(value) : grd_int(0);
        return out != NULL ? grd_fill_(self, number) : grd_fill(self, number);
    }
    if (out == NULL)
        return grd_copy_(grd_empty_like(self), value);
    return grd_composite_finish(out, self, grd_expand(grd_to(value, .dtype = self->dtype, .device = grd_device_of(self)), grd_sizes(self)));
}

/* ---- Shortcuts: the two halves in one, without a plan, on the cpu and without a gradient -------------------------------------------- */

static bool is_on_cpu_without_grad(grd_device device, bool requires_grad)
{
    return (device.type == GRD_DEVICE_NONE || device.type == GRD_DEVICE_CPU) && !requires_grad;
}

grd_tensor *shortcut_empty(grd_dims size, grd_dtype dtype, grd_device device, bool requires_grad, const char *memory_format)
{
    return is_on_cpu_without_grad(device, requires_grad) && memory_format == NULL
               ? grd_new(size, dtype_or(dtype, grd_default_dtype()), GRD_CPU)
               : NULL;
}

grd_tensor *shortcut_full(grd_dims size, grd_scalar fill_value, grd_dtype dtype, grd_device device, bool requires_grad)
{
    return is_on_cpu_without_grad(device, requires_grad)
               ? grd_filled(grd_new(size, dtype_or(dtype, grd_scalar_dtype(fill_value)), GRD_CPU), fill_value)
               : NULL;
}

grd_tensor *shortcut_full_like(grd_tensor *self, grd_scalar fill_value, grd_dtype dtype, grd_device device, bool requires_grad,
                               const char *memory_format)
{
    return device.type == GRD_DEVICE_NONE && !requires_grad && memory_format == NULL ? grd_filled(grd_new_like(self, dtype), fill_value)
                                                                                     : NULL;
}

/* ---- Ranges ---------------------------------------------------------------------------------------------------------------------- */

/* Describes a range. Element i is start + i * step in the first half of the range, and end + (i - (n - 1)) * step in the second half. In a complex
 * range, the real parts and the imaginary parts each follow this formula, with their own start, end and step. */
struct range {
    grd_dtype made; /* dtype of the computation: int64, float64, or float32 if PyTorch rounds every step to it */
    /* Number of real numbers per element: 1, or 2 if the range is complex. */
    int parts;
    /* `logarithmic`: the elements are powers of `base`. `from_start`: the second half is computed from `start`, like the first one. */
    bool logarithmic, from_start;
    /* Number of elements of the range. */
    int64_t n;
    grd_scalar start[2], end[2], step[2];
    /* The base of a logarithmic range, whose elements are base to the power of the numbers computed from start, end and step. */
    double base;
};

/* Writes to `values` the real (part = 0) or imaginary (part = 1) parts of elements [first, first + n) of the range `r`. */
static void range_part(const struct range *r, int64_t first, int64_t n, int part, char *values)
{
    const struct grd_range_row *kernels = grd_kernels->range[r->made];
    const int64_t size = grd_dtype_size(r->made);
    int64_t ahead = (r->from_start ? r->n : r->n / 2) - first;
    ahead = grd_clamped(ahead, 0, n);
    if (ahead > 0)
        kernels->line(ahead, first, r->start[part], r->step[part], values + part * size, r->parts);
    if (ahead < n)
        kernels->line(n - ahead, first + ahead - (r->n - 1), r->end[part], r->step[part], values + (ahead * r->parts + part) * size,
                      r->parts);
}

static void range_pieces(int64_t begin, int64_t end, void *context)
{
    const struct grd_plan *p = context;
    const struct range *r = (const struct range *)p->state;
    const grd_tensor *result = p->results[0];
    const grd_dtype made = r->parts == 2 ? grd_dtype_to_complex(r->made) : r->made;
    const int64_t itemsize = result->itemsize;
    _Alignas(double) char piece[PIECE * 2 * sizeof(double)];
    for (int64_t first = begin; first < end; first += PIECE) {
        const int64_t n = end - first < PIECE ? end - first : PIECE;
        char *target = result->data + first * itemsize, *values = made == (grd_dtype)result->dtype ? target : piece;
        for (int part = 0; part < r->parts; part++)
            range_part(r, first, n, part, values);
        if (r->logarithmic)
            (r->parts == 2 ? grd_kernels->range[GRD_FLOAT64]->complex_powers : grd_kernels->range[GRD_FLOAT64]->powers)(n, r->base,
                                                                                                                        (double *)values);
        if (values != target)
            grd_kernels->cast[made][result->dtype](n, (char *const[]){target, values}, (const int64_t[]){itemsize, grd_dtype_size(made)},
                                                   NULL);
    }
}

void run_range(const struct grd_plan *p)
{
    grd_parallel_for(0, p->results[0]->numel, ELEMENTS_GRAIN, range_pieces, (void *)(uintptr_t)p);
}

/* Returns (end - start) / step, computed with 128-bit integers because the difference of two int64 numbers may need 65 bits. */
static double integer_steps(int64_t start, int64_t end, int64_t step)
{
    return (double)((__int128)end - start) / (double)step;
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

/* Plans the range from `start` to `end` in steps of `step`. If `closed` (torch.range), `end` is included; otherwise (arange) it is excluded. */
static bool plan_steps(struct grd_plan *p, grd_scalar start, grd_scalar end, grd_scalar step, grd_dtype dtype, grd_device device,
                       bool requires_grad, bool closed)
{
    double a, b, by;
    if (!grd_scalar_write(start, GRD_FLOAT64, &a) || !grd_scalar_write(end, GRD_FLOAT64, &b) || !grd_scalar_write(step, GRD_FLOAT64, &by) ||
        !check_range_dtype(p->op->name, dtype, false) || !check_range(a, b, by))
        return false;
    struct range *r = (struct range *)p->state;
    *r = (struct range){.made = GRD_FLOAT64, .parts = 1, .from_start = true, .start = {grd_float(a)}, .step = {grd_float(by)}};
    double steps = (b - a) / by;
    if (grd_dtype_is_integer(dtype)) {
        int64_t first, last, increment;
        if (!grd_scalar_write(start, GRD_INT64, &first) || !grd_scalar_write(step, GRD_INT64, &increment))
            return false;
        r->made = GRD_INT64;
        r->start[0] = grd_int(first);
        r->step[0] = grd_int(increment);
        if (dtype == GRD_INT64) {
            if (!grd_scalar_write(end, GRD_INT64, &last) || !check_range((double)first, (double)last, (double)increment))
                return false;
            steps = integer_steps(first, last, increment);
        }
    }
    const double count = closed ? floor(steps) + 1 : ceil(steps);
    if (!(count >= 0 && count < 9223372036854775807.0))
        return grd_raise(GRD_ERROR_RUNTIME, "invalid size, possible overflow?");
    r->n = (int64_t)count;
    return grd_plan_new(p, grd_dims(r->n), dtype, device, requires_grad);
}

bool plan_arange(struct grd_plan *p, grd_scalar start, grd_scalar end, grd_scalar step, grd_dtype dtype, grd_device device,
                 bool requires_grad)
{
    if (end.kind == GRD_SCALAR_NONE) {
        end = start;
        start = grd_int(0);
    }
    const bool integral = grd_scalar_is_integral(start) && grd_scalar_is_integral(end) && grd_scalar_is_integral(step);
    return plan_steps(p, start, end, step, dtype_or(dtype, integral ? GRD_INT64 : grd_default_dtype()), device, requires_grad, false);
}

bool plan_range(struct grd_plan *p, grd_scalar start, grd_scalar end, grd_scalar step, grd_dtype dtype, grd_device device,
                bool requires_grad)
{
    return grd_warn(
               "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range "
               "builtin. Instead, use torch.arange, which produces values in [start, end).") &&
           plan_steps(p, start, end, step, dtype_or(dtype, grd_default_dtype()), device, requires_grad, true);
}

static double rounded(const struct range *r, double value)
{
    return r->made == GRD_FLOAT32 ? (double)(float)value : value;
}

/* Sets r->start[part], r->end[part] and r->step[part]. Part 0 is the real part of the range, part 1 the imaginary part. */
static void set_part(struct range *r, int part, double start, double end)
{
    start = rounded(r, start);
    end = rounded(r, end);
    r->start[part] = grd_float(start);
    r->end[part] = grd_float(end);
    r->step[part] = grd_float(r->n > 1 ? rounded(r, rounded(r, end - start) / (double)(r->n - 1)) : 0);
}

bool plan_spaced(struct grd_plan *p, grd_scalar start, grd_scalar end, int64_t steps, grd_dtype dtype, grd_device device,
                 bool requires_grad, double base, bool logarithmic)
{
    const bool is_complex = start.kind == GRD_SCALAR_COMPLEX || end.kind == GRD_SCALAR_COMPLEX;
    dtype = dtype_or(dtype, is_complex ? grd_dtype_to_complex(grd_default_dtype()) : grd_default_dtype());
    const bool is_integer = grd_dtype_is_integer(dtype);
    if (steps < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "number of steps must be non-negative");
    if (!check_range_dtype(p->op->name, dtype, true))
        return false;
    if (is_complex && !grd_dtype_is_complex(dtype))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "inferred dtype complex for a range between complex numbers can't be safely cast to passed dtype %s",
                         grd_dtype_name(dtype));
    char element[16];
    if (is_integer && ((steps > 0 && !grd_scalar_write(start, dtype, element)) || (steps > 1 && !grd_scalar_write(end, dtype, element))))
        return false;
    const bool single = !logarithmic && dtype != GRD_FLOAT64 && dtype != GRD_COMPLEX128 && !is_integer;
    struct range *r = (struct range *)p->state;
    *r = (struct range){.made = single ? GRD_FLOAT32 : GRD_FLOAT64,
                        .parts = grd_dtype_is_complex(dtype) ? 2 : 1,
                        .logarithmic = logarithmic,
                        .from_start = steps == 1,
                        .n = steps,
                        .base = base};
    /* For an integer dtype, `start` and `end` are truncated first. An exception is logspace with one element: only the result is truncated. */
    const bool truncates = is_integer && !(logarithmic && steps == 1);
    const double first = grd_scalar_double(start), last = grd_scalar_double(end);
    set_part(r, 0, truncates ? trunc(first) : first, truncates ? trunc(last) : last);
    set_part(r, 1, grd_scalar_imaginary(start), grd_scalar_imaginary(end));
    return grd_plan_new(p, grd_dims(steps), dtype, device, requires_grad);
}

grd_dims grd_permuted_strides(grd_dims sizes, grd_dims order)
{
    int64_t *strides = grd_pool_array(sizes.n, sizeof *strides), stride = 1;
    uint64_t seen = 0;
    if (sizes.n != order.n)
        grd_raise(GRD_ERROR_RUNTIME,
                  "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = %lld is not equal to "
                  "len(physical_layout) = %lld",
                  (long long)sizes.n, (long long)order.n);
    for (int64_t i = order.n - 1; i >= 0 && !grd_pending(); i--) {
        const int64_t dim = order.data[i];
        if (dim < 0 || dim >= sizes.n)
            grd_raise(GRD_ERROR_RUNTIME, "Dimension out of range (expected to be between 0 and %lld, but got %lld at index %lld)",
                      (long long)sizes.n - 1, (long long)dim, (long long)i);
        else if (seen >> dim & 1)
            grd_raise(GRD_ERROR_RUNTIME, "Duplicate dim not allowed");
        if (grd_pending())
            return GRD_NO_DIMS;
        strides[dim] = stride;
        stride = grd_wrapping_product(stride, grd_greatest(sizes.data[dim], 1));
        seen |= (uint64_t)1 << dim;
    }
    return grd_pending() ? GRD_NO_DIMS : grd_dims_from(strides, sizes.n);
}

/* ---- Sizes --------------------------------------------------------------------------------------------------------------------------- */

grd_tensor *op_resize(grd_tensor *out, grd_tensor *self, grd_dims size, const char *memory_format)
{
    int64_t strides[5];
    const enum grd_memory_format format = factory_format(memory_format, size.n);
    if (format == GRD_FORMAT_FAILED)
        return grd_failed;
    if (grd_requires_grad(self))
        return grd_fail(GRD_ERROR_RUNTIME, "cannot resize variables that require grad");
    if (grd_same_sizes(out, size) && format == GRD_FORMAT_CONTIGUOUS)
        return out;
    if (grd_is_channels_last_format(format))
        grd_shape_channels_last_strides(size, strides);
    if (!grd_resize_like(out, size, grd_is_channels_last_format(format) ? strides : NULL))
        return grd_failed;
    grd_bump_version(out);
    return out;
}

/* ---- Matrices ------------------------------------------------------------------------------------------------------------------------ */

bool plan_eye(struct grd_plan *p, int64_t n, grd_scalar m, grd_dtype dtype, grd_device device, bool requires_grad)
{
    const int64_t columns = m.kind == GRD_SCALAR_NONE ? n : grd_scalar_int64(m);
    if (n < 0 || columns < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "%s must be greater or equal to 0, got %lld", n < 0 ? "n" : "m",
                         (long long)(n < 0 ? n : columns));
    dtype = dtype_or(dtype, grd_default_dtype());
    return grd_scalar_write(grd_int(1), dtype, p->state) && grd_plan_new(p, grd_dims(n, columns), dtype, device, requires_grad);
}

/* Fills the result with zeros, then its diagonal with the element in p->state. plan_eye has set this element to 1 in the dtype of the result. */
void run_eye(const struct grd_plan *p)
{
    grd_tensor *result = p->results[0];
    const int64_t rows = result->sizes[0], columns = result->sizes[1], itemsize = result->itemsize;
    grd_zero_elements(result);
    grd_cast_kernel((grd_dtype)result->dtype, (grd_dtype)result->dtype)(rows < columns ? rows : columns,
                                                                        (char *const[]){result->data, (char *)(uintptr_t)p->state},
                                                                        (const int64_t[]){(columns + 1) * itemsize, 0}, NULL);
}

bool plan_triangular(struct grd_plan *p, grd_tensor *self, int64_t diagonal, bool upper)
{
    if (self->ndim < 2)
        return grd_raise(GRD_ERROR_RUNTIME, "%s: input tensor must have at least 2 dimensions", upper ? "triu" : "tril");
    const int64_t rows = self->sizes[self->ndim - 2], columns = self->sizes[self->ndim - 1];
    *(struct grd_triangle_copy *)p->state = (struct grd_triangle_copy){
        .rows = rows, .columns = columns, .itemsize = self->itemsize, .diagonal = grd_clamped(diagonal, -rows, columns), .upper = upper};
    p->aligned = true;
    return grd_plan_reads_as(p, self, (grd_dtype)self->dtype) && grd_plan_result(p, grd_sizes(self), (grd_dtype)self->dtype);
}

static void triangle_rows(int64_t begin, int64_t end, void *context)
{
    grd_triangle_rows(context, begin, end);
}

void run_triangle(const struct grd_plan *p)
{
    struct grd_triangle_copy t = *(const struct grd_triangle_copy *)p->state;
    const int64_t bytes = t.columns * t.itemsize;
    t.from = p->in[0]->data;
    t.to = p->results[0]->data;
    grd_parallel_for(0, p->results[0]->numel / t.columns, bytes < BYTES_GRAIN ? BYTES_GRAIN / bytes : 1, triangle_rows, &t);
}
