/* Bytes moved as they are; see kernel/bytes.h. */
#include "kernel/bytes.h"

#include <string.h>

#include "kernel/cpu/level.h"
#include "kernel/cpu/loop.h"

enum { LINE = 64 }; /* of the cache */

/* ---- Patterns --------------------------------------------------------------------------------------------------------------------- */

static void fill(int64_t n, char *to, const void *pattern)
{
    _Alignas(LINE) char line[LINE];
    UNROLLED for (int i = 0; i < LINE; i += GRD_PATTERN) memcpy(line + i, pattern, GRD_PATTERN);
    for (int64_t i = 0; i < n; i += LINE)
        memcpy(to + i, line, LINE);
}

/* ---- The last elements first ---------------------------------------------------------------------------------------------------------- */

#if defined(__AVX2__)
#define REVERSED_1 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, REVERSED_2
#define REVERSED_2 15, 14, 13, 12, 11, 10, 9, 8, REVERSED_4
#define REVERSED_4 7, 6, 5, 4, REVERSED_8
#define REVERSED_8 3, 2, 1, 0
enum { VECTOR = 32 };
#else
#define REVERSED_1 15, 14, 13, 12, 11, 10, 9, 8, REVERSED_2
#define REVERSED_2 7, 6, 5, 4, REVERSED_4
#define REVERSED_4 3, 2, REVERSED_8
#define REVERSED_8 1, 0
enum { VECTOR = 16 };
#endif

typedef uint8_t ones __attribute__((vector_size(VECTOR)));
typedef uint16_t twos __attribute__((vector_size(VECTOR)));
typedef uint32_t fours __attribute__((vector_size(VECTOR)));
typedef uint64_t eights __attribute__((vector_size(VECTOR)));

/* `size` is a constant where this is inlined. */
INLINE void reverse(int64_t n, char *to, const char *from, int64_t size)
{
    const int64_t lanes = VECTOR / size;
    int64_t i = 0;
    for (; i + lanes <= n; i += lanes) {
        ones v;
        memcpy(&v, from - (i + lanes - 1) * size, sizeof v);
        if (size == 1)
            v = __builtin_shufflevector(v, v, REVERSED_1);
        else if (size == 2)
            v = (ones)__builtin_shufflevector((twos)v, (twos)v, REVERSED_2);
        else if (size == 4)
            v = (ones)__builtin_shufflevector((fours)v, (fours)v, REVERSED_4);
        else
            v = (ones)__builtin_shufflevector((eights)v, (eights)v, REVERSED_8);
        memcpy(to + i * size, &v, sizeof v);
    }
    for (; i < n; i++)
        memcpy(to + i * size, from - i * size, (size_t)size);
}

static void reverse_1(int64_t n, char *to, const char *from)
{
    reverse(n, to, from, 1);
}

static void reverse_2(int64_t n, char *to, const char *from)
{
    reverse(n, to, from, 2);
}

static void reverse_4(int64_t n, char *to, const char *from)
{
    reverse(n, to, from, 4);
}

static void reverse_8(int64_t n, char *to, const char *from)
{
    reverse(n, to, from, 8);
}

extern const struct grd_bytes_kernels GRD_AT_LEVEL(grd_bytes_kernels);
const struct grd_bytes_kernels GRD_AT_LEVEL(grd_bytes_kernels) = {.fill = fill, .reverse = {reverse_1, reverse_2, reverse_4, reverse_8}};
