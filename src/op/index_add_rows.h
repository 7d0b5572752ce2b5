/* Runs index_add by a fast path for contiguous rows. */
#ifndef GRD_OP_INDEX_ADD_ROWS_H
#define GRD_OP_INDEX_ADD_ROWS_H

#include "core/tensor.h"
#include "op/plan.h"

/* True if grd_add_rows should run this call of index_add. All tensors must be contiguous with one dtype, rows must be long, and the index must not
 * have far fewer elements than the result has rows. */
bool grd_adds_rows(const struct grd_plan *p, const grd_tensor *self, int64_t dim, const grd_tensor *index, const grd_tensor *source);
/* Returns the number of bytes of scratch memory that grd_add_rows needs. */
double grd_added_rows_scratch(const grd_tensor *self, int64_t dim, const grd_tensor *index);
/* Runs index_add by adding whole rows of the source to rows of the result. Requires that the plan was made for this, i.e. that grd_adds_rows()
 * returned true. */
void grd_add_rows(const struct grd_plan *p);

#endif
