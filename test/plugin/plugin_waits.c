/* A plug-in that defines an operator, registers kernels and a fallback, and then waits inside its load function. The environment variable
 * PLUGIN_WAITS holds two file descriptors. The plug-in writes a byte to the first one when it begins to wait, and waits for a byte from the
 * second one. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gradus/gradus.h"

static void refuse(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)op, (void)keys, (void)out, (void)args, (void)ret_results, (void)context;
    grd_error_set(GRD_ERROR_RUNTIME, "refused");
}

static bool wait_for_word(void)
{
    int tells, hears;
    char word = 'w';
    const char *ends = getenv("PLUGIN_WAITS");
    return ends == NULL || (sscanf(ends, "%d %d", &tells, &hears) == 2 && write(tells, &word, 1) == 1 && read(hears, &word, 1) == 1);
}

static bool load(void)
{
    grd_define_operator(&(grd_definition){.schema = "waits::same(Tensor self) -> Tensor", .gradients = {{"self", "grad"}}});
    grd_register_kernel("waits::same", GRD_KEY_CPU, refuse, NULL);
    grd_register_kernel("cos", GRD_KEY_WRAPPER, refuse, NULL);
    grd_register_fallback(GRD_KEY_WRAPPER, refuse, NULL);
    return wait_for_word() && grd_ok();
}

GRD_PLUGIN("waits", load)
