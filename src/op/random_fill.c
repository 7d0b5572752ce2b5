/* Runs the operators that fill a tensor with random numbers in place. The formulas that turn random words into values are in kernel/cpu/random.c.
 * Operators that create a tensor are in random_indices.c.
 *
 * A fill draws the words (random 32-bit integers) of many elements at once. All threads turn the words into values of type float, double, bool or
 * int64, and convert the values to the tensor's dtype, in the order of memory.
 *
 * Invariant: words are drawn under the generator's lock, in the same order and number as in PyTorch, so that a seed gives the same numbers. */
#include "op/random_fill.h"

#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "base/parallel.h"
#include "gen/uses/op/random_fill.h"
#include "core/dtype.h"
#include "core/geometry.h"
#include "core/tensor.h"
#include "kernel/random.h"
#include "kernel/table.h"
#include "op/composite.h"
#include "op/plan.h"
#include "op/sizes.h"
#include "op/checks.h"
#include "core/iter.h"

/* PIECE: elements computed at a time. GRAIN: elements per task. BATCH: elements whose random words are drawn at a time if numbers are slow to
 * compute; a batch is large so that several threads have work. FEW_WORDS: random words that fit in the plan's state. */
enum { PIECE = 512, GRAIN = 4 * PIECE, BATCH = 16 * GRAIN, FEW_WORDS = 256 };

bool grd_random_is_floating(grd_dtype dtype)
{
    return dtype == GRD_FLOAT16 || dtype == GRD_BFLOAT16 || dtype == GRD_FLOAT32 || dtype == GRD_FLOAT64;
}

/* ---- Fills -------------------------------------------------------------------------------------------------------------------------- */

/* Properties of each kind of random number. source: the dtype in which numbers are computed. words: 32-bit random words per number. slow: true if
 * several threads compute the numbers faster than one. */
static const struct kind {
    uint8_t source, words;
    bool slow;
} kinds[GRD_RANDOM_KIND_COUNT] = {
    [GRD_RANDOM_UNIFORM_FLOAT] = {GRD_FLOAT32, 1, false},   [GRD_RANDOM_UNIFORM_DOUBLE] = {GRD_FLOAT64, 2, false},
    [GRD_RANDOM_UNIFORM_FLOAT16] = {GRD_FLOAT16, 1, false}, [GRD_RANDOM_UNIFORM_BFLOAT16] = {GRD_BFLOAT16, 1, false},
    [GRD_RANDOM_EXPONENTIAL] = {GRD_FLOAT64, 2, true},      [GRD_RANDOM_BERNOULLI] = {GRD_BOOL, 2, false},
    [GRD_RANDOM_GEOMETRIC] = {GRD_FLOAT64, 2, true},        [GRD_RANDOM_CAUCHY] = {GRD_FLOAT64, 2, true},
    [GRD_RANDOM_INTEGERS] = {GRD_INT64, 1, false},          [GRD_RANDOM_LONG_INTEGERS] = {GRD_INT64, 2, false},
    [GRD_RANDOM_NORMAL_FLOAT] = {GRD_FLOAT32, 1, false},    [GRD_RANDOM_NORMAL_DOUBLE] = {GRD_FLOAT64, 2, true},
};

/* State of a call that draws random elements. The plan fills it, and the run reads it. */
struct draw {
    enum grd_random_kind number; /* index in the array `kinds` */
    struct kind kind;
    grd_dtype dtype; /* dtype of the tensor; for a complex tensor, of its real and imaginary parts */
    struct grd_random_numbers numbers;
    grd_loop_kernel *loop; /* loop over the elements, called by grd_iter_run_serial() */
    grd_task *task;        /* computes elements of a batch from their random words */
    struct grd_generator *generator;
    uint32_t *words; /* buffer for the random words of a batch: `few` or scratch memory */
    uint32_t few[FEW_WORDS];
};

/* Describes elements whose random words are drawn together. */
struct batch {
    const struct draw *draw;
    int64_t first;     /* index of the first element of the batch */
    char *const *data; /* data of the result and, for bernoulli with a tensor, of the probabilities */
    /* Strides of the result and of the probabilities, in bytes. */
    const int64_t *strides;
};

/* Converts n contiguous values of dtype `from` to dtype `to`, and writes them to `target` with `stride` bytes from one to the next. */
static void convert(grd_dtype from, grd_dtype to, int64_t n, const void *values, char *target, int64_t stride)
{
    grd_kernels->cast[from][to](n, (char *const[]){target, (char *)values}, (const int64_t[]){stride, grd_dtype_size(from)}, NULL);
}

/* Computes the elements [begin, end) of a batch. */
static void fill_task(int64_t begin, int64_t end, void *context)
{
    const struct batch *batch = context;
    const struct draw *draw = batch->draw;
    const grd_dtype source = (grd_dtype)draw->kind.source, dtype = draw->dtype;
    const int64_t stride = batch->strides[0];
    const bool direct = source == dtype && stride == grd_dtype_size(dtype);
    _Alignas(double) char values[PIECE * sizeof(double)];
    for (int64_t at = begin; at < end; at += PIECE) {
        const int64_t n = end - at < PIECE ? end - at : PIECE;
        char *target = batch->data[0] + (batch->first + at) * stride;
        grd_kernels->random->make[draw->number](&draw->numbers, n, draw->words + at * draw->kind.words, direct ? target : values);
        if (!direct)
            convert(source, dtype, n, values, target, stride);
    }
}

/* Writes 1 if a uniform number u is less than the element's probability, else 0. u has 53 bits for float64 probabilities and 24 bits for others. */
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
        convert(GRD_BOOL, draw->dtype, n, values, batch->data[0] + element * strides[0], strides[0]);
    }
}

/* Computes n elements batch by batch: draws the random words of a batch, then runs draw->task over its elements in parallel. */
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

/* Writes n >= 16 contiguous normal numbers in blocks of 16, as PyTorch does. If n is not a multiple of 16, the last 16 elements are then drawn again
 * as one more block. */
static void normal_blocks(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    const struct draw *draw = params;
    const int64_t rest = n % GRD_NORMAL_BLOCK;
    draw_loop(n - rest, data, strides, draw);
    if (rest == 0)
        return;
    /* For float and double, PyTorch draws words for the last n % 16 elements before it draws the last 16 elements again. The same words are skipped
     * here, so that later numbers are those of PyTorch. For half types PyTorch does not draw words for the last n % 16 elements. */
    if (draw->kind.source == draw->dtype)
        grd_kernels->random->words(&draw->generator->engine, rest * draw->kind.words, draw->words);
    draw_loop(GRD_NORMAL_BLOCK, (char *const[]){data[0] + (n - GRD_NORMAL_BLOCK) * strides[0]}, strides, draw);
}

/* Writes normal numbers, or exp() of them if `exponential`. The numbers are made in pairs by the Box-Muller transform. The generator stores the
 * unused second number of a pair for the next call. */
static void draw_normals(const struct draw *draw, int64_t n, char *data, int64_t stride, bool exponential)
{
    double values[PIECE];
    for (int64_t at = 0; at < n; at += PIECE) {
        const int64_t count = grd_least(n - at, PIECE);
        grd_kernels->random->normal_one_by_one(&draw->numbers, draw->generator, count, values);
        for (int64_t i = 0; exponential && i < count; i++)
            values[i] = exp(values[i]);
        convert(GRD_FLOAT64, draw->dtype, count, values, data + at * stride, stride);
    }
}

static void normal_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    draw_normals(params, n, data[0], strides[0], false);
}

static void log_normal_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    draw_normals(params, n, data[0], strides[0], true);
}

static struct draw *draw_of(const struct grd_plan *p)
{
    return (struct draw *)(uintptr_t)p->state;
}

/* Plans a result that has the sizes of `self` and is filled with random numbers of the kind in draw_of(p)->kind. The tensor that is filled may have
 * any strides; if the operator allocates its result, as bernoulli does, the result is contiguous. */
static bool plan_draw(struct grd_plan *p, const grd_tensor *self, grd_generator *generator)
{
    struct draw *draw = draw_of(p);
    const int64_t n = 2 * self->numel, most = draw->kind.slow ? BATCH : GRAIN;
    draw->dtype = grd_dtype_to_real((grd_dtype)self->dtype);
    draw->generator = generator;
    p->device = grd_device_of(self);
    p->any_strides = p->aligned = true;
    const int64_t words = (n < most ? n : most) * draw->kind.words;
    p->scratch_bytes = words > FEW_WORDS ? (size_t)words * sizeof *draw->words : 0;
    return grd_plan_result(p, grd_sizes(self), (grd_dtype)self->dtype);
}

/* Plans a fill of self with random numbers of one kind. `numbers` are the parameters of the distribution. */
static bool plan_random_fill(struct grd_plan *p, const grd_tensor *self, grd_generator *generator, grd_loop_kernel *loop,
                             enum grd_random_kind kind, struct grd_random_numbers numbers)
{
    struct draw *draw = draw_of(p);
    draw->number = kind;
    draw->kind = kinds[kind];
    draw->numbers = numbers;
    draw->loop = loop;
    draw->task = fill_task;
    return plan_draw(p, self, generator);
}

/* Fills the elements of the result in the order of memory. A complex tensor is treated as a real one with one more dimension of size 2. */
void run_fill(const struct grd_plan *p)
{
    struct draw *draw = draw_of(p);
    const grd_tensor *result = p->results[0], *read = p->nreads > 0 ? p->in[0] : result;
    int64_t sizes[GRD_MAX_DIMS + 1], strides[2][GRD_MAX_DIMS + 1], ndim = result->ndim;
    for (int64_t d = 0; d < ndim; d++) {
        sizes[d] = result->sizes[d];
        strides[0][d] = grd_byte_stride(result, d);
        strides[1][d] = grd_byte_stride(read, d);
    }
    if (draw->dtype != (grd_dtype)result->dtype) {
        sizes[ndim] = 2;
        strides[0][ndim++] = grd_dtype_size(draw->dtype);
    }
    struct grd_iter it;
    grd_iter_raw(&it, grd_dims_from(sizes, ndim), 1 + p->nreads, (char *const[]){result->data, read->data},
                 (const int64_t *const[]){strides[0], strides[1]});
    draw->words = p->scratch != NULL ? (uint32_t *)p->scratch : draw->few;
    draw->generator = grd_generator_lock(draw->generator);
    grd_iter_run_serial(&it, draw->loop, draw);
    grd_generator_unlock(draw->generator);
}

/* ---- normal ------------------------------------------------------------------------------------------------------------------------- */

bool plan_normal(struct grd_plan *p, grd_tensor *self, double mean, double std, grd_generator *generator)
{
    const grd_dtype real = grd_dtype_to_real((grd_dtype)self->dtype);
    const bool is_complex = real != (grd_dtype)self->dtype;
    const enum grd_random_kind kind = real == GRD_FLOAT64 ? GRD_RANDOM_NORMAL_DOUBLE : GRD_RANDOM_NORMAL_FLOAT;
    if (!(std >= 0))
        return grd_raise(GRD_ERROR_RUNTIME, "normal expects std >= 0.0, but found std %g", std);
    if (!grd_random_is_floating(real))
        return grd_raise_no_kernel("normal_kernel", (grd_dtype)self->dtype);
    const bool in_blocks = self->numel * (1 + is_complex) >= GRD_NORMAL_BLOCK && grd_is_contiguous(self);
    return plan_random_fill(p, self, generator, in_blocks ? normal_blocks : normal_loop, kind,
                            (struct grd_random_numbers){.a = mean, .b = is_complex ? std / sqrt(2) : std});
}

bool plan_log_normal(struct grd_plan *p, grd_tensor *self, double mean, double std, grd_generator *generator)
{
    if (!(std > 0))
        return grd_raise(GRD_ERROR_RUNTIME, "log_normal_ expects std > 0.0, but found std=%g", std);
    if (!grd_random_is_floating((grd_dtype)self->dtype))
        return grd_raise_no_kernel("log_normal", (grd_dtype)self->dtype);
    return plan_random_fill(p, self, generator, log_normal_loop, GRD_RANDOM_NORMAL_DOUBLE,
                            (struct grd_random_numbers){.a = mean, .b = std});
}

/* ---- uniform, exponential, bernoulli ------------------------------------------------------------------------------------------------ */

bool plan_uniform(struct grd_plan *p, grd_tensor *self, double from, double to, grd_generator *generator)
{
    const grd_dtype dtype = grd_dtype_to_real((grd_dtype)self->dtype);
    const enum grd_random_kind kind = dtype == GRD_FLOAT16    ? GRD_RANDOM_UNIFORM_FLOAT16
                                      : dtype == GRD_BFLOAT16 ? GRD_RANDOM_UNIFORM_BFLOAT16
                                      : dtype == GRD_FLOAT64  ? GRD_RANDOM_UNIFORM_DOUBLE
                                                              : GRD_RANDOM_UNIFORM_FLOAT;
    if (!grd_random_is_floating(dtype))
        return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "\"check_uniform_bounds\" not implemented for '%s'", grd_dtype_type_name(dtype));
    const double largest = grd_limits[dtype].largest;
    if (!(fabs(from) <= largest && fabs(to) <= largest))
        return grd_raise(GRD_ERROR_RUNTIME, "%s is out of bounds for %s", fabs(from) <= largest ? "to" : "from", grd_dtype_name(dtype));
    if (!(from <= to))
        return grd_raise(GRD_ERROR_RUNTIME, "uniform_ expects to return a [from, to) range, but found from=%g > to=%g", from, to);
    if (!(to - from <= largest))
        return grd_raise(GRD_ERROR_RUNTIME, "uniform_ expects to-from <= std::numeric_limits<%s>::max(), but found to=%g and from=%g",
                         grd_dtype_type_name(dtype), to, from);
    return plan_random_fill(p, self, generator, draw_loop, kind, (struct grd_random_numbers){.a = from, .b = to});
}

bool plan_exponential(struct grd_plan *p, grd_tensor *self, double lambd, grd_generator *generator)
{
    if (!(lambd > 0))
        return grd_raise(GRD_ERROR_RUNTIME, "exponential_ expects lambda > 0.0, but found lambda=%g", lambd);
    if (!grd_random_is_floating((grd_dtype)self->dtype))
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you specified %s",
            grd_dtype_type_name((grd_dtype)self->dtype));
    return plan_random_fill(p, self, generator, draw_loop, GRD_RANDOM_EXPONENTIAL, (struct grd_random_numbers){.a = lambd});
}

bool plan_geometric(struct grd_plan *p, grd_tensor *self, double probability, grd_generator *generator)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    if (!(probability > 0 && probability < 1))
        return grd_raise(GRD_ERROR_RUNTIME, "geometric_ expects p to be in (0, 1), but got p=%g", probability);
    if (dtype == GRD_BOOL || (grd_category_of(dtype) > GRD_CATEGORY_INTEGER && !grd_random_is_floating(dtype)))
        return grd_raise_no_kernel("geometric", dtype);
    return plan_random_fill(p, self, generator, draw_loop, GRD_RANDOM_GEOMETRIC, (struct grd_random_numbers){.a = probability});
}

bool plan_cauchy(struct grd_plan *p, grd_tensor *self, double median, double sigma, grd_generator *generator)
{
    if (!(sigma > 0))
        return grd_raise(GRD_ERROR_RUNTIME, "cauchy_ expects sigma > 0.0, but found sigma=%g", sigma);
    if (!grd_random_is_floating((grd_dtype)self->dtype))
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified %s",
            grd_dtype_type_name((grd_dtype)self->dtype));
    return plan_random_fill(p, self, generator, draw_loop, GRD_RANDOM_CAUCHY, (struct grd_random_numbers){.a = median, .b = sigma});
}

static bool check_bernoulli_dtype(const grd_tensor *self)
{
    return grd_category_of((grd_dtype)self->dtype) <= GRD_CATEGORY_INTEGER || grd_random_is_floating((grd_dtype)self->dtype) ||
           grd_raise_no_kernel("bernoulli_scalar", (grd_dtype)self->dtype);
}

/* Plans bernoulli with a tensor of probabilities that broadcasts to self. */
bool plan_bernoulli_tensor(struct grd_plan *p, grd_tensor *self, grd_tensor *probabilities, grd_generator *generator)
{
    const grd_dtype dtype = (grd_dtype)probabilities->dtype;
    struct draw *draw = draw_of(p);
    if (!grd_random_is_floating(dtype))
        return grd_raise_no_kernel("bernoulli_tensor", dtype);
    draw->kind = (struct kind){.source = (uint8_t)dtype, .words = dtype == GRD_FLOAT64 ? 2 : 1};
    draw->loop = draw_loop;
    draw->task = bernoulli_tensor_task;
    return check_bernoulli_dtype(self) && plan_draw(p, self, generator) && grd_plan_reads(p, grd_expand(probabilities, grd_sizes(self))) &&
           !grd_pending();
}

bool check_probabilities(struct grd_plan *p)
{
    double low, high;
    return p->nreads == 0 || !grd_composite_extremes(p->in[0], &low, &high) || (low >= 0 && high <= 1) ||
           grd_raise(GRD_ERROR_RUNTIME, "Expected p_in >= 0 && p_in <= 1 to be true, but got probabilities from %g to %g", low, high);
}

bool plan_bernoulli(struct grd_plan *p, grd_tensor *self, grd_scalar p_given, grd_generator *generator)
{
    if (p->out == NULL && p_given.kind == GRD_SCALAR_NONE)
        return plan_bernoulli_tensor(p, self, self, generator);
    const double probability = p_given.kind == GRD_SCALAR_NONE ? 0.5 : grd_scalar_double(p_given);
    if (!(probability >= 0 && probability <= 1))
        return grd_raise(GRD_ERROR_RUNTIME, "bernoulli_ expects p to be in [0, 1], but got p=%g", probability);
    return check_bernoulli_dtype(self) &&
           plan_random_fill(p, self, generator, draw_loop, GRD_RANDOM_BERNOULLI, (struct grd_random_numbers){.a = probability});
}

/* ---- random ------------------------------------------------------------------------------------------------------------------------- */

/* Returns x rounded to the nearest number of a floating-point dtype. */
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

/* Returns the position of the highest set bit of x; 0 if x is 0. */
static int log2_of(uint64_t x)
{
    return x == 0 ? 0 : 63 - __builtin_clzll(x);
}

/* Moves the bounds inward to numbers that a floating-point dtype can represent, so that no rounded value leaves the range. `to` may be NULL. */
static void narrow_bounds(grd_dtype dtype, int64_t *from, int64_t *to)
{
    int digits = grd_limits[dtype].digits;
    int64_t next = *from == INT64_MAX ? *from : *from + 1, up = rounded(next, dtype);
    if (up < *from)
        *from = up + ((int64_t)1 << (log2_of((uint64_t)llabs(next)) - digits + 1));
    if (to == NULL)
        return;
    int64_t previous = *to - 1, down = rounded(previous, dtype);
    if (down >= *to)
        *to = down - ((int64_t)1 << (log2_of((uint64_t)llabs(previous)) - digits + 1));
}

static bool plan_integers(struct grd_plan *p, const grd_tensor *self, grd_generator *generator, struct grd_random_numbers numbers,
                          bool is_long)
{
    return plan_random_fill(p, self, generator, draw_loop, is_long ? GRD_RANDOM_LONG_INTEGERS : GRD_RANDOM_INTEGERS, numbers);
}

/* Sets *ret_numbers to the parameters of random integers in [from, to). Raises RuntimeError if the range is empty or outside the dtype's range. */
static bool bounded(grd_dtype dtype, int64_t from, int64_t to, struct grd_random_numbers *ret_numbers)
{
    int64_t low, high;
    grd_int64_bounds(dtype, &low, &high);
    if (from >= to)
        return grd_raise(GRD_ERROR_RUNTIME, "random_ expects 'from' to be less than 'to', but got from=%lld >= to=%lld", (long long)from,
                         (long long)to);
    if (grd_random_is_floating(dtype))
        narrow_bounds(dtype, &from, &to);
    if (from >= to)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got from=%lld >= to=%lld",
                         (long long)from, (long long)to);
    if (from < low || from > high)
        return grd_raise(GRD_ERROR_RUNTIME, "from is out of bounds for %s", grd_dtype_name(dtype));
    if (to - 1 < low || to - 1 > high)
        return grd_raise(GRD_ERROR_RUNTIME, "to - 1 is out of bounds for %s", grd_dtype_name(dtype));
    *ret_numbers = (struct grd_random_numbers){.range = (uint64_t)to - (uint64_t)from, .base = from};
    return true;
}

/* Sets *ret_numbers to the parameters of random integers from `from` up to the largest integer of the dtype. For a floating-point dtype with n
 * significant bits the largest integer is 2^n, because the dtype represents all integers up to 2^n. Raises RuntimeError if the range is empty, or
 * `from` is outside the dtype's range. */
static bool bounded_below(grd_dtype dtype, int64_t from, struct grd_random_numbers *ret_numbers)
{
    const bool floating = grd_random_is_floating(dtype);
    int64_t low, high;
    grd_int64_bounds(dtype, &low, &high);
    const int64_t last = floating ? (int64_t)1 << grd_limits[dtype].digits : high;
    if (floating)
        narrow_bounds(dtype, &from, NULL);
    if (from > last)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got "
                         "from=%lld > to_inc=%lld",
                         (long long)from, (long long)last);
    if (from < low)
        return grd_raise(GRD_ERROR_RUNTIME, "from is out of bounds for %s", grd_dtype_name(dtype));
    *ret_numbers = (struct grd_random_numbers){.range = (uint64_t)last - (uint64_t)from + 1, .base = from};
    return true;
}

bool plan_random(struct grd_plan *p, grd_tensor *self, grd_scalar from, grd_scalar to, grd_generator *generator)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    const bool floating = grd_random_is_floating(dtype);
    struct grd_random_numbers numbers = {0};
    if (grd_category_of(dtype) > GRD_CATEGORY_INTEGER && !floating)
        return grd_raise(GRD_ERROR_RUNTIME, "check_random_bounds handles only integral, floating-point and boolean types");
    if (from.kind == GRD_SCALAR_NONE && to.kind == GRD_SCALAR_NONE) {
        const int digits = grd_limits[dtype].digits;
        numbers.range = digits >= 64 ? 0 : floating ? ((uint64_t)1 << digits) + 1 : (uint64_t)1 << digits;
        return plan_integers(p, self, generator, numbers, dtype == GRD_FLOAT64 || dtype == GRD_INT64 || dtype == GRD_UINT64);
    }
    const int64_t first = grd_scalar_int64(from);
    if (to.kind != GRD_SCALAR_NONE) {
        if (!bounded(dtype, first, grd_scalar_int64(to), &numbers))
            return false;
    } else if (first != INT64_MIN) {
        if (!bounded_below(dtype, first, &numbers))
            return false;
    } else if (dtype != GRD_INT64 && dtype != GRD_FLOAT64 && dtype != GRD_FLOAT32 && dtype != GRD_BFLOAT16) {
        return grd_raise(GRD_ERROR_RUNTIME, "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16");
    }
    return plan_integers(p, self, generator, numbers, numbers.range == 0 || numbers.range >= (uint64_t)1 << 28);
}
