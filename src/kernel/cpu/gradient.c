/* Computes the gradients of elementwise operators, each in one loop, from the gradient of the operator's result and the saved tensors. All kernels
 * are generated from formulas of the schema (codegen/gradient.py). The build compiles this file once per dtype. */
#include <math.h>

#include "kernel/cpu/elementwise.h"
#include "kernel/cpu/vecmath_special.h"
#include "kernel/special.h"

/* Without AVX2 on x86-64, the gradient kernels are not built. There the kernels of the single operators of a gradient formula are vectorised, and
 * together take about as long as one gradient kernel would. */
#if !defined(__x86_64__) || defined(__AVX2__)
#include "gen/gradient_rows.h"
#else
#include "gen/gradient_kernels.h"
const struct grd_map_kernel GRD_TYPED(grd_gradient_row)[GRD_GRADIENT_COUNT] = {{0}};
#endif
