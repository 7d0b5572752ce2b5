/* Calls routines of LAPACK and BLAS with the Fortran convention. All arguments are passed by address, and the lengths of string arguments follow at
 * the end. */
#include "op/lapack.h"

#include "core/dtype.h"
#include "kernel/gemm.h"
#include "kernel/table.h"
#include "op/openblas.h"

typedef void trtri_routine(const char *triangle, const char *diagonal, const int64_t *n, void *a, const int64_t *lda, int64_t *ret_info,
                           size_t length1, size_t length2);
typedef void trsv_routine(const char *triangle, const char *transposition, const char *diagonal, const int64_t *n, const void *a,
                          const int64_t *lda, void *x, const int64_t *step, size_t length1, size_t length2, size_t length3);
typedef void sytrf_routine(const char *triangle, const int64_t *n, void *a, const int64_t *lda, int64_t *ret_pivots, void *work,
                           const int64_t *lwork, int64_t *ret_info, size_t length);
typedef void sytrs_routine(const char *triangle, const int64_t *n, const int64_t *k, const void *a, const int64_t *lda,
                           const int64_t *pivots, void *b, const int64_t *ldb, int64_t *ret_info, size_t length);

static bool is_there(const struct grd_plan *p)
{
    (void)p;
    return grd_openblas() != NULL;
}

/* True if LAPACK is faster than this library's kernels, as it is for large matrices. p->state begins with the side of the matrices, which is the
 * smaller of their numbers of rows and columns. */
static bool is_large(const struct grd_plan *p)
{
    return *(const int64_t *)p->state > GRD_LAPACK_SIDE;
}

static const struct grd_provider providers[] = {{.name = "lapack", .serves = is_there, .wins = is_large}, {.name = "native"}};

static bool choose(struct grd_plan *p)
{
    p->provider = grd_choose_provider(p, providers, GRD_LENGTH(providers));
    return p->provider != NULL;
}

bool grd_plan_lapack(struct grd_plan *p, int64_t side)
{
    *(int64_t *)p->state = side;
    p->prepare = choose;
    return true;
}

bool grd_lapack_is_chosen(const struct grd_plan *p)
{
    return p->provider == &providers[0];
}

grd_lapack_routine *grd_lapack_begin(grd_dtype dtype, enum grd_lapack_name name)
{
    grd_lapack_routine *const routine = grd_lapack(dtype, name);
    return routine != NULL && grd_openblas_begin() ? routine : NULL;
}

const void *grd_lapack_number(grd_dtype dtype, int value)
{
    static const float numbers[3][2] = {{-1, 0}, {0, 0}, {1, 0}};
    static const double wide_numbers[3][2] = {{-1, 0}, {0, 0}, {1, 0}};
    return grd_dtype_to_real(dtype) == GRD_FLOAT32 ? (const void *)numbers[value + 1] : wide_numbers[value + 1];
}

/* Arguments that all recursive calls of invert_lower() share. `leading` is the number of elements from the start of one column of the matrix to the
 * start of the next. */
struct inversion {
    grd_dtype dtype;
    int64_t leading;
    trtri_routine *trtri;
    grd_trsm_routine *trsm;
};

/* Inverts a lower triangular n x n matrix recursively. With L = [[A, 0], [B, C]], B is overwritten with -C^-1 B A^-1 by solving two triangular
 * systems. Recursive calls then invert A and C. OpenBLAS's own trtri is slower, because it inverts hundreds of columns one by one. */
static void invert_lower(const struct inversion *v, int64_t n, char *l)
{
    enum { SMALL = 48 }; /* largest side for which trtri inverts the matrix column by column */
    const void *one = grd_lapack_number(v->dtype, 1), *minus_one = grd_lapack_number(v->dtype, -1);
    int64_t info = 0;
    if (n <= SMALL) {
        v->trtri("L", "N", &n, l, &v->leading, &info, 1, 1);
        return;
    }
    const int64_t first = n / 2, rest = n - first, size = grd_dtype_table[v->dtype].size;
    char *below = l + first * size, *last = l + first * (v->leading + 1) * size;
    v->trsm("L", "L", "N", "N", &rest, &first, minus_one, last, &v->leading, below, &v->leading, 1, 1, 1, 1);
    v->trsm("R", "L", "N", "N", &rest, &first, one, l, &v->leading, below, &v->leading, 1, 1, 1, 1);
    invert_lower(v, first, l);
    invert_lower(v, rest, last);
}

bool grd_lapack_cholesky_inverse(grd_dtype dtype, int64_t n, void *l)
{
    const struct inversion v = {dtype, n, (trtri_routine *)grd_lapack(dtype, GRD_LAPACK_TRTRI),
                                (grd_trsm_routine *)grd_lapack(dtype, GRD_LAPACK_TRSM)};
    grd_potrf_routine *const lauum = (grd_potrf_routine *)grd_lapack(dtype, GRD_LAPACK_LAUUM);
    int64_t info = 0;
    if (v.trtri == NULL || v.trsm == NULL || lauum == NULL || !grd_openblas_begin())
        return false;
    invert_lower(&v, n, l);
    lauum("L", &n, l, &n, &info, 1);
    grd_openblas_end();
    return true;
}

/* Solves the triangular system t->a y = x, or y t->a = x if t->left is false. Each of the k right-hand sides in x takes one call of BLAS's trsv. For
 * one or two right-hand sides this is faster than trsm, which first copies the triangle into packed form. Returns false, with x unchanged, if
 * OpenBLAS or trsv is not available. */
static bool solve_vectors(grd_dtype dtype, const struct grd_triangle *t, bool turned, int64_t k, int64_t leading, void *x)
{
    trsv_routine *const trsv = (trsv_routine *)grd_lapack_begin(dtype, GRD_LAPACK_TRSV);
    const int64_t step = t->left ? 1 : leading, next = (t->left ? leading : 1) * grd_dtype_table[dtype].size;
    if (trsv == NULL)
        return false;
    for (int64_t i = 0; i < k; i++)
        trsv(t->upper != turned ? "U" : "L", t->left != turned ? "N" : "T", t->unit ? "U" : "N", &t->n, t->a, &t->stride,
             (char *)x + i * next, &step, 1, 1, 1);
    grd_openblas_end();
    return true;
}

/* Arguments of solve_by_halves(), which solves t->a y = x, or y t->a = x if t->left is false, for k right-hand sides in x. The columns of x are
 * `leading` elements apart. If `turned`, the triangle t->a is stored row by row. `one` and `minus_one` point to the numbers 1 and -1 of the
 * dtype. */
struct solver {
    const struct grd_triangle *t;
    bool turned;
    int64_t k, leading, itemsize;
    const void *one, *minus_one;
    /* Kernel for small triangles. NULL if the dtype has no such kernel, in which case trsm solves small triangles, too. */
    grd_small_triangle_kernel *small;
    grd_trsm_routine *trsm;
    grd_gemm_routine *gemm;
};

/* Returns the address of unknown i of the first right-hand side in x. */
static char *solved_at(const struct solver *s, char *x, int64_t i)
{
    return x + i * (s->t->left ? 1 : s->leading) * s->itemsize;
}

/* Subtracts the terms of unknowns that are already solved from the right-hand sides of other equations. The unknowns have the indices [part,
 * part + solved), and the equations have the indices [rest, rest + left). x holds both the unknowns and the right-hand sides. */
static void subtract_solved(const struct solver *s, int64_t part, int64_t solved, int64_t rest, int64_t left, char *x)
{
    const struct grd_triangle *t = s->t;
    const int64_t row = t->left != s->turned ? rest : part, column = t->left != s->turned ? part : rest;
    const char *a = (const char *)t->a + (row + column * t->stride) * s->itemsize, *transposition = s->turned ? "T" : "N";
    char *from = solved_at(s, x, part), *to = solved_at(s, x, rest);
    if (t->left)
        s->gemm(transposition, "N", &left, &s->k, &solved, s->minus_one, a, &t->stride, from, &s->leading, s->one, to, &s->leading, 1, 1);
    else
        s->gemm("N", transposition, &s->k, &left, &solved, s->minus_one, from, &s->leading, a, &t->stride, s->one, to, &s->leading, 1, 1);
}

/* Solves the n equations from index `first` on, by one call of this library's kernel for small triangles or of BLAS's trsm. */
static void solve_small(const struct solver *s, int64_t first, int64_t n, char *x)
{
    const struct grd_triangle *t = s->t;
    const char *a = (const char *)t->a + first * (t->stride + 1) * s->itemsize;
    char *at = solved_at(s, x, first);
    if (s->small != NULL) {
        const bool by_columns = t->left != s->turned;
        s->small(&(struct grd_small_triangle){.n = n,
                                              .count = s->k,
                                              .rises = t->left != t->upper,
                                              .unit = t->unit,
                                              .a = a,
                                              .equation = by_columns ? 1 : t->stride,
                                              .unknown = by_columns ? t->stride : 1,
                                              .x = at,
                                              .x_row = t->left ? 1 : s->leading,
                                              .x_col = t->left ? s->leading : 1});
        return;
    }
    s->trsm(t->left ? "L" : "R", t->upper != s->turned ? "U" : "L", s->turned ? "T" : "N", t->unit ? "U" : "N", t->left ? &n : &s->k,
            t->left ? &s->k : &n, s->one, a, &t->stride, at, &s->leading, 1, 1, 1, 1);
}

/* Solves n equations, starting at index `first`, recursively. The first half is solved, a matrix product of its solution is subtracted from the
 * second half, and the second half is solved. OpenBLAS's own trsm solves hundreds of equations without a matrix product, and takes several times as
 * long as our kernel for a few equations. */
static void solve_by_halves(const struct solver *s, int64_t first, int64_t n, char *x)
{
    const struct grd_triangle *t = s->t;
    if (n <= (s->small != NULL ? GRD_SMALL_TRIANGLE_SIDE : 32)) {
        solve_small(s, first, n, x);
        return;
    }
    const int64_t half = n / 2;
    const bool rises = t->left != t->upper;
    const int64_t part = rises ? first : first + half, solved = rises ? half : n - half, rest = rises ? first + half : first;
    solve_by_halves(s, part, solved, x);
    subtract_solved(s, part, solved, rest, n - solved, x);
    solve_by_halves(s, rest, n - solved, x);
}

bool grd_lapack_solve(grd_dtype dtype, const struct grd_triangle *t, bool turned, int64_t k, int64_t leading, void *x)
{
    const struct solver s = {t,
                             turned,
                             k,
                             leading,
                             grd_dtype_size(dtype),
                             grd_lapack_number(dtype, 1),
                             grd_lapack_number(dtype, -1),
                             grd_kernels->gemm[dtype]->triangle,
                             (grd_trsm_routine *)grd_lapack(dtype, GRD_LAPACK_TRSM),
                             (grd_gemm_routine *)grd_lapack(dtype, GRD_LAPACK_GEMM)};
    if (s.trsm == NULL || s.gemm == NULL)
        return false;
    solve_by_halves(&s, 0, t->n, x);
    return true;
}

/* Solves the triangular system t->a y = x, or y t->a = x if t->left is false. x holds k right-hand sides. Uses BLAS's trsv if k is at most 2,
 * otherwise grd_lapack_solve(). Returns false, with x unchanged, if OpenBLAS or a routine is not available. */
static bool solve_with_lapack(grd_dtype dtype, const struct grd_triangle *t, bool turned, int64_t k, int64_t leading, void *x)
{
    enum { FEW = 2 };
    if (k <= FEW)
        return solve_vectors(dtype, t, turned, k, leading, x);
    if (!grd_openblas_begin())
        return false;
    const bool is_solved = grd_lapack_solve(dtype, t, turned, k, leading, x);
    grd_openblas_end();
    return is_solved;
}

void grd_solve_triangle(const struct grd_plan *p, grd_dtype dtype, const struct grd_triangle *t, bool turned, int64_t k, int64_t leading,
                        void *x)
{
    const struct grd_decomposition_row *kernels = grd_kernels->decomposition[dtype];
    if (grd_lapack_is_chosen(p) && solve_with_lapack(dtype, t, turned, k, leading, x))
        return;
    if (!turned) {
        kernels->solve(t, k, leading, x);
        return;
    }
    /* The kernel reads only column-major triangles. A row-major A is a column-major A^T, so A y = x is solved as y^T A^T = x^T. */
    const struct grd_triangle transposed = {.n = t->n, .stride = t->stride, .upper = !t->upper, .unit = t->unit, .left = false, .a = t->a};
    for (int64_t i = 0; i < k; i++)
        kernels->solve(&transposed, 1, 1, (char *)x + i * leading * grd_dtype_table[dtype].size);
}

int64_t grd_lapack_block_work(int64_t columns)
{
    enum { BLOCK = 32 }; /* number of columns per block; LAPACK uses blocks of the size that the workspace has room for */
    return columns * BLOCK;
}

bool grd_lapack_ldl(grd_dtype dtype, int64_t n, bool hermitian, void *a, void *work, int64_t *ret_pivots, int32_t *ret_info)
{
    sytrf_routine *const sytrf = (sytrf_routine *)grd_lapack_begin(dtype, hermitian ? GRD_LAPACK_HETRF : GRD_LAPACK_SYTRF);
    const int64_t lwork = grd_lapack_block_work(n);
    int64_t info = 0;
    if (sytrf == NULL)
        return false;
    sytrf("L", &n, a, &n, ret_pivots, work, &lwork, &info, 1);
    grd_openblas_end();
    *ret_info = (int32_t)info;
    return true;
}

bool grd_lapack_ldl_solve(grd_dtype dtype, int64_t n, int64_t k, bool hermitian, const void *ld, const int64_t *pivots, void *x)
{
    sytrs_routine *const sytrs = (sytrs_routine *)grd_lapack_begin(dtype, hermitian ? GRD_LAPACK_HETRS : GRD_LAPACK_SYTRS);
    int64_t info = 0;
    if (sytrs == NULL)
        return false;
    sytrs("L", &n, &k, ld, &n, pivots, x, &n, &info, 1);
    grd_openblas_end();
    return true;
}
