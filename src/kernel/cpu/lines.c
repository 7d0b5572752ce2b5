/* Computes operators that work along one dimension of a tensor, such as softmax and cumsum; see kernel/lines.h. A line is the elements along this
 * dimension. The kernel of an operator is called lines_<operator> and is defined in one of the headers that are included below. The build compiles
 * this file once for each of int64, float32, float64 and complex128. */
#include "kernel/cpu/widest.h" /* included before all other headers, because its pragma holds for the code after it */

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/cpu/typed.h"
#include "kernel/lines.h"

#if !GRD_IS_COMPLEX
/* Returns the address of line number `line` of an operand of the block b. If b->columns is true, the lines are columns of a matrix. In this case the
 * function returns the address of row number `line` of the matrix, which is contiguous. */
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
