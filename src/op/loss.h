/* How losses are reduced. */
#ifndef GRD_OP_LOSS_H
#define GRD_OP_LOSS_H

#include "core/tensor.h"

enum grd_loss_reduction { GRD_LOSS_MEAN, GRD_LOSS_SUM, GRD_LOSS_NONE, GRD_LOSS_BATCH_MEAN, GRD_LOSS_INVALID };

/* The reduction of that name. INVALID, with ValueError, for any but the three that every loss has: mean (or NULL), sum and none. */
enum grd_loss_reduction grd_loss_reduction_of(const char *name);
grd_tensor *grd_loss_reduce(grd_tensor *loss, enum grd_loss_reduction reduction);

#endif
