/* Sorts and ranks the elements of lines, and computes running extremes; see kernel/order.h. A line is the elements along the dimension that is
 * sorted. Searches in sorted numbers are in order_search.h. The build compiles this file once for each dtype that has an order, except bool, for
 * which the kernels of uint8 are used. */
#include "kernel/order.h"

#include <string.h>

#include "kernel/cpu/typed.h"

/* ---- Keys --------------------------------------------------------------------------------------------------------------------------- */

/* An unsigned integer as wide as an element. */
#if GRD_TAG == GRD_TAG_float64 || GRD_TAG == GRD_TAG_int64 || GRD_TAG == GRD_TAG_uint64
typedef uint64_t W;
#elif GRD_TAG == GRD_TAG_float32 || GRD_TAG == GRD_TAG_int32 || GRD_TAG == GRD_TAG_uint32
typedef uint32_t W;
#elif GRD_IS_HALF || GRD_TAG == GRD_TAG_int16 || GRD_TAG == GRD_TAG_uint16
typedef uint16_t W;
#else
typedef uint8_t W;
#endif

/* Returns the key of x, an unsigned integer that is ordered like x. NaN has the largest key, and -0 and 0 have equal keys. */
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

/* Returns the number of bits up to the highest set bit of x. */
GRD_INLINE int bits_of(uint64_t x)
{
    return x > 0 ? 64 - __builtin_clzll(x) : 0;
}

enum {
    FEW = 48,           /* maximum length of an array that is sorted by insertion */
    BLOCK = 64,         /* elements that place_of() compares with a key at a time, without a branch for each */
    GROUP = 16,         /* elements skipped together if none exceeds the root of a heap; larger groups would be skipped less often */
    LONG = 192,         /* minimum number of elements for which kthvalue selects by digits of the keys */
    DIGIT_BITS = 11,    /* maximum number of bits of a digit, a group of bits of a key by which keys are counted */
    FEW_DIGIT_BITS = 8, /* maximum number of bits of a digit (a group of bits of a key) if fewer than MANY elements are sorted */
    MANY = 4096,        /* minimum number of elements for which a sort with longer digits is faster */
    SAMPLE = 64,        /* elements compared with each other to guess whether an array has equal elements */
    /* sort_different() sorts n elements by only the highest 2 log2(n) + SPARE_BITS bits of their keys. Then hardly any two of n random keys agree in
     * all these bits, even if most keys share some of the highest bits. */
    SPARE_BITS = 10,
    /* A sort by only some bits of the keys is given up if more than ALIKE keys agree in these bits. */
    ALIKE = 8,
};

/* ---- Sorted lines --------------------------------------------------------------------------------------------------------------------- */

/* Returns the key of element i of b->in. If b->flipped, the bits of the key are inverted, which reverses the order. */
GRD_INLINE W key_at(const struct grd_rank_block *b, int64_t i)
{
    return (W)(key_of(((const T *)b->in)[i]) ^ (b->flipped ? (W) ~(W)0 : 0));
}

/* Returns the key of element i of b->in together with the position of the element, i. */
GRD_INLINE struct grd_ranked ranked(const struct grd_rank_block *b, int64_t i)
{
    return (struct grd_ranked){key_at(b, i), i};
}

/* The smallest and the largest key of some elements. */
struct range {
    W least, most;
};

/* Returns the smallest and the largest key of n elements of b->in, beginning with element `first`. */
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

/* True if one of n elements of b->in, beginning with element `first`, has a key above `bound`. */
GRD_INLINE bool has_larger(const struct grd_rank_block *b, int64_t first, int64_t n, W bound)
{
    const T *in = (const T *)b->in + first;
    const W flip = b->flipped ? (W) ~(W)0 : 0;
    W found = 0;
    for (int64_t i = 0; i < n; i++)
        found |= (W)(key_of(in[i]) ^ flip) > bound;
    return found != 0;
}

/* Writes the items (keys and positions) of the b->kept largest elements of b->in to b->items in descending order. b->items is a heap of the largest
 * elements so far, with the smallest of them as its root. GROUP elements at a time are skipped if none of them is larger than the root. In a long
 * array nearly all elements are skipped in this way. */
static void largest_by_heap(const struct grd_rank_block *b)
{
    const int64_t k = b->kept;
    for (int64_t i = 0; i < k; i++)
        b->items[i] = ranked(b, i);
    grd_rank_make_heap(b->items, k);
    for (int64_t first = k, end; first < b->n && k > 0; first = end) {
        end = grd_least(first + GROUP, b->n);
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

/* Moves the keys whose digit (key - least) >> shift is `digit` to the front of a list of n keys, and returns the number of these keys. */
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

/* Returns the key with position nth (from 0) in the ascending order of n keys. *ret_before receives the number of smaller keys, *ret_equal the number
 * of equal ones. A digit is a group of bits of a key. The function counts the keys by the highest digit in which they differ, keeps only the keys
 * with the digit of the nth key, and repeats this until all remaining keys are equal. Overwrites `keys`. */
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
        const int bits = bits_of((W)(most - least)), width = (int)grd_least(bits, grd_least(DIGIT_BITS, bits_of((uint64_t)n) - 1)),
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

/* Returns the position in b->in of the nth element, counted from 0, among the elements whose key is `key`. */
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

/* Finds the element that would have index b->first if b->in were sorted by descending keys (see key_at). Writes its index in b->in to
 * b->items[b->first].index. Among elements with equal keys, chooses the one to which a stable sort gives index b->first if `stably`, otherwise the
 * one that PyTorch's kthvalue returns. */
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

/* Fills b->items with items (keys and positions) of the elements of b->in, so that the items [b->first, b->first + b->kept) are those that b->kind
 * asks for. This function serves all kinds of ranking but GRD_RANK_MODE. */
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

/* Returns the position of the first NaN in b->in, or b->n if there is no NaN. */
static int64_t first_nan(const struct grd_rank_block *b)
{
    int64_t i = GRD_IS_FLOAT ? 0 : b->n;
    while (i < b->n && !is_nan(load(((const T *)b->in)[i])))
        i++;
    return i;
}

/* One 64-bit word for each element of an array, in sorted order. The lowest place_bits bits of a word are the position of the element in the array.
 * The bits above them are the key of the element minus the smallest key, or as many of the highest bits of this difference as fit. */
struct sorted_words {
    const uint64_t *words;
    uint64_t place; /* mask of the lowest place_bits bits, which hold the position */
    /* The smallest key. */
    uint64_t least;
    int place_bits;
    bool whole; /* true if each word holds all bits of (key - smallest key) */
};

/* Sorts the elements of b->in stably by their keys and returns one word per element (see struct sorted_words). If the difference of a key and the
 * smallest key does not fit into a word beside the position, the words are sorted in several rounds, by the lowest bits of the difference first. */
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
        uint64_t *sorted = grd_rank_words(words, spare, b->n, place_bits, (int)grd_least(place_bits + key_bits - done, 64));
        spare = sorted == words ? spare : words;
        words = sorted;
    }
    return (struct sorted_words){words, place, r.least, place_bits, key_bits <= room};
}

/* Sorts the elements of b->in stably, and writes them to b->values and their positions to b->indices. If the sorted words hold all bits of integer
 * keys, the elements are computed from the words, because reading them from b->in would access memory at random addresses. */
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

/* Compares up to SAMPLE elements of b->in, taken at equal distances. Returns true if all of them differ, which suggests that b->in has
 * few equal elements. */
static bool seem_to_differ(const struct grd_rank_block *b)
{
    const int64_t count = grd_least(b->n / 8, SAMPLE), apart = b->n / count;
    W some[SAMPLE];
    bool equal = false;
    for (int64_t i = 0; i < count; i++) {
        some[i] = key_at(b, i * apart);
        for (int64_t j = 0; j < i; j++)
            equal |= some[j] == some[i];
    }
    return !equal;
}

/* Sorts n words by the keys of their elements. The bits of a word that are set in the mask `place` hold the position of its element in b->in. The
 * caller has sorted the words by some bits of the keys, and in those bits all n keys agree. Returns false if two keys are equal. */
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

/* Sorts b->in by radix sort if all its elements differ. In this case every sorting algorithm gives the same result as PyTorch. The radix sort uses
 * only the highest bits of the keys, in which random keys rarely agree. Returns false, with nothing written, if two elements are equal or too many
 * keys agree in these bits. */
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
    const int bits = (int)grd_least(grd_least(key_bits, wanted), 64 - place_bits), rest = key_bits - bits;
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

/* Writes the item (key and position) of the mode of b->in to b->items[0]. In sorted order, the mode is the last element of the longest run of equal
 * keys. If several runs are equally long, the first of these runs counts. Each NaN counts as a run of its own. The key of NaN has all bits set. */
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

/* Sorts the n elements of `from` by the bits [low, high) of key - least, with a radix sort that takes the lowest digit first. `sorted` and `other`
 * are memory for n elements each. Returns the one of these two arrays that holds the result. */
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

/* Sorts n elements by insertion. Returns false, with the elements only partly sorted, if an element would move by more than ALIKE positions. */
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

/* Sorts n elements in ascending order. Returns the array that holds the result: `to`, `spare`, or `in` if all elements are equal. First sorts by the
 * highest bits of the keys only, in which random keys rarely agree, and then corrects the order by insertion. If too many keys agree in these bits,
 * sorts by all bits. */
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

/* True if x replaces `best`, the smallest element so far if `smallest`, otherwise the largest. An element that is equal to `best` replaces it, too,
 * and so does NaN. */
GRD_INLINE bool replaces(T x, T best, bool smallest)
{
    const C new = load(x), old = load(best);
    return (smallest ? new <= old : new >= old) || is_nan(new);
}

/* Writes the running maximum, or minimum if `smallest`, of n elements, and its positions (cummax, cummin). The loop branches on the result of
 * replaces(), which is rarely true. So the branch is predicted well, and the processor need not wait for the comparison of one element before it
 * begins with the next. */
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

/* Writes the running maximum, or minimum if `smallest`, along each of b->columns neighbouring columns, and its positions (cummax, cummin). Each row
 * of `in` is compared with the row before it in b->values, which holds the extremes so far. */
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
