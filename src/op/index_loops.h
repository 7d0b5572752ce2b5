/* Checks and reads indices, and runs loops over the elements that an index selects, for all indexing operators. */
#ifndef GRD_OP_INDEX_LOOPS_H
#define GRD_OP_INDEX_LOOPS_H

#include "core/tensor.h"
#include "kernel/index.h"
#include "op/plan.h"

/* ---- Indices ------------------------------------------------------------------------------------------------------------- */

/* True if the dtype of `index` is int32 or int64. */
bool grd_is_index_dtype(const grd_tensor *index);
/* Raises RuntimeError if the index is neither int32 nor int64. */
bool grd_check_index_dtype(const grd_tensor *index);
/* Raises IndexError if the index has more than one dimension. */
bool grd_check_index_vector(const grd_tensor *index);
/* Raises RuntimeError if `index` is not empty and its number of dimensions differs from that of `t`, where zero dimensions count as one. `what`,
 * the name of `t` in the error's text, is "input", "self" or "src". */
bool grd_check_index_ndim(const grd_tensor *index, const grd_tensor *t, const char *what);

/* An index tensor as the loops read it: int64, with strides in bytes. A stride is 0 along a dimension in which an expanded tensor repeats its
 * elements. */
struct grd_indices {
    const int64_t *data;
    int64_t strides[GRD_MAX_DIMS];
    /* `stored` is the number of elements of `data`. An index that an expanded tensor repeats is stored there only once. `first_bad` is the first
     * index out of range; it is set only if grd_indices_in_range() returns false. */
    int64_t stored, first_bad;
};

/* Reads the tensor `index` into *ret. If it must be converted to int64, the innermost memory scope frees the converted copy when it closes.
 * Returns false only if memory runs out. */
bool grd_read_indices(grd_tensor *index, struct grd_indices *ret);
/* True if all indices are in [low, high). Otherwise writes the first index out of this range to indices->first_bad, but raises nothing. */
bool grd_indices_in_range(struct grd_indices *indices, int64_t low, int64_t high);
/* Raises "index 5 is out of bounds for dimension 0 with size 3" for the index indices->first_bad. Always returns false. */
bool grd_raise_out_of_bounds(grd_error_code code, const struct grd_indices *indices, int64_t dim, int64_t size);

/* ---- The loops --------------------------------------------------------------------------------------------------------------- */

/* Index of each operand in the arrays of struct grd_indexed; GRD_OPERANDS is the number of operands. */
enum { GRD_RESULT, GRD_SOURCE, GRD_INDEX, GRD_OPERANDS };

/* Describes nested loops that call a kernel for the elements of a result, a source and an index. Either the result or the source is the indexed
 * operand. At each position of the loops, the address of the indexed operand is increased by i * step bytes, where i is the element of the index. The
 * index runs along dimension `dim` of the loops, and the indexed operand has stride 0 along this dimension. */
struct grd_indexed {
    grd_loop_kernel *kernel;
    int64_t step;   /* bytes between elements of the indexed operand along its indexed dimension */
    int64_t row;    /* bytes of a row (all elements along the indexed dimension) if its elements are contiguous; otherwise 0 */
    bool in_order;  /* true if positions along dim must be visited in order, by one thread */
    int64_t dim, n; /* dim: the indexed dimension of the loops (-1: none); n: the number of dimensions of the loops */
    int64_t sizes[GRD_MAX_DIMS + 2], strides[GRD_OPERANDS][GRD_MAX_DIMS + 2]; /* sizes of the loops; strides of each operand in bytes */
    char *data[GRD_OPERANDS];
    /* The members below are set by grd_indexed_run(), not by its callers. */
    /* inner: dimension of the innermost loop. Its elements are divided into `pieces` pieces of `piece` elements, which threads share. */
    int64_t inner, piece, pieces;
};

/* Sets x->data and x->strides of operand number `operand` to those of `t`. */
void grd_indexed_operand(struct grd_indexed *x, int operand, const grd_tensor *t);
/* Sets *x to the loops of gather and scatter, which run over every element of `index`. `indices` holds the elements of `index`. They select
 * positions along dimension `dim` of the tensor `places`, which becomes the operand of x with the number `operand`. */
void grd_indexed_elements(struct grd_indexed *x, const grd_tensor *places, int operand, const grd_tensor *index,
                          const struct grd_indices *indices, int64_t dim);
/* Sets *x to the loops of index_select, index_add and similar operators, which run over slices. `indices` is a vector of `count` indices. They
 * select positions along dimension `dim` of the tensor `places`, which becomes the operand of x with the number `operand`. */
void grd_indexed_slices(struct grd_indexed *x, const grd_tensor *places, int operand, const struct grd_indices *indices, int64_t dim,
                        int64_t count);
/* Runs the loops that *x describes. */
void grd_indexed_run(struct grd_indexed *x);

/* Returns the kernel for the element size of `t` from `kernels`, an array with a kernel for each element size. */
grd_loop_kernel *grd_kernel_of_size(grd_loop_kernel *const *kernels, const grd_tensor *t);

/* ---- Operators along one dimension -------------------------------------------------------------------------------------------- */

/* Describes an operator whose index selects positions along one dimension. If `writes`, they are positions of the result, which starts as a copy of
 * self; otherwise they are positions of self. The plan's inputs are in[0] = self, in[1] = the index and in[2] = the source, which is NULL if one
 * value is written at all positions. */
struct grd_indexed_plan {
    grd_loop_kernel *kernel;
    bool writes;
    bool slices;       /* the index is a vector that selects slices; otherwise each of its elements selects one element */
    bool wraps;        /* negative indices count from the end */
    bool keeps_layout; /* a new result has self's strides; otherwise it is contiguous */
    bool unchecked;    /* true if the index is not checked, because nothing is selected */
    bool by_rows;      /* true if grd_add_rows() of index_add_rows.c runs the operator */
    /* Code of the error "index 5 is out of bounds ...", which is raised for an index out of range. If the code is GRD_ERROR_NONE, IndexError "index
     * out of range in self" is raised instead. */
    grd_error_code range_code;
    int64_t dim;
    struct grd_indices indices; /* the elements of the index; set by check_indexed */
    /* The value that is written at all indexed positions if there is no source tensor, e.g. by index_fill. */
    _Alignas(16) char element[16];
};

/* Plans an operator that writes to a copy of self at the indexed positions. `source`, which may be NULL, is converted to `as`, the dtype of the
 * computation. Returns false, with the error raised, on failure. */
bool grd_plan_writes(struct grd_plan *p, const struct grd_indexed_plan *indexed, grd_tensor *self, grd_tensor *index, grd_tensor *source,
                     grd_dtype as);
/* Plans an operator that reads self at the indexed positions, with a result of the given sizes. Returns false, with the error raised, on failure. */
bool grd_plan_gathers(struct grd_plan *p, const struct grd_indexed_plan *indexed, grd_tensor *self, grd_tensor *index, grd_dims sizes);

/* ---- What is written ----------------------------------------------------------------------------------------------------- */

/* Raises RuntimeError if elements of `out` share memory with each other or, as grd_check_no_overlap says, with a tensor of `read`. `out` and entries
 * of `read` may be NULL. */
bool grd_check_indexed_out(const grd_tensor *out, grd_tensors read);
/* Raises RuntimeError if `out` shares memory with a tensor of `read`, as grd_check_no_overlap says. `out` and entries of `read` may be NULL. */
bool grd_check_no_overlaps(const grd_tensor *out, grd_tensors read);
/* Raises RuntimeError if elements of `out` share memory with each other. For an expanded tensor `out`, only warns, because PyTorch still allows
 * expanded tensors here. The warning names the operator `name` and shows `example`, an example of the indexing. */
bool grd_check_repeated_out(const grd_tensor *out, const char *name, const char *example);

#endif
