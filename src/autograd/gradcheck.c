/* Implements gradient checks, which compare analytic gradients with central differences.
 *
 * The compared Jacobian is a real matrix. It has a row for each component of the outputs and a column for each component of the inputs. A real
 * element is one component. A complex element is two components, its real and its imaginary part. Central differences compute the Jacobian column
 * by column: they change component j of the inputs and observe all outputs. Backward passes compute it row by row: the pass for row k starts from a
 * gradient of zeros with a 1 (or an i) at component k of the outputs. Both give the same matrix, because the gradient of a real L at z = x + iy is
 * defined as dL/dx + i dL/dy.
 * Invariant: when the check returns, every input has its old elements. */
#include "autograd/node.h"
#include "autograd/variable.h"
#include "core/dtype.h"
#include "core/geometry.h"
#include "core/given.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gen/uses/autograd/gradcheck.h"

#include <math.h>
#include <string.h>

/* The arguments and the intermediate results of one gradient check. */
struct check {
    grd_function *function;
    void *context;
    grd_tensors inputs;
    grd_gradcheck_options options;
    /* size of the Jacobian: one row per real component of the compared outputs, one column per real component of the inputs that require gradients */
    int64_t rows, columns;
    /* the Jacobian by central differences, stored column by column (columns * rows numbers), then `rows` numbers of scratch memory */
    double *numeric;
};

/* Returns the number of real components of an element: 2 if the tensor is complex, otherwise 1. */
static int parts_of(const grd_tensor *t)
{
    return grd_dtype_is_complex((grd_dtype)t->dtype) ? 2 : 1;
}

/* ---- Elements ------------------------------------------------------------------------------------------------------------------ */
/* Returns the address of element number `index` in row-major order. */
static char *element(const grd_tensor *t, int64_t index)
{
    char *at = t->data;
    for (int dim = t->ndim - 1; dim >= 0; dim--) {
        at += index % t->sizes[dim] * grd_byte_stride(t, dim);
        index /= t->sizes[dim];
    }
    return at;
}

/* Copies all elements of a tensor to ret_parts in row-major order; a complex element gives its real and then its imaginary part. */
static void read_parts(grd_tensor *t, double *ret_parts)
{
    grd_to_memory(t, ret_parts, parts_of(t) == 2 ? GRD_COMPLEX128 : GRD_FLOAT64);
}

/* True if the output `t` is compared. Its dtype must be able to have gradients and, if any output requires a gradient, `t` must require one. */
static bool is_output(const grd_tensor *t, bool any_requires)
{
    return grd_dtype_is_inexact(t->dtype) && (!any_requires || grd_needs_grad(t));
}

static bool any_requires(grd_tensors outputs)
{
    for (int64_t i = 0; i < outputs.n; i++)
        if (grd_needs_grad(outputs.data[i]))
            return true;
    return false;
}

/* ---- Numeric ------------------------------------------------------------------------------------------------------------------------ */
/* Calls the function and writes the elements of the compared outputs to ret_parts. If `differentiable`, only the outputs that require gradients are
 * compared. False, with the error raised, on failure. */
static bool evaluate(const struct check *check, bool differentiable, double *ret_parts)
{
    int64_t mark = grd_pool_mark(), done = 0;
    grd_tensors outputs = check->function(check->inputs.data, (int)check->inputs.n, check->context);
    for (int64_t i = 0; !grd_pending() && i < outputs.n; i++) {
        grd_tensor *t = outputs.data[i];
        if (!is_output(t, differentiable))
            continue;
        int64_t n = t->numel * parts_of(t);
        if (done + n > check->rows)
            grd_raise(GRD_ERROR_RUNTIME, "the function does not always return outputs of the same sizes");
        else
            read_parts(t, ret_parts + done);
        done += n;
    }
    grd_pool_release(mark);
    return !grd_pending();
}

/* Computes one column of the Jacobian by central differences, with the input component *part changed by -eps and by +eps. If `differentiable`,
 * outputs that require no gradient have no rows. ret_column and `scratch` have room for check->rows numbers. False, with the error raised, on
 * failure. */
static bool numeric_column(const struct check *check, bool differentiable, double *part, double *ret_column, double *scratch)
{
    const double eps = check->options.eps, old = *part;
    *part = old - eps;
    bool ok = evaluate(check, differentiable, scratch);
    *part = old + eps;
    ok = ok && evaluate(check, differentiable, ret_column);
    *part = old;
    for (int64_t i = 0; ok && i < check->rows; i++)
        ret_column[i] = (ret_column[i] - scratch[i]) / (2 * eps);
    return ok;
}

/* Computes the Jacobian check->numeric, column by column, by central differences. If `differentiable`, its rows cover only the outputs that
 * require gradients. False, with the error raised, on failure. */
static bool numeric_jacobian(const struct check *check, bool differentiable)
{
    int64_t column = 0;
    double *scratch = check->numeric + check->rows * check->columns;
    for (int64_t i = 0; i < check->inputs.n; i++) {
        grd_tensor *t = check->inputs.data[i];
        for (int64_t k = 0; grd_needs_grad(t) && k < t->numel * parts_of(t); k++, column++) {
            double *part = (double *)(void *)element(t, k / parts_of(t)) + k % parts_of(t);
            if (!numeric_column(check, differentiable, part, check->numeric + column * check->rows, scratch))
                return false;
        }
    }
    return true;
}

/* ---- Analytic --------------------------------------------------------------------------------------------------------------------------- */
static bool close_enough(const struct check *check, double analytic, double numeric)
{
    if (analytic == numeric || (isnan(analytic) && isnan(numeric)))
        return true;
    return fabs(analytic - numeric) <= check->options.atol + check->options.rtol * fabs(numeric);
}

/* Raises the error for an element of the Jacobian at which analytic and numeric gradient differ. Returns false. */
static bool differs(int64_t output, int64_t row, int64_t input, int64_t k, int parts, double analytic, double numeric)
{
    const char *part = parts == 2 ? (k % 2 ? " (imaginary part)" : " (real part)") : "";
    return grd_raise(
        GRD_ERROR_RUNTIME,
        "Jacobian mismatch for output %lld (part %lld) with respect to input %lld, element %lld%s: numerical %.10g, analytical %.10g",
        (long long)output, (long long)row, (long long)input, (long long)(k / parts), part, numeric, analytic);
}

/* Compares row `row` of the Jacobian check->numeric with `grads`, the gradients of component number `part` of output number `output` with respect to
 * the inputs. (A complex element has two components, its real and its imaginary part.) `output` and `part` are only used in the error text. False,
 * with the error raised, if the row and the gradients differ or on failure. */
static bool compare_row(const struct check *check, grd_tensor *const *grads, int64_t output, int64_t part, int64_t row)
{
    int64_t column = 0, used = 0;
    for (int64_t i = 0; i < check->inputs.n; i++) {
        grd_tensor *t = check->inputs.data[i];
        if (!grd_needs_grad(t))
            continue;
        grd_tensor *grad = grads[used++];
        int64_t n = t->numel * parts_of(t);
        double *values = grd_pool_alloc((size_t)(n + 1) * sizeof *values);
        if (values == NULL)
            return false;
        memset(values, 0, (size_t)n * sizeof *values);
        if (grad != NULL)
            read_parts(grad, values);
        for (int64_t k = 0; !grd_pending() && k < n; k++, column++) {
            double numeric = check->numeric[column * check->rows + row];
            if (!close_enough(check, values[k], numeric))
                return differs(output, part, i, k, parts_of(t), values[k], numeric);
        }
    }
    return !grd_pending();
}

/* Computes the gradients of real component `part` of an output with a backward pass, and compares them with row `row` of the Jacobian. `number`
 * is the index of the output. False, with the error raised, if they differ or on failure. */
static bool analytic_row(const struct check *check, grd_tensor *output, int64_t number, int64_t part, int64_t row)
{
    int64_t mark = grd_pool_mark(), n = 0;
    grd_tensor *seed = grd_zero_(grd_new(grd_sizes(output), (grd_dtype)output->dtype, GRD_CPU));
    grd_tensor **wanted = grd_pool_alloc(2 * (size_t)check->inputs.n * sizeof *wanted);
    bool ok = !grd_pending();
    if (ok) {
        ((double *)seed->data)[part] = 1;
        seed = grd_to(seed, .device = grd_device_of(output));
        for (int64_t i = 0; i < check->inputs.n; i++)
            if (grd_needs_grad(check->inputs.data[i]))
                wanted[n++] = check->inputs.data[i];
        grd_tensor **grads = wanted + check->inputs.n;
        const grd_backward_options options = {.grad_outputs = {1, &seed}, .retain_graph = true, .allow_unused = true};
        ok = grd_grad((grd_tensors){1, &output}, (grd_tensors){n, wanted}, &options, grads) && compare_row(check, grads, number, part, row);
    }
    grd_pool_release(mark);
    return ok;
}

/* Compares all rows of the Jacobian with the gradients that backward passes compute. False, with the error raised, if they differ or on failure. */
static bool compare_all(const struct check *check, grd_tensors outputs)
{
    int64_t row = 0;
    for (int64_t i = 0; i < outputs.n; i++) {
        grd_tensor *t = outputs.data[i];
        if (!is_output(t, true))
            continue;
        if (t->dtype != GRD_FLOAT64 && t->dtype != GRD_COMPLEX128)
            return grd_raise(GRD_ERROR_VALUE, "output %lld has dtype %s; gradcheck needs float64 or complex128", (long long)i,
                             grd_dtype_name((grd_dtype)t->dtype));
        for (int64_t part = 0; part < t->numel * parts_of(t); part++, row++)
            if (!analytic_row(check, t, i, part, row))
                return false;
    }
    return true;
}

/* ---- Forward ------------------------------------------------------------------------------------------------------------------------------ */
/* Raises the error for an element of the Jacobian at which forward mode and central differences do not agree. Returns false. */
static bool tangent_differs(int64_t output, int64_t part, int64_t input, double analytic, double numeric)
{
    return grd_raise(GRD_ERROR_RUNTIME,
                     "Jacobian computed with forward mode mismatch for output %lld (part %lld) with respect to input %lld: numerical "
                     "%.10g, analytical %.10g",
                     (long long)output, (long long)part, (long long)input, numeric, analytic);
}

/* Compares the tangents of the outputs with `column`, the column of the Jacobian for one component of input number `input`. If `differentiable`,
 * only the outputs that require gradients are compared. False, with the error raised, if they differ. */
static bool compare_tangents(const struct check *check, grd_tensors outputs, bool differentiable, int64_t input, const double *column)
{
    int64_t row = 0;
    for (int64_t i = 0; i < outputs.n; i++) {
        grd_tensor *t = outputs.data[i];
        if (!is_output(t, differentiable))
            continue;
        const int64_t n = t->numel * parts_of(t);
        double *values = grd_pool_alloc((size_t)(n + 1) * sizeof *values);
        grd_tensor *tangent = grd_tangent(t);
        if (grd_pending())
            return false;
        memset(values, 0, (size_t)n * sizeof *values);
        if (tangent != NULL)
            read_parts(tangent, values);
        for (int64_t part = 0; !grd_pending() && part < n && row < check->rows; part++, row++)
            if (!close_enough(check, values[part], column[row]))
                return tangent_differs(i, part, input, values[part], column[row]);
    }
    return !grd_pending() &&
           (row == check->rows || grd_raise(GRD_ERROR_RUNTIME, "the function returns different outputs for dual tensors"));
}

/* Compares `column`, a column of the Jacobian, with forward mode. Runs the function with input number `input` as a dual tensor, whose tangent is 1
 * at real component `part` and 0 elsewhere. If `differentiable`, only outputs that require gradients are compared. False, with the error raised,
 * if the tangents differ or on failure. */
static bool check_column(const struct check *check, bool differentiable, int64_t input, int64_t part, const double *column)
{
    const int64_t mark = grd_pool_mark(), n = check->inputs.n;
    grd_tensor *t = check->inputs.data[input], **inputs = grd_pool_alloc((size_t)n * sizeof *inputs);
    grd_tensor *tangent = grd_zero_(grd_new(grd_sizes(t), (grd_dtype)t->dtype, GRD_CPU));
    bool ok = !grd_pending() && grd_enter_dual_level();
    if (ok) {
        ((double *)(void *)tangent->data)[part] = 1;
        memcpy(inputs, check->inputs.data, (size_t)n * sizeof *inputs);
        inputs[input] = grd_make_dual(t, tangent);
        const grd_tensors outputs = grd_pending() ? (grd_tensors){0} : check->function(inputs, (int)n, check->context);
        ok = !grd_pending() && compare_tangents(check, outputs, differentiable, input, column);
        grd_pool_release(mark);
        grd_exit_dual_level();
    }
    grd_pool_release(mark);
    return ok;
}

/* Compares all columns of the Jacobian with the tangents that forward mode computes. If `differentiable`, only the outputs that require gradients
 * are compared. False, with the error raised, if they differ or on failure. */
static bool compare_forward(const struct check *check, bool differentiable)
{
    int64_t column = 0;
    for (int64_t i = 0; i < check->inputs.n; i++) {
        const grd_tensor *t = check->inputs.data[i];
        for (int64_t part = 0; grd_needs_grad(t) && part < t->numel * parts_of(t); part++, column++)
            if (!check_column(check, differentiable, i, part, check->numeric + column * check->rows))
                return false;
    }
    return true;
}

/* True if the Jacobian check->numeric (by central differences) is zero, as it must be if no output requires a gradient. False, with the error
 * raised, otherwise. */
static bool expect_zero(const struct check *check)
{
    for (int64_t i = 0; i < check->rows * check->columns; i++)
        if (!close_enough(check, 0, check->numeric[i]))
            return grd_raise(GRD_ERROR_RUNTIME, "Numerical gradient for function expected to be zero");
    return true;
}

/* ---- The checks ------------------------------------------------------------------------------------------------------------------------------ */
/* Checks that the inputs have a valid dtype and device and that their elements do not share memory. Also sets check->columns. False, with the
 * error raised, on failure. */
static bool check_inputs(struct check *check)
{
    bool any = false;
    for (int64_t i = 0; i < check->inputs.n; i++) {
        const grd_tensor *t = check->inputs.data[i];
        if (!grd_needs_grad(t))
            continue;
        any = true;
        if (t->dtype != GRD_FLOAT64 && t->dtype != GRD_COMPLEX128)
            return grd_raise(GRD_ERROR_VALUE, "input %lld requires gradient and has dtype %s; gradcheck needs float64 or complex128",
                             (long long)i, grd_dtype_name((grd_dtype)t->dtype));
        if (t->device != GRD_DEVICE_CPU)
            return grd_raise(GRD_ERROR_VALUE, "input %lld is not a cpu tensor", (long long)i);
        if (grd_shape_may_overlap(grd_dims_from(t->sizes, t->ndim), t->strides))
            return grd_raise(GRD_ERROR_RUNTIME,
                             "input %lld has elements that share memory; gradcheck only supports inputs that are non-overlapping",
                             (long long)i);
        check->columns += t->numel * parts_of(t);
    }
    return any || grd_raise(GRD_ERROR_VALUE,
                            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.");
}

/* Checks first derivatives: compares the gradients of the user's function with central differences. The arguments have been checked. False, with
 * the error raised, if a gradient is wrong or on failure. */
static bool run_check(struct check *check)
{
    if (!check_inputs(check))
        return false;
    const grd_tensors returned = check->function(check->inputs.data, (int)check->inputs.n, check->context);
    grd_tensor **list = grd_pool_alloc((size_t)(returned.n + 1) * sizeof *list);
    if (grd_pending())
        return false;
    /* Copy the list, since the function may return the same array from its next call. */
    if (returned.n > 0)
        memcpy(list, returned.data, (size_t)returned.n * sizeof *list);
    const grd_tensors outputs = {returned.n, list};
    bool differentiable = any_requires(outputs);
    for (int64_t i = 0; i < outputs.n; i++)
        if (is_output(outputs.data[i], differentiable))
            check->rows += outputs.data[i]->numel * parts_of(outputs.data[i]);
    size_t size = (size_t)(check->rows * (check->columns + 1)) * sizeof(double);
    check->numeric = grd_alloc_zeroed(size);
    if (check->numeric == NULL)
        return false;
    bool ok = numeric_jacobian(check, differentiable) && (differentiable ? compare_all(check, outputs) : expect_zero(check));
    ok = ok && (!check->options.forward || compare_forward(check, differentiable));
    grd_free(check->numeric, size);
    return ok;
}

static bool check_call(grd_function *function, grd_tensors inputs, const char *name)
{
    if (grd_pending())
        return false;
    if (function == NULL)
        return grd_raise_null_pointer(name, "function");
    if (inputs.n > 0 && !grd_given_pointer(inputs.data, name, "inputs"))
        return false;
    for (int64_t i = 0; i < inputs.n; i++) {
        if (inputs.data[i] == NULL)
            return grd_raise(GRD_ERROR_TYPE, "%s: entry %lld of argument 'inputs' must be a tensor, not NULL", name, (long long)i);
        if (!grd_given(inputs.data[i], name, "inputs"))
            return false;
    }
    return true;
}

/* Checks the arguments, turns grad mode on and calls `run`, which makes the comparison. Returns the result of `run`, or false, with the error raised,
 * if an argument is invalid. `name` is the name of the public function, for error texts. */
static bool checked(struct check *check, const char *name, bool (*run)(struct check *check))
{
    if (!check_call(check->function, check->inputs, name))
        return false;
    const int64_t mark = grd_pool_mark();
    const bool enabled = grd_set_grad_enabled(true);
    const bool ok = run(check);
    grd_set_grad_enabled(enabled);
    grd_pool_release(mark);
    return ok;
}

/* If *value is 0, sets *value to `otherwise`. */
static void or_default(double *value, double otherwise)
{
    if (*value == 0)
        *value = otherwise;
}

bool grd_gradcheck(grd_function *function, grd_tensors inputs, void *context, const grd_gradcheck_options *options)
{
    struct check check = {
        .function = function, .context = context, .inputs = inputs, .options = options != NULL ? *options : (grd_gradcheck_options){0}};
    or_default(&check.options.eps, 1e-6);
    or_default(&check.options.atol, 1e-5);
    or_default(&check.options.rtol, 1e-3);
    return checked(&check, "grd_gradcheck", run_check);
}

/* ---- Second order ---------------------------------------------------------------------------------------------------------------------------- */
/* The function that grd_gradgradcheck checks: returns the gradients of the user's function. `inputs` are the inputs of the user's function, followed
 * by the gradients of its outputs. `context` is the struct check with the user's function. */
static grd_tensors gradients(grd_tensor *const *inputs, int n, void *context)
{
    const struct check *second = context;
    const int ninputs = (int)second->inputs.n;
    grd_tensors outputs = second->function(inputs, ninputs, second->context);
    grd_tensor **lists = grd_pool_alloc((size_t)(outputs.n + 2 * ninputs + 1) * sizeof *lists);
    if (grd_pending())
        return (grd_tensors){0};
    grd_tensor **used = lists, **wanted = lists + outputs.n, **grads = wanted + ninputs;
    int64_t nused = 0, nwanted = 0, ngrads = 0;
    for (int64_t i = 0; i < outputs.n; i++)
        if (grd_needs_grad(outputs.data[i]) && nused < n - ninputs)
            used[nused++] = outputs.data[i];
    for (int i = 0; i < ninputs; i++)
        if (grd_needs_grad(inputs[i]))
            wanted[nwanted++] = inputs[i];
    const grd_backward_options options = {.grad_outputs = {nused, inputs + ninputs}, .create_graph = true, .allow_unused = true};
    if (!grd_grad((grd_tensors){nused, used}, (grd_tensors){nwanted, wanted}, &options, grads))
        return (grd_tensors){0};
    for (int64_t i = 0; i < nwanted; i++)
        if (grads[i] != NULL)
            grads[ngrads++] = grads[i];
    return (grd_tensors){ngrads, grads};
}

/* Fills `t` with pseudo-random numbers from [-1, 1), which are the same in every run. The generator is linear congruential, with Knuth's constants
 * for MMIX. */
static void fill_seed(grd_tensor *t, uint64_t *state)
{
    double *parts = (double *)t->data;
    for (int64_t i = 0; i < t->numel * parts_of(t); i++) {
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        parts[i] = (double)(int64_t)(*state >> 11) / (double)((int64_t)1 << 52) - 1;
    }
}

/* Checks second derivatives. Draws random gradients for the outputs of the user's function, second->function. Then runs the first-order check on the
 * function `gradients`, which computes a backward pass from these random gradients. The arguments have been checked. False, with the error raised,
 * if the check fails. */
static bool run_second(struct check *second)
{
    const grd_tensors inputs = second->inputs;
    grd_tensors outputs = second->function(inputs.data, (int)inputs.n, second->context);
    grd_tensor **all = grd_pool_alloc((size_t)(inputs.n + outputs.n + 1) * sizeof *all);
    if (grd_pending())
        return false;
    uint64_t state = 1;
    int64_t n = inputs.n;
    memcpy(all, inputs.data, (size_t)inputs.n * sizeof *all);
    for (int64_t i = 0; i < outputs.n; i++) {
        grd_tensor *t = outputs.data[i];
        if (!grd_needs_grad(t))
            continue;
        if (t->device != GRD_DEVICE_CPU)
            return grd_raise(GRD_ERROR_VALUE, "output %lld is not a cpu tensor", (long long)i);
        grd_tensor *seed = grd_new(grd_sizes(t), (grd_dtype)t->dtype, grd_device_of(t));
        if (grd_pending())
            return false;
        if (t->dtype != GRD_FLOAT64 && t->dtype != GRD_COMPLEX128)
            return grd_raise(GRD_ERROR_VALUE, "output %lld has dtype %s; gradgradcheck needs float64 or complex128", (long long)i,
                             grd_dtype_name((grd_dtype)t->dtype));
        fill_seed(seed, &state);
        all[n++] = grd_set_requires_grad(seed, true);
    }
    if (n == inputs.n)
        return true;
    return grd_gradcheck(gradients, (grd_tensors){n, all}, second, &second->options);
}

bool grd_gradgradcheck(grd_function *function, grd_tensors inputs, void *context, const grd_gradcheck_options *options)
{
    struct check second = {
        .function = function, .context = context, .inputs = inputs, .options = options != NULL ? *options : (grd_gradcheck_options){0}};
    return checked(&second, "grd_gradgradcheck", run_second);
}
