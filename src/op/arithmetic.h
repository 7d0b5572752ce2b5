/* What elementwise operators check of numbers before their kernels run: formulas of schema/elementwise.toml call these. The checks raise errors. */
#ifndef GRD_OP_ARITHMETIC_H
#define GRD_OP_ARITHMETIC_H

#include "core/tensor.h"

static inline bool grd_is_one(grd_scalar s)
{
    return GRD_LIKELY(s.kind == GRD_SCALAR_INT && s.v.i == 1);
}

/* True for a plain number that is not complex. */
bool grd_is_real_number(const grd_tensor *t);
grd_scalar grd_scalar_conj(grd_scalar s);
grd_scalar grd_scalar_negated(grd_scalar s);

/* What torch.add demands of alpha. A half type multiplies by it as that type holds it, bool by its truth: so it is left. */
bool grd_take_alpha(grd_tensor *self, grd_tensor *other, grd_scalar *alpha);
/* A number that is written into the result as it is must fit; in arithmetic it would wrap around as the result does. */
bool grd_check_numbers(grd_tensor *self, grd_tensor *other);
bool grd_check_factor(grd_tensors tensors, grd_scalar value);

bool grd_check_power(grd_tensor *self, grd_tensor *exponent);
/* The exponent where it is a number that leaves the dtype as it is; NaN for others. */
double grd_plain_power(grd_tensor *self, grd_tensor *exponent);

bool grd_check_clamp(grd_tensor *self, grd_tensor *min, grd_tensor *max);
/* A bound beyond an integer dtype would wrap around into it. */
bool grd_check_bounds(grd_tensor *out, grd_tensor *self, grd_scalar min, grd_scalar max);

#endif
