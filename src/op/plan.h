/* Declares the plan of an operator's call, and what happens between an operator's plan and its run.
 *
 * An operator that is not composed of other operators has two functions. Its plan checks the arguments, determines sizes, dtypes and strides of the
 * results, and says in which dtype and layout the run reads each tensor. Its run computes the results into allocated memory. The plan reads and
 * writes no elements, so on the meta device only the plan is called. Everything between plan and run is the same for all operators and is declared
 * here: out= and in-place calls, overlap, conversion, allocation, and the choice of a provider (implementation). The generated function op_<name>
 * looks like this:
 *
 *     struct grd_plan p;
 *     grd_plan_open(&p, &grd_operator_tril, out, GRD_OVERLAP_ANY);
 *     if (plan_tril(&p, self, diagonal) && grd_plan_prepare(&p))
 *         run_tril(&p, self, diagonal);
 *     return grd_plan_close(&p);
 *
 * Some operators must read arguments before anything is written, e.g. to check that indices are in range or to count the elements that a mask
 * selects. They have a check function between grd_plan_admit() and grd_plan_allocate(), which are the two steps of grd_plan_prepare(). `make show
 * OP=tril` prints all of the generated code.
 *
 * Invariants
 * - A plan function reads no elements.
 * - A struct grd_plan is on the stack. To save time, only as many elements of its arrays are written as there are dimensions.
 * - Nothing is written to an argument before all checks have passed and all memory is allocated.
 * - A run cannot fail. It is not called if there is nothing to compute, i.e. on the meta device and if all results are empty. */
#ifndef GRD_OP_PLAN_H
#define GRD_OP_PLAN_H

#include "core/new.h"
#include "core/tensor.h"
#include "dispatch/op.h"
#include "op/dtypes.h"

/* Says which memory an out= tensor may share with the tensors that are read. The schema calls this property `overlap`. */
enum grd_overlap {
    GRD_OVERLAP_ANY,     /* any memory; results that overlap are computed in new memory and copied */
    GRD_OVERLAP_ELEMENT, /* memory may be shared only between elements at the same position; otherwise RuntimeError */
    /* RuntimeError as grd_check_no_overlap says. Exception: the run may read `out` itself if the results start as copies of `out`. */
    GRD_OVERLAP_NONE
};

struct grd_provider;

/* Describes a tensor that the run reads. */
struct grd_read {
    grd_tensor *t; /* NULL for an optional argument that is absent */
    /* Dtype to which `t` is converted before the run reads it as a contiguous tensor. NONE: the run reads `t` with its own dtype and strides. */
    grd_dtype as;
};

/* Maximum number of tensors that a plan reads, and bytes of `state`. */
enum { GRD_PLAN_READS = 10, GRD_PLAN_STATE = 4096 };

struct grd_plan {
    const struct grd_op *op;
    /* Tensor of an out= or in-place call; NULL if the result is a new tensor. */
    grd_tensor *out;

    /* ---- Members that the plan sets */
    grd_device device; /* device of the results */
    /* nresults: number of results; nreads: number of tensors that the run reads. */
    uint8_t nresults, nreads;
    uint8_t overlap;    /* value of enum grd_overlap */
    bool repeats;       /* true if elements of `out` may share memory with each other; if false, such an `out` raises RuntimeError */
    bool any_strides;   /* the run uses the strides of its results, so `out` may have any strides */
    bool requires_grad; /* true for a factory function such as ones() whose result requires a gradient */
    bool any_device;    /* the tensors that are read may be on other devices, e.g. for a copy, so their devices are not checked */
    /* True if a result may be the same view (the same memory and strides) as a tensor that is read. This is safe if the run reads an element, or all
     * elements along the operator's dim, before it writes there. */
    bool aligned;
    /* The results start as copies of this tensor. If it is NULL, their elements are undefined when the run begins. */
    grd_tensor *start;
    size_t scratch_bytes; /* bytes of scratch memory for the run */
    /* Called when the results are allocated but not yet written. Computes what depends on their strides, e.g. scratch_bytes. Returns false on an
     * error. NULL if there is nothing to compute. */
    bool (*prepare)(struct grd_plan *p);
    struct grd_read reads[GRD_PLAN_READS];

    /* ---- Members that the run reads */
    grd_tensor *in[GRD_PLAN_READS]; /* the tensors of `reads`, converted to the requested dtype */
    grd_tensor *results[GRD_MAX_RESULTS];
    /* Scratch memory of scratch_bytes bytes; NULL if scratch_bytes is 0. */
    char *scratch;
    const struct grd_provider *provider; /* the chosen implementation, for operators with several (provider.h) */
    bool meta;                           /* true on the meta device, where nothing is computed */

    struct grd_planned planned[GRD_MAX_RESULTS];
    /* Data that the plan passes to the run, of a type that depends on the operator. Undefined until the plan function sets it. */
    _Alignas(GRD_DATA_ALIGNMENT) char state[GRD_PLAN_STATE];
};

/* Returns the dtype in which a sum or product of elements of `from` is computed: `from`, or the dtype of out= if that dtype has more precision. bool and
 * integers are computed in int64, or in the dtype of out= if it is a floating-point or complex dtype. */
static inline grd_dtype grd_plan_sums_in(const grd_tensor *out, grd_dtype from)
{
    if (grd_dtype_is_integral(from))
        return out != NULL && grd_dtype_is_inexact((grd_dtype)out->dtype) ? (grd_dtype)out->dtype : GRD_INT64;
    if (out == NULL)
        return from;
    const grd_dtype wide = grd_dtype_is_complex(from) ? (grd_dtype)out->dtype : grd_dtype_to_real((grd_dtype)out->dtype);
    return grd_promote(from, wide) == wide ? wide : from;
}

/* ---- Functions that plans call. They return false on an error only, so they can be chained with &&. -------------------------------- */

/* Plans one more result, which is contiguous. Its device is p->device or, if none is set, the device of the first tensor that is read. Raises
 * RuntimeError if there are too many dimensions. */
bool grd_plan_result(struct grd_plan *p, grd_dims sizes, grd_dtype dtype);
/* Plans a result of 4 or 5 dimensions in channels_last format if `channels_last`, otherwise contiguous. */
bool grd_plan_in_order(struct grd_plan *p, grd_dims sizes, bool channels_last, grd_dtype dtype);
/* Values of the argument `memory_format`. grd_memory_format_of() returns GRD_FORMAT_FAILED on an error. */
enum grd_memory_format {
    GRD_FORMAT_PRESERVE,
    GRD_FORMAT_CONTIGUOUS,
    GRD_FORMAT_CHANNELS_LAST,
    GRD_FORMAT_CHANNELS_LAST_3D,
    GRD_FORMAT_FAILED
};

/* Returns the format with the given name, or `absent` if `name` is NULL. On an error it returns GRD_FORMAT_FAILED. Raises ValueError if there is no
 * such format. Raises RuntimeError if `ndim` is not 4 for channels_last, or not 5 for channels_last_3d. */
enum grd_memory_format grd_memory_format_of(const char *name, enum grd_memory_format absent, int64_t ndim);

static inline bool grd_is_channels_last_format(enum grd_memory_format format)
{
    return format == GRD_FORMAT_CHANNELS_LAST || format == GRD_FORMAT_CHANNELS_LAST_3D;
}

/* Plans a result with the sizes of `t` in the given format, which must not be GRD_FORMAT_FAILED. */
bool grd_plan_in_format(struct grd_plan *p, const grd_tensor *t, enum grd_memory_format format, grd_dtype dtype);
/* Plans a result with the given strides. */
bool grd_plan_strided(struct grd_plan *p, grd_dims sizes, const int64_t *strides, grd_dtype dtype);
/* Plans a result with the sizes of `t`. If the strides of `t` are dense, the result has the strides of `t`. Otherwise the result has dense strides,
 * and its dimensions have the same order in memory as those of `t`. */
bool grd_plan_like(struct grd_plan *p, const grd_tensor *t, grd_dtype dtype);
/* Plans the device of the result of a factory function such as ones(), and whether the result requires a gradient. Raises RuntimeError if a gradient
 * is required of an integral dtype, or if there is no such device. */
bool grd_plan_factory(struct grd_plan *p, grd_dtype dtype, grd_device device, bool requires_grad);
/* Plans the contiguous result of a factory function. */
bool grd_plan_new(struct grd_plan *p, grd_dims sizes, grd_dtype dtype, grd_device device, bool requires_grad);
/* Plans that the run writes the last planned result in `dtype`. The result is converted to its planned dtype afterwards. */
static inline bool grd_plan_computed_in(struct grd_plan *p, grd_dtype dtype)
{
    p->planned[p->nresults - 1].as = dtype;
    return true;
}
/* Plans that the run reads `t`, in its own dtype and with its own strides. `t` may be NULL. */
bool grd_plan_reads(struct grd_plan *p, grd_tensor *t);
/* Plans that the run reads `t` as a contiguous tensor, converted to `dtype` unless this is NONE. `t` may be NULL. */
bool grd_plan_reads_as(struct grd_plan *p, grd_tensor *t, grd_dtype dtype);

/* Plans that the results start as copies of `t`. The run itself does not read `t`. Call this before functions that plan to read tensors. */
bool grd_plan_starts_from(struct grd_plan *p, grd_tensor *t);

/* ---- Functions that the generated op_<name> calls ------------------------------------------------------------------------------------ */

/* Initialises a plan for one call of the operator. */
static inline void grd_plan_open(struct grd_plan *p, const struct grd_op *op, grd_tensor *out, enum grd_overlap overlap)
{
    p->op = op;
    p->out = out;
    p->device = (grd_device){GRD_DEVICE_NONE, 0};
    p->nresults = p->nreads = 0;
    p->overlap = (uint8_t)overlap;
    p->repeats = p->any_strides = p->any_device = p->aligned = p->requires_grad = p->meta = false;
    p->start = NULL;
    p->prepare = NULL;
    p->scratch_bytes = 0;
    p->scratch = NULL;
}

/* Requests `bytes` bytes of scratch memory for the run. If the number overflows, the allocation fails with an error later. */
static inline void grd_plan_scratch(struct grd_plan *p, double bytes)
{
    p->scratch_bytes = bytes < 0x1p62 ? (size_t)bytes : SIZE_MAX;
}

/* Checks that the devices agree and that `out` can take the result, and converts the tensors that are read. Afterwards the operator's check function
 * may read p->in. Returns false on an error. */
bool grd_plan_admit(struct grd_plan *p);
/* Allocates the results and the scratch memory. Returns false on an error, and also if there is nothing to run. */
bool grd_plan_allocate(struct grd_plan *p);

static inline bool grd_plan_prepare(struct grd_plan *p)
{
    return grd_plan_admit(p) && grd_plan_allocate(p);
}

/* Releases scratch memory and returns the result of the operator. Returns grd_failed if an error is pending. */
grd_tensor *grd_plan_close(struct grd_plan *p);
/* For operators with several results: releases scratch memory and writes the results to ret_results. If an error is pending, writes grd_failed
 * instead of each result. */
void grd_plan_close_many(struct grd_plan *p, grd_tensor **ret_results);

#endif
