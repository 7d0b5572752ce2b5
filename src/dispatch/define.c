/* Makes operators at run time from their schemas, and keeps them in a list beside the generated table of operators.
 *
 * Schemas are parsed in schema_text.c, kernels are chosen and called in dispatch.c, and gradients are in autograd/define_operator.c.
 * Invariants
 * - The list only grows and is read without a lock. An operator found in the list is never freed.
 * - An operator defined in an open transaction is not in the list. Only the thread of the transaction finds it, until the transaction is
 *   committed. */
#include "dispatch/define.h"

#include <pthread.h>
#include <string.h>

#include "base/fork.h"
#include "base/memory.h"
#include "base/transaction.h"
#include "core/new.h"
#include "core/tensor.h"
#include "dispatch/schema_text.h"

static struct grd_defined_op *_Atomic published;
static _Atomic int64_t published_count;
/* Guards the end of the list `published`, and the list `held_back` of operators that open transactions have defined. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct grd_defined_op *last_published, *held_back;

/* ---- Making an operator -------------------------------------------------------------------------------------------------------- */

/* Copies the text of `span`, followed by NUL, to *room, moves *room behind the copy, and returns the copy. */
static const char *place(struct grd_span span, char **room)
{
    char *copy = *room;
    if (span.length > 0)
        memcpy(copy, span.at, (size_t)span.length);
    copy[span.length] = '\0';
    *room += span.length + 1;
    return copy;
}

/* Returns the number of bytes that the names and the default strings in a schema need, with their terminating NULs. */
static size_t room_for(const struct grd_schema *schema)
{
    size_t room = (size_t)schema->name.length + 1;
    for (int i = 0; i < schema->nargs; i++)
        room += (size_t)schema->args[i].name.length + (size_t)schema->args[i].string.length + 2;
    for (int i = 0; i < schema->nresults; i++)
        room += (size_t)schema->results[i].length + sizeof "result0";
    return room;
}

/* Returns the name of result number `i`. A name given in the schema is copied to *room, which moves behind the copy. Results without a name are
 * called "result", or "result0", "result1", ... if there are several. */
static const char *place_result(const struct grd_schema *schema, int i, char **room)
{
    static const char *const numbered[GRD_MAX_RESULTS] = {"result0", "result1", "result2", "result3"};
    if (schema->results[i].length > 0)
        return place(schema->results[i], room);
    return schema->nresults == 1 ? "result" : numbered[i];
}

static void fill_args(const struct grd_schema *schema, struct grd_arg *args, int64_t *integers, char **room)
{
    for (int i = 0; i < schema->nargs; i++) {
        const struct grd_schema_arg *from = &schema->args[i];
        args[i] = (struct grd_arg){.name = place(from->name, room), .kind = from->kind, .optional = from->optional, .value = from->value};
        if (from->value.kind == GRD_KIND_STRING)
            args[i].value.v.string = place(from->string, room);
        if (from->value.kind == GRD_KIND_DIMS)
            args[i].value.v.dims.data = integers + (from->value.v.dims.data - schema->integers);
    }
    if (schema->nintegers > 0)
        memcpy(integers, schema->integers, (size_t)schema->nintegers * sizeof *integers);
}

struct grd_defined_op *grd_defined_new(const char *text)
{
    struct grd_schema schema;
    if (!grd_schema_read(text, &schema))
        return NULL;
    if (!schema.has_namespace) {
        grd_raise(GRD_ERROR_VALUE, "schema: an operator defined at run time has a namespace, as in \"mylib::%.*s\"", schema.name.length,
                  schema.name.at);
        return NULL;
    }
    const size_t args = (size_t)schema.nargs * sizeof(struct grd_arg), integers = (size_t)(schema.nintegers + 1) * sizeof(int64_t);
    const size_t length = strlen(text), size = sizeof(struct grd_defined_op) + args + integers + length + 1 + room_for(&schema);
    struct grd_defined_op *self = grd_alloc_zeroed(size);
    if (self == NULL)
        return NULL;
    struct grd_arg *op_args = (struct grd_arg *)(self + 1);
    int64_t *op_integers = (int64_t *)((char *)op_args + args);
    char *room = (char *)op_integers + integers;
    self->size = size;
    self->op.defined = true;
    self->op.schema = place((struct grd_span){text, (int)length}, &room);
    self->op.name = place(schema.name, &room);
    self->op.args = op_args;
    self->op.nargs = (uint8_t)schema.nargs;
    self->op.nresults = (uint8_t)schema.nresults;
    self->op.returns_list = schema.returns_list;
    self->op.forms = 1 << GRD_FUNCTIONAL;
    fill_args(&schema, op_args, op_integers, &room);
    for (int i = 0; i < schema.nresults; i++)
        self->results[i] = place_result(&schema, i, &room);
    return self;
}

void grd_defined_free(struct grd_defined_op *self)
{
    if (self == NULL)
        return;
    if (self->release != NULL)
        self->release(self);
    grd_free(self, self->size);
}

/* ---- What a kernel returns -------------------------------------------------------------------------------------------------------- */

static bool shares_memory(const grd_tensor *t, const grd_value *arg)
{
    if (arg->kind == GRD_KIND_TENSOR)
        return arg->v.tensor != NULL && grd_same_storage(t, arg->v.tensor);
    for (int64_t i = 0; arg->kind == GRD_KIND_TENSORS && i < arg->v.tensors.n; i++)
        if (grd_same_storage(t, arg->v.tensors.data[i]))
            return true;
    return false;
}

/* Checks the result *t of a kernel if autograd will record the call, i.e. if the operator has a gradient and `key` is below AUTOGRAD. In this case
 * *t must not share memory with an argument, and a view is replaced by a detached tensor. Returns false, with the error raised, on failure. */
static bool settle_result(const struct grd_op *op, grd_key key, int result, const grd_value *args, grd_tensor **t)
{
    if (op->derivative == NULL || key >= GRD_KEY_AUTOGRAD)
        return true;
    for (int i = 0; i < op->nargs; i++)
        if (shares_memory(*t, &args[i]))
            return grd_raise(GRD_ERROR_RUNTIME, "result %d of the kernel shares memory with argument '%s'; return a copy", result,
                             op->args[i].name);
    if ((*t)->base != NULL)
        *t = grd_new_detached(*t);
    return !grd_pending();
}

/* Checks result number `result`, a tensor or a list of tensors, which the kernel for `key` has stored in *value. Returns false, with RuntimeError, if
 * the result is missing or invalid. */
static bool check_result(const struct grd_op *op, grd_key key, int result, const grd_value *args, grd_value *value)
{
    if (!op->returns_list) {
        if (value->kind != GRD_KIND_TENSOR || value->v.tensor == NULL || grd_is_failed(value->v.tensor))
            return grd_raise(GRD_ERROR_RUNTIME, "the kernel for dispatch key %s has not written result %d", grd_key_name(key), result);
        return settle_result(op, key, result, args, &value->v.tensor);
    }
    if (value->kind != GRD_KIND_TENSORS || !grd_is_tensor_list(value->v.tensors))
        return grd_raise(GRD_ERROR_RUNTIME, "the kernel for dispatch key %s has not written a list of tensors", grd_key_name(key));
    for (int64_t i = 0; i < value->v.tensors.n; i++) {
        grd_tensor *t = value->v.tensors.data[i];
        if (!settle_result(op, key, 0, args, &t))
            return false;
        if (t != value->v.tensors.data[i])
            return grd_raise(GRD_ERROR_RUNTIME, "tensor %lld of the kernel's list is a view; return a copy", (long long)i);
    }
    return true;
}

void grd_defined_check_results(const struct grd_op *op, grd_key key, const grd_value *args, grd_value *results)
{
    bool good = !grd_pending();
    for (int i = 0; good && i < op->nresults; i++)
        good = check_result(op, key, i, args, &results[i]);
    if (grd_pending())
        grd_fail_results(op, results);
}

/* ---- The list -------------------------------------------------------------------------------------------------------------------- */

static const struct grd_defined_op *find_in(const struct grd_defined_op *op, const char *name)
{
    while (op != NULL && strcmp(op->op.name, name) != 0)
        op = atomic_load_explicit(&op->next, memory_order_acquire);
    return op;
}

/* Removes an operator from the list `held_back`. The caller holds the lock. */
static void let_go(struct grd_defined_op *self)
{
    struct grd_defined_op *before = NULL, *op = held_back;
    while (op != self) {
        before = op;
        op = op->next;
    }
    if (before == NULL)
        held_back = self->next;
    else
        before->next = self->next;
    self->next = NULL;
}

/* Adds an operator to the end of the list `published`. The caller holds the lock. */
static void append(struct grd_defined_op *self)
{
    atomic_store_explicit(last_published != NULL ? &last_published->next : &published, self, memory_order_release);
    last_published = self;
    atomic_fetch_add_explicit(&published_count, 1, memory_order_release);
}

static void commit(void *op, int which)
{
    (void)which;
    pthread_mutex_lock(&lock);
    let_go(op);
    append(op);
    pthread_mutex_unlock(&lock);
}

static void roll_back(void *op, int which)
{
    (void)which;
    pthread_mutex_lock(&lock);
    let_go(op);
    pthread_mutex_unlock(&lock);
    grd_defined_free(op);
}

static const struct grd_step_type step = {.commit = commit, .roll_back = roll_back};

/* Adds an operator to the list `held_back`, and a step to the open transaction. At the end of the transaction the step publishes or frees the
 * operator. Returns false, with MemoryError, on failure. The caller holds the lock, so that no fork happens between the two additions. */
static bool hold_back(struct grd_defined_op *self)
{
    if (!grd_transaction_add(&step, self, 0))
        return false;
    self->transaction = grd_transaction_current();
    self->next = held_back;
    held_back = self;
    return true;
}

/* Adds an operator to the list `published` or, while a transaction is open, to the list `held_back`. Returns false, with RuntimeError, if the
 * operator's name is taken. The caller holds the lock. */
static bool enter(struct grd_defined_op *self)
{
    if (find_in(atomic_load(&published), self->op.name) != NULL || find_in(held_back, self->op.name) != NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "operator '%s' is already defined", self->op.name);
    if (grd_transaction_current() != NULL)
        return hold_back(self);
    append(self);
    return true;
}

bool grd_defined_publish(struct grd_defined_op *self)
{
    self->op.composite = self->composite != NULL;
    self->op.batch = self->op.composite ? GRD_BATCH_DEFAULT : GRD_BATCH_LOOP;
    self->op.counts_writes = self->op.has_out && !self->op.composite;
    grd_reset_slots(&self->op);
    pthread_mutex_lock(&lock);
    const bool entered = enter(self);
    pthread_mutex_unlock(&lock);
    if (!entered)
        grd_defined_free(self);
    return entered;
}

/* Returns the operator called `name` if the open transaction of this thread has defined it, otherwise NULL. */
static const grd_op *find_own(const char *name)
{
    const struct grd_transaction *transaction = grd_transaction_current();
    if (transaction == NULL)
        return NULL;
    pthread_mutex_lock(&lock);
    const struct grd_defined_op *op = find_in(held_back, name);
    const bool own = op != NULL && op->transaction == transaction;
    pthread_mutex_unlock(&lock);
    return own ? &op->op : NULL;
}

const grd_op *grd_defined_find(const char *name)
{
    const struct grd_defined_op *op = find_in(atomic_load_explicit(&published, memory_order_acquire), name);
    return op != NULL ? &op->op : find_own(name);
}

int64_t grd_defined_count(void)
{
    return atomic_load_explicit(&published_count, memory_order_acquire);
}

const grd_op *grd_defined_at(int64_t index)
{
    const struct grd_defined_op *op = atomic_load_explicit(&published, memory_order_acquire);
    while (op != NULL && index-- > 0)
        op = atomic_load_explicit(&op->next, memory_order_acquire);
    return op != NULL ? &op->op : NULL;
}

void grd_define_init(void)
{
    static struct grd_held_lock held = {.lock = &lock};
    grd_hold_around_fork(&held);
}
