/* Reads and sets the grad mode of a thread, which says whether operators are recorded. */
#include "autograd/node.h"
#include "base/thread.h"

bool grd_grad_enabled(void)
{
    return grd_thread.grad_off == 0;
}

bool grd_set_grad_enabled(bool enabled)
{
    bool previous = grd_thread.grad_off == 0;
    grd_thread.grad_off = enabled ? 0 : GRD_AUTOGRAD_BIT;
    return previous;
}
