/* Random numbers: what a distribution makes of the generator's words, and the operators that fill a tensor in place.
 *
 * A fill draws the words of many elements at once, makes values of them on all threads, as float, double, bool or int64, and converts those
 * to the tensor's dtype, in the order of memory. Operators that make a tensor are in sample.c.
 * Invariants: words are drawn under the generator's lock, and in the order and number PyTorch draws them, so that the stream of numbers is the
 * same; nothing is drawn before every check has passed. */
#include "op/random.h"

#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "gradus/ops/amax.h"
#include "gradus/ops/amin.h"
#include "gradus/ops/expand.h"
#include "gen/impl/random.h"
#include "kernel/random.h"
#include "kernel/table.h"
#include "op/common.h"

/* Elements made at a time, by one task, and of which the words are drawn at a time where making them is slow enough for several threads. */
enum { PIECE = 512, GRAIN = 4 * PIECE, BATCH = 16 * GRAIN, NORMAL_BLOCK = 16 };

bool grd_random_is_floating(grd_dtype dtype)
{
    return dtype == GRD_FLOAT16 || dtype == GRD_BFLOAT16 || dtype == GRD_FLOAT32 || dtype == GRD_FLOAT64;
}

static bool is_half(grd_dtype dtype)
{
    return dtype == GRD_FLOAT16 || dtype == GRD_BFLOAT16;
}

/* ---- Distributions ----------------------------------------------------------------------------------------------------------------- */

struct fill;

/* Makes n values, at most PIECE, of the fill's source dtype; a function of the words alone. */
typedef void make_function(const struct fill *fill, int64_t n, const uint32_t *words, void *ret_values);

struct fill {
    make_function *make;
    grd_dtype source, dtype; /* of the values made, of the tensor */
    int words;               /* per element: 1 or 2 */
    bool slow;               /* several threads pay */
    double a, b;             /* numbers of the distribution */
    uint64_t range;          /* of integers: modulus, 0 for none */
    int64_t base;
};

static void convert(grd_dtype from, grd_dtype to, int64_t n, const void *values, void *ret_values)
{
    grd_kernels->cast[from][to](n, (char *const[]){ret_values, (char *)values}, (const int64_t[]){grd_dtype_size(to), grd_dtype_size(from)},
                                NULL);
}

static void make_uniform_float(const struct fill *fill, int64_t n, const uint32_t *words, void *ret_values)
{
    grd_kernels->random->uniform_float(n, words, (float)fill->a, (float)fill->b, ret_values);
}

static void make_uniform_double(const struct fill *fill, int64_t n, const uint32_t *words, void *ret_values)
{
    grd_kernels->random->uniform_double(n, words, fill->a, fill->b, ret_values);
}

/* What rounding made the upper bound becomes the lower one. */
static void make_uniform_half(const struct fill *fill, int64_t n, const uint32_t *words, void *ret_values)
{
    const float bounds[] = {(float)fill->a, (float)fill->b};
    float wide[PIECE];
    uint16_t *values = ret_values, ends[2];
    grd_kernels->random->uniform_float(n, words, bounds[0], bounds[1], wide);
    convert(GRD_FLOAT32, fill->dtype, n, wide, values);
    convert(GRD_FLOAT32, fill->dtype, 2, bounds, ends);
    const uint16_t zero = ends[1] & 0x7fff; /* 0 and -0 are the same bound */
    for (int64_t i = 0; i < n; i++)
        values[i] = values[i] == ends[1] || ((values[i] & 0x7fff) | zero) == 0 ? ends[0] : values[i];
}

static void make_exponential(const struct fill *fill, int64_t n, const uint32_t *words, void *ret_values)
{
    double *values = ret_values, scale = -1.0 / fill->a;
    grd_kernels->random->uniform_double(n, words, 0, 1, values);
    for (int64_t i = 0; i < n; i++)
        values[i] = scale * log1p(-values[i]);
}

static void make_bernoulli(const struct fill *fill, int64_t n, const uint32_t *words, void *ret_values)
{
    grd_kernels->random->bernoulli(n, words, fill->a, ret_values);
}

static void make_integers(const struct fill *fill, int64_t n, const uint32_t *words, void *ret_values)
{
    int64_t *values = ret_values;
    const uint64_t base = (uint64_t)fill->base;
    if (fill->words == 1) {
        const uint32_t range = (uint32_t)fill->range; /* 0 for 2^32, too */
        for (int64_t i = 0; i < n; i++)
            values[i] = (int64_t)((range == 0 ? words[i] : words[i] % range) + base);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = (uint64_t)words[2 * i] << 32 | words[2 * i + 1];
        values[i] = (int64_t)((fill->range == 0 ? bits : bits % fill->range) + base);
    }
}

/* Whole blocks of normal numbers. */
static void make_normal_float(const struct fill *fill, int64_t n, const uint32_t *words, void *ret_values)
{
    grd_kernels->random->uniform_float(n, words, 0, 1, ret_values);
    grd_kernels->random->normal_float(n / NORMAL_BLOCK, ret_values, (float)fill->a, (float)fill->b);
}

static void make_normal_double(const struct fill *fill, int64_t n, const uint32_t *words, void *ret_values)
{
    grd_kernels->random->uniform_double(n, words, 0, 1, ret_values);
    grd_kernels->random->normal_double(n / NORMAL_BLOCK, ret_values, fill->a, fill->b);
}

/* ---- Fills -------------------------------------------------------------------------------------------------------------------------- */

/* What draws the elements of a tensor. */
struct draw {
    struct fill fill;
    grd_task *task; /* makes elements of a batch */
    struct grd_generator *generator;
    uint32_t *words; /* room for those of a batch */
    size_t size;     /* of that room */
};

struct batch {
    const struct draw *draw;
    int64_t first;     /* element */
    char *const *data; /* of the result, and of the probabilities where they are a tensor */
    const int64_t *strides;
};

static void fill_task(int64_t begin, int64_t end, void *context)
{
    const struct batch *batch = context;
    const struct fill *fill = &batch->draw->fill;
    const int64_t stride = batch->strides[0];
    const bool direct = fill->source == fill->dtype && stride == grd_dtype_size(fill->dtype);
    _Alignas(double) char values[PIECE * sizeof(double)];
    for (int64_t at = begin; at < end; at += PIECE) {
        const int64_t n = end - at < PIECE ? end - at : PIECE;
        const uint32_t *words = batch->draw->words + at * fill->words;
        char *target = batch->data[0] + (batch->first + at) * stride;
        fill->make(fill, n, words, direct ? target : values);
        if (!direct)
            grd_kernels->cast[fill->source][fill->dtype](n, (char *const[]){target, values},
                                                         (const int64_t[]){stride, grd_dtype_size(fill->source)}, NULL);
    }
}

/* 1 where a number u is below the probability beside it; u has 53 bits for probabilities in float64 and 24 for others. */
static void bernoulli_tensor_task(int64_t begin, int64_t end, void *context)
{
    const struct batch *batch = context;
    const struct fill *fill = &batch->draw->fill;
    const int64_t *strides = batch->strides;
    double u[PIECE], p[PIECE];
    float narrow[PIECE];
    uint8_t values[PIECE];
    for (int64_t at = begin; at < end; at += PIECE) {
        const int64_t n = end - at < PIECE ? end - at : PIECE, element = batch->first + at;
        const uint32_t *words = batch->draw->words + at * fill->words;
        grd_kernels->cast[fill->source][GRD_FLOAT64](n, (char *const[]){(char *)p, batch->data[1] + element * strides[1]},
                                                     (const int64_t[]){sizeof *p, strides[1]}, NULL);
        if (fill->source == GRD_FLOAT64)
            grd_kernels->random->uniform_double(n, words, 0, 1, u);
        else
            grd_kernels->random->uniform_float(n, words, 0, 1, narrow);
        for (int64_t i = 0; i < n; i++)
            values[i] = (fill->source == GRD_FLOAT64 ? u[i] : (double)narrow[i]) < p[i];
        grd_kernels->cast[GRD_BOOL][fill->dtype](n, (char *const[]){batch->data[0] + element * strides[0], (char *)values},
                                                 (const int64_t[]){strides[0], 1}, NULL);
    }
}

static void draw_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    const struct draw *draw = params;
    const int64_t most = draw->fill.slow ? BATCH : GRAIN;
    for (int64_t at = 0; at < n; at += most) {
        const int64_t count = n - at < most ? n - at : most;
        grd_kernels->random->words(&draw->generator->engine, count * draw->fill.words, draw->words);
        grd_parallel_for(0, count, GRAIN, draw->task, &(struct batch){draw, at, data, strides});
    }
}

/* Begins to draw n elements: room for the words, and the generator locked. */
static bool start_draw(struct draw *draw, int64_t n, grd_generator *generator)
{
    const int64_t most = draw->fill.slow ? BATCH : GRAIN;
    draw->size = (size_t)(n < most ? n : most) * (size_t)draw->fill.words * sizeof *draw->words;
    draw->words = grd_alloc(draw->size);
    if (draw->words != NULL)
        draw->generator = grd_generator_lock(generator);
    return draw->words != NULL;
}

static void end_draw(struct draw *draw)
{
    grd_generator_unlock(draw->generator);
    grd_free(draw->words, draw->size);
}

/* Runs a loop over the elements in the order of memory. A complex tensor is a real one with one dimension more. */
static void for_elements(grd_tensor *self, grd_loop *loop, const void *params)
{
    const grd_dtype real = grd_dtype_to_real((grd_dtype)self->dtype);
    const int64_t itemsize = grd_dtype_size(real);
    int64_t sizes[GRD_MAX_DIMS + 1], strides[GRD_MAX_DIMS + 1], ndim = self->ndim;
    for (int64_t d = 0; d < ndim; d++) {
        sizes[d] = self->sizes[d];
        strides[d] = grd_byte_stride(self, d);
    }
    if (real != (grd_dtype)self->dtype) {
        sizes[ndim] = 2;
        strides[ndim++] = itemsize;
    }
    struct grd_iter it;
    grd_iter_raw(&it, grd_dims_from(sizes, ndim), 1, (char *const[]){self->data}, (const int64_t *const[]){strides});
    grd_iter_run_serial(&it, loop, params);
}

/* Checks that self can be written; *ret_done when there is nothing to draw. */
static bool check_written(const grd_tensor *self, bool *ret_done)
{
    *ret_done = self->numel == 0 || grd_is_meta(self);
    return grd_check_no_internal_overlap(self);
}

static grd_tensor *run_fill(grd_tensor *self, grd_generator *generator, struct fill fill)
{
    struct draw draw = {.fill = fill, .task = fill_task};
    bool done;
    if (!check_written(self, &done))
        return grd_failed;
    if (done)
        return self;
    draw.fill.dtype = grd_dtype_to_real((grd_dtype)self->dtype);
    if (!start_draw(&draw, 2 * self->numel, generator))
        return grd_failed;
    for_elements(self, draw_loop, &draw);
    end_draw(&draw);
    return self;
}

/* ---- normal ------------------------------------------------------------------------------------------------------------------------- */

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

static void normal_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    const struct draw *draw = params;
    double values[PIECE];
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t count = n - at < PIECE ? n - at : PIECE;
        for (int64_t i = 0; i < count; i++)
            values[i] = fma(unit_normal(draw->generator), draw->fill.b, draw->fill.a);
        grd_kernels->cast[GRD_FLOAT64][draw->fill.dtype](count, (char *const[]){data[0] + at * strides[0], (char *)values},
                                                         (const int64_t[]){strides[0], sizeof *values}, NULL);
    }
}

/* n >= 16 contiguous elements: blocks of 16, and the last 16 once more, freshly drawn, where n is no multiple of 16. */
static void normal_blocks(const struct draw *draw, char *data, int64_t n)
{
    const struct fill *fill = &draw->fill;
    const int64_t itemsize = grd_dtype_size(fill->dtype), rest = n % NORMAL_BLOCK;
    draw_loop(n - rest, (char *const[]){data}, &itemsize, draw);
    if (rest == 0)
        return;
    if (fill->source == fill->dtype) /* the rest is drawn, too, and overwritten; the half dtypes leave it out */
        grd_kernels->random->words(&draw->generator->engine, rest * fill->words, draw->words);
    draw_loop(NORMAL_BLOCK, (char *const[]){data + (n - NORMAL_BLOCK) * itemsize}, &itemsize, draw);
}

grd_tensor *op_normal(grd_tensor *out, grd_tensor *self, double mean, double std, grd_generator *generator)
{
    (void)out;
    const grd_dtype real = grd_dtype_to_real((grd_dtype)self->dtype);
    const bool wide = real == GRD_FLOAT64, is_complex = real != (grd_dtype)self->dtype;
    bool done;
    if (!(std >= 0))
        grd_raise(GRD_ERROR_RUNTIME, "normal expects std >= 0.0, but found std %g", std);
    else if (!grd_random_is_floating(real))
        grd_raise_no_kernel("normal_kernel", (grd_dtype)self->dtype);
    if (grd_pending() || !check_written(self, &done))
        return grd_failed;
    if (done)
        return self;
    const int64_t n = is_complex ? 2 * self->numel : self->numel;
    struct draw draw = {.fill = {.make = wide ? make_normal_double : make_normal_float,
                                 .source = wide ? GRD_FLOAT64 : GRD_FLOAT32,
                                 .dtype = real,
                                 .words = wide ? 2 : 1,
                                 .slow = wide,
                                 .a = mean,
                                 .b = is_complex ? std / sqrt(2) : std},
                        .task = fill_task};
    if (!start_draw(&draw, n, generator))
        return grd_failed;
    if (n >= NORMAL_BLOCK && grd_is_contiguous(self))
        normal_blocks(&draw, self->data, n);
    else
        for_elements(self, normal_loop, &draw);
    end_draw(&draw);
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
    const bool half = is_half(dtype), wide = dtype == GRD_FLOAT64;
    return run_fill(self, generator,
                    (struct fill){.make = half   ? make_uniform_half
                                          : wide ? make_uniform_double
                                                 : make_uniform_float,
                                  .source = dtype,
                                  .words = wide ? 2 : 1,
                                  .a = from,
                                  .b = to});
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
    return run_fill(self, generator, (struct fill){.make = make_exponential, .source = GRD_FLOAT64, .words = 2, .slow = true, .a = lambd});
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
        strides[0][d] = grd_byte_stride(self, d);
        strides[1][d] = grd_byte_stride(spread, d);
    }
    struct draw draw = {.fill = {.source = (grd_dtype)p->dtype, .dtype = (grd_dtype)self->dtype, .words = p->dtype == GRD_FLOAT64 ? 2 : 1},
                        .task = bernoulli_tensor_task};
    if (!start_draw(&draw, self->numel, generator))
        return grd_failed;
    struct grd_iter it;
    grd_iter_raw(&it, grd_dims_from(self->sizes, self->ndim), 2, (char *const[]){self->data, spread->data},
                 (const int64_t *const[]){strides[0], strides[1]});
    grd_iter_run_serial(&it, draw_loop, &draw);
    end_draw(&draw);
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
    return run_fill(self, generator, (struct fill){.make = make_bernoulli, .source = GRD_BOOL, .words = 2, .a = probability});
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
    struct fill fill = {.make = make_integers, .source = GRD_INT64};
    if (grd_category_of(dtype) > GRD_CATEGORY_INTEGER && !floating)
        return grd_fail(GRD_ERROR_RUNTIME, "check_random_bounds handles only integral, floating-point and boolean types");
    if (from.kind == GRD_SCALAR_NONE && to.kind == GRD_SCALAR_NONE) {
        int digits = grd_random_digits(dtype);
        fill.words = dtype == GRD_FLOAT64 || dtype == GRD_INT64 || dtype == GRD_UINT64 ? 2 : 1;
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
    } else if (dtype != GRD_INT64 && dtype != GRD_FLOAT64 && dtype != GRD_FLOAT32 && dtype != GRD_BFLOAT16)
        return grd_fail(GRD_ERROR_RUNTIME, "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16");
    fill.words = fill.range == 0 || fill.range >= (uint64_t)1 << 28 ? 2 : 1;
    return run_fill(self, generator, fill);
}
