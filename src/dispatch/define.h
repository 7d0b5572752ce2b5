/* Operators defined at run time: the same struct grd_op as those of the schema, in a block of their own.
 * Who defines them, with their gradients, is above: autograd/define_operator.c. */
#ifndef GRD_DISPATCH_DEFINE_H
#define GRD_DISPATCH_DEFINE_H

#include "dispatch/op.h"

struct grd_transaction;

struct grd_defined_op {
    struct grd_op op; /* first: a grd_op with `defined` set is one of these */
    const char *results[GRD_MAX_RESULTS];
    /* Serves every device, as a kernel of the tree does that only calls operators; autograd too, where there is no gradient. May be NULL. */
    grd_boxed_kernel *composite;
    void *context;
    void (*release)(struct grd_defined_op *self); /* frees op.derivative; NULL: there is nothing to free */
    struct grd_defined_op *_Atomic next;
    const struct grd_transaction *transaction; /* while it is not published */
    size_t size;                               /* of the block */
};

/* An operator as its schema says, without kernels, not in the table yet. NULL, with the error raised, on failure. */
struct grd_defined_op *grd_defined_new(const char *schema);
void grd_defined_free(struct grd_defined_op *self);
/* Puts it into the table, which takes it over: seen by all threads, or by this one alone until its transaction is committed.
 * False, with RuntimeError, when the name is taken; then it is freed. */
bool grd_defined_publish(struct grd_defined_op *self);

/* Looks over what a kernel of such an operator has written: RuntimeError for a result it has not, or, where there is a gradient, for one that shares
 * memory with an argument. A view of something else becomes a tensor of its own. */
void grd_defined_check_results(const struct grd_op *op, grd_key key, const grd_value *args, grd_value *results);

static inline const struct grd_defined_op *grd_defined(const struct grd_op *op)
{
    return op->defined ? (const struct grd_defined_op *)op : NULL;
}

/* ---- The table of them: the part of grd_op_find, grd_op_count and grd_op_at that is not generated. */
const grd_op *grd_defined_find(const char *name);
int64_t grd_defined_count(void);
const grd_op *grd_defined_at(int64_t index);

#endif
