/* The engine of reductions: a plan of how a tensor is walked, kernels for it, and its run. Operators are in reduction.c, moments.c, norm.c.
 *
 *     struct grd_reduction r;
 *     grd_reduction_plan(&r, read, self, mask);
 *     grd_reduction_kernel(&r, kind);
 *     r.finish = …, r.number = …;
 *     grd_reduction_store(&r, result);
 *     r.gathered = (memory of grd_reduction_scratch bytes, where that is not 0);
 *     grd_reduction_run(&r);
 *
 * which grd_reduce does for the operators of one pass. Those of two copy the planned struct, choose another kernel over it, and give
 * the gathered values of the first pass to the second as centers. */
#ifndef GRD_OP_REDUCE_H
#define GRD_OP_REDUCE_H

#include "kernel/reduce.h"
#include "kernel/table.h"
#include "op/common.h"

/* What becomes of a gathered value v, with the number a and the center c, before it is converted to the result's dtype. */
enum grd_reduce_finish {
    GRD_FINISH_NONE,
    GRD_FINISH_DIVIDE,      /* v / a */
    GRD_FINISH_MEAN,        /* v / a + c */
    GRD_FINISH_ROOT,        /* sqrt(v) */
    GRD_FINISH_DIVIDE_ROOT, /* sqrt(v / a) */
    GRD_FINISH_LOG,         /* log(v) + c */
    GRD_FINISH_ANY,         /* v != 0 */
    GRD_FINISH_ALL          /* v == a */
};

struct grd_reduction_dim {
    int64_t size, stride; /* bytes of the input */
    int64_t step;         /* of a kept dim: outputs */
};

struct grd_reduction {
    enum grd_reduce_kind kind;
    grd_dtype read, gathers; /* what the kernel reads and gathers in */
    grd_reduce_kernel *kernel, *merge;
    grd_loop_kernel *convert; /* to `read`; NULL: elements are read in place */
    const char *in;
    int64_t in_size, read_size, gathered_size, center_size; /* bytes of one */
    bool columns; /* which kernel: neighbours in a strip are contiguous, or the elements of one output */
    bool in_one;  /* a block can be converted in one call: its lines (or rows) follow each other without gaps */
    int nreduced, nkept;
    struct grd_reduction_dim strip;                                     /* the kept dim whose neighbours are done together */
    struct grd_reduction_dim reduced[GRD_MAX_DIMS], kept[GRD_MAX_DIMS]; /* the innermost first; kept is without strip */
    int64_t outputs, n;                                                 /* results, and elements for each */
    int64_t width, strips_per_row, strips, piece, pieces;
    const char *center; /* in strip order */
    char *gathered;     /* [pieces][outputs], in strip order; NULL: finish each strip at once */
    enum grd_reduce_finish finish;
    double number;
    char *result; /* NULL: only gather */
    int64_t result_size;
    grd_loop_kernel *store; /* to the result's dtype */
};

/* Everything but what to do with the results. `mask`: the dims that are reduced. */
void grd_reduction_plan(struct grd_reduction *r, grd_dtype read, const grd_tensor *self, uint64_t mask);
/* Chooses the kernels: after the plan, and again for another kind over the same plan. */
void grd_reduction_kernel(struct grd_reduction *r, enum grd_reduce_kind kind);
/* Results go to `result`, which is contiguous; after kernel and finish are known. */
void grd_reduction_store(struct grd_reduction *r, grd_tensor *result);
/* Bytes of scratch for gathered values, when they are wanted or have to be merged. */
int64_t grd_reduction_scratch(const struct grd_reduction *r, bool wanted);
void grd_reduction_run(const struct grd_reduction *r);

/* The whole way of a reduction in one pass. */
grd_tensor *grd_reduce(grd_tensor *out, grd_tensor *self, uint64_t mask, bool keepdim, enum grd_reduce_kind kind, grd_dtype dtype,
                       enum grd_reduce_finish finish, double number);

/* ---- Around it -------------------------------------------------------------------------------------------------------------- */
/* The result tensor of a reduction; grd_failed, with the error raised, when there can be none. */
grd_tensor *grd_reduce_prepare(grd_tensor *out, const grd_tensor *self, uint64_t mask, bool keepdim, grd_dtype dtype);
/* Elements for each result. */
double grd_reduce_count(grd_dims sizes, uint64_t mask);
/* For gradients, in reduction.c. A reduced tensor with its reduced dims back as size 1. */
grd_tensor *grd_reduce_restored(grd_tensor *t, grd_dims sizes, uint64_t mask, bool keepdim);
/* a / b with 0 where b is 0. */
grd_tensor *grd_quotient_or_zero(grd_tensor *a, grd_tensor *b);

/* float8 and quantized dtypes are stored and converted only. */
static inline bool grd_reduce_has_arithmetic(grd_dtype dtype)
{
    return dtype <= GRD_COMPLEX128;
}

/* NotImplementedError unless there is arithmetic for both. */
static inline bool grd_reduce_check(const char *name, const grd_tensor *self, grd_dtype dtype)
{
    return (grd_reduce_has_arithmetic((grd_dtype)self->dtype) || grd_raise_no_kernel(name, (grd_dtype)self->dtype)) &&
           (grd_reduce_has_arithmetic(dtype) || grd_raise_no_kernel(name, dtype));
}

static inline bool grd_reduce_is_integral(grd_dtype dtype)
{
    return grd_category_of(dtype) <= GRD_CATEGORY_INTEGER;
}

/* The dtype with a kernel that elements of `from` are read as, to give a result of dtype `to`. */
static inline grd_dtype grd_reduce_read_as(enum grd_reduce_kind kind, grd_dtype from, grd_dtype to)
{
    bool choosing = kind == GRD_REDUCE_MAX || kind == GRD_REDUCE_MIN || kind == GRD_REDUCE_FIND;
    bool summing = kind == GRD_REDUCE_SUM || kind == GRD_REDUCE_PROD;
    grd_dtype wanted = summing && !(grd_reduce_is_integral(from) && grd_reduce_is_integral(to)) ? to : from;
    if (grd_category_of(wanted) == GRD_CATEGORY_COMPLEX)
        return GRD_COMPLEX128;
    if (grd_category_of(wanted) == GRD_CATEGORY_FLOAT)
        return from == GRD_FLOAT32 || from == GRD_FLOAT16 || from == GRD_BFLOAT16 ? GRD_FLOAT32 : GRD_FLOAT64;
    if (from == GRD_UINT64 && choosing)
        return GRD_UINT64;
    return from == GRD_BOOL || from == GRD_UINT8 ? GRD_UINT8 : GRD_INT64;
}

#endif
