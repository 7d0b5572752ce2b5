/* Plans the matrix products mm, bmm, mv, addmm and similar operators, and dot. matmul and linear are composed of these operators. This file checks
 * the arguments and plans the results. product.c runs the products. Transposed operands are read with their strides, without a copy. */
#include <string.h>

#include "core/dtype.h"
#include "core/new.h"
#include "core/scalar.h"
#include "core/shape.h"
#include "core/small_tensor.h"
#include "gen/uses/op/matmul.h"
#include "core/tensor.h"
#include "op/formula.h"
#include "op/product.h"
#include "op/provider.h"
#include "op/out.h"

/* ---- Plans of products ------------------------------------------------------------------------------------------------------- */

/* Returns the dtype, layout, device and number of dimensions of t, encoded in one integer. Two matrices can be multiplied only if this integer is
 * equal for both. */
static inline uint64_t kind_of(const grd_tensor *t)
{
    return t->traits & GRD_TRAITS_KIND;
}

/* Returns an m x n tensor of a's dtype for the result of a small product: `out`, or a new tensor if `out` is NULL. Returns NULL if `out` has other
 * sizes or another dtype, is not contiguous, or shares storage with a or b. */
GRD_INLINE grd_tensor *small_result(grd_tensor *out, int64_t m, int64_t n, const grd_tensor *a, const grd_tensor *b)
{
    const uint64_t traits = kind_of(a) | grd_traits_flags(GRD_FLAG_CONTIGUOUS | GRD_FLAG_CANONICAL);
    if (out != NULL) {
        const bool fits = kind_of(out) == kind_of(a) && grd_has(out, GRD_FLAG_CONTIGUOUS) && out->sizes[0] == m && out->sizes[1] == n;
        return fits && out->storage != a->storage && out->storage != b->storage ? out : NULL;
    }
    grd_tensor *result = grd_make_small(traits, (size_t)(m * n), a->itemsize);
    if (result == NULL)
        return grd_new(grd_dims(m, n), (grd_dtype)a->dtype, GRD_CPU);
    result->inline_dims[0] = m;
    result->inline_dims[1] = n;
    result->inline_dims[GRD_INLINE_DIMS] = n > 1 ? n : 1;
    result->inline_dims[GRD_INLINE_DIMS + 1] = 1;
    return result;
}

/* Returns self + a @ b, or a @ b if self is NULL, for two small matrices on the CPU. The kernel is called without a plan, which saves time and gives
 * the same bits. Returns NULL, with nothing done, if the arguments need the general path. */
GRD_INLINE grd_tensor *small_product(grd_tensor *out, const grd_tensor *self, const grd_tensor *a, const grd_tensor *b)
{
    const grd_dtype dtype = (grd_dtype)a->dtype;
    if (grd_provider_wishes || kind_of(a) != grd_traits(dtype, GRD_STRIDED, GRD_CPU, 0, 2) || kind_of(b) != kind_of(a) ||
        a->sizes[1] != b->sizes[0])
        return NULL;
    const int64_t m = a->sizes[0], n = b->sizes[1], k = a->sizes[1];
    const bool matrix = self != NULL && self->ndim == 2; /* otherwise self is a row vector that is added to each row */
    if (self != NULL) {
        if ((self->ndim != 1 && !matrix) || self->dtype != dtype || self->device != GRD_DEVICE_CPU || self->layout != GRD_STRIDED ||
            self->sizes[matrix] != n || self->strides[matrix] != 1 || (matrix && self->sizes[0] != m))
            return NULL;
    }
    grd_small_gemm_kernel *const kernel = grd_product_small(dtype, m, n, k);
    grd_tensor *const result = kernel != NULL ? small_result(out, m, n, a, b) : NULL;
    if (result == NULL || grd_is_failed(result))
        return result;
    kernel(&(struct grd_small_gemm){.m = m,
                                    .n = n,
                                    .k = k,
                                    .a = a->data,
                                    .b = b->data,
                                    .added = self != NULL ? self->data : NULL,
                                    .c = result->data,
                                    .a_row = a->strides[0],
                                    .a_col = a->strides[1],
                                    .b_row = b->strides[0],
                                    .b_col = b->strides[1],
                                    .added_row = matrix ? self->strides[0] : 0,
                                    .c_row = n});
    return result;
}

/* Turns a batch of products into one product if the batch stride of one operand is 0, i.e. all its matrices are the same memory. The matrices of the
 * other operand then form one matrix with more rows or columns. */
static void fold_batch(struct grd_product *x)
{
    struct grd_gemm *g = &x->g;
    if (x->batch == 1)
        return;
    if (x->b_batch == 0 && (g->m == 1 || (x->a_batch == g->m * g->a_row && x->c_batch == g->m * g->c_row))) {
        g->a_row = g->m == 1 ? x->a_batch : g->a_row;
        g->c_row = g->m == 1 ? x->c_batch : g->c_row;
        g->m *= x->batch;
        x->batch = 1;
    } else if (x->a_batch == 0 && (g->n == 1 || (x->b_batch == g->n * g->b_col && x->c_batch == g->n * g->c_col))) {
        g->b_col = g->n == 1 ? x->b_batch : g->b_col;
        g->c_col = g->n == 1 ? x->c_batch : g->c_col;
        g->n *= x->batch;
        x->batch = 1;
    }
}

/* Fills the struct grd_product in the plan's state from the sizes and strides of the operands, and chooses the implementation of the product. A
 * vector is treated as a matrix with one column. */
static bool prepare_product(struct grd_plan *p)
{
    struct grd_product *x = grd_product_of(p);
    const int first = p->start != NULL;
    const grd_tensor *a = p->in[first], *b = p->in[first + 1], *c = p->results[0];
    const bool vector = b->ndim == 1, batched = a->ndim == 3;
    if (c->numel == 0)
        return true;
    x->g.m = a->sizes[batched];
    x->g.n = vector ? 1 : b->sizes[batched + 1];
    x->g.k = a->sizes[batched + 1];
    x->g.a = a->data;
    x->g.b = b->data;
    x->g.c = c->data;
    x->g.a_row = a->strides[batched];
    x->g.a_col = a->strides[batched + 1];
    x->g.b_row = b->strides[batched];
    x->g.b_col = vector ? 1 : b->strides[batched + 1];
    x->g.c_row = c->strides[batched];
    x->g.c_col = vector ? 1 : c->strides[batched + 1];
    x->batch = batched ? a->sizes[0] : 1;
    x->a_batch = batched ? a->strides[0] : 0;
    x->b_batch = batched ? b->strides[0] : 0;
    x->c_batch = batched ? c->strides[0] : 0;
    fold_batch(x);
    return grd_product_choose(p);
}

/* Plans beta * self + alpha * a @ b, where self may be NULL. The caller has checked shapes and dtypes. `sizes` is (m, n), (batch, m, n) or (m).
 * `name` appears in the error if the dtype has no products. */
static bool plan_product(struct grd_plan *p, grd_tensor *self, grd_tensor *a, grd_tensor *b, grd_dims sizes, grd_scalar beta,
                         grd_scalar alpha, const char *name)
{
    struct grd_product *x = grd_product_of(p);
    x->dtype = (grd_dtype)a->dtype;
    if (!grd_out_check_inputs(p->out, grd_tensors(self)))
        return false;
    if (!grd_product_exists(x->dtype))
        return grd_raise_no_kernel(name, x->dtype);
    double factor[2];
    if (!grd_scalar_write(alpha, x->dtype, factor) || !grd_scalar_write(beta, x->dtype, factor))
        return false;
    if (grd_category_of(x->dtype) == GRD_CATEGORY_INTEGER) {
        alpha = grd_int(grd_scalar_int64(alpha));
        beta = grd_int(grd_scalar_int64(beta));
    }
    const bool added = self != NULL && !grd_scalar_is_zero(beta);
    x->g.alpha = alpha;
    x->g.beta = added ? beta : grd_int(0);
    p->prepare = prepare_product;
    if (self != NULL && !(added ? grd_plan_starts_from(p, self) : grd_check_same_device(grd_tensors(self, a))))
        return false;
    return grd_plan_reads(p, a) && grd_plan_reads(p, b) && grd_plan_result(p, sizes, x->dtype);
}

void run_product(const struct grd_plan *p)
{
    p->provider->run(p);
}

/* ---- Checks -------------------------------------------------------------------------------------------------------------------- */

static bool check_matrices(const grd_tensor *mat1, const char *name1, const grd_tensor *mat2)
{
    if (mat1->ndim != 2)
        return grd_raise(GRD_ERROR_RUNTIME, "%s must be a matrix, got %d-D tensor", name1, mat1->ndim);
    if (mat2->ndim != 2)
        return grd_raise(GRD_ERROR_RUNTIME, "mat2 must be a matrix, got %d-D tensor", mat2->ndim);
    if (mat1->sizes[1] != mat2->sizes[0])
        return grd_raise(GRD_ERROR_RUNTIME, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld)",
                         (long long)mat1->sizes[0], (long long)mat1->sizes[1], (long long)mat2->sizes[0], (long long)mat2->sizes[1]);
    return true;
}

static bool check_same_dtype(const grd_tensor *t, const char *name, const grd_tensor *mat2)
{
    return t->dtype == mat2->dtype || grd_raise(GRD_ERROR_RUNTIME, "%s and mat2 must have the same dtype, but got %s and %s", name,
                                                grd_dtype_type_name((grd_dtype)t->dtype), grd_dtype_type_name((grd_dtype)mat2->dtype));
}

static bool check_batches(const grd_tensor *batch1, const grd_tensor *batch2)
{
    if (batch1->ndim != 3)
        return grd_raise(GRD_ERROR_RUNTIME, "batch1 must be a 3D tensor");
    if (batch2->ndim != 3)
        return grd_raise(GRD_ERROR_RUNTIME, "batch2 must be a 3D tensor");
    if (batch1->sizes[0] != batch2->sizes[0] || batch1->sizes[2] != batch2->sizes[1])
        return grd_raise(
            GRD_ERROR_RUNTIME, "Expected size for first two dimensions of batch2 tensor to be: [%lld, %lld] but got: [%lld, %lld].",
            (long long)batch1->sizes[0], (long long)batch1->sizes[2], (long long)batch2->sizes[0], (long long)batch2->sizes[1]);
    if (batch1->dtype != batch2->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "expected scalar type %s but found %s", grd_dtype_type_name((grd_dtype)batch1->dtype),
                         grd_dtype_type_name((grd_dtype)batch2->dtype));
    return true;
}

/* Raises RuntimeError if dimensions, sizes or dtypes of the operands of mv or addmv do not match. `self` is NULL for mv. */
static bool check_matrix_vector(const grd_tensor *self, const grd_tensor *mat, const grd_tensor *vec)
{
    if (mat->ndim != 2 || vec->ndim != 1 || (self != NULL && self->ndim > 1))
        return grd_raise(GRD_ERROR_RUNTIME, "vector + matrix @ vector expected, got %d, %d, %d", self == NULL ? 1 : self->ndim, mat->ndim,
                         vec->ndim);
    if (mat->sizes[1] != vec->sizes[0] || (self != NULL && self->numel != mat->sizes[0] && self->numel != 1))
        return grd_raise(GRD_ERROR_RUNTIME, "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
                         (long long)(self == NULL || self->numel == 1 ? mat->sizes[0] : self->numel), (long long)mat->sizes[0],
                         (long long)mat->sizes[1], (long long)vec->sizes[0]);
    grd_dtype first = self == NULL ? (grd_dtype)vec->dtype : (grd_dtype)self->dtype;
    if (mat->dtype != vec->dtype || mat->dtype != first)
        return grd_raise(GRD_ERROR_RUNTIME, "addmv input tensors must have the same dtype, but got %s, %s, and %s",
                         grd_dtype_type_name(first), grd_dtype_type_name((grd_dtype)mat->dtype),
                         grd_dtype_type_name((grd_dtype)vec->dtype));
    return true;
}

/* Raises RuntimeError if `self`, which is added to a product, does not broadcast to `sizes`, the sizes of the product. */
static bool check_expands(const grd_tensor *self, grd_dims sizes)
{
    for (int64_t i = 1; i <= self->ndim && i <= sizes.n; i++) {
        int64_t have = self->sizes[self->ndim - i], want = sizes.data[sizes.n - i];
        if (have == want || have == 1)
            continue;
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "The expanded size of the tensor (%lld) must match the existing size (%lld) at non-singleton dimension %lld.  Target sizes: "
            "%s.  Tensor sizes: %s",
            (long long)want, (long long)have, (long long)(sizes.n - i), grd_list_text(sizes), grd_list_text(grd_sizes(self)));
    }
    if (self->ndim > sizes.n)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "the number of sizes provided (%lld) must be greater or equal to the number of dimensions in the tensor (%d)",
                         (long long)sizes.n, self->ndim);
    return true;
}

/* ---- Operators ------------------------------------------------------------------------------------------------------------------ */

grd_tensor *shortcut_mm(grd_tensor *out, grd_tensor *self, grd_tensor *mat2)
{
    return small_product(out, NULL, self, mat2);
}

bool plan_mm(struct grd_plan *p, grd_tensor *self, grd_tensor *mat2)
{
    if (self->ndim != 2 || mat2->ndim != 2)
        return grd_raise(GRD_ERROR_RUNTIME, "%s must be a matrix", self->ndim != 2 ? "self" : "mat2");
    if (check_matrices(self, "self", mat2) && self->dtype != mat2->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "expected m1 and m2 to have the same dtype, but got: %s != %s",
                         grd_dtype_c_name((grd_dtype)self->dtype), grd_dtype_c_name((grd_dtype)mat2->dtype));
    return !grd_pending() &&
           plan_product(p, NULL, self, mat2, grd_dims(self->sizes[0], mat2->sizes[1]), grd_int(0), grd_int(1), "addmm_impl");
}

grd_tensor *op_hidden_mm_strided(grd_tensor *self, grd_tensor *mat2, grd_dims strides)
{
    const bool columns = strides.n == 2 && strides.data[0] == 1 && self->ndim == 2 && strides.data[1] == self->sizes[0];
    if (!columns)
        return grd_mm(self, mat2);
    return grd_transpose(grd_mm(grd_transpose(mat2, 0, 1), grd_transpose(self, 0, 1)), 0, 1);
}

grd_tensor *shortcut_addmm(grd_tensor *out, grd_tensor *self, grd_tensor *mat1, grd_tensor *mat2, grd_scalar beta, grd_scalar alpha)
{
    if (GRD_UNLIKELY(out != NULL) && out != self && grd_same_storage(out, self))
        return NULL;
    return grd_scalar_is_one(beta) && grd_scalar_is_one(alpha) ? small_product(out, self, mat1, mat2) : NULL;
}

bool plan_addmm(struct grd_plan *p, grd_tensor *self, grd_tensor *mat1, grd_tensor *mat2, grd_scalar beta, grd_scalar alpha)
{
    if (!check_matrices(mat1, "mat1", mat2) || !check_same_dtype(self, "self", mat2) || !check_same_dtype(mat1, "mat1", mat2))
        return false;
    const grd_dims sizes = grd_dims(mat1->sizes[0], mat2->sizes[1]);
    return check_expands(self, sizes) && plan_product(p, self, mat1, mat2, sizes, beta, alpha, "addmm_impl");
}

bool plan_bmm(struct grd_plan *p, grd_tensor *self, grd_tensor *mat2)
{
    return check_batches(self, mat2) &&
           plan_product(p, NULL, self, mat2, grd_dims(self->sizes[0], self->sizes[1], mat2->sizes[2]), grd_int(0), grd_int(1), "bmm");
}

bool plan_baddbmm(struct grd_plan *p, grd_tensor *self, grd_tensor *batch1, grd_tensor *batch2, grd_scalar beta, grd_scalar alpha)
{
    if (batch1->dtype != batch2->dtype || self->dtype != batch1->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "Input dtypes must be the same, got: input %s, batch1: %s, batch2: %s",
                         grd_dtype_c_name((grd_dtype)self->dtype), grd_dtype_c_name((grd_dtype)batch1->dtype),
                         grd_dtype_c_name((grd_dtype)batch2->dtype));
    if (!check_batches(batch1, batch2))
        return false;
    const grd_dims sizes = grd_dims(batch1->sizes[0], batch1->sizes[1], batch2->sizes[2]);
    return check_expands(self, sizes) && plan_product(p, self, batch1, batch2, sizes, beta, alpha, "baddbmm");
}

bool plan_mv(struct grd_plan *p, grd_tensor *self, grd_tensor *vec)
{
    return check_matrix_vector(NULL, self, vec) &&
           plan_product(p, NULL, self, vec, grd_dims(self->sizes[0]), grd_int(0), grd_int(1), "addmv_impl");
}

bool plan_addmv(struct grd_plan *p, grd_tensor *self, grd_tensor *mat, grd_tensor *vec, grd_scalar beta, grd_scalar alpha)
{
    const grd_dims sizes = grd_dims(mat->ndim > 0 ? mat->sizes[0] : 0);
    return check_matrix_vector(self, mat, vec) && check_expands(self, sizes) &&
           plan_product(p, self, mat, vec, sizes, beta, alpha, "addmv_impl");
}

/* ---- Dot products ------------------------------------------------------------------------------------------------------------------ */

bool plan_dot(struct grd_plan *p, grd_tensor *self, grd_tensor *tensor)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    if (self->ndim != 1 || tensor->ndim != 1)
        return grd_raise(GRD_ERROR_RUNTIME, "1D tensors expected, but got %dD and %dD tensors", self->ndim, tensor->ndim);
    if (self->dtype != tensor->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "dot: expected both vectors to have same dtype, but found %s and %s",
                         grd_dtype_type_name(dtype), grd_dtype_type_name((grd_dtype)tensor->dtype));
    if (self->numel != tensor->numel)
        return grd_raise(
            GRD_ERROR_RUNTIME,
            "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the same number of elements, but got %lld and %lld "
            "elements respectively",
            (long long)self->numel, (long long)tensor->numel, (long long)self->numel, (long long)tensor->numel);
    if (!grd_product_exists(dtype))
        return grd_raise_no_kernel("dot", dtype);
    p->scratch_bytes = grd_product_dot_scratch(self->numel);
    return grd_plan_reads(p, self) && grd_plan_reads(p, tensor) && grd_plan_result(p, GRD_NO_DIMS, dtype);
}

void run_dot(const struct grd_plan *p, grd_tensor *self, grd_tensor *tensor)
{
    grd_product_dot(&(struct grd_product_dot){.dtype = (grd_dtype)self->dtype,
                                              .n = self->numel,
                                              .x = self->data,
                                              .x_stride = self->strides[0],
                                              .y = tensor->data,
                                              .y_stride = tensor->strides[0],
                                              .sum = p->results[0]->data},
                    p->scratch);
}

/* ---- matmul and linear -------------------------------------------------------------------------------------------------------------- */

/* Multiplies all rows of self (a row is the elements along the last dimension) by `other`, a matrix or vector, in one product. Adds `added` to each
 * row of the result unless `added` is NULL. */
static grd_tensor *fold_rows(grd_tensor *self, grd_tensor *other, grd_tensor *added)
{
    int64_t sizes[GRD_MAX_DIMS], ndim = self->ndim;
    memcpy(sizes, self->sizes, (size_t)ndim * sizeof *sizes);
    grd_tensor *folded = grd_reshape(self, grd_dims(grd_sizes_product(sizes, ndim - 1), sizes[ndim - 1]));
    if (other->ndim == 1)
        return grd_unsafe_view(grd_mv(folded, other), grd_dims_from(sizes, ndim - 1));
    grd_tensor *product = added != NULL ? grd_addmm(added, folded, other) : grd_mm(folded, other);
    if (grd_pending())
        return grd_failed;
    sizes[ndim - 1] = product->sizes[1];
    const grd_dims unfolded = grd_dims_from(sizes, ndim);
    return added != NULL ? grd_reshape(product, unfolded) : grd_unsafe_view(product, unfolded);
}

/* Multiplies batches of matrices, whose batch dimensions broadcast. A 1-D operand is a row on the left side and a column on the right side. */
static grd_tensor *batched_product(grd_tensor *self, grd_tensor *other)
{
    bool row = self->ndim == 1, column = other->ndim == 1;
    grd_tensor *a = row ? grd_unsqueeze(self, 0) : self, *b = column ? grd_unsqueeze(other, 1) : other;
    int64_t sizes[GRD_MAX_DIMS + 2], ndim;
    if (grd_pending() || !grd_shape_broadcast(grd_dims_from(a->sizes, a->ndim - 2), grd_dims_from(b->sizes, b->ndim - 2), sizes, &ndim))
        return grd_failed;
    const grd_dims batch = grd_dims_from(sizes, ndim);
    grd_tensor *product = grd_bmm(grd_fold_batch(a, batch), grd_fold_batch(b, batch));
    if (grd_pending())
        return grd_failed;
    if (!row)
        sizes[ndim++] = product->sizes[1];
    if (!column)
        sizes[ndim++] = product->sizes[2];
    return grd_unsafe_view(product, grd_dims_from(sizes, ndim));
}

grd_tensor *op_matmul(grd_tensor *self, grd_tensor *other)
{
    int a = self->ndim, b = other->ndim;
    if (a == 0 || b == 0)
        return grd_fail(GRD_ERROR_RUNTIME, "both arguments to matmul need to be at least 1D, but they are %dD and %dD", a, b);
    if (a == 2 && b == 2)
        return grd_mm(self, other);
    if (a == 1 && b == 1)
        return grd_dot(self, other);
    if (a == 2 && b == 1)
        return grd_mv(self, other);
    if (a == 1 && b == 2)
        return grd_squeeze(grd_mm(grd_unsqueeze(self, 0), other), .dim = grd_dims(0));
    return b <= 2 ? fold_rows(self, other, NULL) : batched_product(self, other);
}

static bool check_bilinear_size(const char *name, int64_t size, int64_t wanted)
{
    return size == wanted || grd_raise(GRD_ERROR_RUNTIME, "bilinear(): %s size does not match weight size: got %lld but expected %lld",
                                       name, (long long)size, (long long)wanted);
}

bool grd_bilinear_check(const grd_tensor *input1, const grd_tensor *input2, const grd_tensor *weight, const grd_tensor *bias)
{
    const int last = input1->ndim - 1;
    if (last < 0)
        return grd_raise(GRD_ERROR_INDEX, "Dimension specified as -1 but tensor has no dimensions");
    if (weight->ndim != 3)
        return grd_raise(GRD_ERROR_RUNTIME, "bilinear(): weight must have 3 dimensions, got %d", weight->ndim);
    for (int i = 0; i < last; i++)
        if (input1->sizes[i] != input2->sizes[i])
            return grd_raise(GRD_ERROR_RUNTIME, "bilinear(): input batch dimensions do not match at dim %d: got %lld and %lld", i,
                             (long long)input1->sizes[i], (long long)input2->sizes[i]);
    if (input1->dtype != input2->dtype || input1->dtype != weight->dtype)
        return grd_raise(GRD_ERROR_RUNTIME, "All tensors must have the same dtype, got input1: %s, input2: %s, weight: %s",
                         grd_dtype_type_name((grd_dtype)input1->dtype), grd_dtype_type_name((grd_dtype)input2->dtype),
                         grd_dtype_type_name((grd_dtype)weight->dtype));
    return check_bilinear_size("input1", input1->sizes[last], weight->sizes[1]) &&
           check_bilinear_size("input2", input2->sizes[last], weight->sizes[2]) &&
           (bias == NULL || check_bilinear_size("bias", bias->ndim == 1 ? bias->numel : 1, weight->sizes[0]));
}

grd_tensor *op_linear(grd_tensor *input, grd_tensor *weight, grd_tensor *bias)
{
    if (input->ndim == 0 || weight->ndim == 0)
        return grd_fail(GRD_ERROR_RUNTIME, "both arguments to linear need to be at least 1D, but they are %dD and %dD", input->ndim,
                        weight->ndim);
    grd_tensor *transposed = grd_t(weight);
    if (bias == NULL)
        return grd_matmul(input, transposed);
    if (input->ndim == 2)
        return grd_addmm(bias, input, transposed);
    if (weight->ndim != 2 || bias->ndim != 1)
        return grd_add(grd_matmul(input, transposed), bias);
    return grd_pending() ? grd_failed : fold_rows(input, transposed, bias);
}

/* ---- addbmm and addr ----------------------------------------------------------------------------------------------------------------- */

bool grd_addbmm_check(const grd_tensor *batch1, const grd_tensor *batch2)
{
    if (batch1->ndim != 3 || batch2->ndim != 3)
        return grd_raise(GRD_ERROR_RUNTIME, "%s must be a 3D tensor", batch1->ndim != 3 ? "batch1" : "batch2");
    if (batch1->sizes[0] != batch2->sizes[0])
        return grd_raise(GRD_ERROR_RUNTIME, "batch1 and batch2 must have same number of batches, got %lld and %lld",
                         (long long)batch1->sizes[0], (long long)batch2->sizes[0]);
    return batch1->sizes[2] == batch2->sizes[1] ||
           grd_raise(GRD_ERROR_RUNTIME, "Incompatible matrix sizes for bmm (%lldx%lld and %lldx%lld)", (long long)batch1->sizes[1],
                     (long long)batch1->sizes[2], (long long)batch2->sizes[1], (long long)batch2->sizes[2]);
}

/* Raises RuntimeError if the type of `factor` does not fit `dtype`. `factor` is the argument alpha or beta of addr, and `dtype` is the dtype of the
 * result. A complex factor needs a complex dtype, a bool factor needs bool, and a floating-point factor needs a dtype that is not integral. */
static bool check_outer_factor(const char *name, grd_scalar factor, grd_dtype dtype)
{
    if (factor.kind == GRD_SCALAR_COMPLEX && !grd_dtype_is_complex(dtype))
        return grd_raise(GRD_ERROR_RUNTIME, "For non-complex input tensors, argument %s must not be a complex number.", name);
    if (factor.kind == GRD_SCALAR_BOOL && dtype != GRD_BOOL)
        return grd_raise(GRD_ERROR_RUNTIME, "Boolean %s only supported for Boolean results.", name);
    return factor.kind != GRD_SCALAR_FLOAT || !grd_dtype_is_integral(dtype) ||
           grd_raise(GRD_ERROR_RUNTIME, "For integral input tensors, argument %s must not be a floating point number.", name);
}

grd_tensor *op_addr(grd_tensor *out, grd_tensor *self, grd_tensor *vec1, grd_tensor *vec2, grd_scalar beta, grd_scalar alpha)
{
    if (vec1->ndim != 1 || vec2->ndim != 1)
        return grd_fail(GRD_ERROR_RUNTIME, "addr: Expected 1-D argument %s, but got %d-D", vec1->ndim != 1 ? "vec1" : "vec2",
                        vec1->ndim != 1 ? vec1->ndim : vec2->ndim);
    if (out == self && self->ndim != 2)
        return grd_fail(GRD_ERROR_RUNTIME, "2D tensor expected, got %dD tensor for input", self->ndim);
    const grd_dtype dtype = grd_result_type((grd_tensor *const[]){self, vec1, vec2}, 3);
    if (!check_outer_factor("beta", beta, dtype) || !check_outer_factor("alpha", alpha, dtype))
        return grd_failed;
    if (dtype == GRD_BOOL) {
        alpha = grd_bool(grd_scalar_double(alpha) != 0);
        beta = grd_bool(grd_scalar_double(beta) != 0);
    }
    grd_tensor *product = grd_outer(vec1, vec2);
    if (grd_scalar_double(alpha) != 1 || alpha.kind == GRD_SCALAR_COMPLEX)
        product = grd_mul_scalar(product, alpha);
    if (grd_pending())
        return grd_failed;
    if (beta.kind != GRD_SCALAR_COMPLEX && grd_scalar_double(beta) == 0)
        return grd_composite_finish(out, self, grd_to(product, .dtype = dtype));
    grd_tensor *wide = grd_expand(self, grd_sizes(product));
    const bool is_one = beta.kind != GRD_SCALAR_COMPLEX && grd_scalar_double(beta) == 1;
    return grd_composite_finish(out, self, grd_add(is_one ? wide : grd_mul_scalar(wide, beta), product));
}
