/* Declares kernels that compute the loss of connectionist temporal classification (CTC) for one sample, and the gradient of this loss.
 * With a blank before, between and after its n labels, the target is a chain of 2 n + 1 states. From one step to the next a path stays in its state,
 * moves to the next state, or skips the blank between two labels that differ; in each step it emits the label of its state. The probability of the
 * target is the sum over all paths that end in one of the last two states. All probabilities are stored as logarithms:
 *
 *   alpha[t][s]  probability of all path beginnings that are in state s at step t, including the emissions of steps 0 to t
 *   beta[t][s]   probability of all path ends that are in state s at step t, including the emissions from step t on */
#ifndef GRD_KERNEL_CTC_H
#define GRD_KERNEL_CTC_H

#include <stdbool.h>
#include <stdint.h>

struct grd_ctc {
    int64_t steps, labels, classes, blank; /* steps, labels: lengths of this sample's input and target; blank: the blank's class */
    const int64_t *target;                 /* the class of each of the `labels` labels */
    /* log-probabilities of the classes; the `classes` elements of a step are contiguous, and step t begins at element t * step */
    const void *log_probs;
    int64_t step;
    /* an array of `steps` rows of 2 * labels + 1 elements; alpha[t][s] is the log-probability of all path beginnings that are in state s at step t.
     * Rows are alpha_row elements apart. */
    void *alpha;
    int64_t alpha_row;
};

/* The CTC kernels of one dtype. */
struct grd_ctc_row {
    /* Writes x->alpha. Writes the loss, -log(probability of the target), to ret_loss. */
    void (*forward)(const struct grd_ctc *x, void *ret_loss);
    /* Writes the gradient with respect to the input of log_softmax, in the layout of log_probs. For each step and class this is grad *
     * (exp(log_probs) - q), where q is the share of the target's probability that belongs to paths which emit this class in this step. `beta` is
     * scratch memory as large as two rows of alpha. Writes zeros if the loss is infinite and `zero_infinity` is true. */
    void (*backward)(const struct grd_ctc *x, const void *loss, const void *grad, bool zero_infinity, void *beta, void *ret_gradient);
};

#endif
