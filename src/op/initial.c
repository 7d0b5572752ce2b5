/* Draws initial values of parameters for gradus.nn.init. Schema: schema/random.toml. The truncated normal distribution is drawn by rejection. Each
 * round draws numbers for the whole tensor, even if few elements were rejected, because this gives PyTorch's numbers for the same seed. */
#include <math.h>

#include "base/error.h"
#include "core/tensor.h"
#include "gen/uses/op/initial.h"
#include "gradus/library.h"
#include "op/formula.h"

static bool any(grd_tensor *t)
{
    return grd_scalar_int64(grd_item(grd_any(t))) != 0 && !grd_pending();
}

/* Returns a tensor like `self` of random numbers from the normal distribution cut to [a, b]. Numbers outside [a, b] are replaced by new random
 * numbers until all are inside. */
static grd_tensor *drawn_by_rejection(grd_tensor *self, double mean, double std, double a, double b, grd_generator *generator)
{
    const grd_scalar low = grd_float(grd_rounded_to(a, (grd_dtype)self->dtype)),
                     high = grd_float(grd_rounded_to(b, (grd_dtype)self->dtype));
    grd_tensor *values = grd_normal_(grd_empty_like(self), .mean = mean, .std = std, .generator = generator);
    for (;;) {
        grd_tensor *outside = grd_logical_or(grd_lt_scalar(values, low), grd_gt_scalar(values, high));
        if (!any(outside))
            return values;
        values = grd_where(outside, grd_normal_(grd_empty_like(values), .mean = mean, .std = std, .generator = generator), values);
    }
}

/* Returns a tensor like `self` of random numbers from the normal distribution cut to [a, b]. Each number is drawn
 * uniformly from [a, b] and accepted with a probability proportional to the normal density. Rejected numbers are drawn again. */
static grd_tensor *drawn_from_uniform(grd_tensor *self, double mean, double std, double a, double b, grd_generator *generator)
{
    const double mode = fmax(a, fmin(mean, b)), log_peak = -0.5 * pow((mode - mean) / std, 2);
    grd_tensor *values = NULL, *rejected = NULL;
    while (rejected == NULL || any(rejected)) {
        grd_tensor *drawn = grd_uniform_(grd_empty_like(self), .from = a, .to = b, .generator = generator);
        grd_tensor *distance = grd_div_scalar_(grd_sub_scalar(drawn, grd_float(mean)), grd_float(std));
        grd_tensor *log_density =
            grd_sub_scalar_(grd_mul_scalar_(grd_pow_scalar_(distance, grd_int(2)), grd_float(-0.5)), grd_float(log_peak));
        grd_tensor *too_high = grd_gt(grd_log_(grd_uniform_(grd_empty_like(self), .generator = generator)), log_density);
        values = values == NULL ? drawn : grd_where(rejected, drawn, values);
        rejected = rejected == NULL ? too_high : grd_logical_and(rejected, too_high);
    }
    return values;
}

grd_tensor *op_hidden_truncated_normal(grd_tensor *self, double mean, double std, double a, double b, bool by_rejection,
                                       grd_generator *generator)
{
    return (by_rejection ? drawn_by_rejection : drawn_from_uniform)(self, mean, std, a, b, generator);
}

/* Returns a copy of the matrix `self` in which `zeros` randomly chosen elements of each column are 0. */
grd_tensor *op_hidden_sparse_columns(grd_tensor *self, int64_t zeros)
{
    grd_tensor *sparse = grd_clone(self);
    for (int64_t column = 0; !grd_pending() && column < grd_size(sparse, 1); column++) {
        grd_tensor *rows = grd_narrow(grd_randperm(grd_size(sparse, 0)), 0, 0, zeros);
        grd_index_fill_(grd_select(sparse, 1, column), 0, rows, grd_int(0));
    }
    return sparse;
}
