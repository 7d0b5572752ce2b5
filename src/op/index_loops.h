/* Loops over places that an index tensor names: the checks, the reading and the running that all indexing operators share. */
#ifndef GRD_OP_INDEX_LOOPS_H
#define GRD_OP_INDEX_LOOPS_H

#include "core/tensor.h"
#include "kernel/index.h"
#include "op/plan.h"

/* ---- Indices ------------------------------------------------------------------------------------------------------------- */

bool grd_is_index_dtype(const grd_tensor *index);
bool grd_check_index_dtype(const grd_tensor *index);
bool grd_check_index_vector(const grd_tensor *index);
/* RuntimeError: index and t differ in rank; 0-d counts as 1-d. `what` is "input", "self" or "src". */
bool grd_check_index_ndim(const grd_tensor *index, const grd_tensor *t, const char *what);

/* An index tensor as the loops read it: int64, with strides in bytes; dimensions it repeats along stay repeated. */
struct grd_indices {
    const int64_t *data;
    int64_t strides[GRD_MAX_DIMS];
    int64_t unique, first_bad; /* elements in memory; the first bad index itself, when grd_indices_in_range failed */
};

/* Reads `index` into ret; temporaries go to the pool. False only when memory is out. */
bool grd_read_indices(grd_tensor *index, struct grd_indices *ret);
/* True if all lie in [low, high). Raises nothing. */
bool grd_indices_in_range(struct grd_indices *indices, int64_t low, int64_t high);
/* Raises "index 5 is out of bounds for dimension 0 with size 3". Always false. */
bool grd_raise_out_of_bounds(grd_error_code code, const struct grd_indices *indices, int64_t dim, int64_t size);

/* ---- The loops --------------------------------------------------------------------------------------------------------------- */

enum { GRD_RESULT, GRD_SOURCE, GRD_INDEX, GRD_OPERANDS };

/* A nest of loops over the positions of an index. `dim` is the indexed dimension: the operand the index points into has stride 0 there. */
struct grd_indexed {
    grd_loop_kernel *kernel;
    int64_t step;   /* bytes between elements of the operand the index points into, along its indexed dimension */
    int64_t row;    /* bytes of the indexed dimension, if its elements follow each other; otherwise 0 */
    bool in_order;  /* positions along dim must be visited in order, by one thread */
    int64_t dim, n; /* n: dimensions */
    int64_t sizes[GRD_MAX_DIMS + 2], strides[GRD_OPERANDS][GRD_MAX_DIMS + 2]; /* bytes */
    char *data[GRD_OPERANDS];
    /* Set by grd_indexed_run: */
    int64_t inner, piece, pieces; /* the innermost dimension, and how it is cut */
};

/* Sets one of the operands. */
void grd_indexed_operand(struct grd_indexed *x, int operand, const grd_tensor *t);
/* Sets the loops of gather and scatter, which go over every dimension of `index`; `places` is the tensor that the index points into. */
void grd_indexed_elements(struct grd_indexed *x, const grd_tensor *places, int operand, const grd_tensor *index,
                          const struct grd_indices *indices, int64_t dim);
/* Sets loops over slices: the index is a vector of `count` along dim; `places` is the tensor that it points into. */
void grd_indexed_slices(struct grd_indexed *x, const grd_tensor *places, int operand, const struct grd_indices *indices, int64_t dim,
                        int64_t count);
void grd_indexed_run(struct grd_indexed *x);

/* Returns the kernel for elements of t's size. */
grd_loop_kernel *grd_kernel_of_size(grd_loop_kernel *const *kernels, const grd_tensor *t);

/* ---- Operators along one dimension -------------------------------------------------------------------------------------------- */

/* What the plan hands to the check and the run of an operator whose index names places along one dimension. These are places of the result, which
 * starts as self, if the operator writes; otherwise of self. in[0] is self, in[1] the index, in[2] the source, NULL when one element is written
 * everywhere. */
struct grd_indexed_plan {
    grd_loop_kernel *kernel;
    bool writes;
    bool slices;               /* the index is a vector, of slices; otherwise each of its elements names an element */
    bool wraps;                /* negative indices are counted from the end */
    bool keeps_layout;         /* a new result has self's strides; otherwise it is contiguous */
    bool unchecked;            /* the index is not checked, since it names no element */
    bool by_rows;              /* index_add_rows.c runs it */
    grd_error_code range_code; /* for "index 5 is out of bounds …"; NONE: "index out of range in self" */
    int64_t dim;
    struct grd_indices indices; /* set by the check */
    _Alignas(16) char element[16];
};

/* Plans an operator that writes; `source` may be NULL, and is converted to `as`, the dtype computed in. */
bool grd_plan_writes(struct grd_plan *p, const struct grd_indexed_plan *indexed, grd_tensor *self, grd_tensor *index, grd_tensor *source,
                     grd_dtype as);
/* Plans an operator that reads at the places. */
bool grd_plan_gathers(struct grd_plan *p, const struct grd_indexed_plan *indexed, grd_tensor *self, grd_tensor *index, grd_dims sizes);

/* ---- What is written ----------------------------------------------------------------------------------------------------- */

/* RuntimeError when `out`, unless it is NULL, has elements that share memory with each other or with one of `read` (NULL entries are skipped). */
bool grd_check_indexed_out(const grd_tensor *out, grd_tensors read);
/* RuntimeError if `out`, unless it is NULL, shares memory with one of `read` (NULL entries are skipped). */
bool grd_check_no_overlaps(const grd_tensor *out, grd_tensors read);
/* RuntimeError if elements of `out` share memory. Where PyTorch still lets expanded tensors be written, a warning that names the operator and the
 * indexing. */
bool grd_check_repeated_out(const grd_tensor *out, const char *name, const char *example);

#endif
