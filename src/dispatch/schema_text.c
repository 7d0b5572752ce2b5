/* Reads the signatures of operators. The grammar is in schema_text.h; codegen/schema.py reads the same grammar from the schema files. */
#include "dispatch/schema_text.h"

#include <math.h>
#include <string.h>

/* ---- Kinds -------------------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    grd_kind kind;
} kinds[] = {
    {"Tensor", GRD_KIND_TENSOR}, {"Scalar", GRD_KIND_SCALAR}, {"int", GRD_KIND_INT},
    {"float", GRD_KIND_FLOAT},   {"bool", GRD_KIND_BOOL},     {"dtype", GRD_KIND_DTYPE},
    {"device", GRD_KIND_DEVICE}, {"str", GRD_KIND_STRING},    {"Generator", GRD_KIND_GENERATOR},
};

static bool is_number(grd_kind kind)
{
    return kind == GRD_KIND_SCALAR || kind == GRD_KIND_INT || kind == GRD_KIND_FLOAT || kind == GRD_KIND_BOOL;
}

static bool read_kind(struct grd_reader *reader, struct grd_schema_arg *arg)
{
    struct grd_span word;
    grd_read_peek(reader);
    const char *start = reader->at;
    if (!grd_read_word(reader, &word))
        return grd_read_fail(reader, "expected an argument");
    arg->kind = GRD_KIND_NONE;
    for (int i = 0; i < GRD_LENGTH(kinds); i++)
        if (grd_span_is(word, kinds[i].name))
            arg->kind = (uint8_t)kinds[i].kind;
    if (arg->kind == GRD_KIND_NONE)
        return grd_read_fail_at(reader, start, "'%.*s' is no kind of argument", word.length > 40 ? 40 : word.length, word.at);
    const bool inner = grd_read_token(reader, "?");
    if (grd_read_token(reader, "[]")) {
        if (inner || (arg->kind != GRD_KIND_TENSOR && arg->kind != GRD_KIND_INT))
            return grd_read_fail_at(reader, start, inner ? "there are no lists of optional values" : "lists are of Tensor or int");
        arg->kind = arg->kind == GRD_KIND_TENSOR ? GRD_KIND_TENSORS : GRD_KIND_DIMS;
    }
    arg->optional = inner || grd_read_token(reader, "?");
    if (arg->optional && arg->kind == GRD_KIND_TENSORS)
        return grd_read_fail_at(reader, start, "a list of tensors cannot be absent");
    return true;
}

/* ---- Defaults ------------------------------------------------------------------------------------------------------------------ */

/* Reads a number that is the default of an argument of the given kind. False, with ValueError, if the number does not fit the kind, e.g. a
 * fraction as the default of an int or a number as the default of a bool. */
static bool read_number_default(struct grd_reader *reader, grd_kind kind, grd_scalar *ret_number)
{
    grd_read_peek(reader);
    const char *start = reader->at;
    if (grd_read_keyword(reader, "True"))
        *ret_number = grd_bool(true);
    else if (grd_read_keyword(reader, "False"))
        *ret_number = grd_bool(false);
    else {
        const bool minus = grd_read_token(reader, "-");
        if (grd_read_keyword(reader, "inf"))
            *ret_number = grd_float((double)INFINITY);
        else if (!grd_read_number(reader, ret_number))
            return false;
        if (minus)
            *ret_number = ret_number->kind == GRD_SCALAR_INT ? grd_int(-ret_number->v.i) : grd_float(-ret_number->v.c.re);
    }
    const bool fits = kind == GRD_KIND_SCALAR || (kind == GRD_KIND_BOOL) == (ret_number->kind == GRD_SCALAR_BOOL);
    if (!fits || (kind == GRD_KIND_INT && ret_number->kind != GRD_SCALAR_INT))
        return grd_read_fail_at(reader, start, "expected %s",
                                kind == GRD_KIND_BOOL  ? "True or False"
                                : kind == GRD_KIND_INT ? "an integer"
                                                       : "a number");
    return true;
}

static grd_value number_value(grd_kind kind, grd_scalar number)
{
    grd_value value = {.kind = kind};
    switch (kind) {
    case GRD_KIND_INT:
        value.v.integer = grd_scalar_int64(number);
        break;
    case GRD_KIND_FLOAT:
        value.v.number = grd_scalar_double(number);
        break;
    case GRD_KIND_BOOL:
        value.v.boolean = grd_scalar_int64(number) != 0;
        break;
    default:
        value.v.scalar = number;
    }
    return value;
}

static bool read_integer(struct grd_reader *reader, struct grd_schema *schema)
{
    grd_scalar number;
    if (schema->nintegers == GRD_MAX_DIMS)
        return grd_read_fail(reader, "the defaults hold more than %d integers", GRD_MAX_DIMS);
    if (!read_number_default(reader, GRD_KIND_INT, &number))
        return false;
    schema->integers[schema->nintegers++] = number.v.i;
    return true;
}

/* Reads the default of a list argument, such as "[1, 2]". A single number means a list of one element. False, with the error raised, if the text
 * is no such list. */
static bool read_list_default(struct grd_reader *reader, struct grd_schema *schema, grd_value *ret_value)
{
    const int first = schema->nintegers;
    if (!grd_read_token(reader, "[")) {
        if (!read_integer(reader, schema))
            return false;
    } else if (!grd_read_token(reader, "]")) {
        do {
            if (!read_integer(reader, schema))
                return false;
        } while (grd_read_token(reader, ","));
        if (!grd_read_expect(reader, "]"))
            return false;
    }
    *ret_value = (grd_value){.kind = GRD_KIND_DIMS, .v.dims = {schema->nintegers - first, schema->integers + first}};
    return true;
}

static bool read_default(struct grd_reader *reader, struct grd_schema *schema, struct grd_schema_arg *arg)
{
    const grd_kind kind = (grd_kind)arg->kind;
    if (kind != GRD_KIND_TENSORS && grd_read_keyword(reader, "None")) {
        arg->optional = true;
        return true;
    }
    if (is_number(kind)) {
        grd_scalar number;
        if (!read_number_default(reader, kind, &number))
            return false;
        arg->value = number_value(arg->optional ? GRD_KIND_SCALAR : kind, number);
        return true;
    }
    if (kind == GRD_KIND_DIMS)
        return read_list_default(reader, schema, &arg->value);
    if (kind == GRD_KIND_STRING) {
        const char quote = grd_read_peek(reader);
        if (quote != '\'' && quote != '"')
            return grd_read_fail(reader, "expected a string");
        arg->value.kind = GRD_KIND_STRING;
        return grd_read_string(reader, &arg->string);
    }
    return grd_read_fail(reader, kind == GRD_KIND_TENSORS ? "a list of tensors has no default" : "expected None");
}

/* ---- Arguments and results ------------------------------------------------------------------------------------------------------- */

static bool same_span(struct grd_span a, struct grd_span b)
{
    return a.length == b.length && memcmp(a.at, b.at, (size_t)a.length) == 0;
}

static bool read_argument(struct grd_reader *reader, struct grd_schema *schema)
{
    if (schema->nargs == GRD_MAX_ARGS)
        return grd_read_fail(reader, "an operator has at most %d arguments, not more", GRD_MAX_ARGS);
    struct grd_schema_arg *arg = &schema->args[schema->nargs];
    *arg = (struct grd_schema_arg){.value.kind = GRD_KIND_NONE};
    if (!read_kind(reader, arg))
        return false;
    if (!grd_read_word(reader, &arg->name))
        return grd_read_fail(reader, "expected the name of the argument");
    for (int i = 0; i < schema->nargs; i++)
        if (same_span(schema->args[i].name, arg->name))
            return grd_read_fail_at(reader, arg->name.at, "two arguments have the same name");
    if (grd_read_token(reader, "=") && !read_default(reader, schema, arg))
        return false;
    if (arg->optional && is_number((grd_kind)arg->kind))
        arg->kind = GRD_KIND_SCALAR;
    schema->nargs++;
    return true;
}

static bool read_arguments(struct grd_reader *reader, struct grd_schema *schema)
{
    if (!grd_read_expect(reader, "("))
        return false;
    if (grd_read_token(reader, ")"))
        return true;
    bool star = false;
    do {
        if (!star && grd_read_token(reader, "*"))
            star = true;
        else if (!read_argument(reader, schema))
            return false;
    } while (grd_read_token(reader, ","));
    return grd_read_expect(reader, ")");
}

static bool read_result(struct grd_reader *reader, struct grd_schema *schema)
{
    if (schema->nresults == GRD_MAX_RESULTS)
        return grd_read_fail(reader, "an operator has at most %d results, not more", GRD_MAX_RESULTS);
    if (!grd_read_keyword(reader, "Tensor"))
        return grd_read_fail(reader, "expected 'Tensor'");
    struct grd_span *name = &schema->results[schema->nresults++];
    *name = (struct grd_span){reader->at, 0};
    return true;
}

/* Reads the name of the last result, if it has one. False, with the error raised, if an argument or another result has this name. Names must
 * differ because formulas refer to arguments and results by name. */
static bool read_result_name(struct grd_reader *reader, struct grd_schema *schema)
{
    struct grd_span *name = &schema->results[schema->nresults - 1];
    if (!grd_read_word(reader, name))
        return true;
    for (int i = 0; i < schema->nargs; i++)
        if (same_span(schema->args[i].name, *name))
            return grd_read_fail_at(reader, name->at, "an argument and a result have the same name");
    for (int i = 0; i < schema->nresults - 1; i++)
        if (same_span(schema->results[i], *name))
            return grd_read_fail_at(reader, name->at, "two results have the same name");
    return true;
}

static bool read_results(struct grd_reader *reader, struct grd_schema *schema)
{
    if (!grd_read_token(reader, "(")) {
        if (!read_result(reader, schema))
            return false;
        schema->returns_list = grd_read_token(reader, "[]");
        return read_result_name(reader, schema);
    }
    do {
        if (!read_result(reader, schema) || !read_result_name(reader, schema))
            return false;
    } while (grd_read_token(reader, ","));
    return grd_read_expect(reader, ")");
}

static bool read_name(struct grd_reader *reader, struct grd_schema *schema)
{
    struct grd_span word;
    if (!grd_read_word(reader, &schema->name))
        return grd_read_fail(reader, "expected the name of the operator");
    schema->has_namespace = strncmp(reader->at, "::", 2) == 0;
    if (!schema->has_namespace)
        return true;
    reader->at += 2;
    const char *start = reader->at;
    if (!grd_read_word(reader, &word) || word.at != start)
        return grd_read_fail_at(reader, start, "expected the name of the operator");
    schema->name.length = (int)(reader->at - schema->name.at);
    return true;
}

bool grd_schema_read(const char *text, struct grd_schema *ret_schema)
{
    struct grd_reader reader = {.text = text, .at = text, .what = "schema"};
    *ret_schema = (struct grd_schema){0};
    return read_name(&reader, ret_schema) && read_arguments(&reader, ret_schema) && grd_read_expect(&reader, "->") &&
           read_results(&reader, ret_schema) && (grd_read_peek(&reader) == '\0' || grd_read_fail(&reader, "expected the end"));
}
