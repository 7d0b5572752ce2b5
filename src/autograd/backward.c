/* Implements the public functions that compute gradients, such as grd_backward and grd_grad. They check the outputs, inputs and gradients that the
 * caller passes, and set up a backward pass, which engine.c runs.
 * Invariant: struct request owns the nodes of the outputs and inputs of a pass, and each node owns the nodes that its edges lead to. So the whole
 * graph stays alive during the pass. */
#include "autograd/edge.h"
#include "autograd/gradient.h"
#include "autograd/pass.h"
#include "autograd/pool.h"
#include "autograd/variable.h"
#include "base/stack.h"
#include "base/text.h"
#include "core/dtype.h"
#include "core/given.h"
#include "core/new.h"
#include "core/scalar.h"
#include "core/tensor.h"
#include "gen/uses/autograd/backward.h"

#include <string.h>

/* ---- From outputs to a pass -------------------------------------------------------------------------------------------------------------------- */
/* A request for gradients: the outputs, inputs and options of one backward pass. */
struct request {
    struct grd_edge *roots; /* one edge per output, which leads to the output's node and owns the node */
    grd_tensor **grads;     /* the gradients of the outputs, with which the pass starts; owned by the innermost grd_scope */
    int32_t *entries;       /* for each output, the index of its node in pass->entries */
    int64_t nroots;
    struct grd_edge *inputs; /* one edge per input, which leads to the input's node and owns the node */
    int64_t ninputs;
    struct grd_capture *captures; /* one per input of grd_grad; each says which gradient the pass has to return for the input */
    bool retain, create;
    bool accumulate;      /* also run the nodes of the inputs, so that the gradients of the inputs are added to their .grad */
    bool unhooked_inputs; /* tensor hooks are not called at the nodes of the inputs */
};

/* Adds the nodes of request->inputs to the pass, and makes the pass store the gradients of the inputs in the array `captured`. False, with
 * MemoryError, on failure. */
static bool enter_captures(struct grd_pass *pass, const struct request *request, grd_tensor **captured)
{
    struct grd_capture *captures = pass->captures = request->captures;
    pass->captured = captured;
    for (int64_t i = 0; i < request->ninputs; i++) {
        int32_t index = grd_pass_enter(pass, request->inputs[i].node);
        if (index == GRD_NO_ENTRY)
            return false;
        captures[i] = (struct grd_capture){request->inputs[i].output, pass->entries[index].capture, i};
        pass->entries[index].capture = (int32_t)i;
        pass->entries[index].needed |= request->accumulate;
    }
    return true;
}

/* Adds to the pass the nodes of all outputs and all nodes that can be reached from them along edges. Sets request->entries[i] to the
 * index of the node of output i in pass->entries. False, with MemoryError, on failure. */
GRD_INLINE bool discover_all(struct grd_pass *pass, const struct request *request)
{
    for (int64_t i = 0; i < request->nroots; i++) {
        int32_t index = grd_pass_enter(pass, request->roots[i].node);
        request->entries[i] = index;
        if (index == GRD_NO_ENTRY || (pass->entries[index].from == index && !grd_pass_discover(pass, index)))
            return false;
    }
    return true;
}

/* Gives each output's gradient to the output's node, as the first gradient that arrives there. Skips the gradients that the pass does not use.
 * False, with the error raised, on failure. */
GRD_INLINE bool seed(struct grd_pass *pass, const struct request *request, int64_t mark)
{
    for (int64_t i = 0; i < request->nroots; i++) {
        struct grd_entry *entry = &pass->entries[request->entries[i]];
        if ((request->nroots == 1 || grd_entry_wanted(entry)) &&
            !grd_pass_give(pass, entry, request->roots[i].output, grd_pool_take(request->grads[i], mark)))
            return false;
    }
    return true;
}

/* Runs the backward pass that `request` describes. Writes the gradients of the inputs to `captured`, whose ninputs elements are NULL
 * before the call. The caller owns these gradients, also after a failure. False, with the error raised, on failure. Before the nodes run, frees the
 * temporaries that were created since this thread's stack of temporaries had the height `mark`. Afterwards only the engine owns the gradients of
 * the outputs, so it may write into them. */
GRD_INLINE bool execute(const struct request *request, grd_tensor **captured, int64_t mark)
{
    struct grd_pass pass;
    grd_pass_init(&pass, request->retain, request->create);
    pass.unhooked_inputs = request->unhooked_inputs;
    bool ok = (captured == NULL || enter_captures(&pass, request, captured)) && discover_all(&pass, request) && seed(&pass, request, mark);
    grd_pool_release_above(mark);
    ok = ok && grd_pass_run(&pass, request->entries, request->nroots);
    grd_pass_done(&pass, ok);
    return ok;
}

/* ---- Outputs and their gradients --------------------------------------------------------------------------------------------------------- */
/* Returns the gradient of an output for which the caller gave none: a tensor of the output's shape with the single element 1. NULL, with
 * RuntimeError, if the output is complex or has several elements. */
static grd_tensor *implicit_gradient(grd_tensor *output)
{
    if (output->numel != 1) {
        grd_raise(GRD_ERROR_RUNTIME, "grad can be implicitly created only for scalar outputs");
        return NULL;
    }
    if (grd_dtype_table[output->dtype].category == GRD_CATEGORY_COMPLEX) {
        grd_raise(GRD_ERROR_RUNTIME, "grad can be implicitly created only for real scalar outputs but got %s",
                  grd_dtype_name(output->dtype));
        return NULL;
    }
    grd_tensor *one = grd_new(grd_dims_from(output->sizes, output->ndim), (grd_dtype)output->dtype, grd_device_of(output));
    if (grd_pending())
        return NULL;
    if (output->device != GRD_DEVICE_CPU)
        return grd_fill_(one, grd_int(1));
    if (GRD_LIKELY(output->dtype == GRD_FLOAT32)) {
        *(float *)one->data = 1;
        return one;
    }
    return grd_scalar_write(grd_int(1), (grd_dtype)output->dtype, one->data) ? one : NULL;
}

static bool check_output_gradient(const grd_tensor *output, const grd_tensor *grad, int64_t i)
{
    char ours[256], theirs[256];
    if (grad->ndim != output->ndim || memcmp(grad->sizes, output->sizes, output->ndim * sizeof(int64_t)) != 0)
        return grd_raise(GRD_ERROR_RUNTIME, "Mismatch in shape: grad_output[%lld] has a shape of %s and output[%lld] has a shape of %s.",
                         (long long)i, grd_format_int64s(theirs, sizeof theirs, grad->sizes, grad->ndim), (long long)i,
                         grd_format_int64s(ours, sizeof ours, output->sizes, output->ndim));
    if (grd_dtype_is_complex(grad->dtype) != grd_dtype_is_complex(output->dtype))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
                         "grad_output[%lld] has a dtype of %s and output[%lld] has a dtype of %s.",
                         (long long)i, grd_dtype_name(grad->dtype), (long long)i, grd_dtype_name(output->dtype));
    return true;
}

/* Checks output number i and its gradient, which may be NULL, and stores them as element i of the request's arrays. False, with the error raised,
 * on failure. */
GRD_INLINE bool set_root(const struct request *request, int64_t i, grd_tensor *output, grd_tensor *grad)
{
    if (!grd_needs_grad(output))
        return grd_raise(GRD_ERROR_RUNTIME, "element %lld of tensors does not require grad and does not have a grad_fn", (long long)i);
    if (grad == NULL)
        grad = implicit_gradient(output);
    else if (!check_output_gradient(output, grad, i))
        return false;
    struct grd_edge *edge = &request->roots[i];
    if (grd_pending() || !grd_edge_of(output, edge))
        return false;
    request->grads[i] = grd_fit_gradient(&edge->node->outputs[edge->output], grad, "of an output", i);
    return request->grads[i] != NULL;
}

/* Checks all outputs and their gradients, and stores them in the request's arrays. False, with the error raised, on failure. */
GRD_INLINE bool set_roots(const struct request *request, grd_tensors outputs, const grd_backward_options *options)
{
    const grd_tensors given = options != NULL ? options->grad_outputs : (grd_tensors){0};
    if (given.data != NULL && given.n != outputs.n)
        return grd_raise(GRD_ERROR_RUNTIME, "got %lld tensors and %lld gradients", (long long)outputs.n, (long long)given.n);
    for (int64_t i = 0; i < outputs.n; i++) {
        if (outputs.data == NULL || outputs.data[i] == NULL)
            return grd_raise(GRD_ERROR_TYPE, "output %lld must be a tensor, not NULL", (long long)i);
        if (!grd_given(outputs.data[i], "grd_backward", "outputs") ||
            (given.data != NULL && !grd_given_or_null(given.data[i], "grd_backward", "grad_outputs")))
            return false;
        if (!set_root(request, i, outputs.data[i], given.data != NULL ? given.data[i] : NULL))
            return false;
    }
    return true;
}

/* Checks all inputs and stores their edges in request->inputs. False, with the error raised, on failure. */
static bool set_inputs(const struct request *request, grd_tensors inputs)
{
    for (int64_t i = 0; i < inputs.n; i++) {
        if (inputs.data == NULL || inputs.data[i] == NULL)
            return grd_raise(GRD_ERROR_TYPE, "input %lld must be a tensor, not NULL", (long long)i);
        if (!grd_given(inputs.data[i], "grd_grad", "inputs"))
            return false;
        if (!grd_needs_grad(inputs.data[i]))
            return grd_raise(GRD_ERROR_RUNTIME, "One of the differentiated Tensors does not require grad");
        if (!grd_edge_of(inputs.data[i], &request->inputs[i]))
            return false;
    }
    return true;
}

/* Memory for the arrays that struct request points to. If there is one output and no input, which is the most frequent case, the
 * members root, grad and entry are these arrays and nothing is allocated. */
struct arrays {
    struct grd_edge root;
    grd_tensor *grad;
    int32_t entry;
    char *block; /* one allocated block for all arrays; NULL if the arrays are the members above */
    size_t size; /* size of the block in bytes */
};

/* Points the array members of `request` to the members of `arrays` if there is one output and no input, otherwise into one allocated block. False,
 * with MemoryError, on failure. */
GRD_INLINE bool allocate(struct request *request, struct arrays *arrays)
{
    arrays->block = NULL;
    if (GRD_LIKELY(request->nroots == 1 && request->ninputs == 0)) {
        arrays->root = (struct grd_edge){NULL, 0};
        request->roots = &arrays->root;
        request->grads = &arrays->grad;
        request->entries = &arrays->entry;
        return true;
    }
    const size_t roots = (size_t)request->nroots, inputs = (size_t)request->ninputs;
    arrays->size = roots * (sizeof(struct grd_edge) + sizeof(grd_tensor *) + sizeof(int32_t)) +
                   inputs * (sizeof(struct grd_edge) + sizeof(struct grd_capture));
    arrays->block = grd_alloc_zeroed(arrays->size);
    if (arrays->block == NULL)
        return false;
    request->roots = (struct grd_edge *)arrays->block;
    request->inputs = request->roots + roots;
    request->grads = (grd_tensor **)(request->inputs + inputs);
    request->captures = (struct grd_capture *)(request->grads + roots);
    request->entries = (int32_t *)(request->captures + inputs);
    return true;
}

/* Checks the arguments and runs a backward pass. Writes the gradients of the inputs to `captured`, owned by the caller. If `accumulate` is true,
 * also adds these gradients to the .grad of the inputs. If `captured` is NULL, adds the gradients of all leaves to their .grad. False, with the
 * error raised, on failure. */
GRD_INLINE bool run_request(grd_tensors outputs, grd_tensors inputs, const grd_backward_options *options, bool accumulate,
                            grd_tensor **captured)
{
    struct request request = {.nroots = outputs.n, .ninputs = inputs.n, .accumulate = accumulate};
    struct arrays arrays;
    if (options != NULL) {
        request.retain = options->retain_graph;
        request.create = options->create_graph;
        request.unhooked_inputs = options->unhooked_inputs;
    }
    if (!allocate(&request, &arrays))
        return false;
    const int64_t mark = grd_pool_mark();
    bool ok = set_roots(&request, outputs, options) && set_inputs(&request, inputs) && execute(&request, captured, mark);
    grd_pool_release_above(mark);
    for (int64_t i = 0; i < outputs.n; i++)
        grd_node_drop(request.roots[i].node);
    for (int64_t i = 0; i < inputs.n; i++)
        grd_node_drop(request.inputs[i].node);
    if (arrays.block != NULL)
        grd_free(arrays.block, arrays.size);
    return ok;
}

/* Checks the arguments and runs a backward pass, for any number of outputs. False, with the error raised, on failure. Not inlined, so
 * that `differentiate` contains only one copy of run_request. */
static __attribute__((noinline)) bool differentiate_any(grd_tensors outputs, grd_tensors inputs, const grd_backward_options *options,
                                                        bool accumulate, grd_tensor **captured)
{
    return run_request(outputs, inputs, options, accumulate, captured);
}

/* Checks that the stack has room, checks the arguments and runs a backward pass. Most programs differentiate one output with respect to all
 * leaves. For this case run_request is inlined with constant arguments, so that the compiler removes the loops over outputs and inputs. False,
 * with the error raised, on failure. */
static bool differentiate(grd_tensors outputs, grd_tensors inputs, const grd_backward_options *options, bool accumulate,
                          grd_tensor **captured)
{
    if (!grd_stack_has_room("backward"))
        return false;
    if (GRD_UNLIKELY(outputs.n != 1 || captured != NULL))
        return differentiate_any(outputs, inputs, options, accumulate, captured);
    return run_request((grd_tensors){1, outputs.data}, (grd_tensors){0}, options, false, NULL);
}

/* Runs backward(inputs=...), which adds gradients only to the .grad of `inputs`. Calls retain_grad() for each input first, because an input that
 * is not a leaf gets no .grad otherwise. */
static void accumulate_into(grd_tensors outputs, grd_tensors inputs, const grd_backward_options *options)
{
    for (int64_t i = 0; i < inputs.n; i++)
        if (grd_given(inputs.data[i], "grd_backward_all", "inputs") && grd_needs_grad(inputs.data[i]))
            grd_retain_grad(inputs.data[i]);
    const size_t size = (size_t)inputs.n * sizeof(grd_tensor *);
    grd_tensor **captured = grd_pending() ? NULL : grd_alloc_zeroed(size);
    if (captured == NULL)
        return;
    differentiate(outputs, inputs, options, true, captured);
    for (int64_t i = 0; i < inputs.n; i++)
        grd_object_drop(captured[i]);
    grd_free(captured, size);
}

void grd_backward_all(grd_tensors outputs, const grd_backward_options *options)
{
    if (grd_pending())
        return;
    if (options == NULL || options->inputs.data == NULL)
        differentiate(outputs, (grd_tensors){0}, options, false, NULL);
    else if (options->inputs.n == 0)
        grd_raise(GRD_ERROR_RUNTIME, "`inputs` argument to `backward()` cannot be empty.");
    else
        accumulate_into(outputs, options->inputs, options);
}

void grd_backward(grd_tensor *tensor)
{
    if (!grd_pending())
        differentiate((grd_tensors){1, &tensor}, (grd_tensors){0}, NULL, false, NULL);
}

/* True if none of the n gradients is NULL. False, with RuntimeError raised, otherwise. A gradient is NULL if its input was not used in the graph. */
static bool check_used(grd_tensor *const *grads, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (grads[i] == NULL)
            return grd_raise(
                GRD_ERROR_RUNTIME,
                "The differentiated Tensor at index %lld appears to not have been used in the graph. Set allow_unused=True if this "
                "is the desired behavior.",
                (long long)i);
    return true;
}

bool grd_grad(grd_tensors outputs, grd_tensors inputs, const grd_backward_options *options, grd_tensor **ret_grads)
{
    if (inputs.n > 0 && !grd_given_pointer(ret_grads, "grd_grad", "ret_grads"))
        return false;
    bool ok = !grd_pending();
    for (int64_t i = 0; i < inputs.n; i++)
        ret_grads[i] = NULL;
    ok = ok && differentiate(outputs, inputs, options, false, ret_grads);
    ok = ok && ((options != NULL && options->allow_unused) || check_used(ret_grads, inputs.n));
    for (int64_t i = 0; i < inputs.n; i++) {
        if (ret_grads[i] != NULL)
            ok &= grd_pool_push(ret_grads[i]);
    }
    for (int64_t i = 0; !ok && i < inputs.n; i++)
        ret_grads[i] = grd_failed;
    return ok;
}

/* ---- Running one node ------------------------------------------------------------------------------------------------------------- */
/* Converts `grads` to the shape, dtype and device of the node's outputs and writes them to ret_owned; the caller owns them. Returns false if all
 * are NULL or, with the error raised, on failure. */
static bool take_gradients(const struct grd_node *node, grd_tensor *const *grads, grd_tensor **ret_owned)
{
    bool any = false;
    for (uint32_t i = 0; i < node->noutputs; i++) {
        grd_tensor *grad = grads[i];
        if (grad != NULL && (grad = grd_fit_gradient(&node->outputs[i], grad, node->name, i)) == NULL)
            return false;
        ret_owned[i] = grad != NULL ? grd_object_keep(grad) : NULL;
        any |= grad != NULL;
    }
    return any;
}

/* Returns the value of grd_run.needs that requests the gradients of all edges of the node: bit i is set if edge i leads to a node. Edges from 63
 * on share bit 63. */
static uint64_t edges_of(const struct grd_node *node)
{
    uint64_t needs = 0;
    for (uint32_t i = 0; i < node->nedges; i++)
        needs |= (uint64_t)(node->edges[i].node != NULL) << (i < 63 ? i : 63);
    return needs;
}

/* Runs one node outside of a pass: computes the gradients of its edges from `grads`, the gradients of its outputs, and writes them to ret_grads.
 * The node keeps its saved values. False, with the error raised, on failure. */
static bool run_alone(struct grd_node *node, grd_tensor *const *grads, grd_tensor **ret_grads)
{
    const size_t size = node->noutputs * sizeof(grd_tensor *);
    grd_tensor **owned = grd_alloc_zeroed(size);
    if (owned == NULL)
        return false;
    if (take_gradients(node, grads, owned))
        node->class->run(node, &(struct grd_run){owned, ret_grads, edges_of(node), true});
    for (uint32_t i = 0; i < node->noutputs; i++)
        grd_object_drop(owned[i]);
    grd_free(owned, size);
    return !grd_pending();
}

bool grd_node_run(grd_node *node, grd_tensor *const *grads, int n, grd_tensor **ret_grads)
{
    static const char name[] = "grd_node_run";
    if (grd_pending() || !grd_given_pointer(node, name, "node") || (n > 0 && !grd_given_pointer(grads, name, "grads")) ||
        (node->nedges > 0 && !grd_given_pointer(ret_grads, name, "ret_grads")))
        return false;
    if (n < 0 || (uint32_t)n != node->noutputs)
        return grd_raise(GRD_ERROR_TYPE, "expected %u arguments, got %d instead", node->noutputs, n);
    for (uint32_t i = 0; i < node->nedges; i++)
        ret_grads[i] = NULL;
    for (int i = 0; i < n; i++)
        if (!grd_given_or_null(grads[i], name, "grads"))
            return false;
    const bool ok = run_alone(node, grads, ret_grads);
    for (uint32_t i = 0; i < node->nedges; i++) {
        const struct grd_edge *edge = &node->edges[i];
        if (!ok || edge->node == NULL)
            ret_grads[i] = NULL;
        else if (ret_grads[i] != NULL)
            ret_grads[i] = grd_fit_gradient(&edge->node->outputs[edge->output], ret_grads[i], node->name, i);
    }
    if (!grd_pending())
        return true;
    grd_error_add_context(node->name);
    for (uint32_t i = 0; i < node->nedges; i++)
        ret_grads[i] = NULL;
    return false;
}
