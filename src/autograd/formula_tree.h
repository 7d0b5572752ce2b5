/* A gradient formula of an operator defined at run time, as a tree: read once by formula_text.c, evaluated in every backward by formula_eval.c.
 * The language is that of the grad.* lines of schema/ (codegen/formula.py), and calls are calls of operators: so what a formula computes is
 * recorded like everything else and can be differentiated again.
 *
 * Invariant: a node's kind fits its place, but for numbers, which are converted when they are known. */
#ifndef GRD_AUTOGRAD_FORMULA_TREE_H
#define GRD_AUTOGRAD_FORMULA_TREE_H

#include "autograd/derivative.h"
#include "dispatch/define.h"

enum grd_formula_type {
    GRD_FORMULA_CONSTANT,
    GRD_FORMULA_GRADIENT,  /* of result `which` */
    GRD_FORMULA_GRADIENTS, /* of an operator that returns a list */
    GRD_FORMULA_SAVED,     /* saves[which] */
    GRD_FORMULA_FACT,      /* `which`, a grd_save_how, of the tensor below */
    GRD_FORMULA_LIST,      /* of integers or tensors */
    GRD_FORMULA_ITEM,      /* of a list of integers: the list, the index */
    GRD_FORMULA_NUMBER,    /* `which`, a grd_formula_symbol, of one or two numbers, strings or dtypes */
    GRD_FORMULA_IS_NONE,
    GRD_FORMULA_CHOICE,   /* yes, test, no: the order of the text */
    GRD_FORMULA_FUNCTION, /* of numbers and sizes: `function`; the arguments in order */
    GRD_FORMULA_CALL      /* of `op`; each child has the place of its argument */
};

enum grd_formula_symbol {
    GRD_SYMBOL_NONE,
    GRD_SYMBOL_OR,
    GRD_SYMBOL_AND,
    GRD_SYMBOL_NOT,
    GRD_SYMBOL_EQUAL,
    GRD_SYMBOL_NOT_EQUAL,
    GRD_SYMBOL_LESS_EQUAL,
    GRD_SYMBOL_GREATER_EQUAL,
    GRD_SYMBOL_LESS,
    GRD_SYMBOL_GREATER, /* the results of those before are truth values */
    GRD_SYMBOL_ADD,
    GRD_SYMBOL_SUBTRACT,
    GRD_SYMBOL_MULTIPLY,
    GRD_SYMBOL_DIVIDE,
    GRD_SYMBOL_NEGATE
};

struct grd_formula_node {
    uint8_t type;
    uint8_t kind; /* grd_kind of the value; NONE for the word None */
    uint8_t which;
    uint8_t place;        /* as a child of a call */
    uint16_t child, next; /* indices; 0: none */
    union {
        grd_value constant;
        const grd_op *op;
        const struct grd_function *function;
    } v;
};

struct grd_formula {
    struct grd_formula_node *nodes; /* nodes[0] is unused */
    int n, root;
    char *text; /* a copy, in which string constants are terminated */
    size_t text_size;
};

/* What all formulas of an operator need. */
struct grd_formula_needs {
    const struct grd_defined_op *of;
    struct grd_save saves[GRD_MAX_SAVES];
    int nsaves;
    unsigned results; /* bit i: the gradient of result i is read */
};

/* Reads the formula of the argument op->args[arg], the position-th that has one, and adds what it needs. NULL, with the error raised, on failure. */
struct grd_formula *grd_formula_read(struct grd_formula_needs *needs, int arg, int position, const char *text);
void grd_formula_free(struct grd_formula *formula);

/* The gradient: a tensor or a list, as the argument is; kind NONE where the formula says None. */
grd_value grd_formula_evaluate(const struct grd_formula *formula, const struct grd_backward *b);

#endif
