/* Elementwise kernels of float16 and bfloat16: those of float32, of the same level, a piece at a time, between conversions. Typed file.
 * No arithmetic here; which kernels there are is generated from the schema. */
#include <stdbool.h>

#include "kernel/cpu/typed.h"
#include "kernel/map.h"

enum { NARROW = GRD_TAG == GRD_TAG_float16 ? GRD_FLOAT16 : GRD_BFLOAT16, PIECE = 512 };

#define FLOAT32_ROW(name) GRD_PASTE3(name, float32, GRD_LEVEL)

extern grd_loop_kernel *const GRD_TYPED(grd_cast_row)[], *const FLOAT32_ROW(grd_cast_row)[];
extern grd_loop_kernel *const FLOAT32_ROW(grd_unary_row)[], *const FLOAT32_ROW(grd_binary_row)[], *const FLOAT32_ROW(grd_ternary_row)[];

/* Operands of the size of T are converted, those of bool go to the kernel as they are. */
static void through_float32(int64_t n, char *const *data, const int64_t *strides, const void *params, grd_loop_kernel *kernel,
                            uint32_t sizes)
{
    grd_loop_kernel *widen = GRD_TYPED(grd_cast_row)[GRD_FLOAT32], *narrow = FLOAT32_ROW(grd_cast_row)[NARROW];
    float buffers[GRD_MAP_OPERANDS][PIECE];
    for (int64_t start = 0; start < n; start += PIECE) {
        const int64_t m = at_most(n - start, PIECE);
        char *at[GRD_MAP_OPERANDS];
        int64_t steps[GRD_MAP_OPERANDS];
        uint32_t rest = sizes;
        for (int k = 0; rest != 0; k++, rest >>= 8) {
            const bool converted = (rest & 0xff) == sizeof(T);
            const int64_t stride = strides != NULL ? strides[k] : (int64_t)(rest & 0xff);
            char *here = data[k] + start * stride;
            at[k] = converted ? (char *)buffers[k] : here;
            steps[k] = converted ? (int64_t)sizeof(float) : stride;
            if (k > 0 && converted && (stride != 0 || start == 0))
                widen(m, (char *const[]){at[k], here}, (const int64_t[]){sizeof(float), stride}, NULL);
        }
        kernel(m, at, steps, params);
        const int64_t stride = strides != NULL ? strides[0] : (int64_t)sizeof(T);
        if (at[0] == (char *)buffers[0])
            narrow(m, (char *const[]){data[0] + start * stride, at[0]}, (const int64_t[]){stride, sizeof(float)}, NULL);
    }
}

#include "gen/half_rows.h"
