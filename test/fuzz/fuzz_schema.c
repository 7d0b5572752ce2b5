/* Fuzzes the parser of schema strings. Any text is either parsed or refused with a ValueError that names the position. A parsed schema that is
 * printed and parsed again must be the same. A quarter of the texts are valid signatures. The others are random bytes or random sequences of words
 * of the language. */
#include <math.h>

#include "dispatch/schema_text.h"
#include "fuzz.h"

enum { TEXT = 1 << 12 };

/* ---- Texts ----------------------------------------------------------------------------------------------------------------------------- */

static const char *const words[] = {
    "f",
    "my::f",
    "(",
    ")",
    "()",
    "(Tensor self",
    "(Tensor self, ",
    ", ",
    "*",
    "*, ",
    "Tensor ",
    "Tensor? ",
    "Tensor[] ",
    "Scalar ",
    "Scalar? ",
    "int ",
    "int? ",
    "int[] ",
    "int[]? ",
    "float ",
    "bool ",
    "bool? ",
    "dtype? ",
    "device ",
    "str ",
    "str? ",
    "Generator? ",
    "x",
    "y",
    "dim",
    "a1",
    "_b",
    "=",
    "=None",
    "=True",
    "=False",
    "=0",
    "=-1",
    "=1",
    "=0.5",
    "=1e300",
    "=1e400",
    "=9223372036854775807",
    "=9223372036854775808",
    "=inf",
    "=-inf",
    "=[]",
    "=[1]",
    "=[1, -2]",
    "=3",
    "='s'",
    "=\"t'\"",
    "='",
    " -> ",
    "->",
    "Tensor",
    "Tensor[]",
    "(Tensor",
    "Tensor a",
    ", Tensor b)",
    " ",
    "\n",
    "::",
    "?",
    "[]",
};

static char *take_text(struct bytes *b)
{
    static char text[TEXT];
    size_t n = 0;
    const bool raw = take_chance(b, 2);
    while (b->at < b->end && n < TEXT - 64) {
        if (raw || take_chance(b, 32)) {
            text[n++] = (char)take_byte(b);
            continue;
        }
        const char *word = words[take_below(b, (int64_t)(sizeof words / sizeof *words))];
        n += (size_t)snprintf(text + n, TEXT - n, "%s", word);
    }
    /* The text is in a heap block of exactly its size, so that AddressSanitizer reports reads past its end. */
    text[n] = '\0';
    char *copy = malloc(strlen(text) + 1);
    fuzz_expect(copy != NULL, "memory for the text");
    return strcpy(copy, text);
}

/* Returns a valid signature, which may use every kind of argument, default and result. The caller frees it. */
static char *take_signature(struct bytes *b)
{
    static char text[TEXT];
    static const struct {
        const char *kind;
        const char *defaults[4];
    } kinds[] = {
        {"Tensor", {NULL}},
        {"Tensor?", {"None", NULL}},
        {"Tensor[]", {NULL}},
        {"Scalar", {"1", "-0.5", "True", NULL}},
        {"Scalar?", {"None", "inf", "2", NULL}},
        {"int", {"-3", "7", NULL}},
        {"int?", {"None", "5", NULL}},
        {"int[]", {"[]", "[1, 2, -3]", "4", NULL}},
        {"int[]?", {"None", "[0]", NULL}},
        {"float", {"0.1", "1", "-inf", NULL}},
        {"bool", {"True", "False", NULL}},
        {"dtype?", {"None", NULL}},
        {"device", {NULL}},
        {"str", {"'a b'", "\"it's\"", NULL}},
        {"Generator?", {"None", NULL}},
    };
    size_t n = (size_t)snprintf(text, TEXT, "%s(", take_chance(b, 2) ? "f" : "lib::f");
    const int nargs = (int)take_below(b, 8), star = (int)take_below(b, 16);
    for (int i = 0; i < nargs; i++) {
        const size_t kind = (size_t)take_below(b, (int64_t)(sizeof kinds / sizeof *kinds));
        const char *value = kinds[kind].defaults[take_below(b, 4)];
        n += (size_t)snprintf(text + n, TEXT - n, "%s%s%s a%d%s%s", i > 0 ? ", " : "", i == star ? "*, " : "", kinds[kind].kind, i,
                              value != NULL ? "=" : "", value != NULL ? value : "");
    }
    static const char *const results[] = {"Tensor", "Tensor[]", "Tensor out", "(Tensor p, Tensor q)", "(Tensor, Tensor)"};
    snprintf(text + n, TEXT - n, ") -> %s", results[take_below(b, 5)]);
    char *copy = malloc(strlen(text) + 1);
    fuzz_expect(copy != NULL, "memory for the text");
    return strcpy(copy, text);
}

/* ---- Printing ---------------------------------------------------------------------------------------------------------------------------- */

struct printed {
    char text[4 * TEXT];
    size_t n;
};

static GRD_PRINTF(2, 3) void print(struct printed *p, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(p->text + p->n, sizeof p->text - p->n, format, arguments);
    va_end(arguments);
    p->n += (size_t)length;
    fuzz_expect(p->n < sizeof p->text, "room for the printed schema");
}

static void print_double(struct printed *p, double x)
{
    char text[64];
    if (isinf(x)) {
        print(p, "%sinf", x < 0 ? "-" : "");
        return;
    }
    snprintf(text, sizeof text, "%.17g", x);
    print(p, "%s%s", text, strpbrk(text, ".e") != NULL ? "" : ".0");
}

static void print_scalar(struct printed *p, grd_scalar s)
{
    if (s.kind == GRD_SCALAR_BOOL)
        print(p, s.v.i ? "True" : "False");
    else if (s.kind == GRD_SCALAR_INT)
        print(p, "%lld", (long long)s.v.i);
    else
        print_double(p, s.v.c.re);
}

static void print_default(struct printed *p, const struct grd_schema_arg *arg)
{
    const grd_value *value = &arg->value;
    if (value->kind == GRD_KIND_NONE)
        return;
    print(p, "=");
    switch (value->kind) {
    case GRD_KIND_SCALAR:
        print_scalar(p, value->v.scalar);
        break;
    case GRD_KIND_INT:
        print(p, "%lld", (long long)value->v.integer);
        break;
    case GRD_KIND_FLOAT:
        print_double(p, value->v.number);
        break;
    case GRD_KIND_BOOL:
        print(p, value->v.boolean ? "True" : "False");
        break;
    case GRD_KIND_DIMS:
        print(p, "[");
        for (int64_t i = 0; i < value->v.dims.n; i++)
            print(p, "%s%lld", i > 0 ? ", " : "", (long long)value->v.dims.data[i]);
        print(p, "]");
        break;
    case GRD_KIND_STRING: {
        const char quote = memchr(arg->string.at, '\'', (size_t)arg->string.length) != NULL ? '"' : '\'';
        print(p, "%c%.*s%c", quote, arg->string.length, arg->string.at, quote);
        break;
    }
    default:
        fuzz_fail("a default of kind %d", (int)value->kind);
    }
}

static const char *kind_text(grd_kind kind)
{
    static const char *const names[] = {
        [GRD_KIND_TENSOR] = "Tensor", [GRD_KIND_TENSORS] = "Tensor[]", [GRD_KIND_SCALAR] = "Scalar",      [GRD_KIND_INT] = "int",
        [GRD_KIND_FLOAT] = "float",   [GRD_KIND_BOOL] = "bool",        [GRD_KIND_DIMS] = "int[]",         [GRD_KIND_DTYPE] = "dtype",
        [GRD_KIND_DEVICE] = "device", [GRD_KIND_STRING] = "str",       [GRD_KIND_GENERATOR] = "Generator"};
    fuzz_expect(kind > GRD_KIND_NONE && kind <= GRD_KIND_GENERATOR, "the kind of an argument");
    return names[kind];
}

static void print_schema(struct printed *p, const struct grd_schema *s)
{
    p->n = 0;
    print(p, "%.*s(", s->name.length, s->name.at);
    for (int i = 0; i < s->nargs; i++) {
        const struct grd_schema_arg *arg = &s->args[i];
        print(p, "%s%s%s %.*s", i > 0 ? ", " : "", kind_text((grd_kind)arg->kind), arg->optional ? "?" : "", arg->name.length,
              arg->name.at);
        print_default(p, arg);
    }
    print(p, ") -> %s", s->returns_list || s->nresults == 1 ? "" : "(");
    for (int i = 0; i < s->nresults; i++)
        print(p, "%sTensor%s%s%.*s", i > 0 ? ", " : "", s->returns_list ? "[]" : "", s->results[i].length > 0 ? " " : "",
              s->results[i].length, s->results[i].at);
    print(p, "%s", s->returns_list || s->nresults == 1 ? "" : ")");
}

/* ---- The check ----------------------------------------------------------------------------------------------------------------------------- */

static void check_bounds(const struct grd_schema *s)
{
    fuzz_expect(s->name.length > 0 && s->nargs >= 0 && s->nargs <= GRD_MAX_ARGS, "the number of arguments");
    fuzz_expect(s->nresults >= 1 && s->nresults <= GRD_MAX_RESULTS, "the number of results");
    fuzz_expect(s->nintegers >= 0 && s->nintegers <= GRD_MAX_DIMS, "the number of integers");
    for (int i = 0; i < s->nargs; i++)
        fuzz_expect(s->args[i].name.length > 0, "the name of an argument");
}

static void check(struct bytes *b)
{
    static struct printed first, second;
    static struct grd_schema schema, again;
    const bool proper = take_chance(b, 4);
    char *text = proper ? take_signature(b) : take_text(b);
    if (!grd_schema_read(text, &schema)) {
        fuzz_expect(!proper, "a proper schema is read");
        fuzz_expect(grd_error_get() == GRD_ERROR_VALUE && strstr(grd_error_message(), "at character") != NULL, "a refusal says where");
        grd_error_clear();
        free(text);
        return;
    }
    fuzz_expect(grd_ok(), "what is read raises nothing");
    check_bounds(&schema);
    print_schema(&first, &schema);
    if (!grd_schema_read(first.text, &again))
        fuzz_fail("printed, it is refused: %s\n%s\n%s", grd_error_message(), text, first.text);
    print_schema(&second, &again);
    if (strcmp(first.text, second.text) != 0)
        fuzz_fail("printed and read again it is another schema:\n%s\n%s\n%s", text, first.text, second.text);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_run(data, size, check);
    return 0;
}
