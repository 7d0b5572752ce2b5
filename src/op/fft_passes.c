/* Implements fft_passes.h: transforms lines (a line is the elements along one dimension) with the tables for their length. */
#include "op/fft_passes.h"

#include <string.h>

#include "base/integer.h"
#include "base/parallel.h"
#include "kernel/table.h"
#include "op/sizes.h"

/* Returns the size in bytes of a real number of the dtype to which the kernels `row` belong. */
static int64_t item_bytes(const struct grd_fft_row *row)
{
    return row == grd_kernels->fft[GRD_FLOAT32] ? 4 : 8;
}

/* Returns n rounded up to a multiple of `lanes`, a power of 2. It avoids a division, which would take longer than the code that calls this
 * function. */
static int64_t rounded_up(int64_t n, int64_t lanes)
{
    return (n + lanes - 1) & -lanes;
}

static int64_t blocks_of(int64_t n, int64_t lanes)
{
    return (n + lanes - 1) >> __builtin_ctzll((unsigned long long)lanes);
}

/* ---- In lanes -------------------------------------------------------------------------------------------------------------------------- */

int64_t grd_fft_lanes_bytes(const struct grd_fft_row *row, int64_t n)
{
    return rounded_up(n, row->lanes) * 2 * row->lanes * item_bytes(row);
}

int64_t grd_fft_lanes_room(const struct grd_fft_node *node)
{
    return node->inner != NULL ? node->m : node->n;
}

/* Transforms a group of lines, one per vector lane, by Bluestein's algorithm: multiplies by a chirp, convolves with a filter of m elements, and
 * multiplies by the chirp again. Returns the address of the result, which is `data` or `other`. */
static char *lanes_by_convolution(const struct grd_fft_node *node, char *data, char *other)
{
    const struct grd_fft_row *row = node->row;
    const int64_t element = 2 * row->lanes * item_bytes(row);
    row->multiply(node->n, data, node->chirp, false, other);
    memset(other + node->n * element, 0, (size_t)((node->m - node->n) * element));
    char *const spectrum = grd_fft_lanes(node->inner, other, data);
    row->multiply(node->m, spectrum, node->filter, true, spectrum);
    char *const result = grd_fft_lanes(node->inner, spectrum, spectrum == data ? other : data);
    row->multiply(node->n, result, node->chirp, true, result);
    return result;
}

char *grd_fft_lanes(const struct grd_fft_node *node, char *data, char *other)
{
    if (node->inner != NULL)
        return lanes_by_convolution(node, data, other);
    for (int i = 0; i < node->npasses; i++) {
        node->row->pass(&node->passes[i], data, other);
        char *const made = other;
        other = data;
        data = made;
    }
    return data;
}

/* ---- One line ---------------------------------------------------------------------------------------------------------------------------- */

/* A line of n = a * b elements as an a x b matrix, with element j + b * i in row i and column j. The columns are transformed,
 * multiplied by roots of unity and written transposed to `turned`, where each vector lane holds a row. Element k + a * l of the result is element
 * l of the transform of row k. */
struct matrix {
    const struct grd_fft_node *node;
    const struct grd_fft_line *from, *to;
    int64_t limit;
    double scale;
    char *turned;
    int64_t block; /* bytes of a block of rows, one row for each vector lane */
    char *work;
    int64_t work_bytes, grain; /* work_bytes: bytes of one of a task's two buffers; grain: blocks per task */
};

/* Returns the size in bytes of one of the two buffers of a task. A buffer holds as many columns or rows of the matrix as there are vector lanes. */
static int64_t work_bytes(const struct grd_fft_node *node)
{
    return grd_fft_lanes_bytes(node->row, grd_greatest(grd_fft_lanes_room(node->columns), grd_fft_lanes_room(node->rows)));
}

/* Writes to *lines the addresses of lines [first, first + count) of a matrix whose lines start `step` real numbers apart. The struct is not returned
 * by value, because copying it would load more bytes at a time than were stored, which stalls store forwarding. */
static void set_lines(struct grd_fft_lines *lines, const struct grd_fft_line *line, int64_t element, int64_t step, int64_t first,
                      int64_t count)
{
    grd_fft_set_lines(lines, line, element, count);
    for (int64_t l = 0; l < GRD_FFT_MOST_LANES; l++)
        lines->offsets[l] = (first + grd_least(l, count - 1)) * step;
}

static void transform_columns(int64_t begin, int64_t end, void *context)
{
    const struct matrix *m = context;
    const struct grd_fft_node *node = m->node;
    const struct grd_fft_row *row = node->row;
    const int64_t lanes = row->lanes, element = m->from->element, factors = grd_fft_lanes_bytes(row, node->a);
    char *const work = m->work + begin / m->grain * 2 * m->work_bytes;
    for (int64_t i = begin; i < end; i++) {
        struct grd_fft_lines columns;
        set_lines(&columns, m->from, node->b * element, element, i * lanes, grd_least(lanes, node->b - i * lanes));
        row->take(&columns, node->a, work);
        const char *const made = grd_fft_lanes(node->columns, work, work + m->work_bytes);
        row->turn(node->a, made, node->factors + i * factors, m->turned + i * lanes * 2 * lanes * item_bytes(row), m->block);
    }
}

static void transform_rows(int64_t begin, int64_t end, void *context)
{
    const struct matrix *m = context;
    const struct grd_fft_node *node = m->node;
    const struct grd_fft_row *row = node->row;
    const int64_t lanes = row->lanes, element = m->to->element;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i * lanes, count = grd_least(lanes, node->a - first);
        char *const data = m->turned + i * m->block;
        const char *const made = grd_fft_lanes(node->rows, data, m->work + begin / m->grain * 2 * m->work_bytes);
        /* Only the first `limit` elements of the transform are written. Each row of this block of rows holds at least `full` of these elements, and
         * the first `rest` rows hold one more. */
        const int64_t full = grd_least(node->b, grd_greatest(0, (m->limit - first - count) / node->a + (m->limit >= first + count)));
        struct grd_fft_lines rows;
        set_lines(&rows, m->to, node->a * element, element, first, count);
        row->put(made, full, m->scale, &rows);
        const int64_t rest = grd_least(count, m->limit - first - full * node->a);
        if (full < node->b && rest > 0) {
            set_lines(&rows, m->to, node->a * element, element, first + full * node->a, rest);
            row->put(made + full * 2 * lanes * item_bytes(row), 1, m->scale, &rows);
        }
    }
}

static int64_t block_bytes(const struct grd_fft_node *node)
{
    return grd_fft_lanes_bytes(node->row, grd_greatest(node->b, grd_fft_lanes_room(node->rows)));
}

static int64_t turned_bytes(const struct grd_fft_node *node)
{
    return blocks_of(node->a, node->row->lanes) * block_bytes(node);
}

/* Transforms the line `from` by treating its n = a * b elements as an a x b matrix. Writes the first `limit` elements of the
 * transform, times `scale`, to the line `to`. The work is divided into `pieces` tasks, which use `scratch`. */
static void line_as_matrix(const struct grd_fft_node *node, const struct grd_fft_line *from, const struct grd_fft_line *to, int64_t limit,
                           double scale, int64_t pieces, char *scratch)
{
    const int64_t lanes = node->row->lanes, columns = blocks_of(node->b, lanes), rows = blocks_of(node->a, lanes);
    struct matrix m = {.node = node,
                       .from = from,
                       .to = to,
                       .limit = limit,
                       .scale = scale,
                       .turned = scratch,
                       .block = block_bytes(node),
                       .work = scratch + turned_bytes(node),
                       .work_bytes = work_bytes(node)};
    m.grain = grd_ceil_div(columns, pieces);
    grd_parallel_for(0, columns, m.grain, transform_columns, &m);
    m.grain = grd_ceil_div(rows, pieces);
    grd_parallel_for(0, rows, m.grain, transform_rows, &m);
}

static struct grd_fft_line line_at(char *data, int64_t itemsize)
{
    return (struct grd_fft_line){data, data + itemsize, 2};
}

/* Transforms the line `from` by Bluestein's algorithm, i.e. as a convolution. Writes the first `limit` elements of the transform, times `scale`,
 * to the line `to`. The work is divided into `pieces` tasks, which use `scratch`. */
static void line_by_convolution(const struct grd_fft_node *node, const struct grd_fft_line *from, const struct grd_fft_line *to,
                                int64_t limit, double scale, int64_t pieces, char *scratch)
{
    const struct grd_fft_row *row = node->row;
    const int64_t bytes = node->m * 2 * item_bytes(row), all = bytes + (-bytes & 63);
    const struct grd_fft_line x = line_at(scratch, item_bytes(row)), y = line_at(scratch + all, item_bytes(row));
    row->multiply_line(node->n, from, node->chirp, false, 1, &x);
    memset(x.re + node->n * 2 * item_bytes(row), 0, (size_t)((node->m - node->n) * 2 * item_bytes(row)));
    grd_fft_line(node->inner, &x, &y, node->m, 1, pieces, scratch + 2 * all);
    row->multiply_line(node->m, &y, node->filter, true, 1, &x);
    grd_fft_line(node->inner, &x, &y, node->m, 1, pieces, scratch + 2 * all);
    row->multiply_line(limit, &y, node->chirp, true, scale, to);
}

void grd_fft_line(const struct grd_fft_node *node, const struct grd_fft_line *from, const struct grd_fft_line *to, int64_t limit,
                  double scale, int64_t pieces, char *scratch)
{
    (node->inner != NULL ? line_by_convolution : line_as_matrix)(node, from, to, limit, scale, pieces, scratch);
}

int64_t grd_fft_line_bytes(const struct grd_fft_node *node, int64_t pieces)
{
    if (node->inner == NULL)
        return turned_bytes(node) + pieces * 2 * work_bytes(node);
    const int64_t bytes = node->m * 2 * item_bytes(node->row);
    return 2 * (bytes + (-bytes & 63)) + grd_fft_line_bytes(node->inner, pieces);
}
