/* Computes LU decompositions, inverses, determinants and solutions for many small real matrices at once. A vector holds element (i, j) of LANES
 * matrices, one in each lane. Included by lu.c only.
 *
 * Different lanes may exchange different rows. So each row has a mask of the lanes whose pivot is in this row. The masks select the element in the
 * pivot's row from a column. In step j, one loop subtracts multiples of the pivot's row from the rows below. With the same masks, this loop also
 * writes row j to the old position of the pivot's row.
 *
 * Invariant: the results in a lane have the same bits as those of factor() and of a solution with L and then with U, whatever the other lanes
 * hold. */
#include "kernel/cpu/matrix_groups.h"

typedef lane_bits mask;

enum { SIDE = GRD_SMALL_MATRIX_SIDE, SIZE = GRD_SMALL_MATRIX_SIZE };

struct elimination {
    vector a[SIZE];      /* the matrices, column-major; they are overwritten with L and U */
    vector pivots[SIDE]; /* the rows of the pivots, counted from 0; stored as T, because every level can compare vectors of T */
    vector info;         /* 0, or the position of the first pivot that is 0, counted from 1 */
    /* The two masks below belong to the current step j, which eliminates column j. */
    mask is_pivot[SIDE]; /* is_pivot[i] is set in the lanes whose pivot is in row i; it is set in no lane for i < j */
    mask is_regular;     /* the lanes whose pivot is not 0 */
};

/* Returns `a` in the lanes of the mask m, and 0 elsewhere. */
GRD_INLINE vector kept(mask m, vector a)
{
    return (vector)((mask)a & m);
}

/* Chooses the pivot of column j in each lane. It is the element with the largest absolute value in rows j and below, the first one if there are
 * several, or the element of row j if that is NaN. */
GRD_INLINE void choose_pivots(int64_t n, int64_t j, struct elimination *e)
{
    const vector *column = e->a + j * n, one = everywhere(1);
    vector largest = magnitudes(column[j]), row = everywhere((T)j), found = row;
    mask is_found = {0};
    BY_ONE for (int64_t i = j + 1; i < n; i++) largest = maximum(magnitudes(column[i]), largest);
    BY_ONE for (int64_t i = j; i < n; i++, row += one)
    {
        const mask is_pivot = (mask)(magnitudes(column[i]) == largest) & ~is_found;
        e->is_pivot[i] = is_pivot;
        is_found |= is_pivot;
        found = chosen(is_pivot, row, found);
    }
    e->is_pivot[j] |= ~is_found;
    e->pivots[j] = found;
}

/* In `columns` columns of n elements, exchanges row j with the pivot's row, `abreast` columns at a time. If `subtract` is true, afterwards subtracts
 * multiples of the pivot's row from the rows below row j. If `columns` is not a multiple of `abreast`, the remaining columns at the
 * end are not changed. */
GRD_INLINE void exchange_abreast(int abreast, int64_t n, int64_t j, int64_t columns, bool subtract, const struct elimination *e, vector *x)
{
    const vector *multipliers = e->a + j * n;
    for (; columns >= abreast; columns -= abreast, x += abreast * n) {
        vector above[ABREAST];
        mask picked[ABREAST] = {{0}};
        BY_ONE for (int64_t i = j; i < n; i++)
        {
            const mask is_pivot = e->is_pivot[i];
            UNROLLED for (int c = 0; c < abreast; c++) picked[c] |= (mask)x[i + c * n] & is_pivot;
        }
        UNROLLED for (int c = 0; c < abreast; c++)
        {
            above[c] = x[j + c * n];
            x[j + c * n] = (vector)picked[c];
            picked[c] &= e->is_regular;
        }
        BY_ONE for (int64_t i = j + 1; i < n; i++)
        {
            const mask is_pivot = e->is_pivot[i];
            const vector multiplier = kept(e->is_regular, multipliers[i]);
            UNROLLED for (int c = 0; c < abreast; c++)
            {
                const vector below = chosen(is_pivot, above[c], x[i + c * n]);
                x[i + c * n] = subtract ? below - (vector)picked[c] * multiplier : below;
            }
        }
    }
}

/* In `columns` columns of n elements, exchanges row j with the pivot's row. If `subtract` is true, afterwards subtracts multiples of the pivot's row
 * from the rows below row j. */
GRD_INLINE void exchange_all(int64_t n, int64_t j, int64_t columns, bool subtract, const struct elimination *e, vector *x)
{
    const int64_t most = columns / ABREAST * ABREAST;
    exchange_abreast(ABREAST, n, j, most, subtract, e, x);
    exchange_abreast(1, n, j, columns - most, subtract, e, x + most * n);
}

/* In the first `columns` columns of x, exchanges row j with the pivot's row. */
static NOT_INLINE void exchange_columns(int64_t n, int64_t j, int64_t columns, const struct elimination *e, vector *x)
{
    exchange_all(n, j, columns, false, e, x);
}

/* In the first `columns` columns of x, exchanges row j with the pivot's row, and subtracts multiples of the pivot's row from the rows below row j. */
static NOT_INLINE void eliminate_columns(int64_t n, int64_t j, int64_t columns, const struct elimination *e, vector *x)
{
    exchange_all(n, j, columns, true, e, x);
}

/* Carries out elimination step j in each lane: chooses the pivot of column j, exchanges its row with row j, and eliminates column j from the rows
 * below. In the columns before column j, rows are exchanged only if `with_l`. Otherwise L is wrong at the end, but U is right. */
static NOT_INLINE void take_step(int64_t n, int64_t j, bool with_l, struct elimination *e)
{
    vector *column = e->a + j * n;
    choose_pivots(n, j, e);
    exchange_abreast(1, n, j, 1, false, e, column);
    const mask is_zero = (mask)(column[j] == 0);
    const vector pivot = chosen(is_zero, everywhere(1), column[j]);
    const vector raise = chosen((mask)(magnitudes(pivot) < everywhere(least_normal)), everywhere(RAISE), everywhere(1));
    const vector reciprocal = 1 / (pivot * raise);
    e->is_regular = ~is_zero;
    e->info = chosen(is_zero & (mask)(e->info == 0), everywhere((T)(j + 1)), e->info);
    BY_ONE for (int64_t i = j + 1; i < n; i++) column[i] = column[i] * raise * reciprocal;
    if (with_l && j > 0)
        exchange_columns(n, j, j, e, e->a);
    if (j < n - 1)
        eliminate_columns(n, j, n - j - 1, e, column + n);
}

/* Loads s->count matrices into the lanes of ret_e->a, one into each lane, and sets ret_e->info to 0 in all lanes, because no pivot that is 0 has been
 * found yet. */
GRD_INLINE void begin_elimination(const struct grd_small_elimination *s, const int32_t *place, struct elimination *ret_e)
{
    read_lanes(s->n * s->n, s->count, place, s->a, ret_e->a);
    ret_e->info = everywhere(0);
}

GRD_INLINE void write_infos(const struct grd_small_elimination *s, const struct elimination *e)
{
    for (int64_t l = 0; l < s->count; l++)
        s->ret_info[l] = (int32_t)e->info[l];
}

/* Solves L Y = B for `abreast` right sides B in each lane, which are overwritten with Y. The right sides are 0 above row `first`. */
GRD_INLINE void solve_lower(int abreast, int64_t n, int64_t first, const vector *lu, vector *x)
{
    for (int64_t i = first + 1; i < n; i++) {
        vector rest[ABREAST];
        UNROLLED for (int c = 0; c < abreast; c++) rest[c] = x[i + c * n];
        BY_ONE for (int64_t j = first; j < i; j++) UNROLLED for (int c = 0; c < abreast; c++) rest[c] -= x[j + c * n] * lu[i + j * n];
        UNROLLED for (int c = 0; c < abreast; c++) x[i + c * n] = rest[c];
    }
}

/* Solves U X = Y for `abreast` right sides Y in each lane, which are overwritten with X. If `reciprocals` is not NULL, it holds the reciprocals of
 * the diagonal of U. They are used instead of divisions, which take more time. */
GRD_INLINE void solve_upper(int abreast, int64_t n, const vector *lu, const vector *reciprocals, vector *x)
{
    for (int64_t i = n - 1; i >= 0; i--) {
        vector rest[ABREAST];
        UNROLLED for (int c = 0; c < abreast; c++) rest[c] = x[i + c * n];
        BY_ONE for (int64_t j = n - 1; j > i; j--) UNROLLED for (int c = 0; c < abreast; c++) rest[c] -= x[j + c * n] * lu[i + j * n];
        UNROLLED for (int c = 0; c < abreast; c++) x[i + c * n] = reciprocals != NULL ? rest[c] * reciprocals[i] : rest[c] / lu[i + i * n];
    }
}

/* ---- Groups of as many matrices as there are lanes; in lanes without a matrix the last one serves again --------------------------------------- */

/* Decomposes s->count matrices, one in each lane, and writes L and U, the pivots, and for each matrix the position of the first pivot that is 0. */
static void factor_group(const struct grd_small_elimination *s, const int32_t *place)
{
    const int64_t n = s->n;
    struct elimination e;
    begin_elimination(s, place, &e);
    for (int64_t j = 0; j < n; j++)
        take_step(n, j, true, &e);
    write_group(n * n, s->count, NULL, s->ret, e.a);
    for (int64_t l = 0; l < s->count; l++)
        for (int64_t j = 0; j < n; j++)
            s->ret_pivots[l * n + j] = (int32_t)e.pivots[j][l] + 1;
    write_infos(s, &e);
}

/* Writes the determinants of s->count matrices. Each lane computes one determinant. If s->ret_logarithms is not NULL, writes the signs of the
 * determinants and the logarithms of their absolute values instead. */
static void determine_group(const struct grd_small_elimination *s, const int32_t *place)
{
    const int64_t n = s->n;
    struct elimination e;
    vector product = everywhere(1);
    mask is_odd = {0};
    begin_elimination(s, place, &e);
    for (int64_t j = 0; j < n; j++) {
        take_step(n, j, false, &e);
        product *= e.a[j + j * n];
        is_odd ^= (mask)(e.pivots[j] != everywhere((T)j));
    }
    product = chosen(is_odd, -product, product);
    if (s->ret_logarithms == NULL)
        memcpy(s->ret, &product, (size_t)s->count * sizeof(T));
    else
        for (int64_t l = 0; l < s->count; l++)
            sign_and_logarithm(n, (const T *)e.a + l, (n + 1) * LANES, is_odd[l] != 0, (T *)s->ret + l, (T *)s->ret_logarithms + l);
}

/* Solves the equations of s->count matrices, one in each lane, with k right sides for each matrix. The elimination of the matrices transforms the
 * right sides, too, as if they were further columns. Then the equations with U are solved. */
static void solve_group(const struct grd_small_elimination *s, const int32_t *place)
{
    const int64_t n = s->n, k = s->k;
    struct elimination e;
    vector x[SIZE];
    begin_elimination(s, place, &e);
    read_lanes(n * k, s->count, NULL, s->ret, x);
    for (int64_t j = 0; j < n; j++) {
        take_step(n, j, false, &e);
        eliminate_columns(n, j, k, &e, x);
    }
    for (int64_t c = 0; c < k; c++)
        solve_upper(1, n, e.a, NULL, x + c * n);
    write_group(n * k, s->count, NULL, s->ret, x);
    write_infos(s, &e);
}

/* Computes `abreast` columns of U^-1 L^-1, beginning with column `first`, and writes them to the inverse of A. Row c of the matrix after the row
 * exchanges is row rows[c] of A. Therefore column c of U^-1 L^-1 is column rows[c] of the inverse. */
GRD_INLINE void write_inverse_columns(int abreast, int64_t first, const struct grd_small_elimination *s, const struct elimination *e,
                                      const vector *rows, const vector *reciprocals)
{
    const int64_t n = s->n;
    vector x[ABREAST * SIDE];
    for (int64_t c = 0; c < abreast; c++)
        for (int64_t i = 0; i < n; i++)
            x[i + c * n] = everywhere(i == first + c);
    solve_lower(abreast, n, first, e->a, x);
    solve_upper(abreast, n, e->a, reciprocals, x);
    for (int64_t c = 0; c < abreast; c++) {
        T *to[LANES];
        for (int l = 0; l < LANES; l++)
            to[l] = (T *)s->ret + (l * n + (int64_t)rows[first + c][l]) * n;
        write_lanes(n, s->count, NULL, to, x + c * n);
    }
}

/* Writes the inverses of s->count matrices A. Each lane computes one of them. Row i of a matrix after the row exchanges is row rows[i] of A. */
static void invert_group(const struct grd_small_elimination *s, const int32_t *place)
{
    const int64_t n = s->n;
    struct elimination e;
    vector rows[SIDE], reciprocals[SIDE];
    begin_elimination(s, place, &e);
    for (int64_t i = 0; i < n; i++)
        rows[i] = everywhere((T)i);
    for (int64_t j = 0; j < n; j++) {
        take_step(n, j, true, &e);
        exchange_columns(n, j, 1, &e, rows);
    }
    for (int64_t i = 0; i < n; i++)
        reciprocals[i] = 1 / e.a[i + i * n];
    int64_t c = 0;
    for (; c + ABREAST <= n; c += ABREAST)
        write_inverse_columns(ABREAST, c, s, &e, rows, reciprocals);
    for (; c < n; c++)
        write_inverse_columns(1, c, s, &e, rows, reciprocals);
    write_infos(s, &e);
}

/* Divides the matrices of *s into groups of LANES matrices and calls `compute` for one group after the other. `size` is the number of elements of the
 * result of one matrix. */
GRD_INLINE void compute_groups(const struct grd_small_elimination *s, int64_t size,
                               void (*compute)(const struct grd_small_elimination *s, const int32_t *place))
{
    struct grd_small_elimination group = *s;
    int32_t turned[SIZE];
    places_by_columns(s->n, s->n, turned);
    for (int64_t first = 0; first < s->count; first += LANES) {
        group.count = grd_least(s->count - first, LANES);
        group.a = (const T *)s->a + first * s->n * s->n;
        group.ret = (T *)s->ret + first * size;
        group.ret_logarithms = s->ret_logarithms != NULL ? (T *)s->ret_logarithms + first : NULL;
        group.ret_pivots = s->ret_pivots != NULL ? s->ret_pivots + first * s->n : NULL;
        group.ret_info = s->ret_info != NULL ? s->ret_info + first : NULL;
        compute(&group, s->by_rows ? turned : NULL);
    }
}

static void factor_many(const struct grd_small_elimination *s)
{
    compute_groups(s, s->n * s->n, factor_group);
}

static void invert_many(const struct grd_small_elimination *s)
{
    compute_groups(s, s->n * s->n, invert_group);
}

static void determine_many(const struct grd_small_elimination *s)
{
    compute_groups(s, 1, determine_group);
}

static void solve_equations_many(const struct grd_small_elimination *s)
{
    compute_groups(s, s->n * s->k, solve_group);
}
