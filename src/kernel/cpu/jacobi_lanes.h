/* jacobi.c for many small real matrices at once: element (i, j) of all of them is one vector. For jacobi.c alone.
 * Invariant: a matrix with nothing left to rotate is rotated by zero, which changes no bit; so it does not depend on those beside it. */

enum { LANES = 64 / sizeof(T) };
typedef T lanes[LANES];

/* The rotation of a pair in each lane. */
struct turn {
    lanes c, s, t;
};

/* Finds the rotations, and turns the elements a and b on the diagonal. False: no lane has anything to rotate. `needed` is 0 where a lane has not. */
INLINE bool turn_of(T *a, T *b, const T *both, const T *needed, struct turn *ret_turn)
{
    T any = 0;
    LANEWISE for (int l = 0; l < LANES; l++) any = needed[l] > any ? needed[l] : any;
    if (any == 0)
        return false;
    LANEWISE for (int l = 0; l < LANES; l++)
    {
        const T gap = b[l] - a[l], twice = 2 * both[l], size = fabs(gap) + sqrt(gap * gap + twice * twice);
        const T t = (gap < 0 ? -twice : twice) / (size > 0 ? size : 1);
        ret_turn->t[l] = needed[l] != 0 ? t : 0;
        ret_turn->c[l] = 1 / sqrt(1 + ret_turn->t[l] * ret_turn->t[l]);
        ret_turn->s[l] = ret_turn->t[l] * ret_turn->c[l];
        a[l] -= ret_turn->t[l] * both[l];
        b[l] += ret_turn->t[l] * both[l];
    }
    return true;
}

INLINE void rotate_lanes(const struct turn *turn, T *restrict x, T *restrict y)
{
    LANEWISE for (int l = 0; l < LANES; l++)
    {
        const T u = x[l], v = y[l];
        x[l] = turn->c[l] * u - turn->s[l] * v;
        y[l] = turn->s[l] * u + turn->c[l] * v;
    }
}

static void set_identity_lanes(int64_t n, lanes *v)
{
    for (int64_t i = 0; i < n * n; i++)
        LANEWISE for (int l = 0; l < LANES; l++) v[i][l] = i % (n + 1) == 0;
}

/* One element of all lanes of a part, one after the other for the matrix in lane l. */
static void take_lane(int64_t n, const lanes *from, int l, T *ret_elements)
{
    for (int64_t i = 0; i < n; i++)
        ret_elements[i] = from[i][l];
}

/* ---- Symmetric matrices ------------------------------------------------------------------------------------------------------------------ */

/* sweep_hermitian of the lower triangles. */
static bool sweep_symmetric_lanes(int64_t n, lanes *a, lanes *v)
{
    bool rotated = false;
    for (int64_t p = 0; p < n; p++)
        for (int64_t q = p + 1; q < n; q++) {
            T *xx = a[p + p * n], *yy = a[q + q * n], *both = a[q + p * n];
            lanes needed;
            struct turn turn;
            LANEWISE for (int l = 0; l < LANES; l++) needed[l] = fabs(both[l]) > negligible;
            if (!turn_of(xx, yy, both, needed, &turn))
                continue;
            rotated = true;
            LANEWISE for (int l = 0; l < LANES; l++) both[l] = needed[l] != 0 ? 0 : both[l];
            for (int64_t i = 0; i < p; i++)
                rotate_lanes(&turn, a[p + i * n], a[q + i * n]);
            for (int64_t i = p + 1; i < q; i++)
                rotate_lanes(&turn, a[i + p * n], a[q + i * n]);
            for (int64_t i = q + 1; i < n; i++)
                rotate_lanes(&turn, a[i + p * n], a[i + q * n]);
            for (int64_t i = 0; v != NULL && i < n; i++)
                rotate_lanes(&turn, v[i + p * n], v[i + q * n]);
        }
    return rotated;
}

static void eigh_lanes(const struct grd_eigh *e, int64_t count, void *work)
{
    const int64_t n = e->n, size = n * n;
    lanes *a = work, *v = e->ret_v != NULL ? a + size : NULL;
    for (int64_t first = 0; first < count; first += LANES) {
        const int some = (int)at_most(count - first, LANES);
        T scale[LANES], largest[LANES];
        for (int l = 0; l < LANES; l++) { /* lanes without a matrix compute the last one again */
            const T *from = (const T *)e->a + (first + at_most(l, some - 1)) * size;
            largest[l] = largest_of(n, n, true, from);
            scale[l] = scale_of(largest[l]);
            const T factor = isfinite(largest[l]) ? 1 / scale[l] : 0;
            for (int64_t j = 0; j < n; j++)
                for (int64_t i = j; i < n; i++)
                    a[i + j * n][l] = factor != 0 ? from[i + j * n] * factor : 0;
        }
        if (v != NULL)
            set_identity_lanes(n, v);
        for (int sweep = 0; sweep < SWEEPS && sweep_symmetric_lanes(n, a, v); sweep++) {
        }
        for (int l = 0; l < some; l++) {
            T values[GRD_LANES_SIDE], vectors[GRD_LANES_SIDE * GRD_LANES_SIDE];
            T *ret_w = (T *)e->ret_w + (first + l) * n, *ret_v = v != NULL ? (T *)e->ret_v + (first + l) * size : NULL;
            e->ret_info[first + l] = 0;
            for (int64_t i = 0; i < n; i++)
                values[i] = a[i + i * n][l] * scale[l];
            if (v != NULL)
                take_lane(size, v, l, vectors);
            if (isfinite(largest[l]))
                write_eigen(n, values, vectors, ret_w, ret_v);
            else
                write_no_eigen(n, ret_w, ret_v, e->ret_info + first + l);
        }
    }
}

/* ---- Singular values --------------------------------------------------------------------------------------------------------------------- */

static void product_lanes(int64_t m, const lanes *x, const lanes *y, T *restrict ret_product)
{
    lanes total = {0};
    for (int64_t i = 0; i < m; i++)
        LANEWISE for (int l = 0; l < LANES; l++) total[l] += x[i][l] * y[i][l];
    memcpy(ret_product, total, sizeof total);
}

/* sweep_columns of m x k matrices. */
static bool sweep_columns_lanes(int64_t m, int64_t k, lanes *a, lanes *v, lanes *squares)
{
    const T tolerance = epsilon * sqrt((T)1 + (T)m / 8);
    bool rotated = false;
    for (int64_t j = 0; j < k; j++)
        product_lanes(m, a + j * m, a + j * m, squares[j]);
    for (int64_t p = 0; p < k; p++)
        for (int64_t q = p + 1; q < k; q++) {
            T *xx = squares[p], *yy = squares[q];
            lanes both, needed;
            struct turn turn;
            product_lanes(m, a + p * m, a + q * m, both);
            LANEWISE for (int l = 0; l < LANES; l++) needed[l] =
                fabs(both[l]) > tolerance * sqrt(xx[l]) * sqrt(yy[l]) && xx[l] > no_square && yy[l] > no_square;
            if (!turn_of(xx, yy, both, needed, &turn))
                continue;
            rotated = true;
            for (int64_t i = 0; i < m; i++)
                rotate_lanes(&turn, a[i + p * m], a[i + q * m]);
            for (int64_t i = 0; v != NULL && i < k; i++)
                rotate_lanes(&turn, v[i + p * k], v[i + q * k]);
        }
    return rotated;
}

/* `work` begins with the lanes; the parts of one matrix follow. */
static void svd_lanes(const struct grd_svd *s, int64_t count, void *work)
{
    const int64_t m = s->m > s->n ? s->m : s->n, k = s->m > s->n ? s->n : s->m;
    const bool turned = s->m < s->n, vectors = s->ret_u != NULL;
    lanes *a = work, *v = vectors ? a + m * k : NULL, *squares = a + m * k + k * k;
    const struct parts x = parts_of(s, squares[k]);
    for (int64_t first = 0; first < count; first += LANES) {
        const int some = (int)at_most(count - first, LANES);
        T scale[LANES], largest[LANES];
        for (int l = 0; l < LANES; l++) {
            const T *from = (const T *)s->a + (first + at_most(l, some - 1)) * m * k;
            largest[l] = largest_of(s->m, s->n, false, from);
            scale[l] = scale_of(largest[l]);
            const T factor = 1 / scale[l];
            for (int64_t j = 0; j < s->n; j++)
                for (int64_t i = 0; i < s->m; i++)
                    a[turned ? j + i * m : i + j * m][l] = isfinite(largest[l]) ? from[i + j * s->m] * factor : 0;
        }
        if (vectors)
            set_identity_lanes(k, v);
        for (int sweep = 0; sweep < SWEEPS && sweep_columns_lanes(m, k, a, v, squares); sweep++) {
        }
        for (int l = 0; l < some; l++) {
            if (!begin_svd(s, first + l, largest[l]))
                continue;
            take_lane(m * k, a, l, x.a);
            if (vectors)
                take_lane(k * k, v, l, x.v);
            write_singular(s, first + l, &x, scale[l]);
        }
    }
}
