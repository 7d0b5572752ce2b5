/* What generated formulas call besides operators: the end of temporaries that have been used, and operators that do nothing in the common
 * case, which is decided here without a call. Results are pooled or the argument itself, as every formula may return. */
#ifndef GRD_AUTOGRAD_FORMULA_H
#define GRD_AUTOGRAD_FORMULA_H

#include "autograd/derivative.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "gen/uses/autograd/formula.h"

/* A value that the rest of a formula needs: what is above the mark goes but for that. */
static inline grd_tensor *grd_formula_alone(int64_t mark, grd_tensor *t)
{
    return grd_pool_return(mark, t) ? t : grd_failed;
}

/* Elements of lists, which are empty after an error. */
static inline grd_tensor *grd_list_at(grd_tensors list, int64_t i)
{
    return i < list.n ? list.data[i] : grd_failed;
}

static inline int64_t grd_size_at(grd_dims list, int64_t i)
{
    return i < list.n ? list.data[i] : 0;
}

/* A real tensor is its own conjugate. */
static inline grd_tensor *grd_formula_conj(grd_tensor *t)
{
    return grd_dtype_table[t->dtype].category == GRD_CATEGORY_COMPLEX ? grd_conj_physical(t) : t;
}

/* t where nothing is added or cut off. */
static inline grd_tensor *grd_formula_pad(grd_tensor *t, grd_dims pad)
{
    for (int64_t i = 0; i < pad.n; i++)
        if (pad.data[i] != 0)
            return grd_constant_pad_nd(t, pad);
    return t;
}

/* t times a number that is mostly 1. */
static inline grd_tensor *grd_formula_times(grd_tensor *t, grd_scalar factor)
{
    return factor.kind == GRD_SCALAR_INT && factor.v.i == 1 ? t : grd_mul(t, grd_number(factor));
}

#endif
