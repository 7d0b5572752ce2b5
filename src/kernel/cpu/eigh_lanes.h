/* Eigenvalues of many small symmetric matrices at once, in lanes (spectral_lanes.h): Householder's reflections to a tridiagonal matrix, and implicit QL steps with
 * Wilkinson's shifts, each lane on its own block. G. Golub and C. Van Loan, Matrix Computations, chapter 8. For jacobi.c alone. */
#include "kernel/cpu/spectral_lanes.h"

enum { QL_STEPS = 30 /* for an eigenvalue, as LAPACK allows; about 1.7 are needed */ };

/* A step that is under way on rows and columns [first, last] of a lane. */
struct ql_step {
    vector first, last, c, s, g, p;
};

/* A vector of tridiagonal matrices: the diagonal, what is below it, and Q. */
struct ql {
    vector d[GRD_LANES_SIDE], e[GRD_LANES_SIDE], *v; /* NULL: the values alone */
    struct ql_step step;
};

/* Reduces matrices, whose lower triangle is read, to tridiagonal ones; Q^T A Q is that, with Q in the place of A if `vectors`. */
static void reduce_lanes(int64_t n, bool vectors, vector *a, struct ql *q)
{
    vector tau[GRD_LANES_SIDE], w[GRD_LANES_SIDE];
    for (int64_t k = 0; k < n; k++)
        q->e[k] = (vector){0};
    for (int64_t k = 0; k + 2 < n; k++) {
        const int64_t rest = n - k - 1;
        vector *v = a + k + 1 + k * n, *b = a + (k + 1) * (n + 1);
        const struct reflection h = reflection_of(rest, 1, v);
        q->e[k] = h.head;
        tau[k] = h.tau;
        v[0] = everywhere(1);
        for (int64_t i = 0; i < rest; i++)
            w[i] = (vector){0};
        vector both = {0};
        for (int64_t j = 0; j < rest; j++) { /* w = B v */
            const vector *column = b + j * n;
            vector total = multiply_add(column[j], v[j], w[j]);
            for (int64_t i = j + 1; i < rest; i++) {
                w[i] = multiply_add(column[i], v[j], w[i]);
                total = multiply_add(column[i], v[i], total);
            }
            w[j] = total * h.tau;
            both = multiply_add(w[j], v[j], both);
        }
        const vector half = (T)-0.5 * h.tau * both;
        for (int64_t i = 0; i < rest; i++)
            w[i] = multiply_add(half, v[i], w[i]);
        for (int64_t j = 0; j < rest; j++) { /* B -= v w^T + w v^T */
            vector *column = b + j * n;
            for (int64_t i = j; i < rest; i++)
                column[i] = multiply_add(-v[i], w[j], multiply_add(-w[i], v[j], column[i]));
        }
    }
    for (int64_t k = 0; k < n; k++)
        q->d[k] = a[k * (n + 1)];
    if (n > 1)
        q->e[n - 2] = a[n - 1 + (n - 2) * n];
    if (!vectors)
        return;
    if (n > 1)
        multiply_reflections(n - 1, n - 1, n - 2, n, tau, a + 1, a + n + 1);
    for (int64_t i = 0; i < n; i++)
        a[i] = a[i * n] = everywhere(i == 0);
}

/* Finds the first block of each lane that is not diagonal yet, from row `least` on, and begins a step on it. Returns the first row of any lane, or n. */
static int64_t begin_step(int64_t n, int64_t least, struct ql *q)
{
    const vector one = everywhere(1);
    vector first = everywhere((T)n), last = first, e_first = one, d_first = one, d_second = one, d_last = one;
    int64_t any = n;
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
        any = is_any(large) ? i : any;
    }
    const vector half = (d_second - d_first) / (2 * e_first), size = square_roots(multiply_add(half, half, one));
    const vector g = d_last - d_first + e_first / (half + with_sign(size, half));
    q->step = (struct ql_step){first, last, one, one, g, (vector){0}};
    return any;
}

/* Rotates rows and columns i and i + 1 in the lanes whose block they are in. */
INLINE void turn_at(int64_t n, int64_t i, struct ql_step *t, struct ql *q)
{
    const vector at = everywhere((T)i), next = everywhere((T)(i + 1)), zero = {0};
    const mask within = is_less(at, t->last) & ~is_less(at, t->first);
    if (!is_any(within))
        return;
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
        turn_columns(n, choose(within, turn.c, everywhere(1)), choose(within, turn.s, zero), q->v + (i + 1) * n, q->v + i * n);
}

/* Takes the steps of all groups, rotation by rotation. */
INLINE void take_steps(int64_t n, int64_t groups, int64_t least, struct ql *q)
{
    struct ql_step steps[GROUPS]; /* in registers */
    UNROLLED for (int64_t g = 0; g < groups; g++) steps[g] = q[g].step;
    for (int64_t i = n - 2; i >= least; i--)
        UNROLLED for (int64_t g = 0; g < groups; g++) turn_at(n, i, &steps[g], q + g);
}

static void diagonalize(int64_t n, int64_t groups, struct ql *q)
{
    int64_t least = 0;
    for (int64_t step = 0; step < QL_STEPS * n && least < n; step++) {
        int64_t first = n;
        for (int64_t g = 0; g < groups; g++)
            first = at_most(first, begin_step(n, least, q + g));
        least = first;
        if (groups == GROUPS)
            take_steps(n, GROUPS, least, q);
        else
            take_steps(n, 1, least, q);
    }
}

static void write_eigh(const struct grd_eigh *e, int64_t index, int64_t count, const struct ql *q, const struct scales *scales)
{
    const int64_t n = e->n;
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
            to[l] = (T *)e->ret_v + ((index + l) * n + (int64_t)places[j][l]) * n;
        multiply_column(n, sign_of(n, q->v + j * n), q->v + j * n);
        scatter_column(n, count, q->v + j * n, to);
    }
    for (int64_t l = 0; l < count; l++) {
        e->ret_info[index + l] = 0;
        if (finite[l] == 0)
            write_no_eigen(n, (T *)e->ret_w + (index + l) * n, q->v != NULL ? (T *)e->ret_v + (index + l) * n * n : NULL,
                           e->ret_info + index + l);
    }
}

static void eigh_lanes(const struct grd_eigh *e, int64_t count, void *work)
{
    const int64_t n = e->n;
    struct ql q[GROUPS];
    struct scales scales[GROUPS];
    for (int64_t first = 0; first < count; first += MATRICES) {
        const int64_t groups = at_most((count - first + LANES - 1) / LANES, GROUPS);
        for (int64_t g = 0; g < groups; g++) {
            vector *a = (vector *)work + g * n * n;
            read_lanes(n * n, at_most(count - first - g * LANES, LANES), NULL, (const T *)e->a + (first + g * LANES) * n * n, a);
            scales[g] = scale_lanes(n, n, true, a);
            reduce_lanes(n, e->ret_v != NULL, a, q + g);
            q[g].v = e->ret_v != NULL ? a : NULL;
        }
        diagonalize(n, groups, q);
        for (int64_t g = 0; g < groups; g++)
            write_eigh(e, first + g * LANES, at_most(count - first - g * LANES, LANES), q + g, scales + g);
    }
}
