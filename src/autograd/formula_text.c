/* Reads gradient formulas: a part of Python's expressions, by recursive descent, with Python's precedence.
 *
 *     choice     = or ["if" or "else" choice]
 *     or, and    = … {"or" …}, … {"and" …}
 *     not        = "not" not | comparison
 *     comparison = sum [("==" | "!=" | "<" | "<=" | ">" | ">=") sum | "is" ["not"] "None"]
 *     sum        = term {("+" | "-") term}
 *     term       = factor {("*" | "/") factor}
 *     factor     = "-" factor | atom ["**" factor]
 *     atom       = number | "inf" | string | True | False | None | name | fact | call | "(" choice ")" | tuple | list
 *
 * Kinds are checked here, so that an error comes when the operator is defined and says where. */
#include "autograd/formula_tree.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/reader.h"

/* Nesting and parts are limited, so that neither reading nor evaluating runs out of stack. */
enum { NONE = -1, MAX_DEPTH = 100, MAX_PARTS = 500 };

struct parser {
    struct grd_reader reader;
    struct grd_formula *formula;
    struct grd_formula_needs *needs;
    int position, depth;
};

static int read_choice(struct parser *p);

/* ---- Nodes ---------------------------------------------------------------------------------------------------------------------- */

static int add_node(struct parser *p, enum grd_formula_type type, grd_kind kind, int child)
{
    struct grd_formula *formula = p->formula;
    if (formula->n == MAX_PARTS) {
        grd_read_fail(&p->reader, "a formula has at most %d parts, not more", MAX_PARTS);
        return NONE;
    }
    if (formula->n == formula->capacity) {
        const int capacity = formula->capacity ? 2 * formula->capacity : 16;
        struct grd_formula_node *nodes =
            grd_realloc(formula->nodes, (size_t)formula->capacity * sizeof *nodes, (size_t)capacity * sizeof *nodes);
        if (nodes == NULL)
            return NONE;
        formula->nodes = nodes;
        formula->capacity = capacity;
    }
    formula->nodes[formula->n] = (struct grd_formula_node){.type = (uint8_t)type, .kind = (uint8_t)kind, .child = child, .next = NONE};
    return formula->n++;
}

static struct grd_formula_node *node_at(const struct parser *p, int node)
{
    return &p->formula->nodes[node];
}

static int add_which(struct parser *p, enum grd_formula_type type, grd_kind kind, int child, int which)
{
    const int node = add_node(p, type, kind, child);
    if (node != NONE)
        node_at(p, node)->which = (uint8_t)which;
    return node;
}

static int add_constant(struct parser *p, grd_value value)
{
    const int node = add_node(p, GRD_FORMULA_CONSTANT, value.kind, NONE);
    if (node != NONE)
        node_at(p, node)->constant = value;
    return node;
}

static int add_pair(struct parser *p, enum grd_formula_type type, grd_kind kind, int left, int right)
{
    node_at(p, left)->next = right;
    return add_node(p, type, kind, left);
}

/* ---- Kinds ----------------------------------------------------------------------------------------------------------------------- */

static grd_kind kind_of(const struct parser *p, int node)
{
    return (grd_kind)node_at(p, node)->kind;
}

static bool is_number(grd_kind kind)
{
    return kind == GRD_KIND_SCALAR || kind == GRD_KIND_INT || kind == GRD_KIND_FLOAT || kind == GRD_KIND_BOOL;
}

static bool is_integer(grd_kind kind)
{
    return kind == GRD_KIND_INT || kind == GRD_KIND_BOOL;
}

static bool check_number(const struct parser *p, const char *at, int node)
{
    return is_number(kind_of(p, node)) || grd_read_fail_at(&p->reader, at, "expected a number, not %s", grd_kind_name(kind_of(p, node)));
}

static bool check_condition(const struct parser *p, const char *at, int node)
{
    return is_number(kind_of(p, node)) ||
           grd_read_fail_at(&p->reader, at, "%s is no condition: say 'is None' or compare", grd_kind_name(kind_of(p, node)));
}

/* A string that stands for a dtype becomes one. */
static bool to_dtype(struct grd_formula_node *node)
{
    if (node->type != GRD_FORMULA_CONSTANT || node->kind != GRD_KIND_STRING)
        return false;
    for (int dtype = GRD_DTYPE_NONE + 1; dtype < GRD_DTYPE_COUNT; dtype++)
        if (strcmp(grd_dtype_name((grd_dtype)dtype), node->constant.v.string) == 0) {
            node->kind = GRD_KIND_DTYPE;
            node->constant = (grd_value){.kind = GRD_KIND_DTYPE, .v.dtype = (grd_dtype)dtype};
            return true;
        }
    return false;
}

static bool converts(struct grd_formula_node *node, grd_kind wanted)
{
    const grd_kind kind = (grd_kind)node->kind;
    switch (wanted) {
    case GRD_KIND_TENSOR:
    case GRD_KIND_SCALAR:
    case GRD_KIND_FLOAT:
        return kind == wanted || is_number(kind);
    case GRD_KIND_INT:
        return is_integer(kind) || kind == GRD_KIND_SCALAR;
    case GRD_KIND_BOOL:
        return kind == GRD_KIND_BOOL || kind == GRD_KIND_SCALAR;
    case GRD_KIND_DIMS:
        return kind == GRD_KIND_DIMS || kind == GRD_KIND_INT;
    case GRD_KIND_DTYPE:
        return kind == GRD_KIND_DTYPE || to_dtype(node);
    default:
        return kind == wanted;
    }
}

/* ---- Names ----------------------------------------------------------------------------------------------------------------------- */

static int length_shown(struct grd_span word)
{
    return word.length > 60 ? 60 : word.length;
}

static int find_argument(const struct parser *p, struct grd_span word)
{
    const struct grd_op *op = &p->needs->of->op;
    for (int i = 0; i < op->nargs; i++)
        if (grd_span_is(word, op->args[i].name))
            return i;
    return NONE;
}

static int find_result(const struct parser *p, struct grd_span word)
{
    for (int i = 0; i < p->needs->of->op.nresults; i++)
        if (grd_span_is(word, p->needs->of->results[i]))
            return i;
    return NONE;
}

/* "grad", or with several results "grad_<name>", "grad" being the first. */
static int find_gradient(const struct parser *p, struct grd_span word)
{
    const struct grd_op *op = &p->needs->of->op;
    if (op->returns_list)
        return grd_span_is(word, "grads") ? 0 : NONE;
    if (grd_span_is(word, "grad"))
        return 0;
    if (op->nresults == 1 || word.length <= 5 || memcmp(word.at, "grad_", 5) != 0)
        return NONE;
    return find_result(p, (struct grd_span){word.at + 5, word.length - 5});
}

static int add_saved(struct parser *p, const char *at, struct grd_save save, grd_kind kind)
{
    struct grd_formula_needs *needs = p->needs;
    int i = 0;
    while (i < needs->nsaves && !(needs->saves[i].how == save.how && needs->saves[i].result == save.result &&
                                  needs->saves[i].index == save.index && needs->saves[i].extra == save.extra))
        i++;
    if (i == GRD_MAX_SAVES) {
        grd_read_fail_at(&p->reader, at, "the formulas save more than %d values", GRD_MAX_SAVES);
        return NONE;
    }
    if (i == needs->nsaves)
        needs->saves[needs->nsaves++] = save;
    needs->saves[i].used_by |= (uint16_t)(1u << p->position);
    return add_which(p, GRD_FORMULA_SAVED, kind, NONE, i);
}

static int unknown_name(const struct parser *p, struct grd_span word)
{
    const struct grd_defined_op *of = p->needs->of;
    char known[160] = "";
    for (int i = 0; i < of->op.nargs + of->op.nresults; i++) {
        const char *name = i < of->op.nargs ? of->op.args[i].name : of->results[i - of->op.nargs];
        strncat(known, ", ", sizeof known - strlen(known) - 1);
        strncat(known, name, sizeof known - strlen(known) - 1);
    }
    grd_read_fail_at(&p->reader, word.at, "unknown name '%.*s'; known are %s%s", length_shown(word), word.at,
                     of->op.returns_list ? "grads" : "grad", known);
    return NONE;
}

static int add_gradient(struct parser *p, int result)
{
    p->needs->results |= 1u << result;
    const bool list = p->needs->of->op.returns_list;
    return add_which(p, list ? GRD_FORMULA_GRADIENTS : GRD_FORMULA_GRADIENT, list ? GRD_KIND_TENSORS : GRD_KIND_TENSOR, NONE, result);
}

static int read_name(struct parser *p, struct grd_span word)
{
    const struct grd_op *op = &p->needs->of->op;
    int i;
    if ((i = find_gradient(p, word)) != NONE)
        return add_gradient(p, i);
    if ((i = find_argument(p, word)) != NONE)
        return add_saved(p, word.at, (struct grd_save){.how = grd_save_whole((grd_kind)op->args[i].kind), .index = (uint8_t)i},
                         (grd_kind)op->args[i].kind);
    if ((i = find_result(p, word)) != NONE) {
        const grd_kind kind = op->returns_list ? GRD_KIND_TENSORS : GRD_KIND_TENSOR;
        return add_saved(p, word.at, (struct grd_save){.how = grd_save_whole(kind), .result = true, .index = (uint8_t)i}, kind);
    }
    return unknown_name(p, word);
}

/* ---- Facts: shape(x), strides(x), offset(x), dtype(x), device(x), sizes_along(xs, dim) --------------------------------------------------------- */

static const struct fact {
    const char *name;
    uint8_t how, kind;
} facts[] = {
    {"shape", GRD_SAVE_SHAPE, GRD_KIND_DIMS},     {"strides", GRD_SAVE_STRIDES, GRD_KIND_DIMS},
    {"offset", GRD_SAVE_OFFSET, GRD_KIND_INT},    {"dtype", GRD_SAVE_DTYPE, GRD_KIND_DTYPE},
    {"device", GRD_SAVE_DEVICE, GRD_KIND_DEVICE}, {"sizes_along", GRD_SAVE_SIZES_ALONG, GRD_KIND_DIMS},
};

static const struct fact *find_fact(struct grd_span word)
{
    for (int i = 0; i < GRD_LENGTH(facts); i++)
        if (grd_span_is(word, facts[i].name))
            return &facts[i];
    return NULL;
}

/* What the fact is taken of must be there; of an argument that may be absent only the shape is known: None. */
static int saved_fact(struct parser *p, const struct fact *fact, struct grd_span subject, int extra)
{
    const struct grd_op *op = &p->needs->of->op;
    const int arg = find_argument(p, subject), result = arg == NONE ? find_result(p, subject) : NONE;
    if (arg == NONE && result == NONE)
        return unknown_name(p, subject);
    const bool list = arg != NONE ? op->args[arg].kind == GRD_KIND_TENSORS : op->returns_list;
    const bool tensor =
        list || arg == NONE || (op->args[arg].kind == GRD_KIND_TENSOR && (!op->args[arg].optional || fact->how == GRD_SAVE_SHAPE));
    if (!tensor || list != (fact->how == GRD_SAVE_SIZES_ALONG) || (list && arg == NONE)) {
        grd_read_fail_at(&p->reader, subject.at, "%s(...) takes a %s argument%s", fact->name,
                         fact->how == GRD_SAVE_SIZES_ALONG ? "Tensor[]" : "Tensor",
                         fact->how == GRD_SAVE_SIZES_ALONG ? "" : " that is never absent, or a result");
        return NONE;
    }
    const struct grd_save save = {
        .how = fact->how, .result = arg == NONE, .index = (uint8_t)(arg != NONE ? arg : result), .extra = (uint8_t)extra};
    return add_saved(p, subject.at, save, (grd_kind)fact->kind);
}

static int read_fact(struct parser *p, const struct fact *fact)
{
    struct grd_span subject, dim;
    int extra = 0;
    if (!grd_read_word(&p->reader, &subject)) {
        grd_read_fail(&p->reader, "%s(...) takes a name", fact->name);
        return NONE;
    }
    if (fact->how == GRD_SAVE_SIZES_ALONG) {
        if (!grd_read_expect(&p->reader, ","))
            return NONE;
        if (!grd_read_word(&p->reader, &dim) || (extra = find_argument(p, dim)) == NONE ||
            p->needs->of->op.args[extra].kind != GRD_KIND_INT) {
            grd_read_fail(&p->reader, "%s(...) takes the name of an int argument", fact->name);
            return NONE;
        }
    }
    if (!grd_read_expect(&p->reader, ")"))
        return NONE;
    const int gradient = find_gradient(p, subject);
    if (gradient == NONE || p->needs->of->op.returns_list || fact->how == GRD_SAVE_SIZES_ALONG)
        return saved_fact(p, fact, subject, extra);
    const int child = add_gradient(p, gradient);
    return child == NONE ? NONE : add_which(p, GRD_FORMULA_FACT, (grd_kind)fact->kind, child, fact->how);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------------------------ */

static const grd_op *find_callee(struct parser *p, struct grd_span name)
{
    char text[128];
    const grd_op *op = NULL;
    if (name.length < (int)sizeof text) {
        memcpy(text, name.at, (size_t)name.length);
        text[name.length] = '\0';
        op = strcmp(text, p->needs->of->op.name) == 0 ? &p->needs->of->op : grd_op_find(text);
    }
    if (op == NULL)
        grd_read_fail_at(&p->reader, name.at, "'%.*s' is not an operator", length_shown(name), name.at);
    else if (op->nresults > 1)
        grd_read_fail_at(&p->reader, name.at, "'%s' has several results; a formula needs one", op->name);
    else if (!(op->forms >> GRD_FUNCTIONAL & 1))
        grd_read_fail_at(&p->reader, name.at, "'%s' has no functional form", op->name);
    return grd_pending() ? NULL : op;
}

static int op_argument(const grd_op *op, struct grd_span name)
{
    for (int i = 0; i < op->nargs; i++)
        if (grd_span_is(name, op->args[i].name))
            return i;
    return NONE;
}

/* "name =" before an argument; "name == x" is a comparison. */
static bool read_keyword_name(struct parser *p, struct grd_span *ret_name)
{
    const struct grd_reader before = p->reader;
    if (grd_read_word(&p->reader, ret_name) && grd_read_peek(&p->reader) == '=' && p->reader.at[1] != '=') {
        p->reader.at++;
        return true;
    }
    p->reader = before;
    return false;
}

static bool check_argument(struct parser *p, const char *at, const grd_op *op, int place, int node)
{
    const struct grd_arg *arg = &op->args[place];
    const bool absent = kind_of(p, node) == GRD_KIND_NONE && (arg->optional || arg->value.kind != GRD_KIND_NONE);
    return absent || converts(node_at(p, node), (grd_kind)arg->kind) ||
           grd_read_fail_at(&p->reader, at, "argument '%s' of '%s' must be %s, not %s", arg->name, op->name,
                            grd_kind_name((grd_kind)arg->kind), grd_kind_name(kind_of(p, node)));
}

/* One argument of a call: its node, with its place. */
static int read_call_argument(struct parser *p, const grd_op *op, int *next_place, unsigned *given)
{
    struct grd_span name;
    grd_read_peek(&p->reader);
    const char *at = p->reader.at;
    const bool keyword = read_keyword_name(p, &name);
    int place = *next_place;
    if (keyword) {
        place = op_argument(op, name);
        *next_place = op->nargs + 1;
        if (place == NONE || (*given >> place & 1)) {
            grd_read_fail_at(&p->reader, at, "'%s' does not take '%.*s' here", op->name, length_shown(name), name.at);
            return NONE;
        }
    } else if (place >= op->nargs) {
        if (place > op->nargs)
            grd_read_fail_at(&p->reader, at, "an argument without a name follows one with a name");
        else
            grd_read_fail_at(&p->reader, at, "'%s' takes %d arguments", op->name, op->nargs);
        return NONE;
    } else {
        ++*next_place;
    }
    grd_read_peek(&p->reader);
    at = p->reader.at;
    const int node = read_choice(p);
    if (node == NONE || !check_argument(p, at, op, place, node))
        return NONE;
    *given |= 1u << place;
    node_at(p, node)->place = (uint8_t)place;
    return node;
}

static int read_call(struct parser *p, struct grd_span name)
{
    const grd_op *op = find_callee(p, name);
    if (op == NULL)
        return NONE;
    const int call = add_node(p, GRD_FORMULA_CALL, op->returns_list ? GRD_KIND_TENSORS : GRD_KIND_TENSOR, NONE);
    if (call == NONE)
        return NONE;
    node_at(p, call)->op = op;
    int last = NONE, place = 0;
    unsigned given = 0;
    while (!grd_read_token(&p->reader, ")")) {
        if (last != NONE && !grd_read_expect(&p->reader, ","))
            return NONE;
        const int node = read_call_argument(p, op, &place, &given);
        if (node == NONE)
            return NONE;
        if (last == NONE)
            node_at(p, call)->child = node;
        else
            node_at(p, last)->next = node;
        last = node;
    }
    for (int i = 0; i < op->nargs; i++)
        if (!(given >> i & 1) && !op->args[i].optional && op->args[i].value.kind == GRD_KIND_NONE) {
            grd_read_fail_at(&p->reader, name.at, "'%s' needs '%s'", op->name, op->args[i].name);
            return NONE;
        }
    return call;
}

/* ---- Atoms ------------------------------------------------------------------------------------------------------------------------ */

struct items {
    int first, last;
    bool tensors, integers;
};

static bool add_item(const struct parser *p, struct items *items, const char *at, int node)
{
    const grd_kind kind = kind_of(p, node);
    if (kind != GRD_KIND_TENSOR && !is_number(kind))
        return grd_read_fail_at(&p->reader, at, "a list holds tensors or integers, not %s", grd_kind_name(kind));
    items->tensors = items->tensors || kind == GRD_KIND_TENSOR;
    items->integers = items->integers && kind != GRD_KIND_FLOAT;
    if (items->first == NONE)
        items->first = node;
    else
        node_at(p, items->last)->next = node;
    items->last = node;
    return true;
}

/* The rest of "[a, b]" or "(a, b)", of which `first` was read already: of tensors when one is a tensor, otherwise of integers. */
static int read_list(struct parser *p, const char *start, int first, const char *closing)
{
    struct items items = {NONE, NONE, false, true};
    if (first != NONE && !add_item(p, &items, start, first))
        return NONE;
    while (!grd_read_token(&p->reader, closing)) {
        if (items.first != NONE && !grd_read_expect(&p->reader, ","))
            return NONE;
        if (items.first != NONE && grd_read_token(&p->reader, closing))
            break;
        grd_read_peek(&p->reader);
        const char *at = p->reader.at;
        const int node = read_choice(p);
        if (node == NONE || !add_item(p, &items, at, node))
            return NONE;
    }
    if (!items.tensors && !items.integers) {
        grd_read_fail_at(&p->reader, start, "a list holds tensors or integers, not float");
        return NONE;
    }
    return add_node(p, GRD_FORMULA_LIST, items.tensors ? GRD_KIND_TENSORS : GRD_KIND_DIMS, items.first);
}

static int read_parenthesis(struct parser *p, const char *start)
{
    if (grd_read_peek(&p->reader) == ')')
        return read_list(p, start, NONE, ")");
    const int node = read_choice(p);
    if (node == NONE)
        return NONE;
    if (grd_read_peek(&p->reader) == ',')
        return read_list(p, start, node, ")");
    return grd_read_expect(&p->reader, ")") ? node : NONE;
}

static int read_number(struct parser *p)
{
    grd_scalar number;
    if (!grd_read_number(&p->reader, &number))
        return NONE;
    if (number.kind == GRD_SCALAR_INT)
        return add_constant(p, (grd_value){.kind = GRD_KIND_INT, .v.integer = number.v.i});
    return add_constant(p, (grd_value){.kind = GRD_KIND_FLOAT, .v.number = number.v.c.re});
}

static int read_text(struct parser *p)
{
    struct grd_span text;
    if (!grd_read_string(&p->reader, &text))
        return NONE;
    char *copy = p->formula->strings + p->formula->string_room;
    memcpy(copy, text.at, (size_t)text.length);
    copy[text.length] = '\0';
    p->formula->string_room += (size_t)text.length + 1;
    return add_constant(p, (grd_value){.kind = GRD_KIND_STRING, .v.string = copy});
}

/* A name, perhaps with the namespace of an operator, and what it begins. */
static int read_named(struct parser *p)
{
    struct grd_span word, rest;
    if (grd_read_keyword(&p->reader, "True"))
        return add_constant(p, (grd_value){.kind = GRD_KIND_BOOL, .v.boolean = true});
    if (grd_read_keyword(&p->reader, "False"))
        return add_constant(p, (grd_value){.kind = GRD_KIND_BOOL, .v.boolean = false});
    if (grd_read_keyword(&p->reader, "None"))
        return add_constant(p, (grd_value){.kind = GRD_KIND_NONE});
    if (grd_read_keyword(&p->reader, "inf"))
        return add_constant(p, (grd_value){.kind = GRD_KIND_FLOAT, .v.number = INFINITY});
    if (!grd_read_word(&p->reader, &word)) {
        grd_read_fail(&p->reader, "expected a value");
        return NONE;
    }
    if (strncmp(p->reader.at, "::", 2) == 0) {
        p->reader.at += 2;
        if (!grd_read_word(&p->reader, &rest)) {
            grd_read_fail(&p->reader, "expected the name of an operator");
            return NONE;
        }
        word.length = (int)(p->reader.at - word.at);
    }
    if (!grd_read_token(&p->reader, "("))
        return read_name(p, word);
    const struct fact *fact = find_fact(word);
    return fact != NULL ? read_fact(p, fact) : read_call(p, word);
}

static int read_atom(struct parser *p)
{
    const char next = grd_read_peek(&p->reader), *start = p->reader.at;
    if ((next >= '0' && next <= '9') || next == '.')
        return read_number(p);
    if (next == '\'' || next == '"')
        return read_text(p);
    if (grd_read_token(&p->reader, "("))
        return read_parenthesis(p, start);
    if (grd_read_token(&p->reader, "["))
        return read_list(p, start, NONE, "]");
    return read_named(p);
}

/* ---- Arithmetic -------------------------------------------------------------------------------------------------------------------- */

/* Calls the operator on tensors, computes with numbers at once. */
static int add_arithmetic(struct parser *p, const char *at, const char *name, const char *symbol, int left, int right)
{
    const bool tensors = kind_of(p, left) == GRD_KIND_TENSOR || kind_of(p, right) == GRD_KIND_TENSOR;
    for (int side = 0; side < 2; side++) {
        const int node = side ? right : left;
        if (!(tensors && kind_of(p, node) == GRD_KIND_TENSOR) && !is_number(kind_of(p, node))) {
            grd_read_fail_at(&p->reader, at, "'%s' takes tensors and numbers, not %s", symbol, grd_kind_name(kind_of(p, node)));
            return NONE;
        }
    }
    if (tensors) {
        const int call = add_pair(p, GRD_FORMULA_CALL, GRD_KIND_TENSOR, left, right);
        if (call == NONE)
            return NONE;
        node_at(p, left)->place = 0;
        node_at(p, right)->place = 1;
        node_at(p, call)->op = grd_op_find(name);
        return call;
    }
    if (strcmp(symbol, "**") == 0) {
        grd_read_fail_at(&p->reader, at, "'**' needs a tensor");
        return NONE;
    }
    const bool integer = *symbol != '/' && is_integer(kind_of(p, left)) && is_integer(kind_of(p, right));
    const int node = add_pair(p, GRD_FORMULA_ARITHMETIC, integer ? GRD_KIND_INT : GRD_KIND_FLOAT, left, right);
    if (node != NONE)
        node_at(p, node)->which = (uint8_t)*symbol;
    return node;
}

static int add_negation(struct parser *p, const char *at, int operand)
{
    if (kind_of(p, operand) == GRD_KIND_TENSOR) {
        const int call = add_node(p, GRD_FORMULA_CALL, GRD_KIND_TENSOR, operand);
        if (call == NONE)
            return NONE;
        node_at(p, operand)->place = 0;
        node_at(p, call)->op = grd_op_find("neg");
        return call;
    }
    if (!check_number(p, at, operand))
        return NONE;
    return add_node(p, GRD_FORMULA_NEGATE, is_integer(kind_of(p, operand)) ? GRD_KIND_INT : GRD_KIND_FLOAT, operand);
}

/* Whatever nests passes here, but for `not`. */
static int read_factor(struct parser *p)
{
    if (++p->depth > MAX_DEPTH) {
        grd_read_fail(&p->reader, "nested more than %d deep", MAX_DEPTH);
        return NONE;
    }
    grd_read_peek(&p->reader);
    const char *at = p->reader.at;
    int node;
    if (grd_read_token(&p->reader, "-")) {
        node = read_factor(p);
        node = node == NONE ? NONE : add_negation(p, at, node);
    } else {
        node = read_atom(p);
        grd_read_peek(&p->reader);
        at = p->reader.at;
        if (node != NONE && grd_read_token(&p->reader, "**")) {
            const int exponent = read_factor(p);
            node = exponent == NONE ? NONE : add_arithmetic(p, at, "pow", "**", node, exponent);
        }
    }
    p->depth--;
    return node;
}

/* Takes '+' or '*', but not the beginning of a longer operator such as '**' or '//'. */
static bool read_operator(struct parser *p, char symbol)
{
    if (grd_read_peek(&p->reader) != symbol || p->reader.at[1] == symbol)
        return false;
    p->reader.at++;
    return true;
}

static int read_term(struct parser *p)
{
    int node = read_factor(p);
    while (node != NONE) {
        grd_read_peek(&p->reader);
        const char *at = p->reader.at;
        const bool times = read_operator(p, '*');
        if (!times && !read_operator(p, '/'))
            break;
        const int right = read_factor(p);
        node = right == NONE ? NONE : add_arithmetic(p, at, times ? "mul" : "div", times ? "*" : "/", node, right);
    }
    return node;
}

static int read_sum(struct parser *p)
{
    int node = read_term(p);
    while (node != NONE) {
        grd_read_peek(&p->reader);
        const char *at = p->reader.at;
        const bool plus = grd_read_token(&p->reader, "+");
        if (!plus && !grd_read_token(&p->reader, "-"))
            break;
        const int right = read_term(p);
        node = right == NONE ? NONE : add_arithmetic(p, at, plus ? "add" : "sub", plus ? "+" : "-", node, right);
    }
    return node;
}

/* ---- Conditions -------------------------------------------------------------------------------------------------------------------- */

static int read_is_none(struct parser *p, int node)
{
    const bool negated = grd_read_keyword(&p->reader, "not");
    if (!grd_read_keyword(&p->reader, "None")) {
        grd_read_fail(&p->reader, "expected 'None'");
        return NONE;
    }
    node = add_node(p, GRD_FORMULA_IS_NONE, GRD_KIND_BOOL, node);
    return node == NONE || !negated ? node : add_node(p, GRD_FORMULA_NOT, GRD_KIND_BOOL, node);
}

static int read_comparison(struct parser *p)
{
    static const char *const symbols[] = {"==", "!=", "<=", ">=", "<", ">"}; /* in the order of grd_formula_comparison */
    grd_read_peek(&p->reader);
    const char *at = p->reader.at;
    const int left = read_sum(p);
    if (left == NONE)
        return NONE;
    if (grd_read_keyword(&p->reader, "is"))
        return read_is_none(p, left);
    int which = 0;
    while (which < GRD_LENGTH(symbols) && !grd_read_token(&p->reader, symbols[which]))
        which++;
    if (which == GRD_LENGTH(symbols))
        return left;
    grd_read_peek(&p->reader);
    const char *right_at = p->reader.at;
    const int right = read_sum(p);
    if (right == NONE)
        return NONE;
    const bool strings = kind_of(p, left) == GRD_KIND_STRING && kind_of(p, right) == GRD_KIND_STRING;
    if (!strings && (!check_number(p, at, left) || !check_number(p, right_at, right)))
        return NONE;
    const int node = add_pair(p, GRD_FORMULA_COMPARE, GRD_KIND_BOOL, left, right);
    if (node != NONE)
        node_at(p, node)->which = (uint8_t)which;
    return node;
}

static int read_not(struct parser *p)
{
    grd_read_peek(&p->reader);
    const char *at = p->reader.at;
    if (!grd_read_keyword(&p->reader, "not"))
        return read_comparison(p);
    if (++p->depth > MAX_DEPTH) {
        grd_read_fail(&p->reader, "nested more than %d deep", MAX_DEPTH);
        return NONE;
    }
    const int node = read_not(p);
    p->depth--;
    return node == NONE || !check_condition(p, at, node) ? NONE : add_node(p, GRD_FORMULA_NOT, GRD_KIND_BOOL, node);
}

/* "a and b and c", or with `or`: all operands are conditions. */
static int read_junction(struct parser *p, bool any)
{
    grd_read_peek(&p->reader);
    const char *at = p->reader.at;
    int node = any ? read_junction(p, false) : read_not(p);
    while (node != NONE && grd_read_keyword(&p->reader, any ? "or" : "and")) {
        grd_read_peek(&p->reader);
        const char *right_at = p->reader.at;
        const int right = any ? read_junction(p, false) : read_not(p);
        if (right == NONE || !check_condition(p, at, node) || !check_condition(p, right_at, right))
            return NONE;
        node = add_pair(p, any ? GRD_FORMULA_OR : GRD_FORMULA_AND, GRD_KIND_BOOL, node, right);
    }
    return node;
}

/* What a choice between the two is; NONE with *ret_fits false when there is nothing both can be. */
static grd_kind common_kind(grd_kind yes, grd_kind no, bool *ret_fits)
{
    *ret_fits = true;
    if (yes == no || no == GRD_KIND_NONE)
        return yes;
    if (yes == GRD_KIND_NONE)
        return no;
    if (is_number(yes) && is_number(no))
        return GRD_KIND_FLOAT;
    *ret_fits = (yes == GRD_KIND_TENSOR && is_number(no)) || (no == GRD_KIND_TENSOR && is_number(yes));
    return GRD_KIND_TENSOR;
}

static int read_choice(struct parser *p)
{
    grd_read_peek(&p->reader);
    const char *at = p->reader.at;
    const int yes = read_junction(p, true);
    if (yes == NONE || !grd_read_keyword(&p->reader, "if"))
        return yes;
    grd_read_peek(&p->reader);
    const char *test_at = p->reader.at;
    const int test = read_junction(p, true);
    if (test == NONE || !check_condition(p, test_at, test))
        return NONE;
    if (!grd_read_keyword(&p->reader, "else")) {
        grd_read_fail(&p->reader, "expected 'else'");
        return NONE;
    }
    p->depth++; /* looked at in read_factor */
    const int no = read_choice(p);
    p->depth--;
    if (no == NONE)
        return NONE;
    bool fits;
    const grd_kind kind = common_kind(kind_of(p, yes), kind_of(p, no), &fits);
    if (!fits) {
        grd_read_fail_at(&p->reader, at, "one side is %s, the other %s", grd_kind_name(kind_of(p, yes)), grd_kind_name(kind_of(p, no)));
        return NONE;
    }
    node_at(p, yes)->next = test;
    node_at(p, test)->next = no;
    return add_node(p, GRD_FORMULA_CHOICE, kind, yes);
}

/* ---- The whole --------------------------------------------------------------------------------------------------------------------- */

static bool read_whole(struct parser *p, grd_kind wanted)
{
    grd_read_peek(&p->reader);
    const char *at = p->reader.at;
    const int root = read_choice(p);
    if (root == NONE)
        return false;
    if (grd_read_peek(&p->reader) != '\0')
        return grd_read_fail(&p->reader, "expected the end or an operator");
    const grd_kind kind = kind_of(p, root);
    if (kind != GRD_KIND_NONE && !converts(node_at(p, root), wanted))
        return grd_read_fail_at(&p->reader, at, "the gradient of a %s cannot be %s", grd_kind_name(wanted), grd_kind_name(kind));
    p->formula->root = root;
    return true;
}

struct grd_formula *grd_formula_read(struct grd_formula_needs *needs, int arg, int position, const char *text)
{
    const size_t length = strlen(text);
    struct grd_formula *formula = grd_alloc_zeroed(sizeof *formula);
    if (formula == NULL)
        return NULL;
    formula->strings = grd_alloc(length + 1);
    formula->strings_size = length + 1;
    const struct grd_arg *of = &needs->of->op.args[arg];
    char what[96];
    snprintf(what, sizeof what, "gradient of '%.60s'", of->name);
    struct parser parser = {.reader = {.text = text, .at = text, .what = what}, .formula = formula, .needs = needs, .position = position};
    if (formula->strings != NULL && read_whole(&parser, (grd_kind)of->kind))
        return formula;
    grd_formula_free(formula);
    return NULL;
}

void grd_formula_free(struct grd_formula *formula)
{
    if (formula == NULL)
        return;
    grd_free(formula->nodes, (size_t)formula->capacity * sizeof *formula->nodes);
    grd_free(formula->strings, formula->strings_size);
    grd_free(formula, sizeof *formula);
}
