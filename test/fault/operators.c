/* Tests allocation failures in operators. Every operator is called in each of its forms (functional, in place, out=) and differentiated. Every
 * allocation in these calls fails in turn, once alone and once together with all later ones. Each failure must raise one MemoryError that names the
 * operator, and leak nothing. The inputs and the tensor to be written must be unchanged bit for bit. The same call must work once there is memory.
 * Each operator is one test, and `test_operators tanh` runs only the test of tanh. */
#include "call.h"

/* ---- Tensors that must not change ----------------------------------------------------------------------------------------------- */

enum { MAX_DIMS = 8, MAX_BYTES = 1 << 18 };

/* A copy of a tensor's sizes, strides, offset, version and elements, which is compared with the tensor after a failure. */
struct image {
    grd_tensor *tensor;
    int64_t ndim, sizes[MAX_DIMS], strides[MAX_DIMS], offset, version, nbytes;
    char *bytes;
};

static int64_t bytes_of(grd_tensor *t)
{
    return grd_numel(t) * grd_dtype_size(grd_tensor_dtype(t));
}

static struct image image_of(grd_tensor *t)
{
    const grd_dims sizes = grd_sizes(t), strides = grd_strides(t);
    struct image image = {.tensor = t, .ndim = sizes.n, .offset = grd_offset(t), .version = grd_tensor_version(t), .nbytes = bytes_of(t)};
    assert_true(sizes.n <= MAX_DIMS);
    memcpy(image.sizes, sizes.data, (size_t)sizes.n * sizeof *sizes.data);
    memcpy(image.strides, strides.data, (size_t)sizes.n * sizeof *strides.data);
    image.bytes = malloc((size_t)image.nbytes + 1);
    assert_non_null(image.bytes);
    grd_to_memory(t, image.bytes, grd_tensor_dtype(t));
    return image;
}

static bool is_as_before(const struct image *image)
{
    const struct image now = image_of(image->tensor);
    const bool same = now.ndim == image->ndim && memcmp(now.sizes, image->sizes, (size_t)now.ndim * sizeof *now.sizes) == 0 &&
                      memcmp(now.strides, image->strides, (size_t)now.ndim * sizeof *now.strides) == 0 && now.offset == image->offset &&
                      now.version == image->version && now.nbytes == image->nbytes &&
                      memcmp(now.bytes, image->bytes, (size_t)now.nbytes) == 0;
    free(now.bytes);
    return same;
}

/* Copies of the tensors among a call's arguments and of the tensor that the call writes. */
struct images {
    struct image list[MAX_ARGS + MAX_TENSORS + 1];
    int n;
};

static void add_image(struct images *images, grd_tensor *t)
{
    if (t != NULL)
        images->list[images->n++] = image_of(t);
}

static void take_images(struct images *images, const struct call *call, grd_tensor *written)
{
    images->n = 0;
    for (int i = 0; i < call->test->n; i++) {
        const grd_value *value = &call->args[i];
        if (value->kind == GRD_KIND_TENSOR)
            add_image(images, value->v.tensor);
        for (int64_t k = 0; value->kind == GRD_KIND_TENSORS && k < value->v.tensors.n; k++)
            add_image(images, value->v.tensors.data[k]);
    }
    add_image(images, written);
}

static void free_images(struct images *images)
{
    for (int i = 0; i < images->n; i++)
        free(images->list[i].bytes);
}

/* ---- Forms of a call --------------------------------------------------------------------------------------------------------------- */

enum way { FUNCTIONAL, INPLACE, OUT, OUT_RESIZED, BACKWARD, FORWARD, BATCHED, WAYS };
static const char *const way_names[] = {"functional", "in place", "out=", "out= of another shape", "backward", "forward", "batched"};

static bool has_way(const struct call *call, enum way way)
{
    switch (way) {
    case FUNCTIONAL:
    case BATCHED:
        return has_form(call->op, GRD_FUNCTIONAL);
    case INPLACE:
        return has_form(call->op, GRD_INPLACE) && call->args[0].kind == GRD_KIND_TENSOR;
    case BACKWARD:
    case FORWARD:
        return call->ndifferentiable > 0 && !call->test->no_gradient;
    default:
        return has_form(call->op, GRD_OUT);
    }
}

/* Returns a new tensor to which the call writes its result, in place or as out=. Returns NULL if the call makes its results itself. `model` holds
 * the results of the functional form. */
static grd_tensor *make_written(const struct call *call, enum way way, const struct results *model)
{
    if (way == INPLACE)
        return grd_clone(call->args[0].v.tensor);
    if (way == OUT)
        return grd_full(grd_sizes(model->tensors[0]), grd_int(1), .dtype = grd_tensor_dtype(model->tensors[0]));
    return way == OUT_RESIZED ? grd_full(grd_dims(3), grd_int(1), .dtype = grd_tensor_dtype(model->tensors[0])) : NULL;
}

static bool differentiate(struct call *call, struct results *ret_results)
{
    grd_tensor *seeds[MAX_RESULTS];
    const grd_tensors outputs = as_function(call->differentiable, call->ndifferentiable, call);
    for (int64_t i = 0; i < outputs.n; i++)
        seeds[i] = grd_ones_like(outputs.data[i]);
    const grd_backward_options options = {.grad_outputs = grd_tensors_from(seeds, outputs.n), .allow_unused = true};
    *ret_results = (struct results){.n = 0};
    if (!grd_ok() || outputs.n == 0)
        return grd_ok();
    grd_tensor *grads[MAX_TENSORS];
    if (!grd_grad(outputs, grd_tensors_from(call->differentiable, call->ndifferentiable), &options, grads))
        return false;
    for (int i = 0; i < call->ndifferentiable; i++)
        if (grads[i] != NULL)
            ret_results->tensors[ret_results->n++] = grads[i];
    return true;
}

/* Computes the tangents of the results for inputs whose tangents are all ones. Returns false, with the error pending, on failure. */
static bool run_dual(struct call *call, struct results *ret_results)
{
    grd_tensor *duals[MAX_TENSORS];
    *ret_results = (struct results){.n = 0};
    if (!grd_enter_dual_level())
        return false;
    for (int i = 0; i < call->ndifferentiable; i++)
        duals[i] = grd_make_dual(call->differentiable[i], grd_ones_like(call->differentiable[i]));
    const grd_tensors outputs = grd_ok() ? as_function(duals, call->ndifferentiable, call) : (grd_tensors){0};
    for (int64_t i = 0; i < outputs.n && grd_ok(); i++) {
        grd_tensor *tangent = grd_tangent(outputs.data[i]);
        if (tangent != NULL)
            ret_results->tensors[ret_results->n++] = tangent;
    }
    grd_exit_dual_level();
    return grd_ok();
}

static grd_tensor *batch_of(grd_tensor *t)
{
    return grd_batch(grd_stack(grd_tensors(t, t)), 0);
}

/* Runs the operator under vmap with a batch of size 2. Both elements of the batch have the same arguments. Writes the results, with the batch
 * dimension first, to *ret_results. Returns false if the call fails. */
static bool run_batched(const struct call *given, struct results *ret_results)
{
    struct call call = *given;
    if (!grd_batch_begin(2, GRD_RANDOMNESS_SAME))
        return false;
    for (int i = 0; i < call.test->n; i++) {
        grd_value *value = &call.args[i];
        if (value->kind == GRD_KIND_TENSOR && value->v.tensor != NULL)
            value->v.tensor = batch_of(value->v.tensor);
        for (int64_t k = 0; value->kind == GRD_KIND_TENSORS && k < value->v.tensors.n; k++)
            call.lists[i][k] = batch_of(call.lists[i][k]);
        if (value->kind == GRD_KIND_TENSORS)
            value->v.tensors.data = call.lists[i];
    }
    const bool ok = grd_ok() && run(&call, ret_results);
    for (int i = 0; ok && i < ret_results->n; i++)
        ret_results->tensors[i] = grd_unbatch(ret_results->tensors[i], 0);
    grd_batch_end();
    return ok && grd_ok();
}

static bool call_in_way(struct call *call, enum way way, grd_tensor *written, struct results *ret_results)
{
    grd_manual_seed(7);
    if (way == BACKWARD)
        return differentiate(call, ret_results);
    if (way == FORWARD)
        return run_dual(call, ret_results);
    if (way == BATCHED)
        return run_batched(call, ret_results);
    if (way == FUNCTIONAL)
        return run(call, ret_results);
    grd_value args[MAX_ARGS], result;
    memcpy(args, call->args, sizeof args);
    if (way == INPLACE)
        args[0].v.tensor = written;
    ret_results->n = 1;
    ret_results->tensors[0] = written;
    return grd_call(call->op, way == INPLACE ? GRD_INPLACE : GRD_OUT, args, call->test->n, way == INPLACE ? NULL : written, &result);
}

/* ---- Checking one operator ------------------------------------------------------------------------------------------------------------ */

struct attempt {
    const struct test_case *test;
    const struct setting *setting;
    enum way way;
    int n; /* the n-th allocation of the call fails; n begins at 1 */
    bool forever;
};

static void complain(const struct attempt *a, const char *what)
{
    fail_msg("allocation %d failed (%s, %s): %s: \"%s\"; in %s", a->n, way_names[a->way], a->forever ? "and all later ones" : "once", what,
             grd_error_message(), place(a->test, a->setting));
}

static void check_error(const struct attempt *a)
{
    const char *text = grd_error_message();
    if (grd_error_get() != GRD_ERROR_MEMORY || strstr(text, "cannot allocate") == NULL)
        complain(a, "not a MemoryError");
    const char *again = strstr(text, "cannot allocate");
    if (strstr(again + 1, "cannot allocate") != NULL)
        complain(a, "more than one error");
    const bool hidden = a->test->op[0] == '_';
    if (a->way < BACKWARD && !hidden && strncmp(text, a->test->op, strlen(a->test->op)) != 0)
        complain(a, "the operator is not named");
}

static void check_values(const struct attempt *a, const struct results *got, const struct results *wanted)
{
    if (got->n != wanted->n)
        complain(a, "other results afterwards");
    for (int i = 0; i < got->n && !a->test->skip; i++) {
        static char x[MAX_BYTES], y[MAX_BYTES];
        const int64_t nbytes = bytes_of(wanted->tensors[i]);
        if (bytes_of(got->tensors[i]) != nbytes || nbytes > MAX_BYTES)
            complain(a, "a result of another size afterwards");
        grd_to_memory(got->tensors[i], x, grd_tensor_dtype(got->tensors[i]));
        grd_to_memory(wanted->tensors[i], y, grd_tensor_dtype(wanted->tensors[i]));
        if (memcmp(x, y, (size_t)nbytes) != 0)
            complain(a, "another result afterwards");
    }
}

/* True for operators that update the tensors of a list one after the other, so that some are already written when an allocation fails. */
static bool writes_lists(const char *name)
{
    return (strncmp(name, "foreach_", 8) == 0 && strstr(name, "_inplace") != NULL) || strncmp(name, "amp_foreach_", 12) == 0 ||
           strcmp(name, "adafactor_step") == 0 || strcmp(name, "muon_step") == 0;
}

/* Runs the call with its a->n-th allocation failing, and checks the error, the tensors and the memory afterwards. Returns false if the call makes
 * fewer than a->n allocations. */
static bool check_failure(struct call *call, const struct attempt *a, const struct results *model, const struct results *wanted)
{
    const int64_t before = grd_memory_get_stats().blocks;
    const grd_scope scope = grd_scope_open();
    struct results results;
    grd_tensor *written = make_written(call, a->way, model);
    struct images images;
    take_images(&images, call, written);
    grd_memory_fail_at(a->n, a->forever);
    const bool done = call_in_way(call, a->way, written, &results);
    grd_memory_fail_at(0, false);
    if (!done) {
        check_error(a);
        grd_error_clear();
        const bool whole = !writes_lists(grd_op_name(call->op));
        for (int i = 0; i < images.n && whole; i++)
            if (!is_as_before(&images.list[i]))
                complain(a, images.list[i].tensor == written ? "the tensor to be written is changed" : "an input is changed");
        if (!call_in_way(call, a->way, written, &results))
            complain(a, "the next call fails");
        if (whole)
            check_values(a, &results, wanted);
    }
    free_images(&images);
    grd_scope_close(scope);
    if (grd_memory_get_stats().blocks != before)
        complain(a, "blocks are left behind");
    return !done;
}

/* True if a result has a grad_fn and can be differentiated. */
static bool is_recorded(const struct results *results)
{
    for (int i = 0; i < results->n; i++)
        if (grd_grad_fn(results->tensors[i]) != NULL)
            return true;
    return false;
}

/* Each of the first EACH allocations of a call fails in turn. Of the later ones only every STRIDE-th fails, because they repeat earlier
 * allocations, e.g. in each step of a recurrent network. */
enum { EACH = 100, STRIDE = 7 };

static void check_way(const struct test_case *test, const struct setting *s, enum way way)
{
    const grd_scope scope = grd_scope_open();
    struct call call;
    struct results model, wanted;
    make_call(&call, test, s);
    /* In this first call no allocation fails. It shows whether the call is refused for other reasons. It also makes the process allocate the
     * memory that it keeps, which must not count as a leak. */
    if (has_way(&call, way) && run(&call, &model) && (way < BACKWARD || way == BATCHED || is_recorded(&model)) &&
        call_in_way(&call, way, make_written(&call, way, &model), &wanted))
        for (int forever = 0; forever < 2; forever++)
            for (struct attempt a = {test, s, way, 1, forever}; check_failure(&call, &a, &model, &wanted);)
                a.n += a.n < EACH + forever ? 1 : STRIDE;
    grd_error_clear();
    grd_scope_close(scope);
}

static void test_operator(void **state)
{
    static const grd_dtype dtypes[] = {GRD_FLOAT32, GRD_BFLOAT16, GRD_COMPLEX128, GRD_INT16};
    const struct test_cases *cases = *state;
    for (int i = 0; i < cases->n; i++)
        for (int way = 0; way < WAYS; way++)
            for (int layout = CONTIGUOUS; layout <= (cases->cases[i].contiguous_only ? CONTIGUOUS : TRANSPOSED); layout++)
                for (int k = 0; k < (int)(sizeof dtypes / sizeof *dtypes); k++) {
                    const struct setting s = {dtypes[k], dtypes[k], (enum layout)layout, GRD_CPU,
                                              (way == BACKWARD || way == FORWARD) && !grd_dtype_is_integer(dtypes[k])};
                    check_way(&cases->cases[i], &s, (enum way)way);
                }
}

int main(int argc, char **argv)
{
    return run_matrix(test_operator, argc, argv);
}
