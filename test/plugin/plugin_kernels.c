/* A plug-in whose load function defines operators, registers kernels and a fallback, and finally reads the environment variable PLUGIN_KERNELS. A
 * word such as "fails" makes the load fail. If the variable holds a path, the function loads the plug-in at that path, which may be this one. */
#include <stdlib.h>
#include <string.h>

#include "gradus/gradus.h"

static int served;

static void serve(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    ++*(int *)context;
    grd_redispatch(op, (keys & ~(grd_keyset)(1u << GRD_KEY_WRAPPER)) | 1u << GRD_KEY_CPU, out, args, ret_results);
}

static void negate(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)context;
    ret_results[0].v.tensor = grd_mul(args[0].v.tensor, grd_number(grd_int(-1)));
}

/* Defines the operators kernels::twice and kernels::negate. The gradient formula of kernels::negate calls kernels::twice. So the library must find
 * kernels::twice while the plug-in is still loading. Returns false if kernels::negate cannot be defined or found. */
static bool define(void)
{
    grd_define_operator(&(grd_definition){.schema = "kernels::twice(Tensor self) -> Tensor", .gradients = {{"self", "grad * 2"}}});
    grd_register_kernel("kernels::twice", GRD_KEY_CPU, negate, NULL);
    return grd_define_operator(&(grd_definition){.schema = "kernels::negate(Tensor self) -> Tensor",
                                                 .gradients = {{"self", "kernels::twice(grad)"}},
                                                 .kernel = negate}) != NULL &&
           grd_op_find("kernels::negate") != NULL;
}

static bool load(void)
{
    if (!define())
        return false;
    const char *then = getenv("PLUGIN_KERNELS");
    grd_register_kernel("exp", GRD_KEY_WRAPPER, serve, &served);
    grd_register_fallback(GRD_KEY_WRAPPER, serve, &served);
    if (strcmp(then, "fails") == 0)
        grd_add(grd_ones(grd_dims(2)), grd_ones(grd_dims(3)));
    else if (strcmp(then, "fails quietly") == 0)
        return false;
    else if (strcmp(then, "registers twice") == 0)
        grd_register_kernel("exp", GRD_KEY_WRAPPER, serve, &served);
    else if (strcmp(then, "defines twice") == 0)
        define();
    else if (then[0] == '/')
        return grd_load_library(then);
    return true;
}

GRD_PLUGIN("kernels", load)
