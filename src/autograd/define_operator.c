/* Makes the derivatives of operators that are defined at run time. Each derivative is a struct grd_derivative, as for the built-in operators. So
 * recording and the engine treat both kinds of operators in the same way.
 *
 * This file turns the user's definition into tables. dispatch/define.c makes the operator itself; formula_text.c and formula_eval.c read and
 * evaluate the formulas.
 * Invariant: a derivative is complete before its operator can be found, never changes, and is freed with the operator. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "autograd/derivative.h"
#include "autograd/formula_tree.h"
#include "autograd/node.h"
#include "base/reader.h"

enum { NODE_NAME_CHARS = 96 };

/* The derivative of one operator that is defined at run time, with everything that it owns. */
struct defined_derivative {
    struct grd_derivative derivative; /* the first member, so that a pointer to it can be cast to this struct */
    const struct grd_op *op;
    struct grd_formula *formulas[GRD_MAX_ARGS]; /* one per element of derivative.args, in the same order; NULL if `gradient` computes all
                                                 * gradients */
    grd_gradient_function *gradient;            /* the user's function that computes all gradients; NULL if there are formulas */
    void *context;                              /* passed to `gradient` in each call */
    struct grd_formula_needs needs;
    uint8_t args[GRD_MAX_ARGS];
    char node_name[NODE_NAME_CHARS];
};

static const struct defined_derivative *derivative_of(const struct grd_backward *b)
{
    return (const struct defined_derivative *)b->derivative;
}

/* ---- Backward --------------------------------------------------------------------------------------------------------------------- */

/* Stores `value` as the gradient of differentiable argument number `position`. `value` is a list of tensors, a tensor or None. */
static void set_gradient(const struct grd_backward *b, int position, const grd_value *value)
{
    if (value->kind == GRD_KIND_TENSORS)
        grd_backward_spread(b, position, value->v.tensors);
    else
        b->ret_grads[b->first_edge[position]] = value->kind == GRD_KIND_TENSOR ? value->v.tensor : NULL;
}

/* The backward function of an operator with formulas: evaluates the formula of each argument that needs a gradient. */
static void run_formulas(const struct grd_backward *b)
{
    const struct defined_derivative *self = derivative_of(b);
    for (int i = 0; i < self->derivative.nargs && !grd_pending(); i++)
        if (b->needs >> i & 1) {
            const grd_value value = grd_formula_evaluate(self->formulas[i], b);
            if (!grd_pending())
                set_gradient(b, i, &value);
        }
}

/* True if the user's gradient function may return `value` as the gradient of argument `arg`. False, with the error raised, otherwise. */
static bool check_gradient(const struct grd_op *op, int arg, const grd_value *value)
{
    const bool list = op->args[arg].kind == GRD_KIND_TENSORS;
    if (value->kind == GRD_KIND_NONE)
        return true;
    if (value->kind != (list ? GRD_KIND_TENSORS : GRD_KIND_TENSOR))
        return grd_raise(GRD_ERROR_TYPE, "%s: the gradient of argument '%s' must be %s, not %s", op->name, op->args[arg].name,
                         list ? "Tensor[]" : "Tensor", grd_kind_name(value->kind));
    if (list && value->v.tensors.n > 0 && value->v.tensors.data == NULL)
        return grd_raise(GRD_ERROR_TYPE, "%s: the gradient of argument '%s' has a length but no data", op->name, op->args[arg].name);
    return true;
}

/* The backward function of an operator with a gradient function: calls the user's function with the saved arguments and results. */
static void run_function(const struct grd_backward *b)
{
    const struct defined_derivative *self = derivative_of(b);
    const struct grd_op *op = self->op;
    grd_value args[GRD_MAX_ARGS] = {{.kind = GRD_KIND_NONE}}, results[GRD_MAX_RESULTS] = {{.kind = GRD_KIND_NONE}};
    grd_value grads[GRD_MAX_ARGS] = {{.kind = GRD_KIND_NONE}};
    for (int i = 0; i < self->needs.nsaves; i++) {
        const struct grd_save *save = &self->needs.saves[i];
        (save->result ? results : args)[save->index] = b->saved[i];
    }
    unsigned needs = 0;
    for (int i = 0; i < self->derivative.nargs; i++)
        needs |= (unsigned)(b->needs >> i & 1) << self->args[i];
    self->gradient(&(grd_gradient){op, args, results, {b->ngrads, b->grads}, needs, self->context}, grads);
    for (int i = 0; i < self->derivative.nargs && !grd_pending(); i++)
        if (check_gradient(op, self->args[i], &grads[self->args[i]]))
            set_gradient(b, i, &grads[self->args[i]]);
}

/* The backward function of an operator without derivative: raises RuntimeError. */
static void refuse(const struct grd_backward *b)
{
    grd_raise(GRD_ERROR_RUNTIME, "derivative for %s is not implemented", derivative_of(b)->op->name);
}

/* ---- From a definition ------------------------------------------------------------------------------------------------------------ */

/* Sets self->node_name, e.g. to "MylibCubeRootBackward0" for the operator mylib::cube_root. The built-in operators' nodes have names of this form
 * too. */
static void name_node(struct defined_derivative *self)
{
    size_t n = 0;
    bool start = true;
    for (const char *c = self->op->name; *c != '\0' && n < NODE_NAME_CHARS - sizeof "Backward0"; c++) {
        if (*c != '_' && *c != ':')
            self->node_name[n++] = (char)(start ? toupper((unsigned char)*c) : *c);
        start = *c == '_' || *c == ':';
    }
    strcpy(self->node_name + n, "Backward0");
}

static bool is_tensor(const struct grd_op *op, int arg)
{
    return op->args[arg].kind == GRD_KIND_TENSOR || op->args[arg].kind == GRD_KIND_TENSORS;
}

/* Returns the index of the definition's first formula for the argument named `arg`, or -1 if there is none. */
static int find_formula(const grd_definition *definition, const char *arg)
{
    for (int i = 0; i < GRD_MAX_ARGS && definition->gradients[i].arg != NULL; i++)
        if (strcmp(definition->gradients[i].arg, arg) == 0)
            return i;
    return -1;
}

/* Checks that each formula of `definition` is for a tensor argument and that no argument has two formulas. False, with the error raised,
 * otherwise. */
static bool check_formula_names(const struct grd_op *op, const grd_definition *definition)
{
    for (int i = 0; i < GRD_MAX_ARGS && definition->gradients[i].arg != NULL; i++) {
        const char *name = definition->gradients[i].arg;
        int arg = 0;
        while (arg < op->nargs && strcmp(op->args[arg].name, name) != 0)
            arg++;
        if (arg == op->nargs || !is_tensor(op, arg))
            return grd_raise(GRD_ERROR_VALUE, "%s: gradient of '%s': no tensor argument of that name", op->name, name);
        if (definition->gradients[i].formula == NULL)
            return grd_raise(GRD_ERROR_VALUE, "%s: gradient of '%s': there is no formula", op->name, name);
        if (find_formula(definition, name) != i)
            return grd_raise(GRD_ERROR_VALUE, "%s: gradient of '%s': there are two formulas", op->name, name);
    }
    return true;
}

/* Reads the formulas of the definition and stores them in self->formulas, in the order of the operator's arguments. False, with the error raised,
 * on failure. */
static bool read_formulas(struct defined_derivative *self, const grd_definition *definition)
{
    if (!check_formula_names(self->op, definition))
        return false;
    for (int arg = 0; arg < self->op->nargs; arg++) {
        const int place = find_formula(definition, self->op->args[arg].name), position = self->derivative.nargs;
        if (place < 0)
            continue;
        self->formulas[position] = grd_formula_read(&self->needs, arg, position, definition->gradients[place].formula);
        if (self->formulas[position] == NULL) {
            grd_error_add_context(self->op->name);
            return false;
        }
        self->args[position] = (uint8_t)arg;
        self->derivative.nargs++;
    }
    self->derivative.backward = run_formulas;
    return true;
}

/* Adds argument or result number `index` to the values that nodes save. The value counts as used by every gradient, since one function of the
 * user computes all gradients. */
static void add_save(struct grd_formula_needs *needs, bool result, int index, grd_kind kind)
{
    needs->saves[needs->nsaves++] =
        (struct grd_save){.how = grd_save_whole(kind), .result = result, .index = (uint8_t)index, .used_by = UINT16_MAX};
}

/* Reads `text`, which lists the arguments and results that the user's gradient function reads. In *ret_saves, bit i is set if `text` lists argument
 * i, and bit op->nargs + i if it lists result i. If `text` is NULL, all bits are set. False, with the error raised, on failure. */
static bool read_saves(const struct defined_derivative *self, const char *text, unsigned *ret_saves)
{
    const struct grd_op *op = self->op;
    struct grd_reader reader = {.text = text, .at = text, .what = "saves"};
    struct grd_span word;
    *ret_saves = text == NULL ? ~0u : 0;
    while (text != NULL && grd_read_peek(&reader) != '\0') {
        if (grd_read_token(&reader, ","))
            continue;
        if (!grd_read_word(&reader, &word))
            return grd_read_fail(&reader, "expected a name");
        int i = 0;
        const int n = op->nargs + op->nresults;
        while (i < n && !grd_span_is(word, i < op->nargs ? op->args[i].name : self->needs.of->results[i - op->nargs]))
            i++;
        if (i == n)
            return grd_read_fail_at(&reader, word.at, "no argument or result of that name");
        *ret_saves |= 1u << i;
    }
    return true;
}

/* Copies the user's gradient function from the definition to `self`, and adds to self->needs the values that nodes save for this function. False,
 * with the error raised, on failure. */
static bool read_function(struct defined_derivative *self, const grd_definition *definition)
{
    unsigned saves;
    const struct grd_op *op = self->op;
    if (!read_saves(self, definition->saves, &saves)) {
        grd_error_add_context(op->name);
        return false;
    }
    for (int i = 0; i < op->nargs; i++)
        if (!is_tensor(op, i) || (saves >> i & 1))
            add_save(&self->needs, false, i, (grd_kind)op->args[i].kind);
    for (int i = 0; i < op->nresults; i++)
        if (saves >> (op->nargs + i) & 1)
            add_save(&self->needs, true, i, op->returns_list ? GRD_KIND_TENSORS : GRD_KIND_TENSOR);
    self->gradient = definition->gradient;
    self->context = definition->context;
    self->derivative.backward = run_function;
    return true;
}

/* Frees the derivative of an operator. Called when the operator is freed. */
static void release(struct grd_defined_op *op)
{
    struct defined_derivative *self = (struct defined_derivative *)(uintptr_t)op->op.derivative;
    for (int i = 0; i < GRD_MAX_ARGS; i++)
        grd_formula_free(self->formulas[i]);
    grd_free(self, sizeof *self);
}

/* Sets the members `others`, `lists`, `sized`, `results` and `forward_rule` of self->derivative. They depend on all arguments, saved values and
 * results. */
static void set_shape(struct defined_derivative *self)
{
    struct grd_derivative *d = &self->derivative;
    for (int i = 0; i < self->op->nargs; i++)
        d->others |= (uint16_t)(is_tensor(self->op, i) << i);
    for (int i = 0; i < d->nargs; i++) {
        d->others &= (uint16_t) ~(1u << self->args[i]);
        d->lists |= self->op->args[self->args[i]].kind == GRD_KIND_TENSORS;
    }
    for (int i = 0; i < self->needs.nsaves; i++)
        d->sized |= grd_save_takes_room(self->needs.saves[i].how);
    /* If no formula names the gradient of a result (e.g. if a user's function computes the gradients), every result may have a gradient. */
    const unsigned results = self->needs.results != 0 ? self->needs.results : (1u << self->op->nresults) - 1;
    d->results = self->op->returns_list ? 1 : (uint8_t)results;
    d->forward_rule = self->derivative.backward == refuse || self->op->returns_list ? GRD_FORWARD_ABSENT : GRD_FORWARD_ADJOINT;
}

/* Creates the derivative of `op` from `definition`. False, with the error raised, on failure; the caller frees the incomplete derivative with
 * grd_defined_free. */
static bool attach_derivative(struct grd_defined_op *op, const grd_definition *definition)
{
    struct defined_derivative *self = grd_alloc_zeroed(sizeof *self);
    if (self == NULL)
        return false;
    op->op.derivative = &self->derivative;
    op->release = release;
    self->op = &op->op;
    self->needs.of = op;
    name_node(self);
    bool ok = true;
    if (definition->gradients[0].arg != NULL)
        ok = read_formulas(self, definition);
    else if (definition->gradient != NULL)
        ok = read_function(self, definition);
    else
        self->derivative.backward = refuse;
    for (int i = 0; definition->gradients[0].arg == NULL && i < op->op.nargs; i++)
        if (is_tensor(&op->op, i))
            self->args[self->derivative.nargs++] = (uint8_t)i;
    set_shape(self);
    self->derivative.node_name = self->node_name;
    self->derivative.saves = self->needs.saves;
    self->derivative.args = self->args;
    self->derivative.nsaves = (uint8_t)self->needs.nsaves;
    self->derivative.materialize = op->op.returns_list || op->op.nresults > 1;
    return ok;
}

/* True if the operator has a tensor argument. */
static bool has_tensors(const struct grd_op *op)
{
    for (int i = 0; i < op->nargs; i++)
        if (is_tensor(op, i))
            return true;
    return false;
}

static bool check_definition(const grd_definition *definition)
{
    if (!grd_given_pointer(definition, "grd_define_operator", "definition"))
        return false;
    if (definition->schema == NULL)
        return grd_raise(GRD_ERROR_TYPE, "grd_define_operator: a schema is required, not NULL");
    if (definition->gradient != NULL && definition->gradients[0].arg != NULL)
        return grd_raise(GRD_ERROR_VALUE, "grd_define_operator: the gradient is either formulas or a function, not both");
    return true;
}

const grd_op *grd_define_operator(const grd_definition *definition)
{
    if (grd_pending() || !check_definition(definition))
        return NULL;
    struct grd_defined_op *op = grd_defined_new(definition->schema);
    if (op == NULL)
        return NULL;
    op->composite = definition->kernel;
    op->context = definition->context;
    const bool given = definition->gradient != NULL || definition->gradients[0].arg != NULL;
    const bool differentiable = given || (op->composite == NULL && has_tensors(&op->op));
    if (differentiable && !attach_derivative(op, definition)) {
        grd_defined_free(op);
        return NULL;
    }
    return grd_defined_publish(op) ? &op->op : NULL;
}
