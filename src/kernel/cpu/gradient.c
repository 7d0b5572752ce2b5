/* The kernels that compute a gradient in one loop, over the gradient of the result and what was saved. All of them are generated from formulas (codegen/expression.py). Typed file. */
#include <math.h>

#include "kernel/cpu/map.h"
#include "kernel/cpu/vecmath_angle.h"
#include "kernel/special.h"

#include "gen/gradient_rows.h"
