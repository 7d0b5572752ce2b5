/* Generated from schema by codegen. Do not edit. */
#include "gen/impl/tiny.h"

grd_tensors op_unbind(grd_tensor *self, int64_t dim)
{
    struct views v;
    return plan_unbind(&v, self, dim) ? made_several(self, &v) : no_tensors;
}
