/* Anomaly mode: where nodes were recorded, and the search for NaN in their results. */
#ifndef GRD_AUTOGRAD_ANOMALY_H
#define GRD_AUTOGRAD_ANOMALY_H

#include "autograd/node.h"

/* Where the mode is on, the history of the tensor learns where it was recorded, if its number is not below `first`; so does that of its base. `t` may be
 * NULL. May leave an error pending. */
void grd_anomaly_trace(const grd_tensor *t, uint64_t first);
/* True if passes look for NaN. */
extern GRD_HIDDEN _Atomic bool grd_anomaly_checks_nan;
/* Where they do: "Function 'SqrtBackward0' returned nan values in its 0th output.". */
void grd_anomaly_check(const struct grd_node *node, grd_tensor *const *results);
/* Where the mode is on, warns that the node has failed, and says where it was recorded. An error is pending, before and after. */
void grd_anomaly_report(struct grd_node *node);

#endif
