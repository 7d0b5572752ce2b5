/* Runs elementwise kernels, which need contiguous operands, on operands with strides: the elements go through buffers (see map.h). Also has the
 * copies into and out of the buffers. Elements are copied as bytes, so the code needs no dtypes. This file is compiled only once, and not for each
 * instruction set, because copying single elements does not get faster with other instructions; copies of many elements at a time are in
 * cpu/bytes.c. */
#include "kernel/map.h"

#include <stdbool.h>
#include <string.h>

#include "kernel/bytes.h"
#include "kernel/cpu/loop.h"

/* The largest element size in bytes. */
enum { WIDEST = 16 };

/* ---- Copies ---------------------------------------------------------------------------------------------------------------- */

/* Copies n elements one by one. Always inlined, so that strides and size are compile-time constants if the caller's are. */
GRD_INLINE void move(int64_t n, char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t size)
{
    BY_FOUR for (int64_t i = 0; i < n; i++) memcpy(to + i * to_stride, from + i * from_stride, (size_t)size);
}

typedef uint16_t twos __attribute__((vector_size(16)));
typedef uint32_t fours __attribute__((vector_size(16)));

/* The two functions below copy strided elements of 2 and 4 bytes to contiguous memory. They collect 16 bytes in a register before storing them,
 * because processors can load more often per cycle than store. They are not inlined. Otherwise a caller would save registers for them even when it
 * copies with another loop. */
static __attribute__((noinline)) void collect_twos(int64_t n, char *to, const char *from, int64_t stride)
{
    for (; n >= 8; n -= 8, to += 16, from += 8 * stride) {
        twos v = {0};
        UNROLLED for (int k = 0; k < 8; k++)
        {
            uint16_t x;
            memcpy(&x, from + k * stride, sizeof x);
            v[k] = x;
        }
        memcpy(to, &v, sizeof v);
    }
    move(n, to, 2, from, stride, 2);
}

static __attribute__((noinline)) void collect_fours(int64_t n, char *to, const char *from, int64_t stride)
{
    for (; n >= 4; n -= 4, to += 16, from += 4 * stride) {
        uint32_t x[4];
        UNROLLED for (int k = 0; k < 4; k++) memcpy(&x[k], from + k * stride, sizeof x[k]);
        const fours v = {x[0], x[1], x[2], x[3]};
        memcpy(to, &v, sizeof v);
    }
    move(n, to, 4, from, stride, 4);
}

/* Copies n elements of `size` bytes to contiguous memory at `to`; in `from` they are `stride` bytes apart. There are faster loops for some strides
 * and sizes. If `past`, the loops that can do so use stores that bypass the caches. */
GRD_INLINE void gather(int64_t n, char *to, const char *from, int64_t stride, int64_t size, bool past)
{
    const int width = size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3;
    if (size <= 8 && stride == -size)
        grd_kernels->bytes->reverse[width](n, to, from, past);
    else if (size <= 8 && stride == 2 * size)
        grd_kernels->bytes->every_other[width](n, to, from);
    else if (size == 2)
        collect_twos(n, to, from, stride);
    else if (size == 4)
        collect_fours(n, to, from, stride);
    else
        move(n, to, size, from, stride, size);
}

/* Copies `bytes` bytes; `to` and `from` may overlap. If `past`, uses stores that bypass the caches where it can. */
GRD_INLINE void copy_line(char *to, const char *from, int64_t bytes, bool past)
{
    if (to - from < bytes && from - to < bytes)
        memmove(to, from, (size_t)bytes);
    else if (past)
        grd_kernels->bytes->copy_past(bytes, to, from);
    else
        grd_copy_line(to, from, bytes);
}

/* Copies n elements with the fastest loop for their strides. */
GRD_INLINE void copy(int64_t n, char *to, int64_t to_stride, const char *from, int64_t from_stride, int64_t size, bool past)
{
    char element[WIDEST];
    if (to_stride != size) {
        move(n, to, to_stride, from, from_stride, size);
    } else if (from_stride == size) {
        copy_line(to, from, n * size, past);
    } else if (from_stride == 0 && n > 0) { /* The copy in `element` cannot alias the result, so the compiler keeps it in a register. */
        memcpy(element, from, (size_t)size);
        move(n, to, size, element, 0, size);
    } else {
        gather(n, to, from, from_stride, size, past);
    }
}

/* The smallest result, in bytes, that is written with stores that bypass the caches. For smaller results, waiting for such stores costs as much time
 * as they save. */
enum { LEAST_PAST = 8192 };

/* Copies n elements of `size` bytes from data[1] to data[0]. `stores` says how the result is stored; NULL means ordinary stores. Results of less than
 * LEAST_PAST bytes never use stores that bypass the caches. */
GRD_INLINE void copy_as_told(int64_t n, char *const *data, const int64_t *strides, const enum grd_stores *stores, int64_t size)
{
    copy(n, data[0], strides[0], data[1], strides[1], size, stores != NULL && *stores == GRD_STORES_PAST && n * size >= LEAST_PAST);
}

void grd_copy_1(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    copy_as_told(n, data, strides, params, 1);
}

void grd_copy_2(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    copy_as_told(n, data, strides, params, 2);
}

void grd_copy_4(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    copy_as_told(n, data, strides, params, 4);
}

void grd_copy_8(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    copy_as_told(n, data, strides, params, 8);
}

void grd_copy_16(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    copy_as_told(n, data, strides, params, 16);
}

enum { COLUMNS = 4 }; /* Rows of at most this many elements are copied column by column, which is faster for short rows. */

/* Copies `lines` rows of n elements, column by column if that is faster. `size` is a compile-time constant. */
GRD_INLINE void copy_lines(int64_t lines, int64_t n, char *to, const int64_t *to_strides, const char *from, const int64_t *from_strides,
                           int64_t size)
{
    const int64_t to_line = to_strides[1], from_line = from_strides[1];
    if (n <= 0)
        return;
    if (lines == 1)
        copy(n, to, to_strides[0], from, from_strides[0], size, false);
    else if (n <= COLUMNS)
        for (; n > 0; n--, to += to_strides[0], from += from_strides[0])
            copy(lines, to, to_line, from, from_line, size, false);
    else if (to_strides[0] == size && from_strides[0] == size)
        for (; lines > 0; lines--, to += to_line, from += from_line)
            grd_copy_line(to, from, n * size);
    else if (to_strides[0] == size)
        for (const int64_t stride = from_strides[0]; lines > 0; lines--, to += to_line, from += from_line)
            gather(n, to, from, stride, size, false);
    else
        for (; lines > 0; lines--, to += to_line, from += from_line)
            move(n, to, to_strides[0], from, from_strides[0], size);
}

void grd_copy_lines(int64_t lines, int64_t n, int64_t size, char *to, const int64_t *to_strides, const char *from,
                    const int64_t *from_strides)
{
    if (size == 4)
        copy_lines(lines, n, to, to_strides, from, from_strides, 4);
    else if (size == 8)
        copy_lines(lines, n, to, to_strides, from, from_strides, 8);
    else if (size == 1)
        copy_lines(lines, n, to, to_strides, from, from_strides, 1);
    else if (size == 2)
        copy_lines(lines, n, to, to_strides, from, from_strides, 2);
    else
        copy_lines(lines, n, to, to_strides, from, from_strides, 16);
}

/* ---- Buffers ----------------------------------------------------------------------------------------------------------------- */

enum {
    PIECE = 512,      /* elements that go through the buffers at a time, so few that the buffers stay in the L1 cache */
    FILLED_HERE = 128 /* buffers of at most this many bytes are filled by inline code, because a call would take longer */
};

/* Fills the first `bytes` (> 0) bytes of `buffer` with copies of one element of `size` bytes. May overwrite up to 63 bytes behind them. */
GRD_INLINE void fill(char *buffer, int64_t bytes, const char *element, int64_t size)
{
    uint64_t pattern[2];
    uint32_t word;
    uint16_t half;
    if (size == sizeof word) {
        memcpy(&word, element, sizeof word);
        pattern[0] = pattern[1] = word * UINT64_C(0x100000001);
    } else if (size == sizeof half) {
        memcpy(&half, element, sizeof half);
        pattern[0] = pattern[1] = half * UINT64_C(0x1000100010001);
    } else if (size == 1) {
        pattern[0] = pattern[1] = (uint8_t)*element * UINT64_C(0x101010101010101);
    } else {
        memcpy(&pattern[0], element, sizeof pattern[0]);
        memcpy(&pattern[1], element + size - sizeof pattern[1], sizeof pattern[1]);
    }
    if (bytes > FILLED_HERE) {
        grd_kernels->bytes->fill(bytes, buffer, pattern);
        return;
    }
    do
        memcpy(buffer, pattern, sizeof pattern);
    while (buffer += sizeof pattern, (bytes -= (int64_t)sizeof pattern) > 0);
}

typedef char piece[PIECE * WIDEST];

/* True if the kernel is light (so cheap that memory limits its speed) and n elements fill at least one cache line. Fewer elements are not worth the
 * second call that in_lines makes for the rest. */
static inline bool has_lines(int64_t n, const struct grd_map_kernel *kernel)
{
    return kernel->light && n * (kernel->sizes & 0xff) >= GRD_LINE_BYTES;
}

/* True if in_lines can compute n elements: has_lines() is true, and each operand is contiguous or has stride 0. All operands of a light
 * kernel have the same element size. */
static inline bool takes_lines(int64_t n, const struct grd_map_kernel *kernel, const int64_t *strides)
{
    const int64_t size = kernel->sizes & 0xff;
    return has_lines(n, kernel) && strides[0] == size && (strides[1] == 0 || strides[1] == size) &&
           (kernel->sizes >> 16 == 0 || strides[2] == 0 || strides[2] == size) &&
           (kernel->sizes >> 24 == 0 || strides[3] == 0 || strides[3] == size);
}

/* Runs a light kernel (of an operator so cheap that memory limits its speed) on operands that are contiguous or have stride 0, i.e. are one
 * repeated element. A repeated element is copied until it fills one cache line, not n times. The kernel is called once for the whole cache lines of
 * the result and once for the elements after them. */
static __attribute__((noinline)) void in_lines(int64_t n, char *const *data, const int64_t *strides, const struct grd_map_kernel *kernel,
                                               enum grd_stores stores)
{
    _Alignas(GRD_LINE_BYTES) char copies[3][GRD_LINE_BYTES];
    const int64_t whole = n & -(int64_t)(GRD_LINE_BYTES >> __builtin_ctz(kernel->sizes & 0xff));
    const bool second = kernel->sizes >> 16 != 0, third = kernel->sizes >> 24 != 0;
    const bool x = strides[1] == 0, y = second && strides[2] == 0, z = third && strides[3] == 0;
    char *const at[] = {data[0], x ? copies[0] : data[1], y ? copies[1] : second ? data[2] : NULL, z ? copies[2] : third ? data[3] : NULL};
    kernel->block(whole, at, &(const struct grd_light_call){{x ? data[1] : NULL, y ? data[2] : NULL, z ? data[3] : NULL}, stores});
    if (n > whole)
        kernel->block(n - whole,
                      (char *const[]){at[0] + whole * strides[0], at[1] + whole * strides[1], second ? at[2] + whole * strides[2] : NULL,
                                      third ? at[3] + whole * strides[3] : NULL},
                      NULL);
}

/* Runs the kernel on n <= PIECE elements with any strides. Inputs that are not contiguous are copied to `buffers`. An input with stride 0 is one
 * element. The first of several calls (`first`) fills the buffer of this input with n copies of the element. Later calls reuse the buffer; n must not
 * be larger in them. If `spreading`, an input with stride 0 uses no buffer. In this case in_lines() calls the kernel, and makes the few copies of the
 * element that it needs. */
GRD_INLINE void run_piece(int64_t n, char *const *data, const int64_t *strides, const void *params, const struct grd_map_kernel *kernel,
                          piece *buffers, bool first, bool spreading)
{
    char *at[GRD_MAP_OPERANDS];
    int64_t steps[GRD_MAP_OPERANDS];
    bool spread = false;
    const int64_t result_size = kernel->sizes & 0xff;
    at[0] = strides[0] == result_size ? data[0] : buffers[0];
    steps[0] = result_size;
    uint32_t rest = kernel->sizes >> 8;
    for (int k = 1; rest != 0; k++, rest >>= 8) {
        const int64_t size = rest & 0xff, stride = strides[k];
        const bool single = stride == 0 && spreading;
        at[k] = stride == size || single ? data[k] : buffers[k];
        steps[k] = single ? 0 : size;
        spread |= single;
        if (stride == 0 && !single && first)
            fill(buffers[k], n * size, data[k], size);
        else if (stride != 0 && stride != size)
            grd_copy_lines(1, n, size, buffers[k], (const int64_t[]){size, 0}, data[k], (const int64_t[]){stride, 0});
    }
    if (spread)
        in_lines(n, at, steps, kernel, GRD_STORES_NEAR);
    else
        kernel->block(n, at, params);
    if (strides[0] != result_size)
        grd_copy_lines(1, n, result_size, data[0], (const int64_t[]){strides[0], 0}, buffers[0], (const int64_t[]){result_size, 0});
}

/* Runs the kernel on n <= PIECE elements with any strides, with buffers on the stack. */
static __attribute__((noinline)) void in_one_piece(int64_t n, char *const *data, const int64_t *strides, const void *params,
                                                   const struct grd_map_kernel *kernel)
{
    _Alignas(16) piece buffers[GRD_MAP_OPERANDS];
    run_piece(n, data, strides, params, kernel, buffers, true, false);
}

/* Runs the kernel on any number of elements with any strides, PIECE elements at a time. */
static __attribute__((noinline)) void in_pieces(int64_t n, char *const *data, const int64_t *strides, const void *params,
                                                const struct grd_map_kernel *kernel)
{
    _Alignas(64) piece buffers[GRD_MAP_OPERANDS];
    const bool spreading = has_lines(n, kernel);
    char *here[GRD_MAP_OPERANDS];
    for (int64_t start = 0; start < n; start += PIECE) {
        for (int k = 0; k < GRD_MAP_OPERANDS && kernel->sizes >> 8 * k != 0; k++)
            here[k] = data[k] + start * strides[k];
        run_piece(grd_least(n - start, PIECE), here, strides, params, kernel, buffers, start == 0, spreading);
    }
}

/* True if the result and all inputs are contiguous. `sizes` holds the element sizes (see GRD_MAP_SIZES); there is at least one input. */
static inline bool all_contiguous(const int64_t *strides, uint32_t sizes)
{
    if (strides[0] != (sizes & 0xff) || strides[1] != (sizes >> 8 & 0xff))
        return false;
    if (sizes >> 16 == 0)
        return true;
    return strides[2] == (sizes >> 16 & 0xff) && (sizes >> 24 == 0 || strides[3] == sizes >> 24);
}

/* Runs the kernel on operands with any strides, without converting their dtype. */
static inline void map(int64_t n, char *const *data, const int64_t *strides, const struct grd_map_kernel *kernel, const void *params)
{
    if (all_contiguous(strides, kernel->sizes) || n <= 1)
        kernel->block(n, data, params);
    else if (!has_lines(n, kernel) && n <= PIECE)
        in_one_piece(n, data, strides, params, kernel);
    else if (takes_lines(n, kernel, strides))
        in_lines(n, data, strides, kernel, GRD_STORES_NEAR);
    else
        in_pieces(n, data, strides, params, kernel);
}

/* Runs a kernel of float32 or complex64 on operands of a half dtype (float16, bfloat16 or complex32). Converts the inputs, computes, and converts the
 * result, in blocks that fit into the first-level cache. Operands whose elements do not have the size of the half dtype, e.g. those of dtype
 * bool, are passed to the kernel unconverted. */
static __attribute__((noinline)) void map_half(int64_t n, char *const *data, const int64_t *strides, const struct grd_map *m)
{
    const grd_dtype wide = grd_computed_dtype(m->half);
    grd_loop_kernel *const widen = grd_kernels->cast[m->half][wide], *const narrow = grd_kernels->cast[wide][m->half];
    const struct grd_map_kernel *kernel = m->kernel;
    const int64_t size = wide == GRD_COMPLEX64 ? 2 * sizeof(float) : sizeof(float);
    /* The number of floats in a buffer. It is larger than PIECE to make up for the three calls of each round (convert, compute, convert back). The
     * buffers still fit into the cache, because not all of them are in use. */
    enum { NUMBERS = 2 * PIECE };
    _Alignas(64) float buffers[GRD_MAP_OPERANDS][NUMBERS];
    const int64_t most = NUMBERS * (int64_t)sizeof(float) / size;
    char *at[GRD_MAP_OPERANDS];
    int64_t steps[GRD_MAP_OPERANDS];
    for (int64_t start = 0; start < n; start += most) {
        const int64_t count = grd_least(n - start, most);
        uint32_t rest = kernel->sizes;
        for (int k = 0; rest != 0; k++, rest >>= 8) {
            const bool converted = (rest & 0xff) == size;
            char *const here = data[k] + start * strides[k];
            at[k] = converted ? (char *)buffers[k] : here;
            steps[k] = converted ? size : strides[k];
            if (k > 0 && converted && (strides[k] != 0 || start == 0))
                widen(count, (char *const[]){at[k], here}, (const int64_t[]){size, strides[k]}, NULL);
        }
        map(count, at, steps, kernel, m->params);
        if (at[0] == (char *)buffers[0])
            narrow(count, (char *const[]){data[0] + start * strides[0], at[0]}, (const int64_t[]){strides[0], size}, NULL);
    }
}

/* Note [Large results]
 * A large result can be stored in three ways:
 * - GRD_STORES_PAST, if all operands together have at least 32 MiB: the result would not stay in any cache. Stores that bypass the caches save
 *   reading the result's cache lines from memory first. If the result overwrites an input, its cache lines have been read anyway, and ordinary stores
 *   are used.
 * - GRD_STORES_FAR, from 2 MiB on: the result stays only in the last-level cache. The loop works on half a cache line at a time: it then issues more
 *   read requests ahead of its use of the data, and runs at the speed of the memory.
 * - GRD_STORES_NEAR: smaller results are mostly in the second-level cache, and working on whole cache lines takes a twentieth less time.
 * Only light kernels (of operators so cheap that memory limits their speed) have such loops. All other kernels are slower than the memory. */
enum grd_stores grd_stores_for(int64_t bytes, int noperands, char *const *data)
{
    enum { FAR = 2 * 1024 * 1024, PAST = 16 * FAR };
    bool past = bytes >= PAST;
    for (int k = 1; k < noperands; k++)
        past &= data[k] != data[0];
    return past ? GRD_STORES_PAST : bytes >= FAR ? GRD_STORES_FAR : GRD_STORES_NEAR;
}

/* Runs a light kernel (of an operator so cheap that memory limits its speed), which stores the result as m->stores says. Such stores must begin at a
 * cache-line boundary of the result. The elements before the first boundary are computed separately, with ordinary stores. */
static __attribute__((noinline)) void map_large(int64_t n, char *const *data, const int64_t *strides, const struct grd_map *m)
{
    const int64_t before = grd_least(n, (int64_t)(-(uintptr_t)data[0] % GRD_LINE_BYTES) >> __builtin_ctz(m->kernel->sizes & 0xff));
    char *at[GRD_MAP_OPERANDS];
    if (before == 0) {
        in_lines(n, data, strides, m->kernel, m->stores);
        return;
    }
    map(before, data, strides, m->kernel, m->params);
    for (int k = 0; k < GRD_MAP_OPERANDS && m->kernel->sizes >> 8 * k != 0; k++)
        at[k] = data[k] + before * strides[k];
    in_lines(n - before, at, strides, m->kernel, m->stores);
}

void grd_map(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    const struct grd_map *m = params;
    if (m->half != GRD_DTYPE_NONE)
        map_half(n, data, strides, m);
    else if (m->stores != GRD_STORES_NEAR && takes_lines(n, m->kernel, strides))
        map_large(n, data, strides, m);
    else
        map(n, data, strides, m->kernel, m->params);
}

void grd_map_twice(int64_t n, char *const *data, const int64_t *strides, grd_loop_kernel *first, int64_t size, grd_loop_kernel *second)
{
    _Alignas(64) char buffer[PIECE * WIDEST];
    for (int64_t start = 0; start < n; start += PIECE) {
        const int64_t m = grd_least(n - start, PIECE);
        first(m, (char *const[]){buffer, data[1] + start * strides[1]}, (const int64_t[]){size, strides[1]}, NULL);
        second(m, (char *const[]){data[0] + start * strides[0], buffer}, (const int64_t[]){strides[0], size}, NULL);
    }
}
