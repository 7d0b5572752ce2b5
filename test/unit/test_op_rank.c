/* Tests that grd_rank_largest returns the largest scores in the same order as PyTorch's topk. test/record_random.py recorded that order. */
#include <math.h>

#include "kernel/rank.h"
#include "recorded_random.h"
#include "support.h"

enum { MOST = 300 };

static void expect_order(const double *scores, int64_t n, const int64_t *order, int64_t k)
{
    struct grd_ranked items[MOST];
    for (int64_t i = 0; i < n; i++)
        items[i] = (struct grd_ranked){grd_order_key(scores[i]), i};
    grd_rank_largest(items, n, k);
    for (int64_t i = 0; i < k; i++)
        assert_int_equal(items[i].index, order[i]);
}

static void equal_scores_are_ordered_as_in_pytorch(void **state)
{
    (void)state;
    double scores[MOST];
    for (int i = 0; i < MOST; i++)
        scores[i] = i * 7 % 11;
    expect_order(scores, MOST, equal_order, sizeof equal_order / sizeof *equal_order);
    expect_order(scores, MOST, equal_order_few, sizeof equal_order_few / sizeof *equal_order_few);
}

static void heap_sort_replaces_quickselect_after_bad_pivots(void **state)
{
    (void)state;
    expect_order(bad_pivots, sizeof bad_pivots / sizeof *bad_pivots, bad_pivots_order, sizeof bad_pivots_order / sizeof *bad_pivots_order);
}

static void nan_ranks_above_infinity(void **state)
{
    (void)state;
    const double scores[] = {1, NAN, INFINITY, -1, NAN};
    const int64_t order[] = {1, 4, 2, 0, 3};
    expect_order(scores, 5, order, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_scores_are_ordered_as_in_pytorch),
        cmocka_unit_test(heap_sort_replaces_quickselect_after_bad_pivots),
        cmocka_unit_test(nan_ranks_above_infinity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
