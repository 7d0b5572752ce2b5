/* Elementwise iteration: broadcasts the inputs, promotes dtypes, checks overlap, allocates the result, reorders and merges dimensions, splits the
 * work over threads and calls a one-dimensional kernel.
 *
 * There are two steps. grd_iter_plan decides the sizes, strides and dtype of the result; it makes all checks and writes no data. grd_iter_bind
 * allocates the result and sets the addresses.
 *
 *     const struct grd_iter_spec spec = {.out = out, .inputs = {a, b}, .ninputs = 2, ...};
 *     struct grd_iter it;
 *     struct grd_planned planned;
 *     if (!grd_iter_plan(&it, &planned, &spec) || ... checks that read data ...)
 *         return grd_failed;
 *     grd_tensor *result = grd_iter_bind(&it, &planned, &spec);
 *     if (!grd_is_failed(result))
 *         grd_iter_map(&it, &map);
 *     return result;
 *
 * Invariant: nothing is written before all checks have passed. */
#ifndef GRD_CORE_ITER_H
#define GRD_CORE_ITER_H

#include "core/new.h"
#include "core/tensor.h"
#include "kernel/map.h"

/* With at most GRD_ITER_FEW elements, operands are copied into buffers where necessary and the kernel is called once (Note [Few elements]). */
enum { GRD_ITER_OPERANDS = 6, GRD_ITER_INPUTS = 4, GRD_ITER_FEW = 256 };

/* Rules for two dtypes: the dtype in which the kernel computes, and the dtype of the result. */
enum grd_type_rule {
    GRD_TYPE_PROMOTE, /* both dtypes are the promoted dtype of the inputs */
    GRD_TYPE_FLOAT,   /* both dtypes are the promoted dtype, or the default dtype if the promoted dtype is integer or bool */
    GRD_TYPE_KEEP,    /* the result has spec.dtype, and no input is converted (e.g. copy) */
    GRD_TYPE_COMPARE, /* computes in the promoted dtype; the result is bool */
    /* Like GRD_TYPE_COMPARE, but a Python number that the promoted dtype cannot represent is converted anyway (logical_*). */
    GRD_TYPE_BOOL
};

/* Returns the dtype in which the n inputs are compared, given their promoted dtype `common`; see Note [Numbers out of range] in iter.c. */
grd_dtype grd_dtype_to_compare(grd_tensor *const *inputs, int n, grd_dtype common);

/* True if the rule gives a bool result. */
static inline bool grd_gives_bool(enum grd_type_rule rule)
{
    return rule >= GRD_TYPE_COMPARE;
}

struct grd_iter_spec {
    /* NULL to allocate the result; one of the inputs for an in-place operator; otherwise the tensor that the caller passed as out=. Borrowed. */
    grd_tensor *out;
    grd_tensor *inputs[GRD_ITER_INPUTS];
    int ninputs;
    enum grd_type_rule rule;
    grd_dtype dtype;      /* for GRD_TYPE_KEEP, the dtype of the result; ignored by the other rules */
    uint8_t promote_from; /* index of the first input that takes part in promotion; 1 for where(), whose condition (input 0) stays bool */
};

struct grd_iter {
    int ndim, noperands;                 /* noperands is ninputs + 1; operand 0 is the result */
    grd_dtype compute;                   /* dtype in which the kernel computes */
    grd_dtype dtypes[GRD_ITER_OPERANDS]; /* dtype that each operand has in memory */
    /* The dtype in which the kernel reads or writes each operand. Where it differs from `dtypes`, elements are converted, a few at a time so that
     * they stay in the cache. */
    grd_dtype wanted[GRD_ITER_OPERANDS];
    bool converts; /* true if `dtypes` and `wanted` differ for at least one operand */
    char *data[GRD_ITER_OPERANDS];
    int64_t numel;
    grd_device device;                                /* device of the result; on the meta device nothing is computed */
    int64_t shape[GRD_MAX_DIMS];                      /* sizes of the iteration; shape[0] is the innermost dimension */
    bool few;                                         /* at most GRD_ITER_FEW elements; `strides` and `data` are not set in this case */
    const grd_tensor *tensors[GRD_ITER_OPERANDS];     /* the operands, borrowed; operand 0 is the result */
    int64_t strides[GRD_ITER_OPERANDS][GRD_MAX_DIMS]; /* in bytes; strides[i][d] is the stride of operand i in dimension d */
};

/* Plans an elementwise operator: sets the dtypes in `it` and writes the sizes, strides and dtype of the result to *ret_planned. Returns false, with
 * the error raised, if the inputs do not broadcast, or if a device, a dtype or the out= tensor is not allowed. */
bool grd_iter_plan(struct grd_iter *it, struct grd_planned *ret_planned, const struct grd_iter_spec *spec);
/* Returns the result, which is a new tensor or spec.out with the planned sizes, and makes `it` ready for grd_iter_map. Returns grd_failed, with
 * the error raised, on failure. */
grd_tensor *grd_iter_bind(struct grd_iter *it, const struct grd_planned *planned, const struct grd_iter_spec *spec);

/* Calls grd_iter_plan and grd_iter_bind, for operators that have no further checks between the two calls. Returns the result, or grd_failed with
 * the error raised. */
static inline grd_tensor *grd_iter_elementwise(struct grd_iter *it, const struct grd_iter_spec *spec)
{
    struct grd_planned planned;
    return grd_iter_plan(it, &planned, spec) ? grd_iter_bind(it, &planned, spec) : grd_failed;
}

/* Writes the sizes and strides of the result of an elementwise operator, and `dtype` as its dtype, to *ret_planned. There are at most
 * GRD_ITER_INPUTS inputs, which are not converted. Returns false, with the error raised, if the inputs do not broadcast. */
bool grd_iter_plan_result(grd_tensors inputs, grd_dtype dtype, struct grd_planned *ret_planned);

/* Initializes `it` for operands that the caller has already broadcast to `sizes` and converted (copy, reductions, indexing). data[i] is the
 * address of the first element of operand i, and strides_bytes[i] holds its strides in bytes. Operand 0 is the result. */
void grd_iter_raw(struct grd_iter *it, grd_dims sizes, int noperands, char *const *data, const int64_t *const *strides_bytes);

/* Largest number of elements in a piece, before its length is rounded up. A piece is the part of the elements that one thread processes without
 * interruption. The limit is the same for any number of threads, so that the results are the same, too. */
enum { GRD_ITER_GRAIN = 32768 };

/* Returns the number of elements in a piece, i.e. the part that one thread processes without interruption. All `numel` elements are divided into
 * an even number of equal pieces of at most GRD_ITER_GRAIN elements, and the length of a piece is rounded up to a multiple of 64. */
static inline int64_t grd_iter_grain(int64_t numel)
{
    const int64_t pairs = (numel - 1) / (2 * GRD_ITER_GRAIN) + 1, piece = (numel - 1) / (2 * pairs) + 1;
    return (piece + 63) / 64 * 64;
}

/* Runs an elementwise kernel over all elements of an iterator made by grd_iter_bind. It cannot fail. On the meta device it does nothing. */
void grd_iter_map(const struct grd_iter *it, const struct grd_map *map);

/* Runs a one-dimensional kernel over all elements of an iterator made by grd_iter_raw. `params` is passed to the kernel. */
void grd_iter_run(const struct grd_iter *it, grd_loop_kernel *kernel, const void *params);
/* Runs a one-dimensional kernel over all elements of an iterator made by grd_iter_raw, on this thread only and in the order of the iterator's
 * dimensions. For kernels with state, e.g. random number generators. */
void grd_iter_run_serial(const struct grd_iter *it, grd_loop_kernel *kernel, const void *params);

/* True if a result of dtype `from` may be written to an out= tensor of dtype `to`; otherwise raises RuntimeError "result type Float can't be cast
 * to the desired output type Long". */
bool grd_check_castable(grd_dtype from, grd_dtype to);
/* True if `self` has exactly these sizes; otherwise raises RuntimeError "output with shape [1] doesn't match the broadcast shape [3]". */
bool grd_check_inplace_shape(const grd_tensor *self, grd_dims sizes);
/* True if no two elements of `written` share memory; otherwise raises RuntimeError "unsupported operation: more than one element of the written-to
 * tensor refers to a single memory location". */
bool grd_check_no_internal_overlap(const grd_tensor *written);
/* True if `written` and `read` share no memory, or if elements with the same index always have the same address, where `read` is broadcast to the
 * sizes of `written`. Otherwise raises RuntimeError. */
bool grd_check_no_partial_overlap(const grd_tensor *written, const grd_tensor *read);
/* True if the two tensors share memory. */
bool grd_overlaps(const grd_tensor *a, const grd_tensor *b);
/* Raises RuntimeError and returns false if the two tensors share memory, and both are dense or they are the same tensor. As in PyTorch, other tensors
 * may share memory. The caller must read all elements of such a `read` before it writes to `written`. */
bool grd_check_no_overlap(const grd_tensor *written, const grd_tensor *read);

#endif
