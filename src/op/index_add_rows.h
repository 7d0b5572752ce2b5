/* index_add of whole rows, row by row of the result. */
#ifndef GRD_OP_INDEX_ADD_ROWS_H
#define GRD_OP_INDEX_ADD_ROWS_H

#include "core/tensor.h"
#include "op/plan.h"

/* True if index_add adds rows that lie in one run, as they are in memory: row by row of the result, each of which then is read and written once. */
bool grd_adds_rows(const struct grd_plan *p, const grd_tensor *self, int64_t dim, const grd_tensor *index, const grd_tensor *source);
/* Bytes of memory that takes. */
double grd_added_rows_scratch(const grd_tensor *self, int64_t dim, const grd_tensor *index);
void grd_add_rows(const struct grd_plan *p);

#endif
