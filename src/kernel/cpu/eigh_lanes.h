/* Computes eigenvalues and eigenvectors of many small Hermitian matrices at once, one matrix in each lane of a vector (spectral_lanes.h). Householder
 * reflections reduce the matrices to real tridiagonal ones, which implicit QL steps with Wilkinson's shifts make diagonal. In one step, the lanes may
 * work on different rows of their matrices. See G. Golub and C. Van Loan, Matrix Computations, chapter 8. Included by jacobi.c only. */
#include "kernel/cpu/spectral_lanes.h"

enum { QL_STEPS = 30 /* maximum number of steps per eigenvalue, as in LAPACK; the average is about 1.7 */ };

/* The state of a QL step on rows and columns [first, last] of the matrix in each lane. c and s are the cosine and the sine of the last rotation, and
 * the next rotation is computed from g and p. */
struct ql_step {
    vector first, last, c, s, g, p;
};

/* A real tridiagonal matrix in each lane, with the diagonal d and the subdiagonal e, and the matrix v whose columns become the eigenvectors. */
struct ql {
    vector d[GRD_LANES_SIDE], e[GRD_LANES_SIDE], *v; /* v is NULL if only eigenvalues are computed */
    struct ql_step step;
    struct turns turns; /* rotations of the current step: rotation i turns rows i and i + 1, for `first` <= i < `end` */
    int64_t first, end;
};

/* Reduces the Hermitian matrix A in each lane to the real tridiagonal matrix Q^H A Q, which is written to q->d and q->e. Only the lower triangle
 * of A is read. If `vectors`, A is overwritten with Q. `im` is the number of vectors from a real part to its imaginary part, 0 for real matrices. */
GRD_INLINE void reduce_lanes(int64_t n, int64_t im, bool vectors, vector *a, struct ql *q)
{
    const int64_t leading = im != 0 ? 2 * n : n, count = im != 0 ? n - 1 : n - 2, beside = im != 0 ? GRD_LANES_SIDE / 2 : 0;
    struct element tau[GRD_LANES_SIDE];
    vector w[GRD_LANES_SIDE];
    for (int64_t k = 0; k < n; k++)
        q->e[k] = (vector){0};
    for (int64_t k = 0; k < count; k++) {
        const int64_t rest = n - k - 1;
        vector *v = a + k + 1 + k * leading, *b = a + (k + 1) * (leading + 1);
        const struct reflection h = reflection_of(rest, 1, im, v);
        q->e[k] = h.head;
        tau[k] = h.tau;
        put_element(im, (struct element){everywhere(1), {0}}, v);
        for (int64_t i = 0; i < rest; i++)
            put_element(beside, (struct element){{0}, {0}}, w + i);
        vector both[2] = {{0}, {0}};
        for (int64_t j = 0; j < rest; j++) { /* w = B v, where B is the Hermitian matrix at b */
            const vector *column = b + j * leading;
            const struct element vj = element_at(im, v + j);
            struct element total = element_at(beside, w + j);
            total.re = multiply_add(column[j], vj.re, total.re);
            total.im = im != 0 ? multiply_add(column[j], vj.im, total.im) : total.im;
            for (int64_t i = j + 1; i < rest; i++) {
                const struct element x = element_at(im, column + i);
                put_element(beside, add_product(im, x, vj, element_at(beside, w + i)), w + i);
                total = add_product(im, conjugated(im, x), element_at(im, v + i), total);
            }
            total = element_product(im, h.tau, total);
            put_element(beside, total, w + j);
            put_element(im != 0, add_product(im, conjugated(im, total), vj, element_at(im != 0, both)), both);
        }
        const struct element half = element_times(im, everywhere((T)-0.5), element_product(im, h.tau, element_at(im != 0, both)));
        for (int64_t i = 0; i < rest; i++)
            put_element(beside, add_product(im, half, element_at(im, v + i), element_at(beside, w + i)), w + i);
        for (int64_t j = 0; j < rest; j++) { /* subtracts v w^H + w v^H from the lower triangle of the matrix at b */
            vector *column = b + j * leading;
            const struct element wj = element_times(im, everywhere(-1), conjugated(im, element_at(beside, w + j))),
                                 vj = element_times(im, everywhere(-1), conjugated(im, element_at(im, v + j)));
            for (int64_t i = j; i < rest; i++)
                put_element(
                    im,
                    add_product(im, element_at(im, v + i), wj, add_product(im, element_at(beside, w + i), vj, element_at(im, column + i))),
                    column + i);
        }
    }
    for (int64_t k = 0; k < n; k++)
        q->d[k] = a[k * (leading + 1)];
    if (n > 1 && im == 0)
        q->e[n - 2] = a[n - 1 + (n - 2) * n];
    if (!vectors)
        return;
    if (n > 1)
        multiply_reflections(n - 1, n - 1, count, leading, im, tau, a + 1, a + leading + 1);
    for (int64_t i = 0; i < n; i++) {
        put_element(im, (struct element){everywhere(i == 0), {0}}, a + i);
        put_element(im, (struct element){everywhere(i == 0), {0}}, a + i * leading);
    }
}

static void reduce_real(int64_t n, bool vectors, vector *a, struct ql *q)
{
    reduce_lanes(n, 0, vectors, a, q);
}

static void reduce_complex(int64_t n, bool vectors, vector *a, struct ql *q)
{
    reduce_lanes(n, n, vectors, a, q);
}

/* Begins a QL step in each lane. The step works on the first block of rows, from row `least` on, in which the matrix of the lane is not diagonal
 * yet. Sets q->first and q->end to the first and the last row of all these blocks together, or to n and 0 if all matrices are diagonal. */
static void begin_step(int64_t n, int64_t least, struct ql *q)
{
    const vector one = everywhere(1);
    vector first = everywhere((T)n), last = first, e_first = one, d_first = one, d_second = one, d_last = one;
    q->first = n;
    q->end = 0;
    mask within = is_less(one, one);
    for (int64_t i = n - 2; i >= least; i--) {
        const vector size = magnitudes(q->e[i]),
                     bound = (magnitudes(q->d[i]) + magnitudes(q->d[i + 1])) * (epsilon / 2) + negligible_beside;
        const mask large = is_less(bound, size), begins = large & ~within;
        q->e[i] = choose_or_zero(large, q->e[i]);
        last = choose(begins, everywhere((T)(i + 1)), last);
        d_last = choose(begins, q->d[i + 1], d_last);
        first = choose(large, everywhere((T)i), first);
        e_first = choose(large, q->e[i], e_first);
        d_first = choose(large, q->d[i], d_first);
        d_second = choose(large, q->d[i + 1], d_second);
        within = large;
        if (is_any(large)) {
            q->first = i;
            q->end = q->end == 0 ? i + 1 : q->end;
        }
    }
    const vector half = (d_second - d_first) / (2 * e_first), size = square_roots(multiply_add(half, half, one));
    const vector g = d_last - d_first + e_first / (half + with_sign(size, half));
    q->step = (struct ql_step){first, last, one, one, g, (vector){0}};
}

/* Carries out rotation i of a QL step, on rows and columns i and i + 1 of the tridiagonal matrix in each lane. Does nothing in lanes in which these
 * rows are not in the block [t->first, t->last] that the step works on. *t is a copy of q->step and is updated. Stores the rotation in q->turns if
 * eigenvectors are computed. */
GRD_INLINE void turn_at(int64_t i, struct ql_step *t, struct ql *q)
{
    const vector at = everywhere((T)i), next = everywhere((T)(i + 1));
    const mask within = is_less(at, t->last) & ~is_less(at, t->first);
    if (!is_any(within)) {
        keep_none(i, &q->turns);
        return;
    }
    const mask follows = is_less(next, t->last) & within, ends = is_equal(at, t->first) & within;
    const vector f = t->s * q->e[i], b = t->c * q->e[i];
    const struct turn turn = turn_of(t->g, f);
    const vector g = q->d[i + 1] - t->p, r = multiply_add(q->d[i] - g, turn.s, 2 * turn.c * b), p = turn.s * r;
    q->e[i + 1] = choose(follows, turn.size, q->e[i + 1]);
    q->d[i + 1] = choose(within, g + p, q->d[i + 1]);
    t->c = choose(within, turn.c, t->c);
    t->s = choose(within, turn.s, t->s);
    t->p = choose(within, p, t->p);
    t->g = choose(within, multiply_subtract(turn.c, r, b), t->g);
    q->d[i] = choose(ends, q->d[i] - t->p, q->d[i]);
    q->e[i] = choose(ends, t->g, q->e[i]);
    if (q->v != NULL)
        keep_turn(within, turn, i, &q->turns);
}

/* Carries out one QL step on rows `least` to `end` of tridiagonal matrices. There are `groups` groups q[g] of matrices, with one matrix of a group in
 * each lane. The rotations of two groups alternate, so that one rotation is computed while the other waits for a division or a square root. `rows` is
 * the number of vectors in a column of q->v. */
GRD_INLINE void take_steps(int64_t rows, int64_t groups, int64_t least, int64_t end, struct ql *q)
{
    struct ql_step steps[GROUPS]; /* copies that the compiler can hold in registers */
    UNROLLED for (int64_t g = 0; g < groups; g++) steps[g] = q[g].step;
    for (int64_t i = end - 1; i >= least; i--)
        UNROLLED for (int64_t g = 0; g < groups; g++) turn_at(i, &steps[g], q + g);
    for (int64_t g = 0; g < groups && q->v != NULL; g++)
        turn_columns(rows, q[g].first, q[g].end, true, &q[g].turns, q[g].v);
}

/* Carries out QL steps on n x n tridiagonal matrices until all are diagonal, but at most QL_STEPS * n steps. There are `groups` groups q[g] of
 * matrices, with one matrix of a group in each lane. `rows` is the number of vectors in a column of q->v. */
static void diagonalize(int64_t n, int64_t rows, int64_t groups, struct ql *q)
{
    int64_t least = 0;
    for (int64_t step = 0; step < QL_STEPS * n && least < n; step++) {
        int64_t first = n, end = 0;
        for (int64_t g = 0; g < groups; g++) {
            begin_step(n, least, q + g);
            first = grd_least(first, q[g].first);
            end = q[g].end > end ? q[g].end : end;
        }
        least = first;
        if (groups == GROUPS)
            take_steps(rows, GROUPS, least, end, q);
        else
            take_steps(rows, 1, least, end, q);
    }
}

/* Writes the eigenvalues of `count` matrices in ascending order, beginning with matrix `index`, and the eigenvectors in the same order if they were
 * computed. For a matrix with an element that is not finite, writes what write_nonfinite_eigen() writes. */
static void write_eigh(const struct grd_eigh *e, int64_t index, int64_t count, const struct ql *q, const struct scales *scales)
{
    const int64_t n = e->n, rows = n * e->parts;
    T places[GRD_LANES_SIDE][LANES], finite[LANES], *to[LANES];
    const vector is_finite = choose_or_zero(scales->finite, everywhere(1));
    memcpy(finite, &is_finite, sizeof finite);
    find_places(n, false, q->d, places);
    for (int64_t j = 0; j < n; j++) {
        const vector value = q->d[j] * scales->scale + 0;
        for (int64_t l = 0; l < count; l++)
            ((T *)e->ret_w)[(index + l) * n + (int64_t)places[j][l]] = ((const T *)&value)[l];
    }
    for (int64_t j = 0; q->v != NULL && j < n; j++) {
        for (int64_t l = 0; l < count; l++)
            to[l] = (T *)e->ret_v + ((index + l) * n + (int64_t)places[j][l]) * rows;
        multiply_column(rows, sign_of(rows, q->v + j * rows), q->v + j * rows);
        scatter_column(n, e->parts, count, q->v + j * rows, to);
    }
    for (int64_t l = 0; l < count; l++) {
        e->ret_info[index + l] = 0;
        if (finite[l] == 0)
            write_nonfinite_eigen(n, e->parts, (const T *)e->a + (index + l) * n * rows, (T *)e->ret_w + (index + l) * n,
                                  q->v != NULL ? (T *)e->ret_v + (index + l) * n * rows : NULL, e->ret_info + index + l);
    }
}

static void eigh_lanes(const struct grd_eigh *e, int64_t count, void *work)
{
    const int64_t n = e->n, rows = n * e->parts;
    int32_t places[GRD_LANES_SIDE * GRD_LANES_SIDE];
    const int32_t *place = find_parts(n, n, e->parts, e->by_rows, places);
    struct ql q[GROUPS];
    struct scales scales[GROUPS];
    for (int64_t first = 0; first < count; first += MATRICES) {
        const int64_t groups = grd_least((count - first + LANES - 1) / LANES, GROUPS);
        for (int64_t g = 0; g < groups; g++) {
            vector *a = (vector *)work + g * n * rows;
            read_lanes(n * rows, grd_least(count - first - g * LANES, LANES), place, (const T *)e->a + (first + g * LANES) * n * rows, a);
            scales[g] = scale_lanes(n, n, e->parts, true, a);
            (e->parts == 1 ? reduce_real : reduce_complex)(n, e->ret_v != NULL, a, q + g);
            q[g].v = e->ret_v != NULL ? a : NULL;
        }
        diagonalize(n, rows, groups, q);
        for (int64_t g = 0; g < groups; g++)
            write_eigh(e, first + g * LANES, grd_least(count - first - g * LANES, LANES), q + g, scales + g);
    }
}
