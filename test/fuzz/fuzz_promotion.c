/* Fuzzes type promotion and compares it with a different formulation of PyTorch's rules. A dtype is modelled as a set of numbers, and two dtypes
 * promote to the smallest dtype that contains both sets. Tensors with dimensions take precedence over zero-dimensional tensors, and these over
 * Python numbers. An operand of lower precedence counts only if its category (bool < integer < float < complex) is higher. */
#include "core/iter.h"
#include "fuzz.h"

enum category { BOOLEAN, INTEGRAL, FLOATING, COMPLEX };

/* Describes the range and the precision of a dtype. For integers, `first` and `second` are the numbers of bits of the largest and of the smallest
 * value. For floats and complex numbers they are the numbers of bits of the exponent and of the mantissa. */
static const struct model {
    grd_dtype dtype;
    enum category category;
    int first, second;
} models[] = {
    {GRD_BOOL, BOOLEAN, 1, 0},       {GRD_INT8, INTEGRAL, 7, 8},      {GRD_UINT8, INTEGRAL, 8, 0},     {GRD_INT16, INTEGRAL, 15, 16},
    {GRD_UINT16, INTEGRAL, 16, 0},   {GRD_INT32, INTEGRAL, 31, 32},   {GRD_UINT32, INTEGRAL, 32, 0},   {GRD_INT64, INTEGRAL, 63, 64},
    {GRD_UINT64, INTEGRAL, 64, 0},   {GRD_FLOAT16, FLOATING, 5, 10},  {GRD_BFLOAT16, FLOATING, 8, 7},  {GRD_FLOAT32, FLOATING, 8, 23},
    {GRD_FLOAT64, FLOATING, 11, 52}, {GRD_COMPLEX32, COMPLEX, 5, 10}, {GRD_COMPLEX64, COMPLEX, 8, 23}, {GRD_COMPLEX128, COMPLEX, 11, 52},
};
enum { MODELS = sizeof models / sizeof *models };

static const struct model *model_of(grd_dtype dtype)
{
    for (int i = 0; i < MODELS; i++)
        if (models[i].dtype == dtype)
            return &models[i];
    return NULL;
}

/* Returns the dtype to which a and b promote, or GRD_DTYPE_NONE if the promotion is refused. */
static grd_dtype expected_promotion(grd_dtype a, grd_dtype b)
{
    if (a == b || b == GRD_DTYPE_NONE)
        return a;
    if (a == GRD_DTYPE_NONE)
        return b;
    const struct model *x = model_of(a), *y = model_of(b);
    if (x == NULL || y == NULL) /* float8 and quantized dtypes promote only with themselves */
        return GRD_DTYPE_NONE;
    const enum category category = x->category > y->category ? x->category : y->category;
    int first = 0, second = 0;
    if (x->category == category || (category == COMPLEX && x->category == FLOATING)) {
        first = x->first;
        second = x->second;
    }
    if (y->category == category || (category == COMPLEX && y->category == FLOATING)) {
        first = y->first > first ? y->first : first;
        second = y->second > second ? y->second : second;
    }
    for (int i = 0; i < MODELS; i++) /* within a category the models are ordered from the smallest to the largest dtype */
        if (models[i].category == category && models[i].first >= first && models[i].second >= second)
            return models[i].dtype;
    return GRD_DTYPE_NONE;
}

static grd_dtype promote(grd_dtype a, grd_dtype b)
{
    const grd_dtype result = grd_promote(a, b);
    fuzz_expect(grd_ok() == (result != GRD_DTYPE_NONE || (a == GRD_DTYPE_NONE && b == GRD_DTYPE_NONE)),
                "a promotion is a dtype or an error");
    grd_error_clear();
    return result;
}

static void check_pairs(grd_dtype a, grd_dtype b, grd_dtype c)
{
    const grd_dtype ab = promote(a, b), bc = promote(b, c);
    if (ab != expected_promotion(a, b))
        fuzz_fail("%s and %s promote to %s, not %s", grd_dtype_name(a), grd_dtype_name(b), grd_dtype_name(ab),
                  grd_dtype_name(expected_promotion(a, b)));
    fuzz_expect(ab == promote(b, a), "promotion commutes");
    if (ab != GRD_DTYPE_NONE && bc != GRD_DTYPE_NONE && promote(a, c) != GRD_DTYPE_NONE) {
        const grd_dtype left = promote(ab, c), right = promote(a, bc);
        fuzz_expect(left == GRD_DTYPE_NONE || right == GRD_DTYPE_NONE || left == right, "promotion associates");
    }
    /* Dtype a can be cast to b if the category of a is at most the category of b (bool < integer < float < complex). */
    const struct model *x = model_of(a), *y = model_of(b);
    if (x != NULL && y != NULL) {
        const bool fits = x->category <= y->category;
        fuzz_expect(grd_can_cast(a, b) == fits, "what may be cast");
    }
}

/* ---- Several tensors ------------------------------------------------------------------------------------------------------------------ */

enum { INPUTS = 4 };

struct input {
    grd_dtype dtype;
    int rank; /* 2: tensor with dimensions, 1: zero-dimensional tensor, 0: Python number */
};

static int category_of(grd_dtype dtype)
{
    const struct model *m = model_of(dtype);
    return m != NULL ? (int)m->category : FLOATING;
}

static grd_dtype to_complex(grd_dtype dtype)
{
    return dtype == GRD_FLOAT64 ? GRD_COMPLEX128 : dtype == GRD_FLOAT16 ? GRD_COMPLEX32 : GRD_COMPLEX64;
}

/* Returns the result dtype of an operand with dtype `high` and an operand of lower precedence with dtype `low`. The result dtype is `high`, unless
 * the category of `low` is higher. In that case it has the category of `low` and, if `high` is a float dtype, the precision of `high`. */
static grd_dtype expected_join(grd_dtype high, grd_dtype low)
{
    if (high == GRD_DTYPE_NONE || low == GRD_DTYPE_NONE)
        return high == GRD_DTYPE_NONE ? low : high;
    if (category_of(low) <= category_of(high))
        return high;
    return category_of(high) == FLOATING ? to_complex(high) : expected_promotion(high, low);
}

/* Stores the dtype to which the inputs promote in *ret_dtype. Returns false if the promotion is refused. */
static bool expected_result(const struct input *inputs, int n, grd_dtype *ret_dtype)
{
    grd_dtype of_rank[3] = {GRD_DTYPE_NONE, GRD_DTYPE_NONE, GRD_DTYPE_NONE};
    for (int i = 0; i < n; i++) {
        grd_dtype dtype = inputs[i].dtype;
        if (inputs[i].rank == 0 && dtype == GRD_FLOAT64)
            dtype = grd_default_dtype();
        if (inputs[i].rank == 0 && dtype == GRD_COMPLEX128)
            dtype = to_complex(grd_default_dtype());
        grd_dtype *place = &of_rank[inputs[i].rank];
        *place = expected_promotion(*place, dtype);
        if (*place == GRD_DTYPE_NONE)
            return false;
    }
    const grd_dtype lower = expected_join(of_rank[1], of_rank[0]);
    *ret_dtype = expected_join(of_rank[2], lower);
    const bool refused = lower == GRD_DTYPE_NONE && of_rank[1] != GRD_DTYPE_NONE;
    return *ret_dtype != GRD_DTYPE_NONE && !refused;
}

static grd_tensor *make_input(struct bytes *b, struct input *ret_input)
{
    ret_input->rank = (int)take_below(b, 3);
    if (ret_input->rank == 0) {
        static const grd_dtype kinds[] = {GRD_BOOL, GRD_INT64, GRD_FLOAT64, GRD_COMPLEX128};
        const int kind = (int)take_below(b, 4);
        ret_input->dtype = kinds[kind];
        return grd_number(kind == 0   ? grd_bool(true)
                          : kind == 1 ? grd_int(take_between(b, 0, 100))
                          : kind == 2 ? grd_float(0.5)
                                      : grd_complex_number(1, 2));
    }
    ret_input->dtype = (grd_dtype)take_between(b, GRD_BOOL, GRD_COMPLEX128);
    grd_tensor *t = ret_input->rank == 1 ? grd_zeros(GRD_NO_DIMS, .dtype = ret_input->dtype)
                                         : grd_zeros(grd_dims(take_below(b, 3)), .dtype = ret_input->dtype);
    fuzz_expect(grd_ok(), "zeros of any dtype");
    return t;
}

static const char *describe(const struct input *inputs, int n)
{
    static char text[256];
    size_t used = 0;
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s rank %d; ", grd_dtype_name(inputs[i].dtype), inputs[i].rank);
    return text;
}

static void expect_dtype(grd_tensor *result, grd_dtype wanted, const char *what, const struct input *inputs)
{
    if (!grd_ok() || grd_tensor_dtype(result) != wanted)
        fuzz_fail("%s gives %s, not %s: %s (%s)", what, grd_dtype_name(grd_tensor_dtype(result)), grd_dtype_name(wanted),
                  describe(inputs, 2), grd_error_message());
}

/* Checks the result dtypes of operators on the two tensors. Also checks that in-place and out= forms raise an error exactly when they must. */
static void check_operators(struct bytes *b, grd_tensor **tensors, const struct input *inputs)
{
    grd_dtype wanted;
    const bool promotes = expected_result(inputs, 2, &wanted);
    const int64_t sizes[2] = {grd_ndim(tensors[0]) ? grd_size(tensors[0], 0) : 1, grd_ndim(tensors[1]) ? grd_size(tensors[1], 0) : 1};
    const bool fits = sizes[0] == sizes[1] || sizes[0] == 1 || sizes[1] == 1;
    grd_tensor *sum = grd_add(tensors[0], tensors[1]);
    if (!promotes || !fits) {
        fuzz_expect(!grd_ok(), "what does not promote is not added");
        grd_error_clear();
        return;
    }
    expect_dtype(sum, wanted, "add", inputs);
    if (category_of(wanted) <= INTEGRAL)
        expect_dtype(grd_div(tensors[0], tensors[1]), grd_default_dtype(), "div", inputs);
    expect_dtype(grd_eq(tensors[0], tensors[1]), GRD_BOOL, "eq", inputs);
    expect_dtype(grd_where(grd_zeros(GRD_NO_DIMS, .dtype = GRD_BOOL), tensors[0], tensors[1]), wanted, "where", inputs);
    if (inputs[0].rank == 0)
        return;
    const bool castable = category_of(wanted) <= category_of(inputs[0].dtype), in_shape = sizes[1] == sizes[0] || sizes[1] == 1;
    const int64_t before = grd_tensor_version(tensors[0]);
    grd_mul_(tensors[0], tensors[1]);
    fuzz_expect(grd_ok() == (castable && in_shape && grd_ndim(tensors[1]) <= grd_ndim(tensors[0])), "what is multiplied in place");
    fuzz_expect(grd_ok() || grd_tensor_version(tensors[0]) == before, "what is refused is not written");
    grd_error_clear();
    const grd_dtype to = (grd_dtype)take_between(b, GRD_BOOL, GRD_COMPLEX128);
    grd_tensor *out = grd_empty(grd_sizes(sum), .dtype = to);
    grd_add_out(out, tensors[0], tensors[1]);
    fuzz_expect(grd_ok() == (category_of(wanted) <= category_of(to)), "what is written to out");
    grd_error_clear();
}

static void check(struct bytes *b)
{
    static const grd_dtype defaults[] = {GRD_FLOAT32, GRD_FLOAT64, GRD_FLOAT16, GRD_BFLOAT16};
    grd_set_default_dtype(defaults[take_below(b, 4)]);
    grd_dtype any[3];
    for (int i = 0; i < 3; i++)
        any[i] = (grd_dtype)take_below(b, GRD_DTYPE_COUNT);
    check_pairs(any[0], any[1], any[2]);

    grd_tensor *tensors[INPUTS];
    struct input inputs[INPUTS];
    const int n = (int)take_between(b, 2, INPUTS);
    for (int i = 0; i < n; i++)
        tensors[i] = make_input(b, &inputs[i]);
    grd_dtype wanted;
    const bool valid = expected_result(inputs, n, &wanted);
    const grd_dtype result = grd_result_type(tensors, n);
    if (grd_ok() != valid || (valid && result != wanted))
        fuzz_fail("the result type is %s, not %s, of %s", grd_dtype_name(result), valid ? grd_dtype_name(wanted) : "refused",
                  describe(inputs, n));
    grd_error_clear();
    check_operators(b, tensors, inputs);
    grd_set_default_dtype(GRD_FLOAT32);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_run(data, size, check);
    return 0;
}
