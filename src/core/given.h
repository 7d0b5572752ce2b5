/* Checks of the tensors that callers of public functions pass. */
#ifndef GRD_CORE_GIVEN_H
#define GRD_CORE_GIVEN_H

#include "core/tensor.h"

/* Raises TypeError "grd_is_leaf: argument 't' must be a tensor, not NULL", or RuntimeError that says how a dead tensor died. Always returns false. */
bool grd_refuse_tensor(const grd_tensor *t, const char *function, const char *argument);

/* Checks an argument of a public function. False, with the error raised, for NULL and for a dead tensor. */
static inline bool grd_given(const grd_tensor *t, const char *function, const char *argument)
{
    return GRD_LIKELY(t != NULL && !grd_is_dead(t)) || grd_refuse_tensor(t, function, argument);
}

/* Checks an array of tensors as grd_given does. False, with TypeError, if it is NULL or empty. */
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

/* Checks a tensor as grd_given does, but accepts NULL. */
static inline bool grd_given_or_null(const grd_tensor *t, const char *function, const char *argument)
{
    return t == NULL || grd_given(t, function, argument);
}

#endif
