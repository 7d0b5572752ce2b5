/* What happens when the library is loaded: kernels are chosen, slots filled, the autograd key connected. */
#include "autograd/autograd.h"
#include "base/error.h"
#include "base/object.h"
#include "base/transaction.h"
#include "core/iter.h"
#include "dispatch/op.h"
#include "gradus/runtime.h"
#include "kernel/table.h"

const char *grd_version(void)
{
    return GRD_VERSION;
}

grd_tensor *grd_scope_return(grd_scope scope, grd_tensor *result)
{
    if (result == NULL)
        grd_raise(GRD_ERROR_TYPE, "grd_scope_return: a tensor is required, not NULL");
    return grd_leave_number(scope.mark, result);
}

void grd_load(void);

__attribute__((constructor)) void grd_load(void)
{
    grd_iter_cast = grd_cast_kernel;
    grd_dispatch_init();
    grd_device_init();
    grd_autograd_init();
    grd_plugin_init();
    grd_transaction_init();
}
