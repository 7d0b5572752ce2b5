/* Runs a matrix product. The provider "native" has three algorithms and "blas" has one. Work is divided at positions that depend only on the shapes.
 *
 *   small    small matrices of a batch: one call of the small kernel per matrix
 *   direct   medium or thin matrices: for each block of the result, one call of a kernel that reads operands with their strides
 *   blas     for each block of the result, one call of OpenBLAS
 *   packed   large matrices: the product is divided into slabs. A slab is a range of rows, a range of columns and a range of k. If the
 *            matrices are small, a slab has these ranges of several matrices of the batch. For each slab, all threads pack both operands,
 *            then all threads multiply blocks of the slab.
 *
 * Dtypes without kernels of their own are converted to a wider dtype as they are packed. Half types are multiplied in float32 or complex64 and
 * rounded once. Small integers are multiplied in 32 bits, which gives the same result modulo 2^bits. */
#include "op/product.h"

#include <math.h>
#include <stdlib.h>

#include "base/integer.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "core/dtype.h"
#include "core/scalar.h"
#include "core/tensor.h"
#include "kernel/table.h"
#include "op/blas.h"
#include "op/provider.h"
#include "op/sizes.h"

enum {
    /* Number of multiplications of a task. They take four times as long as starting and ending a parallel loop, so the overhead is small. */
    PIECE_WORK = 3 << 17,
    PIECE_SIDE = 32,  /* minimum number of rows and of columns of a block, if the kernel reads b in place */
    COPIED_SIDE = 64, /* minimum number of rows and of columns of a block, if the kernel copies rows of b */
    /* Minimum number of multiplications of a block for OpenBLAS and for thin products (few rows or columns). Smaller blocks do not help: OpenBLAS
     * packs the operands of each block, and thin products are bound by memory bandwidth. */
    LARGE_WORK = 1 << 21,
    /* Minimum number of rows and of columns of a block for OpenBLAS and for thin products. A side shorter than 2 * LARGE_SIDE is not divided. */
    LARGE_SIDE = 192,
    /* The number of columns of a block is a multiple of COLUMN_UNIT. Two of the widest vectors hold this many float32. */
    COLUMN_UNIT = 32,
    /* The number of rows of a block is a multiple of ROW_UNIT. ROW_UNIT is a multiple of the number of rows that a kernel computes at a time. */
    ROW_UNIT = 8,
    /* Operands are packed, i.e. copied to the order in which the kernel reads them, only if m, n and k are at least this. */
    PACKED_SIDE = 24,
    /* If k is at least kernels->depth, operands are packed only if the product has more multiplications than this. For smaller k the limit depends on
     * the kernel. */
    PACKED_WORK = 80 * 80 * 80,
    /* Maximum number of rows and of columns of a slab. A slab is the part of a product with packed operands that is computed at a time. */
    SLAB = 4032,
    CONVERTED_SLAB = 1056, /* like SLAB, for dtypes that are converted; smaller because the sums then need scratch memory, too */
    /* Maximum bytes of the packed operands of a slab (part of the product computed at a time) if it has several matrices. */
    SLAB_BYTES = 8 << 20,
    BLOCK_BYTES = 256 << 10,     /* maximum bytes of a block of packed rows of a, so that the block stays in the second-level cache */
    ENOUGH_PIECES = 8,           /* if there are at least this many blocks of rows, the columns are not divided */
    PACKED_PIECE_WORK = 1 << 20, /* minimum number of multiplications per task if the operands are packed */
    MOST_PIECES = 8,             /* maximum number of parts into which a block of rows is divided */
    CHUNK = 32                   /* rows or columns of an operand that are converted at a time */
};

grd_dtype grd_product_dtype(grd_dtype dtype)
{
    switch (dtype) {
    case GRD_UINT8:
    case GRD_INT8:
    case GRD_UINT16:
    case GRD_INT16:
        return GRD_INT32;
    default:
        return grd_computed_dtype(dtype);
    }
}

static const struct grd_product_kernels *kernels_of(grd_dtype dtype)
{
    return grd_kernels->gemm[grd_product_dtype(dtype)];
}

bool grd_product_exists(grd_dtype dtype)
{
    return kernels_of(dtype) != NULL;
}

/* Returns the number of blocks per task, so that a task has at least `task_work` multiplications. A block has `piece_work` multiplications. */
static int64_t grain_of(double piece_work, double task_work)
{
    return piece_work >= task_work ? 1 : (int64_t)ceil(task_work / (piece_work > 1 ? piece_work : 1)); /* a block may have no work */
}

/* ---- Products without packing ------------------------------------------------------------------------------------------------------ */

/* A product divided into blocks. Each matrix of the batch has row_pieces x column_pieces blocks of at most piece_rows x piece_columns. */
struct cut {
    const struct grd_product *p;
    int64_t itemsize;
    int64_t row_pieces, column_pieces, piece_rows, piece_columns;
    /* Kernel for small matrices. NULL if the product is computed by OpenBLAS or by the kernel for larger unpacked operands. */
    grd_small_gemm_kernel *small;
    /* Computes one block of the result, which `g` describes. */
    void (*multiply)(const struct cut *cut, const struct grd_gemm *g);
};

/* Computes a block of the result with this library's kernels. */
static void multiply(const struct cut *cut, const struct grd_gemm *g)
{
    if (cut->small != NULL)
        cut->small(&(struct grd_small_gemm){.m = g->m,
                                            .n = g->n,
                                            .k = g->k,
                                            .a = g->a,
                                            .b = g->b,
                                            .added = grd_scalar_is_zero(g->beta) ? NULL : g->c,
                                            .c = g->c,
                                            .a_row = g->a_row,
                                            .a_col = g->a_col,
                                            .b_row = g->b_row,
                                            .b_col = g->b_col,
                                            .added_row = g->c_row,
                                            .c_row = g->c_row});
    else
        kernels_of(cut->p->dtype)->direct(g);
}

/* Computes a block of the result with OpenBLAS, or with this library's kernels if OpenBLAS cannot get memory. */
static void multiply_blas(const struct cut *cut, const struct grd_gemm *g)
{
    if (!grd_blas_gemm(cut->p->dtype, g))
        kernels_of(cut->p->dtype)->direct(g);
}

/* Computes blocks [begin, end) of the results of all matrices, in the order (matrix, row, column). */
static void run_pieces(int64_t begin, int64_t end, void *context)
{
    const struct cut *cut = context;
    const struct grd_product *p = cut->p;
    int64_t per_matrix = cut->row_pieces * cut->column_pieces;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t matrix = piece, row = 0, column = 0;
        if (per_matrix > 1) {
            matrix = piece / per_matrix;
            row = piece % per_matrix / cut->column_pieces * cut->piece_rows;
            column = piece % cut->column_pieces * cut->piece_columns;
        }
        struct grd_gemm g = p->g;
        g.m = grd_least(g.m - row, cut->piece_rows);
        g.n = grd_least(g.n - column, cut->piece_columns);
        g.a += (matrix * p->a_batch + row * g.a_row) * cut->itemsize;
        g.b += (matrix * p->b_batch + column * g.b_col) * cut->itemsize;
        g.c += (matrix * p->c_batch + row * g.c_row + column * g.c_col) * cut->itemsize;
        cut->multiply(cut, &g);
    }
}

/* Returns the number of multiplications per matrix, m * n * k. If k is 0, returns m * n. */
static double work_of(const struct grd_product *p)
{
    return (double)p->g.m * (double)p->g.n * (double)(p->g.k > 0 ? p->g.k : 1);
}

/* True if rows of b are contiguous. Kernels for unpacked operands (direct kernels) then read the rows in place, otherwise they copy them. */
static bool reads_rows(const struct grd_product *p)
{
    return p->g.b_col == 1;
}

/* Returns the number of parts into which `side` rows or columns are divided. It is 1 or an even number, and at most `wanted`. Each part has at least
 * `least` rows or columns. */
static int64_t cut_side(int64_t side, int64_t least, double wanted)
{
    const int64_t most = side / least, pieces = wanted < (double)most ? (int64_t)wanted : most;
    return pieces < 2 ? 1 : pieces / 2 * 2;
}

/* Returns the division of a product into blocks of at least `work` multiplications and at least `side` rows and columns. A product with fewer than
 * two such blocks is not divided. If b is read in place, rows are divided before columns. Otherwise each block copies the part of b that it
 * reads. Columns are divided before rows in this case, so that blocks copy different parts of b. */
static struct cut cut_product(const struct grd_product *p, double work, int64_t side)
{
    const int64_t m = p->g.m, n = p->g.n;
    struct cut cut = {.p = p, .row_pieces = 1, .column_pieces = 1, .piece_rows = m, .piece_columns = n, .multiply = multiply};
    cut.itemsize = grd_dtype_size(p->dtype);
    const double wanted = work_of(p) / work;
    if (wanted * (double)p->batch < 2)
        return cut;
    if (reads_rows(p)) {
        cut.row_pieces = cut_side(m, side, wanted);
        cut.column_pieces = cut_side(n, side, wanted / (double)cut.row_pieces);
    } else {
        cut.column_pieces = cut_side(n, side, wanted);
        cut.row_pieces = cut_side(m, side, wanted / (double)cut.column_pieces);
    }
    cut.piece_columns = grd_round_up(grd_ceil_div(n, cut.column_pieces), COLUMN_UNIT);
    cut.piece_rows = grd_round_up(grd_ceil_div(m, cut.row_pieces), ROW_UNIT);
    cut.column_pieces = grd_ceil_div(n, cut.piece_columns);
    cut.row_pieces = grd_ceil_div(m, cut.piece_rows);
    return cut;
}

/* Computes all blocks into which a product is divided. */
static void run_cut(struct cut *cut)
{
    const struct grd_product *p = cut->p;
    const int64_t pieces = cut->row_pieces * cut->column_pieces;
    if (pieces * p->batch == 1)
        cut->multiply(cut, &p->g);
    else
        grd_parallel_for(0, p->batch * pieces, grain_of(work_of(p) / (double)pieces, PIECE_WORK), run_pieces, cut);
}

static void run_direct(const struct grd_product *p)
{
    const bool thin = p->g.m < PACKED_SIDE || p->g.n < PACKED_SIDE;
    struct cut cut = cut_product(p, thin ? LARGE_WORK : PIECE_WORK, thin ? LARGE_SIDE : reads_rows(p) ? PIECE_SIDE : COPIED_SIDE);
    if (p->g.c_col == 1 && grd_scalar_is_one(p->g.alpha) && (grd_scalar_is_zero(p->g.beta) || grd_scalar_is_one(p->g.beta)))
        cut.small = grd_product_small(p->dtype, p->g.m, p->g.n, p->g.k);
    run_cut(&cut);
}

/* ---- BLAS ------------------------------------------------------------------------------------------------------------------------------ */

/* True if OpenBLAS computes the planned product faster than this library's kernels. */
static bool blas_wins(const struct grd_plan *plan)
{
    const struct grd_product *p = grd_product_of(plan);
    const struct cut cut = cut_product(p, LARGE_WORK, LARGE_SIDE);
    return grd_blas_worth(p->dtype, grd_least(p->g.m, cut.piece_rows), grd_least(p->g.n, cut.piece_columns), p->g.k);
}

/* True if OpenBLAS is available and can read the strides of the operands. */
static bool blas_serves(const struct grd_plan *plan)
{
    return grd_blas_serves(grd_product_of(plan)->dtype, &grd_product_of(plan)->g);
}

static void run_blas(const struct grd_plan *plan)
{
    struct cut cut = cut_product(grd_product_of(plan), LARGE_WORK, LARGE_SIDE);
    cut.multiply = multiply_blas;
    run_cut(&cut);
}

/* ---- Packed operands --------------------------------------------------------------------------------------------------------------- */

/* Describes a product whose operands are packed, i.e. copied in the order in which the kernel reads them. Also describes the scratch memory and the
 * current slab. A slab is the part of the product that is computed at a time. */
struct packed {
    const struct grd_product *p;
    const struct grd_product_kernels *kernels;
    grd_loop_kernel *widen, *narrow; /* widen: conversion to the dtype of the computation; narrow: conversion back; NULL if not needed */
    int64_t itemsize, size;          /* bytes of an element: of the operands (itemsize), and in the dtype of the computation (size) */
    /* Maximum sizes of a slab, the part of the product that is computed at a time: rows, columns, depth (steps of the sum over k), and number of
     * matrices. */
    int64_t most_rows, most_columns, most_depth, most_matrices;
    /* Scratch memory. left: packed rows of a; right: packed panels (blocks of columns) of b; sums: results before conversion, if the dtype is
     * converted. */
    char *left, *right, *sums;
    int64_t left_bytes, right_bytes, sums_bytes; /* bytes of one matrix in `left`, `right` and `sums` */
    /* The current slab: the matrices [matrix, matrix + matrices), in each of them the rows [row, row + rows) and the columns [column, column +
     * columns), and the terms [at, at + depth) of the sum over k. */
    int64_t matrix, matrices, row, rows, column, columns, at, depth;
    /* Operands are packed in items. An item is a block of item_rows rows of a, or a panel (block of columns) of b. One matrix of the slab has
     * left_items items of a and right_items items of b. left_items is 0 if the tasks that multiply also pack the rows of a. */
    int64_t left_items, right_items, item_rows;
    /* The result of one matrix is divided into row_pieces x column_pieces blocks of at most piece_rows x piece_columns elements. */
    int64_t row_pieces, column_pieces, piece_rows, piece_columns;
};

/* True if both operands are packed, i.e. copied to scratch memory in the order in which the kernel reads them. */
static bool is_packed(const struct grd_product *p)
{
    const int64_t m = p->g.m, n = p->g.n, k = p->g.k;
    if (grd_product_dtype(p->dtype) != p->dtype)
        return true;
    const struct grd_product_kernels *kernels = kernels_of(p->dtype);
    const int most = k >= kernels->depth ? PACKED_WORK : reads_rows(p) ? kernels->direct_work : kernels->direct_work / 4;
    return m >= PACKED_SIDE && n >= PACKED_SIDE && k >= PACKED_SIDE && work_of(p) > most;
}

/* Returns the state of a product whose operands are packed, with the sizes of slabs (blocks computed at a time) and of scratch memory. */
static struct packed plan_packed(const struct grd_product *p)
{
    const struct grd_product_kernels *kernels = kernels_of(p->dtype);
    const grd_dtype dtype = grd_product_dtype(p->dtype);
    const bool converted = dtype != p->dtype;
    const int64_t m = p->g.m, n = p->g.n, k = p->g.k;
    struct packed plan = {.p = p, .kernels = kernels, .itemsize = grd_dtype_size(p->dtype), .size = grd_dtype_size(dtype)};
    if (converted) {
        plan.widen = grd_cast_kernel(p->dtype, dtype);
        plan.narrow = grd_cast_kernel(dtype, p->dtype);
    }
    const int64_t slab = converted ? CONVERTED_SLAB : SLAB;
    const int64_t blocks = k > 0 ? grd_ceil_div(k, kernels->depth) : 1;
    plan.most_rows = grd_least(m, slab);
    plan.most_columns = grd_least(n, slab);
    plan.most_depth = grd_least(grd_round_up(grd_ceil_div(k, blocks), 8), k);
    plan.left_bytes = grd_round_up(plan.most_rows, kernels->strip) * plan.most_depth * plan.size;
    plan.right_bytes = grd_round_up(plan.most_columns, kernels->lanes) * plan.most_depth * plan.size;
    plan.sums_bytes = converted ? grd_round_up(plan.most_rows * plan.most_columns * plan.size, 64) : 0;
    plan.left_bytes = grd_round_up(plan.left_bytes, 64);
    plan.right_bytes = grd_round_up(plan.right_bytes, 64);
    const int64_t bytes = plan.left_bytes + plan.right_bytes + plan.sums_bytes;
    plan.most_matrices = bytes > SLAB_BYTES ? 1 : bytes == 0 ? p->batch : grd_least(p->batch, SLAB_BYTES / bytes);
    return plan;
}

/* Like pack_panel(), for an operand whose dtype is converted. Converts blocks of CHUNK x `columns` elements to a buffer, and copies them from the
 * buffer to `panel`. Converts along the dimension with the smaller stride. */
static void pack_converted(const struct packed *s, int64_t k, int64_t columns, int64_t width, const char *from, int64_t row, int64_t column,
                           char *panel)
{
    enum { MOST_COLUMNS = 64 };
    _Alignas(64) char chunk[CHUNK * MOST_COLUMNS * sizeof(grd_complex64)];
    for (int64_t p = 0; p < k; p += CHUNK) {
        const int64_t rows = grd_least(k - p, CHUNK);
        const bool along_rows = llabs(column) <= llabs(row);
        const int64_t lines = along_rows ? rows : columns, length = along_rows ? columns : rows;
        const int64_t line = (along_rows ? row : column) * s->itemsize, step = (along_rows ? column : row) * s->itemsize;
        for (int64_t i = 0; i < lines; i++)
            s->widen(length, (char *const[]){chunk + i * length * s->size, (char *)from + p * row * s->itemsize + i * line},
                     (const int64_t[]){s->size, step}, NULL);
        s->kernels->pack(rows, columns, width, chunk, along_rows ? columns : 1, along_rows ? 1 : rows, panel + p * width * s->size);
    }
}

/* Copies a panel (k rows, `columns` columns) of an operand from `from` to `panel`, in the order in which the kernel reads it, padded to `width`
 * columns. `row` and `column` are the strides of `from` in elements. */
static void pack_panel(const struct packed *s, int64_t k, int64_t columns, int64_t width, const char *from, int64_t row, int64_t column,
                       char *panel)
{
    if (s->widen != NULL)
        pack_converted(s, k, columns, width, from, row, column, panel);
    else
        s->kernels->pack(k, columns, width, from, row, column, panel);
}

/* Copies rows [first, past) of one matrix of the operand a to s->left, in the order in which the kernel reads them. `slot` is the number of the
 * matrix within the current slab (the part of the product that is computed at a time). */
static void pack_rows(const struct packed *s, int64_t slot, int64_t first, int64_t past)
{
    const struct grd_gemm *g = &s->p->g;
    const int64_t strip = s->kernels->strip;
    const char *a = g->a + ((s->matrix + slot) * s->p->a_batch + s->row * g->a_row + s->at * g->a_col) * s->itemsize;
    for (int64_t i = first; i < past; i += strip)
        pack_panel(s, s->depth, grd_least(past - i, strip), strip, a + i * g->a_row * s->itemsize, g->a_col, g->a_row,
                   s->left + slot * s->left_bytes + i * s->depth * s->size);
}

/* Packs items [begin, end) of the current slab. An item is a block of rows of a or a panel (block of columns) of b. Blocks of a and panels of b are
 * interleaved. So each thread packs a part of a and a part of b, and has both in its own cache when it multiplies. */
static void pack_items(int64_t begin, int64_t end, void *context)
{
    const struct packed *s = context;
    const struct grd_gemm *g = &s->p->g;
    const int64_t panel = s->kernels->panel, items = s->left_items + s->right_items;
    for (int64_t item = begin; item < end; item++) {
        const int64_t slot = item / items, which = item % items, rows_before = which * s->left_items / items;
        if ((which + 1) * s->left_items / items > rows_before) {
            pack_rows(s, slot, rows_before * s->item_rows, grd_least((rows_before + 1) * s->item_rows, s->rows));
        } else {
            const int64_t j = (which - rows_before) * panel, columns = grd_least(s->columns - j, panel);
            const char *b = g->b + ((s->matrix + slot) * s->p->b_batch + s->at * g->b_row + (s->column + j) * g->b_col) * s->itemsize;
            pack_panel(s, s->depth, columns, grd_round_up(columns, s->kernels->lanes), b, g->b_row, g->b_col,
                       s->right + slot * s->right_bytes + j * s->depth * s->size);
        }
    }
}

/* Converts one block of the result matrix. If `to_sums`, reads c and writes `sums` in the dtype of the sums. Otherwise reads `sums` and writes c in
 * its dtype. */
static void convert_rows(const struct packed *s, grd_loop_kernel *cast, const struct grd_gemm *sums, char *c, bool to_sums)
{
    const int64_t row = s->p->g.c_row * s->itemsize, column = s->p->g.c_col * s->itemsize;
    for (int64_t i = 0; i < sums->m; i++) {
        char *sum = sums->c + i * sums->c_row * s->size, *element = c + i * row;
        if (to_sums)
            cast(sums->n, (char *const[]){sum, element}, (const int64_t[]){s->size, column}, NULL);
        else
            cast(sums->n, (char *const[]){element, sum}, (const int64_t[]){column, s->size}, NULL);
    }
}

/* Computes blocks [begin, end) of the results of the current slab, in the order (matrix, row, column). A slab is the part of the product that is
 * computed at a time. */
static void multiply_pieces(int64_t begin, int64_t end, void *context)
{
    const struct packed *s = context;
    const struct grd_product *p = s->p;
    const int64_t per_matrix = s->row_pieces * s->column_pieces;
    const bool first = s->at == 0, last = s->at + s->depth == p->g.k;
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t slot = piece / per_matrix;
        const int64_t row = piece % per_matrix / s->column_pieces * s->piece_rows, column = piece % s->column_pieces * s->piece_columns;
        struct grd_gemm g = p->g;
        g.m = grd_least(s->rows - row, s->piece_rows);
        g.n = grd_least(s->columns - column, s->piece_columns);
        g.k = s->depth;
        g.a = s->left + slot * s->left_bytes + row * s->depth * s->size;
        g.b = s->right + slot * s->right_bytes + column * s->depth * s->size;
        g.c += ((s->matrix + slot) * p->c_batch + (s->row + row) * g.c_row + (s->column + column) * g.c_col) * s->itemsize;
        char *c = g.c;
        if (s->left_items == 0)
            pack_rows(s, slot, row, row + g.m);
        if (s->widen != NULL) {
            g.c = s->sums + slot * s->sums_bytes + (row * s->columns + column) * s->size;
            g.c_row = s->columns;
            g.c_col = 1;
            if (first && !grd_scalar_is_zero(g.beta))
                convert_rows(s, s->widen, &g, c, true);
        }
        if (!first)
            g.beta = grd_int(1);
        s->kernels->packed(&g);
        if (s->widen != NULL && last)
            convert_rows(s, s->narrow, &g, c, false);
    }
}

/* Divides the current slab into items (blocks of rows of a, and panels of b) that are packed, and into blocks of the result that are computed. */
static void cut_slab(struct packed *s)
{
    const int64_t panel = s->kernels->panel, strip = s->kernels->strip;
    s->item_rows = grd_round_up(panel, strip);
    s->left_items = grd_ceil_div(s->rows, s->item_rows);
    s->right_items = grd_ceil_div(s->columns, panel);
    s->row_pieces = grd_greatest(1, grd_ceil_div(s->rows * s->depth * s->size, BLOCK_BYTES));
    s->piece_rows = grd_round_up(grd_ceil_div(s->rows, s->row_pieces), strip);
    s->row_pieces = grd_ceil_div(s->rows, s->piece_rows);
    s->piece_columns = s->columns;
    s->column_pieces = 1;
    /* If there are enough blocks of rows, each task packs its rows of `a` itself. The rows are then in the cache when the task multiplies them. */
    if (s->row_pieces * s->matrices >= ENOUGH_PIECES) {
        s->left_items = 0;
        return;
    }
    const double work = (double)s->piece_rows * (double)s->columns * (double)s->depth;
    const int64_t wanted = grd_least((int64_t)(work / PACKED_PIECE_WORK), MOST_PIECES);
    if (wanted < 2)
        return;
    /* Divides rows instead of columns if that gives smaller blocks and b is small. Blocks of columns can be large because panels are wide. b must be
     * small because each block of rows reads all of b. If rows are divided, the task that multiplies rows also packs them. */
    const int64_t fewer_columns = grd_round_up(grd_ceil_div(s->columns, wanted), panel),
                  fewer_rows = grd_round_up(grd_ceil_div(s->piece_rows, wanted), strip);
    if (fewer_rows * s->columns < fewer_columns * s->piece_rows && s->columns * s->depth * s->size <= BLOCK_BYTES) {
        s->piece_rows = fewer_rows;
        s->row_pieces = grd_ceil_div(s->rows, fewer_rows);
        s->left_items = 0;
    } else {
        s->piece_columns = fewer_columns;
        s->column_pieces = grd_ceil_div(s->columns, fewer_columns);
    }
}

/* Packs the operands of the current slab, i.e. copies them in the order in which the kernel reads them. Then multiplies them. A slab is the part of
 * the product that is computed at a time. */
static void run_slab(struct packed *s)
{
    cut_slab(s);
    const double depth = (double)s->depth;
    const int64_t items = s->matrices * (s->left_items + s->right_items), pieces = s->matrices * s->row_pieces * s->column_pieces;
    grd_parallel_for(0, items, grain_of(depth * s->kernels->panel, PACKED_PIECE_WORK / 64), pack_items, s);
    grd_parallel_for(0, pieces, grain_of((double)s->piece_rows * (double)s->piece_columns * depth, PACKED_PIECE_WORK), multiply_pieces, s);
}

/* Computes a product with packed operands in the scratch memory `memory`, one slab at a time. A slab is a range of rows, of columns and of k. The
 * loop over k is innermost, because slabs that differ only in k add to the same elements of c. */
static void run_packed(struct packed *s, char *memory)
{
    const struct grd_product *p = s->p;
    s->left = memory;
    s->right = s->left + s->most_matrices * s->left_bytes;
    s->sums = s->right + s->most_matrices * s->right_bytes;
    for (s->matrix = 0; s->matrix < p->batch; s->matrix += s->matrices) {
        s->matrices = grd_least(p->batch - s->matrix, s->most_matrices);
        for (s->column = 0; s->column < p->g.n; s->column += s->columns) {
            s->columns = grd_least(p->g.n - s->column, s->most_columns);
            for (s->row = 0; s->row < p->g.m; s->row += s->rows) {
                s->rows = grd_least(p->g.m - s->row, s->most_rows);
                for (s->at = 0; s->at == 0 || s->at < p->g.k; s->at += s->depth) {
                    s->depth = grd_least(p->g.k - s->at, s->most_depth);
                    run_slab(s);
                    if (s->depth == 0)
                        break;
                }
            }
        }
    }
}

/* ---- Providers ------------------------------------------------------------------------------------------------------------------------ */

static void run_native(const struct grd_plan *plan)
{
    const struct grd_product *p = grd_product_of(plan);
    if (!is_packed(p)) {
        run_direct(p);
        return;
    }
    struct packed packed = plan_packed(p);
    run_packed(&packed, (char *)(((uintptr_t)plan->scratch + 63) & ~(uintptr_t)63));
}

/* Implementations (providers) of matrix products, in the order in which they are tried. The schema lists the same names in `providers`. */
static const struct grd_provider providers[] = {{"blas", blas_serves, blas_wins, run_blas}, {.name = "native", .run = run_native}};

bool grd_product_choose(struct grd_plan *p)
{
    p->provider = grd_choose_provider(p, providers, GRD_LENGTH(providers));
    if (p->provider != NULL && p->provider->run == run_native && is_packed(grd_product_of(p))) {
        const struct packed packed = plan_packed(grd_product_of(p));
        p->scratch_bytes = (size_t)(packed.most_matrices * (packed.left_bytes + packed.right_bytes + packed.sums_bytes)) + 64;
    }
    return p->provider != NULL;
}

/* ---- Dot products ------------------------------------------------------------------------------------------------------------------ */

/* DOT_PIECE: elements per task of a dot product. DOT_SLOT: bytes per partial sum. DOT_CHUNK: elements that are converted at a time. */
enum { DOT_PIECE = 1 << 16, DOT_SLOT = 16, DOT_CHUNK = 512 };

/* Arguments of the tasks of a dot product. */
struct dot {
    const struct grd_product_dot *given;
    const struct grd_product_kernels *kernels;
    grd_dtype computed;
    /* x_step, y_step: bytes from one element of x (of y) to the next; size: bytes of an element in the dtype of the computation */
    int64_t x_step, y_step, size;
    /* Conversion to the dtype of the computation; NULL if none is needed. */
    grd_loop_kernel *widen;
    char *sums; /* one partial sum per task, DOT_SLOT bytes apart */
};

/* Adds n partial sums that are DOT_SLOT bytes apart, by computing their dot product with ones. */
static void add_slots(const struct dot *d, int64_t n, const char *sums, char *ret_total)
{
    _Alignas(16) char one[DOT_SLOT];
    grd_scalar_write(grd_int(1), d->computed, one);
    d->kernels->dot(n, sums, DOT_SLOT / d->size, one, 0, ret_total);
}

/* Computes the dot product of n elements that have to be converted. */
static void dot_converted(const struct dot *d, int64_t n, const char *x, const char *y, char *ret_sum)
{
    _Alignas(64) char chunks[2][DOT_CHUNK * sizeof(grd_complex64)], sums[DOT_PIECE / DOT_CHUNK][DOT_SLOT];
    int64_t count = 0;
    for (int64_t at = 0; at == 0 || at < n; at += DOT_CHUNK, count++) {
        const int64_t length = grd_least(n - at, DOT_CHUNK);
        d->widen(length, (char *const[]){chunks[0], (char *)x + at * d->x_step}, (const int64_t[]){d->size, d->x_step}, NULL);
        d->widen(length, (char *const[]){chunks[1], (char *)y + at * d->y_step}, (const int64_t[]){d->size, d->y_step}, NULL);
        d->kernels->dot(length, chunks[0], 1, chunks[1], 1, sums[count]);
    }
    add_slots(d, count, sums[0], ret_sum);
}

static void dot_pieces(int64_t begin, int64_t end, void *context)
{
    const struct dot *d = context;
    for (int64_t piece = begin; piece < end; piece++) {
        const int64_t at = piece * DOT_PIECE, n = grd_least(d->given->n - at, DOT_PIECE);
        const char *x = d->given->x + at * d->x_step, *y = d->given->y + at * d->y_step;
        if (d->widen != NULL)
            dot_converted(d, n, x, y, d->sums + piece * DOT_SLOT);
        else
            d->kernels->dot(n, x, d->given->x_stride, y, d->given->y_stride, d->sums + piece * DOT_SLOT);
    }
}

size_t grd_product_dot_scratch(int64_t n)
{
    return n <= DOT_PIECE ? 0 : (size_t)grd_ceil_div(n, DOT_PIECE) * DOT_SLOT;
}

void grd_product_dot(const struct grd_product_dot *given, char *scratch)
{
    const grd_dtype computed = grd_product_dtype(given->dtype);
    const int64_t pieces = given->n <= DOT_PIECE ? 1 : grd_ceil_div(given->n, DOT_PIECE);
    _Alignas(16) char one_sum[DOT_SLOT], total[DOT_SLOT];
    const int64_t itemsize = grd_dtype_size(given->dtype);
    struct dot d = {.given = given,
                    .kernels = kernels_of(given->dtype),
                    .computed = computed,
                    .x_step = given->x_stride * itemsize,
                    .y_step = given->y_stride * itemsize,
                    .size = grd_dtype_size(computed),
                    .widen = computed != given->dtype ? grd_cast_kernel(given->dtype, computed) : NULL,
                    .sums = pieces == 1 ? one_sum : scratch};
    grd_parallel_for(0, pieces, 1, dot_pieces, &d);
    if (pieces > 1)
        add_slots(&d, pieces, d.sums, total);
    grd_cast_kernel(computed, given->dtype)(1, (char *const[]){given->sum, pieces > 1 ? total : one_sum}, (const int64_t[]){0, 0}, NULL);
}
