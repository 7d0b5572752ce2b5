/* Computes singular values and vectors of many small matrices at once, one matrix in each lane of a vector (see spectral_lanes.h). Included by
 * jacobi.c only. Householder reflections reduce each matrix to a real bidiagonal one. Implicit QR steps with shifts then make it diagonal; in such a
 * step, each lane works on a block of its own matrix that is not diagonal yet. See G. Golub and C. Van Loan, Matrix Computations, chapter 8. For
 * singular blocks the shift is 0, as in J. Demmel and W. Kahan, Accurate singular values of bidiagonal matrices. */
#include "kernel/cpu/spectral_lanes.h"

enum { QR_STEPS = 30 /* most QR steps per singular value; about 2 are needed */ };

/* The state of a QR step on rows and columns [first, last] of the bidiagonal matrix in each lane. The next rotation is computed from f and g. */
struct qr_step {
    vector first, last, f, g;
};

/* An upper bidiagonal matrix in each lane, with the diagonal d and the elements e above the diagonal. The columns of the matrices u and v become the
 * singular vectors. */
struct qr {
    vector d[GRD_LANES_SIDE], e[GRD_LANES_SIDE], *u, *v; /* u and v are NULL if only singular values are wanted */
    struct qr_step step;
    struct turns left, right; /* the rotations of the current step; rotations [first, end) are those that some lane needs */
    int64_t first, end;
};

/* Reduces the m x k matrix A with m >= k in each lane to the real bidiagonal matrix U^H A V, which is written to q->d and q->e. Unless q->v is NULL,
 * overwrites A with `columns` columns of U and writes V to q->v. `im` is the number of vectors from a real part to its imaginary part, 0 for real
 * matrices. */
GRD_INLINE void bidiagonalize(int64_t m, int64_t k, int64_t im, int64_t columns, vector *a, struct qr *q)
{
    const int64_t parts = im != 0 ? 2 : 1, leading = m * parts, leading_v = k * parts, im_v = im != 0 ? k : 0,
                  beside = im != 0 ? GRD_LANES_SIDE / 2 : 0, count = im != 0 ? k - 1 : k - 2;
    struct element left[GRD_LANES_SIDE], right[GRD_LANES_SIDE];
    vector w[GRD_LANES_SIDE];
    for (int64_t j = 0; j < k; j++) {
        vector *x = a + j + j * leading;
        const struct reflection h = reflection_of(m - j, 1, im, x);
        q->d[j] = h.head;
        left[j] = h.tau;
        for (int64_t c = j + 1; c < k; c++)
            reflect_column(m - j, im, false, conjugated(im, h.tau), x, x + (c - j) * leading);
        if (j + 1 >= k)
            break;
        vector *row = x + leading;
        for (int64_t c = 0; c < k - j - 1; c++)
            put_element(im, conjugated(im, element_at(im, row + c * leading)), row + c * leading);
        const struct reflection g = reflection_of(k - j - 1, leading, im, row);
        q->e[j] = g.head;
        right[j] = g.tau;
        if (j >= count)
            continue;
        for (int64_t i = 1; i < m - j; i++)
            put_element(beside, element_at(im, row + i), w + i);
        for (int64_t c = 1; c < k - j - 1; c++)
            for (int64_t i = 1; i < m - j; i++)
                put_element(
                    beside,
                    add_product(im, element_at(im, row + i + c * leading), element_at(im, row + c * leading), element_at(beside, w + i)),
                    w + i);
        const struct element factor = element_times(im, everywhere(-1), g.tau);
        for (int64_t i = 1; i < m - j; i++) {
            const struct element x_i = element_at(im, row + i), w_i = element_product(im, factor, element_at(beside, w + i));
            put_element(beside, w_i, w + i);
            put_element(im, (struct element){x_i.re + w_i.re, im != 0 ? x_i.im + w_i.im : x_i.im}, row + i);
        }
        for (int64_t c = 1; c < k - j - 1; c++) {
            const struct element v = conjugated(im, element_at(im, row + c * leading));
            for (int64_t i = 1; i < m - j; i++)
                put_element(im, add_product(im, element_at(beside, w + i), v, element_at(im, row + i + c * leading)),
                            row + i + c * leading);
        }
    }
    if (k > 0)
        q->e[k - 1] = (vector){0};
    if (q->v == NULL)
        return;
    for (int64_t j = 0; j + 2 < k; j++) /* copies the vectors of the reflections from rows of A to columns of V */
        for (int64_t i = j + 2; i < k; i++)
            put_element(im_v, element_at(im, a + j + i * leading), q->v + i + j * leading_v);
    if (k > 1)
        multiply_reflections(k - 1, k - 1, count, leading_v, im_v, right, q->v + 1, q->v + leading_v + 1);
    for (int64_t i = 0; i < k; i++) {
        put_element(im_v, (struct element){everywhere(i == 0), {0}}, q->v + i);
        put_element(im_v, (struct element){everywhere(i == 0), {0}}, q->v + i * leading_v);
    }
    multiply_reflections(m, columns, k, leading, im, left, a, a);
}

static void bidiagonalize_real(int64_t m, int64_t k, int64_t columns, vector *a, struct qr *q)
{
    bidiagonalize(m, k, 0, columns, a, q);
}

static void bidiagonalize_complex(int64_t m, int64_t k, int64_t columns, vector *a, struct qr *q)
{
    bidiagonalize(m, k, m, columns, a, q);
}

/* Returns (f^2 - l) / f, from which the first rotation of a QR step is computed. f is the first diagonal element of the block B. l is an eigenvalue
 * of the last 2 x 2 block of B^T B: the one that is nearer to the last element of B^T B. The last three rows of the last two columns of B are [x, 0;
 * p, y; 0, q].
 * Differences of squares are computed as products (a - b)(a + b), because subtracting the squares would lose the digits that separate close singular
 * values. */
GRD_INLINE vector shifted(vector f, vector x, vector p, vector y, vector q)
{
    const vector beside = p * y, ratio = ((p - q) * (p + q) + (x - y) * (x + y)) / (2 * beside);
    const vector tangent = 1 / (ratio + with_sign(square_roots(multiply_add(ratio, ratio, everywhere(1))), ratio));
    return ((f - q) * (f + q) + y * (choose_or_zero(is_less((vector){0}, magnitudes(beside)), p * tangent) - y)) / f;
}

/* Begins a QR step in each lane. Sets negligible elements above the diagonal to 0, which splits rows 0 to `most` of the matrix into blocks. The step
 * works on the last block of more than one row. Sets q->step, and sets q->first and q->end so that the blocks of all lanes lie in rows q->first to
 * q->end. */
static void begin_qr_step(int64_t most, struct qr *q)
{
    const vector one = everywhere(1), zero = {0};
    vector first = zero, last = zero, d_first = one, e_first = zero, e_before = zero, d_before = zero, e_last = zero, d_last = zero;
    mask within = is_less(one, one), singular = within;
    q->first = most;
    q->end = 0;
    for (int64_t i = 0; i < most; i++) {
        const vector size = magnitudes(q->e[i]), diagonal = magnitudes(q->d[i]),
                     bound = (diagonal + magnitudes(q->d[i + 1])) * (epsilon / 2) + negligible_beside;
        const mask large = is_less(bound, size), begins = large & ~within;
        q->e[i] = choose_or_zero(large, q->e[i]);
        first = choose(begins, everywhere((T)i), first);
        d_first = choose(begins, q->d[i], d_first);
        e_first = choose(begins, q->e[i], e_first);
        last = choose(large, everywhere((T)(i + 1)), last);
        e_before = choose(large, choose_or_zero(within, e_last), e_before);
        d_before = choose(large, q->d[i], d_before);
        e_last = choose(large, q->e[i], e_last);
        d_last = choose(large, q->d[i + 1], d_last);
        singular = (singular & ~begins) | (large & is_less(diagonal, everywhere(negligible_beside)));
        within = large;
        if (is_any(large)) {
            q->first = grd_least(q->first, i);
            q->end = i + 1;
        }
    }
    q->step = (struct qr_step){first, last, choose(singular, d_first, shifted(d_first, e_before, d_before, e_last, d_last)), e_first};
}

/* Carries out rotation i of a QR step, from the right and from the left, on rows and columns i and i + 1 of the bidiagonal matrix in each lane, and
 * updates *t. A lane is left unchanged if these rows are outside of its block [t->first, t->last]. Stores the rotations in *q if singular vectors are
 * computed. */
GRD_INLINE void turn_both_at(int64_t i, struct qr_step *t, struct qr *q)
{
    const vector at = everywhere((T)i), next = everywhere((T)(i + 1));
    const mask within = is_less(at, t->last) & ~is_less(at, t->first);
    if (!is_any(within)) {
        keep_none(i, &q->right);
        keep_none(i, &q->left);
        return;
    }
    const mask follows = is_less(t->first, at) & within, goes_on = is_less(next, t->last) & within;
    const struct turn right = turn_of(t->f, t->g);
    if (i > 0)
        q->e[i - 1] = choose(follows, right.size, q->e[i - 1]);
    const vector d = q->d[i], e = q->e[i], below = q->d[i + 1], e_left = multiply_subtract(right.c, e, right.s * d),
                 d_right = right.c * below;
    const struct turn left = turn_of(multiply_add(right.c, d, right.s * e), right.s * below);
    const vector f = multiply_add(left.c, e_left, left.s * d_right);
    q->d[i] = choose(within, left.size, d);
    q->d[i + 1] = choose(within, multiply_subtract(left.c, d_right, left.s * e_left), below);
    q->e[i] = choose(within, f, e);
    t->f = choose(within, f, t->f);
    t->g = choose(within, left.s * q->e[i + 1], t->g);
    q->e[i + 1] = choose(goes_on, left.c * q->e[i + 1], q->e[i + 1]);
    if (q->v == NULL)
        return;
    keep_turn(within, right, i, &q->right);
    keep_turn(within, left, i, &q->left);
}

/* Carries out one QR step on rows `first` to `most` of bidiagonal matrices. q holds `groups` groups of matrices, and a group has one matrix per lane.
 * The rotations of two groups alternate, so that one rotation is computed while the other waits for a division or a square root. `rows` and rows_v
 * are the numbers of vectors in a column of u and of v. */
GRD_INLINE void take_qr_steps(int64_t rows, int64_t rows_v, int64_t groups, int64_t first, int64_t most, struct qr *q)
{
    struct qr_step steps[GROUPS]; /* copies that the compiler can hold in registers */
    UNROLLED for (int64_t g = 0; g < groups; g++) steps[g] = q[g].step;
    for (int64_t i = first; i < most; i++)
        UNROLLED for (int64_t g = 0; g < groups; g++) turn_both_at(i, &steps[g], q + g);
    for (int64_t g = 0; g < groups && q->v != NULL; g++) {
        turn_columns(rows_v, q[g].first, q[g].end, false, &q[g].right, q[g].v);
        turn_columns(rows, q[g].first, q[g].end, false, &q[g].left, q[g].u);
    }
}

/* Carries out QR steps on bidiagonal matrices with k columns until all are diagonal, but at most QR_STEPS * k steps. q holds `groups` groups of
 * matrices, and a group has one matrix per lane. `rows` and rows_v are the numbers of vectors in a column of u and of v. */
static void make_diagonal(int64_t rows, int64_t rows_v, int64_t k, int64_t groups, struct qr *q)
{
    int64_t most = k - 1;
    for (int64_t step = 0; step < QR_STEPS * k && most > 0; step++) {
        int64_t first = most, end = 0;
        for (int64_t g = 0; g < groups; g++) {
            begin_qr_step(most, q + g);
            first = grd_least(first, q[g].first);
            end = q[g].end > end ? q[g].end : end;
        }
        most = end;
        if (groups == GROUPS)
            take_qr_steps(rows, rows_v, GROUPS, first, most, q);
        else
            take_qr_steps(rows, rows_v, 1, first, most, q);
    }
}

/* Writes a singular vector of n elements from each of `count` lanes to the results. The vector in lane l becomes column number places[l] of result l,
 * or row number places[l] if as_row. `leading` is the number of such columns or rows of a result. */
static void write_vectors(int64_t n, int64_t parts, int64_t leading, bool as_row, int64_t count, const vector *from, const T *places,
                          T *ret_result)
{
    T *to[LANES];
    for (int64_t l = 0; l < count; l++)
        to[l] = ret_result + (l * n * leading + (int64_t)places[l] * (as_row ? 1 : n)) * parts;
    if (!as_row) {
        scatter_column(n, parts, count, from, to);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        for (int64_t part = 0; part < parts; part++)
            for (int64_t l = 0; l < count; l++)
                to[l][i * leading * parts + part] = ((const T *)(from + i + part * n))[l] + 0;
}

/* Returns the number of absolute value 1 by which a complex singular vector x must be multiplied so that the phase of x does not depend on rounding.
 * For real vectors this is sign_of(). */
GRD_INLINE struct element phase_of(int64_t n, int64_t im, const vector *x)
{
    if (im == 0)
        return (struct element){sign_of(n, x), {0}};
    struct element value = {{0}, {0}};
    for (int64_t i = n - 1; i >= 0; i--)
        value = (struct element){multiply_add(value.re, everywhere((T)0.7), x[i]), multiply_add(value.im, everywhere((T)0.7), x[i + im])};
    const vector size = square_roots(multiply_add(value.re, value.re, value.im * value.im));
    const mask known = is_less((vector){0}, size);
    return (struct element){choose(known, value.re / size, everywhere(1)), choose_or_zero(known, -value.im / size)};
}

/* Multiplies a column by a phase. A complex phase has an absolute value of 1 only up to rounding, so one Newton step then brings the column's norm
 * back to 1. */
static NOT_INLINE void turn_column(int64_t n, int64_t im, struct element phase, vector *x)
{
    if (im == 0) {
        multiply_column(n, phase.re, x);
        return;
    }
    vector excess = everywhere(-1);
    for (int64_t i = 0; i < n; i++) {
        const struct element turned = element_product(im, phase, element_at(im, x + i));
        put_element(im, turned, x + i);
        excess = multiply_add(turned.re, turned.re, multiply_add(turned.im, turned.im, excess));
    }
    const vector factor = everywhere((T)-0.5) * excess;
    for (int64_t i = 0; i < 2 * n; i++)
        x[i] = multiply_add(factor, x[i], x[i]);
}

/* Writes the results of the matrices [index, index + count): the singular values in descending order and, if they were computed, the singular vectors
 * in the same order. A matrix with more columns than rows was decomposed as its transpose, so u and v change roles. */
static void write_svd(const struct grd_svd *s, int64_t index, int64_t count, int64_t columns, struct qr *q, const struct scales *scales)
{
    const int64_t m = s->m > s->n ? s->m : s->n, k = s->m > s->n ? s->n : s->m, parts = s->parts;
    const bool turned = s->m < s->n;
    T places[GRD_LANES_SIDE][LANES], finite[LANES];
    const vector is_finite = choose_or_zero(scales->finite, everywhere(1));
    memcpy(finite, &is_finite, sizeof finite);
    for (int64_t j = 0; j < k; j++) {
        const vector d = q->d[j];
        q->d[j] = magnitudes(d) * scales->scale + 0;
        if (q->v == NULL)
            continue;
        vector *u = q->u + j * m * parts, *v = q->v + j * k * parts;
        const struct element phase = phase_of(m, parts > 1 ? m : 0, u);
        turn_column(m, parts > 1 ? m : 0, phase, u);
        turn_column(k, parts > 1 ? k : 0, element_times(parts > 1, with_sign(everywhere(1), d), phase), v);
        /* Conjugates column j of v, because the caller gets the conjugate. It becomes a row of V^H or, if the transpose of the caller's matrix was
         * decomposed, a column of U. */
        multiply_column(k * (parts - 1), everywhere(-1), v + k);
    }
    find_places(k, true, q->d, places);
    for (int64_t j = k; j < columns; j++)
        for (int64_t l = 0; l < LANES; l++)
            places[j][l] = (T)j;
    for (int64_t j = 0; j < k; j++)
        for (int64_t l = 0; l < count; l++)
            ((T *)s->ret_s)[(index + l) * k + (int64_t)places[j][l]] = ((const T *)(q->d + j))[l];
    if (q->v != NULL) {
        T *u = (T *)s->ret_u + index * s->m * s->columns * parts, *vh = (T *)s->ret_vh + index * s->rows * s->n * parts;
        for (int64_t j = 0; j < columns; j++)
            write_vectors(m, parts, columns, turned, count, q->u + j * m * parts, places[j], turned ? vh : u);
        for (int64_t j = 0; j < k; j++)
            write_vectors(k, parts, k, !turned, count, q->v + j * k * parts, places[j], turned ? u : vh);
    }
    for (int64_t l = 0; l < count; l++)
        begin_svd(s, index + l, finite[l] != 0 ? 0 : (T)INFINITY);
}

/* Computes the singular value decompositions of `count` small matrices, MATRICES at a time, and writes the results to the members ret_... of *s.
 * `work` is scratch memory of MATRICES * grd_svd_work() elements. */
static void svd_lanes(const struct grd_svd *s, int64_t count, void *work)
{
    const int64_t m = s->m > s->n ? s->m : s->n, k = s->m > s->n ? s->n : s->m, columns = s->m < s->n ? s->rows : s->columns;
    const bool turned = s->m < s->n, vectors = s->ret_u != NULL;
    const int64_t rows = m * s->parts, rows_v = k * s->parts, size = rows * (vectors && columns > k ? columns : k);
    int32_t places[GRD_LANES_SIDE * GRD_LANES_SIDE];
    /* a matrix with more columns than rows is decomposed as its transpose */
    const int32_t *place = find_parts(m, k, s->parts, turned != s->by_rows, places);
    struct qr q[GROUPS];
    struct scales scales[GROUPS];
    for (int64_t first = 0; first < count; first += MATRICES) {
        const int64_t groups = grd_least((count - first + LANES - 1) / LANES, GROUPS);
        for (int64_t g = 0; g < groups; g++) {
            vector *a = (vector *)work + g * (size + k * rows_v);
            read_lanes(rows * k, grd_least(count - first - g * LANES, LANES), place, (const T *)s->a + (first + g * LANES) * rows * k, a);
            scales[g] = scale_lanes(m, k, s->parts, false, a);
            q[g].u = vectors ? a : NULL;
            q[g].v = vectors ? a + size : NULL;
            (s->parts == 1 ? bidiagonalize_real : bidiagonalize_complex)(m, k, columns, a, q + g);
        }
        make_diagonal(rows, rows_v, k, groups, q);
        for (int64_t g = 0; g < groups; g++)
            write_svd(s, first + g * LANES, grd_least(count - first - g * LANES, LANES), columns, q + g, scales + g);
    }
}
