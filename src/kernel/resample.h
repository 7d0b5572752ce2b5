/* Declares kernels that resample images (interpolate). Each row of the output is a weighted sum of rows of the input, which are first resampled along
 * their own length. */
#ifndef GRD_KERNEL_RESAMPLE_H
#define GRD_KERNEL_RESAMPLE_H

#include <stdbool.h>
#include <stdint.h>

enum { GRD_RESAMPLE_AXES = 3 }; /* the spatial axes of an image: depth, height and width */

/* The input elements and weights for one axis. Output o is the sum of counts[o] terms. Term k is weights[i] times input element index[i], where
 * i = k * out + o. `taps` is the largest count. The weights have the kernel's dtype if it is floating; for uint8 they are int16 in units of
 * 2^-precision. */
struct grd_resample_axis {
    int64_t in, out, taps;
    const int32_t *index, *counts;
    const void *weights;
    int precision;
    bool full; /* true if all counts are equal to `taps` */
};

/* The arguments of the resampling kernel. Images are contiguous, with `channels` elements at each position; if channels are not innermost, each plane
 * is an image of one channel. */
struct grd_resample {
    struct grd_resample_axis axes[GRD_RESAMPLE_AXES];
    int64_t channels;
    /* number of rows in the buffer of a thread; each is an input row resampled to the output width, i.e. output width * channels elements */
    int64_t lines;
};

enum grd_resample_mode { GRD_RESAMPLE_NEAREST, GRD_RESAMPLE_NEAREST_EXACT, GRD_RESAMPLE_LINEAR, GRD_RESAMPLE_CUBIC, GRD_RESAMPLE_LANCZOS };

/* The arguments of interpolate() from which the tables of input elements and weights are computed. */
struct grd_resample_source {
    enum grd_resample_mode mode;
    bool align_corners, antialias;
    bool transposed; /* for the backward pass: the tables list, for each input element, the outputs that use it */
    bool single;     /* positions are computed in float32, not in double */
    int64_t n;       /* number of spatial dimensions; the last n of the GRD_RESAMPLE_AXES axes are resampled */
    /* Size of a weight in bytes: 2 for uint8 images, otherwise the size of the kernel's dtype. */
    int64_t weight_bytes;
    /* for each axis, the distance between neighbouring output elements in units of input elements, about in / out */
    double scales[GRD_RESAMPLE_AXES];
};

/* grd_resample_reach returns how many input elements the antialiasing filter covers on each side of its centre. grd_resample_filter_taps returns
 * the most input elements that the filter sums for one output element, along an axis of `in` elements. */
double grd_resample_reach(const struct grd_resample_source *x, double scale);
int64_t grd_resample_filter_taps(const struct grd_resample_source *x, int64_t in, double scale);
/* Returns an upper bound for the number of outputs that use one input element. It is the member `taps` of the tables for the backward pass. */
int64_t grd_resample_most_outputs(const struct grd_resample_source *x, int axis, int64_t in, int64_t out);
/* grd_resample_table_bytes returns the size in bytes of the table of one axis. grd_resample_make_tables fills the tables of all axes, which follow
 * each other in `memory`. */
int64_t grd_resample_table_bytes(const struct grd_resample_axis *a);
void grd_resample_make_tables(const struct grd_resample_source *x, struct grd_resample *kernel, char *memory);

/* The resampling kernel of one dtype. */
struct grd_resample_row {
    /* Writes rows [begin, end) of the output, counted through all images, which have depth * height rows each. `kept` is a buffer for x->lines
     * input rows that are resampled along their length; keys[i] receives the number of the row that is in place i of the buffer. */
    void (*forward)(const struct grd_resample *x, int64_t begin, int64_t end, const void *in, void *out, void *kept, int64_t *keys);
};

#endif
