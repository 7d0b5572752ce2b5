/* Computes reductions along one dimension, such as sums, norms and extremes; see kernel/reduce.h. The build compiles this file once for each of uint8
 * (also used for bool), int64, float32, float64 and complex128. The file is also compiled for bfloat16, with only sums and sums of squares, and for
 * int8, int16, int32 and uint64, with only extremes.
 *
 * Contiguous elements that are reduced to one output are called a line. A line is accumulated in LANES partial results, which are added to totals
 * every STEPS steps. So the rounding error of a sum is smaller than with one partial result, and the order of additions is the same at every
 * instruction-set level. If the elements that are reduced to one output are not contiguous, they form a column of a matrix, and the next column is
 * reduced to the next output. Four rows of the matrix are accumulated at a time. Extremes are in reduce_choose.h. */
#include "kernel/cpu/widest.h" /* included before all other headers, because its pragma holds for the code after it */

#include "kernel/reduce.h"

#include <math.h>
#include <stdbool.h>

#include "kernel/cpu/reduce_exp.h"
#include "kernel/cpu/typed.h"

/* Before integers are multiplied, callers convert them to int64. Before integers are summed, callers convert all dtypes except uint8 to int64. So
 * int64 is the only integer dtype with kernels for products, and integer dtypes other than uint8 and int64 have only kernels for extremes. */
#define GRD_HAS_EXTREMES_ALONE (GRD_IS_INTEGER && GRD_TAG != GRD_TAG_uint8 && GRD_TAG != GRD_TAG_int64)
#define GRD_HAS_PRODUCTS (!GRD_IS_HALF && (!GRD_IS_INTEGER || GRD_TAG == GRD_TAG_int64))

/* The type of an element in memory. Elements of a half dtype are stored as T and computed as E, which is float. */
#if GRD_IS_HALF
typedef T S;
#else
typedef E S;
#endif

/* Converts an element in memory to the type it is computed in. */
GRD_INLINE E value_of(S x)
{
#if GRD_IS_HALF
    return load(x);
#else
    return x;
#endif
}

/* LANES: number of partial results into which the contiguous elements of one output are accumulated, the same at every instruction-set level. SHORT:
 * number of partial results if an output has fewer than LANES elements, and for the elements left at the end. STEPS: number of elements that are
 * added to a partial result before it is added to a total. */
enum { LANES = sizeof(E) == 16 ? 8 : sizeof(E) == 8 ? 16 : 32, SHORT = 8, STEPS = 32 };

/* LINE: bytes of a cache line. ACROSS: elements of a cache line. IS_OFTEN: true for dtypes that are reduced often, which get an extra loop with
 * exactly ACROSS columns at a time. */
enum { LINE = 64, ACROSS = LINE / sizeof(S), IS_OFTEN = GRD_TAG == GRD_TAG_int32 || (GRD_TAG >= GRD_TAG_int64 && !GRD_IS_COMPLEX) };

/* A map function returns the value that is accumulated for the element x. The value may depend on `center`, a number that the caller gives for each
 * output, e.g. the mean. A combine function returns the combination, e.g. the sum, of two accumulated values. */
typedef G map_function(E x, G center);
typedef G combine_function(G a, G b);

/* ---- Scalar bodies ------------------------------------------------------------------------------------------------------ */
GRD_INLINE G add(G a, G b)
{
    return a + b;
}

GRD_INLINE G multiply(G a, G b)
{
#if GRD_IS_COMPLEX
    /* the operator * of complex numbers calls a function that repairs products of infinite numbers; this formula avoids the slow call */
    G result;
    __real__ result = __real__ a * __real__ b - __imag__ a * __imag__ b;
    __imag__ result = __real__ a * __imag__ b + __imag__ a * __real__ b;
    return result;
#else
    return a * b;
#endif
}

/* A map function that returns the element x itself. */
GRD_INLINE G itself(E x, G center)
{
    (void)center;
    return (G)x;
}

GRD_INLINE G is_nonzero(E x, G center)
{
    (void)center;
    return x != 0;
}

#if GRD_IS_COMPLEX
GRD_INLINE G magnitude(E x, G center)
{
    (void)center;
    return hypot(__real__ x, __imag__ x);
}

GRD_INLINE G squared_distance(E x, G center)
{
    double re = __real__ x - __real__ center, im = __imag__ x - __imag__ center;
    return re * re + im * im;
}
#elif GRD_IS_FLOAT
GRD_INLINE G magnitude(E x, G center)
{
    (void)center;
    return x < 0 ? -(G)x : (G)x;
}

GRD_INLINE G squared_distance(E x, G center)
{
    G d = (G)x - center;
    return d * d;
}
#endif

#if GRD_IS_FLOAT || GRD_IS_COMPLEX
GRD_INLINE G squared(E x, G center)
{
    (void)center;
    return squared_distance(x, 0);
}
#endif

/* Prefetches `count` elements that begin FETCHED bytes after x. The hardware prefetcher stops at the end of each page. */
GRD_INLINE void fetch(const S *x, int64_t count)
{
    enum { FETCHED = 256 };
    for (int64_t i = 0; i < count * (int64_t)sizeof(S); i += LINE)
        __builtin_prefetch((const char *)x + FETCHED + i);
}

/* ---- Accumulation: combine(map(x)) -------------------------------------------------------------------------------------------- */
/* Sets lanes[l] = combine(lanes[l], others[l]) for `count` lanes, unrolled in steps of 64 bytes. With a loop, the compiler would keep the lanes in
 * memory, and each step would wait for the store before it. */
GRD_INLINE void combine_lanes(int count, G *lanes, const G *others, combine_function *combine)
{
    enum { TOGETHER = 64 / sizeof(G) };
    if (count < TOGETHER)
        LANEWISE for (int l = 0; l < count; l++) lanes[l] = combine(lanes[l], others[l]);
    else
        UNROLLED for (int first = 0; first < count; first += TOGETHER) LANEWISE for (int l = 0; l < TOGETHER; l++) lanes[first + l] =
            combine(lanes[first + l], others[first + l]);
}

/* Combines lanes `half` to 2 * half - 1 into the first `half` lanes. */
GRD_INLINE void fold(G *lanes, int half, combine_function *combine)
{
    combine_lanes(half, lanes, lanes + half, combine);
}

/* Combines `width` lanes into one. `width` is a compile-time constant, so that each fold is a few instructions. */
GRD_INLINE G fold_all(G *lanes, int width, combine_function *combine)
{
    if (width > 16)
        fold(lanes, 16, combine);
    if (width > 8)
        fold(lanes, 8, combine);
    fold(lanes, 4, combine);
    fold(lanes, 2, combine);
    return combine(lanes[0], lanes[1]);
}

/* Reduces a line, the n contiguous elements of one output, and returns the result. Each lane holds a partial result, which starts as
 * combine(identity, x) and not as x. The compiler would turn an assignment of x into a copy with narrow stores. The wider vector load that follows
 * would then stall, because store-to-load forwarding fails. The last n % SHORT elements are read in a block of the last SHORT elements. Elements of
 * this block that have been combined before are replaced by the identity. */
GRD_INLINE G gather_line(int64_t n, const S *x, G center, map_function *map, combine_function *combine, G identity)
{
    int64_t i = 0;
    if (n < SHORT) {
        G result = identity;
        for (; i < n; i++)
            result = combine(result, map(value_of(x[i]), center));
        return result;
    }
    G total[LANES];
    if (n < LANES) {
        LANEWISE for (int l = 0; l < SHORT; l++) total[l] = combine(identity, map(value_of(x[l]), center));
        i = SHORT;
    } else {
        LANEWISE for (int l = 0; l < LANES; l++) total[l] = combine(identity, map(value_of(x[l]), center));
        for (i = LANES; n - i >= LANES;) {
            G part[LANES];
            LANEWISE for (int l = 0; l < LANES; l++) part[l] = combine(identity, map(value_of(x[i + l]), center));
            int64_t end = i + grd_least((n - i) / LANES, STEPS) * LANES;
            for (i += LANES; i < end; i += LANES) {
                fetch(x + i, LANES);
                LANEWISE for (int l = 0; l < LANES; l++) part[l] = combine(part[l], map(value_of(x[i + l]), center));
            }
            combine_lanes(LANES, total, part, combine);
        }
        if (LANES == 32)
            fold(total, 16, combine);
        if (LANES > SHORT)
            fold(total, 8, combine);
    }
    for (; i + SHORT <= n; i += SHORT)
        LANEWISE for (int l = 0; l < SHORT; l++) total[l] = combine(total[l], map(value_of(x[i + l]), center));
    if (i < n) {
        const S *last = x + n - SHORT;
        int done = (int)(i - (n - SHORT));
        LANEWISE for (int l = 0; l < SHORT; l++)
        {
            G value = map(value_of(last[l]), center);
            total[l] = combine(total[l], l < done ? identity : value);
        }
    }
    return fold_all(total, SHORT, combine);
}

/* Combines the b->n contiguous elements of each output j into b->gathered[j]. */
GRD_INLINE void gather_lines(const struct grd_reduce_block *b, map_function *map, combine_function *combine, G identity)
{
    G *gathered = b->gathered;
    const G *center = b->center;
    for (int64_t j = 0; j < b->outputs; j++) {
        G c = center != NULL ? center[j] : 0;
        gathered[j] = combine(gathered[j], gather_line(b->n, (const S *)(b->in + j * b->stride), c, map, combine, identity));
    }
}

/* Prefetches the cache line at column j in the rows that the caller reads next. The caller now reads `rows` rows, of which the first is at `row`. The
 * `rows` rows after them are prefetched. The hardware does not prefetch these cache lines if the stride is large. The caller prefetches one cache
 * line for each one that it reads, because many prefetches at once would wait for each other. */
GRD_INLINE void fetch_below(const struct grd_reduce_block *b, const char *row, int rows, int64_t j)
{
    UNROLLED for (int r = rows; r < 2 * rows; r++) __builtin_prefetch(row + r * b->stride + j * (int64_t)sizeof(S));
}

/* Combines the elements of four rows in the columns [j, j + count) into b->gathered, which has one accumulated value per column. The first row is at
 * `row`. */
GRD_INLINE void gather_four(const struct grd_reduce_block *b, const char *row, int64_t j, int64_t count, map_function *map,
                            combine_function *combine, const G *center)
{
    const S *x0 = (const S *)row + j, *x1 = (const S *)(row + b->stride) + j;
    const S *x2 = (const S *)(row + 2 * b->stride) + j, *x3 = (const S *)(row + 3 * b->stride) + j;
    G *restrict gathered = (G *)b->gathered + j;
    LANEWISE for (int64_t l = 0; l < count; l++)
    {
        const G c = center != NULL ? center[j + l] : 0;
        const G low = combine(map(value_of(x0[l]), c), map(value_of(x1[l]), c)),
                high = combine(map(value_of(x2[l]), c), map(value_of(x3[l]), c));
        gathered[l] = combine(gathered[l], combine(low, high));
    }
}

/* Combines the rows of the block from number `row` on into b->gathered, which has one accumulated value per column. Takes one row at a time. */
GRD_INLINE void gather_rows(const struct grd_reduce_block *b, int64_t row, map_function *map, combine_function *combine, const G *center)
{
    G *restrict gathered = b->gathered;
    for (; row < b->n; row++) {
        const S *x = (const S *)(b->in + row * b->stride);
        for (int64_t j = 0; j < b->outputs; j++)
            gathered[j] = combine(gathered[j], map(value_of(x[j]), center != NULL ? center[j] : 0));
    }
}

/* Note [Narrow rows]
 * If rows are contiguous and have few columns, several rows are reduced as one long row, in which each column occurs several times. The occurrences
 * of a column are combined at the end. */
enum { WIDE_ROW = 256, NARROW = 16 };

/* Returns how many contiguous rows are reduced as one long row, in which each column occurs several times. Returns 1 if the block has too many
 * columns or too few rows. */
GRD_INLINE int64_t rows_in_long_row(const struct grd_reduce_block *b)
{
    int64_t rows = 1;
    if (b->outputs < NARROW && b->stride == b->outputs * (int64_t)sizeof(S))
        while (2 * rows * b->outputs <= WIDE_ROW && 8 * rows <= b->n)
            rows *= 2;
    return rows;
}

/* If the block has few columns and contiguous rows, reduces it and returns a block without rows. Otherwise reduces nothing and returns the block
 * unchanged. The kernel `columns` does the work: first for long rows, which consist of several rows each (see Note [Narrow rows]), and then for the
 * remaining rows. */
GRD_INLINE struct grd_reduce_block gather_narrow(const struct grd_reduce_block *b, grd_reduce_kernel *columns, combine_function *combine,
                                                 G identity)
{
    const int64_t rows = rows_in_long_row(b), all_columns = rows * b->outputs, long_rows = b->n / rows;
    struct grd_reduce_block rest = *b;
    G *const gathered = b->gathered, all[WIDE_ROW], centers[WIDE_ROW];
    if (rows < NARROW / 2)
        return rest;
    for (int64_t j = 0; j < all_columns; j++)
        all[j] = identity;
    for (int64_t j = 0; b->center != NULL && j < all_columns; j++)
        centers[j] = ((const G *)b->center)[j % b->outputs];
    columns(&(const struct grd_reduce_block){.outputs = all_columns,
                                             .n = long_rows,
                                             .stride = rows * b->stride,
                                             .in = b->in,
                                             .gathered = all,
                                             .center = b->center != NULL ? centers : NULL});
    for (int64_t half = all_columns / 2; half >= b->outputs; half /= 2)
        for (int64_t j = 0; j < half; j++)
            all[j] = combine(all[j], all[j + half]);
    for (int64_t j = 0; j < b->outputs; j++)
        gathered[j] = combine(gathered[j], all[j]);
    rest.n -= long_rows * rows;
    rest.in += long_rows * rows * b->stride;
    if (rest.n > 0)
        columns(&rest);
    rest.n = 0;
    return rest;
}

/* Combines the b->n rows of the block, four rows at a time, into b->gathered, which has one accumulated value per column. */
GRD_INLINE void gather_columns(const struct grd_reduce_block *b, map_function *map, combine_function *combine, const G *center)
{
    enum { ROWS = 4 };
    int64_t i = 0, cols = b->outputs;
    for (; i + ROWS <= b->n; i += ROWS) {
        const char *row = b->in + i * b->stride;
        int64_t j = 0;
        for (; IS_OFTEN && j + ACROSS <= cols; j += ACROSS) {
            fetch_below(b, row, ROWS, j);
            gather_four(b, row, j, ACROSS, map, combine, center);
        }
        gather_four(b, row, j, cols - j, map, combine, center);
    }
    gather_rows(b, i, map, combine, center);
}

#if !GRD_IS_HALF && !GRD_HAS_EXTREMES_ALONE
static void nonzero_columns(const struct grd_reduce_block *b)
{
    gather_columns(b, is_nonzero, add, NULL);
}
#endif

#if GRD_TAG == GRD_TAG_float32 || GRD_IS_HALF
/* In sums of floats, at most FLOAT_STEPS elements of a lane are added in float, and the results are added in double. Adding in float is faster,
 * because registers hold twice as many floats as doubles. */
enum { FLOAT_LANES = 64, FLOAT_SHORT = LINE / sizeof(S), FLOAT_STEPS = 16 };

GRD_INLINE E squared_if(E x, bool squares)
{
    return squares ? x * x : x;
}

/* Returns the element x, or its square if `squares`. */
GRD_INLINE E term(S x, bool squares)
{
    return squared_if(value_of(x), squares);
}

#if GRD_IS_HALF
/* The two functions below convert the first and the second of two neighbouring bfloat16 elements to float, by a shift and by a mask. Moving
 * each element to a lane of its own would take as long as adding it. */
GRD_INLINE E even_of(const S *x)
{
    uint32_t pair;
    memcpy(&pair, x, sizeof pair);
    return grd_float_from_bits(pair << 16);
}

GRD_INLINE E odd_of(const S *x)
{
    uint32_t pair;
    memcpy(&pair, x, sizeof pair);
    return grd_float_from_bits(pair & 0xffff0000);
}
#endif

/* Adds FLOAT_LANES elements, or their squares if `squares`, to the FLOAT_LANES lanes of `part`. */
GRD_INLINE void add_terms(E *part, const S *x, bool squares)
{
#if GRD_IS_HALF
    enum { PAIRS = FLOAT_LANES / 2 };
    LANEWISE for (int l = 0; l < PAIRS; l++) part[l] += squared_if(even_of(x + 2 * l), squares);
    LANEWISE for (int l = 0; l < PAIRS; l++) part[l + PAIRS] += squared_if(odd_of(x + 2 * l), squares);
#else
    for (int l = 0; l < FLOAT_LANES; l++)
        part[l] += term(x[l], squares);
#endif
}

/* Adds up n >= FLOAT_SHORT elements, or their squares if `squares`, in FLOAT_SHORT totals, and writes the totals to ret_total. For float32, elements
 * with an even index are added to totals with an even index and the others to totals with an odd index, as sum_pairs() requires. */
GRD_INLINE void gather_terms(int64_t n, const S *x, bool squares, G *ret_total)
{
    G total[FLOAT_SHORT];
    E rest[FLOAT_SHORT];
    const S *last = x + n - FLOAT_SHORT;
    int done = FLOAT_SHORT - (int)(n % FLOAT_SHORT);
    int64_t i = FLOAT_SHORT;
    LANEWISE for (int l = 0; l < FLOAT_SHORT; l++)
    {
        E value = term(last[l], squares);
        rest[l] = l < done ? 0 : value;
    }
    if (n < FLOAT_SHORT * FLOAT_STEPS) {
        for (i = 0; i + FLOAT_SHORT <= n; i += FLOAT_SHORT)
            LANEWISE for (int l = 0; l < FLOAT_SHORT; l++) rest[l] += term(x[i + l], squares);
        LANEWISE for (int l = 0; l < FLOAT_SHORT; l++) ret_total[l] = rest[l];
        return;
    }
    LANEWISE for (int l = 0; l < FLOAT_SHORT; l++) total[l] = term(x[l], squares);
    while (n - i >= FLOAT_LANES) {
        E part[FLOAT_LANES] = {0};
        add_terms(part, x + i, squares);
        int64_t end = i + grd_least((n - i) / FLOAT_LANES, FLOAT_STEPS) * FLOAT_LANES;
        for (i += FLOAT_LANES; i < end; i += FLOAT_LANES) {
            fetch(x + i, FLOAT_LANES);
            add_terms(part, x + i, squares);
        }
        for (int l = 0; l < 32; l++)
            part[l] += part[l + 32];
        if (FLOAT_SHORT < 32)
            LANEWISE for (int l = 0; l < 16; l++) part[l] += part[l + 16];
        LANEWISE for (int l = 0; l < FLOAT_SHORT; l++) total[l] += part[l];
    }
    for (; i + FLOAT_SHORT <= n; i += FLOAT_SHORT)
        LANEWISE for (int l = 0; l < FLOAT_SHORT; l++) rest[l] += term(x[i + l], squares);
    LANEWISE for (int l = 0; l < FLOAT_SHORT; l++) ret_total[l] = total[l] + rest[l];
}

/* Returns the sum of n elements, or of their squares if `squares`. */
GRD_INLINE G sum_terms(int64_t n, const S *x, bool squares)
{
    G total[FLOAT_SHORT];
    if (n < FLOAT_SHORT)
        return gather_line(n, x, 0, squares ? squared : itself, add, 0);
    gather_terms(n, x, squares, total);
    return fold_all(total, FLOAT_SHORT, add);
}

#if !GRD_IS_HALF
/* Adds the elements with an even index to gathered[0] and those with an odd index to gathered[1]. */
static void sum_pairs(int64_t n, const S *x, G *gathered)
{
    G total[FLOAT_SHORT];
    gather_terms(n, x, false, total);
    for (int half = FLOAT_SHORT / 2; half >= 2; half /= 2)
        fold(total, half, add);
    gathered[0] += total[0];
    gathered[1] += total[1];
}
#endif

GRD_INLINE G sum_line(int64_t n, const S *x)
{
    return sum_terms(n, x, false);
}

#if !GRD_IS_HALF
/* In products of floats, each lane multiplies at most PROD_STEPS + 1 elements in float. Then pairs of lanes are multiplied in float, and the results
 * are multiplied in double. If the product of a pair is outside of [2^-64, 2^64), digits may be lost, so all elements are multiplied again in double.
 * A product that left float's range and came back is not noticed, but this happens only if the elements differ greatly in magnitude. */
enum { PROD_STEPS = 8, PROD_LANES = FLOAT_LANES / 2 };

/* Returns the product of n elements, multiplied in double. */
static __attribute__((noinline)) G prod_in_double(int64_t n, const E *x)
{
    return gather_line(n, x, 0, itself, multiply, 1);
}

/* Returns the product of n elements, multiplied in float if float's range allows it, otherwise in double. */
GRD_INLINE G prod_line(int64_t n, const E *x)
{
    if (n < FLOAT_LANES)
        return prod_in_double(n, x);
    _Alignas(LINE) E part[FLOAT_LANES];
    _Alignas(LINE) G total[FLOAT_SHORT];
    const E *last = x + n - FLOAT_LANES;
    const int done = FLOAT_LANES - (int)(n % FLOAT_LANES);
    uint32_t beyond[PROD_LANES] = {0}, any = 0;
    for (int l = 0; l < FLOAT_LANES; l++) {
        const E value = last[l];
        part[l] = l < done ? 1 : value;
    }
    LANEWISE for (int l = 0; l < FLOAT_SHORT; l++) total[l] = 1;
    for (int64_t i = 0; n - i >= FLOAT_LANES;) {
        const int64_t end = i + grd_least((n - i) / FLOAT_LANES, PROD_STEPS) * FLOAT_LANES;
        for (; i < end; i += FLOAT_LANES) {
            fetch(x + i, FLOAT_LANES);
            for (int l = 0; l < FLOAT_LANES; l++)
                part[l] *= x[i + l];
        }
        for (int l = 0; l < PROD_LANES; l++) {
            part[l] *= part[l + PROD_LANES];
            beyond[l] |= vm_bits_float(part[l]) - 0x1f800000; /* sets bit 30 unless |part[l]| is in [2^-64, 2^64) */
        }
        LANEWISE for (int l = 0; l < FLOAT_SHORT; l++) total[l] *= (G)part[l] * (G)part[l + FLOAT_SHORT];
        for (int l = 0; l < FLOAT_LANES; l++)
            part[l] = 1;
    }
    for (int l = 0; l < PROD_LANES; l++)
        any |= beyond[l] & 0x40000000;
    return any != 0 ? prod_in_double(n, x) : fold_all(total, FLOAT_SHORT, multiply);
}
#endif

/* Number of rows that are added in float before their sum is added in double. */
enum { BLOCK_ROWS = 8 };

GRD_INLINE E add_eight(const E x[BLOCK_ROWS])
{
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
}

/* Adds the elements of `rows` rows (8 or 16) in the columns [j, j + count) to b->gathered, which has one sum per column. The first row is at `row`.
 * The rows are added pairwise in float. */
GRD_INLINE void add_rows(const struct grd_reduce_block *b, const char *row, int rows, int64_t j, int64_t count)
{
    const S *x[BLOCK_ROWS], *y[BLOCK_ROWS];
    G *restrict gathered = (G *)b->gathered + j;
    UNROLLED for (int r = 0; r < BLOCK_ROWS; r++)
    {
        x[r] = (const S *)(row + r * b->stride) + j;
        y[r] = (const S *)(row + (r + BLOCK_ROWS) * b->stride) + j;
    }
    LANEWISE for (int64_t l = 0; l < count; l++)
    {
        E low[BLOCK_ROWS], high[BLOCK_ROWS];
        UNROLLED for (int r = 0; r < BLOCK_ROWS; r++)
        {
            low[r] = value_of(x[r][l]);
            high[r] = rows > BLOCK_ROWS ? value_of(y[r][l]) : 0;
        }
        gathered[l] += rows > BLOCK_ROWS ? add_eight(low) + add_eight(high) : add_eight(low);
    }
}

#if GRD_IS_HALF
enum { PAIRS = ACROSS / 2 };

/* Adds up eight rows in each of ACROSS columns and writes the ACROSS sums to ret_sums: first the sums of the columns with an even index, then those
 * with an odd index. The rows are `stride` bytes apart. */
GRD_INLINE void add_pairs(const char *row, int64_t stride, E *ret_sums)
{
    const S *x[BLOCK_ROWS];
    UNROLLED for (int r = 0; r < BLOCK_ROWS; r++) x[r] = (const S *)(row + r * stride);
    LANEWISE for (int l = 0; l < PAIRS; l++)
    {
        E values[BLOCK_ROWS];
        UNROLLED for (int r = 0; r < BLOCK_ROWS; r++) values[r] = even_of(x[r] + 2 * l);
        ret_sums[l] = add_eight(values);
    }
    LANEWISE for (int l = 0; l < PAIRS; l++)
    {
        E values[BLOCK_ROWS];
        UNROLLED for (int r = 0; r < BLOCK_ROWS; r++) values[r] = odd_of(x[r] + 2 * l);
        ret_sums[l + PAIRS] = add_eight(values);
    }
}

/* Adds the elements of sixteen rows in the columns [j, j + ACROSS) to b->gathered, which has one sum per column. An update of b->gathered after every
 * eight rows would take twice as much time. */
GRD_INLINE void add_sixteen_rows(const struct grd_reduce_block *b, const char *row, int64_t j)
{
    E low[ACROSS], high[ACROSS], sums[ACROSS];
    G *restrict gathered = (G *)b->gathered + j;
    add_pairs(row + j * sizeof(S), b->stride, low);
    add_pairs(row + j * sizeof(S) + BLOCK_ROWS * b->stride, b->stride, high);
    LANEWISE for (int l = 0; l < PAIRS; l++)
    {
        sums[2 * l] = low[l] + high[l];
        sums[2 * l + 1] = low[l + PAIRS] + high[l + PAIRS];
    }
    LANEWISE for (int l = 0; l < ACROSS; l++) gathered[l] += sums[l];
}
#endif

/* Adds the rows of the block, `rows` at a time, to b->gathered, which has one accumulated value per column, and removes them from the block. Fewer
 * than `rows` rows remain. */
GRD_INLINE void add_blocks(struct grd_reduce_block *b, int rows)
{
    for (; b->n >= rows; b->n -= rows, b->in += rows * b->stride) {
        int64_t j = 0;
        for (; j + ACROSS <= b->outputs; j += ACROSS) {
            fetch_below(b, b->in, rows, j);
#if GRD_IS_HALF
            if (rows > BLOCK_ROWS) {
                add_sixteen_rows(b, b->in, j);
                continue;
            }
#endif
            add_rows(b, b->in, rows, j, ACROSS);
        }
        add_rows(b, b->in, rows, j, b->outputs - j);
    }
}

static void sum_columns(const struct grd_reduce_block *b)
{
#if !GRD_IS_HALF
    if (b->outputs == 2 && b->stride == 2 * sizeof(S) && 2 * b->n >= FLOAT_SHORT) {
        sum_pairs(2 * b->n, (const S *)b->in, b->gathered);
        return;
    }
#endif
    struct grd_reduce_block rest = gather_narrow(b, sum_columns, add, 0);
    if (GRD_IS_HALF)
        add_blocks(&rest, 2 * BLOCK_ROWS);
    add_blocks(&rest, BLOCK_ROWS);
    if (GRD_IS_HALF)
        gather_rows(&rest, 0, itself, add, NULL);
    else
        gather_columns(&rest, itself, add, NULL);
}
#elif !GRD_HAS_EXTREMES_ALONE
GRD_INLINE G sum_line(int64_t n, const E *x)
{
    return gather_line(n, x, 0, itself, add, 0);
}

GRD_INLINE G prod_line(int64_t n, const E *x)
{
    return gather_line(n, x, 0, itself, multiply, 1);
}

static void sum_columns(const struct grd_reduce_block *b)
{
    const struct grd_reduce_block rest = gather_narrow(b, sum_columns, add, 0);
    gather_columns(&rest, itself, add, NULL);
}
#endif

#if !GRD_HAS_EXTREMES_ALONE
static void sum_lines(const struct grd_reduce_block *b)
{
    G *gathered = b->gathered;
    for (int64_t j = 0; j < b->outputs; j++)
        gathered[j] += sum_line(b->n, (const S *)(b->in + j * b->stride));
}
#endif

#if !GRD_IS_HALF && !GRD_HAS_EXTREMES_ALONE
static void nonzero_lines(const struct grd_reduce_block *b)
{
    gather_lines(b, is_nonzero, add, 0);
}
#endif

#if GRD_HAS_PRODUCTS
static void prod_lines(const struct grd_reduce_block *b)
{
    G *gathered = b->gathered;
    for (int64_t j = 0; j < b->outputs; j++)
        gathered[j] *= prod_line(b->n, (const E *)(b->in + j * b->stride));
}

static void prod_columns(const struct grd_reduce_block *b)
{
    const struct grd_reduce_block rest = gather_narrow(b, prod_columns, multiply, 1);
    gather_columns(&rest, itself, multiply, NULL);
}
#endif

#if (GRD_IS_FLOAT && !GRD_IS_HALF) || GRD_IS_COMPLEX
GRD_INLINE G difference(E x, G center)
{
    return (G)x - center;
}

static void difference_lines(const struct grd_reduce_block *b)
{
    gather_lines(b, difference, add, 0);
}

static void difference_columns(const struct grd_reduce_block *b)
{
    const struct grd_reduce_block rest = gather_narrow(b, difference_columns, add, 0);
    gather_columns(&rest, difference, add, b->center);
}

static void abs_lines(const struct grd_reduce_block *b)
{
    gather_lines(b, magnitude, add, 0);
}

static void abs_columns(const struct grd_reduce_block *b)
{
    gather_columns(b, magnitude, add, NULL);
}
#endif

#if GRD_IS_FLOAT || GRD_IS_COMPLEX
#if GRD_TAG == GRD_TAG_float32 || GRD_IS_HALF
/* Returns the sum of the squares of n elements, computed in float. If the sum is so small or so large that squares may have left float's range,
 * computes it again in double. */
GRD_INLINE G square_line(int64_t n, const S *x)
{
    const G sum = sum_terms(n, x, true);
    return sum >= 0x1p-90 && sum < INFINITY ? sum : gather_line(n, x, 0, squared, add, 0);
}
#else
GRD_INLINE G square_line(int64_t n, const S *x)
{
    return gather_line(n, x, 0, squared, add, 0);
}
#endif

static void square_lines(const struct grd_reduce_block *b)
{
    if (!GRD_IS_HALF && b->center != NULL) {
        gather_lines(b, squared_distance, add, 0);
        return;
    }
    for (int64_t j = 0; j < b->outputs; j++)
        ((G *)b->gathered)[j] += square_line(b->n, (const S *)(b->in + j * b->stride));
}

static void square_columns(const struct grd_reduce_block *b)
{
    const struct grd_reduce_block rest = gather_narrow(b, square_columns, add, 0);
    if (!GRD_IS_HALF && b->center != NULL)
        gather_columns(&rest, squared_distance, add, b->center);
    else
        gather_columns(&rest, squared, add, NULL);
}
#endif

#if GRD_IS_FLOAT && !GRD_IS_HALF
/* Number of exponentials that are computed before they are added. They are computed in the precision of the elements, and are few enough to stay in
 * the first-level cache until they are added. */
enum { PIECE = 256 };

/* Writes exp(x[i] - center) to ret[i] for i < n. */
GRD_INLINE void exponentials(int64_t n, const E *restrict x, E center, E *restrict ret)
{
    for (int64_t i = 0; i < n; i++)
        ret[i] = reduce_exp(x[i] - center);
}

static void exp_lines(const struct grd_reduce_block *b)
{
    E piece[PIECE];
    for (int64_t j = 0; j < b->outputs; j++) {
        const E *x = (const E *)(b->in + j * b->stride);
        G sum = 0;
        for (int64_t i = 0; i < b->n; i += PIECE) {
            int64_t n = grd_least(PIECE, b->n - i);
            exponentials(n, x + i, ((const E *)b->center)[j], piece);
            sum += sum_line(n, piece);
        }
        ((G *)b->gathered)[j] += sum;
    }
}

static void exp_columns(const struct grd_reduce_block *b)
{
    const E *restrict center = b->center;
    G *restrict gathered = b->gathered;
    int64_t cols = b->outputs;
    for (int64_t i = 0; i < b->n; i++) {
        const E *restrict x = (const E *)(b->in + i * b->stride);
        for (int64_t j = 0; j < cols; j++)
            gathered[j] += reduce_exp(x[j] - center[j]);
    }
}
#endif

#if !GRD_IS_COMPLEX && !GRD_IS_HALF
#include "kernel/cpu/reduce_choose.h"
#endif
#include "kernel/cpu/reduce_ends.h"

const struct grd_reduce_row GRD_TYPED(grd_reduce_row) = {
    .kinds =
        {
#if !GRD_HAS_EXTREMES_ALONE
            [GRD_REDUCE_SUM] = {sum_lines, sum_columns, begin_zero},
#endif
#if GRD_IS_FLOAT || GRD_IS_COMPLEX
            [GRD_REDUCE_SQUARE] = {square_lines, square_columns, begin_zero},
#endif
#if !GRD_IS_HALF && !GRD_HAS_EXTREMES_ALONE
#if GRD_HAS_PRODUCTS
            [GRD_REDUCE_PROD] = {prod_lines, prod_columns, begin_one},
#endif
            [GRD_REDUCE_NONZERO] = {nonzero_lines, nonzero_columns, begin_zero},
#if GRD_IS_FLOAT || GRD_IS_COMPLEX
            [GRD_REDUCE_DIFFERENCE] = {difference_lines, difference_columns, begin_zero},
            [GRD_REDUCE_ABS] = {abs_lines, abs_columns, begin_zero},
#endif
#if GRD_IS_FLOAT
            [GRD_REDUCE_EXP] = {exp_lines, exp_columns, begin_zero},
#endif
#endif
#if !GRD_IS_COMPLEX && !GRD_IS_HALF
            [GRD_REDUCE_MAX] = {max_lines, max_columns, begin_lowest},
            [GRD_REDUCE_MIN] = {min_lines, min_columns, begin_highest},
            [GRD_REDUCE_FIND] = {find_lines, find_columns, begin_nowhere},
#endif
        },
    .end =
        {
#if GRD_IS_FLOAT || GRD_IS_COMPLEX
            [GRD_FINISH_DIVIDE] = end_divide,
            [GRD_FINISH_ROOT] = end_root,
#endif
#if !GRD_IS_HALF && !GRD_HAS_EXTREMES_ALONE
#if GRD_IS_FLOAT || GRD_IS_COMPLEX
            [GRD_FINISH_MEAN] = end_mean,
            [GRD_FINISH_DIVIDE_ROOT] = end_divide_root,
#endif
#if GRD_IS_FLOAT
            [GRD_FINISH_FINITE] = end_finite,
            [GRD_FINISH_LOG] = end_log,
#endif
            [GRD_FINISH_ANY] = end_any,
            [GRD_FINISH_ALL] = end_all,
#endif
#if GRD_TAG == GRD_TAG_uint8
            [GRD_FINISH_TRUTH] = end_truth,
#endif
        },
};
