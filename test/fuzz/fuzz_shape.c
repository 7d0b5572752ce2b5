/* Shape algebra and views. Two kinds of input: extreme sizes and strides, against arithmetic in 128 bits; and chains of views of a small
 * storage, against a list that says for each element, index by index, where it lies. */
#include "core/iter.h"
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

/* The product of sizes[first...], with 1 for 0; too large: -1. */
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

/* Lowest and highest offset; false when one does not fit into 64 bits. */
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

/* as_strided and empty_strided reach what a 128-bit sum says they reach, or are refused. */
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

/* Views of strides that no element uses must not overflow either: one-element and empty dimensions may have any stride. */
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
    free(grd_to_string(grd_slice(t, .dim = grd_int(dim), .start = start, .end = end, .step = grd_int(step))));
    grd_error_clear();
    grd_diagonal(t, .offset = grd_int(take_extreme(b)), .dim1 = grd_int(dim), .dim2 = grd_int(other));
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

/* A view as a list: where each element lies, in row-major order. */
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

/* The view whose element at an index is `from`'s at the index that `map` makes of it. False when it is too large for this test. */
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

/* What a map needs to know: with[0] is the number of dimensions of the source, the rest is its own. */
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

/* with[1] dimensions are new; with[2 + i] tells which of the source repeat. */
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

/* Where Python's slice of `size` elements starts, and how many it has. */
static int64_t python_slice(int64_t size, const int64_t *start, const int64_t *end, int64_t step, int64_t *ret_first)
{
    int64_t count = 0;
    for (wide i = 0; i < size; i++) { /* the i-th element of the whole, walked in the direction of the step */
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

/* The next view of a chain, in the library and as a list; false to stop here. `ret_view` is left where the test cannot follow. */
static bool next_view(struct bytes *b, grd_tensor **view, struct list *l)
{
    const struct list from = *l;
    struct list to = {.ndim = from.ndim};
    memcpy(to.sizes, from.sizes, sizeof to.sizes);
    int64_t with[2 * MAX_NDIM + 4] = {from.ndim};
    const int64_t wraps = from.ndim > 0 ? from.ndim : 1;
    const int64_t dim = take_between(b, -wraps, wraps - 1), other = take_between(b, -wraps, wraps - 1);
    const int64_t d = dim < 0 ? dim + wraps : dim, e = other < 0 ? other + wraps : other;
    const int64_t size = from.ndim > 0 ? from.sizes[d] : 1;
    grd_tensor *t = *view, *result = NULL;
    bool valid = true, known = true;
    switch (take_below(b, 12)) {
    case 0: /* transpose */
        result = grd_transpose(t, dim, other);
        for (int64_t i = 0; i < from.ndim; i++)
            with[i + 1] = i == d ? e : i == e ? d : i;
        for (int64_t i = 0; i < from.ndim; i++)
            to.sizes[i] = from.sizes[with[i + 1]];
        known = map_list(&to, &from, map_permuted, with);
        break;
    case 1: { /* permute */
        uint64_t seen = 0;
        for (int64_t i = 0; i < from.ndim; i++) {
            with[i + 1] = take_chance(b, 4) ? take_below(b, wraps) : (i + d) % wraps;
            seen |= (uint64_t)1 << with[i + 1];
        }
        valid = seen == ((uint64_t)1 << from.ndim) - 1;
        result = grd_permute(t, grd_dims_from(with + 1, from.ndim));
        for (int64_t i = 0; i < from.ndim; i++)
            to.sizes[i] = from.sizes[with[i + 1]];
        known = valid && map_list(&to, &from, map_permuted, with);
        break;
    }
    case 2: { /* select */
        const int64_t index = take_between(b, -5, 5);
        result = grd_select(t, dim, index);
        valid = from.ndim > 0 && index >= -size && index < size;
        if (!valid)
            break;
        with[1] = d;
        with[2] = index < 0 ? index + size : index;
        to.ndim--;
        for (int64_t i = d; i < to.ndim; i++)
            to.sizes[i] = from.sizes[i + 1];
        known = map_list(&to, &from, map_selected, with);
        break;
    }
    case 3: { /* slice */
        const int64_t start = take_chance(b, 8) ? take_extreme(b) : take_between(b, -6, 6),
                      step = take_chance(b, 8) ? take_extreme(b) : take_between(b, -3, 3);
        const int64_t end = take_chance(b, 8) ? take_extreme(b) : take_between(b, -6, 6);
        const bool has_start = take_chance(b, 2), has_end = take_chance(b, 2);
        result = grd_slice(t, .dim = grd_int(dim), .start = has_start ? grd_int(start) : (grd_scalar){GRD_SCALAR_NONE, {0}},
                           .end = has_end ? grd_int(end) : (grd_scalar){GRD_SCALAR_NONE, {0}}, .step = grd_int(step));
        valid = from.ndim > 0 && step != 0;
        if (!valid)
            break;
        with[1] = d;
        with[3] = step;
        to.sizes[d] = python_slice(size, has_start ? &start : NULL, has_end ? &end : NULL, step, &with[2]);
        known = map_list(&to, &from, map_sliced, with);
        break;
    }
    case 4: { /* expand */
        const int64_t added = take_below(b, 2);
        if (from.ndim + added > MAX_NDIM)
            return false;
        int64_t wanted[MAX_NDIM + 1];
        to.ndim = from.ndim + added;
        with[1] = added;
        for (int64_t i = 0; i < to.ndim; i++) {
            const int64_t present = i < added ? 1 : from.sizes[i - added];
            wanted[i] = take_chance(b, 3) ? take_between(b, -2, 3) : present;
            to.sizes[i] = wanted[i] == -1 ? present : wanted[i];
            valid = valid && to.sizes[i] >= 0 && (to.sizes[i] == present || present == 1) && !(i < added && wanted[i] < 0);
            if (i >= added)
                with[2 + i - added] = present == 1;
        }
        result = grd_expand(t, grd_dims_from(wanted, to.ndim));
        known = valid && map_list(&to, &from, map_expanded, with);
        break;
    }
    case 5: { /* unsqueeze */
        if (from.ndim == MAX_NDIM)
            return false;
        const int64_t place = take_between(b, -from.ndim - 2, from.ndim + 1);
        valid = place >= -from.ndim - 1 && place <= from.ndim;
        result = grd_unsqueeze(t, place);
        if (!valid)
            break;
        const int64_t p = place < 0 ? place + from.ndim + 1 : place;
        to.ndim++;
        to.sizes[p] = 1;
        for (int64_t i = p + 1; i < to.ndim; i++)
            to.sizes[i] = from.sizes[i - 1];
        to.n = from.n;
        memcpy(to.at, from.at, sizeof to.at);
        break;
    }
    case 6: { /* squeeze */
        const bool all = take_chance(b, 2);
        result = all ? grd_squeeze(t) : grd_squeeze(t, .dim = grd_dims(dim));
        to.ndim = 0;
        for (int64_t i = 0; i < from.ndim; i++)
            if (from.sizes[i] != 1 || !(all || i == d))
                to.sizes[to.ndim++] = from.sizes[i];
        to.n = from.n;
        memcpy(to.at, from.at, sizeof to.at);
        break;
    }
    case 7: { /* diagonal */
        const int64_t offset = take_chance(b, 8) ? take_extreme(b) : take_between(b, -4, 4);
        result = grd_diagonal(t, .offset = grd_int(offset), .dim1 = grd_int(dim), .dim2 = grd_int(other));
        valid = from.ndim > 0 && d != e;
        if (!valid)
            break;
        int64_t count = 0;
        for (int64_t i = 0; i < size; i++)
            count += (wide)i + offset >= 0 && (wide)i + offset < from.sizes[e];
        with[1] = d;
        with[2] = e;
        with[3] = offset < 0 && count > 0 ? -offset : 0;
        with[4] = offset > 0 && count > 0 ? offset : 0;
        to.ndim = 0;
        for (int64_t i = 0; i < from.ndim; i++)
            if (i != d && i != e)
                to.sizes[to.ndim++] = from.sizes[i];
        to.sizes[to.ndim++] = count;
        known = map_list(&to, &from, map_diagonal, with);
        break;
    }
    case 8: { /* unfold */
        const int64_t window = take_between(b, -1, 4), step = take_chance(b, 8) ? take_extreme(b) : take_between(b, 0, 3);
        if (from.ndim == 0 || from.ndim == MAX_NDIM)
            return false;
        result = grd_unfold(t, dim, window, step);
        valid = window >= 0 && window <= size && step > 0;
        if (!valid)
            break;
        with[1] = d;
        with[2] = step;
        to.sizes[d] = (size - window) / step + 1;
        to.sizes[to.ndim++] = window;
        known = map_list(&to, &from, map_windows, with);
        break;
    }
    case 9:    /* view and reshape: the list stays */
    case 10: { /* the same, one size inferred */
        int64_t sizes[MAX_NDIM + 1], rest = from.n, ndim = 0;
        while (ndim < MAX_NDIM - 1 && rest > 0) {
            const int64_t factor = take_between(b, 1, 4);
            if (rest % factor == 0) {
                sizes[ndim++] = factor;
                rest /= factor;
            } else {
                break;
            }
        }
        sizes[ndim++] = rest;
        to.ndim = ndim;
        memcpy(to.sizes, sizes, sizeof to.sizes);
        to.n = from.n;
        memcpy(to.at, from.at, sizeof to.at);
        if (from.n > 0 && take_chance(b, 2))
            sizes[take_below(b, ndim)] = -1;
        result = grd_view(t, grd_dims_from(sizes, ndim));
        /* A view exists where some strides give every element its place: those of one step along each dimension. */
        int64_t strides[MAX_NDIM + 1] = {0}, step = 1;
        for (int64_t i = to.ndim - 1; i >= 0; i--) {
            strides[i] = to.n > 0 && to.sizes[i] > 1 ? to.at[step] - to.at[0] : 0;
            step *= to.sizes[i];
        }
        for (int64_t i = 0; i < to.n; i++) {
            int64_t index[MAX_NDIM + 1], address = to.at[0];
            split_index(&to, i, index);
            for (int64_t k = 0; k < to.ndim; k++)
                address += index[k] * strides[k];
            valid &= address == to.at[i];
        }
        if (!valid) {
            grd_error_clear();
            grd_tensor *copy = grd_reshape(t, grd_dims_from(sizes, ndim));
            fuzz_expect(grd_ok() && !grd_same_storage(copy, t), "reshape copies where there is no view");
            int64_t values[MAX_ELEMENTS];
            grd_to_memory(copy, values, GRD_INT64);
            fuzz_expect(memcmp(values, to.at, (size_t)to.n * sizeof *values) == 0, "elements of a reshaped copy");
            return true;
        }
        break;
    }
    default: { /* split: the parts, put together, are the whole */
        const int64_t part = take_between(b, 0, 4);
        const grd_tensors parts = grd_split(t, part, .dim = grd_int(dim));
        valid = from.ndim > 0 && (part > 0 || size == 0);
        fuzz_expect(grd_ok() == valid, "split accepts");
        grd_error_clear();
        if (!valid)
            return true;
        fuzz_expect(parts.n == (size == 0 ? 1 : (size + part - 1) / part), "how many parts");
        if (size == 0)
            return true;
        const int64_t which = take_below(b, parts.n);
        result = parts.data[which];
        with[1] = d;
        with[2] = which * part;
        with[3] = 1;
        to.sizes[d] = size - with[2] < part ? size - with[2] : part;
        known = map_list(&to, &from, map_sliced, with);
        break;
    }
    }
    if (grd_ok() != valid)
        fuzz_fail("a view is %s, \"%s\"", valid ? "refused" : "made", grd_error_message());
    grd_error_clear();
    if (!valid)
        return true;
    if (!known)
        return false;
    *view = result;
    *l = to;
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

/* Writing through one view while reading another: refused when they overlap, but for element by element. */
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

/* A chain of views of 0, 1, 2, ...: the elements read are the places they lie at. */
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
