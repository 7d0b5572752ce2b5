/* Computes the negative log likelihood loss and its gradient; see kernel/nll.h. The build compiles this file once for each of float16, bfloat16,
 * float32 and float64.
 * Invariant: sums are made in double, in LANES partial sums, and the position of a target chooses its partial sum. So the results do not depend on
 * the instruction-set level. */
#include "kernel/nll.h"

#include <string.h>

#include "kernel/cpu/typed.h"

/* CHECKED: the check for invalid targets takes blocks of this many targets. Only a block with an invalid target is searched for the first one.
 * CLEARED_BYTES: gradients are set to zero in blocks of about this many bytes, which stay in the first-level cache. CLEARED_POSITIONS: least number
 * of positions in such a block. */
enum { LANES = 4, CHECKED = 1024, CLEARED_BYTES = 16 * 1024, CLEARED_POSITIONS = 256 };

/* True if `target` is invalid, i.e. neither a class number below x->classes nor x->ignore, the class number of ignored targets. */
static inline bool is_stray(const struct grd_nll *x, int64_t target)
{
    return ((uint64_t)target >= (uint64_t)x->classes) & (target != x->ignore);
}

static int64_t check(const struct grd_nll *x, int64_t begin, int64_t end)
{
    for (int64_t first = begin; first < end; first += CHECKED) {
        const int64_t last = grd_least(end, first + CHECKED);
        bool found = false;
        for (int64_t i = first; i < last; i++)
            found |= is_stray(x, x->target[i]);
        for (int64_t i = first; found && i < last; i++)
            if (is_stray(x, x->target[i]))
                return i;
    }
    return -1;
}

/* Consecutive targets, and the input elements for them. The input has the shape (samples, classes, positions), and the targets have the shape
 * (samples, positions). If positions > 1, all targets of a run belong to one sample. So, in each class, the input elements for these targets have a
 * constant stride. */
struct run {
    int64_t first, n;
    int64_t at;               /* index of the input element of class 0 for the first target */
    int64_t step, class_step; /* distances in elements from one target to the next, and from one class to the next */
};

/* Returns a run of at most `most` targets, which starts at target `begin` and ends before `end`. If a sample has several positions, the run ends with
 * the sample. */
static struct run next_run(const struct grd_nll *x, int64_t begin, int64_t end, int64_t most)
{
    if (x->positions == 1)
        return (struct run){begin, grd_least(end - begin, most), begin * x->classes, x->classes, 1};
    const int64_t sample = begin / x->positions, position = begin % x->positions;
    const int64_t n = grd_least(grd_least(end - begin, x->positions - position), most);
    return (struct run){begin, n, sample * x->classes * x->positions + position, 1, x->positions};
}

/* Adds the losses of the targets that *run describes to the LANES partial sums in loss_sums, and the weights of these targets to those in
 * weight_sums. Writes each loss to `losses` unless that is NULL. */
GRD_INLINE void add_run(const struct grd_nll *x, const struct run *run, const T *in, const T *weight, T *losses, bool weighted,
                        double *loss_sums, double *weight_sums)
{
    const int64_t *target = x->target + run->first;
    for (int64_t i = 0; i < run->n; i++) {
        double loss = 0;
        if (target[i] != x->ignore) {
            const double w = weighted ? (double)load(weight[target[i]]) : 1;
            loss = -w * (double)load(in[run->at + i * run->step + target[i] * run->class_step]);
            weight_sums[i % LANES] += w;
        }
        loss_sums[i % LANES] += loss;
        if (losses != NULL)
            losses[run->first + i] = store((C)loss);
    }
}

static void forward(const struct grd_nll *x, int64_t begin, int64_t end, const void *in, void *losses, struct grd_nll_sums *ret_sums)
{
    double loss_sums[LANES] = {0}, weight_sums[LANES] = {0};
    struct run run;
    for (int64_t i = begin; i < end; i += run.n) {
        run = next_run(x, i, end, end);
        if (x->weight != NULL)
            add_run(x, &run, in, x->weight, losses, true, loss_sums, weight_sums);
        else
            add_run(x, &run, in, NULL, losses, false, loss_sums, weight_sums);
    }
    ret_sums->loss = (loss_sums[0] + loss_sums[1]) + (loss_sums[2] + loss_sums[3]);
    ret_sums->weight = (weight_sums[0] + weight_sums[1]) + (weight_sums[2] + weight_sums[3]);
}

/* Sets the gradient to zero at the targets that *run describes, for all classes. */
static void clear_run(const struct grd_nll *x, const struct run *run, T *out)
{
    const int64_t blocks = run->class_step == 1 ? 1 : x->classes, n = run->class_step == 1 ? run->n * x->classes : run->n;
    for (int64_t i = 0; i < blocks; i++)
        memset(out + run->at + i * run->class_step, 0, (size_t)n * sizeof *out);
}

/* Writes the gradient of the input at the targets [begin, end). For one run of targets at a time it sets the gradient of all classes to zero. Then,
 * while the zeros are in the cache, it writes the one element of each target's class. */
static void backward(const struct grd_nll *x, int64_t begin, int64_t end, const void *grad, int64_t grad_step, double scale, void *out)
{
    const T *weight = x->weight, *gradients = grad;
    T *elements = out;
    int64_t most = CLEARED_BYTES / (int64_t)sizeof(T) / (x->classes > 0 ? x->classes : 1);
    most = x->positions > 1 && most < CLEARED_POSITIONS ? CLEARED_POSITIONS : most < 1 ? 1 : most;
    struct run run;
    for (int64_t first = begin; first < end; first += run.n) {
        run = next_run(x, first, end, most);
        clear_run(x, &run, elements);
        for (int64_t i = 0; i < run.n; i++) {
            const int64_t class = x->target[first + i];
            if (class == x->ignore)
                continue;
            const double w = weight != NULL ? (double)load(weight[class]) : 1, g = (double)load(gradients[(first + i) * grad_step]);
            elements[run.at + i * run.step + class * run.class_step] = store((C)(-w * scale * g));
        }
    }
}

const struct grd_nll_row GRD_TYPED(grd_nll_row) = {.check = check, .forward = forward, .backward = backward};
