/* Makes complex tensors from two real ones, and views of the real and imaginary parts of a complex tensor in the same storage. */
#include <math.h>

#include "gen/uses/op/complex.h"
#include "core/dtype.h"
#include "core/geometry.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/bytes.h"
#include "kernel/index.h"
#include "op/copy.h"
#include "op/formula.h"
#include "op/plan.h"
#include "op/reduce.h"
#include "op/view.h"
#include "core/iter.h"

/* Note [Conjugated when read]
 * conj() returns a view of the same memory with the dispatch key CONJUGATE. The elements of such a tensor are the conjugates of the numbers in
 * memory. For a real tensor with the key, such as the imaginary part of a conjugated tensor, they are the negatives. Views inherit the key.
 * Only view operators run on tensors with the key. For all other operators, the fallback in conjugate.c replaces such tensors by copies without the
 * key. So kernels need not handle the key. Code that reads memory without a call through the dispatcher must check grd_is_conjugated(). */

/* Plans a view of the memory of `self` that has the dispatch key CONJUGATE exactly if `self` does not. Complex numbers in a tensor with this key are
 * read as their conjugates, and real numbers as their negatives. So the elements of the view are the conjugates or negatives of those of `self`.
 * Always returns true. */
static bool plan_turned(struct grd_view *v, const grd_tensor *self)
{
    grd_view_start(v, self, self->ndim);
    v->sizes = self->sizes;
    v->strides = self->strides;
    v->dtype = (grd_dtype)self->dtype;
    return v->turns = true;
}

bool plan_hidden_conj(struct grd_view *v, grd_tensor *self)
{
    return grd_dtype_is_complex((grd_dtype)self->dtype)
               ? plan_turned(v, self)
               : grd_raise(GRD_ERROR_RUNTIME, "_conj: the dtype must be complex, not %s", grd_dtype_name((grd_dtype)self->dtype));
}

bool plan_hidden_neg_view(struct grd_view *v, grd_tensor *self)
{
    return grd_dtype_is_floating((grd_dtype)self->dtype)
               ? plan_turned(v, self)
               : grd_raise(GRD_ERROR_RUNTIME, "_neg_view: the dtype must be floating point, not %s",
                           grd_dtype_name((grd_dtype)self->dtype));
}

grd_tensor *op_resolve_conj(grd_tensor *self)
{
    return grd_is_conj(self) ? grd_conj_physical(grd_conj(self)) : self;
}

grd_tensor *op_resolve_neg(grd_tensor *self)
{
    return grd_is_neg(self) ? grd_clone(self) : self;
}

/* Plans a view of the real parts (`part` = 0) or the imaginary parts (`part` = 1) of `self`, which is complex. Strides and offset of the view
 * count real numbers, two for each element of `self`. */
static bool plan_halves(struct grd_view *v, const grd_tensor *self, int part)
{
    grd_view_start(v, self, 0);
    v->dtype = grd_dtype_to_real((grd_dtype)self->dtype);
    v->offset = 2 * self->offset + part;
    for (int i = 0; i < self->ndim; i++)
        grd_view_append(v, self->sizes[i], grd_wrapping_product(self->strides[i], 2));
    return true;
}

bool plan_real(struct grd_view *v, grd_tensor *self)
{
    v->itself = !grd_dtype_is_complex((grd_dtype)self->dtype);
    /* The real part of a conjugated tensor is stored in memory as it is, so the view must not have the key CONJUGATE. A view inherits the key
     * of `self`; if `turns` is true, the key is flipped. */
    v->turns = grd_is_conjugated(self);
    return v->itself || plan_halves(v, self, 0);
}

bool plan_imag(struct grd_view *v, grd_tensor *self)
{
    if (!grd_dtype_is_complex((grd_dtype)self->dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "imag is not implemented for tensors with non-complex dtypes.");
    return plan_halves(v, self, 1);
}

bool plan_view_as_real(struct grd_view *v, grd_tensor *self)
{
    if (!grd_dtype_is_complex((grd_dtype)self->dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "view_as_real is only supported for complex tensors");
    if (grd_is_conjugated(self))
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view it as "
            "real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the original.");
    if (self->ndim == GRD_MAX_DIMS)
        return grd_raise(GRD_ERROR_RUNTIME, "a tensor of %d dimensions cannot take one more", (int)self->ndim);
    plan_halves(v, self, 0);
    grd_view_append(v, 2, 1);
    return true;
}

/* True if pairs of this real dtype form a complex dtype. */
static bool is_part(grd_dtype dtype)
{
    return dtype == GRD_FLOAT16 || dtype == GRD_FLOAT32 || dtype == GRD_FLOAT64;
}

bool plan_view_as_complex(struct grd_view *v, grd_tensor *self)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    if (!is_part(dtype))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "view_as_complex is only supported for half, float and double tensors, but got a tensor of scalar type: %s",
                         grd_dtype_type_name(dtype));
    if (grd_is_conjugated(self))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "view_as_complex doesn't work on tensors that are negated when they are read: use self.resolve_neg() first");
    if (self->ndim == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Input tensor must have one or more dimensions");
    const int n = self->ndim - 1;
    if (self->sizes[n] != 2)
        return grd_raise(GRD_ERROR_RUNTIME, "Tensor must have a last dimension of size 2");
    if (self->strides[n] != 1)
        return grd_raise(GRD_ERROR_RUNTIME, "Tensor must have a last dimension with stride 1");
    grd_view_start(v, self, 0);
    for (int i = 0; i < n; i++) {
        if (self->strides[i] % 2 != 0 && self->sizes[i] != 1)
            return grd_raise(GRD_ERROR_RUNTIME, "Tensor must have a stride divisible by 2 for all but last dimension");
        grd_view_append(v, self->sizes[i], self->strides[i] / 2);
    }
    v->dtype = grd_dtype_to_complex(dtype);
    v->offset = self->offset / 2;
    return self->offset % 2 == 0 || grd_raise(GRD_ERROR_RUNTIME, "Tensor must have a storage_offset divisible by 2");
}

bool plan_complex(struct grd_plan *p, grd_tensor *real, grd_tensor *imag)
{
    const grd_dtype dtype = (grd_dtype)real->dtype;
    if (is_part(dtype) && is_part((grd_dtype)imag->dtype) && imag->dtype != dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected object of scalar type %s but got scalar type %s for second argument",
                         grd_dtype_type_name(dtype), grd_dtype_type_name((grd_dtype)imag->dtype));
    if (!is_part(dtype) || imag->dtype != dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected both inputs to be Half, Float or Double tensors but got %s and %s",
                         grd_dtype_type_name(dtype), grd_dtype_type_name((grd_dtype)imag->dtype));
    return grd_plan_reads(p, real) && grd_plan_reads(p, imag) &&
           grd_iter_plan_result(grd_tensors(real, imag), grd_dtype_to_complex(dtype), &p->planned[p->nresults++]);
}

void run_complex(const struct grd_plan *p, grd_tensor *real, grd_tensor *imag)
{
    const grd_tensor *result = p->results[0];
    int64_t strides[3][GRD_MAX_DIMS];
    const grd_tensor x = grd_spread(real, result, strides[1]), y = grd_spread(imag, result, strides[2]);
    for (int k = 0; k < result->ndim; k++) {
        strides[0][k] = grd_byte_stride(result, k);
        strides[1][k] = grd_byte_stride(&x, k);
        strides[2][k] = grd_byte_stride(&y, k);
    }
    struct grd_iter it;
    grd_iter_raw(&it, grd_sizes(result), 3, (char *const[]){result->data, x.data, y.data},
                 (const int64_t *const[]){strides[0], strides[1], strides[2]});
    grd_iter_run(&it, grd_kernels->bytes->pair[grd_index_size(x.itemsize)], NULL);
}
