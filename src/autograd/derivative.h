/* Declares struct grd_derivative, the table that describes the derivative of one operator, and struct grd_backward, the arguments of a backward
 * function.
 *
 * The tables are generated from the schema, or made at run time for an operator that a user defines. The kernel of the AUTOGRAD key (record.c) is
 * the same for all operators, and reads from the operator's table which values it has to save. */
#ifndef GRD_AUTOGRAD_DERIVATIVE_H
#define GRD_AUTOGRAD_DERIVATIVE_H

#include "core/tensor.h"
#include "dispatch/op.h"

/* How a node saves an argument or result of the operator for the gradient formulas. */
enum grd_save_how {
    GRD_SAVE_VALUE,     /* a copy of a number, dtype or device that is an argument */
    GRD_SAVE_TENSOR,    /* a reference to the tensor; backward checks that its version has not changed */
    GRD_SAVE_GENERATOR, /* a reference to a random number generator */
    GRD_SAVE_OFFSET,    /* the storage offset of a tensor, as a value of kind GRD_KIND_INT */
    GRD_SAVE_DTYPE,     /* the dtype of a tensor, as a value of kind GRD_KIND_DTYPE */
    GRD_SAVE_DEVICE,    /* the device of a tensor, as a value of kind GRD_KIND_DEVICE */
    /* Values saved in the ways below have no fixed length, so the node has extra bytes for them besides their struct grd_saved. */
    GRD_SAVE_SHAPE,   /* the sizes of a tensor, as a value of kind GRD_KIND_DIMS; None if the tensor is an optional argument that is
                       * absent */
    GRD_SAVE_STRIDES, /* the strides of a tensor, as a value of kind GRD_KIND_DIMS */
    GRD_SAVE_DIMS,    /* a copy of an argument that is a list of integers */
    GRD_SAVE_TENSORS, /* references to the tensors of a list; backward checks that their versions have not changed */
    GRD_SAVE_STRING,  /* a copy of an argument that is a string */
    /* the size of each tensor of a list along one dimension, or -1 if the tensor is an empty vector; a value of kind GRD_KIND_DIMS. Argument number
     * grd_save.extra of the operator is the dimension. */
    GRD_SAVE_SIZES_ALONG
};

enum { GRD_MAX_SAVES = 16 };

/* True if `how` is a way to save a list or a string. Such a value needs extra bytes in the node because its length varies. */
static inline bool grd_save_takes_room(uint8_t how)
{
    return how >= GRD_SAVE_SHAPE;
}

/* Returns the way (enum grd_save_how) to save an argument or result of this kind if a gradient formula uses the whole value, not only its shape or
 * dtype. */
static inline uint8_t grd_save_whole(grd_kind kind)
{
    static const uint8_t how[] = {[GRD_KIND_TENSOR] = GRD_SAVE_TENSOR,
                                  [GRD_KIND_TENSORS] = GRD_SAVE_TENSORS,
                                  [GRD_KIND_DIMS] = GRD_SAVE_DIMS,
                                  [GRD_KIND_STRING] = GRD_SAVE_STRING,
                                  [GRD_KIND_GENERATOR] = GRD_SAVE_GENERATOR};
    return (int)kind < GRD_LENGTH(how) ? how[kind] : GRD_SAVE_VALUE;
}

/* True if the node saves the shape, strides, offset, dtype or device of a tensor instead of the tensor. */
static inline bool grd_save_is_fact(uint8_t how)
{
    return how >= GRD_SAVE_OFFSET && how <= GRD_SAVE_STRIDES;
}
/* Returns the shape, strides, offset, dtype or device of `t`, as `how` says. A returned list points into the memory of `t`. If `how` is
 * GRD_SAVE_SHAPE, `t` may be NULL, which stands for an optional argument that is absent. The shape is then a list
 * whose data is NULL, which formulas treat as None. */
grd_value grd_fact_of(enum grd_save_how how, const grd_tensor *t);

/* Describes one value that a node saves: which argument or result of the operator it is, and how it is saved. */
struct grd_save {
    uint8_t how;
    bool result;   /* true: a result of the operator is saved; false: an argument */
    uint8_t index; /* index of the argument or result that is saved */
    uint8_t extra; /* only for GRD_SAVE_SIZES_ALONG: index of the argument that holds the dim */
    /* Bit i: the formula of differentiable argument i uses the value. The value is not saved if none of these arguments needs a gradient. */
    uint16_t used_by;
};

struct grd_derivative;

/* The rule by which forward.c computes the tangents of the results from the tangents of the arguments. */
enum grd_forward {
    GRD_FORWARD_ABSENT,    /* there is no rule; a call with a tangent raises an error */
    GRD_FORWARD_ZERO,      /* the results of the operator have no tangents */
    GRD_FORWARD_POINTWISE, /* the Jacobian is symmetric (e.g. diagonal), so the gradient formula is applied to the tangent */
    /* for reductions: multiplies the argument's tangent by the gradient of result.sum() and sums over the reduced dimensions */
    GRD_FORWARD_LINES,
    GRD_FORWARD_LINEAR, /* the operator is linear in all arguments together, so it is applied to the tangents */
    /* the operator is linear in each argument. For each argument that has a tangent, it is called once, with the tangent in place of this argument.
     * The results are summed. */
    GRD_FORWARD_MULTILINEAR,
    GRD_FORWARD_FORMULA, /* the tangent is a sum of formulas, one per argument, which are named `jvp` in the operator's schema */
    /* the gradient formula is linear in the gradient of the result; its derivative with respect to this gradient gives the tangent. Possible for
     * every operator with a gradient formula. */
    GRD_FORWARD_ADJOINT,
    GRD_FORWARD_GIVEN, /* for the operator make_dual, whose second argument is the tangent of the result */
    GRD_FORWARD_TAKEN  /* for the operator that returns its argument's tangent; its result itself gets no tangent */
};

/* The arguments of a forward formula, which computes the contribution of one argument's tangent to the tangents of the results. */
struct grd_forward_call {
    const grd_value *args, *results;
    int arg;                   /* index of the argument whose tangent is used */
    grd_tensor *tangent;       /* the tangent of argument `arg` */
    grd_tensor **ret_tangents; /* one per result; all are NULL before the call, and a result without a tangent keeps NULL */
};

typedef void grd_forward_function(const struct grd_forward_call *f);

/* The arguments of a backward function, which computes the gradients of an operator's arguments. */
struct grd_backward {
    const struct grd_derivative *derivative;
    grd_tensor *const *grads; /* the gradients of the results; undefined ones are NULL unless grd_derivative.materialize is true */
    int ngrads;               /* number of results; for an operator that returns a list, the length of the list */
    const grd_value *saved;   /* the saved values, in the order of grd_derivative.saves */
    uint64_t needs;           /* bit i: differentiable argument i (in the order of derivative->args) needs a gradient */
    grd_tensor **ret_grads;   /* the gradients of the arguments, one per edge; an argument that is a list has an edge per tensor */
    const int *first_edge;    /* the edges of differentiable argument i are first_edge[i] to first_edge[i + 1] - 1 */
};

/* The array grd_backward.first_edge for operators without differentiable list arguments. Argument i then has only edge i, so element i of the array
 * is i. */
extern GRD_HIDDEN const int grd_identity_edges[GRD_MAX_ARGS + 1];

typedef void grd_backward_function(const struct grd_backward *b);

/* Describes the derivative of one operator: its differentiable arguments, the values that nodes save, and the functions that compute gradients
 * and tangents. */
struct grd_derivative {
    const char *node_name; /* the name of the graph nodes that the operator's calls create, such as "TanhBackward0" */
    /* the nodes' name if the optional argument with the index `given` is present; NULL if the name does not depend on an argument */
    const char *given_name;
    const char *inplace_name; /* the nodes' name for in-place calls; NULL if node_name is used for these too */
    grd_backward_function *backward;
    grd_backward_function *fast; /* computes the same gradients with fused kernels, which cannot be differentiated; NULL if there is none */
    /* NULL-terminated array of the operators that `fast` calls and `backward` does not. `backward` is used instead on a
     * plug-in's device that has neither a fallback kernel nor a kernel for each of these operators. */
    const grd_op *const *accelerations;
    const void *context;           /* data that `backward` reads; each backward function has its own type of data */
    grd_forward_function *forward; /* computes the tangents if forward_rule is GRD_FORWARD_FORMULA; otherwise NULL */
    const struct grd_save *saves;
    const uint8_t *args;   /* indices of the differentiable arguments, i.e. of the arguments that have a gradient formula */
    uint16_t others;       /* bit i: argument i is a tensor without a gradient formula, so it must not require a gradient */
    uint8_t nsaves, nargs; /* lengths of `saves` and `args`, at most GRD_MAX_SAVES and GRD_MAX_ARGS */
    uint8_t results;       /* bit i: result i of the operator can have a gradient */
    /* index of an optional argument. If it is present and is not a number wrapped as a tensor, the nodes are named `given_name`. */
    uint8_t given;
    uint8_t forward_rule; /* how tangents are computed, a value of enum grd_forward */
    bool sized;           /* true if one of `saves` is a list or a string, for which the node has extra bytes */
    bool lists;           /* true if a differentiable argument is a list */
    /* true if `backward` gets zeros for undefined gradients; set for operators with several results, unless a formula reads `grad_x is None` */
    bool materialize;
};

/* Stores `grads` in b->ret_grads. They are the gradients of the tensors of differentiable argument number `arg`, which is a list. */
static inline void grd_backward_spread(const struct grd_backward *b, int arg, grd_tensors grads)
{
    for (int64_t i = 0; i < grads.n && b->first_edge[arg] + i < b->first_edge[arg + 1]; i++)
        b->ret_grads[b->first_edge[arg] + i] = grads.data[i];
}

/* The two backward functions of operators without a derivative; derivative->context is the name of the operator. grd_derivative_missing raises
 * RuntimeError, as PyTorch does for operators that its derivatives.yaml does not list. grd_derivative_not_implemented raises NotImplementedError, as
 * PyTorch does for operators that derivatives.yaml lists as not implemented. */
grd_backward_function grd_derivative_missing, grd_derivative_not_implemented;

/* The backward function of an operator that is specified as a composite of other operators, given by derivative->context. Runs the composite again
 * and differentiates it. The first saved values must be the operator's arguments. */
grd_backward_function grd_derivative_of_parts;

/* Stores `gradient`, which a fused kernel computed for differentiable argument number `arg`, in b->ret_grads. False if `gradient` is NULL,
 * i.e. if the kernel does not support the case. The caller then evaluates the formula. */
static inline bool grd_backward_fused(const struct grd_backward *b, int arg, grd_tensor *gradient)
{
    b->ret_grads[b->first_edge[arg]] = gradient;
    return gradient != NULL;
}

/* The boxed kernel of the AUTOGRAD key: runs an operator and records the call in the graph (record.c). */
grd_boxed_kernel grd_autograd_record;

#endif
