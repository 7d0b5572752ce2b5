/* A gradient formula of an operator defined at run time, as a tree: read once by formula_text.c, evaluated in every backward by formula_eval.c.
 * The language is that of the grad.* lines of schema/ (codegen/formula.py), and calls are calls of operators: so what a formula computes is
 * recorded like everything else and can be differentiated again.
 *
 * Invariant: a tree that was read has a kind for each node that fits its place; what is left to the evaluation is values. */
#ifndef GRD_AUTOGRAD_FORMULA_TREE_H
#define GRD_AUTOGRAD_FORMULA_TREE_H

#include "autograd/derivative.h"
#include "dispatch/define.h"

enum grd_formula_type {
    GRD_FORMULA_CONSTANT,
    GRD_FORMULA_GRADIENT,  /* of result `which` */
    GRD_FORMULA_GRADIENTS, /* of an operator that returns a list */
    GRD_FORMULA_SAVED,     /* saves[which] */
    GRD_FORMULA_FACT,      /* `which`, a grd_save_how, of the gradient below */
    GRD_FORMULA_LIST,      /* of integers or tensors */
    GRD_FORMULA_NEGATE,
    GRD_FORMULA_NOT,
    GRD_FORMULA_ARITHMETIC, /* numbers: `which` is one of + - * / */
    GRD_FORMULA_COMPARE,    /* numbers or strings: `which` is a grd_formula_comparison */
    GRD_FORMULA_IS_NONE,
    GRD_FORMULA_AND,
    GRD_FORMULA_OR,
    GRD_FORMULA_CHOICE, /* yes, test, no: the order of the text */
    GRD_FORMULA_CALL    /* of `op`; each child has the place of its argument */
};

enum grd_formula_comparison { GRD_EQUAL, GRD_NOT_EQUAL, GRD_LESS_EQUAL, GRD_GREATER_EQUAL, GRD_LESS, GRD_GREATER };

struct grd_formula_node {
    uint8_t type;
    uint8_t kind; /* grd_kind of the value; NONE for the word None */
    uint8_t which;
    uint8_t place;   /* as a child of a call */
    int child, next; /* indices, -1: none */
    grd_value constant;
    const grd_op *op;
};

struct grd_formula {
    struct grd_formula_node *nodes;
    int n, capacity, root;
    char *strings; /* the string constants, each terminated */
    size_t strings_size, string_room;
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
