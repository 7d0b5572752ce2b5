/* Fast Fourier transforms of groups of lines.
 *
 * As many lines as a vector has lanes are transformed together. Between reading and writing they lie in lanes: element k has its real parts at
 * [k][0][lane], its imaginary parts at [k][1][lane]. X[k] = sum of x[j] exp(-2 pi i j k / n): the inverse, which is not scaled, is the same with real and
 * imaginary parts exchanged on both ways. Memory of lanes is aligned to 64 bytes. A root is exp(-2 pi i e / n) for a whole exponent e, as two numbers. */
#ifndef GRD_KERNEL_FFT_H
#define GRD_KERNEL_FFT_H

#include <stdbool.h>
#include <stdint.h>

enum { GRD_FFT_MOST_LANES = 16, GRD_FFT_MOST_RADIX = 31, GRD_FFT_MOST_PASSES = 64 };

/* Up to a vector of lines in memory; lengths are counted in real numbers. */
struct grd_fft_lines {
    char *re, *im;   /* the first element of a line whose offset is 0; im is NULL where lines are real */
    int64_t element; /* from one element to the next */
    int64_t count;
    int64_t offsets[GRD_FFT_MOST_LANES]; /* where each line begins; a lane without a line that is taken has the beginning of another one */
};

/* Elements of one line. */
struct grd_fft_line {
    char *re, *im; /* im is NULL where the line is real */
    int64_t element;
};

/* One of the passes of a transform of n = radix * m * s elements: s transforms whose length is radix * m become radix * s of m elements. Result k of number p is
 * multiplied by twiddle k - 1 of row p / repeats, a root of radix * m / repeats to the power (p / repeats) * k. `repeats` is 1, but for passes over the columns of a line
 * that is a matrix: there it is their number. The last of these has `factors`, those that fill_factors writes, and multiplies all results by them instead. */
struct grd_fft_pass {
    int64_t radix, m, s, repeats;
    const char *twiddles; /* [m / repeats][radix - 1] */
    const char *factors;  /* or NULL */
    const char *roots;    /* of the radix, where no function is written for it */
};

/* Two tables for exact roots of order n: that with the exponent e is the product of low[e % step] and high[e / step], pairs of numbers. */
struct grd_fft_roots {
    int64_t n, step;
    long double *low, *high;
};

/* `count` roots of order n with exponents 0, step, 2 step, …, below n. */
void grd_fft_exact_roots(int64_t n, int64_t step, int64_t count, long double *to);

struct grd_fft_row {
    int64_t lanes;
    /* The first n elements of the lines to lanes; lanes without a line are 0. */
    void (*take)(const struct grd_fft_lines *from, int64_t n, char *to);
    /* The first n elements of the lines, times `scale`. */
    void (*put)(const char *from, int64_t n, double scale, const struct grd_fft_lines *to);
    void (*pass)(const struct grd_fft_pass *pass, const char *from, char *to);
    /* Elements k of `from`, times factors[k], whose lanes are columns: element l of block t of to is column l for as many elements as there are lanes, from number t * lanes on; blocks are to_block bytes apart. */
    void (*turn)(int64_t n, const char *from, const char *factors, char *to, int64_t to_block);
    /* to[k] = from[k] * factors[k], or conj(from[k]) * factors[k]; the factor of an element is a number for all lanes. */
    void (*multiply)(int64_t n, const char *from, const char *factors, bool is_conjugate, char *to);
    /* The transform of n = 2 h real numbers, elements 0 to h, from that of h complex ones, which have the even ones as real parts. `roots` are of n, h / 2 + 1. */
    void (*unfold)(int64_t h, const char *from, const char *roots, char *to);
    /* Elements 0 to h of the transform of real numbers to what is transformed into those: the inverse of unfold times 2, with parts exchanged. The imaginary parts of
     * elements 0 and h are not read; there is room for h + 1 elements at `to`. */
    void (*fold)(int64_t h, const char *from, const char *roots, char *to);
    /* The conjugate of the transform of n real numbers, from its elements up to n / 2, which are there. */
    void (*mirror)(int64_t n, char *data);
    /* The same for one line. What fold and mirror write lies one complex number after the other, one more than are meant; unfold works in place. */
    void (*multiply_line)(int64_t n, const struct grd_fft_line *from, const char *factors, bool is_conjugate, double scale,
                          const struct grd_fft_line *to);
    void (*unfold_line)(int64_t h, const char *roots, double scale, const struct grd_fft_line *line);
    void (*fold_line)(int64_t h, const struct grd_fft_line *from, const char *roots, char *to);
    void (*mirror_line)(int64_t n, const struct grd_fft_line *from, char *to);
    /* The tables: `count` roots with exponents 0, step, 2 step, … */
    void (*fill_roots)(const struct grd_fft_roots *roots, int64_t step, int64_t count, char *to);
    /* The twiddles of a pass. */
    void (*fill_twiddles)(const struct grd_fft_roots *roots, int64_t radix, int64_t m, char *to);
    /* The factors that `turn` takes between columns of a and rows of b elements: [block of columns][a][2][lanes]. */
    void (*fill_factors)(const struct grd_fft_roots *roots, int64_t a, int64_t b, char *to);
    /* exp(-pi i k k / n) for k < n, from roots of order 2 n; and its conjugate, wrapped around in a line of m elements that are 0 elsewhere. */
    void (*fill_chirp)(const struct grd_fft_roots *roots, int64_t n, char *to, int64_t m, char *ret_filter);
    /* A filter's transform of m elements: conjugated and divided by m. */
    void (*finish_filter)(int64_t m, char *data);
};

#endif
