/* Concatenates tensors as rows of bytes, for cat() and roll(). Each row of the result consists of one row of each source tensor. */
#include "op/row_join.h"

#include "base/parallel.h"
#include "kernel/table.h"
#include "op/copy.h"
#include "kernel/map.h"

/* Number of bytes of the rows that join_columns() writes as one block, so that these rows stay in the first-level cache. */
enum { ROWS_BYTES = 16 * 1024 };

/* Writes the rows [begin, end) in blocks of a few rows. In each block it copies the rows of the first source tensor, then those of the second, and so
 * on. */
static void join_columns(const struct grd_row_join *join, int64_t begin, int64_t end)
{
    const struct grd_joined_rows *rows = &join->rows;
    const int64_t block = ROWS_BYTES / rows->to_stride > 1 ? ROWS_BYTES / rows->to_stride : 1, size = join->itemsize;
    for (int64_t i = begin; i < end; i += block) {
        const int64_t lines = end - i < block ? end - i : block;
        char *to = rows->to + i * rows->to_stride;
        for (int64_t k = 0; k < rows->parts; k++) {
            const int64_t stride = rows->part[k].stride, bytes = rows->part[k].bytes;
            grd_copy_lines(lines, bytes / size, size, to, (const int64_t[]){size, rows->to_stride}, rows->part[k].from + i * stride,
                           (const int64_t[]){size, stride});
            to += bytes;
        }
    }
}

/* Writes the rows [begin, end) of the result. `context` is the struct grd_row_join. */
static void join_some(int64_t begin, int64_t end, void *context)
{
    const struct grd_row_join *join = context;
    if (join->are_short)
        join_columns(join, begin, end);
    else
        grd_kernels->bytes->join_rows(&join->rows, begin, end);
}

void grd_write_rows(struct grd_row_join *join, int64_t n)
{
    const struct grd_joined_rows *rows = &join->rows;
    int64_t bytes = 0;
    for (int64_t k = 0; k < rows->parts; k++)
        bytes += rows->part[k].bytes;
    if (n == 1 && rows->parts == 1)
        grd_copy_block(rows->to, rows->part[0].from, bytes);
    else if (bytes > 0)
        grd_parallel_for(0, n, bytes < GRD_COPY_GRAIN ? GRD_COPY_GRAIN / bytes : 1, join_some, join);
}
