/* Declares kernels that compute fast Fourier transforms of several lines at once, as many as a vector register has lanes. A line is the elements
 * along the transformed dimension.
 *
 * Between reading and writing, line i is stored in lane i: its element k has its real part at [k][0][i] and its imaginary part at [k][1][i]. Such
 * memory is aligned to 64 bytes. The transform is X[k] = sum over j of x[j] exp(-2 pi i j k / n). For the inverse, which is not scaled, real and
 * imaginary parts are exchanged on reading and on writing.
 * A root is the complex number exp(-2 pi i e / n) with an integer exponent e, stored as a pair of real numbers. */
#ifndef GRD_KERNEL_FFT_H
#define GRD_KERNEL_FFT_H

#include <stdbool.h>
#include <stdint.h>

enum { GRD_FFT_MOST_LANES = 16, GRD_FFT_MOST_RADIX = 31, GRD_FFT_MOST_PASSES = 64 };

/* Arrays in memory that are transformed together. Each array is called a line. There are at most as many lines as a vector register has lanes.
 * Distances and offsets are counted in real numbers. */
struct grd_fft_lines {
    char *re, *im;   /* real and imaginary part of the first element of a line with offset 0; im is NULL if the lines are real */
    int64_t element; /* distance from one element of a line to the next */
    /* `count` is the number of lines (arrays to be transformed). Line i begins offsets[i] real numbers after `re` and `im`. When lines are read,
     * lanes without a line repeat the offset of another line. */
    int64_t count;
    int64_t offsets[GRD_FFT_MOST_LANES];
};

/* One array in memory that is transformed (a line). Its elements are `element` real numbers apart. */
struct grd_fft_line {
    char *re, *im; /* real and imaginary part of the line's first element; im is NULL if the line is real */
    int64_t element;
};

/* One pass of a Fourier transform of n = radix * m * s elements. It computes m * s transforms of length `radix`, one for each p < m and q < s. This
 * turns s transforms of length radix * m into radix * s transforms of length m.
 * A long transform is computed as a matrix. In the passes over its columns, `repeats` is the number of columns; in all other passes it is 1.
 * Let j = p / repeats, rounded down. Result k of a transform is multiplied by a twiddle factor, which is the root of unity
 *
 *     exp(-2 pi i j k repeats / (radix * m))
 *
 * The factor is 1 for k = 0, and twiddles[j][k - 1] for k > 0. The last pass over the columns of a matrix multiplies all results by `factors` instead
 * of by twiddle factors. */
struct grd_fft_pass {
    int64_t radix, m, s, repeats;
    const char *twiddles; /* an array [m / repeats][radix - 1] of roots of unity */
    /* the array that fill_factors wrote; NULL except in the last pass over the columns of an FFT that is computed as a matrix */
    const char *factors;
    const char *roots; /* the roots of unity of order `radix`; used only if the radix has no function of its own */
};

/* Two tables of roots of unity of order n, stored as pairs of long doubles. The root with exponent e is low[e % step] * high[e / step]. So every root
 * of order n is computed with the accuracy of long double. */
struct grd_fft_roots {
    int64_t n, step;
    long double *low, *high;
};

/* Writes `count` roots of unity, exp(-2 pi i e / n) for the exponents e = 0, step, 2 step, ..., all below n. */
void grd_fft_exact_roots(int64_t n, int64_t step, int64_t count, long double *to);

/* The FFT kernels of one dtype. A line is one array of n complex numbers to be transformed. The functions whose names do not end in _line transform
 * `lanes` lines at once. Their data holds element 0 of all lines, then element 1 of all lines, and so on; lane i belongs to line i. */
struct grd_fft_row {
    int64_t lanes;
    /* Copies the first n elements of each line (one array to be transformed) from memory into its lane. A lane without a line becomes 0 or a copy of
     * another line. */
    void (*take)(const struct grd_fft_lines *from, int64_t n, char *to);
    /* Copies the first n elements of each lane, multiplied by `scale`, to the memory of the line (the transformed array) that belongs to the lane. */
    void (*put)(const char *from, int64_t n, double scale, const struct grd_fft_lines *to);
    void (*pass)(const struct grd_fft_pass *pass, const char *from, char *to);
    /* Transposes `lanes` columns of n elements of a matrix, and multiplies each element by its factor. In `from`, each lane holds one column.
     * In `to`, each vector holds `lanes` neighbouring elements of one column: vector l of block t holds elements t * lanes, t * lanes + 1, ... of
     * column l. Blocks are to_block bytes apart. */
    void (*turn)(int64_t n, const char *from, const char *factors, char *to, int64_t to_block);
    /* Writes to[k] = from[k] * factors[k], or conj(from[k]) * factors[k] if is_conjugate. A factor is one complex number for all lanes. */
    void (*multiply)(int64_t n, const char *from, const char *factors, bool is_conjugate, char *to);
    /* Computes elements 0 to h of the transform of n = 2 h real numbers. `from` is the transform of h complex numbers, whose real parts are the real
     * numbers with an even index and whose imaginary parts are those with an odd index. `roots` holds h / 2 + 1 roots of unity of order n. */
    void (*unfold)(int64_t h, const char *from, const char *roots, char *to);
    /* Inverts `unfold`. `from` has elements 0 to h of the transform of 2 h real numbers; the imaginary parts of elements 0 and h are not read. The
     * result is twice the inverse, with real and imaginary parts exchanged. `to` has room for h + 1 elements. */
    void (*fold)(int64_t h, const char *from, const char *roots, char *to);
    /* `data` holds elements 0 to n / 2 of the transform of n real numbers. Appends the other elements, which follow by symmetry, and conjugates all n
     * elements. */
    void (*mirror)(int64_t n, char *data);
    /* The four functions below do for one array of n elements what `multiply`, `unfold`, `fold` and `mirror` do for `lanes` arrays at once. fold_line
     * and mirror_line write interleaved complex numbers to `to`, which needs room for one complex number more than the result has. unfold_line works
     * in place. */
    void (*multiply_line)(int64_t n, const struct grd_fft_line *from, const char *factors, bool is_conjugate, double scale,
                          const struct grd_fft_line *to);
    void (*unfold_line)(int64_t h, const char *roots, double scale, const struct grd_fft_line *line);
    void (*fold_line)(int64_t h, const struct grd_fft_line *from, const char *roots, char *to);
    void (*mirror_line)(int64_t n, const struct grd_fft_line *from, char *to);
    /* Writes a table of `count` roots of unity, with the exponents 0, step, 2 step, ... */
    void (*fill_roots)(const struct grd_fft_roots *roots, int64_t step, int64_t count, char *to);
    /* Writes the twiddle factors of a pass, an array [m][radix - 1] of roots of unity of order radix * m. Element [p][k - 1] is the root with the
     * exponent p * k. */
    void (*fill_twiddles)(const struct grd_fft_roots *roots, int64_t radix, int64_t m, char *to);
    /* Writes the factors of an FFT of a * b elements that is computed as a matrix. Such an FFT transforms the columns of `a` elements, multiplies the
     * elements by these factors, and transforms the rows of `b` elements. The layout of the factors is [block of columns][a][2][lanes], where 2
     * stands for the real and the imaginary parts. */
    void (*fill_factors)(const struct grd_fft_roots *roots, int64_t a, int64_t b, char *to);
    /* Writes the chirp of Bluestein's algorithm, exp(-pi i k^2 / n) for k < n, to `to`. `roots` has order 2 n. Writes the filter, which has m
     * elements, to ret_filter: elements k and m - k are the conjugate of element k of the chirp, for k < n, and all others are 0. */
    void (*fill_chirp)(const struct grd_fft_roots *roots, int64_t n, char *to, int64_t m, char *ret_filter);
    /* `data` is the transform of the filter of Bluestein's algorithm, m complex numbers. Replaces each number by its conjugate divided by m. */
    void (*finish_filter)(int64_t m, char *data);
};

#endif
