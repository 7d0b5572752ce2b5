/* The kinds of recurrent cells, by the names that operators of src/op/rnn*.c give them. */
#ifndef GRD_OP_RNN_H
#define GRD_OP_RNN_H

#include "core/tensor.h"
#include "kernel/rnn.h"

struct grd_rnn_kind {
    const char *name;
    enum grd_rnn_cell cell;
    int gates, saved; /* blocks of `hidden` columns in a product, and in what is saved for the gradient */
};

/* Returns the kind of that name. NULL and RuntimeError: there is none. */
const struct grd_rnn_kind *grd_rnn_kind_of(const char *name);

#endif
