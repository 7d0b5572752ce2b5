/* Images resampled: rows of an output are sums of rows of the input, each resampled along itself. */
#ifndef GRD_KERNEL_RESAMPLE_H
#define GRD_KERNEL_RESAMPLE_H

#include <stdbool.h>
#include <stdint.h>

enum { GRD_RESAMPLE_AXES = 3 }; /* depth, height, width */

/* Along an axis output o is the sum over k < counts[o] of weights[k * out + o] times the element index[k * out + o]; `taps` is the most of all counts. Weights of
 * floating kernels are of the dtype; those of uint8 are int16, in units of 2^-precision. */
struct grd_resample_axis {
    int64_t in, out, taps;
    const int32_t *index, *counts;
    const void *weights;
    int precision;
    bool full; /* all counts are `taps` */
};

/* Images with `channels` elements at each place, contiguous; planes in a row are images of one channel. */
struct grd_resample {
    struct grd_resample_axis axes[GRD_RESAMPLE_AXES];
    int64_t channels;
    int64_t lines; /* the rows that a piece of work keeps, each of out width * channels elements */
};

enum grd_resample_mode { GRD_RESAMPLE_NEAREST, GRD_RESAMPLE_NEAREST_EXACT, GRD_RESAMPLE_LINEAR, GRD_RESAMPLE_CUBIC, GRD_RESAMPLE_LANCZOS };

/* The arguments from which positions and weights are computed. */
struct grd_resample_source {
    enum grd_resample_mode mode;
    bool align_corners, antialias;
    bool transposed; /* axes lead back: the weights that an element of the output had become those of a gradient */
    bool single;     /* positions are float32 */
    int64_t n;       /* dimensions of an image, the last of the axes */
    int64_t weight_bytes;
    double scales[GRD_RESAMPLE_AXES]; /* elements of the input for one of the output */
};

/* Elements of the input that a filter reaches to each side; the most that one output of it has. */
double grd_resample_reach(const struct grd_resample_source *x, double scale);
int64_t grd_resample_filter_taps(const struct grd_resample_source *x, int64_t in, double scale);
/* At least as many outputs as an element of the input goes to: taps of a transposed axis. */
int64_t grd_resample_most_outputs(const struct grd_resample_source *x, int axis, int64_t in, int64_t out);
/* The memory of an axis' table, for `taps` of each output; fills the tables of all axes, which lie one after the other. */
int64_t grd_resample_table_bytes(const struct grd_resample_axis *a);
void grd_resample_make_tables(const struct grd_resample_source *x, struct grd_resample *kernel, char *memory);

struct grd_resample_row {
    /* Rows [begin, end), of which each image has the depth times the height of its output. `kept` has room for x->lines rows, `keys` for as many numbers. */
    void (*forward)(const struct grd_resample *x, int64_t begin, int64_t end, const void *in, void *out, void *kept, int64_t *keys);
};

#endif
