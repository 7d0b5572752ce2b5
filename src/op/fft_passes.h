/* Transforms lines, where a line is the elements along one dimension. Either each vector lane transforms one line, or several threads transform one
 * line together. Nothing here allocates. */
#ifndef GRD_OP_FFT_PASSES_H
#define GRD_OP_FFT_PASSES_H

#include "op/fft_node.h"

/* Sets all members of *lines except `offsets`, for `count` lines whose elements are `element` real numbers apart. The offsets are relative to the
 * address of `line`. */
static inline void grd_fft_set_lines(struct grd_fft_lines *lines, const struct grd_fft_line *line, int64_t element, int64_t count)
{
    lines->re = line->re;
    lines->im = line->im;
    lines->element = element;
    lines->count = count;
}

/* Returns the number of elements of the buffer in which a vector lane transforms a line of node->n elements. It is more than node->n if Bluestein's
 * algorithm computes the transform as a longer convolution. */
int64_t grd_fft_lanes_room(const struct grd_fft_node *node);
/* Returns the size in bytes of a buffer for several lines of n elements, one line per vector lane. The buffer has room for n rounded up to a multiple
 * of the number of lanes. */
int64_t grd_fft_lanes_bytes(const struct grd_fft_row *row, int64_t n);

/* Transforms several lines, stored one per vector lane, which begin at `data`. Returns the address of the result, which is `data` or `other`;
 * both are overwritten. */
char *grd_fft_lanes(const struct grd_fft_node *node, char *data, char *other);

/* Writes the first `limit` elements of the transform of the line `from`, times `scale`, to the line `to`, which may be the same line. The work is
 * divided into `pieces` tasks; `scratch` has grd_fft_line_bytes bytes. */
void grd_fft_line(const struct grd_fft_node *node, const struct grd_fft_line *from, const struct grd_fft_line *to, int64_t limit,
                  double scale, int64_t pieces, char *scratch);
/* Returns the number of bytes of scratch memory that grd_fft_line needs. */
int64_t grd_fft_line_bytes(const struct grd_fft_node *node, int64_t pieces);

#endif
