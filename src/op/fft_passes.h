/* Transforms of lines by the tables of their length: in lanes, or one line on several threads. Nothing here allocates. */
#ifndef GRD_OP_FFT_PASSES_H
#define GRD_OP_FFT_PASSES_H

#include "op/fft_node.h"

/* Sets all but the offsets of `count` lines, whose elements are `element` bytes apart and whose first one may begin at `line`. */
static inline void grd_fft_set_lines(struct grd_fft_lines *lines, const struct grd_fft_line *line, int64_t element, int64_t count)
{
    lines->re = line->re;
    lines->im = line->im;
    lines->element = element;
    lines->count = count;
}

/* Returns the number of elements that a line in lanes needs room for in addition to its n. */
int64_t grd_fft_lanes_room(const struct grd_fft_node *node);
/* Returns the bytes of n elements in lanes, in full blocks. */
int64_t grd_fft_lanes_bytes(const struct grd_fft_row *row, int64_t n);

/* Transforms `data` in lanes and returns where the result is, `data` or `other`; both are overwritten. */
char *grd_fft_lanes(const struct grd_fft_node *node, char *data, char *other);

/* Writes the first `limit` elements of the transform of a line, times `scale`. The two lines may be the same. The work is done in `pieces` on all
 * threads; `scratch` has grd_fft_line_bytes. */
void grd_fft_line(const struct grd_fft_node *node, const struct grd_fft_line *from, const struct grd_fft_line *to, int64_t limit,
                  double scale, int64_t pieces, char *scratch);
int64_t grd_fft_line_bytes(const struct grd_fft_node *node, int64_t pieces);

#endif
