/* Describes the kinds of recurrent cells, e.g. LSTM, for the operators of src/op/rnn*.c. */
#ifndef GRD_OP_RNN_H
#define GRD_OP_RNN_H

#include "core/tensor.h"
#include "kernel/rnn.h"

/* Describes one kind of recurrent cell, e.g. an LSTM. */
struct grd_rnn_kind {
    const char *name;
    enum grd_rnn_cell cell;
    /* `gates` is the number of blocks of hidden_size columns in the product of the state with a weight. `saved` is the number of such blocks in the
     * tensor that is saved for backward. */
    int gates, saved;
};

/* Returns the kind with the given name. Returns NULL and raises RuntimeError if there is none. */
const struct grd_rnn_kind *grd_rnn_kind_of(const char *name);

#endif
