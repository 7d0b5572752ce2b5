/* Prepares the library when it is loaded: chooses the kernels for this processor, enters the kernel of each operator for each dispatch key into the
 * dispatch tables, and registers the kernels of autograd and vmap. */
#include "autograd/autograd.h"
#include "base/scope.h"
#include "base/blocks.h"
#include "base/debug.h"
#include "base/error.h"
#include "base/object.h"
#include "base/parallel.h"
#include "base/transaction.h"
#include "core/device.h"
#include "core/given.h"
#include "core/iter.h"
#include "core/lifetimes.h"
#include "core/shortcuts.h"
#include "core/tensor.h"
#include "dispatch/op.h"
#include "gradus/runtime.h"
#include "kernel/map.h"
#include "op/conjugate.h"
#include "op/fft_tables.h"
#include "op/provider.h"
#include "transform/transform.h"

const char *grd_version(void)
{
    return GRD_VERSION;
}

/* Does the work of grd_scope_return in the debug mode "lifetimes": closes the scope and returns `result`, or grd_failed on failure. Takes a
 * reference to `result` first, because the scope may own the only one. */
static grd_tensor *return_traced(grd_scope scope, grd_tensor *result)
{
    static const char name[] = "grd_scope_return";
    const bool moves = !grd_pending() && grd_given(result, name, "result");
    if (moves)
        grd_object_keep(result);
    const bool closed = grd_trace_close(scope.mark, name);
    if (moves && closed && grd_pool_push(result))
        return result;
    if (moves && !closed)
        grd_object_drop(result);
    return grd_failed;
}

grd_tensor *grd_scope_return(grd_scope scope, grd_tensor *result)
{
    if (result == NULL)
        grd_raise(GRD_ERROR_TYPE, "grd_scope_return: a tensor is required, not NULL");
    if (grd_debugging(GRD_DEBUG_LIFETIMES))
        return return_traced(scope, result);
    if (!grd_scope_check(scope, "grd_scope_return"))
        return grd_failed;
    return grd_leave_number(scope.mark, result);
}

void grd_library_start(void);

__attribute__((constructor)) void grd_library_start(void)
{
    grd_debug_init();
    grd_blocks_init();
    grd_parallel_init();
    grd_lifetimes_init();
    grd_shortcuts_init();
    grd_dispatch_init();
    grd_provider_init();
    grd_conjugate_init();
    grd_fft_tables_init();
    grd_device_init();
    grd_autograd_init();
    grd_transform_init();
    grd_plugin_init();
    grd_transaction_init();
}
