/* einsum: sums of products written with a letter for each dimension. A composite over views, products of matrices and sums. Schema:
 * schema/arrange.toml.
 *
 * Every operand is brought to one dimension for each label of the equation, in one order: those of the output, then those that are summed. Then
 * operands are multiplied one after the other; a label is summed with the last operand that has it. */
#include <ctype.h>
#include <string.h>

#include "gen/uses/op/einsum.h"
#include "gradus/library.h"
#include "core/tensor.h"

/* Labels: letters, upper case first, then the dimensions of an ellipsis. */
enum { LETTERS = 52, LABELS = LETTERS + GRD_MAX_DIMS, ELLIPSIS = LABELS };

/* One side of a comma: a label for each dimension; ELLIPSIS stands for several. */
struct term {
    int labels[GRD_MAX_DIMS + 1], n;
    bool has_ellipsis;
};

struct equation {
    struct term *inputs, output;
    int64_t n;
    bool has_output;
    int64_t ellipsis; /* dimensions that the longest ellipsis stands for */
    int64_t size[LABELS];
    int last[LABELS];  /* last operand that has the label; -1: none */
    int count[LABELS]; /* how often letters occur among the inputs */
    int place[LABELS]; /* its index among the dimensions that operands are brought to */
    int nplaces, noutput;
};

static int label_of(char c)
{
    return isupper((unsigned char)c) ? c - 'A' : 26 + c - 'a';
}

static char letter_of(int label)
{
    return (char)(label < 26 ? 'A' + label : 'a' + label - 26);
}

/* ---- Reading ------------------------------------------------------------------------------------------------------------------------ */

/* Reads a term from `text`, which is a part of the equation. */
static bool read_term(const char *equation, const char *text, size_t length, struct term *term)
{
    for (size_t i = 0; i < length; i++) {
        const char c = text[i];
        if (c == ' ')
            continue;
        if (term->n > GRD_MAX_DIMS)
            return grd_raise(GRD_ERROR_RUNTIME, "einsum(): too many subscripts: the limit is %d", GRD_MAX_DIMS);
        if (c == '.') {
            if (term->has_ellipsis || i + 2 >= length || text[i + 1] != '.' || text[i + 2] != '.')
                return grd_raise(GRD_ERROR_RUNTIME, term->has_ellipsis ? "einsum(): found '.' for which an ellipsis was already found"
                                                                       : "einsum(): found '.' that is not part of any ellipsis");
            term->has_ellipsis = true;
            term->labels[term->n++] = ELLIPSIS;
            i += 2;
        } else if (isalpha((unsigned char)c) && (unsigned char)c < 128) {
            term->labels[term->n++] = label_of(c);
        } else {
            return grd_raise(GRD_ERROR_RUNTIME,
                             "einsum(): invalid subscript given at index %td in the equation string, subscripts must be in [a-zA-Z]",
                             text + i - equation);
        }
    }
    return true;
}

static bool read_equation(const char *text, int64_t operands, struct equation *e)
{
    const char *arrow = strstr(text, "->"), *end = arrow != NULL ? arrow : text + strlen(text), *start = text;
    e->inputs = grd_pool_array(operands, sizeof *e->inputs);
    if (e->inputs == NULL)
        return false;
    memset(e->inputs, 0, (size_t)operands * sizeof *e->inputs);
    for (;;) {
        const char *comma = memchr(start, ',', (size_t)(end - start)), *stop = comma != NULL ? comma : end;
        if (e->n == operands)
            return grd_raise(GRD_ERROR_RUNTIME, "einsum(): fewer operands were provided than specified in the equation");
        if (!read_term(text, start, (size_t)(stop - start), &e->inputs[e->n++]))
            return false;
        if (comma == NULL)
            break;
        start = comma + 1;
    }
    if (e->n < operands)
        return grd_raise(GRD_ERROR_RUNTIME, "einsum(): more operands were provided than specified in the equation");
    e->has_output = arrow != NULL;
    return arrow == NULL || read_term(text, arrow + 2, strlen(arrow + 2), &e->output);
}

/* ---- Labels of dimensions ------------------------------------------------------------------------------------------------------------- */

/* Writes the label of every dimension of an operand. */
static bool label_dimensions(struct equation *e, int64_t operand, const grd_tensor *t, int *ret_labels)
{
    const struct term *term = &e->inputs[operand];
    const int64_t hidden = t->ndim - (term->n - term->has_ellipsis);
    if (hidden < 0 || (hidden > 0 && !term->has_ellipsis))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "einsum(): the number of subscripts in the equation (%d) %s the number of dimensions (%d) for operand %lld%s",
                         term->n - term->has_ellipsis, term->has_ellipsis ? "is more than" : "does not match", t->ndim, (long long)operand,
                         term->has_ellipsis ? "" : " and no ellipsis was given");
    int n = 0;
    for (int i = 0; i < term->n; i++) {
        if (term->labels[i] != ELLIPSIS) {
            ret_labels[n++] = term->labels[i];
            continue;
        }
        for (int64_t k = 0; k < hidden; k++) /* aligned at the right, so that the last dimension has label LETTERS */
            ret_labels[n++] = (int)(LETTERS + hidden - 1 - k);
        e->ellipsis = hidden > e->ellipsis ? hidden : e->ellipsis;
    }
    return true;
}

static bool note_sizes(struct equation *e, int64_t operand, const grd_tensor *t, const int *labels)
{
    for (int i = 0; i < t->ndim; i++) {
        const int label = labels[i];
        int64_t *size = &e->size[label];
        if (e->last[label] >= 0 && e->last[label] != operand && *size != t->sizes[i] && *size != 1 && t->sizes[i] != 1)
            return label < LETTERS
                       ? grd_raise(GRD_ERROR_RUNTIME,
                                   "einsum(): subscript %c has size %lld for operand %lld which does not broadcast with previously seen "
                                   "size %lld",
                                   letter_of(label), (long long)t->sizes[i], (long long)operand, (long long)*size)
                       : grd_raise(GRD_ERROR_RUNTIME, "einsum(): the dimensions of an ellipsis of operand %lld do not broadcast",
                                   (long long)operand);
        *size = e->last[label] < 0 || *size == 1 ? t->sizes[i] : *size;
        e->last[label] = (int)operand;
        e->count[label]++;
    }
    return true;
}

static void place_next(struct equation *e, int label)
{
    e->place[label] = e->nplaces++;
}

static void place_ellipsis(struct equation *e)
{
    for (int64_t k = e->ellipsis; k-- > 0;)
        place_next(e, (int)(LETTERS + k));
}

/* Orders the labels of the output; without "->" these are the ellipsis and then the letters that occur once. */
static bool place_output(struct equation *e)
{
    for (int i = 0; i < e->output.n; i++) {
        const int label = e->output.labels[i];
        if (label == ELLIPSIS) {
            place_ellipsis(e);
            continue;
        }
        if (e->place[label] >= 0)
            return grd_raise(GRD_ERROR_RUNTIME, "einsum(): output subscript %c appears more than once in the output", letter_of(label));
        if (e->last[label] < 0)
            return grd_raise(GRD_ERROR_RUNTIME, "einsum(): output subscript %c does not appear in the equation for any input operand",
                             letter_of(label));
        place_next(e, label);
    }
    if (!e->has_output) {
        place_ellipsis(e);
        for (int label = 0; label < LETTERS; label++)
            if (e->count[label] == 1)
                place_next(e, label);
    }
    e->noutput = e->nplaces;
    for (int label = 0; label < LABELS; label++)
        if (e->last[label] >= 0 && e->place[label] < 0)
            place_next(e, label);
    return e->nplaces <= GRD_MAX_DIMS ||
           grd_raise(GRD_ERROR_RUNTIME, "einsum(): too many subscripts: %d, the limit is %d", e->nplaces, GRD_MAX_DIMS);
}

/* ---- Operands ------------------------------------------------------------------------------------------------------------------------- */

/* Returns a view of an operand with one dimension per label of the equation, of size 1 where the operand has no such label; repeated labels become
 * a diagonal. */
static grd_tensor *aligned(const struct equation *e, int64_t operand, grd_tensor *t, int *labels)
{
    int n = (int)t->ndim;
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n && !grd_pending(); k++) {
            if (labels[k] != labels[i])
                continue;
            if (t->sizes[i] != t->sizes[k])
                return grd_fail(GRD_ERROR_RUNTIME,
                                "einsum(): subscript %c is repeated for operand %lld but the sizes don't match, %lld != %lld",
                                letter_of(labels[i]), (long long)operand, (long long)t->sizes[k], (long long)t->sizes[i]);
            t = grd_movedim(grd_diagonal(t, .dim1 = i, .dim2 = k), grd_dims(-1), grd_dims(i));
            memmove(labels + k, labels + k + 1, (size_t)(n - k - 1) * sizeof *labels);
            n--;
            k--;
        }
    int64_t order[GRD_MAX_DIMS];
    uint64_t present = 0;
    int next = 0;
    for (int place = 0; place < e->nplaces; place++)
        for (int i = 0; i < n; i++)
            if (e->place[labels[i]] == place) {
                present |= (uint64_t)1 << place;
                order[next++] = i;
            }
    if (grd_pending())
        return grd_failed;
    t = grd_permute(t, grd_dims_from(order, n));
    for (int place = 0; place < e->nplaces && !grd_pending(); place++)
        if (!(present >> place & 1))
            t = grd_unsqueeze(t, place);
    return t;
}

/* ---- Products ------------------------------------------------------------------------------------------------------------------------- */

/* The dimensions of a pair: in both and kept, in one alone, in both and summed. */
enum part { BATCH, LEFT, RIGHT, SUMMED, PARTS };

struct pair {
    int64_t dims[PARTS][GRD_MAX_DIMS], n[PARTS], size[PARTS];
};

static void add_dim(struct pair *p, enum part part, int64_t dim, int64_t size)
{
    p->dims[part][p->n[part]++] = dim;
    p->size[part] *= size;
}

/* Returns `t` as a batch of matrices whose rows and columns are the given parts. */
static grd_tensor *as_matrices(const struct pair *p, grd_tensor *t, enum part rows, enum part columns)
{
    const enum part parts[] = {BATCH, rows, columns}, absent = rows == LEFT || columns == LEFT ? RIGHT : LEFT;
    int64_t order[GRD_MAX_DIMS], n = 0;
    for (int i = 0; i < 3; i++)
        for (int64_t k = 0; k < p->n[parts[i]]; k++)
            order[n++] = p->dims[parts[i]][k];
    for (int64_t k = 0; k < p->n[absent]; k++)
        order[n++] = p->dims[absent][k];
    return grd_reshape(grd_permute(t, grd_dims_from(order, n)), grd_dims(p->size[BATCH], p->size[rows], p->size[columns]));
}

/* Returns the sum over a bit set of dimensions, which stay with size 1. */
static grd_tensor *sum_bits(grd_tensor *t, uint64_t bits)
{
    int64_t dims[GRD_MAX_DIMS], n = 0;
    for (; bits != 0; bits &= bits - 1)
        dims[n++] = __builtin_ctzll(bits);
    return n > 0 ? grd_sum(t, .dim = grd_dims_from(dims, n), .keepdim = true) : t;
}

/* Returns the sum of a * b over the dimensions of `summed`, which stay with size 1. */
static grd_tensor *sum_of_product(grd_tensor *a, grd_tensor *b, uint64_t summed)
{
    struct pair p = {.size = {1, 1, 1, 1}};
    uint64_t alone_a = 0, alone_b = 0;
    const int64_t n = a->ndim;
    for (int64_t i = 0; i < n; i++) {
        const bool in_a = a->sizes[i] != 1, in_b = b->sizes[i] != 1, is_summed = summed >> i & 1;
        if (is_summed && in_a != in_b)
            *(in_a ? &alone_a : &alone_b) |= (uint64_t)1 << i;
        if (in_a && in_b)
            add_dim(&p, is_summed ? SUMMED : BATCH, i, a->sizes[i]);
        else if (in_a && !is_summed)
            add_dim(&p, LEFT, i, a->sizes[i]);
        else
            add_dim(&p, RIGHT, i, is_summed ? 1 : b->sizes[i]);
    }
    a = sum_bits(a, alone_a);
    b = sum_bits(b, alone_b);
    if (p.n[SUMMED] == 0)
        return grd_mul(a, b);
    grd_tensor *product = grd_bmm(as_matrices(&p, a, LEFT, SUMMED), as_matrices(&p, b, SUMMED, RIGHT));
    int64_t sizes[GRD_MAX_DIMS], order[GRD_MAX_DIMS], at = 0;
    const enum part parts[] = {BATCH, LEFT, RIGHT, SUMMED};
    for (int i = 0; i < PARTS && !grd_pending(); i++)
        for (int64_t k = 0; k < p.n[parts[i]]; k++, at++) {
            const int64_t dim = p.dims[parts[i]][k];
            order[dim] = at;
            sizes[at] = parts[i] == SUMMED ? 1 : parts[i] == RIGHT ? b->sizes[dim] : a->sizes[dim];
        }
    return grd_pending() ? grd_failed : grd_permute(grd_reshape(product, grd_dims_from(sizes, n)), grd_dims_from(order, n));
}

/* Returns the bit set of the dimensions that are summed with this operand, since no later one has their label. */
static uint64_t ending_with(const struct equation *e, int operand)
{
    uint64_t ending = 0;
    for (int label = 0; label < LABELS; label++)
        if (e->last[label] == operand && e->place[label] >= e->noutput)
            ending |= (uint64_t)1 << e->place[label];
    return ending;
}

grd_tensor *op_einsum(const char *equation, grd_tensors operands)
{
    struct equation e = {.ellipsis = 0};
    if (operands.n == 0)
        return grd_fail(GRD_ERROR_RUNTIME, "einsum(): must provide at least one operand");
    memset(e.last, -1, sizeof e.last);
    memset(e.place, -1, sizeof e.place);
    int(*labels)[GRD_MAX_DIMS] = grd_pool_array(operands.n, sizeof *labels);
    if (labels == NULL || !read_equation(equation, operands.n, &e))
        return grd_failed;
    for (int64_t i = 0; i < operands.n; i++)
        if (!label_dimensions(&e, i, operands.data[i], labels[i]) || !note_sizes(&e, i, operands.data[i], labels[i]))
            return grd_failed;
    if (!place_output(&e))
        return grd_failed;
    grd_tensor *result = aligned(&e, 0, operands.data[0], labels[0]);
    result = grd_pending() ? grd_failed : sum_bits(result, ending_with(&e, 0));
    for (int64_t i = 1; i < operands.n && !grd_pending(); i++) {
        grd_tensor *next = aligned(&e, i, operands.data[i], labels[i]);
        result = grd_pending() ? grd_failed : sum_of_product(result, next, ending_with(&e, (int)i));
    }
    /* The places that were summed have size 1, and stand last. */
    return e.nplaces == e.noutput || grd_pending() ? result : grd_view(result, grd_dims_from(result->sizes, e.noutput));
}
