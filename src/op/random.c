/* Random numbers: what a distribution makes of the generator's bits, and the operators that fill a tensor in place.
 *
 * A fill draws values into a buffer, as float, double or int64, and converts them to the tensor's dtype, in the order of memory.
 * Operators that make a tensor are in sample.c.
 * Invariants: numbers are drawn serially under the generator's lock, and in the order and width PyTorch draws them, so that the stream of
 * numbers is the same; nothing is drawn before every check has passed. */
#include "op/random.h"

#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "gen/op_impl.h"
#include "gradus/ops.h"
#include "kernel/random.h"
#include "kernel/table.h"
#include "op/common.h"

enum { BUFFER = 256, NORMAL_BLOCK = 16 };

/* ---- Single draws ------------------------------------------------------------------------------------------------------------------ */

bool grd_random_is_floating(grd_dtype dtype)
{
    return dtype == GRD_FLOAT16 || dtype == GRD_BFLOAT16 || dtype == GRD_FLOAT32 || dtype == GRD_FLOAT64;
}

/* [0, 1) in steps of 2^-24. */
static float unit_float(struct grd_generator *generator)
{
    return (float)(grd_random32(generator) & 0xffffff) * 0x1p-24f;
}

/* Box–Muller on one pair; the second value waits in the generator for the next call. */
static double unit_normal(struct grd_generator *generator)
{
    if (generator->has_normal_double) {
        generator->has_normal_double = false;
        return generator->normal_double;
    }
    double u1 = grd_random_unit_double(generator), u2 = grd_random_unit_double(generator);
    double radius = sqrt(-2 * log1p(-u2)), angle = 6.283185307179586477 * u1;
    generator->normal_double = radius * sin(angle);
    generator->has_normal_double = true;
    return radius * cos(angle);
}

/* ---- Fills -------------------------------------------------------------------------------------------------------------------------- */

struct fill;

/* Draws n values of the fill's source dtype. */
typedef void draw_function(const struct fill *fill, int64_t n, void *ret_values);

struct fill {
    struct grd_generator *generator;
    draw_function *draw;
    grd_dtype source, dtype; /* of the values drawn, of the tensor */
    double a, b;             /* numbers of the distribution */
    uint64_t range;          /* of integers: modulus, 0 for none */
    int64_t base;
    bool wide; /* 64 bits per integer */
};

static void draw_uniform_float(const struct fill *fill, int64_t n, void *ret_values)
{
    float *values = ret_values, from = (float)fill->a, to = (float)fill->b;
    for (int64_t i = 0; i < n; i++) {
        float x = fmaf(unit_float(fill->generator), to - from, from);
        if (fill->dtype == GRD_FLOAT16)
            x = grd_to_float16(x) == grd_to_float16(to) ? from : x;
        else if (fill->dtype == GRD_BFLOAT16)
            x = grd_to_bfloat16(x) == grd_to_bfloat16(to) ? from : x;
        else
            x = x == to ? from : x;
        values[i] = x;
    }
}

static void draw_uniform_double(const struct fill *fill, int64_t n, void *ret_values)
{
    double *values = ret_values, from = fill->a, to = fill->b;
    for (int64_t i = 0; i < n; i++) {
        double x = fma(grd_random_unit_double(fill->generator), to - from, from);
        values[i] = x == to ? from : x;
    }
}

static void draw_normal(const struct fill *fill, int64_t n, void *ret_values)
{
    double *values = ret_values;
    for (int64_t i = 0; i < n; i++)
        values[i] = fma(unit_normal(fill->generator), fill->b, fill->a);
}

static void draw_exponential(const struct fill *fill, int64_t n, void *ret_values)
{
    double *values = ret_values;
    for (int64_t i = 0; i < n; i++)
        values[i] = -1.0 / fill->a * log1p(-grd_random_unit_double(fill->generator));
}

static void draw_bernoulli(const struct fill *fill, int64_t n, void *ret_values)
{
    int64_t *values = ret_values;
    for (int64_t i = 0; i < n; i++)
        values[i] = grd_random_unit_double(fill->generator) < fill->a;
}

static void draw_integer(const struct fill *fill, int64_t n, void *ret_values)
{
    int64_t *values = ret_values;
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = fill->wide ? grd_random64(fill->generator) : grd_random32(fill->generator);
        values[i] = (int64_t)((fill->range == 0 ? bits : bits % fill->range) + (uint64_t)fill->base);
    }
}

static void fill_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    const struct fill *fill = params;
    union {
        float f[BUFFER];
        double d[BUFFER];
        int64_t i[BUFFER];
    } values;
    grd_loop_kernel *cast = grd_kernels->cast[fill->source][fill->dtype];
    for (int64_t at = 0; at < n; at += BUFFER) {
        int64_t count = n - at < BUFFER ? n - at : BUFFER;
        fill->draw(fill, count, &values);
        cast(count, (char *const[]){data[0] + at * strides[0], (char *)&values},
             (const int64_t[]){strides[0], grd_dtype_size(fill->source)}, NULL);
    }
}

/* A complex tensor is a real one with one dimension more. */
static void fill_elements(grd_tensor *self, struct fill *fill)
{
    int64_t sizes[GRD_MAX_DIMS + 1], strides[GRD_MAX_DIMS + 1], ndim = self->ndim;
    fill->dtype = grd_dtype_to_real((grd_dtype)self->dtype);
    int64_t itemsize = grd_dtype_size(fill->dtype);
    for (int64_t d = 0; d < ndim; d++) {
        sizes[d] = self->sizes[d];
        strides[d] = self->strides[d] * (int64_t)self->itemsize;
    }
    if (fill->dtype != (grd_dtype)self->dtype) {
        sizes[ndim] = 2;
        strides[ndim++] = itemsize;
    }
    struct grd_iter it;
    grd_iter_raw(&it, grd_dims_from(sizes, ndim), 1, (char *const[]){self->data}, (const int64_t *const[]){strides});
    grd_iter_run_serial(&it, fill_loop, fill);
}

/* Checks that self can be written; *ret_done when there is nothing to draw. */
static bool check_written(const grd_tensor *self, bool *ret_done)
{
    *ret_done = self->numel == 0 || grd_is_meta(self);
    return grd_check_no_internal_overlap(self);
}

static grd_tensor *run_fill(grd_tensor *self, grd_generator *generator, struct fill fill)
{
    bool done;
    if (!check_written(self, &done))
        return grd_failed;
    if (!done) {
        fill.generator = grd_generator_lock(generator);
        fill_elements(self, &fill);
        grd_generator_unlock(fill.generator);
    }
    return self;
}

/* ---- normal ------------------------------------------------------------------------------------------------------------------------- */

static void normal_block_half(struct grd_generator *generator, uint16_t *data, bool brain, float mean, float std)
{
    float values[NORMAL_BLOCK];
    for (int i = 0; i < NORMAL_BLOCK; i++)
        values[i] = unit_float(generator);
    grd_kernels->random->normal_float(1, values, mean, std);
    for (int i = 0; i < NORMAL_BLOCK; i++)
        data[i] = brain ? grd_to_bfloat16(values[i]) : grd_to_float16(values[i]);
}

/* n >= 16 contiguous elements: blocks of 16, and the last 16 once more, freshly drawn, where n is no multiple of 16. */
static void normal_contiguous(struct grd_generator *generator, char *data, int64_t n, grd_dtype dtype, double mean, double std)
{
    int64_t blocks = n / NORMAL_BLOCK, tail = n % NORMAL_BLOCK == 0 ? 0 : NORMAL_BLOCK;
    if (dtype == GRD_FLOAT32) {
        float *values = (float *)data;
        for (int64_t i = 0; i < n; i++)
            values[i] = unit_float(generator);
        grd_kernels->random->normal_float(blocks, values, (float)mean, (float)std);
        values += n - tail;
        for (int64_t i = 0; i < tail; i++)
            values[i] = unit_float(generator);
        grd_kernels->random->normal_float(tail / NORMAL_BLOCK, values, (float)mean, (float)std);
    } else if (dtype == GRD_FLOAT64) {
        double *values = (double *)data;
        for (int64_t i = 0; i < n; i++)
            values[i] = grd_random_unit_double(generator);
        grd_kernels->random->normal_double(blocks, values, mean, std);
        values += n - tail;
        for (int64_t i = 0; i < tail; i++)
            values[i] = grd_random_unit_double(generator);
        grd_kernels->random->normal_double(tail / NORMAL_BLOCK, values, mean, std);
    } else {
        uint16_t *values = (uint16_t *)data;
        bool brain = dtype == GRD_BFLOAT16;
        for (int64_t b = 0; b < blocks; b++)
            normal_block_half(generator, values + b * NORMAL_BLOCK, brain, (float)mean, (float)std);
        if (tail != 0)
            normal_block_half(generator, values + n - tail, brain, (float)mean, (float)std);
    }
}

grd_tensor *op_normal(grd_tensor *out, grd_tensor *self, double mean, double std, grd_generator *generator)
{
    (void)out;
    grd_dtype real = grd_dtype_to_real((grd_dtype)self->dtype);
    bool done;
    if (!(std >= 0))
        grd_raise(GRD_ERROR_RUNTIME, "normal expects std >= 0.0, but found std %g", std);
    else if (!grd_random_is_floating(real))
        grd_raise_no_kernel("normal_kernel", (grd_dtype)self->dtype);
    if (grd_pending() || !check_written(self, &done))
        return grd_failed;
    if (done)
        return self;
    int64_t n = self->numel;
    if (real != (grd_dtype)self->dtype) {
        n *= 2;
        std /= sqrt(2);
    }
    struct fill fill = {.draw = draw_normal, .source = GRD_FLOAT64, .a = mean, .b = std, .generator = grd_generator_lock(generator)};
    if (n >= NORMAL_BLOCK && grd_is_contiguous(self))
        normal_contiguous(fill.generator, self->data, n, real, mean, std);
    else
        fill_elements(self, &fill);
    grd_generator_unlock(fill.generator);
    return self;
}

/* ---- uniform, exponential, bernoulli ------------------------------------------------------------------------------------------------ */

static double largest_finite(grd_dtype dtype)
{
    return dtype == GRD_FLOAT16    ? 65504
           : dtype == GRD_BFLOAT16 ? 0x1.fep127
           : dtype == GRD_FLOAT32  ? 0x1.fffffep127
                                   : 0x1.fffffffffffffp1023;
}

grd_tensor *op_uniform(grd_tensor *out, grd_tensor *self, double from, double to, grd_generator *generator)
{
    (void)out;
    grd_dtype dtype = grd_dtype_to_real((grd_dtype)self->dtype);
    double largest = largest_finite(dtype);
    if (!grd_random_is_floating(dtype))
        grd_raise_no_kernel("check_uniform_bounds", (grd_dtype)self->dtype);
    else if (!(fabs(from) <= largest && fabs(to) <= largest))
        grd_raise(GRD_ERROR_RUNTIME, "%s is out of bounds for %s", fabs(from) <= largest ? "to" : "from", grd_dtype_name(dtype));
    else if (!(from <= to))
        grd_raise(GRD_ERROR_RUNTIME, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", from, to);
    else if (!(to - from <= largest))
        grd_raise(GRD_ERROR_RUNTIME, "uniform_ expects to-from <= std::numeric_limits<%s>::max(), but found to=%g and from=%g",
                  grd_dtype_type_name(dtype), to, from);
    if (grd_pending())
        return grd_failed;
    bool wide = dtype == GRD_FLOAT64;
    return run_fill(
        self, generator,
        (struct fill){
            .draw = wide ? draw_uniform_double : draw_uniform_float, .source = wide ? GRD_FLOAT64 : GRD_FLOAT32, .a = from, .b = to});
}

grd_tensor *op_exponential(grd_tensor *out, grd_tensor *self, double lambd, grd_generator *generator)
{
    (void)out;
    if (!(lambd > 0))
        grd_raise(GRD_ERROR_RUNTIME, "exponential_ expects lambda > 0.0, but found lambda=%g", lambd);
    else if (!grd_random_is_floating((grd_dtype)self->dtype))
        grd_raise(GRD_ERROR_RUNTIME,
                  "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you specified %s",
                  grd_dtype_type_name((grd_dtype)self->dtype));
    if (grd_pending())
        return grd_failed;
    return run_fill(self, generator, (struct fill){.draw = draw_exponential, .source = GRD_FLOAT64, .a = lambd});
}

/* 1 where a number from [0, 1) is below the probability: data are result and probabilities. */
static void bernoulli_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    const struct fill *fill = params;
    int64_t values[BUFFER];
    double p[BUFFER];
    bool wide = fill->source == GRD_FLOAT64;
    grd_loop_kernel *read = grd_kernels->cast[fill->source][GRD_FLOAT64], *write = grd_kernels->cast[GRD_INT64][fill->dtype];
    for (int64_t at = 0; at < n; at += BUFFER) {
        int64_t count = n - at < BUFFER ? n - at : BUFFER;
        read(count, (char *const[]){(char *)p, data[1] + at * strides[1]}, (const int64_t[]){sizeof *p, strides[1]}, NULL);
        for (int64_t i = 0; i < count; i++)
            values[i] = wide ? grd_random_unit_double(fill->generator) < p[i] : (double)unit_float(fill->generator) < p[i];
        write(count, (char *const[]){data[0] + at * strides[0], (char *)values}, (const int64_t[]){strides[0], sizeof *values}, NULL);
    }
}

static bool check_bernoulli_dtype(const grd_tensor *self)
{
    return grd_category_of((grd_dtype)self->dtype) <= GRD_CATEGORY_INTEGER || grd_random_is_floating((grd_dtype)self->dtype) ||
           grd_raise_no_kernel("bernoulli_scalar", (grd_dtype)self->dtype);
}

/* Probabilities broadcast to self. */
static grd_tensor *fill_bernoulli(grd_tensor *self, grd_tensor *p, grd_generator *generator)
{
    bool done;
    if (!grd_random_is_floating((grd_dtype)p->dtype))
        grd_raise_no_kernel("bernoulli_tensor", (grd_dtype)p->dtype);
    if (grd_pending() || !check_bernoulli_dtype(self) || !grd_check_same_device(grd_tensors(self, p)) || !check_written(self, &done))
        return grd_failed;
    grd_tensor *spread = grd_expand(p, grd_dims_from(self->sizes, self->ndim));
    if (grd_pending() || done)
        return grd_pending() ? grd_failed : self;
    if (!grd_check_no_partial_overlap(self, p))
        return grd_failed;
    double low = grd_item_double(grd_amin(p)), high = grd_item_double(grd_amax(p));
    if (!(low >= 0 && high <= 1))
        grd_raise(GRD_ERROR_RUNTIME, "Expected p_in >= 0 && p_in <= 1 to be true, but got probabilities from %g to %g", low, high);
    if (grd_pending())
        return grd_failed;
    int64_t strides[2][GRD_MAX_DIMS];
    for (int64_t d = 0; d < self->ndim; d++) {
        strides[0][d] = self->strides[d] * (int64_t)self->itemsize;
        strides[1][d] = spread->strides[d] * (int64_t)spread->itemsize;
    }
    struct fill fill = {.source = (grd_dtype)p->dtype, .dtype = (grd_dtype)self->dtype, .generator = grd_generator_lock(generator)};
    struct grd_iter it;
    grd_iter_raw(&it, grd_dims_from(self->sizes, self->ndim), 2, (char *const[]){self->data, spread->data},
                 (const int64_t *const[]){strides[0], strides[1]});
    grd_iter_run_serial(&it, bernoulli_loop, &fill);
    grd_generator_unlock(fill.generator);
    return self;
}

grd_tensor *op_bernoulli(grd_tensor *out, grd_tensor *self, grd_scalar p, grd_generator *generator)
{
    if (out == NULL) {
        grd_tensor *result = grd_new(grd_dims_from(self->sizes, self->ndim), (grd_dtype)self->dtype, grd_device_of(self));
        if (grd_pending())
            return grd_failed;
        return p.kind == GRD_SCALAR_NONE ? fill_bernoulli(result, self, generator) : op_bernoulli(result, result, p, generator);
    }
    double probability = p.kind == GRD_SCALAR_NONE ? 0.5 : grd_scalar_double(p);
    if (!(probability >= 0 && probability <= 1))
        grd_raise(GRD_ERROR_RUNTIME, "bernoulli_ expects p to be in [0, 1], but got p=%g", probability);
    if (grd_pending() || !check_bernoulli_dtype(self))
        return grd_failed;
    return run_fill(self, generator, (struct fill){.draw = draw_bernoulli, .source = GRD_INT64, .a = probability});
}

grd_tensor *op_bernoulli_tensor(grd_tensor *out, grd_tensor *self, grd_tensor *p, grd_generator *generator)
{
    (void)out;
    return fill_bernoulli(self, p, generator);
}

/* ---- random ------------------------------------------------------------------------------------------------------------------------- */

int grd_random_digits(grd_dtype dtype)
{
    switch (dtype) {
    case GRD_BOOL:
        return 1;
    case GRD_FLOAT16:
        return 11;
    case GRD_BFLOAT16:
        return 8;
    case GRD_FLOAT32:
        return 24;
    case GRD_FLOAT64:
        return 53;
    default: {
        bool is_signed = dtype == GRD_INT8 || dtype == GRD_INT16 || dtype == GRD_INT32 || dtype == GRD_INT64;
        return (int)grd_dtype_size(dtype) * 8 - is_signed;
    }
    }
}

void grd_random_bounds(grd_dtype dtype, int64_t *ret_low, int64_t *ret_high)
{
    bool is_signed = dtype == GRD_INT8 || dtype == GRD_INT16 || dtype == GRD_INT32 || dtype == GRD_INT64;
    if (grd_random_is_floating(dtype)) {
        *ret_high = dtype == GRD_FLOAT16 ? 65504 : INT64_MAX;
        *ret_low = dtype == GRD_FLOAT16 ? -65504 : INT64_MIN;
    } else {
        int bits = grd_random_digits(dtype);
        *ret_high = bits >= 63 ? INT64_MAX : ((int64_t)1 << bits) - 1;
        *ret_low = is_signed ? -*ret_high - 1 : 0;
    }
}

/* An integer as the floating dtype holds it. */
static int64_t rounded(int64_t x, grd_dtype dtype)
{
    double y;
    switch (dtype) {
    case GRD_FLOAT16:
        y = grd_from_float16(grd_to_float16((float)x));
        break;
    case GRD_BFLOAT16:
        y = grd_from_bfloat16(grd_to_bfloat16((float)x));
        break;
    case GRD_FLOAT32:
        y = (float)x;
        break;
    default:
        y = (double)x;
    }
    return y >= 0x1p63 ? INT64_MIN : (int64_t)y;
}

static int log2_of(uint64_t x)
{
    return x == 0 ? 0 : 63 - __builtin_clzll(x);
}

/* Moves the bounds inward to numbers the floating dtype holds, so that no rounded value leaves the range. */
static void narrow_bounds(grd_dtype dtype, int64_t *from, int64_t *to)
{
    int digits = grd_random_digits(dtype);
    int64_t next = *from == INT64_MAX ? *from : *from + 1, up = rounded(next, dtype);
    if (up < *from)
        *from = up + ((int64_t)1 << (log2_of((uint64_t)llabs(next)) - digits + 1));
    if (to == NULL)
        return;
    int64_t previous = *to - 1, down = rounded(previous, dtype);
    if (down >= *to)
        *to = down - ((int64_t)1 << (log2_of((uint64_t)llabs(previous)) - digits + 1));
}

grd_tensor *op_random(grd_tensor *out, grd_tensor *self, grd_scalar from, grd_scalar to, grd_generator *generator)
{
    (void)out;
    grd_dtype dtype = (grd_dtype)self->dtype;
    bool floating = grd_random_is_floating(dtype);
    struct fill fill = {.draw = draw_integer, .source = GRD_INT64};
    if (grd_category_of(dtype) > GRD_CATEGORY_INTEGER && !floating) {
        grd_raise(GRD_ERROR_RUNTIME, "check_random_bounds handles only integral, floating-point and boolean types");
        return grd_failed;
    }
    if (from.kind == GRD_SCALAR_NONE && to.kind == GRD_SCALAR_NONE) {
        int digits = grd_random_digits(dtype);
        fill.wide = dtype == GRD_FLOAT64 || dtype == GRD_INT64 || dtype == GRD_UINT64;
        fill.range = digits >= 64 ? 0 : floating ? ((uint64_t)1 << digits) + 1 : (uint64_t)1 << digits;
        return run_fill(self, generator, fill);
    }
    int64_t low, high, first = grd_scalar_int64(from), end = grd_scalar_int64(to);
    grd_random_bounds(dtype, &low, &high);
    if (to.kind != GRD_SCALAR_NONE) {
        if (first >= end)
            grd_raise(GRD_ERROR_RUNTIME, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld", (long long)first,
                      (long long)end);
        else if (floating)
            narrow_bounds(dtype, &first, &end);
        if (!grd_pending() && first >= end)
            grd_raise(GRD_ERROR_RUNTIME,
                      "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=%lld >= to=%lld",
                      (long long)first, (long long)end);
        else if (!grd_pending() && (first < low || first > high))
            grd_raise(GRD_ERROR_RUNTIME, "from is out of bounds for %s", grd_dtype_name(dtype));
        else if (!grd_pending() && (end - 1 < low || end - 1 > high))
            grd_raise(GRD_ERROR_RUNTIME, "to - 1 is out of bounds for %s", grd_dtype_name(dtype));
        if (grd_pending())
            return grd_failed;
        fill.range = (uint64_t)end - (uint64_t)first;
        fill.base = first;
    } else if (first != INT64_MIN) {
        int64_t last = floating ? (int64_t)1 << grd_random_digits(dtype) : high;
        if (floating)
            narrow_bounds(dtype, &first, NULL);
        if (first > last)
            grd_raise(GRD_ERROR_RUNTIME,
                      "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got "
                      "from=%lld > to_inc=%lld",
                      (long long)first, (long long)last);
        else if (first < low)
            grd_raise(GRD_ERROR_RUNTIME, "from is out of bounds for %s", grd_dtype_name(dtype));
        if (grd_pending())
            return grd_failed;
        fill.range = (uint64_t)last - (uint64_t)first + 1;
        fill.base = first;
    } else if (dtype != GRD_INT64 && dtype != GRD_FLOAT64 && dtype != GRD_FLOAT32 && dtype != GRD_BFLOAT16) {
        grd_raise(GRD_ERROR_RUNTIME, "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16");
        return grd_failed;
    }
    fill.wide = fill.range == 0 || fill.range >= (uint64_t)1 << 28;
    return run_fill(self, generator, fill);
}
