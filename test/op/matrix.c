/* Tests every operator of the schema with every dtype, with several kinds of strides, and in every form, on the samples of its schema entry.
 *
 * For each sample it compares
 *   - float64 results with the entry's reference;
 *   - every dtype with the same operator in its widest dtype on the same values;
 *   - every layout with the contiguous one;
 *   - operators with and without their fast paths for simple operands, bit for bit;
 *   - the out= and in-place forms with the functional form;
 *   - meta tensors with CPU tensors;
 *   - a device whose memory cannot be read (protected.h) with the CPU, including gradients;
 *   - first and second derivatives with finite differences.
 * It also checks that NULL is refused for each required tensor. Each operator is one test, and `test_matrix tanh` runs only the test of tanh. */
#include <float.h>

#include "call.h"
#include "core/shortcuts.h"
#include "core/tensor.h"
#include "protected.h"

static double epsilon_of(grd_dtype dtype)
{
    switch (grd_dtype_to_real(dtype)) {
    case GRD_FLOAT16:
        return 9.8e-4;
    case GRD_BFLOAT16:
        return 7.9e-3;
    case GRD_FLOAT32:
        return 1.2e-7;
    default:
        return 2.3e-16;
    }
}

/* Writes the elements to ret_values as doubles, a complex element as its real and imaginary parts. Returns the number of doubles. */
static int64_t read_values(grd_tensor *t, double *ret_values)
{
    const bool is_complex = grd_dtype_is_complex(grd_tensor_dtype(t));
    const int64_t n = grd_numel(t) * (is_complex ? 2 : 1);
    assert_true(n <= MAX_VALUES);
    grd_to_memory(t, ret_values, is_complex ? GRD_COMPLEX128 : GRD_FLOAT64);
    return n;
}

static void check_shape(grd_tensor *got, grd_tensor *wanted, const char *what, const struct test_case *test, const struct setting *s)
{
    const grd_dims a = grd_sizes(got), b = grd_sizes(wanted);
    if (a.n != b.n || memcmp(a.data, b.data, (size_t)a.n * sizeof *a.data) != 0)
        fail_msg("%s: shape differs (%lld and %lld dimensions) in %s", what, (long long)a.n, (long long)b.n, place(test, s));
}

/* Checks that |got - wanted| <= ulps * eps * scale for all elements, where scale = max(1, largest finite |wanted|). eps is the machine epsilon
 * of s->dtype or of got's dtype, whichever is larger. NaN equals NaN. In a float16 result, infinity equals a number beyond float16's range. */
static void check_close(grd_tensor *got, grd_tensor *wanted, double ulps, const char *what, const struct test_case *test,
                        const struct setting *s)
{
    static double a[MAX_VALUES], b[MAX_VALUES];
    check_shape(got, wanted, what, test, s);
    const int64_t n = read_values(got, a);
    const bool both = grd_dtype_is_complex(grd_tensor_dtype(got)) == grd_dtype_is_complex(grd_tensor_dtype(wanted));
    if (!both)
        fail_msg("%s: one result is complex in %s", what, place(test, s));
    read_values(wanted, b);
    double scale = 1;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(b[i]))
            scale = fmax(scale, fabs(b[i]));
    const double eps = fmax(epsilon_of(grd_tensor_dtype(got)), epsilon_of(s->dtype));
    const double largest = grd_dtype_to_real(grd_tensor_dtype(got)) == GRD_FLOAT16 ? 65504 : INFINITY;
    for (int64_t i = 0; i < n; i++) {
        const bool same = a[i] == b[i] || (isnan(a[i]) && isnan(b[i])) || (isinf(a[i]) && fabs(b[i]) > largest);
        if (!same && !(fabs(a[i] - b[i]) <= ulps * eps * scale))
            fail_msg("%s: element %lld is %.17g, not %.17g, in %s", what, (long long)i, a[i], b[i], place(test, s));
    }
}

/* ---- Checks ----------------------------------------------------------------------------------------------------------- */

static void check_reference(const struct call *call, const struct results *results, const struct setting *s)
{
    const struct test_case *test = call->test;
    if (!test->reference || grd_dtype_is_complex(s->dtype))
        return;
    static double in[3][MAX_VALUES], got[MAX_VALUES];
    const int64_t n = read_values(results->tensors[0], got);
    int inputs = 0;
    for (int i = 0; i < test->n && inputs < 3; i++)
        if (call->args[i].kind == GRD_KIND_TENSOR)
            read_values(grd_expand(call->args[i].v.tensor, grd_sizes(results->tensors[0])), in[inputs++]);
    for (int i = 0; i < test->n; i++) /* the reference takes no options, so a sample with options is skipped */
        if (call->args[i].kind != GRD_KIND_TENSOR && call->args[i].kind != GRD_KIND_NONE)
            return;
    for (int64_t i = 0; i < n; i++) {
        const double x[3] = {in[0][i], in[1][i], in[2][i]}, wanted = test->reference(x);
        if (!(fabs(got[i] - wanted) <= fmin(test_tolerance(test) * 2.3e-16 * fmax(1, fabs(wanted)), DBL_MAX)) &&
            !(isnan(got[i]) && isnan(wanted)))
            fail_msg("element %lld is %.17g, the reference says %.17g, in %s", (long long)i, got[i], wanted, place(test, s));
    }
}

static void check_forms(const struct call *call, const struct results *results, const struct setting *s)
{
    grd_value ret;
    grd_tensor *wanted = results->tensors[0];
    if (has_form(call->op, GRD_OUT)) {
        grd_tensor *out = with_layout(
            grd_full(grd_sizes(wanted), grd_int(1), .dtype = grd_tensor_dtype(wanted), .device = grd_tensor_device(wanted)), s->layout);
        if (!grd_call(call->op, GRD_OUT, call->args, call->test->n, out, &ret))
            fail_msg("out=: %s in %s", grd_error_message(), place(call->test, s));
        assert_ptr_equal(ret.v.tensor, out);
        check_close(out, wanted, 0, "out=", call->test, s);
        grd_tensor *empty = grd_empty(grd_dims(0), .dtype = grd_tensor_dtype(wanted), .device = grd_tensor_device(wanted));
        grd_call(call->op, GRD_OUT, call->args, call->test->n, empty, &ret);
        check_close(empty, wanted, 0, "out= of another shape", call->test, s);
    }
    if (has_form(call->op, GRD_INPLACE) && has_form(call->op, GRD_FUNCTIONAL) && call->args[0].kind == GRD_KIND_TENSOR) {
        grd_value args[MAX_ARGS];
        memcpy(args, call->args, sizeof args);
        args[0].v.tensor = grd_clone(args[0].v.tensor);
        const int64_t version = grd_tensor_version(args[0].v.tensor);
        if (grd_call(call->op, GRD_INPLACE, args, call->test->n, NULL, &ret)) {
            assert_ptr_equal(ret.v.tensor, args[0].v.tensor);
            const bool unchanged = wanted == call->args[0].v.tensor; /* dropout outside of training returns self unwritten */
            assert_true(unchanged || grd_tensor_version(ret.v.tensor) > version);
            if (grd_tensor_dtype(ret.v.tensor) == grd_tensor_dtype(wanted))
                check_close(ret.v.tensor, wanted, 0, "in place", call->test, s);
        } else {
            /* The in-place form may only refuse the call if the result's shape or dtype differs from self's. */
            const grd_dims a = grd_sizes(args[0].v.tensor), b = grd_sizes(wanted);
            const bool fits = a.n == b.n && memcmp(a.data, b.data, (size_t)a.n * 8) == 0 &&
                              grd_tensor_dtype(args[0].v.tensor) == grd_tensor_dtype(wanted);
            if (fits)
                fail_msg("in place: %s in %s", grd_error_message(), place(call->test, s));
            grd_error_clear();
        }
    }
}

static void check_meta(const struct test_case *test, const struct results *results, const struct setting *cpu)
{
    struct setting s = *cpu;
    struct call call;
    struct results meta;
    s.device = GRD_META;
    make_call(&call, test, &s);
    if (!run(&call, &meta)) {
        if (grd_error_get() != GRD_ERROR_NOT_IMPLEMENTED)
            fail_msg("meta: %s in %s", grd_error_message(), place(test, &s));
        grd_error_clear();
        return;
    }
    assert_int_equal(meta.n, results->n);
    for (int i = 0; i < meta.n; i++) {
        check_shape(meta.tensors[i], results->tensors[i], "meta", test, &s);
        if (grd_tensor_dtype(meta.tensors[i]) != grd_tensor_dtype(results->tensors[i]))
            fail_msg("meta: dtype is %s, not %s, in %s", grd_dtype_name(grd_tensor_dtype(meta.tensors[i])),
                     grd_dtype_name(grd_tensor_dtype(results->tensors[i])), place(test, &s));
    }
}

static void check_null(const struct call *call, const struct setting *s)
{
    for (int i = 0; i < call->test->n; i++) {
        if (call->test->args[i].kind != TEST_FLOATS || grd_op_arg_optional(call->op, i))
            continue;
        struct call broken = *call;
        struct results results;
        broken.args[i] = (grd_value){.kind = GRD_KIND_TENSOR};
        if (run(&broken, &results) || grd_error_get() != GRD_ERROR_TYPE || !strstr(grd_error_message(), grd_op_arg_name(call->op, i)))
            fail_msg("NULL for argument %d gave \"%s\" in %s", i, grd_error_message(), place(call->test, s));
        grd_error_clear();
    }
}

/* ---- Fast paths ---------------------------------------------------------------------------------------------------------------- */

/* Checks that `got`, computed without fast paths, has the same dtype, shape, strides and bits as `wanted`. */
static void check_same(grd_tensor *got, grd_tensor *wanted, const struct test_case *test, const struct setting *s)
{
    static char a[16 * MAX_VALUES], b[16 * MAX_VALUES];
    const grd_dtype dtype = grd_tensor_dtype(wanted);
    check_shape(got, wanted, "without shortcuts", test, s);
    const grd_dims strides = grd_strides(got), expected = grd_strides(wanted);
    if (grd_tensor_dtype(got) != dtype || memcmp(strides.data, expected.data, (size_t)strides.n * sizeof *strides.data) != 0)
        fail_msg("without shortcuts: dtype or strides differ in %s", place(test, s));
    assert_true(grd_numel(got) <= MAX_VALUES);
    grd_to_memory(got, a, dtype);
    grd_to_memory(wanted, b, dtype);
    if (memcmp(a, b, (size_t)(grd_numel(got) * grd_dtype_size(dtype))) != 0)
        fail_msg("without shortcuts: bits differ in %s", place(test, s));
}

/* Checks that an operator gives `results` bit for bit if its fast paths for simple operands are turned off. */
static void check_without_shortcuts(const struct test_case *test, const struct results *results, const struct setting *s)
{
    struct call call;
    struct results got;
    make_call(&call, test, s); /* made again, because some operators write to their arguments */
    grd_shortcuts = false;
    if (!run(&call, &got))
        fail_msg("without shortcuts: %s in %s", grd_error_message(), place(test, s));
    assert_int_equal(got.n, results->n);
    for (int i = 0; i < got.n; i++)
        check_same(got.tensors[i], results->tensors[i], test, s);
    check_forms(&call, &got, s);
    grd_shortcuts = true;
}

/* ---- Derivatives ----------------------------------------------------------------------------------------------------------- */

static void check_gradients(const struct test_case *test, grd_dtype dtype)
{
    static const grd_gradcheck_options forward = {.forward = true};
    const struct setting s = {dtype, dtype, CONTIGUOUS, GRD_CPU, true};
    struct call call;
    struct results results;
    make_call(&call, test, &s);
    if (call.ndifferentiable == 0)
        return;
    if (!run(&call, &results)) { /* the operator has no kernel for this dtype; check_dtype fails if it should have one */
        grd_error_clear();
        return;
    }
    bool any = false;
    for (int i = 0; i < results.n; i++)
        any = any || (is_differentiable(results.tensors[i]) && grd_requires_grad(results.tensors[i]));
    if (!any)
        return;
    const grd_tensors inputs = {call.ndifferentiable, call.differentiable};
    if (!grd_gradcheck(as_function, inputs, &call, &forward))
        fail_msg("gradcheck: %s in %s", grd_error_message(), place(test, &s));
    if (!grd_gradgradcheck(as_function, inputs, &call, &forward))
        fail_msg("gradgradcheck: %s in %s", grd_error_message(), place(test, &s));
}

/* Writes the gradients of the call's differentiable tensors to ret_grads, for output gradients cos(0), cos(1), ... Returns false if no result
 * requires a gradient or an error is pending. */
static bool varied_gradients(struct call *call, grd_tensor **ret_grads)
{
    grd_tensor *seeds[MAX_RESULTS];
    const grd_tensors outputs = as_function(call->differentiable, call->ndifferentiable, call);
    for (int64_t i = 0; i < outputs.n && grd_ok(); i++) {
        grd_tensor *places = grd_arange(grd_int(grd_numel(outputs.data[i])), .dtype = GRD_FLOAT64);
        seeds[i] = grd_to(grd_reshape(grd_cos(places), grd_sizes(outputs.data[i])), .dtype = grd_tensor_dtype(outputs.data[i]));
    }
    const grd_backward_options options = {.grad_outputs = grd_tensors_from(seeds, outputs.n), .allow_unused = true};
    return grd_ok() && outputs.n > 0 &&
           grd_grad(outputs, grd_tensors_from(call->differentiable, call->ndifferentiable), &options, ret_grads);
}

/* Checks that hand-written backward kernels (accelerations) give the same gradients as the derivative formulas. */
static void check_accelerations(const struct test_case *test, grd_dtype dtype, enum layout layout)
{
    const struct setting s = {dtype, dtype, layout, GRD_CPU, true};
    struct call call;
    grd_tensor *fast[MAX_TENSORS], *wanted[MAX_TENSORS];
    make_call(&call, test, &s);
    if (call.ndifferentiable > 0 && !test->no_gradient && varied_gradients(&call, fast)) {
        make_call(&call, test, &s);
        grd_accelerations = false;
        const bool ok = varied_gradients(&call, wanted);
        grd_accelerations = true;
        if (!ok)
            fail_msg("without accelerations: %s in %s", grd_error_message(), place(test, &s));
        for (int i = 0; i < call.ndifferentiable; i++) {
            assert_true((fast[i] == NULL) == (wanted[i] == NULL));
            if (fast[i] != NULL)
                check_close(fast[i], wanted[i], 8 * test_tolerance(test), "an accelerated gradient", test, &s);
        }
    }
    grd_error_clear();
}

/* ---- A device whose memory cannot be read ------------------------------------------------------------------------------------ */

static grd_device protected_device;

/* Writes the gradients of the call's differentiable tensors to ret_grads, for output gradients of ones. Returns the number of gradients, or -1 if
 * no result requires a gradient or an error is pending. */
static int64_t gradients_of(struct call *call, grd_tensor **ret_grads)
{
    grd_tensor *seeds[MAX_RESULTS];
    const grd_tensors outputs = as_function(call->differentiable, call->ndifferentiable, call);
    if (!grd_ok() || outputs.n == 0)
        return -1;
    for (int64_t i = 0; i < outputs.n; i++)
        seeds[i] = grd_ones_like(outputs.data[i]);
    const grd_backward_options options = {.grad_outputs = grd_tensors_from(seeds, outputs.n), .allow_unused = true};
    const bool done = grd_grad(outputs, grd_tensors_from(call->differentiable, call->ndifferentiable), &options, ret_grads);
    return done ? call->ndifferentiable : -1;
}

static bool gives_tensors_there(const struct call *call)
{
    for (int i = 0; i < call->test->n; i++)
        if (call->test->args[i].kind == TEST_DEVICE)
            return false;
    return call->args[0].kind == GRD_KIND_TENSOR || call->args[0].kind == GRD_KIND_TENSORS;
}

static void check_device_gradients(const struct test_case *test, const struct setting *here, const struct setting *there)
{
    struct call near, far;
    grd_tensor *wanted[MAX_TENSORS], *got[MAX_TENSORS];
    make_call(&near, test, here);
    make_call(&far, test, there);
    const int64_t n = gradients_of(&near, wanted);
    grd_error_clear();
    const int64_t there_n = gradients_of(&far, got);
    if (there_n != n)
        fail_msg("gradients on a device: %s in %s", grd_error_message(), place(test, here));
    grd_error_clear();
    for (int64_t i = 0; i < n; i++) {
        assert_true((got[i] == NULL) == (wanted[i] == NULL));
        if (got[i] != NULL)
            check_close(got[i], wanted[i], 0, "gradient on a device", test, here);
    }
}

static bool is_view_of(grd_tensor *t, grd_tensor *argument)
{
    grd_tensor *const base = grd_view_base(t);
    return base != NULL && (base == argument || base == grd_view_base(argument));
}

static bool is_view_of_argument(const struct call *call, grd_tensor *t)
{
    for (int i = 0; i < call->test->n; i++)
        if (call->args[i].kind == GRD_KIND_TENSOR && call->args[i].v.tensor != NULL && is_view_of(t, call->args[i].v.tensor))
            return true;
    return false;
}

/* Checks that a call on a device whose memory the cpu cannot read gives the same elements, dtypes and errors as on the cpu. Results must stay on
 * the device. A result that is a view of an argument on the cpu must also be one on the device. */
static void check_device(const struct test_case *test, enum layout layout)
{
    const struct setting here = {GRD_FLOAT32, GRD_FLOAT32, layout, GRD_CPU, false};
    struct setting there = here, here_with_grad = here, there_with_grad;
    struct call near, far;
    struct results wanted, got;
    char error[512];
    there.device = protected_device;
    make_call(&near, test, &here);
    make_call(&far, test, &there);
    const bool works = run(&near, &wanted);
    snprintf(error, sizeof error, "%s", grd_error_message());
    grd_error_clear();
    const bool worked = run(&far, &got);
    if (worked != works || strcmp(grd_error_message(), error) != 0)
        fail_msg("on a device: \"%s\" and not \"%s\" in %s", grd_error_message(), error, place(test, &here));
    grd_error_clear();
    if (!works || test->skip)
        return;
    assert_int_equal(got.n, wanted.n);
    for (int i = 0; i < got.n; i++) {
        if (gives_tensors_there(&far) && grd_tensor_device(got.tensors[i]).type != protected_device.type)
            fail_msg("result %d left the device in %s", i, place(test, &here));
        if (has_form(near.op, GRD_FUNCTIONAL) && is_view_of_argument(&far, got.tensors[i]) != is_view_of_argument(&near, wanted.tensors[i]))
            fail_msg("result %d is a view on one device and not on the other in %s", i, place(test, &here));
        assert_int_equal(grd_tensor_dtype(got.tensors[i]), grd_tensor_dtype(wanted.tensors[i]));
        check_close(got.tensors[i], wanted.tensors[i], 0, "on a device", test, &here);
    }
    check_forms(&far, &got, &there);
    here_with_grad.requires_grad = true;
    there_with_grad = here_with_grad;
    there_with_grad.device = protected_device;
    if (!test->no_gradient)
        check_device_gradients(test, &here_with_grad, &there_with_grad);
}

/* ---- One operator ------------------------------------------------------------------------------------------------------------ */

static grd_dtype widest(grd_dtype dtype)
{
    return grd_dtype_is_complex(dtype)    ? GRD_COMPLEX128
           : grd_dtype_is_floating(dtype) ? GRD_FLOAT64
           : dtype == GRD_BOOL            ? GRD_BOOL
                                          : GRD_INT64;
}

/* True if `wide`, the results in the widest dtype, fit into `dtype`, so that results in `dtype` can be compared with them. Integers fit if they are
 * from 0 to 127. */
static bool comparable(const struct results *wide, grd_dtype dtype)
{
    static double values[MAX_VALUES];
    const double limit = grd_dtype_is_integer(dtype) ? 127 : grd_dtype_to_real(dtype) == GRD_FLOAT16 ? 65504 : INFINITY;
    for (int i = 0; i < wide->n; i++) {
        const int64_t n = read_values(wide->tensors[i], values);
        for (int64_t k = 0; k < n; k++)
            if (fabs(values[k]) > limit || (grd_dtype_is_integer(dtype) && values[k] < 0))
                return false;
    }
    return true;
}

static void check_dtype(const struct test_case *test, grd_dtype dtype)
{
    struct results wanted = {0};
    for (int layout = 0; layout < (test->contiguous_only ? CONTIGUOUS + 1 : LAYOUTS); layout++) {
        const grd_scope scope = grd_scope_open();
        const struct setting s = {dtype, dtype, (enum layout)layout, GRD_CPU, false};
        struct call call;
        struct results got;
        make_call(&call, test, &s);
        if (!run(&call, &got)) {
            /* The operator has no kernel for this dtype. It must refuse the dtype in every layout, with an error other than MemoryError. Kernels are
             * required for float32 and float64, or for complex64 and complex128 if the operator takes complex numbers only. */
            const bool needed =
                test->complex_only ? dtype == GRD_COMPLEX64 || dtype == GRD_COMPLEX128 : dtype == GRD_FLOAT32 || dtype == GRD_FLOAT64;
            const bool no_view =
                strstr(grd_error_message(), "view size is not compatible") != NULL; /* the layout is refused, not the dtype */
            if (no_view && layout != CONTIGUOUS) {
                grd_error_clear();
                grd_scope_close(scope);
                continue;
            }
            if (needed || (layout && wanted.n) || grd_error_get() == GRD_ERROR_MEMORY)
                fail_msg("%s in %s", grd_error_message(), place(test, &s));
            grd_error_clear();
            grd_scope_close(scope);
            continue;
        }
        if (test->skip) {
            grd_scope_close(scope);
            continue;
        }
        if (dtype == GRD_FLOAT64)
            check_reference(&call, &got, &s);
        check_forms(&call, &got, &s);
        check_without_shortcuts(test, &got, &s);
        struct setting contiguous = s, wide = s;
        contiguous.layout = CONTIGUOUS;
        make_call(&call, test, &contiguous);
        assert_true(run(&call, &wanted));
        for (int i = 0; i < got.n; i++)
            check_close(got.tensors[i], wanted.tensors[i],
                        dtype == GRD_FLOAT64 || dtype == GRD_COMPLEX128 ? 4 * test_tolerance(test) : test_tolerance(test), "strides", test,
                        &s);
        /* Unsigned dtypes are not widened, because a negative difference wraps in the unsigned dtype but not in a wider one. */
        wide.dtype = is_unsigned(dtype) ? dtype : widest(dtype);
        make_call(&call, test, &wide);
        if (run(&call, &wanted) && comparable(&wanted, dtype))
            for (int i = 0; i < got.n; i++)
                check_close(got.tensors[i], wanted.tensors[i], test_tolerance(test), "against the widest dtype", test, &s);
        grd_error_clear();
        if (layout == CONTIGUOUS)
            check_meta(test, &got, &s);
        grd_scope_close(scope);
    }
}

static bool has_floats(const struct test_case *test)
{
    for (int i = 0; i < test->n; i++) {
        if (test->args[i].kind == TEST_FLOATS)
            return true;
        for (int64_t k = 0; test->args[i].kind == TEST_LIST && k < test->args[i].n; k++)
            if (test->args[i].items[k].kind == TEST_FLOATS)
                return true;
    }
    return false;
}

static void test_operator(void **state)
{
    const struct test_cases *cases = *state;
    for (int i = 0; i < cases->n; i++) {
        const struct test_case *test = &cases->cases[i];
        for (int dtype = GRD_BOOL; dtype <= GRD_COMPLEX128; dtype++)
            if (has_floats(test) || dtype == GRD_FLOAT64)
                check_dtype(test, (grd_dtype)dtype);
        const grd_scope scope = grd_scope_open();
        const struct setting s = {GRD_FLOAT64, GRD_FLOAT64, CONTIGUOUS, GRD_CPU, false};
        struct call call;
        make_call(&call, test, &s);
        check_null(&call, &s);
        check_device(test, CONTIGUOUS);
        check_device(test, test->contiguous_only ? CONTIGUOUS : GAPS);
        if (!test->no_gradient && !test->skip) {
            check_gradients(test, GRD_FLOAT64);
            check_gradients(test, GRD_COMPLEX128);
            for (int dtype = GRD_FLOAT16; dtype <= GRD_COMPLEX128; dtype++)
                for (int layout = CONTIGUOUS; layout <= (test->contiguous_only ? CONTIGUOUS : NEGATIVE); layout++)
                    check_accelerations(test, (grd_dtype)dtype, (enum layout)layout);
        }
        grd_scope_close(scope);
        assert_true(grd_ok());
    }
}

int main(int argc, char **argv)
{
    protected_device = protected_register("protected", grd_cpu_fallback);
    return run_matrix(test_operator, argc, argv);
}
