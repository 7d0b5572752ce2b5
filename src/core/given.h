/* Checks the tensors that callers pass to public functions. */
#ifndef GRD_CORE_GIVEN_H
#define GRD_CORE_GIVEN_H

#include "core/tensor.h"

/* Raises the error for an invalid tensor argument of `function`. For NULL this is TypeError "grd_is_leaf: argument 't' must be a tensor, not
 * NULL"; for a freed tensor (lifetimes.h) it is a RuntimeError that says why the tensor was freed. Always returns false. */
bool grd_refuse_tensor(const grd_tensor *t, const char *function, const char *argument);

/* True if `t` is neither NULL nor a freed tensor. Otherwise raises an error that names the public function and its argument. */
static inline bool grd_given(const grd_tensor *t, const char *function, const char *argument)
{
    return GRD_LIKELY(t != NULL && !grd_is_dead(t)) || grd_refuse_tensor(t, function, argument);
}

/* True if grd_given accepts each of the `n` tensors. Otherwise raises an error, which is TypeError if the array is NULL or empty. */
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

/* True if `t` is NULL or grd_given accepts it; otherwise raises an error. */
static inline bool grd_given_or_null(const grd_tensor *t, const char *function, const char *argument)
{
    return t == NULL || grd_given(t, function, argument);
}

#endif
