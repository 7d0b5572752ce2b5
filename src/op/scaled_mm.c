/* Multiplies float8 matrices with scales. There is one scale for each matrix, or one for each row of mat_a and each column of mat_b. The elements are
 * multiplied in float32, which represents them and their products exactly, and the sums are then multiplied by the scales. Schema:
 * schema/linalg.toml. */
#include <stdio.h>

#include "core/dtype.h"
#include "core/tensor.h"
#include "gen/uses/op/scaled_mm.h"
#include "gradus/library.h"
#include "op/composite.h"
#include "op/sizes.h"

enum { TENSORWISE, ROWWISE };

static bool is_float8(grd_dtype dtype)
{
    return dtype == GRD_FLOAT8_E4M3FN || dtype == GRD_FLOAT8_E5M2;
}

/* Raises the error for scales of a wrong dtype or size, and returns false. A missing scale is NULL. */
static bool refuse_scaling(const grd_tensor *mat_a, const grd_tensor *mat_b, const grd_tensor *scale_a, const grd_tensor *scale_b)
{
    const grd_tensor *scales[] = {scale_a, scale_b};
    const char *dtype[2], *sizes[2], *strides[2];
    for (int i = 0; i < 2; i++) {
        const grd_tensor *t = scales[i];
        dtype[i] = grd_dtype_type_name(t != NULL ? (grd_dtype)t->dtype : GRD_DTYPE_NONE);
        sizes[i] = grd_list_text(t != NULL ? grd_sizes(t) : grd_dims_from(NULL, 0));
        strides[i] = grd_list_text(t != NULL ? grd_dims_from(t->strides, t->ndim) : grd_dims_from(NULL, 0));
    }
    return grd_raise(GRD_ERROR_VALUE,
                     "Invalid scaling configuration.\n"
                     "- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n"
                     "- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be (%lld, 1) and scale_b "
                     "should be (1, %lld), and both should be "
                     "contiguous.\nGot mat_a.dtype()=%s, scale_a.dtype()=%s, scale_a.size()=%s, scale_a.stride()=%s, mat_b.dtype()=%s, "
                     "scale_b.dtype()=%s, "
                     "scale_b.size()=%s and scale_b.stride()=%s",
                     (long long)grd_size_along(mat_a, 0), (long long)grd_size_along(mat_b, mat_b->ndim > 1),
                     grd_dtype_type_name((grd_dtype)mat_a->dtype), dtype[0], sizes[0], strides[0],
                     grd_dtype_type_name((grd_dtype)mat_b->dtype), dtype[1], sizes[1], strides[1]);
}

/* Raises the error that mat_a and mat_b cannot be multiplied, and returns false. `where` is appended to the error text. */
static bool refuse_shapes(grd_error_code error, const grd_tensor *mat_a, const grd_tensor *mat_b, const char *where)
{
    return grd_raise(error, "mat_a and mat_b shapes cannot be multiplied (%lldx%lld and %lldx%lld)%s", (long long)mat_a->sizes[0],
                     (long long)mat_a->sizes[1], (long long)mat_b->sizes[0], (long long)mat_b->sizes[1], where);
}

/* Returns the product in float32 of matrices that have been checked. The scales and the bias broadcast to the result. */
static grd_tensor *scaled_product(grd_tensor *mat_a, grd_tensor *mat_b, grd_tensor *scale_a, grd_tensor *scale_b, grd_tensor *bias)
{
    grd_tensor *sums = grd_mm(grd_to(mat_a, .dtype = GRD_FLOAT32), grd_to(mat_b, .dtype = GRD_FLOAT32));
    grd_tensor *scaled = grd_mul(grd_mul(sums, scale_a), scale_b);
    return bias != NULL ? grd_add(scaled, bias) : scaled;
}

/* ---- _scaled_mm: the sizes of the scales say what they scale ------------------------------------------------------------------------- */

/* True if the scale is a contiguous matrix with `rows` elements along dimension `along` and size 1 along the other dimension. */
static bool scales_by_row(const grd_tensor *scale, int64_t rows, int along)
{
    return scale->ndim == 2 && scale->sizes[along] == rows && scale->sizes[1 - along] == 1 && grd_has(scale, GRD_FLAG_CONTIGUOUS);
}

static bool check_scaled(const grd_tensor *mat_a, const grd_tensor *mat_b, const grd_tensor *scale_a, const grd_tensor *scale_b,
                         const grd_tensor *bias, const grd_tensor *scale_result)
{
    const bool types = is_float8((grd_dtype)mat_a->dtype) && is_float8((grd_dtype)mat_b->dtype) && scale_a->dtype == GRD_FLOAT32 &&
                       scale_b->dtype == GRD_FLOAT32;
    const bool tensorwise = scale_a->numel == 1 && scale_b->numel == 1;
    if (!types || (!tensorwise && !(scales_by_row(scale_a, grd_size_along(mat_a, 0), 0) &&
                                    scales_by_row(scale_b, grd_size_along(mat_b, mat_b->ndim > 1), 1))))
        return refuse_scaling(mat_a, mat_b, scale_a, scale_b);
    if (mat_a->ndim != 2 || mat_b->ndim != 2)
        return grd_raise(GRD_ERROR_RUNTIME, "mat%d must be a matrix", mat_a->ndim != 2 ? 1 : 2);
    if (mat_a->sizes[1] != mat_b->sizes[0])
        return refuse_shapes(GRD_ERROR_RUNTIME, mat_a, mat_b, "");
    if (scale_result != NULL && (scale_result->numel != 1 || scale_result->dtype != GRD_FLOAT32))
        return grd_raise(GRD_ERROR_RUNTIME, "scale_result must be a float scalar");
    if (bias != NULL && grd_dtype_is_complex((grd_dtype)bias->dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "result type %s can't be cast to the desired output type Float",
                         grd_dtype_type_name((grd_dtype)bias->dtype));
    return bias == NULL || bias->numel == mat_b->sizes[1] ||
           grd_raise(GRD_ERROR_RUNTIME, "Bias must be size %lld but got %lld", (long long)mat_b->sizes[1], (long long)bias->numel);
}

grd_tensor *op_hidden_scaled_mm(grd_tensor *out, grd_tensor *self, grd_tensor *mat2, grd_tensor *scale_a, grd_tensor *scale_b,
                                grd_tensor *bias, grd_tensor *scale_result, grd_dtype out_dtype, bool use_fast_accum)
{
    (void)use_fast_accum; /* no effect: sums are always computed in float32 */
    if (out != NULL && out_dtype != GRD_DTYPE_NONE && out_dtype != (grd_dtype)out->dtype)
        return grd_fail(GRD_ERROR_VALUE, "out_dtype must match output matrix type");
    if (!check_scaled(self, mat2, scale_a, scale_b, bias, scale_result))
        return grd_failed;
    grd_tensor *result = scaled_product(self, mat2, grd_reshape(scale_a, grd_dims(-1, 1)), grd_reshape(scale_b, grd_dims(1, -1)), bias);
    if (scale_result != NULL && is_float8(out_dtype))
        result = grd_div(result, grd_reshape(scale_result, grd_dims(1)));
    const grd_dtype dtype = out != NULL ? (grd_dtype)out->dtype : out_dtype != GRD_DTYPE_NONE ? out_dtype : (grd_dtype)self->dtype;
    return grd_composite_finish(out, NULL, grd_to(result, .dtype = dtype));
}

/* ---- _scaled_mm_v2: a recipe says what the scales scale ------------------------------------------------------------------------------ */

/* True if both recipes are the list [wanted], and each matrix has one float32 scale tensor. A number in a recipe stands for a kind of scaling,
 * e.g. one scale per row. */
static bool follows(int64_t wanted, grd_dims recipe_a, grd_dims recipe_b, grd_tensors scale_a, grd_tensors scale_b)
{
    return recipe_a.n == 1 && recipe_b.n == 1 && recipe_a.data[0] == wanted && recipe_b.data[0] == wanted && scale_a.n == 1 &&
           scale_b.n == 1 && scale_a.data[0]->dtype == GRD_FLOAT32 && scale_b.data[0]->dtype == GRD_FLOAT32;
}

static bool check_matrices(const grd_tensor *mat_a, const grd_tensor *mat_b, grd_dims contraction, const grd_tensor *bias)
{
    int64_t a = 1, b = 0;
    char where[96] = "";
    if (contraction.n != 0 && contraction.n != 2)
        return grd_raise(GRD_ERROR_VALUE, "contraction_dim must have exactly 2 elements");
    if (contraction.n == 2) {
        if (!grd_wrap_dim(mat_a, contraction.data[0], &a) || !grd_wrap_dim(mat_b, contraction.data[1], &b))
            return false;
        snprintf(where, sizeof where, " with contraction dims mat_a: %lld, mat_b: %lld", (long long)contraction.data[0],
                 (long long)contraction.data[1]);
    }
    if (mat_a->sizes[a] != mat_b->sizes[b])
        return refuse_shapes(GRD_ERROR_VALUE, mat_a, mat_b, where);
    if (bias != NULL && bias->numel != mat_b->sizes[1])
        return grd_raise(GRD_ERROR_VALUE, "Bias must be size %lld but got %lld", (long long)mat_b->sizes[1], (long long)bias->numel);
    if (bias != NULL && bias->dtype != GRD_FLOAT32 && bias->dtype != GRD_BFLOAT16 && bias->dtype != GRD_FLOAT16)
        return grd_raise(GRD_ERROR_VALUE, "Bias must be Float32 or BFloat16 or Half, but got %s",
                         grd_dtype_type_name((grd_dtype)bias->dtype));
    return true;
}

static bool check_row_scales(const grd_tensor *mat_a, const grd_tensor *mat_b, const grd_tensor *scale_a, const grd_tensor *scale_b)
{
    const int64_t m = mat_a->sizes[0], n = mat_b->sizes[1];
    int64_t second;
    if (!grd_wrap_dim(scale_a, 1, &second) || !grd_wrap_dim(scale_b, 1, &second))
        return false;
    if (scale_a->ndim != 2 || scale_a->sizes[0] != m || scale_a->sizes[1] != 1)
        return grd_raise(GRD_ERROR_VALUE, "scale_a must have shape [%lld, 1], got [%s]", (long long)m, grd_list_text(grd_sizes(scale_a)));
    if (scale_b->numel != n)
        return grd_raise(GRD_ERROR_VALUE, "scale_b must have %lld Float elements, got %lld", (long long)n, (long long)scale_b->numel);
    for (int i = 0; i < 2; i++) {
        const int64_t stride = (i == 0 ? scale_a : scale_b)->strides[1];
        if (stride != 1)
            return grd_raise(GRD_ERROR_VALUE, "expected scale_%c.stride(1) to be 1, but got %lld", "ab"[i], (long long)stride);
    }
    return (scale_b->ndim == 2 && scale_b->sizes[0] == 1) ||
           grd_raise(GRD_ERROR_RUNTIME, "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension 0",
                     (long long)mat_b->sizes[0], (long long)scale_b->sizes[0]);
}

static bool check_recipes(const grd_tensor *mat_a, const grd_tensor *mat_b, grd_tensors scale_a, grd_dims recipe_a, grd_dims swizzle_a,
                          grd_tensors scale_b, grd_dims recipe_b, grd_dims swizzle_b)
{
    if ((swizzle_a.n > 0 && swizzle_a.data[0] != 0) || (swizzle_b.n > 0 && swizzle_b.data[0] != 0))
        return grd_raise(GRD_ERROR_VALUE, "CPU does not support swizzle.");
    const bool tensorwise = follows(TENSORWISE, recipe_a, recipe_b, scale_a, scale_b),
               types = is_float8((grd_dtype)mat_a->dtype) && is_float8((grd_dtype)mat_b->dtype);
    if (!types || (!tensorwise && !follows(ROWWISE, recipe_a, recipe_b, scale_a, scale_b)))
        return refuse_scaling(mat_a, mat_b, scale_a.n > 0 ? scale_a.data[0] : NULL, scale_b.n > 0 ? scale_b.data[0] : NULL);
    if (mat_a->sizes[1] != mat_b->sizes[0])
        return refuse_shapes(GRD_ERROR_RUNTIME, mat_a, mat_b, "");
    if (!tensorwise)
        return check_row_scales(mat_a, mat_b, scale_a.data[0], scale_b.data[0]);
    if (scale_a.data[0]->numel != 1 || scale_b.data[0]->numel != 1)
        return grd_raise(GRD_ERROR_VALUE, "scale_%c must have 1 Float element", scale_a.data[0]->numel != 1 ? 'a' : 'b');
    return true;
}

grd_tensor *op_hidden_scaled_mm_v2(grd_tensor *self, grd_tensor *mat2, grd_tensors scale_a, grd_dims recipe_a, grd_dims swizzle_a,
                                   grd_tensors scale_b, grd_dims recipe_b, grd_dims swizzle_b, grd_tensor *bias, grd_dtype out_dtype,
                                   grd_dims contraction_dim, bool use_fast_accum)
{
    (void)use_fast_accum;
    if (self->ndim != 2 || mat2->ndim != 2)
        return grd_fail(GRD_ERROR_VALUE, "mat_%c must be a matrix", self->ndim != 2 ? 'a' : 'b');
    const grd_dtype dtype = out_dtype != GRD_DTYPE_NONE ? out_dtype : (grd_dtype)self->dtype;
    if (self->numel == 0 || mat2->sizes[1] == 0)
        return grd_zeros(grd_dims(self->sizes[0], mat2->sizes[1]), .dtype = dtype, .device = grd_device_of(self));
    if (!check_matrices(self, mat2, contraction_dim, bias) ||
        !check_recipes(self, mat2, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b))
        return grd_failed;
    return grd_to(
        scaled_product(self, mat2, grd_reshape(scale_a.data[0], grd_dims(-1, 1)), grd_reshape(scale_b.data[0], grd_dims(1, -1)), bias),
        .dtype = dtype);
}
