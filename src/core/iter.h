/* Elementwise iteration: broadcasts, promotes, checks overlap, allocates the result, reorders and coalesces dimensions,
 * splits the work over threads and calls a one-dimensional kernel.
 *
 * There are two steps. grd_iter_plan decides sizes, strides and dtypes of the result and raises every error, and writes no data.
 * grd_iter_bind allocates the result and sets the addresses.
 *
 *     const struct grd_iter_spec spec = {.out = out, .inputs = {a, b}, .ninputs = 2, …};
 *     struct grd_iter it;
 *     struct grd_planned planned;
 *     if (!grd_iter_plan(&it, &planned, &spec) || … checks that read data …)
 *         return grd_failed;
 *     grd_tensor *result = grd_iter_bind(&it, &planned, &spec);
 *     if (!grd_is_failed(result))
 *         grd_iter_map(&it, &map);
 *     return result;
 *
 * Invariant: nothing is written before every check has passed. */
#ifndef GRD_CORE_ITER_H
#define GRD_CORE_ITER_H

#include "core/new.h"
#include "core/tensor.h"
#include "kernel/map.h"

enum { GRD_ITER_OPERANDS = 6, GRD_ITER_INPUTS = 4, GRD_ITER_FEW = 256 /* elements: Note [Few elements] in iter_run.c */ };

/* What dtype the kernel computes in and what the result has. */
enum grd_type_rule {
    GRD_TYPE_PROMOTE, /* result and computation: the promoted dtype of the inputs */
    GRD_TYPE_FLOAT,   /* the same, with integers and bool promoted to the default float dtype */
    GRD_TYPE_KEEP,    /* result dtype given in spec.dtype; inputs are not converted (where's condition, copy) */
    GRD_TYPE_COMPARE, /* computes in the promoted dtype, the result is bool */
    GRD_TYPE_BOOL     /* every input is used as is: inputs promoted, result bool; the kernel reads the promoted dtype (logical_*) */
};

static inline bool grd_gives_bool(enum grd_type_rule rule)
{
    return rule >= GRD_TYPE_COMPARE;
}

struct grd_iter_spec {
    grd_tensor *out; /* NULL: allocate; one of the inputs: in place */
    grd_tensor *inputs[GRD_ITER_INPUTS];
    int ninputs;
    enum grd_type_rule rule;
    grd_dtype dtype;      /* result dtype for KEEP */
    uint8_t promote_from; /* first input that takes part in promotion (1 for where: the condition does not) */
};

struct grd_iter {
    int ndim, noperands;                 /* operand 0 is the result */
    grd_dtype compute;                   /* dtype the kernel is to be taken for */
    grd_dtype dtypes[GRD_ITER_OPERANDS]; /* of the operands in memory */
    grd_dtype wanted[GRD_ITER_OPERANDS]; /* what the kernel reads and writes; converted in cache-sized pieces where different */
    bool converts;                       /* `dtypes` and `wanted` differ for some operand */
    char *data[GRD_ITER_OPERANDS];
    int64_t numel;
    grd_device device;                                /* the result's device; nothing is computed on meta */
    int64_t shape[GRD_MAX_DIMS];                      /* shape[0] is the innermost dimension */
    bool few;                                         /* at most GRD_ITER_FEW elements: `tensors` is set, `strides` is not */
    const grd_tensor *tensors[GRD_ITER_OPERANDS];     /* the operands, borrowed; operand 0 is the result */
    int64_t strides[GRD_ITER_OPERANDS][GRD_MAX_DIMS]; /* bytes */
};

/* Plans sizes, strides and dtype of the result, and the dtype that the kernel computes in. False, with the error raised, if the
 * inputs or out= do not fit. */
bool grd_iter_plan(struct grd_iter *it, struct grd_planned *ret_planned, const struct grd_iter_spec *spec);
/* Returns the result, a new one or out= with the planned sizes; `it` is then ready for grd_iter_map. grd_failed: no memory. */
grd_tensor *grd_iter_bind(struct grd_iter *it, const struct grd_planned *planned, const struct grd_iter_spec *spec);

/* Plans and binds, for a caller that has no checks to make in between. Returns the result or grd_failed. */
static inline grd_tensor *grd_iter_elementwise(struct grd_iter *it, const struct grd_iter_spec *spec)
{
    struct grd_planned planned;
    return grd_iter_plan(it, &planned, spec) ? grd_iter_bind(it, &planned, spec) : grd_failed;
}

/* Plans the result that an elementwise operator with a result of this dtype makes of the inputs, which are at most GRD_ITER_INPUTS. */
bool grd_iter_plan_result(grd_tensors inputs, grd_dtype dtype, struct grd_planned *ret_planned);

/* Sets up an iterator over operands that the caller has broadcast to one shape and converted (copy, reductions, indexing). */
void grd_iter_raw(struct grd_iter *it, grd_dims sizes, int noperands, char *const *data, const int64_t *const *strides_bytes);

/* Work is split into pieces of at most about this many elements, whatever the number of threads. */
enum { GRD_ITER_GRAIN = 32768 };

/* Returns the number of elements of a piece. The pieces are even in number and of equal length, rounded up to a multiple of 64 elements. */
static inline int64_t grd_iter_grain(int64_t numel)
{
    const int64_t pairs = (numel - 1) / (2 * GRD_ITER_GRAIN) + 1, piece = (numel - 1) / (2 * pairs) + 1;
    return (piece + 63) / 64 * 64;
}

/* Runs an elementwise kernel over all elements of an iterator that was bound. Cannot fail. Does nothing on meta tensors. */
void grd_iter_map(const struct grd_iter *it, const struct grd_map *map);

/* Runs a kernel over all elements of an iterator of grd_iter_raw. */
void grd_iter_run(const struct grd_iter *it, grd_loop_kernel *kernel, const void *params);
/* Runs the kernel on this thread alone, element by element in the order of the iterator's dimensions: for kernels with state (random numbers). */
void grd_iter_run_serial(const struct grd_iter *it, grd_loop_kernel *kernel, const void *params);

/* "result type Float can't be cast to the desired output type Long" */
bool grd_check_castable(grd_dtype from, grd_dtype to);
/* RuntimeError "output with shape [1] doesn't match the broadcast shape [3]" when in-place results have another shape. */
bool grd_check_inplace_shape(const grd_tensor *self, grd_dims sizes);
/* RuntimeError when a tensor that is written has elements that share memory
 * ("unsupported operation: more than one element of the written-to tensor refers to a single memory location"). */
bool grd_check_no_internal_overlap(const grd_tensor *written);
/* RuntimeError when `read`, broadcast to the written tensor, overlaps it otherwise than element by element. */
bool grd_check_no_partial_overlap(const grd_tensor *written, const grd_tensor *read);
/* RuntimeError when the two tensors share any memory: for operators that may read an element after they have written it. */
bool grd_check_no_overlap(const grd_tensor *written, const grd_tensor *read);

#endif
