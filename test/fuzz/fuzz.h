/* Provides the fuzz targets with functions that make numbers out of the input bytes, that report a failure, and that check that no memory is leaked.
 *
 * A target is a file fuzz_<name>.c that defines LLVMFuzzerTestOneInput. It is linked with libFuzzer (`make fuzz`) or with driver.c, which feeds it
 * the same bytes in every run. Every string of bytes is a valid input, because missing bytes read as zero. */
#ifndef GRD_TEST_FUZZ_H
#define GRD_TEST_FUZZ_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gradus/gradus.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *at, *end;
};

static inline uint8_t take_byte(struct bytes *b)
{
    return b->at < b->end ? *b->at++ : 0;
}

/* Returns a number in [0, n) made from one byte. n is at most 256. */
static inline int64_t take_below(struct bytes *b, int64_t n)
{
    return take_byte(b) % n;
}

static inline int64_t take_between(struct bytes *b, int64_t low, int64_t high)
{
    return low + take_below(b, high - low + 1);
}

static inline bool take_chance(struct bytes *b, int one_in)
{
    return take_below(b, one_in) == 0;
}

static inline int64_t take_int64(struct bytes *b)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | take_byte(b);
    return (int64_t)value;
}

/* Returns a number near which integer arithmetic overflows, a small number, or an arbitrary one. */
static inline int64_t take_extreme(struct bytes *b)
{
    static const int64_t edges[] = {0,
                                    1,
                                    -1,
                                    2,
                                    3,
                                    INT64_MAX,
                                    INT64_MIN,
                                    INT32_MAX,
                                    INT32_MIN,
                                    UINT32_MAX,
                                    1LL << 31,
                                    1LL << 32,
                                    1LL << 62,
                                    -(1LL << 62),
                                    1LL << 61,
                                    3037000499,
                                    3037000500,
                                    INT64_MAX / 2,
                                    INT64_MAX / 3,
                                    INT64_MAX - 1,
                                    INT64_MIN + 1};
    const int64_t choice = take_below(b, 64);
    if (choice < (int64_t)(sizeof edges / sizeof *edges))
        return edges[choice];
    return choice < 60 ? take_between(b, -4, 8) : take_int64(b);
}

/* Prints a message and aborts, which libFuzzer reports as a finding. */
_Noreturn static inline GRD_PRINTF(1, 2) void fuzz_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

static inline void fuzz_expect(bool holds, const char *what)
{
    if (!holds)
        fuzz_fail("%s (pending error: \"%s\")", what, grd_error_message());
}

/* Runs a target in a scope of its own and fails if it leaks blocks of memory. */
static inline void fuzz_run(const uint8_t *data, size_t size, void (*target)(struct bytes *bytes))
{
    static bool warm;
    if (!warm) { /* allocates the memory that the process keeps for reuse, which would count as a leak if the first input allocated it */
        warm = true;
        const grd_scope scope = grd_scope_open();
        for (int i = 0; i < 5000; i++)
            grd_zeros(GRD_NO_DIMS);
        grd_error_set(GRD_ERROR_RUNTIME, "warm");
        grd_error_clear();
        grd_scope_close(scope);
    }
    const int64_t blocks = grd_memory_get_stats().blocks;
    const grd_scope scope = grd_scope_open();
    struct bytes bytes = {data, data + size};
    target(&bytes);
    fuzz_expect(grd_ok(), "an error is left pending");
    grd_scope_close(scope);
    grd_memory_trim(); /* frees tables that are cached for the next Fourier transform */
    const int64_t left = grd_memory_get_stats().blocks - blocks;
    if (left != 0)
        fuzz_fail("%lld blocks are left behind", (long long)left);
}

#endif
