/* Fuzzes the library with random programs. A program makes a few tensors of any dtype, applies operators to them (views, in place, out=, indexing,
 * products, reductions), and computes gradients. The library and the reference tensors of reference.h do each step, and the results are compared.
 * After each step, accepted or refused, all tensors must have the expected elements. Some steps call any operator with any arguments. Their results
 * are not checked, but they must not crash, leak, or change tensors that they should only read. */
#include <math.h>

#include "core/iter.h"
#include "dispatch/op.h"
#include "reference.h"

enum { SLOTS = 5, LEAVES = 3, STEPS = 10, MEMORY_LIMIT = 8 << 20 };

struct slot {
    grd_tensor *t;
    struct reference p;
};

static struct slot slots[SLOTS];

/* The leaves that require gradients. Each element of a reference tensor stores its derivatives with respect to the first `tracked` elements of each
 * leaf. Its member d[first + k] is the derivative with respect to element k of the leaf. */
static struct {
    grd_tensor *t;
    int first, tracked;
} leaves[LEAVES];
static int nleaves, tracked;

static struct slot *take_slot(struct bytes *b)
{
    return &slots[take_below(b, SLOTS)];
}

/* ---- Errors ---------------------------------------------------------------------------------------------------------------------------- */

/* True if `text` is an error about gradients. The reference tensors do not model these errors, so they are accepted everywhere. */
static bool is_rule_of_gradients(const char *text)
{
    static const char *const rules[] = {"a leaf Variable that requires grad",
                                        "a view of a leaf Variable that requires grad",
                                        "has been modified by an inplace operation",
                                        "is a view and is being modified inplace",
                                        "is a view and its base or another view of its base has been modified inplace",
                                        "don't support automatic differentiation",
                                        "does not require grad"};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strstr(text, rules[i]) != NULL)
            return true;
    return false;
}

static bool has_no_kernel(const char *text)
{
    return grd_error_get() == GRD_ERROR_NOT_IMPLEMENTED || strstr(text, "not implemented for") != NULL ||
           strstr(text, "not supported") != NULL;
}

/* ---- Results ---------------------------------------------------------------------------------------------------------------------------- */

static bool is_known_dtype(grd_dtype dtype)
{
    return dtype >= GRD_BOOL && dtype <= GRD_COMPLEX128 && dtype != GRD_UINT16 && dtype != GRD_UINT32 && dtype != GRD_UINT64;
}

/* Stores t, a result that the reference cannot predict, in the slot `into` of the program's tensors. The slot gets a reference tensor with the
 * elements of t and unknown derivatives. Does nothing if t is large or shares memory with another slot. */
static void believe(struct slot *into, grd_tensor *t)
{
    const grd_dims sizes = grd_sizes(t);
    struct reference p;
    if (t == grd_failed || grd_has(t, GRD_FLAG_NUMBER) || grd_tensor_device(t).type != GRD_DEVICE_CPU ||
        !is_known_dtype(grd_tensor_dtype(t)))
        return;
    for (int i = 0; i < SLOTS; i++)
        if (grd_same_storage(slots[i].t, t))
            return;
    if (sizes.n > REFERENCE_DIMS || !reference_new(&p, grd_tensor_dtype(t), (int)sizes.n, sizes.data))
        return;
    const grd_dims strides = grd_strides(t);
    for (int64_t i = 0; i < sizes.n; i++) /* gives up if elements of t share memory, because those of `p` do not */
        if (sizes.data[i] > 1 && strides.data[i] == 0)
            return;
    p.memory->lost = true;
    reference_read(&p, t);
    *into = (struct slot){t, p};
}

static char last_call[256]; /* the tensor arguments of the last call, as indices of `slots`, for messages */

/* Records a call in last_call, and prints it if GRADUS_FUZZ_TRACE is set. */
static void note_call(const char *name, const grd_value *args, int n, const struct slot *written)
{
    size_t used = 0;
    last_call[0] = '\0';
    for (int i = 0; i < n; i++)
        for (int k = 0; k < SLOTS && args[i].kind == GRD_KIND_TENSOR; k++)
            if (slots[k].t == args[i].v.tensor)
                used += (size_t)snprintf(last_call + used, sizeof last_call - used, " %d", k);
    if (written != NULL)
        snprintf(last_call + used, sizeof last_call - used, ", written: %d", (int)(written - slots));
    if (getenv("GRADUS_FUZZ_TRACE") != NULL)
        fprintf(stderr, "%s of%s\n", name, last_call);
}

/* Prints all tensors and a message, and aborts. In the message, `what` is the name of the operator, and `how` says what is wrong. */
_Noreturn static void complain(const char *what, const char *how)
{
    for (int i = 0; i < SLOTS; i++) {
        const grd_dims strides = grd_strides(slots[i].t);
        fprintf(stderr, "tensor %d: %s, sizes [", i, grd_dtype_name(slots[i].p.dtype));
        for (int d = 0; d < slots[i].p.ndim; d++)
            fprintf(stderr, " %lld", (long long)slots[i].p.sizes[d]);
        fprintf(stderr, " ] strides [");
        for (int64_t d = 0; d < strides.n; d++)
            fprintf(stderr, " %lld", (long long)strides.data[d]);
        fprintf(stderr, " ] storage %p%s\n", (void *)slots[i].p.memory, grd_requires_grad(slots[i].t) ? " with gradient" : "");
    }
    fuzz_fail("%s: %s (\"%s\"); arguments:%s", what, how, grd_error_message(), last_call);
}

static void check_slots(const char *what)
{
    for (int i = 0; i < SLOTS; i++)
        if (!reference_equals(&slots[i].p, slots[i].t))
            complain(what, "a tensor is not what it should be");
}

/* Compares the result `got` or the pending error with `wanted` and `verdict` of the reference, and aborts on a difference. Stores the result in
 * `into`, one of the tensors of the fuzzed program. */
static void settle(struct slot *into, const char *what, enum verdict verdict, struct reference *wanted, grd_tensor *got, double ulps)
{
    note_call(what, NULL, 0, into);
    const bool ok = grd_ok();
    if (verdict == REFUSED && ok)
        complain(what, "accepted what it must refuse");
    if (verdict == VALID && !ok && !is_rule_of_gradients(grd_error_message()) && !has_no_kernel(grd_error_message()))
        complain(what, "refused");
    grd_error_clear();
    if (ok && verdict == VALID) {
        if (!reference_near(wanted, got, ulps, wanted->dtype))
            complain(what, "another result");
        reference_read(wanted, got);
        *into = (struct slot){got, *wanted};
    } else if (ok && verdict == UNSURE) {
        believe(into, got);
    }
    check_slots(what);
}

static bool can_hold(grd_dtype to, grd_dtype from)
{
    return grd_can_cast(from, to);
}

/* Updates the reference tensors after a call whose result the reference cannot predict. Each tensor that shares memory with `written` is copied to
 * its reference tensor. If the shape of such a tensor changed, the tensor and its reference tensor are replaced by zeros. */
static void refresh(const struct slot *written)
{
    const struct memory *memory = written->p.memory;
    for (int i = 0; i < SLOTS; i++) {
        struct slot *s = &slots[i];
        if (s->p.memory != memory)
            continue;
        const grd_dims sizes = grd_sizes(s->t);
        s->p.memory->lost = true;
        if (sizes.n == s->p.ndim && memcmp(sizes.data, s->p.sizes, (size_t)sizes.n * sizeof *sizes.data) == 0) {
            reference_read(&s->p, s->t);
            continue;
        }
        s->t = grd_zeros(grd_dims(2));
        if (!reference_new(&s->p, GRD_FLOAT32, 1, (const int64_t[]){2}))
            fuzz_fail("no room for a reference tensor");
    }
}

/* True if `message` says that the operator does not accept the dtype of its out= tensor. Some operators refuse even a dtype to which the result could
 * be cast. test_out_dtypes.py compares these errors with PyTorch's. */
static bool is_rule_of_out(const char *message)
{
    return strstr(message, "dtype") != NULL || strstr(message, "scalar type") != NULL || strstr(message, "Expected out type") != NULL ||
           strstr(message, "non-boolean") != NULL;
}

/* Calls an operator in a random form (functional, in place or out=) and checks the result against `wanted` and `verdict`, which hold for the
 * functional form. `self` is the first argument, or NULL if the in-place form is not tested. `inputs` are the reference tensors that the operator
 * reads. */
static void call_form(struct bytes *b, const char *name, const grd_value *args, int n, enum verdict verdict, struct reference *wanted,
                      struct slot *self, const struct reference *const *inputs, int ninputs, double ulps)
{
    const grd_op *op = grd_op_find(name);
    grd_form form = (grd_form)take_below(b, 6);
    if (form > GRD_OUT || !(grd_op_forms(op) >> form & 1))
        form = GRD_FUNCTIONAL;
    if (form == GRD_INPLACE && self == NULL)
        form = GRD_FUNCTIONAL;
    if (verdict == TOO_LARGE)
        return;
    grd_value result = {.kind = GRD_KIND_TENSOR, .v.tensor = grd_failed};
    if (form == GRD_FUNCTIONAL) {
        note_call(name, args, n, NULL);
        grd_call(op, form, args, n, NULL, &result);
        settle(take_slot(b), name, verdict, wanted, result.v.tensor, ulps);
        return;
    }
    struct slot *target = form == GRD_INPLACE ? self : take_slot(b);
    struct reference *p = &target->p;
    bool overlap = false,
         shared = false; /* true if the written tensor shares memory with an input; in this case the operator may refuse the call */
    if (verdict == VALID) {
        const bool same = wanted->ndim == p->ndim && memcmp(wanted->sizes, p->sizes, (size_t)p->ndim * sizeof *p->sizes) == 0;
        const bool elementwise = grd_op_forms(op) >> GRD_INPLACE & 1;
        if (wanted->dtype != p->dtype && (!elementwise || op->out_rule != NULL))
            /* operators that are not elementwise, or have an out_rule, have special rules for the dtype of the tensor that they write */
            verdict = UNSURE;
        else if (!can_hold(p->dtype, wanted->dtype) || (form == GRD_INPLACE && !same))
            verdict = REFUSED;
        else if (!same)
            verdict = UNSURE;
        else if (reference_overlaps_itself(p))
            verdict = REFUSED;
        for (int i = 0; i < ninputs && same; i++) {
            overlap |= reference_overlaps(p, inputs[i]);
            shared |= reference_shares(p, inputs[i]);
        }
        if (overlap && elementwise)
            verdict = REFUSED;
    }
    note_call(name, args, n, target);
    const bool ok = grd_call(op, form, args, n, form == GRD_OUT ? target->t : NULL, &result);
    if (verdict == REFUSED && ok)
        complain(name, form == GRD_OUT ? "out= accepted what it must refuse" : "in place accepted what it must refuse");
    const bool refused_for_overlap = shared && strstr(grd_error_message(), "memory location") != NULL;
    const bool refused_for_dtype = verdict == VALID && form == GRD_OUT && wanted->dtype != p->dtype && is_rule_of_out(grd_error_message());
    if (verdict == VALID && !ok && !refused_for_overlap && !refused_for_dtype && !is_rule_of_gradients(grd_error_message()) &&
        !has_no_kernel(grd_error_message()))
        complain(name, form == GRD_OUT ? "out= refused" : "in place refused");
    grd_error_clear();
    if (ok && verdict == VALID) {
        /* Compares the written tensor with the expected result first. The reference then takes over the values that the library wrote, so
         * check_slots below can only find wrong writes to other memory. */
        struct reference converted;
        if (reference_convert(wanted, p->dtype, &converted) != VALID)
            refresh(target);
        else if (!reference_near(&converted, target->t, ulps, wanted->dtype))
            complain(name, form == GRD_OUT ? "out= writes another result" : "in place writes another result");
        else {
            converted.memory->lost |= wanted->memory->lost;
            reference_write(p, &converted);
            reference_read(p, target->t);
        }
    } else if (ok) {
        refresh(target);
    }
    check_slots(name);
}

/* ---- Making tensors ------------------------------------------------------------------------------------------------------------------------- */

static grd_dtype take_dtype(struct bytes *b)
{
    static const grd_dtype dtypes[] = {GRD_FLOAT64, GRD_FLOAT32, GRD_INT64, GRD_BOOL,      GRD_FLOAT16,    GRD_BFLOAT16, GRD_UINT8,
                                       GRD_INT8,    GRD_INT32,   GRD_INT16, GRD_COMPLEX64, GRD_COMPLEX128, GRD_COMPLEX32};
    const int64_t choice = take_below(b, 24);
    return dtypes[choice < 13 ? choice : choice < 18 ? 0 : choice < 20 ? 1 : 2];
}

static double take_value(struct bytes *b)
{
    const int64_t choice = take_below(b, 64);
    return choice == 0   ? INFINITY
           : choice == 1 ? NAN
           : choice == 2 ? -0.0
           : choice == 3 ? 1e30
                         : (double)take_between(b, -12, 12) / 4 + (double)take_below(b, 7) / 64;
}

/* Makes a random tensor of up to three dimensions and its reference tensor, and stores both in `s`. A float64 tensor may be a leaf that requires a
 * gradient. */
static void make_slot(struct bytes *b, struct slot *s)
{
    int64_t sizes[REFERENCE_DIMS];
    double values[2 * REFERENCE_CELLS];
    const int ndim = (int)take_below(b, 4);
    const grd_dtype dtype = take_dtype(b);
    for (int i = 0; i < ndim; i++)
        sizes[i] = take_chance(b, 16) ? 0 : take_between(b, 1, 3);
    if (!reference_new(&s->p, dtype, ndim, sizes))
        fuzz_fail("no room for a reference tensor");
    const bool leaf = dtype == GRD_FLOAT64 && nleaves < LEAVES && take_chance(b, 2);
    for (int i = 0; i < 2 * s->p.n; i++)
        values[i] = leaf                          ? (double)take_between(b, -100, 100) / 64 + i / 1024.0
                    : grd_dtype_is_integer(dtype) ? (double)take_between(b, 0, 4)
                                                  : take_value(b);
    grd_tensor *t = grd_from_data(values, grd_dims_from(sizes, ndim), grd_dtype_is_complex(dtype) ? GRD_COMPLEX128 : GRD_FLOAT64);
    s->t = grd_to(t, .dtype = dtype, .copy = true);
    fuzz_expect(grd_ok(), "a new tensor");
    reference_read(&s->p, s->t);
    if (!leaf)
        return;
    grd_set_requires_grad(s->t, true);
    leaves[nleaves].t = s->t;
    leaves[nleaves].first = tracked;
    for (int i = 0; i < s->p.n && tracked < REFERENCE_TRACKED; i++)
        reference_at(&s->p, i)->d[tracked++] = 1;
    leaves[nleaves].tracked = tracked - leaves[nleaves].first;
    nleaves++;
}

/* ---- Steps of a program --------------------------------------------------------------------------------------------------------------------- */

static grd_value of_tensor(grd_tensor *t)
{
    return (grd_value){.kind = GRD_KIND_TENSOR, .v.tensor = t};
}

static grd_value of_int(int64_t i)
{
    return (grd_value){.kind = GRD_KIND_INT, .v.integer = i};
}

static grd_value of_bool(bool holds)
{
    return (grd_value){.kind = GRD_KIND_BOOL, .v.boolean = holds};
}

static grd_value of_dims(const int64_t *dims, int64_t n)
{
    return (grd_value){.kind = GRD_KIND_DIMS, .v.dims = {n, dims}};
}

static grd_dtype common_dtype(grd_tensor *const *tensors, int n)
{
    const grd_dtype dtype = grd_result_type(tensors, n);
    grd_error_clear();
    return dtype;
}

/* Returns a dimension, counted from either end, which is sometimes out of range. *ret_place gets the dimension counted from the front, or -1 if it
 * is out of range. */
static int64_t take_dim(struct bytes *b, int ndim, int *ret_place)
{
    const int n = ndim > 0 ? ndim : 1;
    const int64_t dim = take_chance(b, 16) ? take_between(b, -6, 6) : take_between(b, -n, n - 1);
    *ret_place = dim < -n || dim >= n ? -1 : (int)(dim < 0 ? dim + n : dim);
    return dim;
}

static void step_unary(struct bytes *b)
{
#define NAME(name) #name,
    static const char *const names[] = {REFERENCE_UNARY(NAME)};
    const int op = (int)take_below(b, REFERENCE_UNARIES);
    struct slot *x = take_slot(b);
    struct reference wanted;
    const enum verdict verdict = reference_unary((enum reference_unary)op, &x->p, &wanted);
    call_form(b, names[op], (const grd_value[]){of_tensor(x->t)}, 1, verdict, &wanted, x, (const struct reference *const[]){&x->p}, 1, 16);
}

static void step_binary(struct bytes *b)
{
    static const char *const names[] = {REFERENCE_BINARY(NAME)};
    const int op = (int)take_below(b, REFERENCE_BINARIES);
    const bool scaled = op == REFERENCE_add || op == REFERENCE_sub, compares = op >= REFERENCE_eq && op <= REFERENCE_logical_xor;
    struct slot *x = take_slot(b), *y = take_slot(b), number;
    const double alpha = scaled ? (double)take_between(b, -2, 2) : 1;
    if (take_chance(b, 3) && op != REFERENCE_logical_and && op != REFERENCE_logical_or && op != REFERENCE_logical_xor) {
        const bool integral = take_chance(b, 2);
        const double value = (double)take_between(b, -8, 8) / (integral ? 1 : 4);
        number.t = grd_number(integral ? grd_int((int64_t)value) : grd_float(value));
        if (!reference_new(&number.p, integral ? GRD_INT64 : GRD_FLOAT64, 0, NULL))
            return;
        reference_read(&number.p, number.t);
        y = &number;
    }
    grd_dtype common = common_dtype((grd_tensor *const[]){x->t, y->t}, 2);
    if (compares && y == &number && grd_dtype_is_integer(common))
        common = GRD_INT64; /* a comparison with a Python integer does not convert the integer to the tensor's dtype */
    struct reference wanted;
    enum verdict verdict = reference_binary((enum reference_binary)op, &x->p, &y->p, common, alpha, &wanted);
    if (op == REFERENCE_sub && (x->p.dtype == GRD_BOOL || y->p.dtype == GRD_BOOL) && verdict == VALID)
        verdict = UNSURE;
    const grd_value args[] = {of_tensor(x->t), of_tensor(y->t), of_int((int64_t)alpha)};
    call_form(b, names[op], args, scaled ? 3 : 2, verdict, &wanted, x, (const struct reference *const[]){&x->p, &y->p}, 2, 16);
}

static void step_where(struct bytes *b)
{
    const struct slot *c = take_slot(b), *x = take_slot(b), *y = take_slot(b);
    struct reference wanted;
    const enum verdict verdict = reference_where(&c->p, &x->p, &y->p, common_dtype((grd_tensor *const[]){x->t, y->t}, 2), &wanted);
    call_form(b, "where", (const grd_value[]){of_tensor(c->t), of_tensor(x->t), of_tensor(y->t)}, 3, verdict, &wanted, NULL,
              (const struct reference *const[]){&c->p, &x->p, &y->p}, 3, 0);
}

static void step_reduce(struct bytes *b)
{
    static const char *const names[] = {REFERENCE_REDUCTION(NAME)};
    const int op = (int)take_below(b, REFERENCE_REDUCTIONS);
    const struct slot *x = take_slot(b);
    int64_t dims[3];
    unsigned mask = 0;
    const int n = (int)take_below(b, 3);
    bool valid = true;
    for (int i = 0; i < n; i++) {
        int place;
        dims[i] = take_dim(b, x->p.ndim, &place);
        valid = valid && place >= 0 && !(mask >> place & 1);
        mask |= place >= 0 ? 1u << place : 0;
    }
    const bool keepdim = op != REFERENCE_count_nonzero && take_chance(b, 2);
    struct reference wanted;
    const enum verdict verdict =
        !valid ? REFUSED : reference_reduce((enum reference_reduction)op, &x->p, n == 0 ? ~0u : mask, keepdim, &wanted);
    const grd_value absent = {.kind = GRD_KIND_NONE}, given = n == 0 ? absent : of_dims(dims, n);
    const grd_value args[] = {of_tensor(x->t), given, op == REFERENCE_var ? absent : of_bool(keepdim), of_bool(keepdim)};
    call_form(b, names[op], args,
              op == REFERENCE_count_nonzero ? 2
              : op == REFERENCE_var         ? 4
                                            : 3,
              verdict, &wanted, NULL, (const struct reference *const[]){&x->p}, 1, 64);
}

static void step_along(struct bytes *b)
{
    static const char *const names[] = {REFERENCE_ALONG(NAME)};
    const int op = (int)take_below(b, REFERENCE_ALONGS);
    const struct slot *x = take_slot(b);
    int place;
    const int64_t dim = take_dim(b, x->p.ndim, &place);
    struct reference wanted;
    const enum verdict verdict = place < 0 ? REFUSED : reference_along((enum reference_along)op, &x->p, place, &wanted);
    call_form(b, names[op], (const grd_value[]){of_tensor(x->t), of_int(dim)}, 2, verdict, &wanted, NULL,
              (const struct reference *const[]){&x->p}, 1, 64);
}

static void step_product(struct bytes *b)
{
    const struct slot *x = take_slot(b), *y = take_slot(b);
    struct reference wanted;
    enum verdict verdict = reference_matmul(&x->p, &y->p, &wanted);
    const int n = x->p.ndim, m = y->p.ndim;
    const char *name = take_chance(b, 2)  ? "matmul"
                       : n == 1 && m == 1 ? "dot"
                       : n == 2 && m == 1 ? "mv"
                       : n == 2 && m == 2 ? "mm"
                       : n == 3 && m == 3 ? "bmm"
                                          : "matmul";
    if (strcmp(name, "bmm") == 0 && x->p.sizes[0] != y->p.sizes[0])
        verdict = REFUSED;
    call_form(b, name, (const grd_value[]){of_tensor(x->t), of_tensor(y->t)}, 2, verdict, &wanted, NULL,
              (const struct reference *const[]){&x->p, &y->p}, 2, 64);
}

static void step_index(struct bytes *b)
{
    const struct slot *x = take_slot(b), *at = take_slot(b), *source = take_slot(b);
    int place;
    const int64_t dim = take_dim(b, x->p.ndim, &place);
    struct reference wanted;
    enum verdict verdict = REFUSED;
    const grd_value args[] = {of_tensor(x->t), of_int(dim), of_tensor(at->t), of_tensor(source->t)};
    const struct reference *const inputs[] = {&x->p, &at->p, &source->p};
    switch (take_below(b, 4)) {
    case 0:
        verdict = place < 0 ? REFUSED : reference_gather(&x->p, place, &at->p, &wanted);
        call_form(b, "gather", args, 3, verdict, &wanted, NULL, inputs, 2, 0);
        break;
    case 1:
        verdict = place < 0 ? REFUSED : reference_index_select(&x->p, place, &at->p, &wanted);
        call_form(b, "index_select", args, 3, verdict, &wanted, NULL, inputs, 2, 0);
        break;
    default: {
        const bool add = take_chance(b, 2);
        verdict = place < 0 ? REFUSED : reference_scatter(&x->p, place, &at->p, &source->p, add, &wanted);
        /* Only the functional form is compared with the reference, because in place each operator has its own rule for overlapping operands.
         * step_anything() also calls the in-place form, without checking the result. */
        grd_value result = {.kind = GRD_KIND_TENSOR, .v.tensor = grd_failed};
        if (verdict == TOO_LARGE)
            break;
        grd_call(grd_op_find(add ? "scatter_add" : "scatter"), GRD_FUNCTIONAL, args, 4, NULL, &result);
        settle(take_slot(b), add ? "scatter_add" : "scatter", verdict, &wanted, result.v.tensor, 64);
    }
    }
}

static void step_copy(struct bytes *b)
{
    struct slot *x = take_slot(b), *y = take_slot(b), *z = take_slot(b), *into = take_slot(b);
    struct reference wanted;
    int place;
    enum verdict verdict;
    switch (take_below(b, 6)) {
    case 0: {
        const grd_dtype dtype = take_dtype(b);
        verdict = reference_convert(&x->p, dtype, &wanted);
        if (verdict != TOO_LARGE)
            settle(into, "to", verdict, &wanted, grd_to(x->t, .dtype = dtype, .copy = true), 2);
        break;
    }
    case 1: {
        const int64_t dim = take_dim(b, x->p.ndim, &place);
        const struct reference *const parts[] = {&x->p, &y->p, &z->p};
        const int n = (int)take_between(b, 1, 3);
        verdict = place < 0 && x->p.ndim != 1
                      ? REFUSED
                      : reference_cat(parts, n, place < 0 ? -1 : place, common_dtype((grd_tensor *const[]){x->t, y->t, z->t}, n), &wanted);
        grd_tensor *const list[] = {x->t, y->t, z->t};
        if (verdict != TOO_LARGE)
            settle(into, "cat", verdict, &wanted, grd_cat(grd_tensors_from(list, n), .dim = dim), 2);
        break;
    }
    case 2: {
        const unsigned dims = (unsigned)take_below(b, 16);
        int64_t list[REFERENCE_DIMS], n = 0;
        for (int d = 0; d < x->p.ndim; d++)
            if (dims >> d & 1)
                list[n++] = d;
        verdict = reference_flip(&x->p, dims, &wanted);
        if (verdict != TOO_LARGE)
            settle(into, "flip", verdict, &wanted, grd_flip(x->t, grd_dims_from(list, n)), 0);
        break;
    }
    case 3:
        verdict = reference_convert(&x->p, x->p.dtype, &wanted);
        wanted.memory->lost = x->p.memory->lost;
        if (verdict != TOO_LARGE)
            settle(into, "clone", verdict, &wanted, grd_clone(x->t), 0);
        break;
    default: { /* copy_; if source and destination overlap, the library may raise an error, or read the whole source before it writes */
        struct reference source, shape;
        verdict = reference_overlaps_itself(&x->p) ? REFUSED : VALID;
        if (reference_convert(&y->p, x->p.dtype, &source) != VALID)
            verdict = UNSURE;
        else if (reference_expand(&source, x->p.ndim, x->p.sizes, &shape) != VALID)
            verdict = REFUSED;
        grd_copy_(x->t, y->t);
        const bool ok = grd_ok();
        if (verdict == REFUSED && ok)
            complain("copy_", "accepted what it must refuse");
        const bool refused_for_overlap = reference_shares(&x->p, &y->p) && strstr(grd_error_message(), "memory location") != NULL;
        if (verdict == VALID && !ok && !refused_for_overlap && !is_rule_of_gradients(grd_error_message()))
            complain("copy_", "refused");
        grd_error_clear();
        if (ok && verdict == VALID) {
            source.memory->lost |= y->p.memory->lost;
            reference_write(&x->p, &source);
            if (!reference_near(&x->p, x->t, 2, x->p.dtype))
                complain("copy_", "another result");
            reference_read(&x->p, x->t);
        } else if (ok) {
            refresh(x);
        }
        check_slots("copy_");
    }
    }
}

static void step_view(struct bytes *b)
{
    struct slot *x = take_slot(b), *into = take_slot(b);
    struct reference wanted;
    enum verdict verdict;
    grd_tensor *t;
    int place, other;
    const int64_t dim = take_dim(b, x->p.ndim, &place);
    const char *what;
    switch (take_below(b, 7)) {
    case 0: {
        const int64_t second = take_dim(b, x->p.ndim, &other);
        what = "transpose";
        verdict = place < 0 || other < 0 ? REFUSED : reference_transpose(&x->p, place, other, &wanted);
        t = grd_transpose(x->t, dim, second);
        break;
    }
    case 1: {
        const int64_t index = take_between(b, -4, 4);
        what = "select";
        verdict = place < 0 ? REFUSED : reference_select(&x->p, place, index, &wanted);
        t = grd_select(x->t, dim, index);
        break;
    }
    case 2: {
        const int64_t start = take_between(b, -4, 4), end = take_between(b, -4, 4), step = take_between(b, -2, 2);
        what = "slice";
        verdict = place < 0 ? REFUSED : reference_slice(&x->p, place, start, end, step, &wanted);
        t = grd_slice(x->t, .dim = dim, .start = grd_int(start), .end = grd_int(end), .step = step);
        break;
    }
    case 3: {
        int64_t sizes[REFERENCE_DIMS];
        const int ndim = (int)take_between(b, 0, REFERENCE_DIMS);
        for (int d = 0; d < ndim; d++) {
            const int own = d - (ndim - x->p.ndim);
            sizes[d] = take_chance(b, 3) ? take_between(b, -1, 3) : own < 0 ? 2 : x->p.sizes[own];
        }
        what = "expand";
        verdict = reference_expand(&x->p, ndim, sizes, &wanted);
        t = grd_expand(x->t, grd_dims_from(sizes, ndim));
        break;
    }
    case 4: { /* reshapes to one or two dimensions */
        const int64_t first = take_between(b, 1, 4);
        const int64_t sizes[] = {first, x->p.n / first};
        const bool flat = take_chance(b, 2);
        what = "reshape";
        verdict = reference_reshape(&x->p, flat ? 1 : 2, flat ? (const int64_t[]){x->p.n} : sizes, &wanted);
        t = flat ? grd_reshape(x->t, grd_dims(x->p.n)) : grd_reshape(x->t, grd_dims_from(sizes, 2));
        if (grd_ok() && verdict == VALID && !grd_same_storage(t, x->t)) {
            struct reference copy;
            if (reference_convert(&wanted, wanted.dtype, &copy) != VALID)
                return;
            copy.memory->lost = x->p.memory->lost;
            wanted = copy;
        }
        break;
    }
    case 5: {
        const int64_t where = take_between(b, 0, x->p.ndim);
        what = "unsqueeze";
        int64_t sizes[REFERENCE_DIMS + 1];
        for (int d = 0; d <= x->p.ndim; d++)
            sizes[d] = d == where ? 1 : x->p.sizes[d - (d > where)];
        if (x->p.ndim == REFERENCE_DIMS)
            return;
        verdict = reference_reshape(&x->p, x->p.ndim + 1, sizes, &wanted);
        t = grd_unsqueeze(x->t, where);
        break;
    }
    default:
        what = "detach";
        verdict = VALID;
        wanted = x->p;
        wanted.memory->lost = true; /* a write through the detached alias has no derivative, so derivatives are unknown from then on */
        t = grd_detach(x->t);
    }
    if (verdict == TOO_LARGE) {
        grd_error_clear();
        return;
    }
    if (grd_ok() && verdict == VALID && x->p.memory == wanted.memory)
        fuzz_expect(grd_same_storage(t, x->t), "a view shares its storage");
    settle(into, what, verdict, &wanted, t, 0);
}

/* ---- Any operator, any arguments -------------------------------------------------------------------------------------------------------------- */

static int64_t take_any_int(struct bytes *b)
{
    return take_chance(b, 24) ? take_extreme(b) : take_between(b, -3, 5);
}

static grd_value take_argument(struct bytes *b, grd_kind kind, grd_tensor **list, int64_t *dims)
{
    static const char *const words[] = {"contiguous", "channels_last", "preserve", "mean", "sum",
                                        "none",       "floor",         "trunc",    "tanh", "no such word"};
    grd_value value = {.kind = kind};
    switch (kind) {
    case GRD_KIND_TENSOR:
        return of_tensor(take_slot(b)->t);
    case GRD_KIND_TENSORS:
        value.v.tensors = grd_tensors_from(list, take_below(b, 4));
        for (int64_t i = 0; i < value.v.tensors.n; i++)
            list[i] = take_slot(b)->t;
        return value;
    case GRD_KIND_SCALAR:
        value.v.scalar = take_chance(b, 2)   ? grd_int(take_any_int(b))
                         : take_chance(b, 8) ? grd_complex_number(take_value(b), 1)
                                             : grd_float(take_value(b));
        return value;
    case GRD_KIND_INT:
        return of_int(take_any_int(b));
    case GRD_KIND_FLOAT:
        value.v.number = take_value(b);
        return value;
    case GRD_KIND_BOOL:
        return of_bool(take_chance(b, 2));
    case GRD_KIND_DIMS:
        for (int i = 0; i < 4; i++)
            dims[i] = take_any_int(b);
        return of_dims(dims, take_below(b, 5));
    case GRD_KIND_DTYPE:
        value.v.dtype = (grd_dtype)take_below(b, GRD_DTYPE_COUNT + 2);
        return value;
    case GRD_KIND_DEVICE:
        value.v.device = (grd_device){(uint8_t)(take_chance(b, 4) ? take_below(b, 20) : GRD_DEVICE_CPU), -1};
        return value;
    case GRD_KIND_STRING:
        value.v.string = words[take_below(b, (int64_t)(sizeof words / sizeof *words))];
        return value;
    default:
        return (grd_value){.kind = GRD_KIND_NONE};
    }
}

/* True for operators that write to some of their tensor arguments: optimizer steps, normalizations that update running statistics, and in-place
 * functions on lists of tensors. */
static bool writes_arguments(const char *name)
{
    const size_t length = strlen(name);
    return (length > 5 && strcmp(name + length - 5, "_step") == 0) || strstr(name, "batch_norm") != NULL ||
           strncmp(name, "foreach_", 8) == 0 || strncmp(name, "amp_foreach_", 12) == 0 || strcmp(name, "amp_update_scale") == 0 ||
           strncmp(name, "_running", 8) == 0 || strcmp(name, "embedding_renorm") == 0 || strcmp(name, "instance_norm") == 0;
}

static void refresh_tensor(const grd_tensor *t)
{
    for (int s = 0; s < SLOTS; s++)
        if (slots[s].t == t)
            refresh(&slots[s]);
}

static void refresh_arguments(const char *name, const grd_value *args, int n)
{
    for (int i = 0; i < n && writes_arguments(name); i++) {
        for (int64_t k = 0; args[i].kind == GRD_KIND_TENSORS && k < args[i].v.tensors.n; k++)
            refresh_tensor(args[i].v.tensors.data[k]);
        if (args[i].kind == GRD_KIND_TENSOR)
            refresh_tensor(args[i].v.tensor);
    }
}

static void step_anything(struct bytes *b)
{
    const int64_t count = grd_op_count();
    const grd_op *op = grd_op_at((take_byte(b) * 256 + take_byte(b)) % count);
    const char *name = grd_op_name(op);
    if (strncmp(name, "empty", 5) == 0) /* the elements are uninitialised, so results computed from them would be arbitrary */
        return;
    grd_value args[GRD_MAX_ARGS], results[8];
    grd_tensor *lists[GRD_MAX_ARGS][4];
    int64_t dims[GRD_MAX_ARGS][4];
    const int n = grd_op_arg_count(op);
    for (int i = 0; i < n; i++) {
        grd_kind kind = grd_op_arg_kind(op, i);
        if (take_chance(b, 64))
            kind = (grd_kind)take_below(b, GRD_KIND_GENERATOR + 1);
        args[i] = grd_op_arg_optional(op, i) && take_chance(b, 2) ? (grd_value){.kind = GRD_KIND_NONE}
                                                                  : take_argument(b, kind, lists[i], dims[i]);
    }
    const unsigned forms = grd_op_forms(op);
    grd_form form = (grd_form)take_below(b, 3);
    if (!(forms >> form & 1))
        form = forms >> GRD_FUNCTIONAL & 1 ? GRD_FUNCTIONAL : GRD_INPLACE;
    struct slot *written = NULL;
    if (form == GRD_OUT)
        written = take_slot(b);
    for (int i = 0; i < SLOTS && form == GRD_INPLACE; i++)
        if (args[0].kind == GRD_KIND_TENSOR && args[0].v.tensor == slots[i].t)
            written = &slots[i];
    note_call(name, args, n, written);
    const bool ok = grd_call(op, form, args, n, form == GRD_OUT ? written->t : NULL, results);
    fuzz_expect(ok == grd_ok(), name);
    if (!ok)
        fuzz_expect(*grd_error_message() != '\0', name);
    grd_error_clear();
    if (ok && written != NULL)
        refresh(written);
    refresh_arguments(name, args, n); /* an operator on a list of tensors may write the first ones before it refuses a later one */
    check_slots(name);
    if (ok && form == GRD_FUNCTIONAL && results[0].kind == GRD_KIND_TENSOR)
        believe(take_slot(b), results[0].v.tensor);
}

/* ---- Gradients -------------------------------------------------------------------------------------------------------------------------------- */

static void check_gradients(struct bytes *b)
{
    struct slot *x = take_slot(b);
    for (int i = 0; i < SLOTS && !grd_requires_grad(x->t); i++)
        x = &slots[i];
    if (!grd_requires_grad(x->t) || nleaves == 0)
        return;
    grd_tensor *inputs[LEAVES], *grads[LEAVES];
    for (int i = 0; i < nleaves; i++)
        inputs[i] = leaves[i].t;
    const bool create = take_chance(b, 4);
    const grd_backward_options options = {.allow_unused = true, .create_graph = create, .retain_graph = take_chance(b, 2)};
    grd_tensor *total = grd_sum(x->t);
    if (grd_dtype_is_complex(grd_tensor_dtype(total)))
        total = grd_real(total);
    if (!grd_grad(grd_tensors(total), grd_tensors_from(inputs, nleaves), &options, grads)) {
        if (!is_rule_of_gradients(grd_error_message()) && !has_no_kernel(grd_error_message()) && !x->p.memory->lost)
            complain("gradients", "refused");
        grd_error_clear();
        check_slots("gradients that are refused");
        return;
    }
    check_slots("gradients");
    if (x->p.memory->lost || x->p.dtype != GRD_FLOAT64)
        return;
    for (int i = 0; i < nleaves; i++) {
        double values[REFERENCE_CELLS] = {0};
        if (grads[i] != NULL)
            grd_to_memory(grads[i], values, GRD_FLOAT64);
        for (int k = 0; k < leaves[i].tracked; k++) {
            double wanted = 0, size = 1;
            for (int e = 0; e < x->p.n; e++) {
                const double d = reference_at(&x->p, e)->d[leaves[i].first + k];
                wanted += d;
                size += fabs(d);
            }
            if (fabs(values[k] - wanted) > 1e-6 * size)
                fuzz_fail("the gradient of leaf %d, element %d is %.17g, not %.17g", i, k, values[k], wanted);
        }
    }
    grd_error_clear();
}

static void check(struct bytes *b)
{
    static void (*const steps[])(struct bytes *) = {step_unary, step_binary,  step_binary,   step_where,   step_reduce,
                                                    step_along, step_product, step_index,    step_copy,    step_view,
                                                    step_view,  step_view,    step_anything, step_anything};
    reference_reset();
    nleaves = tracked = 0;
    grd_manual_seed(1);
    for (int i = 0; i < SLOTS; i++)
        make_slot(b, &slots[i]);
    for (int i = take_below(b, STEPS + 1); i > 0; i--)
        steps[take_below(b, (int64_t)(sizeof steps / sizeof *steps))](b);
    check_gradients(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    grd_memory_set_limit(MEMORY_LIMIT + grd_memory_get_stats().allocated);
    fuzz_run(data, size, check);
    return 0;
}
