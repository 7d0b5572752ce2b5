/* The loss of connectionist temporal classification of one sample, and its gradient.
 * The target with a blank before, between and after its labels is a chain of 2 n + 1 states. A path stays in its state, goes to the next one, or passes over a blank between two labels that differ;
 * in each step it emits the label of its state. The probability of the target is the sum over all paths that end in one of the last two states. Everything is in logarithms:
 *
 *   alpha[t][s]  of all beginnings of paths that are in state s at step t, emissions until then included
 *   beta[t][s]   of all ends of paths that are in state s at step t, emissions from then on included */
#ifndef GRD_KERNEL_CTC_H
#define GRD_KERNEL_CTC_H

#include <stdbool.h>
#include <stdint.h>

struct grd_ctc {
    int64_t steps, labels, classes, blank; /* steps and labels of this sample */
    const int64_t *target;                 /* the labels */
    const void *log_probs;                 /* of step 0; a step has `classes` neighbours, and steps are `step` elements apart */
    int64_t step;
    void *alpha; /* rows of alpha_row elements */
    int64_t alpha_row;
};

struct grd_ctc_row {
    /* Writes alpha, and -log of the probability of the target. */
    void (*forward)(const struct grd_ctc *x, void *ret_loss);
    /* Writes grad * (exp(log_probs) - the share of paths that emit the class) for each step and class, laid out as log_probs: the gradient with respect to what log_softmax normalises.
     * `beta` is room for two rows of alpha. Zeros if the loss is infinite and `zero_infinity`. */
    void (*backward)(const struct grd_ctc *x, const void *loss, const void *grad, bool zero_infinity, void *beta, void *ret_gradient);
};

#endif
