/* Computes direction numbers and points of the Sobol sequence (Bratley and Fox, ACM TOMS 14, 1988) in Gray code order. Point i + 1 is point i,
 * exclusive-ored with the direction number that belongs to the lowest zero bit of i.
 *
 * Every dimension but the first has a primitive polynomial modulo 2 and as many initial numbers as the polynomial's degree. The polynomials are taken
 * in the order of degree and then coefficients, and are found by testing for primitivity. The initial numbers are those of Joe and Kuo (SIAM J. Sci.
 * Comput. 30, 2008). They are in sobol_numbers.bin, made by tools/sobol_numbers.py; sobol_numbers.txt has their licence. Initial number k (k counts
 * from 0) is odd and below 2^(k + 1), so the file stores only its k upper bits, the lowest bit first. The dimensions follow each other. */
#include "kernel/sobol.h"

__asm__(".pushsection .rodata\n"
        ".globl grd_sobol_numbers\n"
        ".hidden grd_sobol_numbers\n"
        "grd_sobol_numbers:\n"
        ".incbin \"" GRD_SOBOL_NUMBERS "\"\n"
        ".byte 0, 0, 0, 0\n" /* padding, because stored_bits reads four bytes at a time */
        ".popsection\n");
extern const uint8_t grd_sobol_numbers[] __attribute__((visibility("hidden")));

/* ---- Polynomials modulo 2, as bits ------------------------------------------------------------------------------------------------ */

/* Returns the product a * b modulo p of polynomials over GF(2). Bit i of a number is the coefficient of x^i; p has the given degree. */
static uint32_t product(uint32_t a, uint32_t b, uint32_t p, int degree)
{
    uint32_t result = 0;
    for (int i = 0; i < degree; i++) {
        result ^= a & -(b >> i & 1);
        a <<= 1;
        a ^= p & -(a >> degree & 1);
    }
    return result;
}

/* Returns x^n modulo p, as a polynomial over GF(2) whose bit i is the coefficient of x^i. */
static uint32_t power(uint32_t n, uint32_t p, int degree)
{
    uint32_t result = 1, base = degree > 1 ? 2 : 1;
    for (; n > 0; n >>= 1) {
        if (n & 1)
            result = product(result, base, p, degree);
        base = product(base, base, p, degree);
    }
    return result;
}

/* True if p is primitive, which means that the order of x modulo p is 2^degree - 1. */
static bool is_primitive(uint32_t p, int degree)
{
    const uint32_t order = (1u << degree) - 1;
    if ((degree > 1 && !__builtin_parity(p)) || power(order, p, degree) != 1)
        return false; /* a polynomial with an even number of terms has the factor x + 1, so it is not primitive if degree > 1 */
    for (uint32_t rest = order, prime = 2; rest > 1; prime++) {
        if (prime * prime > rest)
            prime = rest;
        if (rest % prime != 0)
            continue;
        if (prime < order && power(order / prime, p, degree) == 1)
            return false;
        while (rest % prime == 0)
            rest /= prime;
    }
    return true;
}

struct polynomial {
    uint32_t bits;
    int degree;
};

/* Replaces *p by the next primitive polynomial; polynomials are ordered by degree, then by coefficients. */
static void next_polynomial(struct polynomial *p)
{
    do {
        p->bits += 2;
        p->degree += (int)(p->bits >> (p->degree + 1));
    } while (!is_primitive(p->bits, p->degree));
}

/* ---- Directions ------------------------------------------------------------------------------------------------------------------- */

/* Returns the k-bit number that begins at bit `at` of the table grd_sobol_numbers; k is at most 18. */
static int64_t stored_bits(int64_t at, int k)
{
    const uint8_t *bytes = grd_sobol_numbers + at / 8;
    const uint32_t word = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
    return word >> at % 8 & ((1u << k) - 1);
}

void grd_sobol_directions(int64_t dimensions, int64_t *directions)
{
    struct polynomial p = {1, 1};
    int64_t at = 0;
    for (int k = 0; k < GRD_SOBOL_BITS; k++)
        directions[k] = INT64_C(1) << (GRD_SOBOL_BITS - 1 - k);
    for (int64_t i = 1; i < dimensions; i++) {
        int64_t *v = directions + i * GRD_SOBOL_BITS;
        next_polynomial(&p);
        for (int k = 0; k < p.degree; at += k++)
            v[k] = (stored_bits(at, k) << 1 | 1) << (GRD_SOBOL_BITS - 1 - k);
        for (int k = p.degree; k < GRD_SOBOL_BITS; k++) {
            v[k] = v[k - p.degree] ^ v[k - p.degree] >> p.degree;
            for (int j = 1; j < p.degree; j++)
                v[k] ^= v[k - j] & -(int64_t)(p.bits >> (p.degree - j) & 1);
        }
    }
}

void grd_sobol_scramble(int64_t dimensions, const int64_t *matrices, int64_t *directions)
{
    for (int64_t i = 0; i < dimensions; i++) {
        uint32_t rows[GRD_SOBOL_BITS] = {0};
        const int64_t *matrix = matrices + i * GRD_SOBOL_BITS * GRD_SOBOL_BITS;
        for (int r = 0; r < GRD_SOBOL_BITS; r++)
            for (int c = 0; c < GRD_SOBOL_BITS; c++)
                rows[r] = rows[r] << 1 | (c == r || (matrix[r * GRD_SOBOL_BITS + c] & 1));
        for (int k = 0; k < GRD_SOBOL_BITS; k++) {
            const uint32_t v = (uint32_t)directions[i * GRD_SOBOL_BITS + k];
            int64_t result = 0;
            for (int r = 0; r < GRD_SOBOL_BITS; r++)
                result = result << 1 | __builtin_parity(rows[r] & v);
            directions[i * GRD_SOBOL_BITS + k] = result;
        }
    }
}

/* ---- Points ----------------------------------------------------------------------------------------------------------------------- */

void grd_sobol_move(int64_t dimensions, const int64_t *directions, int64_t from, int64_t to, int64_t *point)
{
    const int64_t bits = from ^ from >> 1 ^ to ^ to >> 1;
    for (int64_t i = 0; i < dimensions; i++)
        for (int k = 0; k < GRD_SOBOL_BITS; k++)
            point[i] ^= directions[i * GRD_SOBOL_BITS + k] & -(bits >> k & 1);
}

void grd_sobol_draw(int64_t dimensions, const int64_t *directions, int64_t first, int64_t n, int64_t *point, double *ret_points)
{
    for (int64_t k = 0; k < n; k++) {
        const int bit = __builtin_ctzll(~(uint64_t)(first + k));
        for (int64_t i = 0; i < dimensions; i++) {
            point[i] ^= directions[i * GRD_SOBOL_BITS + bit];
            ret_points[k * dimensions + i] = (double)point[i] * 0x1p-30;
        }
    }
}
