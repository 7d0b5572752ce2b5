/* The two halves of an operator, and everything between them.
 *
 * An operator of the schema that is no composite is a plan and a run. Its plan checks the arguments and says what the results will be: sizes, dtypes,
 * strides, and what has to be prepared for the run. No data is touched: so the plan alone is the operator on the meta device. The run
 * computes into memory that is there. What lies between is here, once for all: out= and in-place calls, overlap, conversion, allocation, the
 * stop at meta, the choice among providers. The generated op_<name> reads
 *
 *     struct grd_plan p;
 *     grd_plan_open(&p, &grd_operator_tril, out, GRD_OVERLAP_ANY);
 *     if (plan_tril(&p, self, diagonal) && grd_plan_prepare(&p))
 *         run_tril(&p, self, diagonal);
 *     return grd_plan_close(&p);
 *
 * An operator whose arguments must be read before anything is written (indices in range, how many elements a mask selects) has a check between
 * grd_plan_admit and grd_plan_allocate, the two steps of grd_plan_prepare. `make show OP=tril` prints all of it.
 *
 * Invariants
 * - A plan reads no element and takes no memory that is kept. It lives on the stack, and of its arrays no more is written than there are dimensions.
 * - Nothing is written to an argument before everything has been checked and all memory is there.
 * - A run cannot fail, and is not called when there is nothing to compute: on meta, and where all results are empty. */
#ifndef GRD_OP_PLAN_H
#define GRD_OP_PLAN_H

#include "core/new.h"
#include "core/tensor.h"
#include "dispatch/op.h"
#include "op/dtypes.h"

/* Which memory an out= may share with what is read: `overlap` in the schema. */
enum grd_overlap {
    GRD_OVERLAP_ANY,     /* any: results are then made in memory of their own and copied */
    GRD_OVERLAP_ELEMENT, /* element by element; otherwise RuntimeError */
    GRD_OVERLAP_NONE     /* none but the tensor that the results start from; otherwise RuntimeError */
};

struct grd_provider;

/* A tensor that the run reads. */
struct grd_read {
    grd_tensor *t; /* NULL: an optional argument that is absent */
    grd_dtype as;  /* dtype that the run reads, contiguous; NONE: in its own dtype and by its strides */
};

enum { GRD_PLAN_READS = 10, GRD_PLAN_STATE = 4096 };

struct grd_plan {
    const struct grd_op *op;
    grd_tensor *out;

    /* ---- What the plan says */
    grd_device device; /* of the results */
    uint8_t nresults, nreads;
    uint8_t overlap;      /* grd_overlap */
    bool repeats;         /* elements of out= may share memory, which the plan has checked */
    bool any_strides;     /* the run writes its results by their strides */
    bool requires_grad;   /* the result of a factory requires a gradient */
    bool any_device;      /* the run reads tensors of other devices, too */
    bool aligned;         /* each element, or line, is read before it is written, so that the result may be the same view as what is read */
    grd_tensor *start;    /* the results begin with the elements of this tensor; NULL: with anything */
    size_t scratch_bytes; /* scratch memory for the run */
    /* NULL, or called when the results are allocated and nothing is written yet: works out what follows from their strides, the size of scratch
     * included. */
    bool (*prepare)(struct grd_plan *p);
    struct grd_read reads[GRD_PLAN_READS];

    /* ---- What the run finds */
    grd_tensor *in[GRD_PLAN_READS]; /* the tensors of `reads`, converted as was asked */
    grd_tensor *results[GRD_MAX_RESULTS];
    char *scratch;
    const struct grd_provider *provider; /* for laws with several providers (provider.h) */
    bool meta;                           /* nothing will be computed */

    struct grd_planned planned[GRD_MAX_RESULTS];
    _Alignas(GRD_DATA_ALIGNMENT) char state[GRD_PLAN_STATE]; /* what a law, or an operator, hands from its plan to its run; not cleared */
};

/* Returns the dtype that a sum or product of elements of `from` is computed in: theirs, or that of out= if it has more digits. */
static inline grd_dtype grd_plan_sums_in(const grd_tensor *out, grd_dtype from)
{
    if (out == NULL || grd_dtype_is_integral(from))
        return from;
    const grd_dtype wide = grd_dtype_is_complex(from) ? (grd_dtype)out->dtype : grd_dtype_to_real((grd_dtype)out->dtype);
    return grd_promote(from, wide) == wide ? wide : from;
}

/* ---- What plans are made of: each returns true, so that they chain with checks ----------------------------------------------------- */

/* Plans one more result, contiguous, on the planned device or else that of the first tensor read. RuntimeError: too many dimensions. */
bool grd_plan_result(struct grd_plan *p, grd_dims sizes, grd_dtype dtype);
/* Plans a result with the channels of 4 or 5 dimensions innermost, if `channels_last`. */
bool grd_plan_in_order(struct grd_plan *p, grd_dims sizes, bool channels_last, grd_dtype dtype);
/* The order in memory that an argument `memory_format` asks for. */
enum grd_memory_format {
    GRD_FORMAT_PRESERVE,
    GRD_FORMAT_CONTIGUOUS,
    GRD_FORMAT_CHANNELS_LAST,
    GRD_FORMAT_CHANNELS_LAST_3D,
    GRD_FORMAT_FAILED
};

/* Returns the format of that name, or `absent` if it is NULL. GRD_FORMAT_FAILED with ValueError: no such format; with RuntimeError: channels_last
 * needs 4 dimensions, channels_last_3d 5, not `ndim`. */
enum grd_memory_format grd_memory_format_of(const char *name, enum grd_memory_format absent, int64_t ndim);

static inline bool grd_is_channels_last_format(enum grd_memory_format format)
{
    return format == GRD_FORMAT_CHANNELS_LAST || format == GRD_FORMAT_CHANNELS_LAST_3D;
}

/* Plans a result with the sizes of `t` in a format other than GRD_FORMAT_FAILED. */
bool grd_plan_in_format(struct grd_plan *p, const grd_tensor *t, enum grd_memory_format format, grd_dtype dtype);
/* Plans a result with the given strides. */
bool grd_plan_strided(struct grd_plan *p, grd_dims sizes, const int64_t *strides, grd_dtype dtype);
/* Plans a result with the sizes of `t`, and its strides if they are dense. */
bool grd_plan_like(struct grd_plan *p, const grd_tensor *t, grd_dtype dtype);
/* Plans the device of a factory's result, and whether it requires a gradient. RuntimeError: integral dtypes cannot require gradients; there is no
 * such device. */
bool grd_plan_factory(struct grd_plan *p, grd_dtype dtype, grd_device device, bool requires_grad);
/* Plans a factory's result, contiguous. */
bool grd_plan_new(struct grd_plan *p, grd_dims sizes, grd_dtype dtype, grd_device device, bool requires_grad);
/* Plans that the run writes the last result in another dtype. */
static inline bool grd_plan_computed_in(struct grd_plan *p, grd_dtype dtype)
{
    p->planned[p->nresults - 1].as = dtype;
    return true;
}
/* Plans that the run reads `t`, which may be NULL, by its strides and in its dtype. */
bool grd_plan_reads(struct grd_plan *p, grd_tensor *t);
/* Plans that the run reads `t`, which may be NULL, contiguous and converted to `dtype` (NONE: its own). */
bool grd_plan_reads_as(struct grd_plan *p, grd_tensor *t, grd_dtype dtype);

/* Plans that the results begin with the elements of `t`; the run reads nothing more of it. It must be the first that is read. */
bool grd_plan_starts_from(struct grd_plan *p, grd_tensor *t);

/* ---- What the generated function is made of ------------------------------------------------------------------------------------------ */

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

/* Requests scratch memory for the run. A size that overflows is refused when it is allocated. */
static inline void grd_plan_scratch(struct grd_plan *p, double bytes)
{
    p->scratch_bytes = bytes < 0x1p62 ? (size_t)bytes : SIZE_MAX;
}

/* Checks devices and out=, and prepares what is read, so that a check may read it. */
bool grd_plan_admit(struct grd_plan *p);
/* Allocates the results. Also false if there is nothing to run. */
bool grd_plan_allocate(struct grd_plan *p);

static inline bool grd_plan_prepare(struct grd_plan *p)
{
    return grd_plan_admit(p) && grd_plan_allocate(p);
}

/* Returns the operator's result. */
grd_tensor *grd_plan_close(struct grd_plan *p);
void grd_plan_close_many(struct grd_plan *p, grd_tensor **ret_results);

#endif
