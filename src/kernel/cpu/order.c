/* Keys, sorted lines, running extremes and search; see kernel/order.h. Typed: all dtypes that have an order; bool has the row of uint8. */
#include "kernel/order.h"

#include <string.h>

#include "kernel/cpu/typed.h"

/* ---- Keys --------------------------------------------------------------------------------------------------------------------------- */

/* An unsigned integer of the same order as x. */
INLINE uint64_t key_of(T x)
{
#if GRD_IS_FLOAT
#if GRD_TAG == GRD_TAG_float64
    typedef uint64_t W;
    const W infinity = (W)0x7ff << 52;
#elif GRD_TAG == GRD_TAG_float32
    typedef uint32_t W;
    const W infinity = (W)0x7f8 << 20;
#else
    typedef uint16_t W;
    const W infinity = GRD_TAG == GRD_TAG_float16 ? 0x7c00 : 0x7f80;
#endif
    const W sign = (W)((W)1 << (8 * sizeof(W) - 1));
    W bits;
    memcpy(&bits, &x, sizeof bits);
    bits = bits == sign ? 0 : bits;
    return (W)(bits & (W)~sign) > infinity ? (W) ~(W)0 : bits & sign ? (W)~bits : (W)(bits | sign);
#elif GRD_IS_SIGNED
    return (uint64_t)x ^ (uint64_t)1 << 63;
#else
    return x;
#endif
}

INLINE T element(const void *data, int64_t stride, int64_t i)
{
    T x;
    memcpy(&x, (const char *)data + i * stride, sizeof x);
    return x;
}

INLINE bool is_nan(C x)
{
#if GRD_IS_FLOAT
    return x != x;
#else
    (void)x;
    return false;
#endif
}

enum { FEW = 48 }; /* which insertion sorts */

/* ---- Sorted lines --------------------------------------------------------------------------------------------------------------------- */

INLINE struct grd_ranked ranked(const struct grd_rank_block *b, int64_t i)
{
    return (struct grd_ranked){key_of(element(b->in, b->stride, i)) ^ (b->flipped ? UINT64_MAX : 0), i};
}

static void largest_by_heap(const struct grd_rank_block *b)
{
    const int64_t k = b->kept;
    for (int64_t i = 0; i < k; i++)
        b->items[i] = ranked(b, i);
    grd_rank_make_heap(b->items, k);
    for (int64_t i = k; i < b->n && k > 0; i++) {
        const struct grd_ranked item = ranked(b, i);
        if (item.key > b->items[0].key)
            grd_rank_replace_root(b->items, k, item);
    }
    grd_rank_sort_heap(b->items, k);
}

/* Of the elements equal to the one that was selected, the one that has as many of them before it as a stable sort would leave. */
static void choose_stably(const struct grd_rank_block *b)
{
    struct grd_ranked *chosen = &b->items[b->first];
    int64_t before = b->first;
    for (int64_t i = 0; i < b->first; i++)
        before -= b->items[i].key > chosen->key;
    for (int64_t i = 0; i < b->n; i++)
        if (ranked(b, i).key == chosen->key && before-- == 0)
            chosen->index = i;
}

static void arrange(const struct grd_rank_block *b)
{
    if (b->kind == GRD_RANK_LARGEST && grd_rank_by_heap(b->n, b->kept)) {
        largest_by_heap(b);
        return;
    }
    for (int64_t i = 0; i < b->n; i++)
        b->items[i] = ranked(b, i);
    if (b->kind == GRD_RANK_SORT)
        grd_rank_sort(b->items, b->n);
    else if (b->kind == GRD_RANK_SORT_STABLY)
        grd_rank_few_stably(b->items, b->n);
    else if (b->kind == GRD_RANK_LARGEST)
        grd_rank_largest(b->items, b->n, b->kept);
    else if (b->kind == GRD_RANK_KTH)
        grd_rank_kth(b->items, b->n, b->first);
    else {
        grd_rank_nth(b->items, b->n, b->first);
        choose_stably(b);
    }
}

/* The place of the first NaN; n when there is none. */
static int64_t first_nan(const struct grd_rank_block *b)
{
    int64_t i = GRD_IS_FLOAT ? 0 : b->n;
    while (i < b->n && !is_nan(load(element(b->in, b->stride, i))))
        i++;
    return i;
}

INLINE int bits_of(uint64_t x)
{
    return x > 0 ? 64 - __builtin_clzll(x) : 0;
}

/* A word holds the place of an element, and above it as many bits of its key's difference from the least key as there is room for. Where the differences
 * have more bits, those come in turns, from the lowest on. */
static const uint64_t *sorted_words(const struct grd_rank_block *b, uint64_t *ret_place)
{
    uint64_t *words = (uint64_t *)b->items, *spare = words + b->n, least = UINT64_MAX, most = 0;
    for (int64_t i = 0; i < b->n; i++) {
        const uint64_t key = ranked(b, i).key;
        least = key < least ? key : least;
        most = key > most ? key : most;
        words[i] = (uint64_t)i;
    }
    const int place_bits = bits_of((uint64_t)b->n - 1), room = 64 - place_bits, key_bits = bits_of(most - least);
    const uint64_t place = ((uint64_t)1 << place_bits) - 1;
    for (int done = 0; done < key_bits; done += room) {
        for (int64_t i = 0; i < b->n; i++) {
            const uint64_t at = words[i] & place;
            words[i] = (ranked(b, (int64_t)at).key - least) >> done << place_bits | at;
        }
        uint64_t *sorted = grd_rank_words(words, spare, b->n, place_bits, (int)at_most(place_bits + key_bits - done, 64));
        spare = sorted == words ? spare : words;
        words = sorted;
    }
    *ret_place = place;
    return words;
}

static void sort_stably(const struct grd_rank_block *b)
{
    T *values = (T *)b->values;
    uint64_t place;
    const uint64_t *words = sorted_words(b, &place);
    for (int64_t i = 0; i < b->n; i++) {
        const int64_t index = (int64_t)(words[i] & place);
        values[i * b->step] = element(b->in, b->stride, index);
        b->indices[i * b->step] = index;
    }
}

/* Moves the mode to the front: the last item of the first of the longest runs. The key of NaN, which is no run, has all bits of the element's set. */
static void find_mode(const struct grd_rank_block *b)
{
    const uint64_t nan = GRD_IS_FLOAT ? UINT64_MAX >> (64 - 8 * sizeof(T)) : 0;
    uint64_t place;
    const uint64_t *words = sorted_words(b, &place);
    struct grd_ranked last = {0}, mode = {0};
    for (int64_t i = 0, start = 0, longest = 0; i < b->n; i++) {
        const struct grd_ranked item = ranked(b, (int64_t)(words[i] & place));
        start = i == 0 || item.key != last.key || (GRD_IS_FLOAT && item.key == nan) ? i : start;
        last = item;
        if (i - start + 1 > longest)
            longest = i - start + 1, mode = item;
    }
    b->items[0] = mode;
}

static void rank(const struct grd_rank_block *b)
{
    if (b->kind == GRD_RANK_SORT_STABLY && b->n > FEW) {
        sort_stably(b);
        return;
    }
    T *values = (T *)b->values;
    const int64_t nan = b->kind == GRD_RANK_MEDIAN ? first_nan(b) : b->n;
    if (nan < b->n)
        b->items[b->first].index = nan;
    else if (b->kind == GRD_RANK_MODE)
        find_mode(b);
    else
        arrange(b);
    for (int64_t i = 0; i < b->kept; i++) {
        const int64_t index = b->items[b->first + i].index;
        values[i * b->step] = element(b->in, b->stride, index);
        b->indices[i * b->step] = index;
    }
}

/* ---- Running extremes --------------------------------------------------------------------------------------------------------------------- */

/* True if x takes the place of the extreme so far. */
INLINE bool replaces(T x, T best, bool smallest)
{
    const C new = load(x), old = load(best);
    return (smallest ? new <= old : new >= old) || is_nan(new);
}

/* A branch, since an extreme is rarely replaced and otherwise nothing waits for the step before. */
INLINE void extremes_of_line(const struct grd_extremes_block *b, bool smallest)
{
    const T *in = b->in;
    T *values = b->values, best = in[0];
    int64_t at = 0;
    for (int64_t i = 0; i < b->n; i++) {
        const T x = in[i * b->step];
        if (__builtin_expect(replaces(x, best, smallest), 0))
            best = x, at = i;
        values[i * b->step] = best;
        b->indices[i * b->step] = at;
    }
}

/* The carry from row to row is the result's last row. */
INLINE void extremes_of_columns(const struct grd_extremes_block *b, bool smallest)
{
    for (int64_t i = 0; i < b->n; i++) {
        const int64_t row = i * b->step, last = i > 0 ? row - b->step : row;
        const T *in = (const T *)b->in + row, *best = i > 0 ? (const T *)b->values + last : in;
        T *values = (T *)b->values + row;
        const int64_t *at = b->indices + last;
        int64_t *indices = b->indices + row;
        for (int64_t j = 0; j < b->columns; j++) {
            const bool now = i == 0 || replaces(in[j], best[j], smallest);
            values[j] = now ? in[j] : best[j];
            indices[j] = now ? i : at[j];
        }
    }
}

static void extremes(const struct grd_extremes_block *b)
{
    if (b->columns > 1 && b->smallest)
        extremes_of_columns(b, true);
    else if (b->columns > 1)
        extremes_of_columns(b, false);
    else if (b->smallest)
        extremes_of_line(b, true);
    else
        extremes_of_line(b, false);
}

/* ---- Search --------------------------------------------------------------------------------------------------------------------------------- */

enum { LANES = 8, PIECE = 512 };

/* True if `number` comes before the place that is searched. No branches: which way a search goes cannot be guessed. */
INLINE bool passes(C number, C wanted, bool right)
{
    return (int)(right ? number <= wanted : number < wanted) | ((int)is_nan(wanted) & ((int)right | (int)!is_nan(number)));
}

/* The places of several wanted ones at once: all searches take equally many steps, so that they wait for memory together. */
INLINE void search_lanes(const T *sorted, const int64_t *order, int64_t n, const T *wanted, int lanes, bool right, int64_t *ret_at)
{
    C x[LANES];
    int64_t at[LANES];
    for (int lane = 0; lane < lanes; lane++) {
        x[lane] = load(wanted[lane]);
        at[lane] = 0;
    }
    for (int64_t rest = n; rest > 0; rest /= 2) { /* of the numbers that come after those known to pass */
        const int64_t half = (rest + 1) / 2;
        for (int lane = 0; lane < lanes; lane++) {
            const int64_t middle = at[lane] + half - 1;
            const T number = sorted[order != NULL ? order[middle] : middle];
            at[lane] += half & -(int64_t)passes(load(number), x[lane], right);
        }
    }
    for (int lane = 0; lane < lanes; lane++)
        ret_at[lane] = at[lane];
}

INLINE void search_all(const struct grd_search_block *b, const int64_t *order, bool right)
{
    const T *wanted = b->wanted;
    for (int64_t i = 0; i < b->count;) {
        int64_t at[LANES];
        if (b->count - i < LANES && b->count >= LANES)
            i = b->count - LANES; /* some a second time */
        const int lanes = b->count - i < LANES ? 1 : LANES;
        if (lanes == LANES)
            search_lanes(b->sorted, order, b->n, wanted + i, LANES, right, at);
        else
            search_lanes(b->sorted, order, b->n, wanted + i, 1, right, at);
        for (int lane = 0; lane < lanes; lane++, i++) {
            if (b->narrow)
                ((int32_t *)b->to)[i] = (int32_t)at[lane];
            else
                ((int64_t *)b->to)[i] = at[lane];
        }
    }
}

static void search(const struct grd_search_block *b)
{
    if (b->order != NULL)
        search_all(b, b->order, b->right);
    else if (b->right)
        search_all(b, NULL, true);
    else
        search_all(b, NULL, false);
}

/* NaN equals nothing. */
static void find_one_by_one(int64_t n, const T *numbers, int64_t count, const T *wanted, bool opposite, bool *to)
{
    for (int64_t first = 0; first < count; first += PIECE) {
        const int64_t length = at_most(count - first, PIECE);
        C x[PIECE];
        bool found[PIECE] = {false};
        for (int64_t i = 0; i < length; i++)
            x[i] = load(wanted[first + i]);
        for (int64_t k = 0; k < n; k++) {
            const C number = load(numbers[k]);
            for (int64_t i = 0; i < length; i++)
                found[i] |= x[i] == number;
        }
        for (int64_t i = 0; i < length; i++)
            to[first + i] = found[i] != opposite;
    }
}

static void find(int64_t n, const void *numbers, int64_t count, const void *wanted, bool opposite, bool *to)
{
    const T *sorted = numbers, *x = wanted;
    int64_t at[PIECE];
    if (grd_is_few(n)) {
        find_one_by_one(n, numbers, count, wanted, opposite, to);
        return;
    }
    for (int64_t first = 0; first < count; first += PIECE) {
        const int64_t length = at_most(count - first, PIECE);
        search(&(struct grd_search_block){.n = n, .count = length, .sorted = sorted, .wanted = x + first, .to = at});
        for (int64_t i = 0; i < length; i++)
            to[first + i] = (at[i] < n && load(sorted[at[i]]) == load(x[first + i])) != opposite;
    }
}

static int64_t runs(int64_t n, const void *sorted, int64_t *starts)
{
    const T *x = sorted;
    int64_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        starts[found] = i;
        found += i == 0 || load(x[i]) != load(x[i - 1]);
    }
    starts[found] = n;
    return found;
}

const struct grd_order_row GRD_TYPED(grd_order_row) = {.rank = rank, .extremes = extremes, .search = search, .find = find, .runs = runs};
