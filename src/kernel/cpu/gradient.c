/* The kernels that compute a gradient in one loop, over the gradient of the result and what was saved. All of them are generated from formulas (codegen/gradient.py). Typed file. */
#include <math.h>

#include "kernel/cpu/elementwise.h"
#include "kernel/cpu/vecmath_special.h"
#include "kernel/special.h"

/* With SSE2 alone there are no kernels: a formula is about as fast, since the operators it calls have vectorised ones. */
#if !defined(__x86_64__) || defined(__AVX2__)
#include "gen/gradient_rows.h"
#else
#include "gen/gradient_kernels.h"
const struct grd_map_kernel GRD_TYPED(grd_gradient_row)[GRD_GRADIENT_COUNT] = {{0}};
#endif
