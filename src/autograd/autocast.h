/* Declares the initialization of autocast. The public functions of autocast are declared in gradus/autograd.h. */
#ifndef GRD_AUTOGRAD_AUTOCAST_H
#define GRD_AUTOGRAD_AUTOCAST_H

/* Registers the kernel of the AUTOCAST dispatch key. Called once, when the library is loaded. */
void grd_autocast_init(void);

#endif
