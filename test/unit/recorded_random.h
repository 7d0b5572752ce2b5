/* Written by test/record_random.py: values drawn from PyTorch after the seed 7. */
#ifndef GRD_TEST_RECORDED_RANDOM_H
#define GRD_TEST_RECORDED_RANDOM_H

#include <stdint.h>

/* clang-format off */
static const float rand_7[] = {0x1.11e15e0000000p-1f, 0x1.9726200000000p-3f, 0x1.5184320000000p-1f, 0x1.5053ec0000000p-1f,
    0x1.dcb2180000000p-3f, 0x1.b3434c0000000p-2f, 0x1.a81cb80000000p-3f};
static const double uniform_double[] = {-0x1.d084865a714b0p-3, -0x1.285062ebf980cp-2, 0x1.8bb6a45226befp+2, 0x1.f637a1a54ef35p+1};
static const float transposed[] = {0x1.11e15e0000000p-1f, 0x1.5184320000000p-1f, 0x1.dcb2180000000p-3f, 0x1.9726200000000p-3f,
    0x1.5053ec0000000p-1f, 0x1.b3434c0000000p-2f};
static const float randn_5[] = {-0x1.2ca2e80000000p-3f, 0x1.92811c0000000p-1f, 0x1.e4c5ce0000000p-1f, -0x1.1d45a60000000p+0f,
    0x1.b0d7a00000000p+0f};
static const float randn_19[] = {-0x1.a3e8ac0000000p-1f, 0x1.9520560000000p-2f, 0x1.cc3dbc0000000p-1f, -0x1.51ee980000000p-2f,
    0x1.966a5c0000000p-3f, 0x1.906bd40000000p-1f, 0x1.0a02f60000000p+0f, -0x1.72f3120000000p-1f, -0x1.b2a4260000000p-1f,
    -0x1.3788b00000000p+0f, -0x1.4bdd4a0000000p-4f, -0x1.61871c0000000p-2f, -0x1.07de820000000p+1f, 0x1.5923ba0000000p-1f,
    -0x1.52c6ca0000000p+0f, -0x1.5c19d20000000p+0f, -0x1.bbc0500000000p-1f, -0x1.20c57c0000000p-1f, -0x1.073a2a0000000p+1f};
static const double randn_double_17[] = {0x1.0f6e8d3a53973p-4, -0x1.2a06c67e33848p-2, 0x1.d5026572adeb7p-2, 0x1.b17a7806ce055p+0,
    0x1.751bc44dd094ap+0, 0x1.eea5a21096e4bp+0, -0x1.711ab8c9c9497p+0, 0x1.749d011ade7a0p-1, -0x1.502a937321611p+0, -0x1.36f1b9fa84205p+1,
    -0x1.3790c8dcbdd93p-3, -0x1.586ff8c3a394bp+1, 0x1.bdfa986709c28p+0, -0x1.0c449e70ad4cdp-1, -0x1.22b12c8c0e81cp-2, 0x1.cf6ff3d1fa92fp-2,
    -0x1.aaf04bea1dd97p+0};
static const double exponential[] = {0x1.bf57d9f50ae0ap-3, 0x1.b49c6ca0fce22p-3, 0x1.521ee05a82bcep+0, 0x1.6cecdbbbab9bdp-1};
static const int64_t bernoulli[] = {1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1};
static const float dropout[] = {0x1.5555560000000p+0f, 0x1.5555560000000p+0f, 0x0.0p+0f, 0x1.5555560000000p+0f, 0x0.0p+0f, 0x0.0p+0f,
    0x1.5555560000000p+0f, 0x1.5555560000000p+0f};
static const float dropout_half[] = {0x1.3180000000000p-1f, 0x1.3180000000000p-1f, 0x0.0p+0f, 0x1.3180000000000p-1f, 0x0.0p+0f, 0x0.0p+0f,
    0x1.3180000000000p-1f, 0x1.3180000000000p-1f};
static const int64_t randint_9[] = {-4, 0, 3, -2, 0, 2, 4, 1, 0};
static const int64_t randint_wide[] = {752595690692, 108744157686, 291964244179};
static const int64_t randperm_10[] = {5, 0, 3, 4, 1, 7, 9, 6, 8, 2};
static const int64_t random_int64[] = {1407639518939636932, 5163590386780219894};
static const int64_t multinomial_with[] = {1, 1, 3, 3, 3, 3};
static const int64_t multinomial_without[] = {1, 3, 0};
static const int64_t multinomial_equal[] = {23, 22, 21, 20, 8, 12, 0, 10, 11, 9, 5, 4, 3, 2, 1, 6, 13, 14, 15, 16, 17, 18, 19, 7};
static const float mixed[] = {-0x1.2ca2e80000000p-3f, 0x1.92811c0000000p-1f, 0x1.e4c5ce0000000p-1f, 0x1.7615700000000p-2f,
    0x1.b3d9720000000p-1f, -0x1.1d45a60000000p+0f, 0x1.c870b20000000p-2f};
static const int64_t mixed_permutation[] = {2, 0, 1, 3};
/* clang-format on */

#endif
