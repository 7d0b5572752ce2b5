/* Keys, sorted lines and running extremes; see kernel/order.h. Search is in order_search.h. Typed: all dtypes that have an order; bool has the row of uint8. */
#include "kernel/order.h"

#include <string.h>

#include "kernel/cpu/typed.h"

/* ---- Keys --------------------------------------------------------------------------------------------------------------------------- */

#if GRD_TAG == GRD_TAG_float64 || GRD_TAG == GRD_TAG_int64 || GRD_TAG == GRD_TAG_uint64
typedef uint64_t W;
#elif GRD_TAG == GRD_TAG_float32 || GRD_TAG == GRD_TAG_int32 || GRD_TAG == GRD_TAG_uint32
typedef uint32_t W;
#elif GRD_IS_HALF || GRD_TAG == GRD_TAG_int16 || GRD_TAG == GRD_TAG_uint16
typedef uint16_t W;
#else
typedef uint8_t W;
#endif

/* An unsigned integer of the same order as x. */
GRD_INLINE W key_of(T x)
{
#if GRD_IS_FLOAT
#if GRD_TAG == GRD_TAG_float64
    const W infinity = (W)0x7ff << 52;
#elif GRD_TAG == GRD_TAG_float32
    const W infinity = (W)0x7f8 << 20;
#else
    const W infinity = GRD_TAG == GRD_TAG_float16 ? 0x7c00 : 0x7f80;
#endif
    const W sign = (W)((W)1 << (8 * sizeof(W) - 1));
    W bits;
    memcpy(&bits, &x, sizeof bits);
    bits = bits == sign ? 0 : bits;
    return (W)(bits & (W)~sign) > infinity ? (W) ~(W)0 : bits & sign ? (W)~bits : (W)(bits | sign);
#elif GRD_IS_SIGNED
    return (W)((W)x ^ (W)((W)1 << (8 * sizeof(W) - 1)));
#else
    return x;
#endif
}

GRD_INLINE bool is_nan(C x)
{
#if GRD_IS_FLOAT
    return x != x;
#else
    (void)x;
    return false;
#endif
}

GRD_INLINE int bits_of(uint64_t x)
{
    return x > 0 ? 64 - __builtin_clzll(x) : 0;
}

enum {
    FEW = 48,        /* elements that insertion sorts */
    BLOCK = 64,      /* elements that are compared with a key at once, without a branch for each */
    GROUP = 16,      /* the same for a bound that is rarely exceeded; in a longer group it would be more often */
    LONG = 192,      /* the least length of a line in which kthvalue selects by digits */
    DIGIT_BITS = 11, /* of a digit by which keys are selected, or at most sorted */
    FEW_DIGIT_BITS = 8,
    MANY = 4096,     /* the bits of a digit by which fewer elements than so many are sorted */
    SAMPLE = 64,     /* elements that are compared with each other to guess whether a line has equal ones */
    SPARE_BITS = 10, /* beyond twice those of n: so n random keys rarely agree, even if they use few of the highest bits */
    ALIKE = 8,       /* keys that may agree in the bits they are sorted by */
};

/* ---- Sorted lines --------------------------------------------------------------------------------------------------------------------- */

/* Elements by the key that the order of the block is ascending or descending in. */
GRD_INLINE W key_at(const struct grd_rank_block *b, int64_t i)
{
    return (W)(key_of(((const T *)b->in)[i]) ^ (b->flipped ? (W) ~(W)0 : 0));
}

GRD_INLINE struct grd_ranked ranked(const struct grd_rank_block *b, int64_t i)
{
    return (struct grd_ranked){key_at(b, i), i};
}

/* The least and the greatest of n keys. */
struct range {
    W least, most;
};

GRD_INLINE struct range range_of(const struct grd_rank_block *b, int64_t first, int64_t n)
{
    const T *in = (const T *)b->in + first;
    const W flip = b->flipped ? (W) ~(W)0 : 0;
    struct range r = {.least = (W) ~(W)0};
    for (int64_t i = 0; i < n; i++) {
        const W key = (W)(key_of(in[i]) ^ flip);
        r.least = key < r.least ? key : r.least;
        r.most = key > r.most ? key : r.most;
    }
    return r;
}

/* True if one of n elements has a key above the bound. */
GRD_INLINE bool has_larger(const struct grd_rank_block *b, int64_t first, int64_t n, W bound)
{
    const T *in = (const T *)b->in + first;
    const W flip = b->flipped ? (W) ~(W)0 : 0;
    W found = 0;
    for (int64_t i = 0; i < n; i++)
        found |= (W)(key_of(in[i]) ^ flip) > bound;
    return found != 0;
}

/* Skips the groups in which no element is larger than the root: in a long line those are nearly all. */
static void largest_by_heap(const struct grd_rank_block *b)
{
    const int64_t k = b->kept;
    for (int64_t i = 0; i < k; i++)
        b->items[i] = ranked(b, i);
    grd_rank_make_heap(b->items, k);
    for (int64_t first = k, end; first < b->n && k > 0; first = end) {
        end = at_most(first + GROUP, b->n);
        if (end - first == GROUP && !has_larger(b, first, GROUP, (W)b->items[0].key))
            continue;
        for (int64_t i = first; i < end; i++) {
            const struct grd_ranked item = ranked(b, i);
            if (item.key > b->items[0].key)
                grd_rank_replace_root(b->items, k, item);
        }
    }
    grd_rank_sort_heap(b->items, k);
}

/* ---- One element of the order ------------------------------------------------------------------------------------------------------------- */

/* Moves the keys that have a certain digit to the front of a list of n, and returns how many they are. */
GRD_INLINE int64_t keep_digit(W *keys, int64_t n, W least, int shift, W digit)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; i++) {
        const W key = keys[i];
        keys[kept] = key;
        kept += (W)(key - least) >> shift == digit;
    }
    return kept;
}

/* Returns the key at `nth`, from 0, of the ascending order of n keys, of which *ret_before are smaller and *ret_equal equal. Counts the keys by the highest digit
 * that they differ in, keeps those whose digit the nth key has, and begins again with these until all are equal. The list is overwritten. */
static W select_key(W *keys, int64_t n, int64_t nth, int64_t *ret_before, int64_t *ret_equal)
{
    const int64_t wanted = nth;
    for (;;) {
        W least = keys[0], most = keys[0];
        for (int64_t i = 0; i < n; i++) {
            least = keys[i] < least ? keys[i] : least;
            most = keys[i] > most ? keys[i] : most;
        }
        if (least == most) {
            *ret_before = wanted - nth;
            *ret_equal = n;
            return least;
        }
        int64_t counts[1 << DIGIT_BITS];
        const int bits = bits_of((W)(most - least)), width = (int)at_most(bits, at_most(DIGIT_BITS, bits_of((uint64_t)n) - 1)),
                  shift = bits - width;
        memset(counts, 0, ((size_t)1 << width) * sizeof *counts);
        for (int64_t i = 0; i < n; i++)
            counts[(W)(keys[i] - least) >> shift]++;
        W digit = 0;
        for (; counts[digit] <= nth; digit++)
            nth -= counts[digit];
        n = keep_digit(keys, n, least, shift, digit);
    }
}

/* Returns the place of the nth element, from 0, among those with this key. */
static int64_t place_of(const struct grd_rank_block *b, W key, int64_t nth)
{
    int64_t first = 0, here = 0;
    for (; b->n - first > BLOCK; first += BLOCK, nth -= here) {
        here = 0;
        for (int64_t i = 0; i < BLOCK; i++)
            here += key_at(b, first + i) == key;
        if (here > nth)
            break;
    }
    while (key_at(b, first) != key || nth-- > 0)
        first++;
    return first;
}

/* Writes to items[first].index the place of the element at `first` of the order, which is descending: `stably`, of equal elements the one that a stable sort would
 * put there, otherwise the one that PyTorch's kthvalue does. */
static void choose(const struct grd_rank_block *b, bool stably)
{
    int64_t before, equal;
    W *keys = (W *)b->items;
    for (int64_t i = 0; i < b->n; i++)
        keys[i] = (W)~key_at(b, i);
    const W key = (W)~select_key(keys, b->n, b->first, &before, &equal);
    if (stably || equal == 1) {
        b->items[b->first].index = place_of(b, key, b->first - before);
        return;
    }
    for (int64_t i = 0; i < b->n; i++)
        b->items[i] = ranked(b, i);
    grd_rank_kth(b->items, b->n, b->first);
}

static void arrange(const struct grd_rank_block *b)
{
    if (b->kind == GRD_RANK_LARGEST && grd_rank_by_heap(b->n, b->kept)) {
        largest_by_heap(b);
        return;
    }
    if (b->kind == GRD_RANK_MEDIAN || (b->kind == GRD_RANK_KTH && b->n >= LONG)) {
        choose(b, b->kind == GRD_RANK_MEDIAN);
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
    else
        grd_rank_kth(b->items, b->n, b->first);
}

/* The place of the first NaN; n when there is none. */
static int64_t first_nan(const struct grd_rank_block *b)
{
    int64_t i = GRD_IS_FLOAT ? 0 : b->n;
    while (i < b->n && !is_nan(load(((const T *)b->in)[i])))
        i++;
    return i;
}

/* The sorted words of a line. A word is the place of an element and, above it, as many bits of its key's difference from the least key as there is room for. */
struct sorted_words {
    const uint64_t *words;
    uint64_t place; /* the bits that are a place */
    uint64_t least;
    int place_bits;
    bool whole; /* all bits of the differences are there */
};

/* Differences of more bits than there is room for are sorted in several rounds, from the lowest bits on. */
static struct sorted_words sorted_words(const struct grd_rank_block *b)
{
    uint64_t *words = (uint64_t *)b->items, *spare = words + b->n;
    const struct range r = range_of(b, 0, b->n);
    const int place_bits = bits_of((uint64_t)b->n - 1), room = 64 - place_bits, key_bits = bits_of((W)(r.most - r.least));
    const uint64_t place = ((uint64_t)1 << place_bits) - 1;
    for (int64_t i = 0; i < b->n; i++)
        words[i] = (uint64_t)(W)(key_at(b, i) - r.least) << place_bits | (uint64_t)i;
    for (int done = 0; done < key_bits; done += room) {
        for (int64_t i = 0; i < b->n && done > 0; i++) {
            const uint64_t at = words[i] & place;
            words[i] = (uint64_t)(W)(key_at(b, (int64_t)at) - r.least) >> done << place_bits | at;
        }
        uint64_t *sorted = grd_rank_words(words, spare, b->n, place_bits, (int)at_most(place_bits + key_bits - done, 64));
        spare = sorted == words ? spare : words;
        words = sorted;
    }
    return (struct sorted_words){words, place, r.least, place_bits, key_bits <= room};
}

/* Stable sort. If the sorted words hold all bits of the keys, integers are computed from the words, since loads from the line would be at random
 * places. */
static void sort_stably(const struct grd_rank_block *b)
{
    const struct sorted_words sorted = sorted_words(b);
    const uint64_t *words = sorted.words;
    T *values = (T *)b->values;
    if (!GRD_IS_FLOAT && sorted.whole) {
        const W base = (W)sorted.least, flip = b->flipped ? (W) ~(W)0 : 0;
        for (int64_t i = 0; i < b->n; i++)
            values[i * b->step] = (T)key_of((T)(((W)(words[i] >> sorted.place_bits) + base) ^ flip));
    } else
        for (int64_t i = 0; i < b->n; i++)
            values[i * b->step] = ((const T *)b->in)[words[i] & sorted.place];
    for (int64_t i = 0; i < b->n; i++)
        b->indices[i * b->step] = (int64_t)(words[i] & sorted.place);
}

/* True if a sample of a line has no two equal elements. */
static bool seem_to_differ(const struct grd_rank_block *b)
{
    const int64_t count = at_most(b->n / 8, SAMPLE), apart = b->n / count;
    W some[SAMPLE];
    bool equal = false;
    for (int64_t i = 0; i < count; i++) {
        some[i] = key_at(b, i * apart);
        for (int64_t j = 0; j < i; j++)
            equal |= some[j] == some[i];
    }
    return !equal;
}

/* Sorts n words, whose keys are the same but for the lowest bits, by these; false if two keys are the same. */
static bool sort_alike(const struct grd_rank_block *b, uint64_t *words, int64_t n, uint64_t place)
{
    for (int64_t i = 1; i < n; i++) {
        const uint64_t word = words[i];
        const W key = key_at(b, (int64_t)(word & place));
        int64_t j = i;
        for (; j > 0 && key_at(b, (int64_t)(words[j - 1] & place)) > key; j--)
            words[j] = words[j - 1];
        if (j > 0 && key_at(b, (int64_t)(words[j - 1] & place)) == key)
            return false;
        words[j] = word;
    }
    return true;
}

/* Sorts a line of distinct elements, which has one order whatever the algorithm. Returns false, with nothing written, if it finds two equal
 * elements, or many that agree in the bits it sorts by: the highest bits of the keys, as many as random keys rarely agree in. */
static bool sort_different(const struct grd_rank_block *descending)
{
    struct grd_rank_block ascending = *descending, *const b = &ascending;
    const int64_t n = b->n;
    T *values = (T *)b->values;
    b->flipped = !b->flipped;
    const struct range r = range_of(b, 0, n);
    const int place_bits = bits_of((uint64_t)n - 1), key_bits = bits_of((W)(r.most - r.least)), wanted = 2 * place_bits + SPARE_BITS;
    if (key_bits < wanted - SPARE_BITS / 2 || !seem_to_differ(b))
        return false;
    const int bits = (int)at_most(at_most(key_bits, wanted), 64 - place_bits), rest = key_bits - bits;
    const uint64_t place = ((uint64_t)1 << place_bits) - 1;
    uint64_t *words = (uint64_t *)b->items;
    for (int64_t i = 0; i < n; i++)
        words[i] = (uint64_t)(W)(key_at(b, i) - r.least) >> rest << place_bits | (uint64_t)i;
    words = grd_rank_words(words, words + n, n, place_bits, place_bits + bits);
    for (int64_t i = 1, alike = 1; i <= n; i++) {
        if (i < n && words[i] >> place_bits == words[i - 1] >> place_bits) {
            if (++alike > ALIKE || rest == 0)
                return false;
            continue;
        }
        if (alike > 1 && !sort_alike(b, words + i - alike, alike, place))
            return false;
        alike = 1;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t index = (int64_t)(words[i] & place);
        values[i * b->step] = ((const T *)b->in)[index];
        b->indices[i * b->step] = index;
    }
    return true;
}

/* Moves the mode to the front: the last item of the first of the longest runs. The key of NaN, which is no run, has all bits of the element's set. */
static void find_mode(const struct grd_rank_block *b)
{
    const uint64_t nan = GRD_IS_FLOAT ? UINT64_MAX >> (64 - 8 * sizeof(T)) : 0;
    const struct sorted_words sorted = sorted_words(b);
    struct grd_ranked last = {0}, mode = {0};
    for (int64_t i = 0, start = 0, longest = 0; i < b->n; i++) {
        const struct grd_ranked item = ranked(b, (int64_t)(sorted.words[i] & sorted.place));
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
    if (b->kind == GRD_RANK_SORT && b->n > FEW && sort_different(b))
        return;
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
        values[i * b->step] = ((const T *)b->in)[index];
        b->indices[i * b->step] = index;
    }
}

/* Radix sort, from the least significant digit of the keys on. Returns `sorted` or `other`, whichever holds the result. */
static T *sort_by_bits(int64_t n, const T *from, T *sorted, T *other, W least, int low, int high)
{
    const int most_width = n < MANY ? FEW_DIGIT_BITS : DIGIT_BITS, digits = (high - low + most_width - 1) / most_width;
    const int width = (high - low + digits - 1) / digits;
    const W mask = (W)(((uint64_t)1 << width) - 1);
    for (int shift = low; shift < high; shift += width) {
        int64_t at[1 << DIGIT_BITS], next = 0;
        memset(at, 0, ((size_t)1 << width) * sizeof *at);
        for (int64_t i = 0; i < n; i++)
            at[(W)(key_of(from[i]) - least) >> shift & mask]++;
        for (int64_t digit = 0; digit <= (int64_t)mask; digit++) {
            const int64_t count = at[digit];
            at[digit] = next;
            next += count;
        }
        for (int64_t i = 0; i < n; i++)
            sorted[at[(W)(key_of(from[i]) - least) >> shift & mask]++] = from[i];
        from = sorted;
        sorted = other;
        other = (T *)(uintptr_t)from;
    }
    return other;
}

/* Inserts what is out of order; false if an element would move further than ALIKE places. */
static bool insert(int64_t n, T *x)
{
    for (int64_t i = 1; i < n; i++) {
        const T moved = x[i];
        int64_t to = i;
        for (; to > 0 && key_of(x[to - 1]) > key_of(moved); to--) {
            if (i - to == ALIKE)
                return false;
            x[to] = x[to - 1];
        }
        x[to] = moved;
    }
    return true;
}

/* Sorts by the highest bits of the keys, as many as random keys rarely agree in; if two keys agree in these, sorts by all bits. */
static const void *sort(int64_t n, const void *in, void *to, void *spare)
{
    const struct range r = range_of(&(struct grd_rank_block){.in = in}, 0, n);
    const int bits = n > 0 ? bits_of((W)(r.most - r.least)) : 0, enough = 2 * bits_of((W)n) + 2;
    if (bits == 0)
        return in;
    if (bits > enough) {
        T *const sorted = sort_by_bits(n, in, to, spare, r.least, bits - enough, bits);
        if (insert(n, sorted))
            return sorted;
    }
    return sort_by_bits(n, in, to, spare, r.least, 0, bits);
}

/* ---- Running extremes --------------------------------------------------------------------------------------------------------------------- */

/* True if x takes the place of the extreme so far. */
GRD_INLINE bool replaces(T x, T best, bool smallest)
{
    const C new = load(x), old = load(best);
    return (smallest ? new <= old : new >= old) || is_nan(new);
}

/* A branch, since an extreme is rarely replaced and otherwise nothing waits for the step before. */
GRD_INLINE void extremes_of_line(const struct grd_extremes_block *b, bool smallest)
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
GRD_INLINE void extremes_of_columns(const struct grd_extremes_block *b, bool smallest)
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

#include "kernel/cpu/order_search.h"

const struct grd_order_row GRD_TYPED(grd_order_row) = {
    .rank = rank, .sort = sort, .extremes = extremes, .search = search, .find = find, .runs = runs};
