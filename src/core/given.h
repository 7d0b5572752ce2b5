/* Checks of the tensors that callers of public functions pass. */
#ifndef GRD_CORE_GIVEN_H
#define GRD_CORE_GIVEN_H

#include "core/tensor.h"

/* "grd_is_leaf: argument 't' must be a tensor, not NULL", or how it died. Always false. */
bool grd_refuse_tensor(const grd_tensor *t, const char *function, const char *argument);

/* For the public functions: false, with the error raised, for NULL and for a dead tensor. */
static inline bool grd_given(const grd_tensor *t, const char *function, const char *argument)
{
    return GRD_LIKELY(t != NULL && !grd_is_dead(t)) || grd_refuse_tensor(t, function, argument);
}

/* The same for an array of them, of which there is one at least. */
static inline bool grd_given_all(grd_tensor *const *tensors, int64_t n, const char *function, const char *argument)
{
    if (tensors == NULL || n < 1)
        return grd_raise(GRD_ERROR_TYPE, "%s: argument '%s' must be an array of at least one tensor, not of %lld", function, argument,
                         (long long)n);
    for (int64_t i = 0; i < n; i++)
        if (!grd_given(tensors[i], function, argument))
            return false;
    return true;
}

/* The same for an argument that may be NULL. */
static inline bool grd_given_or_null(const grd_tensor *t, const char *function, const char *argument)
{
    return t == NULL || grd_given(t, function, argument);
}

#endif
