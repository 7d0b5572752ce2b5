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
#include "gen/op_impl.h"
#include "gradus/ops.h"
#include "kernel/random.h"
#include "kernel/table.h"
#include "op/common.h"

/* Elements made at a time, by one task, and of which the words are drawn at a time where making them is slow enough for several threads. */
enum { PIECE = 512, GRAIN = 4 * PIECE, BATCH = 16 * GRAIN };

bool grd_random_is_floating(grd_dtype dtype)
{
    return dtype == GRD_FLOAT16 || dtype == GRD_BFLOAT16 || dtype == GRD_FLOAT32 || dtype == GRD_FLOAT64;
}

/* ---- Fills -------------------------------------------------------------------------------------------------------------------------- */

/* Of a kind of numbers: the dtype they are made in, the words of each, and whether making them is slow enough for several threads. */
static const struct kind {
    uint8_t source, words;
    bool slow;
} kinds[GRD_RANDOM_KIND_COUNT] = {
    [GRD_RANDOM_UNIFORM_FLOAT] = {GRD_FLOAT32, 1, false},
    [GRD_RANDOM_UNIFORM_DOUBLE] = {GRD_FLOAT64, 2, false},
    [GRD_RANDOM_UNIFORM_FLOAT16] = {GRD_FLOAT16, 1, false},
    [GRD_RANDOM_UNIFORM_BFLOAT16] = {GRD_BFLOAT16, 1, false},
    [GRD_RANDOM_EXPONENTIAL] = {GRD_FLOAT64, 2, true},
    [GRD_RANDOM_BERNOULLI] = {GRD_BOOL, 2, false},
    [GRD_RANDOM_INTEGERS] = {GRD_INT64, 1, false},
    [GRD_RANDOM_LONG_INTEGERS] = {GRD_INT64, 2, false},
    [GRD_RANDOM_NORMAL_FLOAT] = {GRD_FLOAT32, 1, false},
    [GRD_RANDOM_NORMAL_DOUBLE] = {GRD_FLOAT64, 2, true},
};

struct fill {
    enum grd_random_kind kind;
    grd_dtype dtype; /* of the tensor, or of its real part */
    struct grd_random_numbers numbers;
};

/* What draws the elements of a tensor. */
struct draw {
    struct fill fill;
    struct kind kind;
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

static void convert(grd_dtype from, grd_dtype to, int64_t n, const void *values, char *target, int64_t stride)
{
    grd_kernels->cast[from][to](n, (char *const[]){target, (char *)values}, (const int64_t[]){stride, grd_dtype_size(from)}, NULL);
}

static void fill_task(int64_t begin, int64_t end, void *context)
{
    const struct batch *batch = context;
    const struct draw *draw = batch->draw;
    const grd_dtype source = (grd_dtype)draw->kind.source, dtype = draw->fill.dtype;
    const int64_t stride = batch->strides[0];
    const bool direct = source == dtype && stride == grd_dtype_size(dtype);
    _Alignas(double) char values[PIECE * sizeof(double)];
    for (int64_t at = begin; at < end; at += PIECE) {
        const int64_t n = end - at < PIECE ? end - at : PIECE;
        char *target = batch->data[0] + (batch->first + at) * stride;
        grd_kernels->random->make[draw->fill.kind](&draw->fill.numbers, n, draw->words + at * draw->kind.words, direct ? target : values);
        if (!direct)
            convert(source, dtype, n, values, target, stride);
    }
}

/* 1 where a number u is below the probability beside it; u has 53 bits for probabilities in float64 and 24 for others. */
static void bernoulli_tensor_task(int64_t begin, int64_t end, void *context)
{
    const struct batch *batch = context;
    const struct draw *draw = batch->draw;
    const grd_dtype source = (grd_dtype)draw->kind.source;
    const int64_t *strides = batch->strides;
    double p[PIECE];
    uint8_t values[PIECE];
    for (int64_t at = begin; at < end; at += PIECE) {
        const int64_t n = end - at < PIECE ? end - at : PIECE, element = batch->first + at;
        grd_kernels->cast[source][GRD_FLOAT64](n, (char *const[]){(char *)p, batch->data[1] + element * strides[1]},
                                               (const int64_t[]){sizeof *p, strides[1]}, NULL);
        grd_kernels->random->bernoulli_each(n, draw->words + at * draw->kind.words, p, source == GRD_FLOAT64, values);
        convert(GRD_BOOL, draw->fill.dtype, n, values, batch->data[0] + element * strides[0], strides[0]);
    }
}

static void draw_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    const struct draw *draw = params;
    const int64_t most = draw->kind.slow ? BATCH : GRAIN;
    for (int64_t at = 0; at < n; at += most) {
        const int64_t count = n - at < most ? n - at : most;
        grd_kernels->random->words(&draw->generator->engine, count * draw->kind.words, draw->words);
        grd_parallel_for(0, count, GRAIN, draw->task, &(struct batch){draw, at, data, strides});
    }
}

/* Begins to draw n elements: room for the words, and the generator locked. */
static bool start_draw(struct draw *draw, int64_t n, grd_generator *generator)
{
    const int64_t most = draw->kind.slow ? BATCH : GRAIN;
    draw->size = (size_t)(n < most ? n : most) * (size_t)draw->kind.words * sizeof *draw->words;
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
    struct draw draw = {.fill = fill, .kind = kinds[fill.kind], .task = fill_task};
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

static void normal_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    const struct draw *draw = params;
    double values[PIECE];
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t count = n - at < PIECE ? n - at : PIECE;
        grd_kernels->random->normal_one_by_one(&draw->fill.numbers, draw->generator, count, values);
        convert(GRD_FLOAT64, draw->fill.dtype, count, values, data[0] + at * strides[0], strides[0]);
    }
}

/* n >= 16 contiguous elements: blocks of 16, and the last 16 once more, freshly drawn, where n is no multiple of 16. */
static void normal_blocks(const struct draw *draw, char *data, int64_t n)
{
    const grd_dtype dtype = draw->fill.dtype;
    const int64_t itemsize = grd_dtype_size(dtype), rest = n % GRD_NORMAL_BLOCK;
    draw_loop(n - rest, (char *const[]){data}, &itemsize, draw);
    if (rest == 0)
        return;
    if (draw->kind.source == dtype) /* the rest is drawn, too, and overwritten; the half dtypes leave it out */
        grd_kernels->random->words(&draw->generator->engine, rest * draw->kind.words, draw->words);
    draw_loop(GRD_NORMAL_BLOCK, (char *const[]){data + (n - GRD_NORMAL_BLOCK) * itemsize}, &itemsize, draw);
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
    const enum grd_random_kind kind = wide ? GRD_RANDOM_NORMAL_DOUBLE : GRD_RANDOM_NORMAL_FLOAT;
    struct draw draw = {.fill = {kind, real, {.a = mean, .b = is_complex ? std / sqrt(2) : std}}, .kind = kinds[kind], .task = fill_task};
    if (!start_draw(&draw, n, generator))
        return grd_failed;
    if (n >= GRD_NORMAL_BLOCK && grd_is_contiguous(self))
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
    const enum grd_random_kind kind = dtype == GRD_FLOAT16    ? GRD_RANDOM_UNIFORM_FLOAT16
                                      : dtype == GRD_BFLOAT16 ? GRD_RANDOM_UNIFORM_BFLOAT16
                                      : dtype == GRD_FLOAT64  ? GRD_RANDOM_UNIFORM_DOUBLE
                                                              : GRD_RANDOM_UNIFORM_FLOAT;
    return run_fill(self, generator, (struct fill){.kind = kind, .numbers = {.a = from, .b = to}});
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
    return run_fill(self, generator, (struct fill){.kind = GRD_RANDOM_EXPONENTIAL, .numbers = {.a = lambd}});
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
    struct draw draw = {.fill = {.dtype = (grd_dtype)self->dtype},
                        .kind = {.source = (uint8_t)p->dtype, .words = p->dtype == GRD_FLOAT64 ? 2 : 1},
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
    return run_fill(self, generator, (struct fill){.kind = GRD_RANDOM_BERNOULLI, .numbers = {.a = probability}});
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

static grd_tensor *fill_integers(grd_tensor *self, grd_generator *generator, const struct grd_random_numbers *numbers, bool is_long)
{
    return run_fill(self, generator, (struct fill){.kind = is_long ? GRD_RANDOM_LONG_INTEGERS : GRD_RANDOM_INTEGERS, .numbers = *numbers});
}

grd_tensor *op_random(grd_tensor *out, grd_tensor *self, grd_scalar from, grd_scalar to, grd_generator *generator)
{
    (void)out;
    grd_dtype dtype = (grd_dtype)self->dtype;
    bool floating = grd_random_is_floating(dtype);
    struct grd_random_numbers numbers = {0};
    if (grd_category_of(dtype) > GRD_CATEGORY_INTEGER && !floating)
        return grd_fail(GRD_ERROR_RUNTIME, "check_random_bounds handles only integral, floating-point and boolean types");
    if (from.kind == GRD_SCALAR_NONE && to.kind == GRD_SCALAR_NONE) {
        int digits = grd_random_digits(dtype);
        numbers.range = digits >= 64 ? 0 : floating ? ((uint64_t)1 << digits) + 1 : (uint64_t)1 << digits;
        return fill_integers(self, generator, &numbers, dtype == GRD_FLOAT64 || dtype == GRD_INT64 || dtype == GRD_UINT64);
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
        numbers.range = (uint64_t)end - (uint64_t)first;
        numbers.base = first;
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
        numbers.range = (uint64_t)last - (uint64_t)first + 1;
        numbers.base = first;
    } else if (dtype != GRD_INT64 && dtype != GRD_FLOAT64 && dtype != GRD_FLOAT32 && dtype != GRD_BFLOAT16)
        return grd_fail(GRD_ERROR_RUNTIME, "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16");
    return fill_integers(self, generator, &numbers, numbers.range == 0 || numbers.range >= (uint64_t)1 << 28);
}
