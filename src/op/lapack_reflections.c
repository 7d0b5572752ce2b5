/* Computes QR decompositions by Householder reflections, and products with Q, using LAPACK. A small matrix takes one LAPACK call. For a large matrix,
 * BLOCK adjacent reflections at a time are combined in a block. The columns that a block changes are divided into chunks of adjacent columns, and the
 * chunks are distributed over all threads.
 *
 * Invariant: blocks and chunks depend only on the sizes of one matrix, so the bits depend neither on the number of threads nor on the batch. */
#include "op/lapack_reflections.h"

#include <string.h>

#include "base/parallel.h"
#include "core/dtype.h"
#include "kernel/table.h"
#include "op/blas.h"
#include "op/lapack.h"
#include "op/openblas.h"
#include "op/sizes.h"

typedef void geqrf_routine(const int64_t *m, const int64_t *n, void *a, const int64_t *lda, void *ret_tau, void *work, const int64_t *lwork,
                           int64_t *ret_info);
typedef void orgqr_routine(const int64_t *m, const int64_t *n, const int64_t *k, void *a, const int64_t *lda, const void *tau, void *work,
                           const int64_t *lwork, int64_t *ret_info);
typedef void ormqr_routine(const char *side, const char *transposition, const int64_t *m, const int64_t *n, const int64_t *k, const void *a,
                           const int64_t *lda, const void *tau, void *x, const int64_t *ldx, void *work, const int64_t *lwork,
                           int64_t *ret_info, size_t length1, size_t length2);
typedef void geqrt3_routine(const int64_t *m, const int64_t *n, void *a, const int64_t *lda, void *ret_t, const int64_t *ldt,
                            int64_t *ret_info);
typedef void larft_routine(const char *direction, const char *storage, const int64_t *m, const int64_t *k, const void *v,
                           const int64_t *ldv, const void *tau, void *ret_t, const int64_t *ldt, size_t length1, size_t length2);

/* ---- Blocks ------------------------------------------------------------------------------------------------------------------------------ */

/* The sizes below were chosen by measurements on two threads of a Zen 5. With BLOCK = 64, a matrix of 1,000 columns takes as long as with 32, and one
 * of 500 columns takes 10 % longer. With wider chunks, a thread may be left without work. */
enum {
    BLOCK = 32, /* number of reflections (columns of the matrix) that are combined in a block */
    CHUNK = 64, /* number of columns that a task updates at a time (a chunk), a multiple of BLOCK */
    LEAST = 96  /* minimum number of reflections for which this file combines them in blocks; fewer are left to one LAPACK call */
};

/* Product of k reflections, grouped in blocks of BLOCK reflections. Each block is the matrix I - V T V^H, where T is upper triangular. The columns of
 * V are the reflection vectors, which are stored below the diagonal of the m x k matrix `a`. */
struct blocks {
    grd_dtype dtype;
    int64_t m, k, size; /* size: bytes of an element */
    char *a, *tau;
    char *triangles; /* the triangular matrix T of each block of reflections, BLOCK x BLOCK, with zeros below the diagonal */
    char *heads;     /* the first BLOCK rows of the matrix V of each block of reflections, with the zeros and ones that `a` does not
                      * store */
    geqrt3_routine *geqrt3;
    geqrf_routine *geqrf;
    larft_routine *larft;
    grd_gemm_routine *gemm;
    grd_gemm_kernel *kernel; /* this library's kernel for small products; NULL if gemm is faster or the dtype is complex */
    int64_t first;           /* first column of the block of reflections that is being applied */
    /* x is m x `columns` and is multiplied by the blocks of reflections, or by their adjoints if `adjoint`. `work` has 2 * BLOCK elements for
     * each column of x. */
    int64_t columns;
    bool adjoint;
    char *x, *work;
};

/* Returns the description of the reflections r, which are to be applied to the m x `columns` matrix x. */
static struct blocks blocks_of(grd_dtype dtype, const struct grd_reflections *r, int64_t columns, void *x)
{
    return (struct blocks){.dtype = dtype,
                           .m = r->m,
                           .k = r->k,
                           .a = (char *)(uintptr_t)r->a,
                           .tau = (char *)(uintptr_t)r->tau,
                           .columns = columns,
                           .adjoint = r->adjoint,
                           .x = x};
}

/* True if k reflections are combined in blocks instead of being passed to one LAPACK call. */
static bool is_by_blocks(int64_t k)
{
    return k >= LEAST;
}

static int64_t count_blocks(int64_t k)
{
    return (k - 1) / BLOCK + 1;
}

/* Returns the number of elements of workspace for `triangles`, `heads` and `work` of struct blocks. */
static int64_t blocks_work(int64_t k, int64_t columns)
{
    return 2 * BLOCK * (count_blocks(k) * BLOCK + columns);
}

/* Looks up the LAPACK routines and divides the workspace `work` into b->triangles, b->heads and b->work. Returns false if a routine or OpenBLAS
 * is not available. After start_blocks() has returned true, grd_openblas_begin() does not fail. */
static bool start_blocks(struct blocks *b, void *work)
{
    b->size = grd_dtype_table[b->dtype].size;
    const int64_t bytes = count_blocks(b->k) * BLOCK * BLOCK * b->size;
    b->geqrt3 = (geqrt3_routine *)grd_lapack(b->dtype, GRD_LAPACK_GEQRT3);
    b->geqrf = (geqrf_routine *)grd_lapack(b->dtype, GRD_LAPACK_GEQRF);
    b->larft = (larft_routine *)grd_lapack(b->dtype, GRD_LAPACK_LARFT);
    b->gemm = (grd_gemm_routine *)grd_lapack(b->dtype, GRD_LAPACK_GEMM);
    if (b->geqrt3 == NULL || b->geqrf == NULL || b->larft == NULL || b->gemm == NULL || !grd_openblas_begin())
        return false;
    grd_openblas_end();
    if (!grd_dtype_is_complex(b->dtype) && !grd_blas_worth(b->dtype, BLOCK, BLOCK, BLOCK))
        b->kernel = grd_kernels->gemm[b->dtype]->direct;
    b->triangles = work;
    b->heads = b->triangles + bytes;
    b->work = b->heads + bytes;
    return true;
}

/* Describes a column-major matrix. `leading` is the number of elements from the start of one column to the start of the next. */
struct columns {
    char *data;
    int64_t leading;
};

/* Returns the number of columns of the block of reflections that starts at column `first`. */
static int64_t width_of(const struct blocks *b, int64_t first)
{
    return grd_least(BLOCK, b->k - first);
}

/* Returns the triangular matrix T of the block of reflections I - V T V^H that starts at column `first`. */
static struct columns triangle_of(const struct blocks *b, int64_t first)
{
    return (struct columns){b->triangles + first * BLOCK * b->size, BLOCK};
}

/* Returns the first rows of V, the matrix of reflection vectors of the block that starts at column `first`, with the zeros and ones that b->a
 * does not store. */
static struct columns head_of(const struct blocks *b, int64_t first)
{
    return (struct columns){b->heads + first * BLOCK * b->size, BLOCK};
}

/* Describes a product z = beta z + alpha x y. alpha and beta are -1, 0 or 1. */
struct operation {
    bool adjoint; /* the adjoint of x is used instead of x */
    int alpha, beta;
};

/* Computes z = beta z + alpha x y, or with the adjoint of x instead of x. z is m x n, and y is k x n. */
static void multiply(const struct blocks *b, struct operation how, int64_t m, int64_t n, int64_t k, struct columns x, struct columns y,
                     struct columns z)
{
    if (m == 0)
        return;
    if (b->kernel != NULL) { /* computed as z^T = y^T x^T, because the kernel's matrices are row-major */
        b->kernel(&(struct grd_gemm){.m = n,
                                     .n = m,
                                     .k = k,
                                     .a = y.data,
                                     .b = x.data,
                                     .c = z.data,
                                     .a_row = y.leading,
                                     .a_col = 1,
                                     .b_row = how.adjoint ? 1 : x.leading,
                                     .b_col = how.adjoint ? x.leading : 1,
                                     .c_row = z.leading,
                                     .c_col = 1,
                                     .alpha = grd_int(how.alpha),
                                     .beta = grd_int(how.beta)});
        return;
    }
    b->gemm(how.adjoint ? "C" : "N", "N", &m, &n, &k, grd_lapack_number(b->dtype, how.alpha), x.data, &x.leading, y.data, &y.leading,
            grd_lapack_number(b->dtype, how.beta), z.data, &z.leading, 1, 1);
}

/* Fills `count` columns of x, each of `rows` elements, with zeros except for a 1 in row `row` + j of column j. */
static void write_units(const struct blocks *b, int64_t rows, int64_t row, int64_t count, struct columns x)
{
    for (int64_t j = 0; j < count; j++) {
        char *const column = x.data + j * x.leading * b->size;
        memset(column, 0, (size_t)(rows * b->size));
        memcpy(column + (row + j) * b->size, grd_lapack_number(b->dtype, 1), (size_t)b->size);
    }
}

/* Copies the first rows of V, the matrix of reflection vectors of the block that starts at column `first`, from b->a to b->heads, and fills in
 * the ones on the diagonal and the zeros above it. */
static void write_head(const struct blocks *b, int64_t first)
{
    const int64_t width = width_of(b, first);
    const struct columns head = head_of(b, first);
    write_units(b, width, 0, width, head);
    for (int64_t j = 0; j < width - 1; j++)
        memcpy(head.data + (j * (BLOCK + 1) + 1) * b->size, b->a + ((first + j) * (b->m + 1) + 1) * b->size,
               (size_t)((width - 1 - j) * b->size));
}

/* Computes the triangular matrix T of the block of reflections that starts at column `first`. The reflections are already in b->a and b->tau.
 * Also copies the first rows of the block's matrix V to b->heads. */
static void make_triangle(const struct blocks *b, int64_t first)
{
    const int64_t rows = b->m - first, width = width_of(b, first);
    const struct columns t = triangle_of(b, first);
    memset(t.data, 0, (size_t)(BLOCK * BLOCK * b->size));
    b->larft("F", "C", &rows, &width, b->a + first * (b->m + 1) * b->size, &b->m, b->tau + first * b->size, t.data, &t.leading, 1, 1);
    write_head(b, first);
}

/* Decomposes the columns of the block that starts at column `first` into R and reflections. For real dtypes geqrt3, which is recursive, takes two
 * thirds of the time of geqrf and larft. For complex dtypes geqrt3 takes twice as long as geqrf and larft, so geqrf and larft are used. */
static void reflect_block(const struct blocks *b, int64_t first)
{
    const int64_t rows = b->m - first, width = width_of(b, first), lwork = BLOCK * BLOCK;
    const struct columns t = triangle_of(b, first);
    char *const columns = b->a + first * (b->m + 1) * b->size;
    int64_t info = 0;
    if (grd_dtype_is_complex(b->dtype)) {
        b->geqrf(&rows, &width, columns, &b->m, b->tau + first * b->size, b->work + 2 * first * BLOCK * b->size, &lwork, &info);
        make_triangle(b, first);
        return;
    }
    memset(t.data, 0, (size_t)(BLOCK * BLOCK * b->size));
    b->geqrt3(&rows, &width, columns, &b->m, t.data, &t.leading, &info);
    for (int64_t j = 0; j < width; j++)
        memcpy(b->tau + (first + j) * b->size, t.data + j * (BLOCK + 1) * b->size, (size_t)b->size);
    write_head(b, first);
}

/* Multiplies `count` columns of x, starting at `column`, by the matrix I - V T V^H of the block that starts at column `first`, or by I - V T^H V^H if
 * b->adjoint. */
static void apply_block(const struct blocks *b, int64_t first, int64_t column, int64_t count)
{
    const int64_t width = width_of(b, first), rows = b->m - first - width;
    const struct columns t = triangle_of(b, first), head = head_of(b, first);
    const struct columns rest = {b->a + (first * (b->m + 1) + width) * b->size, b->m};
    const struct columns x = {b->x + (column * b->m + first) * b->size, b->m}, below = {x.data + width * b->size, b->m};
    const struct columns vx = {b->work + 2 * column * BLOCK * b->size, BLOCK}, tvx = {vx.data + count * BLOCK * b->size, BLOCK};
    const struct operation add = {.alpha = 1, .beta = 1};
    multiply(b, (struct operation){true, 1, 0}, width, count, width, head, x, vx);
    if (rows > 0)
        multiply(b, (struct operation){true, 1, 1}, width, count, rows, rest, below, vx);
    multiply(b, (struct operation){b->adjoint, -1, 0}, width, count, width, t, vx, tvx);
    multiply(b, add, width, count, width, head, tvx, x);
    multiply(b, add, rows, count, width, rest, tvx, below);
}

/* Writes columns [first, first + width) of the matrix I - V T V^H to x. The block of reflections starts at column `first` and has `width`
 * reflections. */
static void write_block(const struct blocks *b, int64_t first)
{
    const int64_t width = width_of(b, first), rows = b->m - first - width;
    const struct columns rest = {b->a + (first * (b->m + 1) + width) * b->size, b->m};
    const struct columns x = {b->x + first * b->m * b->size, b->m}, within = {x.data + first * b->size, b->m};
    const struct columns units = {b->work + 2 * first * BLOCK * b->size, BLOCK}, v = {units.data + width * BLOCK * b->size, BLOCK};
    write_units(b, width, 0, width, units);
    multiply(b, (struct operation){true, 1, 0}, width, width, width, head_of(b, first), units, v);
    multiply(b, (struct operation){false, -1, 0}, width, width, width, triangle_of(b, first), v, units);
    write_units(b, first + width, first, width, x);
    multiply(b, (struct operation){false, 1, 1}, width, width, width, head_of(b, first), units, within);
    multiply(b, (struct operation){false, 1, 0}, rows, width, width, rest, units, (struct columns){within.data + width * b->size, b->m});
}

/* ---- QR decomposition --------------------------------------------------------------------------------------------------------------------- */

/* Applies the block of reflections that starts at column b->first to the chunks [begin, end) of the columns to its right. Chunk 0 has the columns of
 * the next block. The thread that changes chunk 0 also decomposes the next block, so that no thread has to wait for that decomposition. */
static void update_chunks(int64_t begin, int64_t end, void *context)
{
    const struct blocks *b = context;
    const int64_t next = b->first + width_of(b, b->first);
    grd_openblas_begin();
    for (int64_t i = begin; i < end; i++) {
        const int64_t column = i == 0 ? next : next + BLOCK + (i - 1) * CHUNK;
        apply_block(b, b->first, column, grd_least(i == 0 ? BLOCK : CHUNK, b->columns - column));
        if (i == 0 && next < b->k)
            reflect_block(b, next);
    }
    grd_openblas_end();
}

/* Decomposes the matrix on all threads, one block of columns after the other. */
static void reflect_by_blocks(struct blocks *b)
{
    grd_openblas_begin();
    reflect_block(b, 0);
    grd_openblas_end();
    for (; b->first < b->k; b->first += BLOCK) {
        const int64_t rest = b->columns - b->first - width_of(b, b->first);
        if (rest > 0)
            grd_parallel_for(0, rest <= BLOCK ? 1 : 2 + (rest - BLOCK - 1) / CHUNK, 1, update_chunks, b);
    }
}

int64_t grd_lapack_reflect_work(int64_t m, int64_t n)
{
    const int64_t k = grd_least(m, n);
    return is_by_blocks(k) ? blocks_work(k, n) : grd_lapack_block_work(n);
}

bool grd_lapack_reflect(grd_dtype dtype, int64_t m, int64_t n, void *a, void *ret_tau, void *work)
{
    const int64_t k = grd_least(m, n), lwork = grd_lapack_block_work(n);
    struct blocks b = {.dtype = dtype, .m = m, .k = k, .a = a, .tau = ret_tau, .columns = n, .adjoint = true, .x = a};
    int64_t info = 0;
    if (is_by_blocks(k)) {
        const bool serves = start_blocks(&b, work);
        if (serves)
            reflect_by_blocks(&b);
        return serves;
    }
    geqrf_routine *const geqrf = (geqrf_routine *)grd_lapack_begin(dtype, GRD_LAPACK_GEQRF);
    if (geqrf == NULL)
        return false;
    geqrf(&m, &n, a, &m, ret_tau, work, &lwork, &info);
    grd_openblas_end();
    return true;
}

/* ---- Products with Q ---------------------------------------------------------------------------------------------------------------------- */

static void make_triangles(int64_t begin, int64_t end, void *context)
{
    grd_openblas_begin();
    for (int64_t i = begin; i < end; i++)
        make_triangle(context, i * BLOCK);
    grd_openblas_end();
}

/* Computes the columns [column, end) of Q. */
static void make_chunk(const struct blocks *b, int64_t column, int64_t end)
{
    /* Columns from `units` on belong to no block of reflections and start as columns of the identity. */
    const int64_t units = grd_greatest(column, b->k);
    if (units < end)
        write_units(b, b->m, units, end - units, (struct columns){b->x + units * b->m * b->size, b->m});
    for (int64_t first = (grd_least(end, b->k) - 1) / BLOCK * BLOCK; first >= 0; first -= BLOCK) {
        const int64_t behind = grd_greatest(column, first + width_of(b, first));
        if (behind < end)
            apply_block(b, first, behind, end - behind);
        if (first >= column)
            write_block(b, first);
    }
}

/* Computes the chunks [begin, end) of columns of Q. A column is changed by the block of reflections that contains it and by all blocks to its left,
 * so the last chunks take longest. Chunks are numbered from the last one, so that threads start with the longest chunks. */
static void make_chunks(int64_t begin, int64_t end, void *context)
{
    const struct blocks *b = context;
    const int64_t last = (b->columns - 1) / CHUNK;
    grd_openblas_begin();
    for (int64_t i = begin; i < end; i++)
        make_chunk(b, (last - i) * CHUNK, grd_least((last - i + 1) * CHUNK, b->columns));
    grd_openblas_end();
}

int64_t grd_lapack_orthogonal_work(int64_t columns, int64_t k)
{
    return is_by_blocks(k) ? blocks_work(k, columns) : grd_lapack_block_work(columns);
}

bool grd_lapack_orthogonal(grd_dtype dtype, const struct grd_reflections *r, bool is_from_reflect, int64_t columns, void *ret_q, void *work)
{
    const int64_t lwork = grd_lapack_block_work(columns);
    struct blocks b = blocks_of(dtype, r, columns, ret_q);
    int64_t info = 0;
    if (is_by_blocks(r->k)) {
        const bool serves = start_blocks(&b, work);
        if (serves && !is_from_reflect)
            grd_parallel_for(0, count_blocks(r->k), 1, make_triangles, &b);
        if (serves)
            grd_parallel_for(0, (columns - 1) / CHUNK + 1, 1, make_chunks, &b);
        return serves;
    }
    orgqr_routine *const orgqr = (orgqr_routine *)grd_lapack_begin(dtype, GRD_LAPACK_ORGQR);
    if (orgqr == NULL)
        return false;
    memcpy(ret_q, r->a, (size_t)(r->m * r->k * grd_dtype_table[dtype].size));
    orgqr(&r->m, &columns, &r->k, ret_q, &r->m, r->tau, work, &lwork, &info);
    grd_openblas_end();
    return true;
}

/* Up to FEW columns are multiplied by one reflection at a time. For so few columns, combining reflections in blocks would take longer, because the
 * cost of combining does not depend on the number of columns. LAPACK does not combine reflections if its workspace is too small for blocks. */
enum { FEW = 16, LAPACK_BLOCKS = 65 * 64 /* elements that ormqr needs for its T matrices (TSIZE = LDT * NBMAX in LAPACK's source) */ };

int64_t grd_lapack_reflections_work(int64_t k, int64_t columns)
{
    return columns <= FEW ? columns : is_by_blocks(k) ? blocks_work(k, columns) : grd_lapack_block_work(columns) + LAPACK_BLOCKS;
}

/* Multiplies the chunks [begin, end) of columns of x by all blocks of reflections, or by their adjoints if b->adjoint. */
static void change_chunks(int64_t begin, int64_t end, void *context)
{
    const struct blocks *b = context;
    const int64_t last = count_blocks(b->k) - 1;
    grd_openblas_begin();
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j <= last; j++)
            apply_block(b, (b->adjoint ? j : last - j) * BLOCK, i * CHUNK, grd_least(CHUNK, b->columns - i * CHUNK));
    grd_openblas_end();
}

bool grd_lapack_apply_reflections(grd_dtype dtype, const struct grd_reflections *r, int64_t columns, void *x, void *work)
{
    const int64_t lwork = grd_lapack_reflections_work(r->k, columns);
    struct blocks b = blocks_of(dtype, r, columns, x);
    int64_t info = 0;
    if (columns > FEW && is_by_blocks(r->k)) {
        const bool serves = start_blocks(&b, work);
        if (serves) {
            grd_parallel_for(0, count_blocks(r->k), 1, make_triangles, &b);
            grd_parallel_for(0, (columns - 1) / CHUNK + 1, 1, change_chunks, &b);
        }
        return serves;
    }
    ormqr_routine *const ormqr = (ormqr_routine *)grd_lapack_begin(dtype, GRD_LAPACK_ORMQR);
    if (ormqr == NULL)
        return false;
    ormqr("L",
          !r->adjoint                   ? "N"
          : grd_dtype_is_complex(dtype) ? "C"
                                        : "T",
          &r->m, &columns, &r->k, r->a, &r->m, r->tau, x, &r->m, work, &lwork, &info, 1, 1);
    grd_openblas_end();
    return true;
}
