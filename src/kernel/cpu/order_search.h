/* Searches for numbers among sorted numbers, tests whether numbers are members of a set, and finds runs of equal numbers; see kernel/order.h.
 * Included by order.c only. */
#ifndef GRD_KERNEL_CPU_ORDER_SEARCH_H
#define GRD_KERNEL_CPU_ORDER_SEARCH_H

/* LANES: wanted numbers that are searched for at once. PIECE: wanted numbers that count_all() and find() process at a time. COUNTED: maximum
 * number of sorted numbers for which counting is faster than a binary search. */
enum { LANES = 8, PIECE = 512, COUNTED = 64 };

/* True if `number`, one of the sorted numbers, comes before the insertion point of `wanted`. If `right`, this point is after all numbers that
 * are equal to `wanted`, otherwise before them. `nan` is a constant where this is inlined; it must be true if `wanted` may be NaN. */
GRD_INLINE bool passes(C number, C wanted, bool right, bool nan)
{
    const bool does = right ? number <= wanted : number < wanted;
    return nan ? (int)does | ((int)is_nan(wanted) & ((int)right | (int)!is_nan(number))) : does;
}

/* Finds the insertion points of LANES wanted numbers among n sorted numbers by binary search. at[lane] must be 0 and receives the insertion point of
 * wanted[lane]. If `order` is not NULL, the numbers in `sorted` are not in order, and order[i] is the index of the i-th smallest one. All searches
 * take the same number of steps, so that their cache misses overlap. There are no branches, because the direction of a search is unpredictable. */
GRD_INLINE void search_lanes(const T *sorted, const int64_t *order, int64_t n, const C *wanted, bool right, bool nan, int64_t *at)
{
    for (int64_t rest = n; rest > 0; rest /= 2) { /* the length of the range that still has to be searched */
        const int64_t half = (rest + 1) / 2;
        UNROLLED for (int lane = 0; lane < LANES; lane++)
        {
            const int64_t middle = at[lane] + half - 1;
            const T number = sorted[order != NULL ? order[middle] : middle];
            at[lane] += half & -(int64_t)passes(load(number), wanted[lane], right, nan);
        }
    }
}

/* Writes the insertion points of all wanted numbers of the block to b->to. If their count is no multiple of LANES, the unused lanes search for 0. */
GRD_INLINE void search_all(const struct grd_search_block *b, const int64_t *order, bool right)
{
    for (int64_t first = 0; first < b->count; first += LANES) {
        const int64_t lanes = grd_least(b->count - first, LANES);
        const T *some = (const T *)b->wanted + first;
        T last[LANES] = {0};
        C wanted[LANES];
        int64_t at[LANES] = {0};
        bool nan = false;
        if (lanes < LANES)
            some = memcpy(last, some, (size_t)lanes * sizeof *some);
        UNROLLED for (int lane = 0; lane < LANES; lane++)
        {
            wanted[lane] = load(some[lane]);
            nan |= is_nan(wanted[lane]);
        }
        if (nan)
            search_lanes(b->sorted, order, b->n, wanted, right, true, at);
        else
            search_lanes(b->sorted, order, b->n, wanted, right, false, at);
        for (int64_t lane = 0; lane < lanes; lane++) {
            if (b->narrow)
                ((int32_t *)b->to)[first + lane] = (int32_t)at[lane];
            else
                ((int64_t *)b->to)[first + lane] = at[lane];
        }
    }
}

/* For each wanted number of the block, writes its insertion point to b->to, i.e. how many sorted numbers come before the wanted number. If there are
 * few sorted numbers, counting is faster than a search. NaN are at the end of the sorted numbers and are counted only if the wanted number is
 * NaN and `right` is true. */
GRD_INLINE void count_all(const struct grd_search_block *b, bool right)
{
    const T *numbers = b->sorted;
    int64_t n = b->n;
    while (n > 0 && is_nan(load(numbers[n - 1])))
        n--;
    for (int64_t first = 0; first < b->count; first += PIECE) {
        const int64_t length = grd_least(b->count - first, PIECE);
        C x[PIECE];
        W at[PIECE] = {0};
        for (int64_t i = 0; i < length; i++)
            x[i] = load(((const T *)b->wanted)[first + i]);
        for (int64_t k = 0; k < n; k++) {
            const C number = load(numbers[k]);
            for (int64_t i = 0; i < length; i++)
                at[i] = (W)(at[i] + (right ? !(number > x[i]) : !(number >= x[i])));
        }
        for (int64_t i = 0; i < length; i++) {
            const int64_t place = right && is_nan(x[i]) ? b->n : (int64_t)at[i];
            if (b->narrow)
                ((int32_t *)b->to)[first + i] = (int32_t)place;
            else
                ((int64_t *)b->to)[first + i] = place;
        }
    }
}

GRD_INLINE bool is_ascending(int64_t n, const T *numbers)
{
    for (int64_t k = 1; k < n; k++)
        if (!(load(numbers[k - 1]) <= load(numbers[k]) || is_nan(load(numbers[k]))))
            return false;
    return true;
}

/* Writes the insertion points of all wanted numbers of the block, found by counting or by binary search. If the caller has passed numbers in
 * b->sorted that are not in ascending order, only binary search gives the same results as PyTorch, so counting is not used. */
static void search(const struct grd_search_block *b)
{
    if (b->order == NULL && b->n <= COUNTED && b->count >= LANES && is_ascending(b->n, b->sorted)) {
        if (b->right)
            count_all(b, true);
        else
            count_all(b, false);
    } else if (b->order != NULL)
        search_all(b, b->order, b->right);
    else if (b->right)
        search_all(b, NULL, true);
    else
        search_all(b, NULL, false);
}

/* Sets to[i], for each i < count, to true if wanted[i] is among the n numbers, otherwise to false. If `opposite`, negates to[i]. Compares each wanted
 * number with each of the n numbers. NaN equals no number. */
static void find_one_by_one(int64_t n, const T *numbers, int64_t count, const T *wanted, bool opposite, bool *to)
{
    for (int64_t first = 0; first < count; first += PIECE) {
        const int64_t length = grd_least(count - first, PIECE);
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
        const int64_t length = grd_least(count - first, PIECE);
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

#endif
