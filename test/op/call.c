/* Makes the arguments of calls for the tests of all operators (matrix.c), and runs the calls. call.h describes the functions. */
#include "call.h"

static const char *const layout_names[] = {"contiguous", "transposed", "with gaps", "negative strides"};

static const char *program = "test_matrix"; /* the program's name in the printed command that reproduces a failure */

const char *place(const struct test_case *test, const struct setting *s)
{
    static char text[512];
    snprintf(text, sizeof text, "%s(%s) dtype=%s %s; reproduce: %s %s", test->op, test->text, grd_dtype_name(s->dtype),
             layout_names[s->layout], program, test->op);
    return text;
}

/* ---- Values ---------------------------------------------------------------------------------------------------------- */

static uint64_t random_state;

static double next_uniform(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (double)(random_state >> 11) / 9007199254740992.0;
}

bool is_unsigned(grd_dtype dtype)
{
    return dtype == GRD_UINT8 || dtype == GRD_UINT16 || dtype == GRD_UINT32 || dtype == GRD_UINT64;
}

/* Converts x, a random number between lo and hi, to a value of `dtype`. A float is x itself. An integer is 2 * x rounded, without its sign if the
 * dtype is unsigned. A bool is true if x lies above the middle of the range. */
static double quantise(double x, double lo, double hi, grd_dtype dtype)
{
    if (dtype == GRD_BOOL)
        return x > (lo + hi) / 2;
    if (!grd_dtype_is_integer(dtype))
        return x;
    x = floor(x * 2 + 0.5);
    return is_unsigned(dtype) ? fabs(x) : x;
}

grd_tensor *with_layout(grd_tensor *t, enum layout layout)
{
    const int64_t ndim = grd_ndim(t);
    if (layout == CONTIGUOUS || ndim == 0)
        return t;
    int64_t order[8];
    for (int64_t d = 0; d < ndim; d++)
        order[d] = ndim - 1 - d;
    if (layout == TRANSPOSED)
        return grd_permute(grd_contiguous(grd_permute(t, grd_dims_from(order, ndim))), grd_dims_from(order, ndim));
    if (layout == NEGATIVE) {
        grd_tensor *reversed = grd_flip(t, grd_dims_from(order, ndim));
        for (int64_t d = 0; d < ndim; d++)
            reversed = grd_slice(reversed, .dim = d, .step = -1);
        return reversed;
    }
    int64_t strides[8], step = 2;
    for (int64_t d = ndim - 1; d >= 0; d--) {
        strides[d] = step;
        step *= grd_size(t, d) * 2 + 1;
    }
    grd_tensor *wide =
        grd_empty_strided(grd_sizes(t), grd_dims_from(strides, ndim), .dtype = grd_tensor_dtype(t), .device = grd_tensor_device(t));
    return grd_copy_(wide, t);
}

static grd_tensor *make_tensor(const struct test_arg *arg, const struct setting *s)
{
    const grd_dims sizes = {arg->n, arg->shape};
    int64_t n = 1;
    for (int d = 0; d < arg->n; d++)
        n *= arg->shape[d];
    assert_true(2 * n <= MAX_VALUES);
    static double data[MAX_VALUES];
    const bool floats = arg->kind == TEST_FLOATS || arg->kind == TEST_CONSTANTS;
    const bool is_complex = floats && grd_dtype_is_complex(s->values_as);
    const int64_t parts = is_complex ? 2 : 1, columns = arg->n > 1 ? arg->shape[arg->n - 1] : 1,
                  rows = arg->n > 1 ? arg->shape[arg->n - 2] : 1;
    for (int64_t i = 0; i < n * parts; i++) {
        const double x = arg->lo + (arg->hi - arg->lo) * next_uniform();
        data[i] = floats ? quantise(x, arg->lo, arg->hi, s->values_as) : floor(x);
        if (i % parts == 0 && i / parts % columns == i / parts / columns % rows)
            data[i] += arg->diagonal;
    }
    grd_tensor *t = grd_from_data(data, sizes, is_complex ? GRD_COMPLEX128 : GRD_FLOAT64);
    if (floats)
        t = grd_to(grd_to(t, .dtype = s->values_as), .dtype = s->dtype);
    else
        t = grd_to(t, .dtype = arg->kind == TEST_BOOLEANS ? GRD_BOOL : GRD_INT64);
    if (s->device.type == GRD_DEVICE_META)
        return grd_empty_strided(grd_sizes(t), grd_strides(t), .dtype = grd_tensor_dtype(t), .device = GRD_META);
    t = with_layout(grd_to(t, .device = s->device), s->layout);
    if (s->requires_grad && arg->kind == TEST_FLOATS)
        t = grd_set_requires_grad(grd_detach(t), true);
    return t;
}

static void make_argument(struct call *call, int i, const struct setting *s)
{
    const struct test_arg *arg = &call->test->args[i];
    grd_value *value = &call->args[i];
    switch (arg->kind) {
    case TEST_ABSENT:
        *value = (grd_value){.kind = GRD_KIND_NONE};
        break;
    case TEST_FLOATS:
    case TEST_CONSTANTS:
    case TEST_INTEGERS:
    case TEST_BOOLEANS:
        *value = (grd_value){.kind = GRD_KIND_TENSOR, .v.tensor = make_tensor(arg, s)};
        if (arg->kind == TEST_FLOATS)
            call->differentiable[call->ndifferentiable++] = value->v.tensor;
        break;
    case TEST_LIST:
        for (int64_t k = 0; k < arg->n; k++) {
            call->lists[i][k] = make_tensor(&arg->items[k], s);
            if (arg->items[k].kind == TEST_FLOATS)
                call->differentiable[call->ndifferentiable++] = call->lists[i][k];
        }
        *value = (grd_value){.kind = GRD_KIND_TENSORS, .v.tensors = {arg->n, call->lists[i]}};
        break;
    case TEST_NUMBER:
        *value = (grd_value){.kind = GRD_KIND_SCALAR, .v.scalar = arg->number};
        break;
    case TEST_DIMS:
        *value = (grd_value){.kind = GRD_KIND_DIMS, .v.dims = {arg->n, arg->shape}};
        break;
    case TEST_STRING:
        *value = (grd_value){.kind = GRD_KIND_STRING, .v.string = arg->text};
        break;
    case TEST_DTYPE:
        *value = (grd_value){.kind = GRD_KIND_DTYPE, .v.dtype = (grd_dtype)arg->n};
        break;
    case TEST_DEVICE:
        *value = (grd_value){.kind = GRD_KIND_DEVICE, .v.device = {(uint8_t)arg->n, -1}};
        break;
    }
}

void make_call(struct call *call, const struct test_case *test, const struct setting *s)
{
    *call = (struct call){.test = test, .op = grd_op_find(test->op)};
    assert_non_null(call->op);
    random_state = 88172645463325252u;
    for (int i = 0; i < test->n; i++)
        make_argument(call, i, s);
    if (!grd_ok())
        fail_msg("making arguments of %s: %s", place(test, s), grd_error_message());
}

/* ---- Results --------------------------------------------------------------------------------------------------------- */

bool has_form(const grd_op *op, grd_form form)
{
    return grd_op_forms(op) >> form & 1;
}

bool run(const struct call *call, struct results *ret_results)
{
    grd_value values[MAX_RESULTS], args[MAX_ARGS];
    memcpy(args, call->args, sizeof args);
    const bool functional = has_form(call->op, GRD_FUNCTIONAL);
    if (!functional && args[0].kind == GRD_KIND_TENSOR)
        args[0].v.tensor = grd_clone(args[0].v.tensor);
    *ret_results = (struct results){0};
    if (!grd_call(call->op, functional ? GRD_FUNCTIONAL : GRD_INPLACE, args, call->test->n, NULL, values))
        return false;
    if (values[0].kind == GRD_KIND_TENSORS) {
        ret_results->n = values[0].v.tensors.n < MAX_RESULTS ? (int)values[0].v.tensors.n : MAX_RESULTS;
        for (int i = 0; i < ret_results->n; i++)
            ret_results->tensors[i] = values[0].v.tensors.data[i];
    } else {
        ret_results->n = grd_op_result_count(call->op);
        for (int i = 0; i < ret_results->n; i++)
            ret_results->tensors[i] = values[i].v.tensor;
    }
    return true;
}

/* ---- Derivatives ----------------------------------------------------------------------------------------------------------- */

bool is_differentiable(grd_tensor *t)
{
    return grd_dtype_is_floating(grd_tensor_dtype(t)) || grd_dtype_is_complex(grd_tensor_dtype(t));
}

grd_tensors as_function(grd_tensor *const *inputs, int n, void *context)
{
    static grd_tensor *outputs[MAX_RESULTS];
    struct call call = *(struct call *)context;
    struct results results;
    int used = 0;
    for (int i = 0; i < call.test->n; i++) {
        if (call.test->args[i].kind == TEST_FLOATS)
            call.args[i].v.tensor = inputs[used++];
        for (int64_t k = 0; call.test->args[i].kind == TEST_LIST && k < call.test->args[i].n; k++)
            if (call.test->args[i].items[k].kind == TEST_FLOATS)
                call.lists[i][k] = inputs[used++];
        if (call.test->args[i].kind == TEST_LIST)
            call.args[i].v.tensors.data = call.lists[i];
    }
    assert_int_equal(used, n);
    int count = 0;
    if (run(&call, &results))
        for (int i = 0; i < results.n; i++)
            if (is_differentiable(results.tensors[i]) && grd_requires_grad(results.tensors[i]))
                outputs[count++] = results.tensors[i];
    return (grd_tensors){count, outputs};
}

/* ---- One test per operator --------------------------------------------------------------------------------------------------- */

static int clean(void **state)
{
    (void)state;
    grd_error_clear();
    return 0;
}

static bool is_among(const char *name, int n, char **names)
{
    for (int i = 0; i < n; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

int run_matrix(void (*test_operator)(void **state), int argc, char **argv)
{
    program = argv[0];
    int ncases = 0, n = 0;
    while (test_cases[ncases].op != NULL)
        ncases++;
    struct test_cases *groups = calloc((size_t)ncases, sizeof *groups);
    struct CMUnitTest *tests = calloc((size_t)ncases, sizeof *tests);
    if (!groups || !tests)
        return 1;
    for (const struct test_case *test = test_cases; test->op != NULL; test++) {
        if (n == 0 || strcmp(test->op, groups[n - 1].cases->op) != 0)
            groups[n++].cases = test;
        groups[n - 1].n++;
    }
    const bool without = argc > 1 && strcmp(argv[1], "--without") == 0;
    const int first = without ? 2 : 1, names = argc - first;
    int chosen = 0, found = 0;
    for (int i = 0; i < n; i++) {
        const bool is_named = is_among(groups[i].cases->op, names, argv + first);
        found += is_named;
        if (names == 0 || is_named != without)
            tests[chosen++] = (struct CMUnitTest){groups[i].cases->op, test_operator, NULL, clean, &groups[i]};
    }
    const bool are_there = found == names;
    if (!are_there)
        fprintf(stderr, "of %d operators that are named there are %d\n", names, found);
    const int failed = !are_there ? 1 : _cmocka_run_group_tests(program, tests, (size_t)chosen, NULL, NULL);
    free(tests);
    free(groups);
    return failed;
}
