/* Tests every operator of the schema under vmap, on the samples of its schema entry. Each sample runs with every subset of its tensors batched,
 * along the first and along the last dimension. The expected results come from a loop over the elements of the batch. The
 * functional form, the in-place form and the float64 gradients are tested. `test_batch tanh` tests one operator. */
#include "call.h"
#include "dispatch/op.h"

enum { BATCH = 3 };

/* Says which tensors of a call have a batch dimension, and where that dimension is. */
struct choice {
    unsigned batched; /* bit i is set if tensor i has a batch dimension; i counts all tensors of the call, also those in lists */
    bool last;        /* the batch dimension is the last one, not the first */
};

static const struct test_case *current;
static char where[256];

static const char *describe(const struct choice *choice, grd_dtype dtype)
{
    snprintf(where, sizeof where, "%s(%s) dtype=%s batched=%x dim=%s; reproduce: test_batch %s", current->op, current->text,
             grd_dtype_name(dtype), choice->batched, choice->last ? "-1" : "0", current->op);
    return where;
}

/* ---- Elements of the batch ------------------------------------------------------------------------------------------------- */

/* Returns the tensor at index b of the batch made from `t`. It has the elements of `t` in another order, so it is a valid argument
 * wherever `t` is one. */
static grd_tensor *element(grd_tensor *t, int b)
{
    grd_tensor *flat = grd_reshape(t, grd_dims(-1));
    if (grd_numel(t) == 0 || b == 0)
        return t;
    return grd_reshape(b == 1 ? grd_flip(flat, grd_dims(0)) : grd_roll(flat, grd_dims(1)), grd_sizes(t));
}

static grd_tensor *stacked(grd_tensor *t, bool last)
{
    grd_tensor *elements[BATCH];
    for (int b = 0; b < BATCH; b++)
        elements[b] = element(t, b);
    return grd_stack(grd_tensors_from(elements, BATCH), .dim = last ? -1 : 0);
}

/* A callback of change_tensors. It returns the replacement for `t`. Among all tensors in the arguments of a call, `t` is number i. */
typedef grd_tensor *changer(grd_tensor *t, int i, void *context);

static int change_tensors(struct call *call, changer *change, void *context)
{
    int n = 0;
    for (int i = 0; i < call->test->n; i++) {
        if (call->args[i].kind == GRD_KIND_TENSOR && call->args[i].v.tensor != NULL) {
            call->args[i].v.tensor = change(call->args[i].v.tensor, n, context);
            n++;
        }
        if (call->args[i].kind != GRD_KIND_TENSORS)
            continue;
        call->args[i].v.tensors.data = call->lists[i];
        for (int64_t k = 0; k < call->args[i].v.tensors.n; k++, n++)
            call->lists[i][k] = change(call->lists[i][k], n, context);
    }
    return n;
}

static grd_tensor *same(grd_tensor *t, int i, void *context)
{
    (void)i;
    (void)context;
    return t;
}

struct sources {
    const struct choice *choice;
    grd_tensor *tensors[MAX_TENSORS]; /* the tensors of the call, with a batch dimension where `choice` asks for one */
    const struct call *gradients;     /* if not NULL, the call whose differentiable tensors shall require gradients */
    int b;
};

static grd_tensor *stack_source(grd_tensor *t, int i, void *context)
{
    struct sources *s = context;
    const bool batched = s->choice->batched >> i & 1;
    grd_tensor *source = batched ? stacked(t, s->choice->last) : t;
    for (int k = 0; s->gradients != NULL && k < s->gradients->ndifferentiable; k++)
        if (s->gradients->differentiable[k] == t && is_differentiable(t))
            source = grd_set_requires_grad(grd_detach(source), true);
    s->tensors[i] = source;
    return source;
}

/* Returns element s->b of tensor i, or tensor i itself if it is not batched. as_strided and similar operators count from the start of the
 * storage. Therefore an element along the first dimension is cloned, so that its storage begins with its own first element. */
static grd_tensor *take_element(grd_tensor *t, int i, void *context)
{
    const struct sources *s = context;
    (void)t;
    if ((s->choice->batched >> i & 1) == 0)
        return s->tensors[i];
    return s->choice->last ? grd_select(s->tensors[i], -1, s->b) : grd_clone(grd_select(s->tensors[i], 0, s->b));
}

/* True if the operator takes a storage offset, as as_strided does. Its result depends on how the elements of its operand are stored. */
static bool reads_strides(const grd_op *op)
{
    for (int i = 0; i < grd_op_arg_count(op); i++)
        if (strcmp(grd_op_arg_name(op, i), "storage_offset") == 0)
            return true;
    return false;
}

static grd_tensor *wrap_source(grd_tensor *t, int i, void *context)
{
    const struct sources *s = context;
    (void)t;
    return s->choice->batched >> i & 1 ? grd_batch(s->tensors[i], s->choice->last ? -1 : 0) : s->tensors[i];
}

/* ---- Comparing ---------------------------------------------------------------------------------------------------------------- */

static void check_close(grd_tensor *got, grd_tensor *wanted, const char *what, const struct choice *choice, grd_dtype dtype)
{
    static double a[MAX_VALUES], b[MAX_VALUES];
    const grd_dims x = grd_sizes(got), y = grd_sizes(wanted);
    if (x.n != y.n || memcmp(x.data, y.data, (size_t)x.n * sizeof *x.data) != 0 || grd_tensor_dtype(got) != grd_tensor_dtype(wanted))
        fail_msg("%s: shape or dtype differs (%lld and %lld dimensions, %s and %s) in %s", what, (long long)x.n, (long long)y.n,
                 grd_dtype_name(grd_tensor_dtype(got)), grd_dtype_name(grd_tensor_dtype(wanted)), describe(choice, dtype));
    const bool is_complex = grd_dtype_is_complex(grd_tensor_dtype(got));
    const int64_t n = grd_numel(got) * (is_complex ? 2 : 1);
    assert_true(n <= MAX_VALUES);
    grd_to_memory(got, a, is_complex ? GRD_COMPLEX128 : GRD_FLOAT64);
    grd_to_memory(wanted, b, is_complex ? GRD_COMPLEX128 : GRD_FLOAT64);
    double scale = 1;
    for (int64_t i = 0; i < n; i++)
        scale = isfinite(b[i]) ? fmax(scale, fabs(b[i])) : scale;
    const double eps = grd_tensor_dtype(got) == GRD_FLOAT32 ? 1.2e-7 : 2.3e-16;
    for (int64_t i = 0; i < n; i++)
        if (!(a[i] == b[i] || (isnan(a[i]) && isnan(b[i])) || fabs(a[i] - b[i]) <= 4 * test_tolerance(current) * eps * scale))
            fail_msg("%s: element %lld is %.17g, not %.17g, in %s", what, (long long)i, a[i], b[i], describe(choice, dtype));
}

/* ---- Calls under a batch level ------------------------------------------------------------------------------------------------- */

static bool run_batched(const struct call *base, struct sources *s, struct results *ret_results)
{
    struct call call = *base;
    assert_true(grd_batch_begin(BATCH, GRD_RANDOMNESS_ERROR));
    change_tensors(&call, wrap_source, s);
    bool ok = grd_ok() && run(&call, ret_results);
    for (int i = 0; ok && i < ret_results->n; i++)
        ret_results->tensors[i] = grd_unbatch(ret_results->tensors[i], 0);
    grd_batch_end();
    return ok && grd_ok();
}

/* Returns `total` plus a sum of the elements of t, each multiplied by a different weight. `total` may be NULL. If t requires no gradient, returns
 * only `total`. */
static grd_tensor *weigh(grd_tensor *total, grd_tensor *t)
{
    if (!is_differentiable(t) || !grd_requires_grad(t))
        return total;
    grd_tensor *flat = grd_reshape(t, grd_dims(-1));
    grd_tensor *weights =
        grd_add(grd_to(grd_arange(grd_int(0), .end = grd_int(grd_numel(t)), .dtype = GRD_FLOAT64), .dtype = grd_tensor_dtype(t)),
                grd_number(grd_int(1)));
    grd_tensor *sum = grd_sum(grd_mul(flat, weights));
    if (grd_dtype_is_complex(grd_tensor_dtype(sum)))
        sum = grd_add(grd_real(sum), grd_imag(sum));
    return total == NULL ? sum : grd_add(total, sum);
}

static void check_gradients(const struct sources *s, int ntensors, grd_tensor *got, grd_tensor *wanted, grd_dtype dtype)
{
    grd_tensor *a[MAX_TENSORS], *b[MAX_TENSORS], *inputs[MAX_TENSORS];
    int n = 0;
    for (int i = 0; i < ntensors; i++)
        if (grd_requires_grad(s->tensors[i]))
            inputs[n++] = s->tensors[i];
    const grd_backward_options options = {.allow_unused = true};
    if (n == 0)
        return;
    if ((got == NULL) != (wanted == NULL))
        fail_msg("%s, in %s", got == NULL ? "has no gradient" : "has a gradient", describe(s->choice, dtype));
    if (got == NULL)
        return;
    if (!grd_grad(grd_tensors(wanted), grd_tensors_from(inputs, n), &options, b))
        fail_msg("gradients of the loop: %s in %s", grd_error_message(), describe(s->choice, dtype));
    if (!grd_grad(grd_tensors(got), grd_tensors_from(inputs, n), &options, a))
        fail_msg("gradients: %s in %s", grd_error_message(), describe(s->choice, dtype));
    for (int i = 0; i < n; i++) {
        grd_tensor *zeros = grd_zeros_like(inputs[i]);
        check_close(a[i] != NULL ? a[i] : zeros, b[i] != NULL ? b[i] : zeros, "gradient", s->choice, dtype);
    }
}

/* True if the pending error is the one that the sample expects under vmap, or the one for writing a batch in place into a tensor that is not
 * batched. */
static bool is_expected(const struct test_case *test)
{
    const char *text = grd_error_message();
    return (test->batch != NULL && strstr(text, test->batch) != NULL) || strstr(text, "is not possible because there exists") != NULL;
}

static void check_choice(const struct call *base, const struct choice *choice, const struct setting *setting, bool gradients)
{
    struct sources s = {.choice = choice, .gradients = gradients ? base : NULL};
    struct call call = *base, one;
    struct results got, wanted[BATCH];
    const int ntensors = change_tensors(&call, stack_source, &s);
    bool ok = grd_ok();
    for (s.b = 0; ok && s.b < BATCH; s.b++) {
        one = *base;
        change_tensors(&one, take_element, &s);
        ok = run(&one, &wanted[s.b]);
    }
    char refusal[256] = "";
    if (!ok)
        snprintf(refusal, sizeof refusal, "%s", grd_error_message());
    grd_error_clear();
    const bool ran = run_batched(base, &s, &got);
    if (!ok && ran)
        fail_msg("runs, and the loop says %s, in %s", refusal, describe(choice, setting->dtype));
    if (!ok) {
        grd_error_clear();
        return;
    }
    if (!ran && is_expected(base->test)) {
        grd_error_clear();
        return;
    }
    if (!ran)
        fail_msg("%s in %s", grd_error_message(), describe(choice, setting->dtype));
    grd_tensor *total = NULL, *loop_total = NULL;
    assert_int_equal(got.n, wanted[0].n);
    for (int i = 0; i < got.n; i++) {
        grd_tensor *elements[BATCH];
        for (int b = 0; b < BATCH; b++)
            elements[b] = wanted[b].tensors[i];
        grd_tensor *all = grd_stack(grd_tensors_from(elements, BATCH));
        if (!grd_ok())
            fail_msg("the loop: %s in %s", grd_error_message(), describe(choice, setting->dtype));
        check_close(got.tensors[i], all, "result", choice, setting->dtype);
        total = weigh(total, got.tensors[i]);
        loop_total = weigh(loop_total, all);
    }
    if (gradients)
        check_gradients(&s, ntensors, total, loop_total, setting->dtype);
}

/* Returns a batch of BATCH gradients of the shape of `t`. All their elements are different. */
static grd_tensor *directions(grd_tensor *t)
{
    grd_tensor *all = grd_stack(grd_tensors(t, t, t)),
               *numbers = grd_cos(grd_arange(grd_int(0), .end = grd_int(grd_numel(all)), .dtype = GRD_FLOAT64));
    return grd_to(grd_reshape(numbers, grd_sizes(all)), .dtype = grd_tensor_dtype(t));
}

/* Checks the gradients of a graph that is recorded outside of vmap and gets a batch of output gradients, which is how Jacobians are computed. */
static void check_batch_of_gradients(const struct call *base, const struct setting *setting)
{
    static const struct choice none = {0};
    struct sources s = {.choice = &none, .gradients = base};
    struct call call = *base;
    struct results results;
    grd_tensor *outputs[MAX_RESULTS], *given[MAX_RESULTS], *inputs[MAX_TENSORS], *grads[MAX_TENSORS], *elements[MAX_TENSORS][BATCH];
    int noutputs = 0, ninputs = 0;
    const int ntensors = change_tensors(&call, stack_source, &s);
    if (!has_form(call.op, GRD_FUNCTIONAL) || !run(&call, &results)) {
        grd_error_clear();
        return;
    }
    for (int i = 0; i < results.n; i++)
        if (is_differentiable(results.tensors[i]) && grd_requires_grad(results.tensors[i])) {
            outputs[noutputs] = results.tensors[i];
            given[noutputs++] = directions(results.tensors[i]);
        }
    for (int i = 0; i < ntensors; i++)
        if (grd_requires_grad(s.tensors[i]))
            inputs[ninputs++] = s.tensors[i];
    if (noutputs == 0 || ninputs == 0)
        return;
    for (int b = 0; b < BATCH; b++) {
        grd_tensor *one[MAX_RESULTS];
        for (int i = 0; i < noutputs; i++)
            one[i] = grd_select(given[i], 0, b);
        const grd_backward_options options = {.grad_outputs = grd_tensors_from(one, noutputs), .retain_graph = true, .allow_unused = true};
        if (!grd_grad(grd_tensors_from(outputs, noutputs), grd_tensors_from(inputs, ninputs), &options, grads))
            fail_msg("one gradient: %s in %s", grd_error_message(), describe(&none, setting->dtype));
        for (int i = 0; i < ninputs; i++)
            elements[i][b] = grads[i] != NULL ? grads[i] : grd_zeros_like(inputs[i]);
    }
    assert_true(grd_batch_begin(BATCH, GRD_RANDOMNESS_ERROR));
    for (int i = 0; i < noutputs; i++)
        given[i] = grd_batch(given[i], 0);
    const grd_backward_options options = {.grad_outputs = grd_tensors_from(given, noutputs), .retain_graph = true, .allow_unused = true};
    if (!grd_grad(grd_tensors_from(outputs, noutputs), grd_tensors_from(inputs, ninputs), &options, grads))
        fail_msg("a batch of gradients: %s in %s", grd_error_message(), describe(&none, setting->dtype));
    for (int i = 0; i < ninputs; i++)
        grads[i] = grd_unbatch(grads[i] != NULL ? grads[i] : grd_zeros_like(inputs[i]), 0);
    grd_batch_end();
    for (int i = 0; i < ninputs; i++)
        check_close(grads[i], grd_stack(grd_tensors_from(elements[i], BATCH)), "a batch of gradients", &none, setting->dtype);
}

/* Checks that the in-place form gives the result of the functional form if the first tensor is batched, and is refused otherwise. */
static void check_in_place(const struct call *base, const struct choice *choice, const struct setting *setting)
{
    struct sources s = {.choice = choice};
    struct call call = *base;
    struct results functional;
    grd_value result;
    if (!has_form(call.op, GRD_INPLACE) || !has_form(call.op, GRD_FUNCTIONAL) || call.args[0].kind != GRD_KIND_TENSOR)
        return;
    change_tensors(&call, stack_source, &s);
    call = *base;
    assert_true(grd_batch_begin(BATCH, GRD_RANDOMNESS_ERROR));
    change_tensors(&call, wrap_source, &s);
    if (!run(&call, &functional)) { /* the functional form is refused; check_choice has checked the error */
        grd_batch_end();
        grd_error_clear();
        return;
    }
    grd_tensor *self = call.args[0].v.tensor, *written = grd_clone(self);
    call.args[0].v.tensor = written;
    const bool fits = grd_dtype_name(grd_tensor_dtype(functional.tensors[0])) == grd_dtype_name(grd_tensor_dtype(written)) &&
                      grd_numel(functional.tensors[0]) == grd_numel(written) && grd_ndim(functional.tensors[0]) == grd_ndim(written);
    const bool done = grd_call(call.op, GRD_INPLACE, call.args, call.test->n, NULL, &result);
    if ((choice->batched & 1) == 0) {
        if (done || (fits && strstr(grd_error_message(), "is not possible because there exists") == NULL))
            fail_msg("in place over what is not batched: %s in %s", done ? "done" : grd_error_message(), describe(choice, setting->dtype));
    } else if (!done && fits) {
        fail_msg("in place: %s in %s", grd_error_message(), describe(choice, setting->dtype));
    } else if (done) {
        assert_ptr_equal(result.v.tensor, written);
        if (fits)
            check_close(grd_unbatch(written, 0), grd_unbatch(functional.tensors[0], 0), "in place", choice, setting->dtype);
    }
    grd_batch_end();
    grd_error_clear();
}

/* ---- One operator ------------------------------------------------------------------------------------------------------------------ */

static void check_sample(const struct test_case *test, grd_dtype dtype, bool gradients)
{
    const struct setting setting = {.dtype = dtype, .values_as = dtype};
    struct call call;
    struct results results;
    current = test;
    make_call(&call, test, &setting);
    if (!run(&call, &results)) { /* the operator has no kernel for the dtype */
        grd_error_clear();
        return;
    }
    struct call counted = call;
    const int n = change_tensors(&counted, same, NULL);
    if (n == 0)
        return;
    if (gradients)
        check_batch_of_gradients(&call, &setting);
    for (unsigned batched = 1; batched < 1u << (n < 4 ? n : 4); batched++)
        for (int last = 0; last < (reads_strides(call.op) ? 1 : 2) && ((batched & 1) != 0 || has_form(call.op, GRD_FUNCTIONAL)); last++) {
            const grd_scope scope = grd_scope_open();
            const struct choice choice = {batched, last};
            check_choice(&call, &choice, &setting, gradients && last == 0);
            check_in_place(&call, &choice, &setting);
            grd_scope_close(scope);
        }
}

static void test_operator(void **state)
{
    const struct test_cases *cases = *state;
    grd_batch_end();
    const grd_op *op = grd_op_find(cases->cases->op);
    if (op->batch == GRD_BATCH_REFUSE || op->batch == GRD_BATCH_RANDOM || cases->cases->skip != NULL)
        return;
    for (int i = 0; i < cases->n; i++) {
        const struct test_case *test = &cases->cases[i];
        const grd_scope scope = grd_scope_open();
        if (!test->complex_only)
            check_sample(test, GRD_FLOAT64, !test->no_gradient);
        check_sample(test, GRD_COMPLEX128, false);
        if (!test->complex_only) {
            check_sample(test, GRD_INT64, false);
            check_sample(test, GRD_FLOAT32, false);
        }
        grd_scope_close(scope);
    }
}

/* True if vmap refuses batches for at most one operator in forty. Most refusals are necessary, because the sizes of the results would differ
 * between the elements of the batch. */
static bool few_refuse(void)
{
    int operators = 0, refusing = 0;
    for (const struct test_case *test = test_cases; test->op != NULL; test++)
        if (test == test_cases || strcmp(test->op, test[-1].op) != 0) {
            operators++;
            refusing += test->batch != NULL;
        }
    if (refusing * 40 > operators)
        fprintf(stderr, "%d of %d operators refuse some batches\n", refusing, operators);
    return refusing * 40 <= operators;
}

int main(int argc, char **argv)
{
    if (!few_refuse())
        return 1;
    return run_matrix(test_operator, argc, argv);
}
