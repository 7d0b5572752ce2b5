/* The table that describes one operator's derivative, and the arguments of a backward function.
 *
 * Generated from the schema, or made at run time for an operator defined by a user. The autograd key is one boxed kernel for all operators
 * (record.c); these tables tell it what to save. */
#ifndef GRD_AUTOGRAD_DERIVATIVE_H
#define GRD_AUTOGRAD_DERIVATIVE_H

#include "core/tensor.h"
#include "dispatch/op.h"

/* How a value is saved for the formulas; the capitals name the kind of the saved value. */
enum grd_save_how {
    GRD_SAVE_VALUE,  /* 0: a number, dtype or device: copied */
    GRD_SAVE_TENSOR, /* kept, with a version check */
    GRD_SAVE_GENERATOR,
    GRD_SAVE_OFFSET, /* storage offset of a tensor: INT */
    GRD_SAVE_DTYPE,  /* DTYPE */
    GRD_SAVE_DEVICE, /* DEVICE */
    /* The following need extra bytes in the node besides their grd_saved. */
    GRD_SAVE_SHAPE,   /* sizes of a tensor: DIMS; absent, as None, where the tensor is */
    GRD_SAVE_STRIDES, /* strides: DIMS */
    GRD_SAVE_DIMS,
    GRD_SAVE_TENSORS,
    GRD_SAVE_STRING,
    GRD_SAVE_SIZES_ALONG /* of a tensor list: the size of each along dim args[extra], -1 of vectors without elements: DIMS */
};

enum { GRD_MAX_SAVES = 16 };

static inline bool grd_save_takes_room(uint8_t how)
{
    return how >= GRD_SAVE_SHAPE;
}

/* Returns how a complete value of that kind is saved. */
static inline uint8_t grd_save_whole(grd_kind kind)
{
    static const uint8_t how[] = {[GRD_KIND_TENSOR] = GRD_SAVE_TENSOR,
                                  [GRD_KIND_TENSORS] = GRD_SAVE_TENSORS,
                                  [GRD_KIND_DIMS] = GRD_SAVE_DIMS,
                                  [GRD_KIND_STRING] = GRD_SAVE_STRING,
                                  [GRD_KIND_GENERATOR] = GRD_SAVE_GENERATOR};
    return (int)kind < GRD_LENGTH(how) ? how[kind] : GRD_SAVE_VALUE;
}

/* True if the saved value is the shape, strides, offset, dtype or device of a tensor. grd_fact_of returns it; its lists point into the tensor. */
static inline bool grd_save_is_fact(uint8_t how)
{
    return how >= GRD_SAVE_OFFSET && how <= GRD_SAVE_STRIDES;
}
grd_value grd_fact_of(enum grd_save_how how, const grd_tensor *t);

struct grd_save {
    uint8_t how;
    bool result;      /* a result of the operator, otherwise an argument */
    uint8_t index;    /* index of that argument or result */
    uint8_t extra;    /* SIZES_ALONG: the argument that holds the dim */
    uint16_t used_by; /* bit i: the formula of differentiable argument i uses it. Not saved when none of them needs a gradient */
};

struct grd_derivative;

/* How the tangents of the results follow from those of the arguments (forward.c). */
enum grd_forward {
    GRD_FORWARD_ABSENT,    /* no forward rule is given */
    GRD_FORWARD_ZERO,      /* the results have no tangents */
    GRD_FORWARD_POINTWISE, /* the Jacobian is symmetric (e.g. diagonal): apply the gradient formula to the tangent */
    GRD_FORWARD_LINES,  /* a result depends on what it is reduced from: the sum of tangents times the gradient of the sum of the results */
    GRD_FORWARD_LINEAR, /* linear in all arguments together: apply the operator to the tangents */
    GRD_FORWARD_MULTILINEAR, /* linear in each argument: sum the operator with one argument at a time replaced by its tangent */
    GRD_FORWARD_FORMULA,     /* sum one formula per argument */
    GRD_FORWARD_ADJOINT,     /* the adjoint of the formula of the gradient, for whatever has one */
    GRD_FORWARD_GIVEN,       /* the last tensor among the arguments */
    GRD_FORWARD_TAKEN        /* the result itself becomes the tangent */
};

/* The call of a forward formula. */
struct grd_forward_call {
    const grd_value *args, *results;
    int arg;                   /* index of the argument whose formula is evaluated */
    grd_tensor *tangent;       /* of that argument */
    grd_tensor **ret_tangents; /* one per result; NULL stays where a result has none */
};

typedef void grd_forward_function(const struct grd_forward_call *f);

struct grd_backward {
    const struct grd_derivative *derivative;
    grd_tensor *const *grads; /* of the results, in order; undefined ones are NULL unless the derivative asks for zeros */
    int ngrads;               /* how many: for an operator that returns a list, its length */
    const grd_value *saved;   /* in the order of grd_derivative.saves */
    uint64_t needs;           /* bit i: differentiable argument i (in the order of its table) needs a gradient */
    grd_tensor **ret_grads;   /* one per edge; an argument that is a list has an edge per tensor */
    const int *first_edge;    /* first edge of each differentiable argument; one more entry ends the last */
};

/* The values of first_edge if no argument is a list: element i is i (op_node.c). */
extern GRD_HIDDEN const int grd_identity_edges[GRD_MAX_ARGS + 1];

typedef void grd_backward_function(const struct grd_backward *b);

struct grd_derivative {
    const char *node_name;    /* "TanhBackward0" */
    const char *given_name;   /* the name where argument `given` is given, and no plain number; NULL: always the other */
    const char *inplace_name; /* the name of a node that a call in place leaves; NULL: as above */
    grd_backward_function *backward;
    grd_backward_function *fast;        /* the same by accelerated formulas, which are not differentiated; NULL: none */
    const grd_op *const *accelerations; /* what `fast` calls that `backward` does not; ends with NULL */
    const void *context;                /* data for `backward` */
    grd_forward_function *forward;      /* of GRD_FORWARD_FORMULA */
    const struct grd_save *saves;
    const uint8_t *args;   /* indices of the differentiable arguments: those with a formula */
    uint16_t others;       /* bit set: the other arguments that are tensors, which may not require a gradient */
    uint8_t nsaves, nargs; /* at most GRD_MAX_SAVES, GRD_MAX_ARGS */
    uint8_t results;       /* bit set: results that carry gradients */
    uint8_t given;
    uint8_t forward_rule; /* grd_forward */
    bool sized;           /* a saved value needs extra bytes in the node */
    bool lists;           /* a differentiable argument is a list */
    bool materialize;     /* undefined gradients are passed as zeros (operators with several results) */
};

/* Writes the gradients of a list argument, one per tensor of the list. */
static inline void grd_backward_spread(const struct grd_backward *b, int arg, grd_tensors grads)
{
    for (int64_t i = 0; i < grads.n && b->first_edge[arg] + i < b->first_edge[arg + 1]; i++)
        b->ret_grads[b->first_edge[arg] + i] = grads.data[i];
}

/* Backward functions of operators without a derivative, whose name is the context. They raise what PyTorch raises: RuntimeError for those it has no
 * entry of, NotImplementedError for those that it lists so. */
grd_backward_function grd_derivative_missing, grd_derivative_not_implemented;

/* The backward function of an operator whose derivative is that of its specification, which is the context: its arguments are what is saved first
 * (composite.c). */
grd_backward_function grd_derivative_of_parts;

/* Stores the gradient of an argument that a fused kernel computed. False if `gradient` is NULL, so that the formula must compute it. */
static inline bool grd_backward_fused(const struct grd_backward *b, int arg, grd_tensor *gradient)
{
    b->ret_grads[b->first_edge[arg]] = gradient;
    return gradient != NULL;
}

/* The boxed kernel of the AUTOGRAD key. */
grd_boxed_kernel grd_autograd_record;

#endif
