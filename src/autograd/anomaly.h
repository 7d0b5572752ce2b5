/* Anomaly mode remembers where each node was recorded and checks the results of backward nodes for NaN. */
#ifndef GRD_AUTOGRAD_ANOMALY_H
#define GRD_AUTOGRAD_ANOMALY_H

#include "autograd/node.h"

/* If anomaly mode is on, stores the current traceback in the grad_fn of `t`, and in the grad_fn of its base, provided that the sequence number of the
 * node is at least `first`. `t` may be NULL. May leave an error pending. */
void grd_anomaly_trace(const grd_tensor *t, uint64_t first);
/* True if backward passes check gradients for NaN. */
extern GRD_HIDDEN _Atomic bool grd_anomaly_checks_nan;
/* RuntimeError if a result of the node contains NaN: "Function 'SqrtBackward0' returned nan values in its 0th output.". */
void grd_anomaly_check(const struct grd_node *node, grd_tensor *const *results);
/* If anomaly mode is on, warns that the node has failed and shows where it was recorded. An error is pending before the call and after it. */
void grd_anomaly_report(struct grd_node *node);

#endif
