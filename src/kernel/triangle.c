/* Copies triangles of matrices (tril, triu); declared in range.h. Rows are copied as bytes. So this file is compiled only once, and not for each
 * dtype and instruction set. */
#include <string.h>

#include "base/integer.h"
#include "kernel/range.h"

void grd_triangle_rows(const struct grd_triangle_copy *t, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++) {
        int64_t boundary = row % t->rows + t->diagonal + (t->upper ? 0 : 1);
        boundary = grd_clamped(boundary, 0, t->columns);
        const size_t left = (size_t)(boundary * t->itemsize), right = (size_t)((t->columns - boundary) * t->itemsize);
        char *to = t->to + row * t->columns * t->itemsize;
        const char *from = t->from + row * t->columns * t->itemsize;
        if (t->upper) {
            memset(to, 0, left);
            memmove(to + left, from + left, right);
        } else {
            memmove(to, from, left);
            memset(to + left, 0, right);
        }
    }
}
