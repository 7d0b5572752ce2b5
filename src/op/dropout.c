/* Computes sizes and factors for the formulas of dropout in schema/random.toml. */
#include <math.h>

#include "base/object.h"
#include "op/formula.h"

grd_dims grd_channel_sizes(grd_dims sizes)
{
    int64_t *const channels = grd_pool_array(sizes.n, sizeof *channels);
    for (int64_t i = 0; channels != NULL && i < sizes.n; i++)
        channels[i] = i < 2 ? sizes.data[i] : 1;
    return channels == NULL ? GRD_NO_DIMS : grd_dims_from(channels, sizes.n);
}

double grd_alpha_dropout_scale(double p)
{
    const double limit = 1.7580993408473766; /* selu(-inf) = -limit */
    return 1 / sqrt((limit * limit * p + 1) * (1 - p));
}
