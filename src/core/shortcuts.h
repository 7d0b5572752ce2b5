/* Switches between the ways in which an operator can run, all of which give the same results. */
#ifndef GRD_CORE_SHORTCUTS_H
#define GRD_CORE_SHORTCUTS_H

#include <stdbool.h>

#include "gradus/export.h"
#include "base/thread.h"

/* True while operators take the shorter ways they have for simple operands: results are the same, bit for bit. False with GRADUS_SHORTCUTS=off. */
extern GRD_HIDDEN bool grd_shortcuts;
/* Reads it; run once by the library's constructor. */
void grd_shortcuts_init(void);
/* True while gradients are computed by accelerated formulas and fused kernels; tests that compare them with the formulas set it. */
extern GRD_HIDDEN bool grd_accelerations;

#endif
