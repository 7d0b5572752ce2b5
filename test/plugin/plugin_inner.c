/* A plug-in that another plug-in loads, and that several threads load at the same time. */
#include "gradus/gradus.h"

static void refuse(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)args, (void)ret_results, (void)context;
    grd_error_set(GRD_ERROR_RUNTIME, "refused");
}

static bool load(void)
{
    grd_register_kernel("log", GRD_KEY_WRAPPER, refuse, NULL);
    return true;
}

GRD_PLUGIN("inner", load)
