/* Declares the initialization of autograd, which the library's constructor calls. */
#ifndef GRD_AUTOGRAD_AUTOGRAD_H
#define GRD_AUTOGRAD_AUTOGRAD_H

/* Registers the kernels of the keys AUTOGRAD, FORWARD and AUTOCAST with the dispatcher, and the functions that print a grad_fn and a tangent. Called
 * once, after grd_dispatch_init. */
void grd_autograd_init(void);

#endif
