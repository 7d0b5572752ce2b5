/* Transposes matrices in tiles. The build compiles this file once for each element size, with one dtype of that size (uint8, uint16, uint32, uint64
 * or complex128).
 *
 * A tile is a square of elements, one cache line wide. So each cache line of the source is read whole, and each cache line of the result is written
 * whole.
 * Rows whose distance is a power of two share few sets of the cache and evict each other. Therefore all cache lines of a tile are copied before they
 * are transposed. Within a page of the source, tiles are taken along the rows of the source, because the hardware prefetches in that direction. */
#include "kernel/cpu/widest.h" /* included before all other headers, because its pragma holds for the code after it */

#include "kernel/index.h"

#include <string.h>

#include "kernel/cpu/stream.h"
#include "kernel/cpu/typed.h"

/* VECTOR is the size of a vector in bytes. A tile is the square of elements that is transposed at a time; it is one cache line wide. With AVX-512 and
 * elements of 4 or 8 bytes, a vector is a whole cache line and a tile has at most 16 rows, so a tile fits into the vector registers. */
#if defined(__AVX512F__) && (GRD_TAG == GRD_TAG_uint32 || GRD_TAG == GRD_TAG_uint64)
enum { VECTOR = 64 };
#else
enum { VECTOR = 16 };
#endif
/* LINE: bytes of a cache line. PAGE: bytes of a page. TILE: elements of a cache line. LANES: elements of a vector. PIECES: vectors of a cache
 * line. */
enum { LINE = 64, PAGE = 4096, TILE = LINE / sizeof(T), LANES = VECTOR / sizeof(T), PIECES = LINE / VECTOR };

/* Lists of lane numbers for shuffles that interleave two vectors. LOW takes the lower halves of the vectors, HIGH the upper halves. */
#if GRD_TAG == GRD_TAG_uint8
#define LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
typedef T vector __attribute__((vector_size(VECTOR)));
#elif GRD_TAG == GRD_TAG_uint16
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
typedef T vector __attribute__((vector_size(VECTOR)));
#elif GRD_TAG == GRD_TAG_uint32 && defined(__AVX512F__)
#define LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
typedef T vector __attribute__((vector_size(VECTOR)));
#elif GRD_TAG == GRD_TAG_uint64 && defined(__AVX512F__)
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
typedef T vector __attribute__((vector_size(VECTOR)));
#elif GRD_TAG == GRD_TAG_uint32
#define LOW 0, 4, 1, 5
#define HIGH 2, 6, 3, 7
typedef T vector __attribute__((vector_size(VECTOR)));
#else /* elements of 8 or 16 bytes; for 16 bytes, a vector has one element, so transpose_square() does nothing */
#define LOW 0, 2
#define HIGH 1, 3
typedef uint64_t vector __attribute__((vector_size(VECTOR)));
#endif

/* Transposes a square of LANES x LANES elements in log2(LANES) steps. Each step interleaves row i with row i + LANES / 2 for all i < LANES / 2. */
GRD_INLINE void transpose_square(vector *rows)
{
    vector mixed[LANES];
    UNROLLED for (int step = 1; step < LANES; step *= 2)
    {
        UNROLLED for (int i = 0; i < LANES / 2; i++)
        {
            mixed[2 * i] = __builtin_shufflevector(rows[i], rows[i + LANES / 2], LOW);
            mixed[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + LANES / 2], HIGH);
        }
        UNROLLED for (int i = 0; i < LANES; i++) rows[i] = mixed[i];
    }
}

/* Stores the vector v at `to`. If `streamed`, the store bypasses the caches, and `to` must be a multiple of VECTOR bytes. */
GRD_INLINE void put(char *to, vector v, bool streamed)
{
    if (streamed)
        stream(to, &v, VECTOR);
    else
        memcpy(to, &v, sizeof v);
}

/* Transposes one tile of TILE x TILE elements. The rows of the result are to_stride bytes apart, the rows of the source from_stride bytes. If
 * `streamed`, the stores bypass the caches. */
GRD_INLINE void transpose_tile(char *to, int64_t to_stride, const char *from, int64_t from_stride, bool streamed)
{
    _Alignas(LINE) char lines[TILE][LINE];
    if (PIECES == 1) {
        vector rows[TILE];
        UNROLLED for (int c = 0; c < TILE; c++) memcpy(&rows[c], from + c * from_stride, VECTOR);
        transpose_square(rows);
        UNROLLED for (int r = 0; r < TILE; r++) put(to + r * to_stride, rows[r], streamed);
        return;
    }
    UNROLLED for (int c = 0; c < TILE; c++) memcpy(lines[c], from + c * from_stride, LINE);
    for (int r = 0; r < TILE; r += LANES) {
        vector columns[PIECES][LANES];
        UNROLLED for (int p = 0; p < PIECES; p++)
        {
            UNROLLED for (int i = 0; i < LANES; i++) columns[p][i] = *(const vector *)&lines[p * LANES + i][r * sizeof(T)];
            transpose_square(columns[p]);
        }
        UNROLLED for (int i = 0; i < LANES; i++)
        {
            UNROLLED for (int p = 0; p < PIECES; p++) put(to + (r + i) * to_stride + p * VECTOR, columns[p][i], streamed);
        }
    }
}

/* Prefetches one cache line from each of TILE columns of the source, which together are one tile. */
GRD_INLINE void prefetch_columns(const char *from, int64_t from_stride)
{
    for (int i = 0; i < TILE; i++)
        __builtin_prefetch(from + i * from_stride);
}

/* Prefetches the TILE cache lines of a tile of the source, and the TILE cache lines of the result to which the tile is written. */
GRD_INLINE void prefetch_tile(const char *to, int64_t to_stride, const char *from, int64_t from_stride)
{
    prefetch_columns(from, from_stride);
    for (int i = 0; i < TILE; i++)
        __builtin_prefetch(to + i * to_stride, 1);
}

/* Transposes a matrix one element at a time. This is for the rows or columns after the last whole tile of TILE x TILE elements, and for matrices
 * smaller than a tile. */
static void transpose_edge(int64_t rows, int64_t columns, char *to, int64_t to_stride, const char *from, int64_t from_stride)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            memcpy(to + r * to_stride + c * (int64_t)sizeof(T), from + c * from_stride + r * (int64_t)sizeof(T), sizeof(T));
}

extern grd_transpose_kernel GRD_TYPED(grd_transpose);

void GRD_TYPED(grd_transpose)(int64_t rows, int64_t columns, char *to, int64_t to_stride, const char *from, int64_t from_stride,
                              bool streamed)
{
    const int64_t size = sizeof(T), page = PAGE / size;
    const int64_t whole_rows = rows - rows % TILE, whole_columns = columns - columns % TILE;
    for (int64_t start = 0; start < whole_rows; start += page) {
        int64_t end = whole_rows - start < page ? whole_rows : start + page;
        for (int64_t c = 0; c < whole_columns; c += TILE) {
            for (int64_t r = start; r < end; r += TILE) {
                char *tile = to + r * to_stride + c * size;
                const char *source = from + c * from_stride + r * size;
                if (streamed) {
                    transpose_tile(tile, to_stride, source, from_stride, true);
                    continue;
                }
                if (r + TILE < end)
                    prefetch_tile(tile + TILE * to_stride, to_stride, source + LINE, from_stride);
                else
                    prefetch_columns(source + 2 * TILE * from_stride, from_stride);
                transpose_tile(tile, to_stride, source, from_stride, false);
            }
        }
    }
    transpose_edge(whole_rows, columns - whole_columns, to + whole_columns * size, to_stride, from + whole_columns * from_stride,
                   from_stride);
    transpose_edge(rows - whole_rows, columns, to + whole_rows * to_stride, to_stride, from + whole_rows * size, from_stride);
    if (streamed)
        settle();
}
