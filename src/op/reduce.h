/* The law "reduce": sums, extremes, moments, norms. An operator of it says in its schema entry what its rule is; here is what the rules are made of.
 *
 * A reduction is one to three passes over its tensor. A pass gathers a value for each output (kernel/reduce.h), finishes it, writes it to a result
 * of the operator or to none, and hands it to the next pass, whose center it is: var gathers each output's first element, then the mean
 * difference to it, then the squared distances from that mean.
 *
 * What a rule asks for is planned in reduce_plan.c; how passes run is in reduce_run.c. */
#ifndef GRD_OP_REDUCE_H
#define GRD_OP_REDUCE_H

#include "core/dtype.h"
#include "core/tensor.h"
#include "kernel/reduce.h"
#include "kernel/table.h"
#include "op/plan.h"

enum {
    GRD_REDUCE_PASSES = 3,
    GRD_REDUCE_NO_RESULT = -1,
    GRD_REDUCE_STRIP = 512, /* outputs done together */
    GRD_REDUCE_LINES = 8,   /* the same for lines of a small tensor */
    GRD_REDUCE_LEAF = 8192, /* elements of a line per kernel call */
    GRD_REDUCE_ROWS = 64,   /* rows of columns per kernel call */
    GRD_REDUCE_WIDEST = 16  /* bytes of the largest gathered value */
};

/* The dtype of results. For counts, magnitudes and squares it is the real one, for indices int64. */
enum grd_reduce_type {
    GRD_REDUCE_KEEP,  /* self's */
    GRD_REDUCE_SUMS,  /* the argument's, or self's; int64 for bool and integers */
    GRD_REDUCE_MEANS, /* the argument's, or self's; floating point or complex */
    GRD_REDUCE_FLOAT, /* self's; the default float for bool and integers */
    GRD_REDUCE_TRUTH, /* bool, and uint8 for uint8 */
    GRD_REDUCE_INT64
};

/* The result if a reduced dimension is empty. */
enum grd_reduce_empty { GRD_EMPTY_TAKEN, GRD_EMPTY_RUNTIME_ERROR, GRD_EMPTY_INDEX_ERROR };

struct grd_reduce_pass {
    uint8_t kind, finish;
    int8_t result; /* the result that its values are written to, or GRD_REDUCE_NO_RESULT */
    bool first;    /* only the first element of each output is read */
};

struct grd_reduce_rule {
    const char *name; /* for "… not implemented for" */
    uint8_t type, empty, npasses;
    bool none;                                        /* an empty list of dims reduces none, not all */
    const char *refuses[GRD_CATEGORY_QUANTIZED + 1];  /* NULL: taken; "": not implemented; otherwise the text of a RuntimeError */
    struct grd_reduce_pass passes[GRD_REDUCE_PASSES]; /* the passes, in order */
};

/* IndexError: a dim is out of range, or empty. RuntimeError: a dim is given twice, is empty, or the rule refuses the dtype. NotImplementedError:
 * no kernel for the dtype. The sum is divided by the number of elements less `correction`. */
bool plan_reduce(struct grd_plan *p, const struct grd_reduce_rule *rule, grd_tensor *self, grd_dims dim, bool keepdim, grd_dtype dtype,
                 grd_scalar correction);
void run_reduce(const struct grd_plan *p);
/* Reduces the first or last dims of a small contiguous tensor by one call of the kernel, the same call that the plan would lead to. NULL: does not
 * apply. */
grd_tensor *shortcut_reduce(const struct grd_reduce_rule *rule, grd_tensor *out, grd_tensor *self, grd_dims dim, bool keepdim,
                            grd_dtype dtype);

/* Returns an argument that is one dim or none as a list. */
static inline grd_dims grd_reduce_dim(grd_scalar dim, int64_t *storage)
{
    *storage = grd_scalar_int64(dim);
    return dim.kind == GRD_SCALAR_NONE ? (grd_dims){0} : grd_dims_from(storage, 1);
}

/* ---- Between the plan and the run: the state of the plan ----------------------------------------------------------------------------- */

struct grd_reduction_dim {
    int64_t size, stride; /* size, and stride in bytes of the input */
    int64_t step;         /* for a kept dim: its stride in outputs */
};

struct grd_reduction_pass {
    struct grd_reduce_pass what;
    grd_reduce_kernel *kernel, *merge;
    grd_reduce_begin *begin;
    grd_reduce_end *end;
    grd_loop_kernel *store; /* converts to the result's dtype */
    int64_t gathered_size, center_size, finished_size, result_size;
    int64_t n, piece, pieces; /* elements for each output; they are gathered in pieces */
    int64_t gathered;         /* where [pieces][outputs] lie in the scratch, in strip order; -1: each strip is finished at once */
    double number;
    char *result;
};

struct grd_reduction {
    grd_dtype read; /* dtype that the kernels read */
    uint64_t mask;  /* the dims that are reduced */
    int npasses;
    struct grd_reduction_pass passes[GRD_REDUCE_PASSES];
    grd_loop_kernel *convert; /* converts to `read`; NULL: elements are read in place */
    const char *in;
    int64_t in_size, read_size; /* bytes of an element in memory, and of one as it is read */
    bool parts;                 /* complex numbers are read as their parts, which form one more dimension */
    bool columns;               /* which kernel: neighbours in a strip are contiguous, or the elements of one output */
    int nreduced, nkept;
    struct grd_reduction_dim strip;                                     /* the kept dim whose neighbours are done together */
    struct grd_reduction_dim reduced[GRD_MAX_DIMS], kept[GRD_MAX_DIMS]; /* the innermost first; kept is without strip */
    int64_t outputs, n;                                                 /* number of results, and of elements for each */
    int64_t width, strips_per_row, strips;
};

static inline struct grd_reduction *grd_reduction_of(const struct grd_plan *p)
{
    _Static_assert(sizeof(struct grd_reduction) <= GRD_PLAN_STATE, "room in the plan");
    return (struct grd_reduction *)(uintptr_t)p->state;
}

/* Works out what follows from strides: called once mask, `read`, and kind and number of each pass are set. */
bool grd_reduction_prepare(struct grd_plan *p);

#endif
