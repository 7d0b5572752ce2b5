/* Fuzzes views and computations on sizes and strides. Some inputs are extreme sizes and strides. The results computed from them are compared with
 * 128-bit arithmetic. The other inputs make views of views of a small storage. The elements of these views are compared with a list of their storage
 * positions. */
#include "core/iter.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "fuzz.h"

typedef __int128 wide;

static bool fits(wide x)
{
    return x >= INT64_MIN && x <= INT64_MAX;
}

/* ---- Extreme numbers -------------------------------------------------------------------------------------------------------------- */

enum { FEW = 6 };

struct extreme {
    int64_t n, sizes[GRD_MAX_DIMS + 2], strides[GRD_MAX_DIMS + 2];
    bool negative, empty;
};

static struct extreme take_geometry(struct bytes *b)
{
    struct extreme g = {.n = take_chance(b, 16) ? take_between(b, GRD_MAX_DIMS - 1, GRD_MAX_DIMS + 2) : take_below(b, FEW)};
    for (int64_t i = 0; i < g.n; i++) {
        g.sizes[i] = g.n > FEW && !take_chance(b, 8) ? 1 : take_chance(b, 2) ? take_between(b, 0, 5) : take_extreme(b);
        g.strides[i] = take_extreme(b);
        g.negative |= g.sizes[i] < 0;
        g.empty |= g.sizes[i] == 0;
    }
    return g;
}

/* Returns the product of sizes[first] to sizes[n - 1], or -1 if it does not fit into 64 bits. Sizes below 1 count as 1. */
static wide product_of(const int64_t *sizes, int64_t n, int64_t first)
{
    wide product = 1;
    for (int64_t i = first; i < n; i++) {
        product *= sizes[i] > 0 ? sizes[i] : 1;
        if (!fits(product))
            return -1;
    }
    return product;
}

static void check_numel(const struct extreme *g)
{
    int64_t numel = 77;
    bool valid = g->n <= GRD_MAX_DIMS && !g->negative && product_of(g->sizes, g->n, g->empty ? 1 : 0) >= 0;
    if (grd_shape_numel(grd_dims_from(g->sizes, g->n), &numel)) {
        fuzz_expect(valid && grd_ok(), "numel accepts what does not fit");
        fuzz_expect(numel == (g->empty ? 0 : (int64_t)product_of(g->sizes, g->n, 0)), "numel");
        return;
    }
    fuzz_expect(!valid && !grd_ok() && numel == 77, "numel refuses what fits");
    grd_error_clear();
}

/* Computes the lowest and the highest offset of an element. Returns false if one of them does not fit into 64 bits. */
static bool extent_of(const struct extreme *g, wide *ret_lowest, wide *ret_highest)
{
    *ret_lowest = *ret_highest = 0;
    for (int64_t i = 0; i < g->n && !g->empty; i++) {
        const wide span = (wide)(g->sizes[i] - 1) * g->strides[i];
        *(span < 0 ? ret_lowest : ret_highest) += span;
        if (!fits(*ret_lowest) || !fits(*ret_highest))
            return false;
    }
    return true;
}

static void check_extent(const struct extreme *g)
{
    wide lowest, highest;
    int64_t got_lowest, got_highest;
    if (g->n > GRD_MAX_DIMS || g->negative)
        return;
    const bool valid = extent_of(g, &lowest, &highest);
    fuzz_expect(grd_shape_extent(grd_dims_from(g->sizes, g->n), g->strides, &got_lowest, &got_highest) == valid, "extent fits");
    fuzz_expect(!valid || (got_lowest == lowest && got_highest == highest), "extent");
    fuzz_expect(grd_ok(), "extent raises nothing");
}

static void check_infer(struct bytes *b)
{
    struct extreme g = take_geometry(b);
    int64_t numel = take_below(b, 25), got[GRD_MAX_DIMS], unknown = 0;
    bool below = false;
    wide product = 1;
    g.empty = false;
    for (int64_t i = 0; i < g.n; i++) {
        if (take_chance(b, 6))
            g.sizes[i] = -1;
        unknown += g.sizes[i] == -1;
        below |= g.sizes[i] < -1;
        g.empty |= g.sizes[i] == 0;
    }
    for (int64_t i = 0; i < g.n && product >= 0; i++)
        if (g.sizes[i] != -1)
            product = fits(product * g.sizes[i]) ? product * g.sizes[i] : -1;
    if (g.empty)
        product = 0;
    bool valid = g.n <= GRD_MAX_DIMS && unknown < 2 && !below;
    if (valid)
        valid = unknown ? product > 0 && numel % (int64_t)product == 0 : product == numel;
    fuzz_expect(grd_shape_infer(grd_dims_from(g.sizes, g.n), numel, got) == valid, "infer accepts");
    fuzz_expect(grd_ok() == valid, "infer raises");
    grd_error_clear();
    for (int64_t i = 0; valid && i < g.n; i++)
        fuzz_expect(got[i] == (g.sizes[i] == -1 ? numel / (int64_t)product : g.sizes[i]), "inferred size");
}

static void check_dims(struct bytes *b)
{
    const int64_t ndim = take_between(b, 0, GRD_MAX_DIMS), wraps = ndim > 0 ? ndim : 1;
    int64_t dims[8], n = take_below(b, 5), wrapped = -7;
    uint64_t mask = 0, expected = 0;
    bool valid = true;
    for (int64_t i = 0; i < n; i++) {
        dims[i] = take_chance(b, 8) ? take_extreme(b) : take_between(b, (int64_t)-wraps, wraps - 1);
        const bool inside = dims[i] >= -wraps && dims[i] < wraps;
        fuzz_expect(grd_shape_wrap_dim(dims[i], ndim, &wrapped) == inside, "wrap accepts");
        grd_error_clear();
        const int64_t place = !inside ? 0 : dims[i] < 0 ? dims[i] + wraps : dims[i];
        fuzz_expect(!inside || wrapped == place, "wrapped");
        valid = valid && inside && !(expected >> place & 1);
        expected |= (uint64_t)1 << place;
    }
    if (n == 0)
        for (int64_t i = 0; i < ndim; i++)
            expected |= (uint64_t)1 << i;
    fuzz_expect(grd_shape_dim_mask(grd_dims_from(dims, n), ndim, &mask) == valid, "mask accepts");
    fuzz_expect(!valid || mask == expected, "mask");
    grd_error_clear();
}

static void check_broadcast(struct bytes *b)
{
    int64_t sizes[2][5], n[2], got[GRD_MAX_DIMS], ndim = -1;
    for (int k = 0; k < 2; k++) {
        n[k] = take_below(b, 6);
        for (int64_t i = 0; i < n[k]; i++)
            sizes[k][i] = take_chance(b, 12) ? INT64_MAX : take_between(b, 0, 3);
    }
    const int64_t longer = n[0] > n[1] ? n[0] : n[1];
    int64_t expected[5];
    bool valid = true;
    for (int64_t i = 1; i <= longer; i++) {
        const int64_t x = i <= n[0] ? sizes[0][n[0] - i] : 1, y = i <= n[1] ? sizes[1][n[1] - i] : 1;
        valid &= x == y || x == 1 || y == 1;
        expected[longer - i] = x == 1 ? y : x;
    }
    fuzz_expect(grd_shape_broadcast(grd_dims_from(sizes[0], n[0]), grd_dims_from(sizes[1], n[1]), got, &ndim) == valid,
                "broadcast accepts");
    grd_error_clear();
    fuzz_expect(!valid || (ndim == longer && memcmp(got, expected, (size_t)longer * sizeof *got) == 0), "broadcast");
}

/* Checks that as_strided and empty_strided raise an error exactly if their arguments are invalid. For example,
 * as_strided must refuse elements outside of the storage. The offsets are computed here with 128 bits. */
static void check_strided(struct bytes *b, const struct extreme *g)
{
    const int64_t storage = take_below(b, 40), offset = take_chance(b, 3) ? take_extreme(b) : take_below(b, 40);
    grd_tensor *base = grd_arange(grd_int(storage));
    const grd_dims sizes = grd_dims_from(g->sizes, g->n), strides = grd_dims_from(g->strides, g->n);
    wide lowest = 0, highest = 0;
    bool valid =
        g->n <= GRD_MAX_DIMS && !g->negative && product_of(g->sizes, g->n, g->empty ? 1 : 0) >= 0 && extent_of(g, &lowest, &highest);
    const bool memory = valid && fits((highest - lowest + !g->empty) * 8);
    if (valid)
        valid = offset >= 0 && (g->empty || (lowest + offset >= 0 && highest + offset < storage));
    grd_tensor *view = grd_as_strided(base, sizes, strides, .storage_offset = grd_int(offset));
    if (grd_ok() != valid)
        fuzz_fail("as_strided: valid %d, \"%s\"", valid, grd_error_message());
    grd_error_clear();
    if (valid) {
        fuzz_expect(grd_numel(view) == (g->empty ? 0 : (int64_t)product_of(g->sizes, g->n, 0)), "elements of as_strided");
        fuzz_expect(grd_same_storage(view, base) && grd_offset(view) == offset, "place of as_strided");
    }
    grd_tensor *meta = grd_empty_strided(sizes, strides, .dtype = GRD_INT64, .device = GRD_META);
    if (grd_ok() != memory)
        fuzz_fail("empty_strided: valid %d, \"%s\"", memory, grd_error_message());
    grd_error_clear();
    if (memory)
        fuzz_expect(grd_storage_bytes(meta) == (int64_t)(highest - lowest + !g->empty) * 8, "bytes of empty_strided");
}

/* Checks that operators do not overflow on tensors with extreme strides. A stride may have any value if the dimension has size 1 or if the tensor has
 * no elements. */
static void check_odd_strides(struct bytes *b)
{
    int64_t sizes[5], strides[5], n = take_between(b, 1, 4);
    bool empty = false;
    for (int64_t i = 0; i < n; i++) {
        sizes[i] = take_below(b, 2);
        strides[i] = take_extreme(b);
        empty |= sizes[i] == 0;
    }
    for (int64_t i = 0; i < n && empty; i++)
        if (sizes[i] != 0)
            sizes[i] = take_between(b, 1, 4);
    grd_tensor *base = grd_arange(grd_int(4));
    grd_tensor *t = grd_as_strided(base, grd_dims_from(sizes, n), grd_dims_from(strides, n), .storage_offset = grd_int(1));
    const int64_t dim = take_between(b, -n, n - 1), other = take_between(b, -n, n - 1), step = take_extreme(b);
    const grd_scalar start = grd_int(take_extreme(b)), end = grd_int(take_extreme(b));
    free(grd_to_string(t));
    free(grd_draw_strides(t));
    free(grd_to_string(grd_slice(t, .dim = dim, .start = start, .end = end, .step = step)));
    grd_error_clear();
    grd_diagonal(t, .offset = take_extreme(b), .dim1 = dim, .dim2 = other);
    grd_error_clear();
    grd_unfold(t, dim, take_below(b, 3), step);
    grd_error_clear();
    grd_unsqueeze(t, take_between(b, -n - 1, n));
    grd_error_clear();
    sizes[0] = take_below(b, 3);
    grd_expand(t, grd_dims_from(sizes, n));
    grd_error_clear();
    grd_select(t, dim, take_extreme(b));
    grd_error_clear();
    grd_narrow(t, dim, take_extreme(b), take_extreme(b));
    grd_error_clear();
    grd_reshape(t, grd_dims(-1));
    grd_error_clear();
    grd_tensor *sum = grd_add(t, t);
    fuzz_expect(grd_ok() && grd_numel(sum) == !empty, "a sum over odd strides");
    fuzz_expect(empty || grd_item_int64(sum) == 2, "the element of a sum over odd strides");
    grd_add_(t, grd_number(grd_int(1)));
    fuzz_expect(grd_ok(), "in place over odd strides");
    grd_tensor *total = grd_sum(grd_clone(t), .dim = grd_dims(dim));
    fuzz_expect(grd_ok() && (empty || grd_item_int64(total) == 2), "a reduction over odd strides");
}

/* ---- Chains of views ----------------------------------------------------------------------------------------------------------------- */

enum { STORAGE = 48, MAX_NDIM = 6, MAX_ELEMENTS = 512, CHAIN = 6 };

/* What is expected of a view: its number of elements n, its sizes, and the storage position of each element in row-major order. */
struct list {
    int64_t ndim, n, sizes[MAX_NDIM + 1], at[MAX_ELEMENTS];
};

static int64_t elements_of(const int64_t *sizes, int64_t ndim)
{
    int64_t n = 1;
    for (int64_t i = 0; i < ndim; i++)
        n *= sizes[i];
    return n;
}

static void split_index(const struct list *l, int64_t place, int64_t *ret_index)
{
    for (int64_t i = l->ndim - 1; i >= 0; i--) {
        ret_index[i] = place % l->sizes[i];
        place /= l->sizes[i];
    }
}

static int64_t join_index(const struct list *l, const int64_t *index)
{
    int64_t place = 0;
    for (int64_t i = 0; i < l->ndim; i++)
        place = place * l->sizes[i] + index[i];
    return place;
}

/* Fills `to`, whose sizes are given, with elements of `from`. For each index in `to`, `map` computes the index in `from` of the element to copy.
 * Returns false if `to` is too large for this test. */
static bool map_list(struct list *to, const struct list *from, void (*map)(const int64_t *index, int64_t *ret_index, const int64_t *with),
                     const int64_t *with)
{
    to->n = elements_of(to->sizes, to->ndim);
    if (to->ndim > MAX_NDIM || to->n > MAX_ELEMENTS)
        return false;
    for (int64_t i = 0; i < to->n; i++) {
        int64_t index[MAX_NDIM + 2], source[MAX_NDIM + 2];
        split_index(to, i, index);
        map(index, source, with);
        to->at[i] = from->at[join_index(from, source)];
    }
    return true;
}

/* Each function map_... gets the index of an element in a view, and computes the index of this element in the source of the view. with[0] is the
 * number of dimensions of the source. The other entries of `with` are parameters of the function; in map_permuted they are the permutation. */
static void map_permuted(const int64_t *index, int64_t *ret_index, const int64_t *with)
{
    for (int64_t i = 0; i < with[0]; i++)
        ret_index[with[i + 1]] = index[i];
}

static void map_selected(const int64_t *index, int64_t *ret_index, const int64_t *with)
{
    for (int64_t i = 0, next = 0; i < with[0]; i++)
        ret_index[i] = i == with[1] ? with[2] : index[next++];
}

static void map_sliced(const int64_t *index, int64_t *ret_index, const int64_t *with)
{
    for (int64_t i = 0; i < with[0]; i++)
        ret_index[i] = i == with[1] ? with[2] + index[i] * with[3] : index[i];
}

/* Parameters of expand: with[1] is the number of new leading dimensions. with[2 + i] is true if dimension i of the source has size 1, so that its
 * index is always 0. */
static void map_expanded(const int64_t *index, int64_t *ret_index, const int64_t *with)
{
    for (int64_t i = 0; i < with[0]; i++)
        ret_index[i] = with[2 + i] ? 0 : index[with[1] + i];
}

static void map_diagonal(const int64_t *index, int64_t *ret_index, const int64_t *with)
{
    const int64_t last = index[with[0] - 2];
    for (int64_t i = 0, next = 0; i < with[0]; i++)
        ret_index[i] = i == with[1] ? last + with[3] : i == with[2] ? last + with[4] : index[next++];
}

static void map_windows(const int64_t *index, int64_t *ret_index, const int64_t *with)
{
    for (int64_t i = 0; i < with[0]; i++)
        ret_index[i] = i == with[1] ? index[i] * with[2] + index[with[0]] : index[i];
}

/* Returns the number of elements that Python's slice start:end:step selects from a sequence of `size` elements. Writes the position of the first
 * selected element to *ret_first. `start` and `end` may be NULL. */
static int64_t python_slice(int64_t size, const int64_t *start, const int64_t *end, int64_t step, int64_t *ret_first)
{
    int64_t count = 0;
    for (wide i = 0; i < size; i++) { /* visits all positions in the direction of the step */
        const int64_t place = step > 0 ? (int64_t)i : size - 1 - (int64_t)i;
        const wide low = start == NULL ? (step > 0 ? 0 : size - 1) : *start < 0 ? (wide)*start + size : *start;
        const wide high = end == NULL ? (step > 0 ? size : -1) : *end < 0 ? (wide)*end + size : *end;
        const wide clamped = step > 0 ? (low < 0 ? 0 : low) : (low > size - 1 ? size - 1 : low);
        const bool inside = step > 0 ? place >= clamped && place < high : place <= clamped && place > high;
        if (!inside || (place - clamped) % step != 0)
            continue;
        if (count++ == 0)
            *ret_first = place;
    }
    return count;
}

/* One step in making views of views. The library makes `result`, a view of `view`. `from` lists the storage positions of the elements of `view`. `to`
 * lists the positions that the elements of `result` must have; the test computes `to` from `from`. */
struct move {
    struct bytes *b;
    grd_tensor *view, *result;
    struct list from, to;
    int64_t with[2 * MAX_NDIM + 4];
    int64_t dim, other; /* the dimension arguments of the view operator; negative ones count from the end */
    int64_t d, e, size; /* `dim` and `other` counted from the front, and the size of dimension d */
    bool valid;         /* true if the library must accept the call */
    bool ends;          /* true if the list `to` would be too long, so that no further view is made */
};

static void follow(struct move *m, void (*map)(const int64_t *index, int64_t *ret_index, const int64_t *with))
{
    m->ends = !map_list(&m->to, &m->from, map, m->with);
}

static void follow_permutation(struct move *m)
{
    for (int64_t i = 0; i < m->from.ndim; i++)
        m->to.sizes[i] = m->from.sizes[m->with[i + 1]];
    follow(m, map_permuted);
}

static void same_elements(struct move *m)
{
    m->to.n = m->from.n;
    memcpy(m->to.at, m->from.at, sizeof m->to.at);
}

static void move_transpose(struct move *m)
{
    m->result = grd_transpose(m->view, m->dim, m->other);
    for (int64_t i = 0; i < m->from.ndim; i++)
        m->with[i + 1] = i == m->d ? m->e : i == m->e ? m->d : i;
    follow_permutation(m);
}

static void move_permute(struct move *m)
{
    const int64_t n = m->from.ndim;
    uint64_t seen = 0;
    for (int64_t i = 0; i < n; i++) {
        m->with[i + 1] = take_chance(m->b, 4) ? take_below(m->b, n) : (i + m->d) % n;
        seen |= (uint64_t)1 << m->with[i + 1];
    }
    m->valid = seen == ((uint64_t)1 << n) - 1;
    m->result = grd_permute(m->view, grd_dims_from(m->with + 1, n));
    if (m->valid)
        follow_permutation(m);
}

static void move_select(struct move *m)
{
    const int64_t index = take_between(m->b, -5, 5);
    m->result = grd_select(m->view, m->dim, index);
    m->valid = m->from.ndim > 0 && index >= -m->size && index < m->size;
    if (!m->valid)
        return;
    m->with[1] = m->d;
    m->with[2] = index < 0 ? index + m->size : index;
    m->to.ndim--;
    for (int64_t i = m->d; i < m->to.ndim; i++)
        m->to.sizes[i] = m->from.sizes[i + 1];
    follow(m, map_selected);
}

static void move_slice(struct move *m)
{
    const grd_scalar absent = {.kind = GRD_SCALAR_NONE};
    const int64_t start = take_chance(m->b, 8) ? take_extreme(m->b) : take_between(m->b, -6, 6);
    const int64_t step = take_chance(m->b, 8) ? take_extreme(m->b) : take_between(m->b, -3, 3);
    const int64_t end = take_chance(m->b, 8) ? take_extreme(m->b) : take_between(m->b, -6, 6);
    const bool has_start = take_chance(m->b, 2), has_end = take_chance(m->b, 2);
    m->result = grd_slice(m->view, .dim = m->dim, .start = has_start ? grd_int(start) : absent, .end = has_end ? grd_int(end) : absent,
                          .step = step);
    m->valid = m->from.ndim > 0 && step != 0;
    if (!m->valid)
        return;
    m->with[1] = m->d;
    m->with[3] = step;
    m->to.sizes[m->d] = python_slice(m->size, has_start ? &start : NULL, has_end ? &end : NULL, step, &m->with[2]);
    follow(m, map_sliced);
}

static void move_expand(struct move *m)
{
    int64_t wanted[MAX_NDIM + 1];
    const int64_t added = m->from.ndim < MAX_NDIM ? take_below(m->b, 2) : 0;
    m->to.ndim = m->from.ndim + added;
    m->with[1] = added;
    for (int64_t i = 0; i < m->to.ndim; i++) {
        const int64_t present = i < added ? 1 : m->from.sizes[i - added];
        wanted[i] = take_chance(m->b, 3) ? take_between(m->b, -2, 3) : present;
        m->to.sizes[i] = wanted[i] == -1 ? present : wanted[i];
        m->valid = m->valid && m->to.sizes[i] >= 0 && (m->to.sizes[i] == present || present == 1) && !(i < added && wanted[i] < 0);
        if (i >= added)
            m->with[2 + i - added] = present == 1;
    }
    m->result = grd_expand(m->view, grd_dims_from(wanted, m->to.ndim));
    if (m->valid)
        follow(m, map_expanded);
}

static void move_unsqueeze(struct move *m)
{
    const int64_t n = m->from.ndim, given = take_between(m->b, -n - 2, n + 1), place = given < 0 ? given + n + 1 : given;
    m->valid = place >= 0 && place <= n;
    m->result = grd_unsqueeze(m->view, given);
    m->ends = n == MAX_NDIM;
    if (!m->valid || m->ends)
        return;
    m->to.ndim++;
    m->to.sizes[place] = 1;
    for (int64_t i = place + 1; i < m->to.ndim; i++)
        m->to.sizes[i] = m->from.sizes[i - 1];
    same_elements(m);
}

static void move_squeeze(struct move *m)
{
    const bool all = take_chance(m->b, 2);
    m->result = all ? grd_squeeze(m->view) : grd_squeeze(m->view, .dim = grd_dims(m->dim));
    m->to.ndim = 0;
    for (int64_t i = 0; i < m->from.ndim; i++)
        if (m->from.sizes[i] != 1 || !(all || i == m->d))
            m->to.sizes[m->to.ndim++] = m->from.sizes[i];
    same_elements(m);
}

static void move_diagonal(struct move *m)
{
    const int64_t offset = take_chance(m->b, 8) ? take_extreme(m->b) : take_between(m->b, -4, 4);
    m->result = grd_diagonal(m->view, .offset = offset, .dim1 = m->dim, .dim2 = m->other);
    m->valid = m->from.ndim > 0 && m->d != m->e;
    if (!m->valid)
        return;
    int64_t count = 0;
    for (int64_t i = 0; i < m->size; i++)
        count += (wide)i + offset >= 0 && (wide)i + offset < m->from.sizes[m->e];
    m->with[1] = m->d;
    m->with[2] = m->e;
    m->with[3] = offset < 0 && count > 0 ? -offset : 0;
    m->with[4] = offset > 0 && count > 0 ? offset : 0;
    m->to.ndim = 0;
    for (int64_t i = 0; i < m->from.ndim; i++)
        if (i != m->d && i != m->e)
            m->to.sizes[m->to.ndim++] = m->from.sizes[i];
    m->to.sizes[m->to.ndim++] = count;
    follow(m, map_diagonal);
}

static void move_unfold(struct move *m)
{
    const int64_t window = take_between(m->b, -1, 4), step = take_chance(m->b, 8) ? take_extreme(m->b) : take_between(m->b, 0, 3);
    m->result = grd_unfold(m->view, m->dim, window, step);
    m->valid = window >= 0 && window <= m->size && step > 0;
    m->ends = m->from.ndim == 0 || m->from.ndim == MAX_NDIM;
    if (!m->valid || m->ends)
        return;
    m->with[1] = m->d;
    m->with[2] = step;
    m->to.sizes[m->d] = (m->size - window) / step + 1;
    m->to.sizes[m->to.ndim++] = window;
    follow(m, map_windows);
}

/* True if some strides place every element of the list at its storage position, i.e. if a view with these sizes exists. The stride of a
 * dimension can only be the difference between the storage positions of the first two elements along this dimension. */
static bool strides_exist(const struct list *l)
{
    int64_t strides[MAX_NDIM + 1] = {0}, step = 1;
    for (int64_t i = l->ndim - 1; i >= 0; i--) {
        strides[i] = l->n > 0 && l->sizes[i] > 1 ? l->at[step] - l->at[0] : 0;
        step *= l->sizes[i];
    }
    for (int64_t i = 0; i < l->n; i++) {
        int64_t index[MAX_NDIM + 1], address = l->at[0];
        split_index(l, i, index);
        for (int64_t k = 0; k < l->ndim; k++)
            address += index[k] * strides[k];
        if (address != l->at[i])
            return false;
    }
    return true;
}

static void move_view(struct move *m)
{
    int64_t sizes[MAX_NDIM + 1], rest = m->from.n, ndim = 0;
    for (int64_t factor = 1; ndim < MAX_NDIM - 1 && rest > 0 && rest % factor == 0; factor = take_between(m->b, 1, 4)) {
        sizes[ndim++] = factor;
        rest /= factor;
    }
    sizes[ndim++] = rest;
    m->to.ndim = ndim;
    memcpy(m->to.sizes, sizes, sizeof m->to.sizes);
    same_elements(m);
    if (m->from.n > 0 && take_chance(m->b, 2))
        sizes[take_below(m->b, ndim)] = -1; /* the library infers this size */
    m->valid = strides_exist(&m->to);
    if (!m->valid) {
        grd_tensor *copy = grd_reshape(m->view, grd_dims_from(sizes, ndim));
        fuzz_expect(grd_ok() && !grd_same_storage(copy, m->view), "reshape copies where there is no view");
        int64_t values[MAX_ELEMENTS];
        grd_to_memory(copy, values, GRD_INT64);
        fuzz_expect(memcmp(values, m->to.at, (size_t)m->to.n * sizeof *values) == 0, "elements of a reshaped copy");
    }
    m->result = grd_view(m->view, grd_dims_from(sizes, ndim));
}

/* Splits the view with grd_split and checks the number of parts. One of the parts becomes the next view of the chain. */
static void move_split(struct move *m)
{
    const int64_t part = take_between(m->b, 0, 4);
    const grd_tensors parts = grd_split(m->view, part, .dim = m->dim);
    m->valid = m->from.ndim > 0 && (part > 0 || m->size == 0);
    m->ends = m->size == 0;
    if (!m->valid || !grd_ok())
        return;
    fuzz_expect(parts.n == (m->size == 0 ? 1 : (m->size + part - 1) / part), "how many parts");
    if (m->ends)
        return;
    const int64_t which = take_below(m->b, parts.n);
    m->result = parts.data[which];
    m->with[1] = m->d;
    m->with[2] = which * part;
    m->with[3] = 1;
    m->to.sizes[m->d] = m->size - m->with[2] < part ? m->size - m->with[2] : part;
    follow(m, map_sliced);
}

/* Applies a random view operator to *view and replaces *view by the result. *l lists the storage positions of the elements of *view, and is replaced
 * by the list expected for the result. If the operator must raise an error, *view and *l stay unchanged. Returns false if the expected list is too
 * large to be represented. */
static bool next_view(struct bytes *b, grd_tensor **view, struct list *l)
{
    static void (*const moves[])(struct move *) = {move_transpose, move_permute,  move_select, move_slice, move_expand, move_unsqueeze,
                                                   move_squeeze,   move_diagonal, move_unfold, move_view,  move_view,   move_split};
    const int64_t n = l->ndim > 0 ? l->ndim : 1;
    struct move m = {.b = b, .view = *view, .from = *l, .to = *l, .with = {l->ndim}, .valid = true};
    m.dim = take_between(b, -n, n - 1);
    m.other = take_between(b, -n, n - 1);
    m.d = m.dim < 0 ? m.dim + n : m.dim;
    m.e = m.other < 0 ? m.other + n : m.other;
    m.size = l->ndim > 0 ? l->sizes[m.d] : 1;
    moves[take_below(b, (int64_t)(sizeof moves / sizeof *moves))](&m);
    if (grd_ok() != m.valid)
        fuzz_fail("a view is %s, \"%s\"", m.valid ? "refused" : "made", grd_error_message());
    grd_error_clear();
    if (!m.valid)
        return true;
    if (m.ends)
        return false;
    *view = m.result;
    *l = m.to;
    return true;
}

static void check_view(grd_tensor *view, const struct list *l, grd_tensor *base)
{
    const grd_dims sizes = grd_sizes(view), strides = grd_strides(view);
    fuzz_expect(sizes.n == l->ndim && memcmp(sizes.data, l->sizes, (size_t)l->ndim * sizeof *l->sizes) == 0, "sizes of a view");
    fuzz_expect(grd_same_storage(view, base), "a view shares its storage");
    fuzz_expect(grd_numel(view) == l->n, "elements of a view");
    int64_t values[MAX_ELEMENTS];
    grd_to_memory(view, values, GRD_INT64);
    fuzz_expect(memcmp(values, l->at, (size_t)l->n * sizeof *values) == 0, "elements of a view");
    bool contiguous = true, repeated = false, seen[STORAGE] = {false};
    for (int64_t i = 0; i < l->n; i++) {
        contiguous &= l->at[i] == l->at[0] + i;
        repeated |= seen[l->at[i]];
        seen[l->at[i]] = true;
    }
    fuzz_expect(grd_is_contiguous(view) == contiguous, "whether a view is contiguous");
    fuzz_expect(!repeated || grd_shape_may_overlap(sizes, strides.data), "whether elements of a view may share memory");
    fuzz_expect(grd_check_no_internal_overlap(view) == !repeated, "whether elements of a view share memory");
    grd_error_clear();
}

/* Checks grd_check_no_partial_overlap for two views that differ only in the offset. The function must raise an error if the views share elements and
 * their offsets differ. */
static void check_overlap(struct bytes *b, grd_tensor *base, grd_tensor *view, const struct list *l)
{
    const int64_t shift = take_between(b, -3, 3);
    if (l->n == 0)
        return;
    struct list other = *l;
    for (int64_t i = 0; i < l->n; i++) {
        other.at[i] = l->at[i] + shift;
        if (other.at[i] < 0 || other.at[i] >= STORAGE)
            return;
    }
    grd_tensor *read = grd_as_strided(base, grd_sizes(view), grd_strides(view), .storage_offset = grd_int(grd_offset(view) + shift));
    fuzz_expect(grd_ok(), "a shifted view");
    bool overlap = false, same = shift == 0;
    for (int64_t i = 0; i < l->n; i++)
        for (int64_t k = 0; k < l->n; k++)
            overlap |= l->at[i] == other.at[k];
    fuzz_expect(grd_check_no_partial_overlap(view, read) == (same || !overlap), "whether two views overlap");
    grd_error_clear();
}

static void check_write(grd_tensor *base, grd_tensor *view, const struct list *l)
{
    int64_t wanted[STORAGE], values[STORAGE];
    bool seen[STORAGE] = {false}, repeated = false;
    for (int64_t i = 0; i < STORAGE; i++)
        wanted[i] = i;
    for (int64_t i = 0; i < l->n; i++) {
        repeated |= seen[l->at[i]];
        seen[l->at[i]] = true;
    }
    for (int64_t i = 0; i < l->n && !repeated; i++)
        wanted[l->at[i]] *= -1;
    grd_neg_(view);
    fuzz_expect(grd_ok() == !repeated, "writing through a view is accepted");
    grd_error_clear();
    grd_to_memory(base, values, GRD_INT64);
    fuzz_expect(memcmp(values, wanted, sizeof values) == 0, "what is written through a view");
}

/* Makes a chain of views, each a view of the one before, and checks all of them. The first tensor is 0, 1, 2, ..., so the value of each element is
 * its storage position. */
static void check_chain(struct bytes *b)
{
    grd_tensor *base = grd_arange(grd_int(STORAGE));
    struct list l = {.ndim = take_below(b, 5)};
    int64_t strides[MAX_NDIM], low = 0, high = 0;
    for (int64_t i = 0; i < l.ndim; i++) {
        l.sizes[i] = take_chance(b, 12) ? 0 : take_between(b, 1, 4);
        strides[i] = take_between(b, -6, 12);
        if (l.sizes[i] > 0)
            *(strides[i] < 0 ? &low : &high) += (l.sizes[i] - 1) * strides[i];
    }
    l.n = elements_of(l.sizes, l.ndim);
    if (high - low >= STORAGE)
        return;
    const int64_t offset = -low + take_below(b, STORAGE - (high - low));
    for (int64_t i = 0; i < l.n; i++) {
        int64_t index[MAX_NDIM];
        split_index(&l, i, index);
        l.at[i] = offset;
        for (int64_t k = 0; k < l.ndim; k++)
            l.at[i] += index[k] * strides[k];
    }
    grd_tensor *view =
        grd_as_strided(base, grd_dims_from(l.sizes, l.ndim), grd_dims_from(strides, l.ndim), .storage_offset = grd_int(offset));
    fuzz_expect(grd_ok(), "as_strided inside its storage");
    check_view(view, &l, base);
    for (int64_t i = take_below(b, CHAIN); i > 0 && next_view(b, &view, &l); i--)
        check_view(view, &l, base);
    check_overlap(b, base, view, &l);
    check_write(base, view, &l);
}

static void check(struct bytes *b)
{
    const int64_t kind = take_below(b, 8);
    if (kind < 5) {
        check_chain(b);
    } else if (kind == 5) {
        check_odd_strides(b);
    } else {
        const struct extreme g = take_geometry(b);
        check_numel(&g);
        check_extent(&g);
        check_strided(b, &g);
        check_infer(b);
        check_dims(b);
        check_broadcast(b);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_run(data, size, check);
    return 0;
}
