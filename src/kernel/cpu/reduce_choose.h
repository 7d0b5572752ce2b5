/* Finds extremes, and the first index at which an element has a given value, for dtypes that have an order. Included by reduce.c only. Extremes are
 * accumulated in the type E of the elements. If any element is NaN, the extreme is NaN. */
#ifndef GRD_KERNEL_REDUCE_CHOOSE_H
#define GRD_KERNEL_REDUCE_CHOOSE_H

typedef E choose_function(E a, E b);

GRD_INLINE bool is_nan(E x)
{
#if GRD_IS_FLOAT
    return isnan(x);
#else
    (void)x;
    return false;
#endif
}

/* Returns the larger of a and b, or NaN if one is NaN. */
GRD_INLINE E larger(E a, E b)
{
    E best = b > a ? b : a;
    return is_nan(b) ? b : best;
}

/* Returns the smaller of a and b, or NaN if one is NaN. */
GRD_INLINE E smaller(E a, E b)
{
    E best = b < a ? b : a;
    return is_nan(b) ? b : best;
}

/* number of partial extremes into which a long line (256 elements or more) is reduced, chosen so that they fit into the vector registers */
enum { WIDE = sizeof(E) == 8 ? 32 : 64 };

/* Writes lanes[l] = choose(lanes[l], block[l]) for `width` lanes. */
GRD_INLINE void choose_block(E *lanes, const E *block, int width, choose_function *choose)
{
    if (width == WIDE)
        for (int l = 0; l < WIDE; l++)
            lanes[l] = choose(lanes[l], block[l]);
    else
        LANEWISE for (int l = 0; l < width; l++) lanes[l] = choose(lanes[l], block[l]);
}

/* Returns the extreme of `best` and n contiguous elements. choose() returns the extreme of two elements and is applied to `width` elements at a time.
 * The last step takes the last `width` elements. Some of them may have been taken before, which changes no extreme. */
GRD_INLINE E choose_line(int64_t n, const E *x, int width, E best, choose_function *choose)
{
    E lanes[WIDE];
    LANEWISE for (int l = 0; l < width; l++) lanes[l] = choose(best, x[l]);
    LANEWISE for (int64_t i = width; i + width <= n; i += width)
    {
        fetch(x + i, width);
        choose_block(lanes, x + i, width, choose);
    }
    choose_block(lanes, x + n - width, width, choose);
    if (width > 32)
        for (int l = 0; l < WIDE / 2; l++)
            lanes[l] = choose(lanes[l], lanes[l + WIDE / 2]);
    if (width > 16)
        LANEWISE for (int l = 0; l < 16; l++) lanes[l] = choose(lanes[l], lanes[l + 16]);
    LANEWISE for (int l = 0; l < 8; l++) lanes[l] = choose(lanes[l], lanes[l + 8]);
    LANEWISE for (int l = 0; l < 4; l++) lanes[l] = choose(lanes[l], lanes[l + 4]);
    LANEWISE for (int l = 0; l < 2; l++) lanes[l] = choose(lanes[l], lanes[l + 2]);
    return choose(lanes[0], lanes[1]);
}

GRD_INLINE void choose_lines(const struct grd_reduce_block *b, choose_function *choose)
{
    E *gathered = b->gathered;
    for (int64_t j = 0; j < b->outputs; j++) {
        const E *x = (const E *)(b->in + j * b->stride);
        if (b->n >= 256) {
            gathered[j] = choose_line(b->n, x, WIDE, gathered[j], choose);
        } else if (b->n >= 16) {
            gathered[j] = choose_line(b->n, x, 16, gathered[j], choose);
        } else {
            E best = gathered[j];
            for (int64_t i = 0; i < b->n; i++)
                best = choose(best, x[i]);
            gathered[j] = best;
        }
    }
}

/* Updates the extremes in b->gathered, one per column, with the elements of four rows in the columns [j, j + count). The first row is at `row`. */
GRD_INLINE void choose_four(const struct grd_reduce_block *b, const char *row, int64_t j, int64_t count, choose_function *choose)
{
    const E *x0 = (const E *)row + j, *x1 = (const E *)(row + b->stride) + j;
    const E *x2 = (const E *)(row + 2 * b->stride) + j, *x3 = (const E *)(row + 3 * b->stride) + j;
    E *restrict gathered = (E *)b->gathered + j;
    LANEWISE for (int64_t l = 0; l < count; l++)
    {
        const E low = choose(x0[l], x1[l]), high = choose(x2[l], x3[l]);
        gathered[l] = choose(gathered[l], choose(low, high));
    }
}

GRD_INLINE void choose_columns(const struct grd_reduce_block *b, choose_function *choose)
{
    enum { ROWS = 4 };
    E *restrict gathered = b->gathered;
    int64_t i = 0, cols = b->outputs;
    for (; i + ROWS <= b->n; i += ROWS) {
        const char *row = b->in + i * b->stride;
        int64_t j = 0;
        for (; IS_OFTEN && j + ACROSS <= cols; j += ACROSS) {
            fetch_below(b, row, ROWS, j);
            choose_four(b, row, j, ACROSS, choose);
        }
        choose_four(b, row, j, cols - j, choose);
    }
    for (; i < b->n; i++) {
        const E *x = (const E *)(b->in + i * b->stride);
        for (int64_t j = 0; j < cols; j++)
            gathered[j] = choose(gathered[j], x[j]);
    }
}

static void max_lines(const struct grd_reduce_block *b)
{
    choose_lines(b, larger);
}

static void max_columns(const struct grd_reduce_block *b)
{
    choose_columns(b, larger);
}

static void min_lines(const struct grd_reduce_block *b)
{
    choose_lines(b, smaller);
}

static void min_columns(const struct grd_reduce_block *b)
{
    choose_columns(b, smaller);
}

/* True if x equals `wanted` or both are NaN. */
GRD_INLINE bool same(E x, E wanted)
{
    return (x == wanted) | ((int)is_nan(x) & (int)is_nan(wanted));
}

/* For each output j, searches its b->n contiguous elements for center[j] and lowers found[j] to the index of the first match, if there is one. LANES
 * elements are compared at a time, and the index is determined only if one of them matches. */
static void find_lines(const struct grd_reduce_block *b)
{
    int64_t *found = b->gathered;
    for (int64_t j = 0; j < b->outputs; j++) {
        const E *x = (const E *)(b->in + j * b->stride);
        E wanted = ((const E *)b->center)[j];
        if (found[j] <= b->first)
            continue;
        for (int64_t i = 0; i < b->n; i += LANES) {
            int64_t end = grd_least(b->n, i + LANES);
            unsigned any = 0;
            if (end == i + LANES)
                LANEWISE for (int l = 0; l < LANES; l++) any |= same(x[i + l], wanted);
            else
                any = 1;
            if (!any)
                continue;
            int64_t k = i;
            while (k < end && !same(x[k], wanted))
                k++;
            if (k < end) {
                found[j] = grd_least(found[j], b->first + k);
                break;
            }
        }
    }
}

static void find_columns(const struct grd_reduce_block *b)
{
    int64_t *restrict found = b->gathered;
    const E *restrict wanted = b->center;
    int64_t cols = b->outputs;
    for (int64_t i = 0; i < b->n; i++) {
        const E *restrict x = (const E *)(b->in + i * b->stride);
        int64_t index = b->first + i;
        for (int64_t j = 0; j < cols; j++) {
            int64_t candidate = same(x[j], wanted[j]) ? index : INT64_MAX;
            found[j] = candidate < found[j] ? candidate : found[j];
        }
    }
}

#endif
