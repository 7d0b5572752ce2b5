/* Running sums and products, and the first-order linear recurrence; a part of lines.c.
 *
 *   cumsum       y[k] = y[k - 1] + x[k], from 0
 *   cumprod      y[k] = y[k - 1] * x[k], from 1
 *   linear_scan  y[k] = factor[k] * y[k - 1] + x[k], from 0
 *
 * Invariant: the carry has the precision sums are gathered in; an element is rounded only when it is written. */
#ifndef GRD_KERNEL_CPU_LINES_SCAN_H
#define GRD_KERNEL_CPU_LINES_SCAN_H

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
INLINE void scan_lines(const struct grd_lines_block *b, G start, step_function *step)
{
    const int64_t n = b->n, out_step = b->step[0], x_step = b->step[1], factor_step = b->step[2];
    const E *x = (const E *)b->data[1], *factor = (const E *)b->data[2];
    E *out = (E *)b->data[0];
    int64_t line = 0;
    for (; line + 4 <= b->lines; line += 4, x += 4 * x_step, factor += 4 * factor_step, out += 4 * out_step) {
        G c0 = start, c1 = start, c2 = start, c3 = start;
        for (int64_t i = 0; i < n; i++) {
            c0 = step(c0, (G)x[i], (G)factor[i]);
            c1 = step(c1, (G)x[i + x_step], (G)factor[i + factor_step]);
            c2 = step(c2, (G)x[i + 2 * x_step], (G)factor[i + 2 * factor_step]);
            c3 = step(c3, (G)x[i + 3 * x_step], (G)factor[i + 3 * factor_step]);
            out[i] = (E)c0;
            out[i + out_step] = (E)c1;
            out[i + 2 * out_step] = (E)c2;
            out[i + 3 * out_step] = (E)c3;
        }
    }
    for (; line < b->lines; line++, x += x_step, factor += factor_step, out += out_step) {
        G c = start;
        for (int64_t i = 0; i < n; i++) {
            c = step(c, (G)x[i], (G)factor[i]);
            out[i] = (E)c;
        }
    }
}

/* The memory read and the memory written may be the same, so neither is restrict; the carry is nobody else's. */
INLINE void scan(const struct grd_lines_block *b, G start, step_function *step)
{
    G carry[GRD_LINES_COLUMNS];
    if (!b->columns) {
        scan_lines(b, start, step);
        return;
    }
    for (int64_t j = 0; j < b->lines; j++)
        carry[j] = start;
    for (int64_t i = 0; i < b->n; i++) {
        const E *x = (const E *)b->data[1] + i * b->step[1], *factor = (const E *)b->data[2] + i * b->step[2];
        E *out = (E *)b->data[0] + i * b->step[0];
        for (int64_t j = 0; j < b->lines; j++) {
            carry[j] = step(carry[j], (G)x[j], (G)factor[j]);
            out[j] = (E)carry[j];
        }
    }
}

static void lines_cumsum(const struct grd_lines_block *b)
{
    scan(b, 0, sum_step);
}

static void lines_cumprod(const struct grd_lines_block *b)
{
    scan(b, 1, prod_step);
}

#if !GRD_IS_INTEGER
static void lines_linear_scan(const struct grd_lines_block *b)
{
    scan(b, 0, linear_step);
}
#endif

#endif
