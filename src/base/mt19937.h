/* The random number engine mt19937 (Matsumoto and Nishimura, 1998). Its state of 624 words is renewed as a whole, and each word is tempered when
 * it is drawn. The functions are inline, so that kernels draw many words with the instruction set they are compiled for. */
#ifndef GRD_BASE_MT19937_H
#define GRD_BASE_MT19937_H

#include <stdint.h>

enum { GRD_MT19937_WORDS = 624, GRD_MT19937_SHIFT = 397 };

/* The state of an engine. `left` + `next` is 625 after a word was drawn. A newly seeded engine has `left` 1 and `next` 0, so it is renewed before
 * the first word is drawn. */
struct grd_mt19937 {
    uint32_t state[GRD_MT19937_WORDS];
    int left; /* number of words that are not drawn yet, plus 1 */
    int next; /* index in `state` of the next word to be drawn */
};

static inline uint32_t grd_mt19937_twist(uint32_t u, uint32_t v)
{
    const uint32_t mixed = (u & UINT32_C(0x80000000)) | (v & UINT32_C(0x7fffffff));
    return (mixed >> 1) ^ (-(v & 1) & UINT32_C(0x9908b0df));
}

/* Replaces the engine's 624 words by the next 624 words of the sequence, none of which is drawn yet. */
static inline void grd_mt19937_renew(struct grd_mt19937 *engine)
{
    enum { N = GRD_MT19937_WORDS, M = GRD_MT19937_SHIFT };
    uint32_t *s = engine->state;
    for (int i = 0; i < N - M; i++)
        s[i] = s[i + M] ^ grd_mt19937_twist(s[i], s[i + 1]);
    for (int i = N - M; i < N - 1; i++)
        s[i] = s[i + M - N] ^ grd_mt19937_twist(s[i], s[i + 1]);
    s[N - 1] = s[M - 1] ^ grd_mt19937_twist(s[N - 1], s[0]);
    engine->left = N + 1;
    engine->next = 0;
}

static inline uint32_t grd_mt19937_temper(uint32_t y)
{
    y ^= y >> 11;
    y ^= (y << 7) & UINT32_C(0x9d2c5680);
    y ^= (y << 15) & UINT32_C(0xefc60000);
    return y ^ (y >> 18);
}

#endif
