/* Installs the kernel of the AUTOCAST key. */
#ifndef GRD_AUTOGRAD_AUTOCAST_H
#define GRD_AUTOGRAD_AUTOCAST_H

void grd_autocast_init(void);

#endif
