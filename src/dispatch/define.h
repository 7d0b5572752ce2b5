/* Declares operators that are defined at run time. Each such operator is a struct grd_op like the operators of the schema, in memory that is
 * allocated for it. autograd/define_operator.c defines such operators, with their gradients. */
#ifndef GRD_DISPATCH_DEFINE_H
#define GRD_DISPATCH_DEFINE_H

#include "dispatch/op.h"

struct grd_transaction;

struct grd_defined_op {
    struct grd_op op;                     /* must be first, because a grd_op with `defined` set is cast to this struct */
    const char *results[GRD_MAX_RESULTS]; /* names of the operator's results; there are op.nresults of them */
    /* A kernel that only calls operators. Therefore it serves every device, and also AUTOGRAD if the operator has no gradient. May be NULL. */
    grd_boxed_kernel *composite;
    void *context;                                /* the context argument of `composite` */
    void (*release)(struct grd_defined_op *self); /* frees op.derivative; NULL if there is nothing to free */
    struct grd_defined_op *_Atomic next;          /* next operator in the list of operators defined at run time */
    const struct grd_transaction *transaction;    /* the transaction in which the operator was defined; not used after its commit */
    size_t size;                                  /* bytes allocated for this struct and for the arguments, defaults and names after it */
};

/* Returns a new operator made from its schema, without kernels and not yet in the list of operators defined at run time. Returns NULL, with the error
 * raised, on failure. */
struct grd_defined_op *grd_defined_new(const char *schema);
void grd_defined_free(struct grd_defined_op *self);
/* Adds `self` to the list of operators defined at run time; the list then owns it, and all threads find it. While a transaction is open on this
 * thread, only this thread finds it until the transaction is committed. Returns false, with RuntimeError and `self` freed, if an operator of this
 * name exists. */
bool grd_defined_publish(struct grd_defined_op *self);

/* Checks the results that a kernel of an operator defined at run time has written. Raises RuntimeError for a missing result. If the operator has
 * a gradient, also raises RuntimeError for a result that shares memory with an argument, and replaces a result that is a view of another tensor
 * by a detached tensor. */
void grd_defined_check_results(const struct grd_op *op, grd_key key, const grd_value *args, grd_value *results);

/* Returns the struct of an operator defined at run time, or NULL for an operator of the schema. */
static inline const struct grd_defined_op *grd_defined(const struct grd_op *op)
{
    return op->defined ? (const struct grd_defined_op *)op : NULL;
}

/* The three functions below find an operator defined at run time by its name, count these operators, and return operator number `index`.
 * grd_op_find, grd_op_count and grd_op_at call them. */
const grd_op *grd_defined_find(const char *name);
int64_t grd_defined_count(void);
const grd_op *grd_defined_at(int64_t index);

#endif
