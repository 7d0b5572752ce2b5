/* Declares switches that turn off the faster ways to run an operator or compute a gradient. Tests turn them off to compare the results with those
 * of the slower ways. */
#ifndef GRD_CORE_SHORTCUTS_H
#define GRD_CORE_SHORTCUTS_H

#include <stdbool.h>

#include "gradus/export.h"
#include "base/thread.h"

/* True if operators use their fast paths for small contiguous operands. The results are bit-identical with and without the fast paths. The
 * environment variable GRADUS_SHORTCUTS=off makes it false. */
extern GRD_HIDDEN bool grd_shortcuts;
/* Sets grd_shortcuts from the environment. Called once, by the library's constructor. */
void grd_shortcuts_init(void);
/* True if gradients are computed by faster formulas and fused kernels. Tests set it to false, to compare these gradients with those from the
 * formulas of the schema. */
extern GRD_HIDDEN bool grd_accelerations;

#endif
