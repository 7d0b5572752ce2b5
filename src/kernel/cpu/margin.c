/* Computes sums of margins between classes and their derivatives, for multilabel_margin_loss; see kernel/margin.h. The build compiles this file once
 * for float32 and once for float64. */
#include "kernel/margin.h"

#include <string.h>

#include "kernel/cpu/typed.h"

/* Returns the sum of max(0, least + x[i]) over all classes i that are no targets (is_target[i] is 0), where `least` is 1 minus the element of one
 * target. Adds 1 to slopes[i] for each class i with a positive term, and writes the number of positive terms to *ret_count. */
static T add_margins(int64_t classes, const T *x, T least, const uint8_t *is_target, T *slopes, T *ret_count)
{
    T sum = 0, count = 0;
    for (int64_t i = 0; i < classes; i++) {
        const T margin = is_target[i] ? 0 : least + x[i], counts = margin > 0;
        sum += counts ? margin : margin == margin ? 0 : margin;
        slopes[i] += counts;
        count += counts;
    }
    *ret_count = count;
    return sum;
}

static void margin_rows(int64_t rows, int64_t classes, const void *data, const int64_t *target, uint8_t *is_target, void *ret_sums,
                        void *ret_slopes)
{
    for (int64_t row = 0; row < rows; row++, target += classes) {
        const T *x = (const T *)data + row * classes;
        T *slopes = (T *)ret_slopes + row * classes, count;
        double sum = 0;
        memset(slopes, 0, (size_t)classes * sizeof *slopes);
        memset(is_target, 0, (size_t)classes);
        for (int64_t t = 0; t < classes && target[t] >= 0; t++)
            is_target[target[t]] = 1;
        for (int64_t t = 0; t < classes && target[t] >= 0; t++) {
            sum += (double)add_margins(classes, x, 1 - x[target[t]], is_target, slopes, &count);
            slopes[target[t]] -= count;
        }
        ((T *)ret_sums)[row] = (T)sum;
    }
}

const struct grd_margin_row GRD_TYPED(grd_margin_row) = {.rows = margin_rows};
