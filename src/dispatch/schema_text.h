/* Reads an operator's signature at run time. Signatures in the files of schema/ have the same form. An example is "mylib::cube(Tensor self, *,
 * Scalar scale=1, int[]? dim=None) -> Tensor". The grammar is
 *
 *     operator  = [word "::"] word "(" [argument {"," argument}] ")" "->" results
 *     argument  = "*" | kind ["?"] ["[]"] ["?"] word ["=" default]
 *     kind      = Tensor | Scalar | int | float | bool | dtype | device | str | Generator; lists are of Tensor or int
 *     results   = "Tensor" ["[]"] [word] | "(" "Tensor" [word] {"," "Tensor" [word]} ")"
 *     default   = None | True | False | number | inf | string | "[" integers "]"
 *
 * An optional number, e.g. "float? eps", is passed to the kernel as a Scalar, as for operators of the schema files. */
#ifndef GRD_DISPATCH_SCHEMA_TEXT_H
#define GRD_DISPATCH_SCHEMA_TEXT_H

#include "base/reader.h"
#include "dispatch/op.h"

struct grd_schema_arg {
    struct grd_span name, string; /* `string` is the default of an argument of kind str, for which value.v.string is not set */
    uint8_t kind;                 /* a value of enum grd_kind */
    bool optional;
    grd_value value; /* default value; a default list points into the array `integers` of the schema */
};

/* The contents of a signature. A struct grd_span is a part of the signature's text, which must outlive this struct. */
struct grd_schema {
    struct grd_span name; /* includes the namespace, if any */
    bool has_namespace, returns_list;
    int nargs, nresults, nintegers;
    struct grd_schema_arg args[GRD_MAX_ARGS];
    struct grd_span results[GRD_MAX_RESULTS]; /* names of the results; a name of length 0 if none is given */
    int64_t integers[GRD_MAX_DIMS];           /* elements of all defaults that are lists */
};

/* Reads the signature `text`. False, with ValueError, if the text is not a valid signature. Any text is safe to read; a fuzzer checks this. */
bool grd_schema_read(const char *text, struct grd_schema *ret_schema);

#endif
