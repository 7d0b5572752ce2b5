/* Rows of bytes that are made of parts of others, one after the other: what cat and roll write. */
#ifndef GRD_OP_ROW_JOIN_H
#define GRD_OP_ROW_JOIN_H

#include "core/tensor.h"
#include "kernel/bytes.h"

/* Parts of so few bytes are written column by column. */
enum { GRD_SHORT_PART = 64 };

struct grd_row_join {
    struct grd_joined_rows rows;
    int64_t itemsize;
    bool are_short; /* all parts have at most GRD_SHORT_PART bytes */
};

/* True if both tensors are contiguous and have one dtype, so that what lies along a dimension and those after it is one run of bytes. */
static inline bool grd_rows_are_contiguous(const grd_tensor *result, const grd_tensor *t)
{
    return t->dtype == result->dtype && (t->flags & result->flags & GRD_FLAG_CONTIGUOUS) != 0;
}

/* Writes n rows, on all threads. */
void grd_write_rows(struct grd_row_join *join, int64_t n);

#endif
