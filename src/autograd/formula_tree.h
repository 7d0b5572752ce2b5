/* Declares the tree that represents a gradient formula. Only operators that are defined at run time need it. formula_text.c makes the tree from the
 * formula's text once, and formula_eval.c evaluates the tree in each backward pass.
 *
 * The language is the language of the grad.* lines in schema/ (codegen/formula.py). A formula calls ordinary operators, so its computation is
 * recorded with create_graph and can be differentiated again.
 * Invariant: each node has a kind that its parent accepts. The only exception is a number, which formula_eval.c converts to the kind that the
 * parent accepts. */
#ifndef GRD_AUTOGRAD_FORMULA_TREE_H
#define GRD_AUTOGRAD_FORMULA_TREE_H

#include "autograd/derivative.h"
#include "dispatch/define.h"

/* The types of the nodes of a formula, which say how a node's value is computed. */
enum grd_formula_type {
    GRD_FORMULA_CONSTANT,  /* the constant v.constant */
    GRD_FORMULA_GRADIENT,  /* the gradient of the operator's result number `which` */
    GRD_FORMULA_GRADIENTS, /* the list of all gradients, for an operator that returns a list */
    GRD_FORMULA_SAVED,     /* the saved value number `which`, i.e. grd_backward.saved[which] */
    GRD_FORMULA_FACT,      /* shape, strides, offset, dtype or device of the tensor that the child computes; `which` is the grd_save_how */
    GRD_FORMULA_LIST,      /* a list of the children, which are integers or tensors */
    GRD_FORMULA_ITEM,      /* an element of a list of integers; the children are the list and the index */
    GRD_FORMULA_NUMBER,    /* applies the grd_formula_symbol `which` to one or two children, which are numbers, strings or dtypes */
    GRD_FORMULA_IS_NONE,   /* `which` is 0: true if the child is None; `which` is 1: true if the child is not None */
    GRD_FORMULA_CHOICE,    /* "yes if test else no"; the children are yes, test and no */
    GRD_FORMULA_FUNCTION,  /* calls v.function, a function of numbers and sizes; each child computes the argument number child.place */
    GRD_FORMULA_CALL       /* calls the operator v.op; each child computes the argument number child.place */
};

/* The operations on numbers, strings and dtypes that a gradient formula may contain. */
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
    GRD_SYMBOL_GREATER, /* the operations from GRD_SYMBOL_OR to this one return a bool */
    GRD_SYMBOL_ADD,
    GRD_SYMBOL_SUBTRACT,
    GRD_SYMBOL_MULTIPLY,
    GRD_SYMBOL_DIVIDE,
    GRD_SYMBOL_NEGATE
};

struct grd_formula_node {
    uint8_t type;         /* a value of enum grd_formula_type */
    uint8_t kind;         /* grd_kind of the node's value; GRD_KIND_NONE for the constant None */
    uint8_t which;        /* an index or an operation, depending on `type`; see grd_formula_type */
    uint8_t place;        /* index of the argument that this node computes, if its parent is a call */
    uint16_t child, next; /* child: index of the first child; next: index of the parent's next child; 0 if there is none */
    union {
        grd_value constant;
        const grd_op *op;
        const struct grd_function *function;
    } v;
};

struct grd_formula {
    struct grd_formula_node *nodes; /* array of n nodes, of which nodes[0] is unused, so that index 0 can mean "no node" */
    int n, root;
    char *text; /* a copy of the formula's text, into which string constants point; a NUL is written over each closing quote */
    size_t text_size;
};

/* The values that the gradient formulas of one operator read. The nodes of the operator save these values. */
struct grd_formula_needs {
    const struct grd_defined_op *of; /* the operator to which the formulas belong */
    struct grd_save saves[GRD_MAX_SAVES];
    int nsaves;
    unsigned results; /* bit i: some formula reads the gradient of the operator's result i */
};

/* Returns the formula in `text`, which computes the gradient of argument `arg`. Adds to `needs` the values that the formula reads. `position` is the
 * number of arguments before `arg` that have a formula. NULL, with the error raised, on failure. */
struct grd_formula *grd_formula_read(struct grd_formula_needs *needs, int arg, int position, const char *text);
void grd_formula_free(struct grd_formula *formula);

/* Evaluates the gradient formula of one argument of an operator, and returns the gradient: a tensor for a tensor argument, a list of tensors for a
 * list, a value of kind NONE for the formula "None". May leave an error pending. */
grd_value grd_formula_evaluate(const struct grd_formula *formula, const struct grd_backward *b);

#endif
