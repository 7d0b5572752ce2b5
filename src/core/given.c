/* Raises the error for a tensor argument that is NULL or already freed. */
#include "core/given.h"

#include "core/lifetimes.h"
#include "core/tensor.h"

bool grd_refuse_tensor(const grd_tensor *t, const char *function, const char *argument)
{
    return t != NULL ? grd_lifetimes_refuse(t, function, argument)
                     : grd_raise(GRD_ERROR_TYPE, "%s: argument '%s' must be a tensor, not NULL", function, argument);
}
