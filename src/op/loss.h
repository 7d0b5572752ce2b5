/* How losses are reduced, and other parts of them. */
#ifndef GRD_OP_LOSS_H
#define GRD_OP_LOSS_H

#include "core/tensor.h"

enum grd_loss_reduction { GRD_LOSS_MEAN, GRD_LOSS_SUM, GRD_LOSS_NONE, GRD_LOSS_INVALID };

/* The reduction of that name. INVALID, with ValueError, for any but the three that every loss has: mean (or NULL), sum and none. */
enum grd_loss_reduction grd_loss_reduction_of(const char *name);
bool grd_loss_check(const char *reduction);
grd_tensor *grd_loss_reduced(grd_tensor *loss, const char *reduction);
/* The gradient of each of the losses that were reduced, which have the sizes of a and b together. b may be NULL. */
grd_tensor *grd_loss_unreduced(grd_tensor *grad, const grd_tensor *a, const grd_tensor *b, const char *reduction);
/* RuntimeError: the weights, unless NULL, are not one for each class. */
bool grd_loss_check_weight(const grd_tensor *weight, int64_t classes);
/* A variance for each element of the input, with a last dimension of 1 where it is one for each row. ValueError: other sizes, a negative variance. */
grd_tensor *grd_loss_variance(const grd_tensor *input, grd_tensor *var);

#endif
