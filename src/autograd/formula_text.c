/* Reads gradient formulas, whose language is a subset of Python's expressions. Operators are read by precedence climbing. The grammar is:
 *
 *     expression = prefix {symbol expression} ["if" expression "else" expression]
 *     prefix     = ("not" | "-") expression | atom {"[" expression "]"}
 *     atom       = number | string | "(" expression ")" | "[" expressions "]" | constant | name | name "(" arguments ")"
 *     constant   = "True" | "False" | "None" | "inf" | "nan"
 *
 * The kinds of all values are checked here, so that a wrong formula is refused when its operator is defined, with the position of the mistake. */
#include "autograd/derivative.h"
#include "autograd/formula_tree.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/reader.h"

/* The largest depth of nested expressions, and the largest number of nodes in the tree of a formula. Without these limits a formula could
 * overflow the stack: the parser recurses for each nested expression, and the evaluation recurses for each level of the tree. */
enum { MAX_DEPTH = 100, MAX_PARTS = 500 };

/* The state of reading one formula. The int result of a read_... function is the index of the node that it read, or 0 with the error raised. */
struct parser {
    struct grd_reader reader;
    struct grd_formula *formula;
    struct grd_formula_needs *needs;
    /* position: the formula computes the gradient of differentiable argument number `position`; depth: number of active calls of read_expression */
    int position, depth;
};

/* Reads an expression whose operators have at least the precedence `level`. Returns the index of its node, or 0, with the error raised, on
 * failure. */
static int read_expression(struct parser *p, int level);

/* ---- Nodes ---------------------------------------------------------------------------------------------------------------------- */

/* Appends a node to the formula and returns its index, which is at least 1. Returns 0, with the error raised, on failure. */
static int add(struct parser *p, struct grd_formula_node node)
{
    struct grd_formula *formula = p->formula;
    if (formula->n > MAX_PARTS)
        return grd_read_fail(&p->reader, "a formula has at most %d parts, not more", MAX_PARTS);
    const size_t size = (size_t)formula->n * sizeof node;
    struct grd_formula_node *nodes = grd_realloc(formula->nodes, size, size + sizeof node);
    if (nodes == NULL)
        return 0;
    nodes[formula->n] = node;
    formula->nodes = nodes;
    return formula->n++;
}

static struct grd_formula_node *node_at(const struct parser *p, int node)
{
    return &p->formula->nodes[node];
}

static grd_kind kind_of(const struct parser *p, int node)
{
    return (grd_kind)node_at(p, node)->kind;
}

static int add_constant(struct parser *p, grd_value value)
{
    return add(p, (struct grd_formula_node){.type = GRD_FORMULA_CONSTANT, .kind = (uint8_t)value.kind, .v.constant = value});
}

/* Returns the address of the next token in the text. */
static const char *here(struct parser *p)
{
    grd_read_peek(&p->reader);
    return p->reader.at;
}

/* ---- Kinds ----------------------------------------------------------------------------------------------------------------------- */

static bool is_number(grd_kind kind)
{
    return kind == GRD_KIND_SCALAR || kind == GRD_KIND_INT || kind == GRD_KIND_FLOAT || kind == GRD_KIND_BOOL;
}

/* Replaces a constant string that is the name of a dtype, e.g. 'float32', by this dtype. Returns true if the node's value then is a dtype. */
static bool to_dtype(struct grd_formula_node *node)
{
    for (int dtype = GRD_DTYPE_NONE + 1; node->type == GRD_FORMULA_CONSTANT && node->kind == GRD_KIND_STRING && dtype < GRD_DTYPE_COUNT;
         dtype++)
        if (strcmp(grd_dtype_name((grd_dtype)dtype), node->v.constant.v.string) == 0) {
            node->v.constant = (grd_value){.kind = GRD_KIND_DTYPE, .v.dtype = (grd_dtype)dtype};
            node->kind = GRD_KIND_DTYPE;
        }
    return node->kind == GRD_KIND_DTYPE;
}

/* True if the node's value can be used where the kind `wanted` is expected. */
static bool converts(struct grd_formula_node *node, grd_kind wanted)
{
    const grd_kind kind = (grd_kind)node->kind;
    switch (wanted) {
    case GRD_KIND_TENSOR:
    case GRD_KIND_SCALAR:
    case GRD_KIND_FLOAT:
        return kind == wanted || is_number(kind);
    case GRD_KIND_INT:
        return is_number(kind) && kind != GRD_KIND_FLOAT;
    case GRD_KIND_BOOL:
        return kind == GRD_KIND_BOOL || kind == GRD_KIND_SCALAR;
    case GRD_KIND_DIMS:
        return kind == GRD_KIND_DIMS || kind == GRD_KIND_INT;
    case GRD_KIND_DTYPE:
        return to_dtype(node);
    default:
        return kind == wanted;
    }
}

/* ---- Names ----------------------------------------------------------------------------------------------------------------------- */

/* Returns how many characters of `word` an error text shows: all, but at most 60. */
static int length_shown(struct grd_span word)
{
    return word.length > 60 ? 60 : word.length;
}

/* Returns the index of the argument that is named `word`, or -1 if there is none. */
static int find_argument(const struct grd_arg *args, int nargs, struct grd_span word)
{
    int i = nargs - 1;
    while (i >= 0 && !grd_span_is(word, args[i].name))
        i--;
    return i;
}

/* Returns the index of the result whose gradient has the name `word`, or -1 if no gradient has this name. The gradient of result 0 is "grad". If
 * the operator has several results, each gradient is also "grad_<name of the result>". If the operator returns a list, the only name is "grads",
 * the list of all gradients, with index 0. */
static int find_gradient(const struct parser *p, struct grd_span word)
{
    const struct grd_defined_op *of = p->needs->of;
    if (of->op.returns_list || grd_span_is(word, "grad"))
        return grd_span_is(word, of->op.returns_list ? "grads" : "grad") ? 0 : -1;
    int i = word.length > 5 && memcmp(word.at, "grad_", 5) == 0 && of->op.nresults > 1 ? of->op.nresults - 1 : -1;
    while (i >= 0 && !grd_span_is((struct grd_span){word.at + 5, word.length - 5}, of->results[i]))
        i--;
    return i;
}

/* Adds a node for the gradient of result number `result`, and notes in p->needs that a formula reads this gradient. Returns the index of the node,
 * or 0, with the error raised, on failure. */
static int add_gradient(struct parser *p, int result)
{
    p->needs->results |= 1u << result;
    const bool list = p->needs->of->op.returns_list;
    return add(p, (struct grd_formula_node){.type = list ? GRD_FORMULA_GRADIENTS : GRD_FORMULA_GRADIENT,
                                            .kind = list ? GRD_KIND_TENSORS : GRD_KIND_TENSOR,
                                            .which = (uint8_t)result});
}

/* Finds the argument or result named `word`. Writes its kind to ret_kind. Describes in ret_save how the autograd node saves the value. False,
 * with the error raised, if there is none. */
static bool find_saved(const struct parser *p, struct grd_span word, struct grd_save *ret_save, grd_kind *ret_kind)
{
    const struct grd_defined_op *of = p->needs->of;
    char known[160] = "";
    for (int i = 0; i < of->op.nargs + of->op.nresults; i++) {
        const bool result = i >= of->op.nargs;
        const int index = result ? i - of->op.nargs : i;
        const char *name = result ? of->results[index] : of->op.args[index].name;
        if (grd_span_is(word, name)) {
            *ret_kind = !result ? (grd_kind)of->op.args[index].kind : of->op.returns_list ? GRD_KIND_TENSORS : GRD_KIND_TENSOR;
            *ret_save = (struct grd_save){.how = grd_save_whole(*ret_kind), .result = result, .index = (uint8_t)index};
            return true;
        }
        strncat(known, ", ", sizeof known - strlen(known) - 1);
        strncat(known, name, sizeof known - strlen(known) - 1);
    }
    return grd_read_fail_at(&p->reader, word.at, "unknown name '%.*s'; known are %s%s", length_shown(word), word.at,
                            of->op.returns_list ? "grads" : "grad", known);
}

/* Adds a node that reads the value `save` of the autograd node. Adds `save` to p->needs too, unless it is there already. Returns the index of the
 * new node, or 0, with the error raised, on failure. `at`: the position that the error text names. */
static int add_saved(struct parser *p, const char *at, struct grd_save save, grd_kind kind)
{
    struct grd_formula_needs *needs = p->needs;
    int i = 0;
    while (i < needs->nsaves && !(needs->saves[i].how == save.how && needs->saves[i].result == save.result &&
                                  needs->saves[i].index == save.index && needs->saves[i].extra == save.extra))
        i++;
    if (i == GRD_MAX_SAVES)
        return grd_read_fail_at(&p->reader, at, "the formulas save more than %d values", GRD_MAX_SAVES);
    if (i == needs->nsaves)
        needs->saves[needs->nsaves++] = save;
    needs->saves[i].used_by |= (uint16_t)(1u << p->position);
    return add(p, (struct grd_formula_node){.type = GRD_FORMULA_SAVED, .kind = (uint8_t)kind, .which = (uint8_t)i});
}

/* Adds a node for a name that has been read: a constant such as True, a gradient, an argument or a result. Returns the index of the node, or 0,
 * with the error raised, on failure. */
static int read_name(struct parser *p, struct grd_span word)
{
    static const struct {
        const char *word;
        grd_value value;
    } words[] = {
        {"True", {.kind = GRD_KIND_BOOL, .v.boolean = true}},
        {"False", {.kind = GRD_KIND_BOOL, .v.boolean = false}},
        {"None", {.kind = GRD_KIND_NONE}},
        {"inf", {.kind = GRD_KIND_FLOAT, .v.number = (double)INFINITY}},
        {"nan", {.kind = GRD_KIND_FLOAT, .v.number = (double)NAN}},
    };
    for (int i = 0; i < GRD_LENGTH(words); i++)
        if (grd_span_is(word, words[i].word))
            return add_constant(p, words[i].value);
    const int gradient = find_gradient(p, word);
    struct grd_save save;
    grd_kind kind;
    return gradient >= 0 ? add_gradient(p, gradient) : find_saved(p, word, &save, &kind) ? add_saved(p, word.at, save, kind) : 0;
}

/* ---- Facts of tensors ---------------------------------------------------------------------------------------------------------------- */

/* A fact is a property of a tensor, such as its shape. If a formula reads only a fact of an argument or result, the autograd node saves the fact
 * instead of the tensor. */
static const struct fact {
    const char *name;
    uint8_t how, kind;
} facts[] = {
    {"shape", GRD_SAVE_SHAPE, GRD_KIND_DIMS},     {"strides", GRD_SAVE_STRIDES, GRD_KIND_DIMS},
    {"offset", GRD_SAVE_OFFSET, GRD_KIND_INT},    {"dtype", GRD_SAVE_DTYPE, GRD_KIND_DTYPE},
    {"device", GRD_SAVE_DEVICE, GRD_KIND_DEVICE}, {"sizes_along", GRD_SAVE_SIZES_ALONG, GRD_KIND_DIMS},
};

/* Reads the rest of a call such as shape(x) or dtype(x), where x is the name of an argument or result of the operator. The text up to and including
 * this name, `subject`, has been read. The operator's autograd node will save only the shape or dtype, not the tensor. If x is an optional argument,
 * only shape(x) is allowed; its value is None if x is absent. Returns the index of the node for the call, or 0, with the error raised, on failure. */
static int read_saved_fact(struct parser *p, const struct fact *fact, struct grd_span subject)
{
    const struct grd_op *op = &p->needs->of->op;
    const bool along = fact->how == GRD_SAVE_SIZES_ALONG;
    struct grd_span dim;
    struct grd_save save;
    grd_kind kind;
    if (!find_saved(p, subject, &save, &kind))
        return 0;
    save.how = fact->how;
    if (along) {
        const int place =
            grd_read_expect(&p->reader, ",") && grd_read_word(&p->reader, &dim) ? find_argument(op->args, op->nargs, dim) : -1;
        if (place < 0 || op->args[place].kind != GRD_KIND_INT)
            return grd_read_fail(&p->reader, "%s(...) takes the name of an int argument", fact->name);
        save.extra = (uint8_t)place;
    }
    if (kind != (along ? GRD_KIND_TENSORS : GRD_KIND_TENSOR) ||
        (!save.result && op->args[save.index].optional && fact->how != GRD_SAVE_SHAPE))
        return grd_read_fail_at(&p->reader, subject.at, "%s(...) takes a %s", fact->name,
                                along ? "Tensor[] argument" : "Tensor argument that is never absent, or a result");
    return grd_read_expect(&p->reader, ")") ? add_saved(p, subject.at, save, (grd_kind)fact->kind) : 0;
}

/* Reads the rest of a call such as shape(x) or dtype(x) after the opening parenthesis. If `x` is the name of an argument or result, the autograd
 * node saves the shape or dtype instead of the tensor. Otherwise `x` is a gradient or a tensor that the formula computes, and evaluation reads
 * its shape or dtype. Returns the index of the new node, or 0, with the error raised, on failure. */
static int read_fact(struct parser *p, const struct fact *fact)
{
    const struct grd_reader before = p->reader;
    struct grd_span word;
    const bool along = fact->how == GRD_SAVE_SIZES_ALONG, name = grd_read_word(&p->reader, &word), end = grd_read_peek(&p->reader) == ')';
    if (name && (along || (end && find_gradient(p, word) < 0)))
        return read_saved_fact(p, fact, word);
    p->reader = before;
    const char *at = here(p);
    const int child = read_expression(p, 0);
    if (child == 0)
        return 0;
    if (along || kind_of(p, child) != GRD_KIND_TENSOR)
        return grd_read_fail_at(&p->reader, at, "%s(...) takes a %s, not %s", fact->name, along ? "name" : "Tensor",
                                grd_kind_name(kind_of(p, child)));
    return grd_read_expect(&p->reader, ")")
               ? add(p, (struct grd_formula_node){GRD_FORMULA_FACT, fact->kind, fact->how, .child = (uint16_t)child})
               : 0;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------------------ */

/* An operator or function (an element of grd_function_table) that a formula calls. `node` is the formula node for such a call. */
struct callee {
    const char *name;
    const struct grd_arg *args;
    int nargs;
    struct grd_formula_node node;
};

/* Returns the element of grd_function_table named `word`, or NULL if there is none. These functions compute with numbers and sizes. */
static const struct grd_function *find_function(struct grd_span word)
{
    const struct grd_function *function = grd_function_table;
    while (function->name != NULL && !grd_span_is(word, function->name))
        function++;
    return function->name != NULL ? function : NULL;
}

/* Returns the operator that formulas call by `name`, or NULL if there is none. conj() in a formula means conj_physical(), which writes the
 * conjugate to new memory. A lazy conjugate would save nothing, because the operator that reads it would copy it. */
static const grd_op *find_operator(const char *name)
{
    return grd_op_find(strcmp(name, "conj") == 0 ? "conj_physical" : name);
}

/* Finds the function or operator that is named `word`. False, with the error raised, if there is none or a formula cannot call it. */
static bool find_callee(const struct parser *p, struct grd_span word, struct callee *ret_callee)
{
    char name[128] = "";
    if (word.length < (int)sizeof name)
        memcpy(name, word.at, (size_t)word.length);
    const struct grd_function *function = find_function(word);
    if (function != NULL) {
        const struct grd_formula_node node = {.type = GRD_FORMULA_FUNCTION, .kind = function->kind, .v.function = function};
        *ret_callee = (struct callee){function->name, function->args, function->nargs, node};
        return true;
    }
    const grd_op *own = &p->needs->of->op, *op = strcmp(name, own->name) == 0 ? own : find_operator(name);
    if (op == NULL)
        return grd_read_fail_at(&p->reader, word.at, "'%.*s' is not an operator", length_shown(word), word.at);
    if (op->nresults > 1)
        return grd_read_fail_at(&p->reader, word.at, "'%s' has several results; a formula needs one", op->name);
    if (!(op->forms >> GRD_FUNCTIONAL & 1))
        return grd_read_fail_at(&p->reader, word.at, "'%s' has no functional form", op->name);
    const struct grd_formula_node node = {
        .type = GRD_FORMULA_CALL, .kind = op->returns_list ? GRD_KIND_TENSORS : GRD_KIND_TENSOR, .v.op = op};
    *ret_callee = (struct callee){op->name, op->args, op->nargs, node};
    return true;
}

/* Finds out which argument of `callee` comes next in the call, and writes its index to *ret_place. If the text continues with "name =" (but not
 * "name =="), the argument with that name comes next. Otherwise argument *next_place comes next, and *next_place is increased. Bit i of `given` is
 * set if the call has given argument i already. False, with the error raised, on failure. */
static bool read_place(struct parser *p, const struct callee *callee, unsigned given, int *next_place, int *ret_place)
{
    const char *at = here(p);
    const struct grd_reader before = p->reader;
    struct grd_span name;
    if (grd_read_word(&p->reader, &name) && grd_read_peek(&p->reader) == '=' && p->reader.at[1] != '=') {
        p->reader.at++;
        *next_place = callee->nargs + 1;
        *ret_place = find_argument(callee->args, callee->nargs, name);
        return (*ret_place >= 0 && !(given >> *ret_place & 1)) ||
               grd_read_fail_at(&p->reader, at, "'%s' does not take '%.*s' here", callee->name, length_shown(name), name.at);
    }
    p->reader = before;
    *ret_place = (*next_place)++;
    if (*ret_place == callee->nargs)
        return grd_read_fail_at(&p->reader, at, "'%s' takes %d arguments", callee->name, callee->nargs);
    return *ret_place < callee->nargs || grd_read_fail_at(&p->reader, at, "an argument without a name follows one with a name");
}

/* True if a call may omit the argument `arg`. */
static bool may_be_absent(const struct grd_arg *arg)
{
    return arg->optional || arg->value.kind != GRD_KIND_NONE;
}

/* Reads an expression and checks that it can be argument number `place` of the callee. Returns the index of its node, or 0, with the error
 * raised, on failure. */
static int read_argument(struct parser *p, const struct callee *callee, int place)
{
    const struct grd_arg *arg = &callee->args[place];
    const char *at = here(p);
    const int node = read_expression(p, 0);
    if (node == 0)
        return 0;
    if (!(kind_of(p, node) == GRD_KIND_NONE && may_be_absent(arg)) && !converts(node_at(p, node), (grd_kind)arg->kind))
        return grd_read_fail_at(&p->reader, at, "argument '%s' of '%s' must be %s, not %s", arg->name, callee->name,
                                grd_kind_name((grd_kind)arg->kind), grd_kind_name(kind_of(p, node)));
    node_at(p, node)->place = (uint8_t)place;
    return node;
}

/* Appends `child` to the children of `parent`. *last is the last child so far; 0 if there is none yet. */
static void append(const struct parser *p, int parent, int *last, int child)
{
    *(*last != 0 ? &node_at(p, *last)->next : &node_at(p, parent)->child) = (uint16_t)child;
    *last = child;
}

/* Reads the arguments of a call, after the opening parenthesis. `word` is the name of the called function or operator. Returns the index of the
 * call's node, or 0, with the error raised, on failure. */
static int read_call(struct parser *p, struct grd_span word)
{
    struct callee callee = {0};
    const int call = find_callee(p, word, &callee) ? add(p, callee.node) : 0;
    int last = 0, next_place = 0;
    unsigned given = 0;
    while (call != 0 && !grd_read_token(&p->reader, ")")) {
        if (last != 0 && !grd_read_expect(&p->reader, ","))
            return 0;
        int place;
        const int node = read_place(p, &callee, given, &next_place, &place) ? read_argument(p, &callee, place) : 0;
        if (node == 0)
            return 0;
        given |= 1u << place;
        append(p, call, &last, node);
    }
    for (int i = 0; call != 0 && i < callee.nargs; i++)
        if (!(given >> i & 1) && !may_be_absent(&callee.args[i]))
            return grd_read_fail_at(&p->reader, word.at, "'%s' needs '%s'", callee.name, callee.args[i].name);
    return call;
}

/* ---- Atoms ------------------------------------------------------------------------------------------------------------------------ */

/* Reads the rest of a list such as "[a, b]" after the opening bracket. If any element is a tensor, the list is a list of tensors, otherwise a
 * list of integers. Returns the index of the list's node, or 0, with the error raised, on failure. */
static int read_list(struct parser *p)
{
    const int list = add(p, (struct grd_formula_node){.type = GRD_FORMULA_LIST, .kind = GRD_KIND_DIMS});
    int last = 0;
    const char *fraction = NULL;
    while (list != 0 && !grd_read_token(&p->reader, "]")) {
        if (last != 0 && !grd_read_expect(&p->reader, ","))
            return 0;
        const char *at = here(p);
        const int node = read_expression(p, 0);
        if (node == 0)
            return 0;
        if (kind_of(p, node) == GRD_KIND_TENSOR)
            node_at(p, list)->kind = GRD_KIND_TENSORS;
        else if (!is_number(kind_of(p, node)))
            return grd_read_fail_at(&p->reader, at, "a list holds tensors or integers, not %s", grd_kind_name(kind_of(p, node)));
        else if (kind_of(p, node) == GRD_KIND_FLOAT)
            fraction = at;
        append(p, list, &last, node);
    }
    if (list != 0 && fraction != NULL && kind_of(p, list) == GRD_KIND_DIMS)
        return grd_read_fail_at(&p->reader, fraction, "a list holds tensors or integers, not float");
    return list;
}

/* Reads the rest of an expression such as "sizes[i]" after the opening bracket. `list` is the node of `sizes`; errors name the position `at`.
 * Returns the index of the new node, or 0, with the error raised, on failure. */
static int read_item(struct parser *p, const char *at, int list)
{
    const int index = read_expression(p, 0);
    if (index == 0 || !grd_read_expect(&p->reader, "]"))
        return 0;
    if (kind_of(p, list) != GRD_KIND_DIMS || !converts(node_at(p, index), GRD_KIND_INT))
        return grd_read_fail_at(&p->reader, at, "[...] takes int[] and an int, not %s and %s", grd_kind_name(kind_of(p, list)),
                                grd_kind_name(kind_of(p, index)));
    node_at(p, list)->next = (uint16_t)index;
    return add(p, (struct grd_formula_node){GRD_FORMULA_ITEM, GRD_KIND_INT, .child = (uint16_t)list});
}

static int read_number(struct parser *p)
{
    grd_scalar number;
    if (!grd_read_number(&p->reader, &number))
        return 0;
    return add_constant(p, number.kind == GRD_SCALAR_INT ? (grd_value){.kind = GRD_KIND_INT, .v.integer = number.v.i}
                                                         : (grd_value){.kind = GRD_KIND_FLOAT, .v.number = number.v.c.re});
}

/* Reads a string constant. The constant points into formula->text, where a NUL replaces the closing quote. Returns the index of its node, or 0,
 * with the error raised, on failure. */
static int read_string(struct parser *p)
{
    struct grd_span string;
    if (!grd_read_string(&p->reader, &string))
        return 0;
    char *copy = p->formula->text + (string.at - p->reader.text);
    copy[string.length] = '\0';
    return add_constant(p, (grd_value){.kind = GRD_KIND_STRING, .v.string = copy});
}

/* Reads an `atom` of the grammar at the top of this file. Returns the index of its node, or 0, with the error raised, on failure. */
static int read_atom(struct parser *p)
{
    const char next = grd_read_peek(&p->reader);
    struct grd_span word, rest;
    if ((next >= '0' && next <= '9') || next == '.')
        return read_number(p);
    if (next == '\'' || next == '"')
        return read_string(p);
    if (grd_read_token(&p->reader, "["))
        return read_list(p);
    if (grd_read_token(&p->reader, "(")) {
        const int node = read_expression(p, 0);
        return node != 0 && grd_read_expect(&p->reader, ")") ? node : 0;
    }
    if (!grd_read_word(&p->reader, &word))
        return grd_read_fail(&p->reader, "expected a value");
    if (strncmp(p->reader.at, "::", 2) == 0) {
        p->reader.at += 2;
        if (!grd_read_word(&p->reader, &rest))
            return grd_read_fail(&p->reader, "expected the name of an operator");
        word.length = (int)(p->reader.at - word.at);
    }
    if (!grd_read_token(&p->reader, "("))
        return read_name(p, word);
    for (int i = 0; i < GRD_LENGTH(facts); i++)
        if (grd_span_is(word, facts[i].name))
            return read_fact(p, &facts[i]);
    return read_call(p, word);
}

/* ---- Operators -------------------------------------------------------------------------------------------------------------------- */

/* The precedences of operators, as in Python. A higher number binds more strongly. */
enum { CHOICE, OR, AND, NOT, COMPARISON, SUM, PRODUCT, SIGN, POWER };

/* The binary operators (infix) and the unary ones (prefixes) of the language. */
static const struct symbol {
    const char *text;
    uint8_t level, number;  /* level: the precedence; number: the operation on numbers (enum grd_formula_symbol) or NONE */
    const char *of_tensors; /* name of the operator on tensors; NULL if the symbol does not take tensors */
} infix[] =
    {
        /* The first match is taken, so a symbol such as "<" comes after each longer symbol that begins with it, such as "<=". */
        {"or", OR, GRD_SYMBOL_OR, NULL},
        {"and", AND, GRD_SYMBOL_AND, NULL},
        {"==", COMPARISON, GRD_SYMBOL_EQUAL, NULL},
        {"!=", COMPARISON, GRD_SYMBOL_NOT_EQUAL, NULL},
        {"<=", COMPARISON, GRD_SYMBOL_LESS_EQUAL, NULL},
        {">=", COMPARISON, GRD_SYMBOL_GREATER_EQUAL, NULL},
        {"<", COMPARISON, GRD_SYMBOL_LESS, NULL},
        {">", COMPARISON, GRD_SYMBOL_GREATER, NULL},
        {"is", COMPARISON, GRD_SYMBOL_NONE, NULL},
        {"in", COMPARISON, GRD_SYMBOL_EQUAL, NULL},
        {"+", SUM, GRD_SYMBOL_ADD, "add"},
        {"-", SUM, GRD_SYMBOL_SUBTRACT, "sub"},
        {"**", POWER, GRD_SYMBOL_NONE, "pow"},
        {"*", PRODUCT, GRD_SYMBOL_MULTIPLY, "mul"},
        {"/", PRODUCT, GRD_SYMBOL_DIVIDE, "div"},
},
  prefixes[] = {{"not", NOT, GRD_SYMBOL_NOT, NULL}, {"-", SIGN, GRD_SYMBOL_NEGATE, "neg"}};

/* If one of the n symbols comes next and its precedence is at least `level`, reads and returns it; otherwise returns NULL. */
static const struct symbol *read_symbol(struct parser *p, const struct symbol *symbols, int n, int level)
{
    for (int i = 0; i < n; i++) {
        const char *text = symbols[i].text;
        if (symbols[i].level >= level && (*text >= 'a' ? grd_read_keyword(&p->reader, text) : grd_read_token(&p->reader, text)))
            return &symbols[i];
    }
    return NULL;
}

/* True if a value of this kind can be an operand of the symbol. */
static bool is_operand(grd_kind kind, const struct symbol *symbol)
{
    return is_number(kind) || (kind == GRD_KIND_TENSOR && symbol->of_tensors != NULL);
}

/* True if the symbol is == or != and its operands are two strings, two dtypes, or a dtype and a dtype's name. (Strings and dtypes have no order.) */
static bool are_names(const struct parser *p, const struct symbol *symbol, int left, int right)
{
    if (left == 0 || (symbol->number != GRD_SYMBOL_EQUAL && symbol->number != GRD_SYMBOL_NOT_EQUAL))
        return false;
    return kind_of(p, left) == GRD_KIND_DTYPE ? to_dtype(node_at(p, right))
                                              : kind_of(p, left) == GRD_KIND_STRING && kind_of(p, right) == GRD_KIND_STRING;
}

/* Adds a node that applies `symbol` to the nodes `left` and `right`; `left` is 0 for a unary symbol. If an operand is a tensor, the node calls an
 * operator, otherwise it computes with numbers. Returns the index of the node, or 0, with the error raised, on failure. */
static int add_operation(struct parser *p, const char *at, const struct symbol *symbol, int left, int right)
{
    const bool names = are_names(p, symbol, left, right);
    const grd_kind b = kind_of(p, right), a = left != 0 ? kind_of(p, left) : b;
    const int first = left != 0 ? left : right;
    node_at(p, first)->next = (uint16_t)(left != 0 ? right : 0);
    node_at(p, right)->place = left != 0;
    struct grd_formula_node node = {.type = GRD_FORMULA_NUMBER, .which = symbol->number, .child = (uint16_t)first};
    if (!names && !(is_operand(a, symbol) && is_operand(b, symbol)))
        return grd_read_fail_at(&p->reader, at, "'%s' takes %snumbers, not %s", symbol->text,
                                symbol->of_tensors != NULL ? "tensors and " : "", grd_kind_name(is_operand(a, symbol) ? b : a));
    if (a == GRD_KIND_TENSOR || b == GRD_KIND_TENSOR) {
        node.type = GRD_FORMULA_CALL;
        node.kind = GRD_KIND_TENSOR;
        node.v.op = grd_op_find(symbol->of_tensors);
    } else if (node.which == GRD_SYMBOL_NONE) {
        return grd_read_fail_at(&p->reader, at, "'%s' needs a tensor", symbol->text);
    } else {
        const bool integers =
            node.which != GRD_SYMBOL_DIVIDE && (a == GRD_KIND_INT || a == GRD_KIND_BOOL) && (b == GRD_KIND_INT || b == GRD_KIND_BOOL);
        node.kind = symbol->level <= COMPARISON ? GRD_KIND_BOOL : integers ? GRD_KIND_INT : GRD_KIND_FLOAT;
    }
    return add(p, node);
}

/* Reads the rest of "x in (a, b)" after its "in", as if it were "x == a or x == b". `value` is the node of x. Returns the index of the new node,
 * or 0, with the error raised, on failure. */
static int read_choices(struct parser *p, const char *at, const struct symbol *symbol, int value)
{
    static const struct symbol any = {"or", OR, GRD_SYMBOL_OR, NULL};
    int found = 0;
    if (!grd_read_expect(&p->reader, "("))
        return 0;
    do {
        const int item = read_expression(p, SUM), same = found != 0 && item != 0 ? add(p, *node_at(p, value)) : value;
        const int equal = item != 0 && same != 0 ? add_operation(p, at, symbol, same, item) : 0;
        found = equal != 0 && found != 0 ? add_operation(p, at, &any, found, equal) : equal;
    } while (found != 0 && grd_read_token(&p->reader, ","));
    return found != 0 && grd_read_expect(&p->reader, ")") ? found : 0;
}

/* Reads the rest of "x is None" or "x is not None" after its "is". `node` is the node of x. Returns the index of the new node, or 0, with the
 * error raised, on failure. */
static int read_is_none(struct parser *p, int node)
{
    const bool negated = grd_read_keyword(&p->reader, "not");
    if (!grd_read_keyword(&p->reader, "None"))
        return grd_read_fail(&p->reader, "expected 'None'");
    return add(p, (struct grd_formula_node){GRD_FORMULA_IS_NONE, GRD_KIND_BOOL, .which = negated, .child = (uint16_t)node});
}

/* Writes to *ret_kind the kind of "yes if test else no" for the kinds `yes` and `no`. A number and a tensor give a tensor. If one of the
 * kinds is None, the result is the other kind. False if there is no common kind. */
static bool find_common_kind(grd_kind yes, grd_kind no, grd_kind *ret_kind)
{
    const bool tensors = (yes == GRD_KIND_TENSOR || is_number(yes)) && (no == GRD_KIND_TENSOR || is_number(no));
    *ret_kind = yes == no || no == GRD_KIND_NONE  ? yes
                : yes == GRD_KIND_NONE            ? no
                : is_number(yes) && is_number(no) ? GRD_KIND_FLOAT
                                                  : GRD_KIND_TENSOR;
    return *ret_kind != GRD_KIND_TENSOR || tensors || yes == no || yes == GRD_KIND_NONE || no == GRD_KIND_NONE;
}

/* Reads the rest of "yes if test else no" after its "if". `yes` is the node of the first value, and `at` is where the expression begins. Returns
 * the index of the new node, or 0, with the error raised, on failure. */
static int read_choice(struct parser *p, const char *at, int yes)
{
    const char *test_at = here(p);
    const int test = read_expression(p, OR);
    if (test == 0)
        return 0;
    if (!is_number(kind_of(p, test)))
        return grd_read_fail_at(&p->reader, test_at, "%s is no condition: say 'is None' or compare", grd_kind_name(kind_of(p, test)));
    if (!grd_read_keyword(&p->reader, "else"))
        return grd_read_fail(&p->reader, "expected 'else'");
    const int no = read_expression(p, CHOICE);
    if (no == 0)
        return 0;
    grd_kind kind;
    if (!find_common_kind(kind_of(p, yes), kind_of(p, no), &kind))
        return grd_read_fail_at(&p->reader, at, "one side is %s, the other %s", grd_kind_name(kind_of(p, yes)),
                                grd_kind_name(kind_of(p, no)));
    node_at(p, yes)->next = (uint16_t)test;
    node_at(p, test)->next = (uint16_t)no;
    return add(p, (struct grd_formula_node){GRD_FORMULA_CHOICE, (uint8_t)kind, .child = (uint16_t)yes});
}

/* Reads an operand and all following pairs of symbol and operand, as long as the precedence of the symbol is at least `level`. Chained comparisons
 * such as "a < b < c", which Python allows, are an error. Returns the index of the node of the whole expression, or 0, with the error raised, on
 * failure. */
static int read_operations(struct parser *p, int level)
{
    const char *start = here(p), *at = start;
    const struct symbol *symbol = read_symbol(p, prefixes, GRD_LENGTH(prefixes), level);
    int node = symbol != NULL ? read_expression(p, symbol->level) : read_atom(p);
    while (node != 0 && symbol == NULL && grd_read_token(&p->reader, "["))
        node = read_item(p, start, node);
    if (node != 0 && symbol != NULL)
        node = add_operation(p, at, symbol, 0, node);
    for (bool compared = false; node != 0; compared = symbol->level == COMPARISON) {
        at = here(p);
        symbol = read_symbol(p, infix, GRD_LENGTH(infix), level);
        if (symbol == NULL)
            return level == CHOICE && grd_read_keyword(&p->reader, "if") ? read_choice(p, start, node) : node;
        if (compared && symbol->level == COMPARISON)
            return grd_read_fail_at(&p->reader, at, "comparisons are not chained");
        if (strcmp(symbol->text, "is") == 0) {
            node = read_is_none(p, node);
        } else if (strcmp(symbol->text, "in") == 0) {
            node = read_choices(p, at, symbol, node);
        } else {
            /* Powers are right-associative and their exponent may be negative: 2 ** -x ** y is 2 ** -(x ** y). */
            const int right = read_expression(p, symbol->level == POWER ? SIGN : symbol->level + 1);
            node = right != 0 ? add_operation(p, at, symbol, node, right) : 0;
        }
    }
    return 0;
}

static int read_expression(struct parser *p, int level)
{
    if (p->depth == MAX_DEPTH)
        return grd_read_fail(&p->reader, "nested more than %d deep", MAX_DEPTH);
    p->depth++;
    const int node = read_operations(p, level);
    p->depth--;
    return node;
}

/* ---- A formula --------------------------------------------------------------------------------------------------------------------- */

/* Reads the whole text and checks that its value can be the gradient of an argument of kind `wanted`. False, with the error raised, on failure. */
static bool read_whole(struct parser *p, grd_kind wanted)
{
    const char *at = here(p);
    const int root = read_expression(p, CHOICE);
    p->formula->root = root;
    if (root == 0)
        return false;
    if (grd_read_peek(&p->reader) != '\0')
        return grd_read_fail(&p->reader, "expected the end or an operator");
    const grd_kind kind = kind_of(p, root);
    return kind == GRD_KIND_NONE || converts(node_at(p, root), wanted) ||
           grd_read_fail_at(&p->reader, at, "the gradient of a %s cannot be %s", grd_kind_name(wanted), grd_kind_name(kind));
}

struct grd_formula *grd_formula_read(struct grd_formula_needs *needs, int arg, int position, const char *text)
{
    struct grd_formula *formula = grd_alloc_zeroed(sizeof *formula);
    if (formula == NULL)
        return NULL;
    formula->n = 1;
    formula->text_size = strlen(text) + 1;
    formula->text = grd_alloc(formula->text_size);
    formula->nodes = grd_alloc_zeroed(sizeof *formula->nodes);
    const struct grd_arg *of = &needs->of->op.args[arg];
    char what[96];
    snprintf(what, sizeof what, "gradient of '%.60s'", of->name);
    struct parser parser = {.reader = {.text = text, .at = text, .what = what}, .formula = formula, .needs = needs, .position = position};
    if (formula->text != NULL && formula->nodes != NULL && memcpy(formula->text, text, formula->text_size) &&
        read_whole(&parser, (grd_kind)of->kind))
        return formula;
    grd_formula_free(formula);
    return NULL;
}

void grd_formula_free(struct grd_formula *formula)
{
    if (formula == NULL)
        return;
    grd_free(formula->nodes, (size_t)formula->n * sizeof *formula->nodes);
    grd_free(formula->text, formula->text_size);
    grd_free(formula, sizeof *formula);
}
