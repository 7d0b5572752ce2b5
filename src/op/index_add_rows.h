/* index_add of contiguous rows, row by row of the result. */
#ifndef GRD_OP_INDEX_ADD_ROWS_H
#define GRD_OP_INDEX_ADD_ROWS_H

#include "core/tensor.h"
#include "op/plan.h"

/* True if index_add can add contiguous rows in their own dtype, row by row of the result. */
bool grd_adds_rows(const struct grd_plan *p, const grd_tensor *self, int64_t dim, const grd_tensor *index, const grd_tensor *source);
/* Returns the bytes of scratch that grd_add_rows needs. */
double grd_added_rows_scratch(const grd_tensor *self, int64_t dim, const grd_tensor *index);
void grd_add_rows(const struct grd_plan *p);

#endif
