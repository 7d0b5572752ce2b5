/* Shared by the kernels of matrix products and convolutions. Defines the sizes of the tiles of a product, and functions that pack an operand into a
 * panel of vectors. This header must be included first, because its pragma holds for the code after it.
 *
 * In these kernels, unlike in others, the compiler contracts a product and a sum to one fused multiply-add if the instruction-set level for
 * which they are compiled has that instruction. So results of different levels differ in the last bits. */
#ifndef GRD_KERNEL_GEMM_LANES_H
#define GRD_KERNEL_GEMM_LANES_H

#if defined(__clang__)
#pragma clang fp contract(fast)
#else
#pragma GCC optimize("fp-contract=fast")
#endif

#include <string.h>

#include "kernel/cpu/shuffle.h"
#include "kernel/gemm.h"

enum { PARTS = (GRD_IS_COMPLEX) ? 2 : 1 };

#if defined(__AVX512F__)
enum { ROWS = (GRD_IS_COMPLEX) ? 4 : 8, SQUARE = 8 };
#else
enum { ROWS = (GRD_IS_COMPLEX) ? 2 : 4, SQUARE = 4 };
#endif

enum {
    VECTORS = 3, /* maximum number of vectors in a row of b that are multiplied at a time */
    WIDTH = VECTORS * LANES,
    AHEAD = 8, /* how many rows ahead of its loads a loop prefetches */
};

/* Returns the number of vectors that are needed for a row of `columns` columns. */
GRD_INLINE int64_t vectors_of(int64_t columns)
{
    return (columns + LANES - 1) / LANES;
}

/* ---- Packing -------------------------------------------------------------------------------------------------------------------------- */

typedef lane square_row __attribute__((vector_size(SQUARE * sizeof(lane))));

/* Copies a square of SQUARE x SQUARE lanes from `from` to `panel` and transposes it, by perfect shuffles of its rows. Rows of the square are `column`
 * lanes apart at `from` and panel_row lanes apart at `panel`. */
GRD_INLINE void pack_square(const lane *from, int64_t column, lane *panel, int64_t panel_row)
{
    square_row rows[SQUARE], shuffled[SQUARE];
#pragma GCC unroll 8
    for (int i = 0; i < SQUARE; i++)
        memcpy(&rows[i], from + i * column, sizeof rows[i]);
#pragma GCC unroll 3
    for (int round = 1; round < SQUARE; round *= 2) {
#pragma GCC unroll 4
        for (int i = 0; i < SQUARE / 2; i++) {
#if defined(__AVX512F__)
            shuffled[2 * i] = __builtin_shufflevector(rows[i], rows[i + SQUARE / 2], 0, 8, 1, 9, 2, 10, 3, 11);
            shuffled[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + SQUARE / 2], 4, 12, 5, 13, 6, 14, 7, 15);
#else
            shuffled[2 * i] = __builtin_shufflevector(rows[i], rows[i + SQUARE / 2], 0, 4, 1, 5);
            shuffled[2 * i + 1] = __builtin_shufflevector(rows[i], rows[i + SQUARE / 2], 2, 6, 3, 7);
#endif
        }
#pragma GCC unroll 8
        for (int i = 0; i < SQUARE; i++)
            rows[i] = shuffled[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < SQUARE; i++)
        memcpy(panel + i * panel_row, &rows[i], sizeof rows[i]);
}

/* Copies a matrix of k rows and `columns` columns from `from` to `panel`. The strides of the matrix are `row` and `column`, in lanes. Rows of `panel`
 * are to_row lanes apart. The imaginary part of a complex element is written `width` lanes after its real part. */
GRD_INLINE void copy_lanes(int64_t k, int64_t columns, int64_t width, const lane *from, int64_t row, int64_t column, lane *panel,
                           int64_t to_row)
{
    if (PARTS == 1 && column == 1) {
        const int64_t whole = columns / LANES * LANES;
        const lane_mask rest = first_lanes(columns - whole);
        for (int64_t p = 0; p < k; p++, from += row, panel += to_row) {
            for (int64_t c = 0; c < columns; c += 64 / (int64_t)sizeof(lane))
                __builtin_prefetch(from + AHEAD * row + c); /* rows may be memory pages apart, where the hardware does not prefetch */
            for (int64_t c = 0; c < whole; c += LANES)
                store_vector(panel + c, load_vector(from + c));
            if (whole < columns)
                store_lanes(panel + whole, rest, load_lanes(from + whole, rest));
        }
        return;
    }
    int64_t c = 0;
    if (PARTS == 1 && row == 1)
        for (; c + SQUARE <= columns; c += SQUARE) {
            int64_t p = 0;
            for (; p + SQUARE <= k; p += SQUARE)
                pack_square(from + p + c * column, column, panel + p * to_row + c, to_row);
            for (; p < k; p++)
                for (int64_t i = c; i < c + SQUARE; i++)
                    panel[p * to_row + i] = from[p + i * column];
        }
    for (; c < columns; c++)
        for (int64_t p = 0; p < k; p++)
            for (int64_t q = 0; q < PARTS; q++)
                panel[p * to_row + q * width + c] = from[p * row + c * column + q];
}

/* Copies a matrix of k rows and `columns` columns from `from` to contiguous memory at `panel`. The strides of the matrix are `row` and `column`, in
 * lanes. Rows of `panel` have `width` columns, of which the last ones are filled with zeros if `width` is larger than `columns`. */
GRD_INLINE void pack_lanes(int64_t k, int64_t columns, int64_t width, const lane *from, int64_t row, int64_t column, lane *panel)
{
    const int64_t to_row = width * PARTS;
    if (columns < width)
        memset(panel, 0, (size_t)(k * to_row) * sizeof *panel);
    copy_lanes(k, columns, width, from, row, column, panel, to_row);
}

#endif
