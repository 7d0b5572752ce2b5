/* The signature language of schema/, read at run time: "mylib::cube(Tensor self, *, Scalar scale=1, int[]? dim=None) -> Tensor".
 *
 *     operator  = [word "::"] word "(" [argument {"," argument}] ")" "->" results
 *     argument  = "*" | kind ["?"] ["[]"] ["?"] word ["=" default]
 *     kind      = Tensor | Scalar | int | float | bool | dtype | device | str | Generator; lists are of Tensor or int
 *     results   = "Tensor" ["[]"] [word] | "(" "Tensor" [word] {"," "Tensor" [word]} ")"
 *     default   = None | True | False | number | inf | string | "[" integers "]"
 *
 * As in the schema files, a number that may be absent is a Scalar to its kernel. */
#ifndef GRD_DISPATCH_SCHEMA_TEXT_H
#define GRD_DISPATCH_SCHEMA_TEXT_H

#include "base/reader.h"
#include "dispatch/op.h"

struct grd_schema_arg {
    struct grd_span name, string; /* string: the default of a str; its value.v.string is unset */
    uint8_t kind;                 /* grd_kind */
    bool optional;
    grd_value value; /* default; a list points into `integers` */
};

/* What a text says. Spans point into it. */
struct grd_schema {
    struct grd_span name; /* with the namespace */
    bool has_namespace, returns_list;
    int nargs, nresults, nintegers;
    struct grd_schema_arg args[GRD_MAX_ARGS];
    struct grd_span results[GRD_MAX_RESULTS]; /* names; empty where none is given */
    int64_t integers[GRD_MAX_DIMS];           /* of the defaults that are lists */
};

/* False, with ValueError, where the text is none. Any text will do: this is what is fuzzed. */
bool grd_schema_read(const char *text, struct grd_schema *ret_schema);

#endif
