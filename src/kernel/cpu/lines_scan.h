/* Computes running sums and products, and the first-order linear recurrence, of the elements x along one dimension; included by lines.c. The elements
 * along this dimension are called a line.
 *
 *   cumsum       y[k] = y[k - 1] + x[k], from 0
 *   cumprod      y[k] = y[k - 1] * x[k], from 1
 *   logcumsumexp y[k] = log(exp(y[k - 1]) + exp(x[k])), from -infinity
 *   linear_scan  y[k] = factor[k] * y[k - 1] + x[k], from 0
 *
 * Invariant: the carry y[k - 1] is held in the wider type G. It is rounded to the dtype only when an element is written. */
#ifndef GRD_KERNEL_CPU_LINES_SCAN_H
#define GRD_KERNEL_CPU_LINES_SCAN_H

#include <complex.h>

#include "kernel/cpu/vecmath.h"

enum { AHEAD = 8 /* how many elements ahead a loop prefetches; the hardware does not prefetch beyond a page */, CACHE_LINE = 64 };

/* A function that returns y[k], given the carry y[k - 1], x[k] and factor[k]. */
typedef G step_function(G carry, G x, G factor);

GRD_INLINE G sum_step(G carry, G x, G factor)
{
    (void)factor;
    return carry + x;
}

GRD_INLINE G prod_step(G carry, G x, G factor)
{
    (void)factor;
    return carry * x;
}

#if GRD_IS_FLOAT
/* Returns log(exp(carry) + exp(x)). If carry and x are equal, their difference is set to 0, because the difference of two infinities would be NaN. */
GRD_INLINE G log_step(G carry, G x, G factor)
{
    (void)factor;
    const G most = carry > x ? carry : x, least = carry > x ? x : carry;
    return most + vm_log1p_double(vm_exp_double(least == most ? 0 : least - most));
}
#elif GRD_IS_COMPLEX
/* Returns log(exp(carry) + exp(x)). */
GRD_INLINE G log_step(G carry, G x, G factor)
{
    (void)factor;
    const bool above = creal(x) > creal(carry);
    const G most = above ? x : carry, least = above ? carry : x;
    return creal(least) == -INFINITY ? most : most + clog(1 + cexp(least - most));
}
#endif

GRD_INLINE G linear_step(G carry, G x, G factor)
{
    return factor * carry + x;
}

/* Number of lines (the elements along the dimension of the operator) that are scanned at a time. In a line, each result waits for the one before
 * it, but the processor overlaps the computations of several lines. With elements of 8 bytes, two lines already need all the bandwidth of the memory,
 * and more lines are slower. */
enum { ABREAST = sizeof(E) < 8 ? 4 : 2 };

/* Writes the running results y[k] = step(y[k - 1], x[k], factor[k]), with `start` in the place of y[-1], for each line of a block. A line is the
 * elements along the dimension of the operator; here these are contiguous. */
GRD_INLINE void scan_lines(const struct grd_lines_block *b, G start, step_function *step)
{
    const int64_t n = b->n, out_step = b->step[0], x_step = b->step[1], factor_step = b->step[2];
    const E *x = (const E *)b->data[1], *factor = (const E *)b->data[2];
    E *out = (E *)b->data[0];
    int64_t line = 0;
    for (; line + ABREAST <= b->lines; line += ABREAST) {
        G c[ABREAST];
        UNROLLED for (int k = 0; k < ABREAST; k++) c[k] = start;
        for (int64_t i = 0; i < n; i++) {
            UNROLLED for (int k = 0; k < ABREAST; k++) c[k] = step(c[k], (G)x[i + k * x_step], (G)factor[i + k * factor_step]);
            UNROLLED for (int k = 0; k < ABREAST; k++) out[i + k * out_step] = (E)c[k];
        }
        x += ABREAST * x_step, factor += ABREAST * factor_step, out += ABREAST * out_step;
    }
    for (; line < b->lines; line++, x += x_step, factor += factor_step, out += out_step) {
        G c = start;
        for (int64_t i = 0; i < n; i++) {
            c = step(c, (G)x[i], (G)factor[i]);
            out[i] = (E)c;
        }
    }
}

/* Writes the running results y[k] = step(y[k - 1], x[k], factor[k]), with `start` in the place of y[-1], for each line of a block. A line is the
 * elements along the dimension of the operator; these may be contiguous or far apart. Input and output may be the same memory, so their pointers are
 * not declared restrict. */
GRD_INLINE void scan(const struct grd_lines_block *b, G start, step_function *step)
{
    const int64_t lines = b->lines;
    G carry[GRD_LINES_COLUMNS];
    if (!b->columns) {
        scan_lines(b, start, step);
        return;
    }
    for (int64_t j = 0; j < lines; j++)
        carry[j] = start;
    for (int64_t i = 0; i < b->n; i++) {
        const E *x = (const E *)b->data[1] + i * b->step[1], *factor = (const E *)b->data[2] + i * b->step[2];
        E *out = (E *)b->data[0] + i * b->step[0];
        for (int64_t j = 0; j < lines && i + AHEAD < b->n; j += CACHE_LINE / sizeof(E))
            __builtin_prefetch(x + AHEAD * b->step[1] + j);
        IN_PLACE
        for (int64_t j = 0; j < lines; j++) {
            const G next = step(carry[j], (G)x[j], (G)factor[j]);
            carry[j] = next;
            out[j] = (E)next;
        }
    }
}

/* 1 if four consecutive running sums or products are computed at a time. This requires AVX2, whose registers hold four numbers of type double. */
#if GRD_IS_FLOAT && defined(__AVX2__)
#define GRD_SCANS_BY_FOUR 1
#else
#define GRD_SCANS_BY_FOUR 0
#endif

#if GRD_SCANS_BY_FOUR
typedef E elements __attribute__((vector_size(4 * sizeof(E))));
typedef G four __attribute__((vector_size(4 * sizeof(G))));

/* Multiplies *x by *y if `product`, otherwise adds *y to *x. */
GRD_INLINE void combine(four *x, const four *y, bool product)
{
    *x = product ? *x * *y : *x + *y;
}

/* Writes four running sums (or products). All lanes of *carry hold the result before x[0]. Result k combines this carry with x[0] to x[k]. Then sets
 * all lanes of *carry to the last result. From one call to the next, only a single addition (or multiplication) waits for the carry. */
GRD_INLINE void scan_four(const E *x, E *out, four *carry, bool product)
{
    const four neutral = (four){0} + (G)product;
    four scanned = {(G)x[0], (G)x[1], (G)x[2], (G)x[3]}, before = __builtin_shufflevector(neutral, scanned, 0, 4, 5, 6);
    combine(&scanned, &before, product);
    before = __builtin_shufflevector(neutral, scanned, 0, 1, 4, 5);
    combine(&scanned, &before, product);
    before = *carry;
    combine(&before, &scanned, product);
    const elements made = __builtin_convertvector(before, elements);
    memcpy(out, &made, sizeof made);
    scanned = __builtin_shufflevector(scanned, scanned, 3, 3, 3, 3);
    combine(carry, &scanned, product);
}

/* Writes the running sums, or products if `product`, of each line of a block. A line is the elements along the dimension of the operator; here these
 * are contiguous. */
GRD_INLINE void scan_by_four(const struct grd_lines_block *b, bool product)
{
    const int64_t n = b->n;
    for (int64_t line = 0; line < b->lines; line++) {
        const E *x = (const E *)b->data[1] + line * b->step[1];
        E *out = (E *)b->data[0] + line * b->step[0], last[4] = {0};
        four carry = (four){0} + (G)product;
        int64_t i = 0;
        for (; i + 4 <= n; i += 4)
            scan_four(x + i, out + i, &carry, product);
        if (i < n) {
            memcpy(last, x + i, (size_t)(n - i) * sizeof *last);
            scan_four(last, last, &carry, product);
            memcpy(out + i, last, (size_t)(n - i) * sizeof *last);
        }
    }
}
#else
/* Writes the running sums of n contiguous elements, four elements at a time. Only one addition per four elements waits for the sum before it. */
GRD_INLINE void add_line(int64_t n, const E *x, E *out)
{
    G carry = 0;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const G first = (G)x[i], two = first + (G)x[i + 1], third = (G)x[i + 2], four = two + (third + (G)x[i + 3]);
        out[i] = (E)(carry + first);
        out[i + 1] = (E)(carry + two);
        out[i + 2] = (E)(carry + (two + third));
        out[i + 3] = (E)(carry += four);
    }
    for (; i < n; i++)
        out[i] = (E)(carry += (G)x[i]);
}
#endif

#if GRD_IS_FLOAT
enum { LOG_PIECE = 16 };

/* Writes logcumsumexp for n consecutive elements x and returns the last result. `carry` is the result for the element before x[0]. Normally the
 * function adds up exp(x - most), where `most` is the largest of the elements and the carry, and takes the logarithms of all sums at the end. So only
 * the additions depend on each other, and the exponentials and logarithms are computed in vectors. If the first sum is so small that its logarithm
 * would lose digits, log_step() computes each result from the result before it. */
GRD_INLINE G log_piece(int64_t n, const E *x, E *out, G carry)
{
    G sums[LOG_PIECE], most = carry;
    for (int64_t i = 0; i < n; i++)
        most = (G)x[i] > most ? (G)x[i] : most;
    if (!(most - (carry > (G)x[0] ? carry : (G)x[0]) <= 2)) {
        for (int64_t i = 0; i < n; i++)
            out[i] = (E)(carry = log_step(carry, (G)x[i], 0));
        return carry;
    }
    for (int64_t i = 0; i < n; i++)
        sums[i] = vm_exp_double((G)x[i] - most);
    sums[0] += vm_exp_double(carry - most);
    for (int64_t i = 1; i < n; i++)
        sums[i] += sums[i - 1];
    for (int64_t i = 0; i < n; i++)
        sums[i] = most + vm_log_double(sums[i]);
    if (carry == -INFINITY)
        sums[0] = (G)x[0]; /* the first result is x[0] itself, free of rounding errors */
    for (int64_t i = 0; i < n; i++)
        out[i] = (E)sums[i];
    return sums[n - 1];
}

static void lines_logcumsumexp(const struct grd_lines_block *b)
{
    if (b->columns) {
        scan(b, -INFINITY, log_step);
        return;
    }
    for (int64_t line = 0; line < b->lines; line++) {
        const E *x = (const E *)b->data[1] + line * b->step[1];
        E *out = (E *)b->data[0] + line * b->step[0];
        G carry = -INFINITY;
        int64_t i = 0;
        for (; i + LOG_PIECE <= b->n; i += LOG_PIECE)
            carry = log_piece(LOG_PIECE, x + i, out + i, carry);
        if (i < b->n)
            log_piece(b->n - i, x + i, out + i, carry);
    }
}
#elif GRD_IS_COMPLEX
static void lines_logcumsumexp(const struct grd_lines_block *b)
{
    scan(b, -INFINITY, log_step);
}
#endif

static void lines_cumsum(const struct grd_lines_block *b)
{
    if (b->columns || (!GRD_SCANS_BY_FOUR && sizeof(E) < 8)) {
        scan(b, 0, sum_step);
        return;
    }
#if GRD_SCANS_BY_FOUR
    scan_by_four(b, false);
#else
    for (int64_t line = 0; line < b->lines; line++)
        add_line(b->n, (const E *)b->data[1] + line * b->step[1], (E *)b->data[0] + line * b->step[0]);
#endif
}

/* Writes the running products along each line of a block, i.e. along the dimension of the operator. scan_by_four() multiplies up to four neighbouring
 * elements before it multiplies by the running product. This first product may overflow although no result does. So scan_by_four() is called only if
 * the accumulator type G has a wider range of exponents than E. */
static void lines_cumprod(const struct grd_lines_block *b)
{
#if GRD_SCANS_BY_FOUR
    if (!b->columns && sizeof(G) > sizeof(E)) {
        scan_by_four(b, true);
        return;
    }
#endif
    scan(b, 1, prod_step);
}

#if !GRD_IS_INTEGER
static void lines_linear_scan(const struct grd_lines_block *b)
{
    scan(b, 0, linear_step);
}
#endif

#endif
