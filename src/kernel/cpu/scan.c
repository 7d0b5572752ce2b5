/* Running sums and products down rows of columns, or along lines. Typed: int64 float32 float64 complex128.
 * Invariant: the carry has the precision sums are gathered in; a row is rounded only when it is written. */
#include "kernel/cpu/level.h"
#include "kernel/cpu/typed.h"
#include "kernel/reduce.h"

#define INLINE static inline __attribute__((always_inline))

#if GRD_IS_COMPLEX
typedef double _Complex E, G;
#elif GRD_IS_FLOAT
typedef T E;
typedef double G;
#else
typedef uint64_t E, G; /* wraps around */
#endif

typedef G step_function(G carry, G x, G factor);

INLINE G sum_step(G carry, G x, G factor)
{
    (void)factor;
    return carry + x;
}

INLINE G prod_step(G carry, G x, G factor)
{
    (void)factor;
    return carry * x;
}

INLINE G linear_step(G carry, G x, G factor)
{
    return factor * carry + x;
}

/* Four lines at once: a step waits for the one before it, but not for those of other lines. */
INLINE void scan_lines(const struct grd_scan_block *b, step_function *step)
{
    int64_t n = b->rows, line = 0;
    const E *x = (const E *)b->in, *factor = b->factor != NULL ? (const E *)b->factor : x;
    E *out = (E *)b->out;
    G start = *(const G *)b->carry;
    for (; line + 4 <= b->lines; line += 4, x += 4 * n, factor += 4 * n, out += 4 * n) {
        G c0 = start, c1 = start, c2 = start, c3 = start;
        for (int64_t i = 0; i < n; i++) {
            c0 = step(c0, (G)x[i], (G)factor[i]);
            c1 = step(c1, (G)x[i + n], (G)factor[i + n]);
            c2 = step(c2, (G)x[i + 2 * n], (G)factor[i + 2 * n]);
            c3 = step(c3, (G)x[i + 3 * n], (G)factor[i + 3 * n]);
            out[i] = (E)c0;
            out[i + n] = (E)c1;
            out[i + 2 * n] = (E)c2;
            out[i + 3 * n] = (E)c3;
        }
    }
    for (; line < b->lines; line++, x += n, factor += n, out += n) {
        G c = start;
        for (int64_t i = 0; i < n; i++) {
            c = step(c, (G)x[i], (G)factor[i]);
            out[i] = (E)c;
        }
    }
}

/* in and out may be the same memory, so neither is restrict; the carry is nobody else's. */
INLINE void scan(const struct grd_scan_block *b, step_function *step)
{
    G *restrict carry = b->carry;
    const char *factors = b->factor != NULL ? b->factor : b->in;
    if (b->cols == 1) {
        scan_lines(b, step);
        return;
    }
    for (int64_t i = 0; i < b->rows; i++) {
        const E *x = (const E *)(b->in + i * b->stride), *factor = (const E *)(factors + i * b->stride);
        E *out = (E *)(b->out + i * b->stride);
        for (int64_t j = 0; j < b->cols; j++) {
            carry[j] = step(carry[j], (G)x[j], (G)factor[j]);
            out[j] = (E)carry[j];
        }
    }
}

static void scan_sum(const struct grd_scan_block *b)
{
    scan(b, sum_step);
}

static void scan_prod(const struct grd_scan_block *b)
{
    scan(b, prod_step);
}

static void scan_linear(const struct grd_scan_block *b)
{
    scan(b, linear_step);
}

extern const struct grd_scan_row GRD_TYPED(grd_scan_row);
const struct grd_scan_row GRD_TYPED(grd_scan_row) = {
    .scan = {[GRD_SCAN_SUM] = scan_sum, [GRD_SCAN_PROD] = scan_prod, [GRD_SCAN_LINEAR] = scan_linear},
};
