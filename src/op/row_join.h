/* Writes rows of bytes that are concatenations of rows of several tensors. cat() and roll() use it. */
#ifndef GRD_OP_ROW_JOIN_H
#define GRD_OP_ROW_JOIN_H

#include "core/tensor.h"
#include "kernel/bytes.h"

/* If no source tensor contributes more than this number of bytes to a row, the result is written in blocks of rows, one source tensor after the
 * other. */
enum { GRD_SHORT_PART = 64 };

/* Arguments of grd_write_rows(). */
struct grd_row_join {
    struct grd_joined_rows rows;
    int64_t itemsize;
    bool are_short; /* true if each source tensor contributes at most GRD_SHORT_PART bytes to a row */
};

/* True if both tensors are contiguous and of one dtype. The elements along a dimension and all dimensions after it are then contiguous bytes. */
static inline bool grd_rows_are_contiguous(const grd_tensor *result, const grd_tensor *t)
{
    return t->dtype == result->dtype && (t->flags & result->flags & GRD_FLAG_CONTIGUOUS) != 0;
}

/* Writes the n rows that `join` describes, on all threads. */
void grd_write_rows(struct grd_row_join *join, int64_t n);

#endif
