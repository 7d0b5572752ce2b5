/* See order.h. Every dtype goes through the widest of its kind: a key is exact. */
#include "op/order.h"

#include "base/half.h"
#include "op/common.h"

bool grd_check_ordered(const char *name, grd_dtype dtype)
{
    const bool ordered = grd_category_of(dtype) <= GRD_CATEGORY_FLOAT && dtype != GRD_FLOAT8_E4M3FN && dtype != GRD_FLOAT8_E5M2;
    return ordered || grd_raise_no_kernel(name, dtype);
}

static inline uint64_t signed_key(int64_t x)
{
    return (uint64_t)x ^ (uint64_t)1 << 63;
}

static inline uint64_t key_of(const void *element, grd_dtype dtype)
{
    switch (dtype) {
    case GRD_BOOL:
    case GRD_UINT8:
        return *(const uint8_t *)element;
    case GRD_INT8:
        return signed_key(*(const int8_t *)element);
    case GRD_UINT16:
        return *(const uint16_t *)element;
    case GRD_INT16:
        return signed_key(*(const int16_t *)element);
    case GRD_UINT32:
        return *(const uint32_t *)element;
    case GRD_INT32:
        return signed_key(*(const int32_t *)element);
    case GRD_UINT64:
        return *(const uint64_t *)element;
    case GRD_INT64:
        return signed_key(*(const int64_t *)element);
    case GRD_FLOAT16:
        return grd_order_key(grd_from_float16(*(const uint16_t *)element));
    case GRD_BFLOAT16:
        return grd_order_key(grd_from_bfloat16(*(const uint16_t *)element));
    case GRD_FLOAT32:
        return grd_order_key(*(const float *)element);
    default:
        return grd_order_key(*(const double *)element);
    }
}

void grd_order_keys(grd_dtype dtype, int64_t n, const char *data, int64_t stride, uint64_t *ret_keys)
{
    for (int64_t i = 0; i < n; i++)
        ret_keys[i] = key_of(data + i * stride, dtype);
}
