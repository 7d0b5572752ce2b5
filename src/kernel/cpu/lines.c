/* The kernels over lines of one dtype: lines_<operator>, each in a header with its like. Typed: int64 float32 float64 complex128. */
#include "kernel/cpu/widest.h" /* first */

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/cpu/typed.h"
#include "kernel/lines.h"

#if !GRD_IS_COMPLEX
/* A line of an operand in lines form; in columns form, an element of every line. */
GRD_INLINE T *line_of(const struct grd_lines_block *b, int operand, int64_t line)
{
    return (T *)b->data[operand] + line * b->step[operand];
}
#endif

#include "kernel/cpu/lines_scan.h"
#if GRD_IS_FLOAT
#include "kernel/cpu/reduce_exp.h"
#include "kernel/cpu/lines_softmax.h"
#include "kernel/cpu/lines_layer_norm.h"
#endif

#include "gen/lines_rows.h"
