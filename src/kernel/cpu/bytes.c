/* Copies, reverses, interleaves and fills arrays of elements as bytes, without interpreting their values; see kernel/bytes.h. */
#include "kernel/bytes.h"

#include <string.h>

#include "kernel/cpu/level.h"
#include "kernel/cpu/loop.h"
#include "kernel/cpu/stream.h"

enum { LINE = 64, FETCHED = 256 }; /* LINE: bytes of a cache line. FETCHED: how many bytes ahead of its loads a loop prefetches. */

/* ---- Patterns --------------------------------------------------------------------------------------------------------------------- */

/* Fills n bytes at `to` with a repeated pattern of GRD_PATTERN bytes. It writes whole cache lines, so up to LINE - 1 bytes after the end are
 * overwritten. */
static void fill(int64_t n, char *to, const void *pattern)
{
    _Alignas(LINE) char line[LINE];
    UNROLLED for (int i = 0; i < LINE; i += GRD_PATTERN) memcpy(line + i, pattern, GRD_PATTERN);
    for (int64_t i = 0; i < n; i += LINE)
        memcpy(to + i, line, LINE);
}

/* ---- The last elements first ---------------------------------------------------------------------------------------------------------- */

#define FALLING_2 1, 0
#define FALLING_4 3, 2, FALLING_2
#define FALLING_8 7, 6, 5, 4, FALLING_4
#define FALLING_16 15, 14, 13, 12, 11, 10, 9, 8, FALLING_8
#define FALLING_32 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, FALLING_16
#if defined(__AVX512BW__)
#define REVERSED_1                                                                                                                         \
    63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41, 40, 39, 38, 37, 36, 35, 34, 33, 32,        \
        FALLING_32
#define REVERSED_2 FALLING_32
#define REVERSED_4 FALLING_16
#define REVERSED_8 FALLING_8
enum { VECTOR = 64 };
#elif defined(__AVX2__)
#define REVERSED_1 FALLING_32
#define REVERSED_2 FALLING_16
#define REVERSED_4 FALLING_8
#define REVERSED_8 FALLING_4
enum { VECTOR = 32 };
#else
#define REVERSED_1 FALLING_16
#define REVERSED_2 FALLING_8
#define REVERSED_4 FALLING_4
#define REVERSED_8 FALLING_2
enum { VECTOR = 16 };
#endif

typedef uint8_t ones __attribute__((vector_size(VECTOR)));
typedef uint16_t twos __attribute__((vector_size(VECTOR)));
typedef uint32_t fours __attribute__((vector_size(VECTOR)));
typedef uint64_t eights __attribute__((vector_size(VECTOR)));

/* Loads the VECTOR bytes that end with the element at `from`, and returns their elements, of `size` bytes each, in reverse order. So the element at
 * `from` comes first. */
GRD_INLINE ones reversed(const char *from, int64_t size)
{
    ones v;
    memcpy(&v, from + size - VECTOR, sizeof v);
    if (size == 1)
        return __builtin_shufflevector(v, v, REVERSED_1);
    if (size == 2)
        return (ones)__builtin_shufflevector((twos)v, (twos)v, REVERSED_2);
    if (size == 4)
        return (ones)__builtin_shufflevector((fours)v, (fours)v, REVERSED_4);
    return (ones)__builtin_shufflevector((eights)v, (eights)v, REVERSED_8);
}

/* Copies VECTOR bytes, which end with the element at `from`, to `to`, and reverses the order of their elements. An element has `size` bytes. */
GRD_INLINE void reverse_vector(char *to, const char *from, int64_t size)
{
    const ones v = reversed(from, size);
    memcpy(to, &v, sizeof v);
}

enum { SHORT = 8192 }; /* A call of reverse() prefetches elements for the next call only if it copies at most SHORT bytes. */

/* Copies n elements of `size` bytes in reverse order, to[i] = from[-i]. Addresses are read in falling order, but the next call usually reads
 * elements at higher addresses, which the hardware does not prefetch. So the loop for short runs of elements prefetches the next run. `size` is a
 * constant where this is inlined. */
GRD_INLINE void reverse(int64_t n, char *to, const char *from, int64_t size)
{
    const int64_t lanes = VECTOR / size, next = n * size;
    int64_t i = 0;
    for (; i + lanes <= n && next <= SHORT; i += lanes) {
        __builtin_prefetch(from - i * size + next);
        reverse_vector(to + i * size, from - i * size, size);
    }
    for (; i + lanes <= n; i += lanes)
        reverse_vector(to + i * size, from - i * size, size);
    if (i < n && n >= lanes)
        reverse_vector(to + (n - lanes) * size, from - (n - lanes) * size, size);
    else
        for (; i < n; i++)
            memcpy(to + i * size, from - i * size, (size_t)size);
}

/* Copies n elements of `size` bytes in reverse order like reverse(), but with non-temporal stores, which do not wait for their cache lines to be
 * loaded. For every n, prefetches the elements that the next call usually reads. (reverse() prefetches only for small n. With non-temporal stores,
 * prefetching saves time for large n, too.) */
GRD_INLINE void reverse_past(int64_t n, char *to, const char *from, int64_t size)
{
    const int64_t lanes = VECTOR / size, next = n * size;
    int64_t i = 0;
    for (; i < n && (uintptr_t)(to + i * size) % VECTOR != 0; i++)
        memcpy(to + i * size, from - i * size, (size_t)size);
    for (; i + lanes <= n; i += lanes) {
        const ones v = reversed(from - i * size, size);
        __builtin_prefetch(from - i * size + next);
        stream(to + i * size, &v, VECTOR);
    }
    for (; i < n; i++)
        memcpy(to + i * size, from - i * size, (size_t)size);
    settle();
}

static void reverse_1(int64_t n, char *to, const char *from, bool past)
{
    past ? reverse_past(n, to, from, 1) : reverse(n, to, from, 1);
}

static void reverse_2(int64_t n, char *to, const char *from, bool past)
{
    past ? reverse_past(n, to, from, 2) : reverse(n, to, from, 2);
}

static void reverse_4(int64_t n, char *to, const char *from, bool past)
{
    past ? reverse_past(n, to, from, 4) : reverse(n, to, from, 4);
}

static void reverse_8(int64_t n, char *to, const char *from, bool past)
{
    past ? reverse_past(n, to, from, 8) : reverse(n, to, from, 8);
}

/* ---- Every other element ---------------------------------------------------------------------------------------------------------------- */

#define EVEN_2 0, 2
#define EVEN_4 EVEN_2, 4, 6
#define EVEN_8 EVEN_4, 8, 10, 12, 14
#define EVEN_16 EVEN_8, 16, 18, 20, 22, 24, 26, 28, 30
#define EVEN_32 EVEN_16, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62
#define EVEN_64                                                                                                                            \
    EVEN_32, 64, 66, 68, 70, 72, 74, 76, 78, 80, 82, 84, 86, 88, 90, 92, 94, 96, 98, 100, 102, 104, 106, 108, 110, 112, 114, 116, 118,     \
        120, 122, 124, 126
#if defined(__AVX512BW__)
#define EVEN_ONES EVEN_64
#define EVEN_TWOS EVEN_32
#define EVEN_FOURS EVEN_16
#define EVEN_EIGHTS EVEN_8
#elif defined(__AVX2__)
#define EVEN_ONES EVEN_32
#define EVEN_TWOS EVEN_16
#define EVEN_FOURS EVEN_8
#define EVEN_EIGHTS EVEN_4
#else
#define EVEN_ONES EVEN_16
#define EVEN_TWOS EVEN_8
#define EVEN_FOURS EVEN_4
#define EVEN_EIGHTS EVEN_2
#endif

/* Returns the elements 0, 2, 4, ... of the vectors `first` and `second`, taken as one array of elements of `size` bytes. */
GRD_INLINE ones even_elements(ones first, ones second, int64_t size)
{
    if (size == 1)
        return __builtin_shufflevector(first, second, EVEN_ONES);
    if (size == 2)
        return (ones)__builtin_shufflevector((twos)first, (twos)second, EVEN_TWOS);
    if (size == 4)
        return (ones)__builtin_shufflevector((fours)first, (fours)second, EVEN_FOURS);
    return (ones)__builtin_shufflevector((eights)first, (eights)second, EVEN_EIGHTS);
}

/* Copies every second element of `size` bytes, to[i] = from[2 i] for i < n, without reading memory after from[2 (n - 1)]. It prefetches, because the
 * hardware prefetcher stops between two calls for neighbouring pieces of a tensor. */
GRD_INLINE void every_other(int64_t n, char *to, const char *from, int64_t size)
{
    const int64_t lanes = VECTOR / size;
    int64_t i = 0;
    for (; i + lanes < n; i += lanes) {
        ones first, second;
        UNROLLED for (int k = 0; k < 2 * VECTOR; k += LINE) __builtin_prefetch(from + 2 * i * size + FETCHED + k);
        memcpy(&first, from + 2 * i * size, VECTOR);
        memcpy(&second, from + 2 * i * size + VECTOR, VECTOR);
        first = even_elements(first, second, size);
        memcpy(to + i * size, &first, VECTOR);
    }
    for (; i < n; i++)
        memcpy(to + i * size, from + 2 * i * size, (size_t)size);
}

static void every_other_1(int64_t n, char *to, const char *from)
{
    every_other(n, to, from, 1);
}

static void every_other_2(int64_t n, char *to, const char *from)
{
    every_other(n, to, from, 2);
}

static void every_other_4(int64_t n, char *to, const char *from)
{
    every_other(n, to, from, 4);
}

static void every_other_8(int64_t n, char *to, const char *from)
{
    every_other(n, to, from, 8);
}

/* ---- Pairs ---------------------------------------------------------------------------------------------------------------------------- */

/* Writes n pairs of elements of `size` bytes to data[0]. Pair i is element i of data[1] followed by element i of data[2]. strides[0] is the distance
 * in bytes between two pairs. strides[1] and strides[2] are the distances in bytes between two elements of data[1] and of data[2]. */
GRD_INLINE void pair(int64_t n, char *const *data, const int64_t *strides, int64_t size)
{
    char *to = data[0];
    const char *x = data[1], *y = data[2];
    const int64_t to_stride = strides[0], x_stride = strides[1], y_stride = strides[2];
    if (to_stride == 2 * size && x_stride == size && y_stride == size) {
        IN_PLACE
        for (int64_t i = 0; i < n; i++) {
            memcpy(to + 2 * i * size, x + i * size, (size_t)size);
            memcpy(to + (2 * i + 1) * size, y + i * size, (size_t)size);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        memcpy(to + i * to_stride, x + i * x_stride, (size_t)size);
        memcpy(to + i * to_stride + size, y + i * y_stride, (size_t)size);
    }
}

static void pair_2(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    pair(n, data, strides, 2);
}

static void pair_4(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    pair(n, data, strides, 4);
}

static void pair_8(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    (void)params;
    pair(n, data, strides, 8);
}

/* ---- Lines ------------------------------------------------------------------------------------------------------------------------------ */

/* copy_long() copies PART bytes with one load and one store, and makes PARTS such copies in one round of its loop. PART is at most half a cache line,
 * because the processor sends more prefetch requests to memory for loads of half a line than for loads of a full line. */
enum { PART = VECTOR < LINE / 2 ? VECTOR : LINE / 2, PARTS = 8 };
typedef uint8_t part __attribute__((vector_size(PART)));

GRD_INLINE void copy_part(char *to, const char *from)
{
    part v;
    memcpy(&v, from, PART);
    memcpy(to, &v, PART);
}

/* Copies n >= PART bytes. It replaces memcpy(), which in some C libraries uses a string instruction of the processor for long copies. That
 * instruction is slow to start, and ten times slower if `to` is a few bytes above `from` modulo the page size. All stores but the first and the
 * last begin at multiples of PART, so none of them crosses a cache line. The first and the last may overlap their neighbours. */
GRD_INLINE void copy_long(int64_t n, char *to, const char *from)
{
    int64_t i = PART - (int64_t)((uintptr_t)to % PART);
    copy_part(to, from);
    for (; i + PARTS * PART <= n; i += PARTS * PART) {
        part v[PARTS];
        UNROLLED for (int k = 0; k < PARTS; k++) memcpy(&v[k], from + i + k * PART, PART);
        UNROLLED for (int k = 0; k < PARTS; k++) memcpy(to + i + k * PART, &v[k], PART);
    }
    for (; i + PART <= n; i += PART)
        copy_part(to + i, from + i);
    if (i < n)
        copy_part(to + n - PART, from + n - PART);
}

static void copy(int64_t n, char *to, const char *from)
{
    copy_long(n, to, from);
}

/* Copies n bytes with non-temporal stores. The first and the last cache line may hold other data, too, so they are written with ordinary stores. */
static void copy_past(int64_t n, char *to, const char *from)
{
    int64_t i = grd_least(n, (int64_t)(-(uintptr_t)to % LINE));
    memcpy(to, from, (size_t)i);
    for (; i + LINE <= n; i += LINE)
        stream(to + i, from + i, LINE);
    memcpy(to + i, from + i, (size_t)(n - i));
    settle();
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------------------------ */

/* Note [Between rows]
 * After a row has been copied, many of its stores still wait for memory. A load waits for such a store if the last 12 bits of both addresses agree
 * (4K aliasing), which is nearly always so after a long row. If the address of the next row had to be loaded from memory, reading that row would
 * wait for the stores. So one loop copies all rows and keeps its variables in registers. A function call per row would load them from memory
 * again. */

/* Copies one row of n bytes. Unlike copy_long(), it takes any n. */
GRD_INLINE void copy_row(int64_t n, char *to, const char *from)
{
    if (n >= PART)
        copy_long(n, to, from);
    else
        grd_copy_short(to, from, n);
}

/* Writes the rows [begin, end) of a concatenation of tensors. Row i of the result is row i of the first tensor, followed by row i of the second, and
 * so on. */
static void join_rows(const struct grd_joined_rows *rows, int64_t begin, int64_t end)
{
    const int64_t parts = rows->parts, to_stride = rows->to_stride;
    for (int64_t i = begin; i < end; i++) {
        char *to = rows->to + i * to_stride;
        for (int64_t k = 0; k < parts; k++) {
            const int64_t bytes = rows->part[k].bytes;
            copy_row(bytes, to, rows->part[k].from + i * rows->part[k].stride);
            to += bytes;
        }
    }
}

/* Copies row number rows->index[i] of the source to row number i of the result, for each i < rows->n. */
static void gather_rows(const struct grd_listed_rows *rows)
{
    const int64_t n = rows->n, bytes = rows->bytes, to_stride = rows->to_stride, step = rows->step, *const index = rows->index;
    char *to = rows->to;
    const char *const from = rows->from;
    for (int64_t i = 0; i < n; i++, to += to_stride)
        copy_row(bytes, to, from + index[i] * step);
}

extern const struct grd_bytes_kernels GRD_AT_LEVEL(grd_bytes_kernels);
const struct grd_bytes_kernels GRD_AT_LEVEL(grd_bytes_kernels) = {
    .fill = fill,
    .copy = copy,
    .copy_past = copy_past,
    .join_rows = join_rows,
    .gather_rows = gather_rows,
    .reverse = {reverse_1, reverse_2, reverse_4, reverse_8},
    .every_other = {every_other_1, every_other_2, every_other_4, every_other_8},
    .pair = {NULL, pair_2, pair_4, pair_8}};
