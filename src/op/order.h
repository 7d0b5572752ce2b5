/* Elements of any real dtype as unsigned integers of the same order: what sorting, selection and search compare. */
#ifndef GRD_OP_ORDER_H
#define GRD_OP_ORDER_H

#include <string.h>

#include "core/tensor.h"

/* The key of a number: NaN is above everything, -0 is 0. */
static inline uint64_t grd_order_key(double x)
{
    uint64_t bits;
    x = x == 0 ? 0 : x;
    memcpy(&bits, &x, sizeof bits);
    return x != x ? UINT64_MAX : bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}

/* NotImplementedError for complex dtypes, and others that have no order: "\"sort_cpu\" not implemented for 'ComplexFloat'". */
bool grd_check_ordered(const char *name, grd_dtype dtype);
/* The keys of n elements, `stride` bytes apart. */
void grd_order_keys(grd_dtype dtype, int64_t n, const char *data, int64_t stride, uint64_t *ret_keys);

#endif
