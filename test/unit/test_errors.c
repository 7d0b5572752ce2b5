/* Tests the errors for wrong arguments in C. Each refused call raises an error with a known text and exception class. It changes no input,
 * leaks nothing, and leaves the library usable.
 *
 * The texts are the operator's name followed by PyTorch's text. How errors are stored and passed on is tested in test_base_error.c. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "gradus/gradus.h"

/* ---- Inputs ------------------------------------------------------------------------------------------------------------------ */

enum { ELEMENTS = 20, INPUTS = 10 };
static const float numbers[ELEMENTS] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};

static grd_tensor *x, *y, *v, *one, *ints, *bytes, *mask, *doubles, *zero, *leaf;
static grd_tensor **const inputs[INPUTS] = {&x, &y, &v, &one, &ints, &bytes, &mask, &doubles, &zero, &leaf};

static void make_inputs(void)
{
    x = grd_from_data(numbers, grd_dims(2, 3), GRD_FLOAT32);
    y = grd_from_data(numbers, grd_dims(4, 5), GRD_FLOAT32);
    v = grd_from_data(numbers, grd_dims(3), GRD_FLOAT32);
    one = grd_from_data(numbers, grd_dims(1), GRD_FLOAT32);
    ints = grd_from_data((const int64_t[]){1, 2, 3}, grd_dims(3), GRD_INT64);
    bytes = grd_from_data((const uint8_t[]){1, 2}, grd_dims(2), GRD_UINT8);
    mask = grd_from_data((const uint8_t[]){1, 0, 1, 0, 1, 0}, grd_dims(2, 3), GRD_BOOL);
    doubles = grd_from_data((const double[]){1, 2, 3}, grd_dims(3), GRD_FLOAT64);
    zero = grd_from_data((const int64_t[]){0, 0, 0}, grd_dims(3), GRD_INT64);
    leaf = grd_set_requires_grad(grd_from_data(numbers, grd_dims(3), GRD_FLOAT32), true);
}

static struct seen {
    double elements[ELEMENTS];
    int64_t ndim, sizes[2], strides[2], offset, version;
    grd_dtype dtype;
    bool requires_grad;
} before[INPUTS];

static struct seen look(grd_tensor *t)
{
    struct seen seen;
    memset(&seen, 0, sizeof seen);
    grd_to_memory(t, seen.elements, GRD_FLOAT64);
    seen.ndim = grd_ndim(t);
    for (int64_t i = 0; i < seen.ndim; i++) {
        seen.sizes[i] = grd_size(t, i);
        seen.strides[i] = grd_stride(t, i);
    }
    seen.offset = grd_offset(t);
    seen.version = grd_tensor_version(t);
    seen.dtype = grd_tensor_dtype(t);
    seen.requires_grad = grd_requires_grad(t);
    return seen;
}

/* ---- Expectations -------------------------------------------------------------------------------------------------------------- */

static int wrong; /* number of mismatches in the running test; all of them are printed */

static void expect(bool holds, const char *what, const char *text)
{
    if (holds)
        return;
    wrong++;
    print_error("%s\n    after: %s\n", what, text);
}

static void check_unchanged(const char *text)
{
    for (int i = 0; i < INPUTS; i++) {
        const struct seen now = look(*inputs[i]);
        expect(memcmp(&now, &before[i], sizeof now) == 0, "an input has changed", text);
    }
}

static void check_working(const char *text)
{
    const grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_set_requires_grad(grd_clone(v), true);
    grd_tensor *sum = grd_sum(grd_mul(t, grd_add_scalar(t, grd_int(1))));
    grd_backward(sum);
    expect(grd_ok() && grd_item_double(sum) == 20 && grd_item_double(grd_select(grd_grad_of(t), 0, 2)) == 7, "the library does not work",
           text);
    grd_error_clear();
    grd_scope_close(scope);
}

/* Checks that the pending error reads `text`, which has the form "Class: message". If it does not, increments `wrong`. Clears the error. */
static void refused_call(const char *text)
{
    char pending[2048];
    snprintf(pending, sizeof pending, "%s: %s", grd_error_class(grd_error_get()), grd_error_message());
    grd_error_clear();
    if (strcmp(pending, text) != 0) {
        wrong++;
        print_error("expected %s\n     got %s\n", text, pending);
    }
    check_unchanged(text);
    check_working(text);
}

static void refused(grd_tensor *result, const char *text)
{
    expect(result == grd_failed, "the result is not the failed tensor", text);
    refused_call(text);
}

/* ---- Shapes --------------------------------------------------------------------------------------------------------------------- */

#define MUST_MATCH "The size of tensor a (3) must match the size of tensor b (5) at non-singleton dimension 1"

static void elementwise_operators_refuse_mismatched_shapes(void)
{
    refused(grd_add(x, y), "RuntimeError: add: " MUST_MATCH);
    refused(grd_mul_(x, y), "RuntimeError: mul: " MUST_MATCH);
    refused(grd_add_out(v, x, y), "RuntimeError: add: " MUST_MATCH);
    refused(grd_add_(one, v), "RuntimeError: add: output with shape [1] doesn't match the broadcast shape [3]");
    refused(grd_where(mask, x, y), "RuntimeError: where: " MUST_MATCH);
    refused(grd_copy_(one, v), "RuntimeError: copy: output with shape [1] doesn't match the broadcast shape [3]");
    refused(grd_copy_(bytes, v),
            "RuntimeError: copy: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0");
    refused(grd_add_(grd_expand(one, grd_dims(3)), v),
            "RuntimeError: add: unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation.");
}

static void matrix_products_refuse_mismatched_shapes(void)
{
    refused(grd_mm(x, y), "RuntimeError: mm: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)");
    refused(grd_mm(x, v), "RuntimeError: mm: mat2 must be a matrix");
    refused(grd_matmul(x, y), "RuntimeError: matmul: mm: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)");
    refused(grd_matmul(x, grd_number(grd_int(1))),
            "RuntimeError: matmul: both arguments to matmul need to be at least 1D, but they are 2D and 0D");
    refused(grd_dot(v, one),
            "RuntimeError: dot: inconsistent tensor size, expected tensor [3] and src [1] to have the same number of elements, "
            "but got 3 and 1 elements respectively");
    refused(grd_bmm(grd_zeros(grd_dims(2, 3, 4)), grd_zeros(grd_dims(2, 5, 6))),
            "RuntimeError: bmm: Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 5].");
}

static void cat_and_stack_refuse_mismatched_shapes(void)
{
    refused(grd_cat(grd_tensors(x, y)),
            "RuntimeError: cat: Sizes of tensors must match except in dimension 0. Expected size 3 but got size 5 "
            "for tensor number 1 in the list.");
    refused(grd_cat(grd_tensors(x, v)), "RuntimeError: cat: Tensors must have same number of dimensions: got 2 and 1");
    refused(grd_cat((grd_tensors){0}), "ValueError: cat: torch.cat(): expected a non-empty list of Tensors");
    refused(grd_stack(grd_tensors(x, y)),
            "RuntimeError: stack: stack expects each tensor to be equal size, but got [2, 3] at entry 0 and [4, 5] at entry 1");
    refused(grd_stack((grd_tensors){0}), "RuntimeError: stack: stack expects a non-empty TensorList");
}

static void views_refuse_invalid_sizes_and_strides(void)
{
    refused(grd_view(x, grd_dims(4, 2)), "RuntimeError: view: shape '[4, 2]' is invalid for input of size 6");
    refused(grd_view(x, grd_dims(-1, 4)), "RuntimeError: view: shape '[-1, 4]' is invalid for input of size 6");
    refused(grd_view(x, grd_dims(-1, -1)), "RuntimeError: view: only one dimension can be inferred");
    refused(grd_view(x, grd_dims(-2, 3)), "RuntimeError: view: invalid shape dimension -2 at index 0 of shape [-2, 3]");
    refused(grd_view(grd_t(x), grd_dims(6)),
            "RuntimeError: view: view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead.");
    refused(grd_expand(x, grd_dims(2, 4)), "RuntimeError: expand: The expanded size of the tensor (4) must match the existing size (3) at "
                                           "non-singleton dimension 1.  Target sizes: [2, 4].  Tensor sizes: [2, 3]");
    refused(grd_expand(x, grd_dims(-1, 2, 3)), "RuntimeError: expand: The expanded size of the tensor (-1) isn't allowed in a leading, "
                                               "non-existing dimension 0");
    refused(grd_expand(x, grd_dims(3)),
            "RuntimeError: expand(): tensor of size [2, 3], size=[3]: the number of sizes provided (1) must be greater or "
            "equal to the number of dimensions in the tensor (2)");
    refused(grd_permute(x, grd_dims(0, 0)), "RuntimeError: permute(): duplicate dims are not allowed.");
    refused(grd_as_strided(x, grd_dims(3, 3), grd_dims(1)), "RuntimeError: as_strided: mismatch in length of strides and shape");
    refused(grd_as_strided(x, grd_dims(3), grd_dims(3)),
            "RuntimeError: as_strided: setStorage: sizes [3], strides [3], storage offset 0, and itemsize 4 "
            "requiring a storage size of 28 are out of bounds for storage of size 24");
    refused(grd_as_strided(x, grd_dims(3), grd_dims(1), .storage_offset = grd_int(-1)),
            "RuntimeError: as_strided: Tensor: invalid storage offset -1");
    refused(grd_as_strided(x, grd_dims(3), grd_dims(-1)),
            "RuntimeError: as_strided: setStorage: sizes [3], strides [-1], storage offset 0, and "
            "itemsize 4 reach 2 elements before the storage");
}

/* ---- Dtypes ---------------------------------------------------------------------------------------------------------------------- */

#define FLOAT_TO_LONG "result type Float can't be cast to the desired output type Long"

static void operators_refuse_unsupported_dtypes(void)
{
    refused(grd_mean(ints),
            "RuntimeError: mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            "Got: Long");
    refused(grd_var(ints), "RuntimeError: var: std and var only support floating point and complex dtypes");
    refused(grd_bitwise_and(v, v), "NotImplementedError: bitwise_and: \"bitwise_and_cpu\" not implemented for 'Float'");
    refused(grd_add_(ints, v), "RuntimeError: add: " FLOAT_TO_LONG);
    refused(grd_mul_scalar_(ints, grd_float(1.5)), "RuntimeError: mul: " FLOAT_TO_LONG);
    refused(grd_exp_(ints), "RuntimeError: exp: " FLOAT_TO_LONG);
    refused(grd_add_out(ints, v, v), "RuntimeError: add: " FLOAT_TO_LONG);
    refused(grd_logaddexp_out(ints, v, v), "RuntimeError: logaddexp: " FLOAT_TO_LONG);
    refused(grd_add(ints, ints, .alpha = grd_float(0.5)),
            "RuntimeError: add: For integral input tensors, argument alpha must not be a floating "
            "point number.");
    refused(grd_neg(mask),
            "RuntimeError: neg: Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, "
            "use the `~` or `logical_not()` operator instead.");
    refused(grd_where(x, x, x), "RuntimeError: where: where expected condition to be a boolean tensor, but got a tensor with dtype Float");
    refused(grd_dot(v, doubles), "RuntimeError: dot: expected both vectors to have same dtype, but found Float and Double");
    refused(grd_softmax(ints, 0), "NotImplementedError: softmax: \"softmax_cpu\" not implemented for 'Long'");
    refused(grd_index_select(x, 0, one), "RuntimeError: index_select(): Expected dtype int32 or int64 for index, but got float32");
    refused(grd_gather(v, 0, v), "RuntimeError: gather: Expected dtype int32/int64 for index but got: float32");
    refused(grd_embedding(x, v),
            "RuntimeError: embedding: Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, "
            "Int; but got float32");
    refused(grd_zeros(grd_dims(2), .dtype = (grd_dtype)99), "TypeError: zeros: argument 'dtype' (position 2) is no dtype: 99");
    refused(grd_zeros(grd_dims(2), .device = 1),
            "TypeError: zeros: argument 'device' (position 3) must be a device, such as GRD_CPU, not a number");
    refused(grd_view_dtype(v, GRD_DTYPE_NONE), "TypeError: view_dtype: argument 'dtype' (position 2) must be a dtype, not none");
}

/* ---- Dimensions and indices ------------------------------------------------------------------------------------------------------ */

static void dimensions_out_of_range_are_refused(void)
{
    refused(grd_sum(x, .dim = grd_dims(5)), "IndexError: sum: Dimension out of range (expected to be in range of [-2, 1], but got 5)");
    refused(grd_sum(x, .dim = grd_dims(0, -2)), "RuntimeError: sum: dim 0 appears multiple times in the list of dims");
    refused(grd_softmax(x, -3), "IndexError: softmax: Dimension out of range (expected to be in range of [-2, 1], but got -3)");
    refused(grd_select(x, 2, 0), "IndexError: select: Dimension out of range (expected to be in range of [-2, 1], but got 2)");
    refused(grd_transpose(x, 0, 2), "IndexError: transpose: Dimension out of range (expected to be in range of [-2, 1], but got 2)");
    refused(grd_unsqueeze(x, 3), "IndexError: unsqueeze: Dimension out of range (expected to be in range of [-3, 2], but got 3)");
    refused(grd_cat(grd_tensors(x, x), .dim = 2),
            "IndexError: cat: Dimension out of range (expected to be in range of [-2, 1], but got 2)");
    refused(grd_select(x, INT64_MIN, 0),
            "IndexError: select: Dimension out of range (expected to be in range of [-2, 1], but got -9223372036854775808)");
    assert_int_equal(grd_size(x, 2), 0);
    refused_call("IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 2)");
}

static void layer_norm_and_rms_norm_refuse_mismatched_shapes(void)
{
    refused(grd_layer_norm(x, GRD_NO_DIMS), "RuntimeError: layer_norm: Expected normalized_shape to be at least 1-dimensional, i.e., "
                                            "containing at least one element, but got normalized_shape = []");
    refused(grd_layer_norm(x, grd_dims(2)),
            "RuntimeError: layer_norm: Given normalized_shape=[2], expected input with shape [*, 2], but got "
            "input of size [2, 3]");
    refused(grd_rms_norm(v, grd_dims(2, 3)),
            "RuntimeError: rms_norm: Given normalized_shape=[2, 3], expected input with shape [*, 2, 3], but "
            "got input of size [3]");
    refused(grd_layer_norm(x, grd_dims(3), .weight = one), "RuntimeError: layer_norm: Expected weight to be of same shape as "
                                                           "normalized_shape, but got weight of shape [1] and normalized_shape = [3]");
    refused(grd_layer_norm(x, grd_dims(3), .bias = doubles), "RuntimeError: layer_norm: expected scalar type Float but found Double");
    refused(grd_layer_norm(ints, grd_dims(3)), "NotImplementedError: layer_norm: \"layer_norm_cpu\" not implemented for 'Long'");
}

static void indices_out_of_range_are_refused(void)
{
    grd_tensor *two = grd_from_data((const int64_t[]){0, 2}, grd_dims(2), GRD_INT64);
    grd_tensor *negative = grd_from_data((const int64_t[]){0, -1}, grd_dims(2), GRD_INT64);
    refused(grd_select(x, 0, 2), "IndexError: select(): index 2 out of range for tensor of size [2, 3] at dimension 0");
    refused(grd_select(x, 0, INT64_MIN),
            "IndexError: select(): index -9223372036854775808 out of range for tensor of size [2, 3] at dimension 0");
    refused(grd_select(grd_sum(v), 0, 0), "IndexError: select() cannot be applied to a 0-dim tensor.");
    refused(grd_narrow(x, 0, 1, 2), "RuntimeError: narrow: start (1) + length (2) exceeds dimension size (2).");
    refused(grd_slice(x, .step = 0), "RuntimeError: slice: slice step must not be zero");
    refused(grd_index_select(x, 0, two), "IndexError: index_select: index out of range in self");
    refused(grd_index_select(x, 0, negative), "IndexError: index_select: index out of range in self");
    refused(grd_gather(bytes, 0, two), "RuntimeError: gather: index 2 is out of bounds for dimension 0 with size 2");
    refused(grd_index(x, grd_tensors(two)), "IndexError: index: index 2 is out of bounds for dimension 0 with size 2");
    refused(grd_index_put_(x, grd_tensors(two), v), "IndexError: index_put: index 2 is out of bounds for dimension 0 with size 2");
    refused(grd_index(x, grd_tensors(v)), "IndexError: index: tensors used as indices must be long, int, byte or bool tensors");
    refused(grd_index(v, grd_tensors(zero, zero)), "IndexError: index: too many indices for tensor of dimension 1");
    refused(grd_index(v, grd_tensors(grd_any(mask))), "IndexError: index: a mask without dimensions selects nothing of dimension 0");
    refused(grd_index(y, grd_tensors(mask)), "IndexError: index: The shape of the mask [2, 3] at index 0 does not match the shape of the "
                                             "indexed tensor [4, 5] at index 0");
    refused(grd_index(y, grd_tensors(zero, grd_slice(zero, .end = grd_int(2)))),
            "IndexError: index: shape mismatch: indexing tensors could not be broadcast together with shapes [3], [2]");
    refused(grd_index(y, grd_tensors(zero, zero), .dims = grd_dims(1, 0)),
            "ValueError: index: the dims of index tensors must increase, and a mask uses as many dims as it has dimensions");
    refused(grd_index(y, grd_tensors(zero), .dims = grd_dims(0, 1)), "ValueError: index: 2 dimensions are named for 1 index tensors");
    refused(grd_index_put_(x, grd_tensors(zero), y), "RuntimeError: index_put: shape mismatch: value tensor of shape [4, 5] cannot be "
                                                     "broadcast to indexing result of shape [3, 3]");
    refused(grd_index_put_(x, grd_tensors(zero), doubles), "RuntimeError: index_put: Index put requires the source and destination dtypes "
                                                           "match, got Float for the destination and Double for the source.");
    refused(grd_scatter_(v, 0, grd_add_scalar(two, grd_int(1)), grd_clone(v)),
            "RuntimeError: scatter: index 3 is out of bounds for dimension 0 with size 3");
    refused(grd_index_add_(one, 0, two, grd_zeros(grd_dims(2))),
            "RuntimeError: index_add: index 2 is out of bounds for dimension 0 with size 1");
    refused(grd_embedding(x, two), "IndexError: embedding: index out of range in self");
    refused(grd_nll_loss(x, grd_add_scalar(two, grd_int(1))), "IndexError: nll_loss: nll_loss_forward: Target 3 is out of bounds.");
    refused(grd_nll_loss(x, negative), "IndexError: nll_loss: nll_loss_forward: Target -1 is out of bounds.");
    refused(grd_nll_loss(x, ints), "ValueError: nll_loss: nll_loss_forward: Expected input batch_size (2) to match target batch_size (3).");
    refused(grd_one_hot(two, .num_classes = 2), "RuntimeError: one_hot: Class values must be smaller than num_classes.");
    refused(grd_max(grd_zeros(grd_dims(0))),
            "RuntimeError: max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
            "dim with the 'dim' argument.");
}

/* ---- Sizes ------------------------------------------------------------------------------------------------------------------------ */

static void sizes_that_overflow_are_refused(void)
{
    const int64_t big = (int64_t)1 << 40;
    float memory[4] = {0};
    int64_t many[GRD_MAX_DIMS + 1];
    for (int i = 0; i <= GRD_MAX_DIMS; i++)
        many[i] = 1;
    const grd_dims too_many = {GRD_MAX_DIMS + 1, many}, most = {GRD_MAX_DIMS, many};

    refused(grd_empty(grd_dims(big, big)),
            "RuntimeError: empty: Storage size calculation overflowed with sizes=[1099511627776, 1099511627776]");
    refused(grd_empty(grd_dims((int64_t)1 << 61)),
            "RuntimeError: empty: Storage size calculation overflowed with sizes=[2305843009213693952]");
    refused(grd_empty(grd_dims(0, big, big)),
            "RuntimeError: empty: Stride calculation overflowed with sizes=[0, 1099511627776, 1099511627776]");
    refused(grd_empty(grd_dims(2, -1)), "RuntimeError: empty: Trying to create tensor with negative dimension -1: [2, -1]");
    refused(grd_zeros(grd_dims(INT64_MIN)), "RuntimeError: zeros: Trying to create tensor with negative dimension -9223372036854775808: "
                                            "[-9223372036854775808]");
    refused(grd_expand(one, grd_dims(big, big)),
            "RuntimeError: expand: Storage size calculation overflowed with sizes=[1099511627776, 1099511627776]");
    refused(grd_expand(v, grd_dims(-2)),
            "RuntimeError: expand: The expanded size of the tensor (-2) must match the existing size (3) at non-singleton "
            "dimension 0.  Target sizes: [-2].  Tensor sizes: [3]");
    refused(grd_repeat(v, grd_dims(INT64_MAX)),
            "RuntimeError: repeat: expand: Storage size calculation overflowed with sizes=[9223372036854775807, 3]");
    refused(grd_as_strided(x, grd_dims(big, 2), grd_dims(big, 1)),
            "RuntimeError: as_strided: Storage size calculation overflowed with sizes=[1099511627776, 2] and strides=[1099511627776, 1]");
    refused(grd_as_strided(x, grd_dims(-1), grd_dims(1)),
            "RuntimeError: as_strided: Trying to create tensor with negative dimension -1: [-1]");
    refused(grd_from_memory(memory, grd_dims(big, big), (grd_dims){0}, 0, GRD_FLOAT32, NULL, NULL),
            "RuntimeError: Storage size calculation overflowed with sizes=[1099511627776, 1099511627776]");
    refused(grd_from_memory(memory, grd_dims(2, 2), grd_dims(INT64_MAX, 1), 0, GRD_FLOAT32, NULL, NULL),
            "RuntimeError: Storage size calculation overflowed with sizes=[2, 2] and strides=[9223372036854775807, 1]");
    refused(grd_from_memory(memory, grd_dims(2), grd_dims(-1), 0, GRD_FLOAT32, NULL, NULL),
            "RuntimeError: grd_from_memory: offset and strides reach 1 elements before the data");
    refused(grd_from_data(memory, grd_dims(-4), GRD_FLOAT32), "RuntimeError: Trying to create tensor with negative dimension -4: [-4]");
    refused(grd_zeros(too_many), "RuntimeError: zeros: too many dimensions: 65, the limit is 64");
    refused(grd_view(one, too_many), "RuntimeError: view: too many dimensions: 65, the limit is 64");
    refused(grd_expand(one, too_many), "RuntimeError: expand: too many dimensions: 65, the limit is 64");
    refused(grd_unsqueeze(grd_zeros(most), 0), "RuntimeError: unsqueeze: too many dimensions: 65, the limit is 64");
    refused(grd_from_memory(memory, too_many, (grd_dims){0}, 0, GRD_FLOAT32, NULL, NULL),
            "RuntimeError: too many dimensions: 65, the limit is 64");
    refused(grd_as_strided(one, too_many, too_many), "RuntimeError: as_strided: too many dimensions: 65, the limit is 64");
}

/* Checks that MemoryError is raised for a tensor larger than the address space, and for one beyond the memory limit. */
static void exhausted_memory_raises_memory_error(void)
{
    expect(grd_empty(grd_dims((int64_t)1 << 55)) == grd_failed, "more memory was given than there is", "empty");
    expect(grd_error_get() == GRD_ERROR_MEMORY, "no MemoryError", "empty");
    grd_error_clear();
    grd_memory_set_limit(grd_memory_get_stats().allocated + 1000000);
    grd_tensor *half = grd_zeros(grd_dims(600, 1000), .dtype = GRD_UINT8);
    expect(grd_ok(), "the limit is too strict", "zeros");
    expect(grd_exp(half) == grd_failed && grd_error_get() == GRD_ERROR_MEMORY, "the limit does not hold", "exp");
    grd_memory_set_limit(0);
    grd_error_clear();
    check_unchanged("exp");
    check_working("exp");
}

/* ---- NULL and the failed tensor --------------------------------------------------------------------------------------------------- */

static void operators_refuse_null_arguments(void)
{
    refused(grd_exp(NULL), "TypeError: exp: argument 'self' (position 1) must be a tensor, not NULL");
    refused(grd_add(NULL, x), "TypeError: add: argument 'self' (position 1) must be a tensor, not NULL");
    refused(grd_add(x, NULL), "TypeError: add: argument 'other' (position 2) must be a tensor, not NULL");
    refused(grd_add_scalar(NULL, grd_int(1)), "TypeError: add: argument 'self' (position 1) must be a tensor, not NULL");
    refused(grd_where(mask, x, NULL), "TypeError: where: argument 'other' (position 3) must be a tensor, not NULL");
    refused(grd_cat(grd_tensors(x, NULL)), "TypeError: cat: argument 'tensors' (position 1) must be a list of tensors without NULL");
    refused(grd_linear(x, NULL), "TypeError: linear: argument 'weight' (position 2) must be a tensor, not NULL");
    refused(grd_add_(NULL, x), "TypeError: add: the tensor to write must be a tensor, not NULL");
    refused(grd_add_out(NULL, x, x), "TypeError: add: the tensor to write must be a tensor, not NULL");
    refused(grd_mul_scalar(x, (grd_scalar){0}), "TypeError: mul: grd_number: a number is required");
    refused(grd_from_data(NULL, grd_dims(2), GRD_FLOAT32), "TypeError: grd_from_data: argument 'data' must not be NULL");
    refused(grd_from_memory(NULL, grd_dims(2), (grd_dims){0}, 0, GRD_FLOAT32, NULL, NULL),
            "TypeError: grd_from_memory: argument 'data' must not be NULL");
}

static void tensor_functions_refuse_null(void)
{
    assert_true(isnan(grd_item_double(NULL)));
    refused_call("TypeError: grd_item_double: argument 't' must be a tensor, not NULL");
    assert_int_equal(grd_ndim(NULL), 0);
    refused_call("TypeError: grd_ndim: argument 't' must be a tensor, not NULL");
    grd_to_memory(x, NULL, GRD_FLOAT32);
    refused_call("TypeError: grd_to_memory: argument 'ret_data' must not be NULL");
    assert_null(grd_to_string(NULL));
    refused_call("TypeError: grd_to_string: argument 't' must be a tensor, not NULL");
    assert_ptr_equal(grd_keep(NULL), NULL);
    grd_drop(NULL);
    assert_true(grd_ok());
}

static void autograd_functions_refuse_null(void)
{
    grd_backward(NULL);
    refused_call("TypeError: output 0 must be a tensor, not NULL");
    grd_set_requires_grad(NULL, true);
    refused_call("TypeError: grd_set_requires_grad: argument 't' must be a tensor, not NULL");
    assert_false(grd_requires_grad(NULL));
    refused_call("TypeError: grd_requires_grad: argument 't' must be a tensor, not NULL");
    assert_null(grd_grad_of(NULL));
    refused_call("TypeError: grd_grad_of: argument 't' must be a tensor, not NULL");
    grd_set_grad(NULL, NULL);
    refused_call("TypeError: grd_set_grad: argument 't' must be a tensor, not NULL");
}

/* A failed call returns the tensor grd_failed. After the error is cleared, this tensor can be read and passed as an input, but writing to it is an
 * error. */
static void the_failed_tensor_can_be_read_but_not_written(void)
{
    grd_tensor *failed = grd_add(x, y);
    refused(failed, "RuntimeError: add: " MUST_MATCH);
    assert_ptr_equal(failed, grd_failed);
    assert_true(isnan(grd_item_double(failed)));
    assert_int_equal(grd_ndim(failed), 0);
    grd_drop(grd_keep(failed));
    refused(grd_add_(failed, x), "RuntimeError: add: the failed tensor cannot be written");
    refused(grd_add_out(failed, x, x), "RuntimeError: add: the failed tensor cannot be written");
    refused(grd_zero_(failed), "RuntimeError: zero: the failed tensor cannot be written");
    assert_false(grd_requires_grad(grd_set_requires_grad(failed, true)));
    assert_ptr_not_equal(grd_add(failed, x), grd_failed);
    grd_cat(grd_tensors(grd_unsqueeze(failed, 0), grd_add(grd_select(x, 0, 0), failed)));
    grd_error_clear();
    check_unchanged("the failed tensor as input");
    check_working("the failed tensor as input");
    assert_int_equal(grd_numel(grd_failed), 1);
}

/* ---- Gradients -------------------------------------------------------------------------------------------------------------------- */

#define FREED                                                                                                                              \
    "RuntimeError: MulBackward0: Trying to backward through the graph a second time (or directly access saved tensors after they have "    \
    "already been freed). "                                                                                                                \
    "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you "     \
    "need "                                                                                                                                \
    "to "                                                                                                                                  \
    "backward through the graph a second time or if you need to access saved tensors after calling backward."
#define MODIFIED "one of the variables needed for gradient computation has been modified by an inplace operation: "

static void backward_refuses_freed_and_modified_graphs(void)
{
    grd_tensor *t = grd_set_requires_grad(grd_clone(v), true), *w = grd_clone(v);
    grd_tensor *sum = grd_sum(grd_mul(t, t));
    grd_backward(sum);
    assert_true(grd_ok());
    grd_backward(sum);
    refused_call(FREED);
    assert_int_equal((int)grd_item_double(grd_select(grd_grad_of(t), 0, 0)), 2);

    grd_tensor *e = grd_exp(t);
    grd_add_scalar_(e, grd_int(1));
    grd_backward(grd_sum(e));
    refused_call("RuntimeError: ExpBackward0: " MODIFIED
                 "[FloatTensor [3]], which is output 0 of ExpBackward0, is at version 1; expected version 0 instead.");
    sum = grd_sum(grd_mul(t, w));
    grd_zero_(w);
    grd_backward(sum);
    refused_call("RuntimeError: MulBackward0: " MODIFIED "[FloatTensor [3]] is at version 1; expected version 0 instead.");
    assert_int_equal((int)grd_item_double(grd_select(grd_grad_of(t), 0, 0)), 2);

    grd_backward(grd_mul(leaf, leaf));
    refused_call("RuntimeError: grad can be implicitly created only for scalar outputs");
    grd_backward(grd_sum(v));
    refused_call("RuntimeError: element 0 of tensors does not require grad and does not have a grad_fn");
    grd_tensor *grad;
    assert_false(grd_grad(grd_tensors(grd_sum(leaf)), grd_tensors(v), NULL, &grad));
    assert_ptr_equal(grad, grd_failed);
    refused_call("RuntimeError: One of the differentiated Tensors does not require grad");
    assert_false(grd_grad(grd_tensors(grd_sum(leaf)), grd_tensors(t), NULL, &grad));
    refused_call("RuntimeError: The differentiated Tensor at index 0 appears to not have been used in the graph. Set allow_unused=True if "
                 "this is the "
                 "desired behavior.");
}

static void leaves_that_require_grad_refuse_in_place_writes(void)
{
    refused(grd_add_(leaf, v), "RuntimeError: add: a leaf Variable that requires grad is being used in an in-place operation.");
    refused(grd_zero_(grd_select(leaf, 0, 0)),
            "RuntimeError: zero: a view of a leaf Variable that requires grad is being used in an in-place operation.");
    grd_tensor *out = grd_zeros(grd_dims(3));
    refused(grd_add_out(out, leaf, v),
            "RuntimeError: add: functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad.");
    grd_set_requires_grad(ints, true);
    refused_call("RuntimeError: only Tensors of floating point and complex dtype can require gradients");
    refused(grd_zeros(grd_dims(2), .dtype = GRD_INT64, .requires_grad = true),
            "RuntimeError: zeros: Only Tensors of floating point and complex dtype can require gradients");
    grd_set_requires_grad(grd_exp(leaf), false);
    refused_call("RuntimeError: you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
                 "subgraph that "
                 "doesn't require differentiation use var_no_grad = var.detach().");
    grd_set_grad(leaf, one);
    refused_call("RuntimeError: attempting to assign a gradient of size '[1]' to a tensor of size '[3]'. Please ensure that the gradient "
                 "and the tensor "
                 "are the same size");
    grd_set_grad(leaf, doubles);
    refused_call("RuntimeError: attempting to assign a gradient with dtype 'float64' to a tensor with dtype 'float32'. Please ensure that "
                 "the gradient "
                 "and the tensor are of the same dtype");
    assert_null(grd_grad_of(leaf));
}

/* ---- Values ----------------------------------------------------------------------------------------------------------------------- */

static void values_out_of_range_are_refused(void)
{
    grd_tensor *all = grd_ones(grd_dims(2), .dtype = GRD_BOOL);
    refused(grd_full(grd_dims(2), grd_int(300), .dtype = GRD_UINT8),
            "RuntimeError: full: value cannot be converted to type uint8_t without overflow");
    refused(grd_fill_(bytes, grd_int(300)), "RuntimeError: fill: value cannot be converted to type uint8_t without overflow");
    refused(grd_masked_fill_(bytes, all, grd_int(300)),
            "RuntimeError: masked_fill: value cannot be converted to type uint8_t without overflow");
    refused(grd_fill_(ints, grd_float(INFINITY)), "RuntimeError: fill: value cannot be converted to type int64_t without overflow");
    refused(grd_fill_(v, grd_complex_number(0, 1)), "RuntimeError: fill: value cannot be converted to type float without overflow");
    refused(grd_div(ints, zero, .rounding_mode = "floor"), "RuntimeError: div: ZeroDivisionError");
    refused(grd_pow_scalar(ints, grd_int(-1)), "RuntimeError: pow: Integers to negative integer powers are not allowed.");
    refused(grd_clamp(v), "RuntimeError: clamp: torch.clamp: At least one of 'min' or 'max' must not be None");
    refused(grd_arange(grd_int(0), .end = grd_int(5), .step = grd_int(0)), "RuntimeError: arange: step must be nonzero");
    refused(grd_arange(grd_int(5), .end = grd_int(0)), "RuntimeError: arange: upper bound and lower bound inconsistent with step sign");
    refused(grd_linspace(grd_int(0), grd_int(1), -1), "RuntimeError: linspace: number of steps must be non-negative");
    refused(grd_dropout(v, .p = 2), "ValueError: dropout: dropout probability has to be between 0 and 1, but got 2");
    refused(grd_uniform_(v, .from = 1, .to = 0), "RuntimeError: uniform: uniform_ expects to return a [from, to) range, but found "
                                                 "from=1 > to=0");
    assert_true(isnan(grd_item_double(x)));
    refused_call("RuntimeError: a Tensor with 6 elements cannot be converted to Scalar");
    grd_set_num_threads(0);
    expect(grd_error_get() == GRD_ERROR_VALUE, "no ValueError", "grd_set_num_threads");
    grd_error_clear();
    int64_t sizes[GRD_MAX_DIMS], ndim;
    expect(!grd_broadcast_shapes(grd_dims(2, 3), grd_dims_from(NULL, 2), sizes, &ndim), "no shape broadcasts", "grd_broadcast_shapes");
    refused_call("ValueError: broadcast_shapes: b is not a list of at most 64 sizes");
    expect(!grd_broadcast_shapes(grd_dims(2, 3), grd_dims(4), sizes, &ndim), "shapes that do not fit broadcast", "grd_broadcast_shapes");
    refused_call("RuntimeError: The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1");
}

static void unknown_words_as_options_are_refused(void)
{
    refused(grd_mse_loss(v, v, .reduction = "avg"),
            "ValueError: mse_loss: avg is not a valid value for reduction: \"none\", \"mean\" or \"sum\"");
    refused(grd_nll_loss(x, grd_zeros(grd_dims(2), .dtype = GRD_INT64), .reduction = "avg"),
            "ValueError: nll_loss: nll_loss_forward: avg is not a valid value for reduction: \"none\", \"mean\" or \"sum\"");
    refused(grd_cross_entropy(x, grd_zeros(grd_dims(2), .dtype = GRD_INT64), .reduction = ""),
            "ValueError: cross_entropy:  is not a valid value for reduction: \"none\", \"mean\" or \"sum\"");
    refused(grd_div(v, v, .rounding_mode = "up"),
            "RuntimeError: div: expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'");
    refused(grd_gelu(v, .approximate = "erf"), "RuntimeError: gelu: approximate argument must be either none or tanh.");
    refused(grd_clone(v, .memory_format = "fortran"), "ValueError: clone: memory_format must be \"preserve\", \"contiguous\", "
                                                      "\"channels_last\" (of 4 dimensions) or \"channels_last_3d\" (of 5), "
                                                      "not 'fortran'");
}

/* ---- Pending errors ----------------------------------------------------------------------------------------------------------------- */

/* While an error is pending, no call computes, reads or writes anything. */
static void the_first_of_several_errors_stays(void)
{
    float kept[3] = {-1, -1, -1};
    grd_tensor *copy = grd_clone(v);
    grd_tensor *first = grd_add(x, y), *second = grd_mm(x, v), *third = grd_exp(NULL), *fourth = grd_sum(grd_mul(first, v));
    assert_ptr_equal(second, grd_failed);
    assert_ptr_equal(third, grd_failed);
    assert_ptr_equal(fourth, grd_failed);
    assert_ptr_equal(grd_zero_(copy), grd_failed);
    assert_ptr_equal(grd_add_out(copy, v, v), grd_failed);
    assert_ptr_equal(grd_from_data(numbers, grd_dims(3), GRD_FLOAT32), grd_failed);
    grd_backward(grd_sum(leaf));
    grd_to_memory(copy, kept, GRD_FLOAT32);
    assert_int_equal((int)kept[2], -1);
    assert_true(isnan(grd_item_double(one)));
    refused_call("RuntimeError: add: " MUST_MATCH);
    grd_to_memory(copy, kept, GRD_FLOAT32);
    assert_int_equal((int)kept[2], 3);
    assert_int_equal(grd_tensor_version(copy), 0);
    assert_null(grd_grad_of(leaf));
}

static void a_pending_error_survives_its_scope(void)
{
    grd_scope outer = grd_scope_open();
    grd_tensor *kept = grd_keep(grd_exp(v));
    grd_scope inner = grd_scope_open();
    grd_tensor *result = grd_scope_return(inner, grd_sum(grd_mul(grd_exp(v), y)));
    assert_ptr_equal(result, grd_failed);
    grd_scope_close(outer);
    assert_false(grd_ok());
    grd_error_clear();
    assert_int_equal((int)grd_item_double(grd_select(kept, 0, 0)), 2);
    grd_drop(kept);
    inner = grd_scope_open();
    grd_add(x, y);
    grd_scope_close(inner);
    refused_call("RuntimeError: add: " MUST_MATCH);
}

static void *on_another_thread(void *context)
{
    const char **ret_text = context;
    const bool clean = grd_ok() && grd_item_double(grd_sum(grd_mul(v, v))) == 14;
    grd_mm(x, y);
    *ret_text = clean && strstr(grd_error_message(), "mm: mat1 and mat2") ? "its own" : "another's";
    return NULL;
}

static void errors_are_thread_local(void)
{
    pthread_t thread;
    const char *text = NULL;
    grd_add(x, y);
    assert_int_equal(pthread_create(&thread, NULL, on_another_thread, &text), 0);
    pthread_join(thread, NULL);
    assert_string_equal(text, "its own");
    refused_call("RuntimeError: add: " MUST_MATCH);
}

/* An error that a worker thread raises in a parallel loop is reported in the thread that made the call. */
static void an_error_of_a_worker_thread_reaches_the_caller(void)
{
    grd_tensor *many = grd_zeros(grd_dims(1 << 18), .dtype = GRD_INT64);
    grd_tensor *last = grd_fill_(grd_slice(grd_clone(many), .start = grd_int((1 << 18) - 1)), grd_int(7));
    const int threads = grd_num_threads();
    grd_set_num_threads(4);
    refused(grd_index_select(v, 0, grd_cat(grd_tensors(many, last))), "IndexError: index_select: index out of range in self");
    grd_set_num_threads(threads);
}

/* ---- Running ------------------------------------------------------------------------------------------------------------------------ */

static const struct group {
    const char *name;
    void (*run)(void);
} groups[] = {
    {"elementwise_operators_refuse_mismatched_shapes", elementwise_operators_refuse_mismatched_shapes},
    {"matrix_products_refuse_mismatched_shapes", matrix_products_refuse_mismatched_shapes},
    {"cat_and_stack_refuse_mismatched_shapes", cat_and_stack_refuse_mismatched_shapes},
    {"views_refuse_invalid_sizes_and_strides", views_refuse_invalid_sizes_and_strides},
    {"operators_refuse_unsupported_dtypes", operators_refuse_unsupported_dtypes},
    {"dimensions_out_of_range_are_refused", dimensions_out_of_range_are_refused},
    {"indices_out_of_range_are_refused", indices_out_of_range_are_refused},
    {"layer_norm_and_rms_norm_refuse_mismatched_shapes", layer_norm_and_rms_norm_refuse_mismatched_shapes},
    {"sizes_that_overflow_are_refused", sizes_that_overflow_are_refused},
    {"exhausted_memory_raises_memory_error", exhausted_memory_raises_memory_error},
    {"operators_refuse_null_arguments", operators_refuse_null_arguments},
    {"tensor_functions_refuse_null", tensor_functions_refuse_null},
    {"autograd_functions_refuse_null", autograd_functions_refuse_null},
    {"the_failed_tensor_can_be_read_but_not_written", the_failed_tensor_can_be_read_but_not_written},
    {"backward_refuses_freed_and_modified_graphs", backward_refuses_freed_and_modified_graphs},
    {"leaves_that_require_grad_refuse_in_place_writes", leaves_that_require_grad_refuse_in_place_writes},
    {"values_out_of_range_are_refused", values_out_of_range_are_refused},
    {"unknown_words_as_options_are_refused", unknown_words_as_options_are_refused},
    {"the_first_of_several_errors_stays", the_first_of_several_errors_stays},
    {"a_pending_error_survives_its_scope", a_pending_error_survives_its_scope},
    {"errors_are_thread_local", errors_are_thread_local},
    {"an_error_of_a_worker_thread_reaches_the_caller", an_error_of_a_worker_thread_reaches_the_caller},
};
enum { GROUPS = sizeof groups / sizeof *groups };

/* Runs a group of refused calls twice. Memory allocated by the first run may be cached for the thread, but memory that the second run does not
 * free is a leak. */
static void run_group(void **state)
{
    const struct group *group = *state;
    int64_t blocks = 0;
    wrong = 0;
    for (int round = 0; round < 2 && wrong == 0; round++) {
        blocks = grd_memory_get_stats().blocks;
        const grd_scope scope = grd_scope_open();
        make_inputs();
        assert_true(grd_ok());
        for (int i = 0; i < INPUTS; i++)
            before[i] = look(*inputs[i]);
        group->run();
        grd_scope_close(scope);
    }
    assert_int_equal(wrong, 0);
    assert_true(grd_ok());
    assert_int_equal(grd_memory_get_stats().blocks, blocks);
}

static int clean(void **state)
{
    (void)state;
    grd_error_clear();
    return 0;
}

/* Runs all groups of tests, or if the first program argument is the name of a group, only that group. */
int main(int argc, char **argv)
{
    struct CMUnitTest tests[GROUPS];
    for (int i = 0; i < GROUPS; i++)
        tests[i] = (struct CMUnitTest){groups[i].name, run_group, NULL, clean, (void *)&groups[i]};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return _cmocka_run_group_tests("errors", tests, GROUPS, NULL, NULL);
}
