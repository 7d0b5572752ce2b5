/* Declares the initialisation of autograd, which the library's constructor calls. */
#ifndef GRD_AUTOGRAD_AUTOGRAD_H
#define GRD_AUTOGRAD_AUTOGRAD_H

/* Makes grd_autograd_record the fallback of the AUTOGRAD key and tells printing how to name a grad_fn. Run once, after grd_dispatch_init. */
void grd_autograd_init(void);

#endif
