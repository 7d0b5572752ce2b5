/* Sorts, and selects the largest or the k-th items, so that equal items come in the same order as in PyTorch's topk, sort and kthvalue.
 *
 * The order of equal items depends on every step of the algorithm, so this file has the same algorithms as PyTorch, step by step. PyTorch sorts with
 * the C++ library's introsort (Musser, 1997): the pivot is the median of the second, middle and last element, short ranges are sorted by insertion,
 * and ranges with too many bad pivots by heapsort. topk uses the library's heap selection for a small k, and its introselect followed by introsort
 * for a larger k. kthvalue is PyTorch's own quickselect (Sedgewick, 1978). Stable sorts may use any algorithm: here they are a radix sort that starts
 * at the least significant digit, or insertion sort for a few elements. */
#include "kernel/rank.h"

#include "kernel/cpu/loop.h"

/* SHORT_SELECTION, SHORT_SORT: the longest ranges that selection and sorting finish by insertion sort. MANY: if at least so many numbers are sorted,
 * the radix sort uses digits of WIDE_DIGIT bits instead of DIGIT bits. VALUES: the number of values of a wide digit. */
enum { SHORT_SELECTION = 3, SHORT_SORT = 16, MANY = 4096, DIGIT = 8, WIDE_DIGIT = 11, VALUES = 1 << WIDE_DIGIT };

/* True if x comes before y in descending order. */
static inline bool before(const struct grd_ranked *x, const struct grd_ranked *y)
{
    return x->key > y->key;
}

static inline void swap(struct grd_ranked *x, struct grd_ranked *y)
{
    const struct grd_ranked saved = *x;
    *x = *y;
    *y = saved;
}

/* ---- A heap whose root comes last in order ---------------------------------------------------------------------------------------------- */

/* Puts `item` into a heap of n items that has a hole. First moves the hole down to a leaf: each step moves the child with the smaller key up into the
 * hole. Then moves the hole up to where `item` fits. The C++ library takes the same steps, which decide the order of equal keys. */
static void fill_hole(struct grd_ranked *heap, int64_t hole, int64_t n, struct grd_ranked item)
{
    const int64_t top = hole;
    for (int64_t child = 2 * hole + 2; child <= n; child = 2 * hole + 2) {
        if (child == n || before(&heap[child], &heap[child - 1]))
            child--;
        heap[hole] = heap[child];
        hole = child;
    }
    for (int64_t parent = (hole - 1) / 2; hole > top && before(&heap[parent], &item); parent = (hole - 1) / 2) {
        heap[hole] = heap[parent];
        hole = parent;
    }
    heap[hole] = item;
}

void grd_rank_make_heap(struct grd_ranked *items, int64_t k)
{
    for (int64_t i = k / 2 - 1; i >= 0; i--)
        fill_hole(items, i, k, items[i]);
}

void grd_rank_replace_root(struct grd_ranked *heap, int64_t k, struct grd_ranked item)
{
    fill_hole(heap, 0, k, item);
}

void grd_rank_sort_heap(struct grd_ranked *heap, int64_t k)
{
    for (int64_t last = k - 1; last > 0; last--) {
        const struct grd_ranked item = heap[last];
        heap[last] = heap[0];
        fill_hole(heap, 0, last, item);
    }
}

/* Makes the first k items a heap of the k largest of n items. */
static void select_in_heap(struct grd_ranked *items, int64_t k, int64_t n)
{
    grd_rank_make_heap(items, k);
    for (int64_t i = k; i < n; i++)
        if (before(&items[i], &items[0])) {
            const struct grd_ranked item = items[i];
            items[i] = items[0];
            fill_hole(items, 0, k, item);
        }
}

/* ---- Partition and insertion --------------------------------------------------------------------------------------------------------- */

/* Returns the median of the three items. The order of the comparisons decides between equal items, as in the C++ library. */
static struct grd_ranked *median(struct grd_ranked *a, struct grd_ranked *b, struct grd_ranked *c)
{
    if (before(a, b))
        return before(b, c) ? b : before(a, c) ? c : a;
    return before(a, c) ? a : before(b, c) ? c : b;
}

/* Lists the items of a block (BLOCK neighbouring items) that belong on the other side of the pivot. For a block left of the pivot, `at` holds the
 * distances of these items from the first item of the block; for a block right of the pivot, their distances from its last item. */
enum { BLOCK = 64 };
struct misplaced {
    uint8_t at[BLOCK];
    int first, n; /* at[first] to at[first + n - 1] are the misplaced items not yet exchanged */
};

/* Exchanges the k-th misplaced item of the left block with the k-th misplaced item of the right block, for each k until one block has no more. Items
 * of the right block are counted from its end. */
static void exchange(struct grd_ranked *left, struct misplaced *l, struct grd_ranked *right, struct misplaced *r)
{
    const int n = l->n < r->n ? l->n : r->n;
    for (int i = 0; i < n; i++)
        swap(left + l->at[l->first + i], right - r->at[r->first + i]);
    l->first += n, r->first += n;
    l->n -= n, r->n -= n;
}

/* Hoare's partition by blocks. It runs while there are at least two blocks of items between *i and *j. It compares all items of a block before it
 * exchanges any, so that the comparisons need no branches (half of which would be mispredicted). It makes the same exchanges as the simple loop in
 * `partition`. */
static void partition_blocks(struct grd_ranked *items, uint64_t pivot, int64_t *i, int64_t *j)
{
    struct misplaced l = {.n = 0}, r = {.n = 0};
    while (*j - *i >= 2 * BLOCK) {
        struct grd_ranked *left = items + *i, *right = items + *j - 1;
        if (l.n == 0) {
            l.first = 0;
            for (int k = 0; k < BLOCK; l.n += left[k].key <= pivot, k++)
                l.at[l.n] = (uint8_t)k;
        }
        if (r.n == 0) {
            r.first = 0;
            for (int k = 0; k < BLOCK; r.n += right[-k].key >= pivot, k++)
                r.at[r.n] = (uint8_t)k;
        }
        exchange(left, &l, right, &r);
        *i += l.n == 0 ? BLOCK : 0;
        *j -= r.n == 0 ? BLOCK : 0;
    }
    *i += l.n > 0 ? l.at[l.first] : 0;
    *j -= r.n > 0 ? r.at[r.first] : 0;
}

/* Partitions items [begin, end) by a pivot and returns the index of the first item of the right part. In descending order no item of the left part
 * belongs after the pivot, and no item of the right part belongs before it. */
static int64_t partition(struct grd_ranked *items, int64_t begin, int64_t end)
{
    const struct grd_ranked *pivot = &items[begin];
    int64_t i = begin + 1, j = end;
    swap(&items[begin], median(&items[begin + 1], &items[begin + (end - begin) / 2], &items[end - 1]));
    partition_blocks(items, pivot->key, &i, &j);
    for (;; i++) {
        while (before(&items[i], pivot))
            i++;
        do
            j--;
        while (before(pivot, &items[j]));
        if (i >= j)
            return i;
        swap(&items[i], &items[j]);
    }
}

/* Inserts items `first` to n - 1 into the sorted items before them. The sort is stable. If not `guarded`, the caller guarantees that no item belongs
 * before items[0], so that the bound need not be checked. `ascending` and `guarded` are compile-time constants. */
GRD_INLINE void insert_items(struct grd_ranked *items, int64_t first, int64_t n, bool ascending, bool guarded)
{
    for (int64_t i = first; i < n; i++) {
        const struct grd_ranked item = items[i];
        int64_t j = i;
        for (; (!guarded || j > 0) && (ascending ? before(&items[j - 1], &item) : before(&item, &items[j - 1])); j--)
            items[j] = items[j - 1];
        items[j] = item;
    }
}

GRD_INLINE void sort_by_insertion(struct grd_ranked *items, int64_t n, bool ascending)
{
    insert_items(items, 1, n, ascending, true);
}

/* Returns how many partitions may be nested before heap selection or heapsort takes over: twice the binary logarithm of n. */
static int depth_limit(int64_t n)
{
    return 2 * (63 - __builtin_clzll((uint64_t)n));
}

/* ---- Selection, sorting -------------------------------------------------------------------------------------------------------------- */

/* Partially sorts the n items in descending order: items[nth] becomes the item that a full sort would put there, and no item before position `nth`
 * has a smaller key. `nth` must be less than n. */
static void select_nth(struct grd_ranked *items, int64_t n, int64_t nth)
{
    int64_t begin = 0, end = n;
    for (int depth = depth_limit(n); end - begin > SHORT_SELECTION; depth--) {
        if (depth == 0) {
            select_in_heap(items + begin, nth + 1 - begin, end - begin);
            swap(&items[begin], &items[nth]);
            return;
        }
        const int64_t cut = partition(items, begin, end);
        if (cut <= nth)
            begin = cut;
        else
            end = cut;
    }
    sort_by_insertion(items + begin, end - begin, false);
}

/* Sorts items [begin, end) roughly: partitions them until each range has at most SHORT_SORT items. The items within a range are not sorted yet. */
static void sort_roughly(struct grd_ranked *items, int64_t begin, int64_t end, int depth)
{
    for (; end - begin > SHORT_SORT; depth--) {
        if (depth == 0) {
            select_in_heap(items + begin, end - begin, end - begin);
            grd_rank_sort_heap(items + begin, end - begin);
            return;
        }
        const int64_t cut = partition(items, begin, end);
        sort_roughly(items, cut, end, depth - 1);
        end = cut;
    }
}

void grd_rank_sort(struct grd_ranked *items, int64_t n)
{
    if (n > 1) {
        const int64_t guarded = grd_least(n, SHORT_SORT);
        sort_roughly(items, 0, n, depth_limit(n));
        sort_by_insertion(items, guarded, false);
        /* The remaining items need no check for the start of the array: the item that comes first in order is already among the first SHORT_SORT
         * items. */
        insert_items(items, guarded, n, false, false);
    }
}

void grd_rank_largest(struct grd_ranked *items, int64_t n, int64_t k)
{
    if (k == 0)
        return;
    if (grd_rank_by_heap(n, k)) {
        select_in_heap(items, k, n);
        grd_rank_sort_heap(items, k);
        return;
    }
    select_nth(items, n, k - 1);
    grd_rank_sort(items, k - 1);
}

static void put_in_order(struct grd_ranked *x, struct grd_ranked *y)
{
    if (before(y, x))
        swap(x, y);
}

/* Quickselect: the pivot is the median of the first, middle and last item of the range that still holds position k. */
void grd_rank_kth(struct grd_ranked *items, int64_t n, int64_t k)
{
    int64_t first = 0, last = n - 1;
    while (last > first + 1) {
        swap(&items[first + (last - first) / 2], &items[first + 1]);
        put_in_order(&items[first + 1], &items[last]);
        put_in_order(&items[first], &items[last]);
        put_in_order(&items[first + 1], &items[first]);
        const struct grd_ranked pivot = items[first];
        int64_t i = first + 2, j = last;
        partition_blocks(items, pivot.key, &i, &j);
        for (;; i++) {
            while (before(&items[i], &pivot))
                i++;
            do
                j--;
            while (before(&pivot, &items[j]));
            if (j < i)
                break;
            swap(&items[i], &items[j]);
        }
        swap(&items[first], &items[j]);
        if (j <= k)
            first = i;
        if (j >= k)
            last = j - 1;
    }
    if (last == first + 1)
        put_in_order(&items[first], &items[last]);
}

/* ---- Stable order ------------------------------------------------------------------------------------------------------------------- */

/* One pass of a radix sort: copies n words to another array, sorted by their bits `shift` to shift + bits - 1. The sort is stable. */
static void sort_by_digit(const uint64_t *from, uint64_t *to, int64_t n, int shift, int bits)
{
    const uint64_t values = (uint64_t)1 << bits;
    int64_t at[VALUES], next = 0;
    memset(at, 0, values * sizeof *at);
    for (int64_t i = 0; i < n; i++)
        at[from[i] >> shift & (values - 1)]++;
    for (uint64_t value = 0; value < values; value++) {
        const int64_t count = at[value];
        at[value] = next;
        next += count;
    }
    for (int64_t i = 0; i < n; i++)
        to[at[from[i] >> shift & (values - 1)]++] = from[i];
}

uint64_t *grd_rank_words(uint64_t *words, uint64_t *spare, int64_t n, int first, int end)
{
    const int width = n < MANY ? DIGIT : WIDE_DIGIT, digits = (end - first + width - 1) / width;
    const int bits = digits > 0 ? (end - first + digits - 1) / digits : 0; /* bits of each digit; the last digit has the remaining bits */
    for (int shift = first; shift < end; shift += bits) {
        sort_by_digit(words, spare, n, shift, end - shift < bits ? end - shift : bits);
        uint64_t *sorted = spare;
        spare = words;
        words = sorted;
    }
    return words;
}

void grd_rank_few_stably(struct grd_ranked *items, int64_t n)
{
    sort_by_insertion(items, n, true);
}
