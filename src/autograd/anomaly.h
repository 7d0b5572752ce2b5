/* Anomaly mode. It stores in each autograd node the traceback of the call that created the node. If check_nan is set, it also raises an error if a
 * gradient that a node computes contains NaN. */
#ifndef GRD_AUTOGRAD_ANOMALY_H
#define GRD_AUTOGRAD_ANOMALY_H

#include "autograd/node.h"

/* If anomaly mode is on, stores the current traceback in the grad_fn of `t` and in that of the base of `t`. Skips a node whose sequence number is
 * less than `first`, i.e. a node from before the call that is traced. `t` may be NULL. May leave an error pending. */
void grd_anomaly_trace(const grd_tensor *t, uint64_t first);
/* True if backward passes check gradients for NaN. */
extern GRD_HIDDEN _Atomic bool grd_anomaly_checks_nan;
/* Raises RuntimeError if a gradient that the node computed contains NaN, e.g. "Function 'SqrtBackward0' returned nan values in its 0th output.".
 * `results` has one gradient per edge of the node. */
void grd_anomaly_check(const struct grd_node *node, grd_tensor *const *results);
/* If anomaly mode is on, warns that an error occurred in the node and shows the traceback of the operator call that created the node. An error is
 * pending before and after grd_anomaly_report. */
void grd_anomaly_report(struct grd_node *node);

#endif
