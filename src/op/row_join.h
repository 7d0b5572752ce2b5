/* Concatenates tensors as rows of bytes, for cat() and roll(). Each row of the result consists of one row of each source tensor. */
#ifndef GRD_OP_ROW_JOIN_H
#define GRD_OP_ROW_JOIN_H

#include "core/tensor.h"
#include "kernel/bytes.h"

/* If each source tensor contributes at most this number of bytes to a row, the result is written in blocks of a few rows. In each block, the rows of
 * the first source tensor are copied, then those of the second, and so on. */
enum { GRD_SHORT_PART = 64 };

/* Arguments of grd_write_rows(). */
struct grd_row_join {
    struct grd_joined_rows rows;
    int64_t itemsize;
    bool are_short; /* true if each source tensor contributes at most GRD_SHORT_PART bytes to a row */
};

/* True if both tensors are contiguous and have the same dtype. Then the elements along a dimension and all later dimensions are contiguous bytes. */
static inline bool grd_rows_are_contiguous(const grd_tensor *result, const grd_tensor *t)
{
    return t->dtype == result->dtype && (t->flags & result->flags & GRD_FLAG_CONTIGUOUS) != 0;
}

/* Writes the n rows that `join` describes, on all threads. */
void grd_write_rows(struct grd_row_join *join, int64_t n);

#endif
