/* Registers autograd with the dispatcher, the printer and the fork handlers when the library starts. */
#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/derivative.h"
#include "autograd/dual.h"
#include "autograd/forward.h"
#include "autograd/hook_list.h"
#include "autograd/inplace.h"
#include "autograd/node.h"
#include "autograd/tangent.h"
#include "autograd/view_refresh.h"
#include "core/print.h"
#include "dispatch/op.h"

/* Returns the name of the grad_fn of `t` for printing. Returns NULL if `t` has no grad_fn, and "Invalid" if the grad_fn cannot be computed. */
static const char *print_grad_fn(const grd_tensor *t)
{
    const bool asks = !grd_pending();
    const struct grd_node *node = grd_grad_fn((grd_tensor *)(uintptr_t)t);
    if (asks && grd_pending()) { /* the grad_fn of a view could not be refreshed after a write to its base; printing must not fail */
        grd_error_clear();
        return "Invalid";
    }
    return node != NULL ? node->name : NULL;
}

void grd_autograd_init(void)
{
    grd_register_fallback(GRD_KEY_AUTOGRAD, grd_autograd_record, NULL);
    grd_register_fallback(GRD_KEY_FORWARD, grd_forward_record, NULL);
    grd_autocast_init();
    grd_tangent_init();
    grd_print_grad_fn = print_grad_fn;
    grd_print_tangent = grd_tangent_find;
    grd_hooks_init();
    /* Called after grd_hooks_init, because fork takes the locks in reverse order of their registration. So fork takes the lock of inplace.c before
     * the lock of the hooks. A thread that drops hooks while it holds the lock of inplace.c takes the two locks in the same order. */
    grd_inplace_init();
    grd_view_refresh_init();
}
