/* Registers autograd with the dispatcher, the printer and the fork handlers when the library starts. */
#include "autograd/autocast.h"
#include "autograd/autograd.h"
#include "autograd/forward.h"
#include "autograd/derivative.h"
#include "autograd/dual.h"
#include "autograd/hook_list.h"
#include "autograd/inplace.h"
#include "autograd/node.h"
#include "autograd/tangent.h"
#include "autograd/view_refresh.h"
#include "core/print.h"
#include "dispatch/op.h"

static const char *print_grad_fn(const grd_tensor *t)
{
    const bool asks = !grd_pending();
    const struct grd_node *node = grd_grad_fn((grd_tensor *)(uintptr_t)t);
    if (asks && grd_pending()) { /* of a view whose base was overwritten; whoever prints did not ask for it */
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
    grd_inplace_init(); /* after the hooks, because its lock is held while hooks are dropped */
    grd_view_refresh_init();
}
