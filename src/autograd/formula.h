/* Declares helper functions that generated gradient formulas call besides operators. Some call an operator only if it changes the tensor;
 * grd_formula_pad, for example, does not pad by 0. A returned tensor is an argument or a temporary that the innermost grd_scope owns. */
#ifndef GRD_AUTOGRAD_FORMULA_H
#define GRD_AUTOGRAD_FORMULA_H

#include "autograd/derivative.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "gen/uses/autograd/formula.h"

/* Frees the temporary tensors that were created since this thread's stack of temporaries had the height `mark`, except `t`. Returns `t`, or
 * grd_failed on failure. Called when a formula has computed `t` and no longer needs its temporaries. */
static inline grd_tensor *grd_formula_alone(int64_t mark, grd_tensor *t)
{
    return grd_pool_return(mark, t) ? t : grd_failed;
}

/* Returns element i of a list of tensors; grd_failed if the list is shorter, as it is after an error. */
static inline grd_tensor *grd_list_at(grd_tensors list, int64_t i)
{
    return i < list.n ? list.data[i] : grd_failed;
}

/* Returns element i of a list of sizes; 0 if the list is shorter, as it is after an error. */
static inline int64_t grd_size_at(grd_dims list, int64_t i)
{
    return i < list.n ? list.data[i] : 0;
}

/* Returns the conjugate of `t`, or `t` itself if its dtype is real. */
static inline grd_tensor *grd_formula_conj(grd_tensor *t)
{
    return grd_dtype_table[t->dtype].category == GRD_CATEGORY_COMPLEX ? grd_conj_physical(t) : t;
}

/* Returns `t` padded with zeros as by constant_pad_nd; `t` itself if all pads are 0. */
static inline grd_tensor *grd_formula_pad(grd_tensor *t, grd_dims pad)
{
    for (int64_t i = 0; i < pad.n; i++)
        if (pad.data[i] != 0)
            return grd_constant_pad_nd(t, pad);
    return t;
}

/* Returns `t` times `factor`; `t` itself if `factor` is the integer 1, the most frequent value. */
static inline grd_tensor *grd_formula_times(grd_tensor *t, grd_scalar factor)
{
    return factor.kind == GRD_SCALAR_INT && factor.v.i == 1 ? t : grd_mul(t, grd_number(factor));
}

#endif
