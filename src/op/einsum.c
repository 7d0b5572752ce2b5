/* Implements einsum by views, matrix products and sums. Schema: schema/arrange.toml.
 *
 * Every operand is permuted and reshaped to have one dimension for each label of the equation. The order is the same for all operands: first the
 * labels of the output, then those that are summed. Then the operands are multiplied one after the other. A label is summed when the last operand
 * that has it is multiplied. */
#include <ctype.h>
#include <string.h>

#include "gen/uses/op/einsum.h"
#include "gradus/library.h"
#include "core/tensor.h"

/* A label is a number: 0 to 51 for the letters, upper case first, and LETTERS + k for a dimension of an ellipsis. ELLIPSIS marks the position of the
 * ellipsis in a term. */
enum { LETTERS = 52, LABELS = LETTERS + GRD_MAX_DIMS, ELLIPSIS = LABELS };

/* The subscripts of one operand, or of the output: a label for each dimension. ELLIPSIS may represent several dimensions. */
struct term {
    int labels[GRD_MAX_DIMS + 1], n;
    bool has_ellipsis;
};

/* A parsed equation for `n` operands. size[label] is the size to which the label broadcasts. */
struct equation {
    struct term *inputs, output;
    int64_t n;
    bool has_output;
    int64_t ellipsis; /* largest number of dimensions that an ellipsis represents */
    int64_t size[LABELS];
    int last[LABELS];  /* index of the last operand that has the label; -1 if none has */
    int count[LABELS]; /* number of times the label occurs in the operands */
    /* index of the label's dimension in the reshaped operands, which all have the same dimension order; -1 if not yet assigned */
    int place[LABELS];
    /* nplaces: number of dimensions of the reshaped operands. noutput: number of dimensions of the output. */
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

/* Reads the subscripts text[0 .. length) into *term. `equation` is the whole text, for the positions in errors. */
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

/* Writes the label of each dimension of `t`, which is operand number `operand`, to ret_labels. Raises RuntimeError if `t` does not have as many
 * dimensions as the equation says. */
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
        /* the dimensions of an ellipsis are numbered from the last one, because ellipses broadcast like shapes, aligned at the right */
        for (int64_t k = 0; k < hidden; k++)
            ret_labels[n++] = (int)(LETTERS + hidden - 1 - k);
        e->ellipsis = hidden > e->ellipsis ? hidden : e->ellipsis;
    }
    return true;
}

/* Records in *e the sizes of the labels of operand number `operand`. Raises RuntimeError if they do not broadcast with the sizes of the same labels
 * in earlier operands. */
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

/* Assigns the next free dimension of the reshaped operands to `label`. */
static void place_next(struct equation *e, int label)
{
    e->place[label] = e->nplaces++;
}

static void place_ellipsis(struct equation *e)
{
    for (int64_t k = e->ellipsis; k-- > 0;)
        place_next(e, (int)(LETTERS + k));
}

/* Assigns a dimension of the reshaped operands to each label: first to the labels of the output, then to all others. If the equation has no "->", the
 * output has the ellipsis, then the letters that occur once, in alphabetical order, upper case first. */
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

/* Returns a view of operand `t` with one dimension for each label of the equation. If the operand does not have the label, the dimension has size 1.
 * If the operand has the label twice, the dimension is the diagonal. */
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

/* How a dimension occurs in a product of two operands: in both operands and in the result (BATCH), in the left or right operand alone, or in both
 * operands and summed. */
enum part { BATCH, LEFT, RIGHT, SUMMED, PARTS };

/* The dimensions of two operands, sorted by their kind, an enum part. dims[i] holds the indices of the n[i] dimensions of kind i, and size[i] is the
 * product of their sizes. */
struct pair {
    int64_t dims[PARTS][GRD_MAX_DIMS], n[PARTS], size[PARTS];
};

static void add_dim(struct pair *p, enum part part, int64_t dim, int64_t size)
{
    p->dims[part][p->n[part]++] = dim;
    p->size[part] *= size;
}

/* Returns `t` reshaped to (batch, rows, columns). The batch dimensions, the dimensions of kind `rows` and those of kind `columns` (see enum part)
 * are each flattened to one. */
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

/* Returns `t` summed over the dimensions whose bits are set in `bits`. These dimensions keep size 1. A sum converts bool and integers to int64. So that
 * products keep their dtype, dimensions that have size 1 already are left out unless `alone`, i.e. unless `t` is the only operand. */
static grd_tensor *sum_bits(grd_tensor *t, uint64_t bits, bool alone)
{
    int64_t dims[GRD_MAX_DIMS], n = 0;
    for (; bits != 0; bits &= bits - 1)
        if (alone || t->sizes[__builtin_ctzll(bits)] != 1)
            dims[n++] = __builtin_ctzll(bits);
    return n > 0 ? grd_sum(t, .dim = grd_dims_from(dims, n), .keepdim = true) : t;
}

/* Returns the sum of a * b over the dimensions whose bits are set in `summed`. These dimensions keep size 1. Uses bmm if a summed dimension is larger
 * than 1 in both operands. */
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
    a = sum_bits(a, alone_a, false);
    b = sum_bits(b, alone_b, false);
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

/* Returns the dimensions to sum when operand number `operand` is multiplied, as a bit set. These are the dimensions whose labels are neither in
 * the output nor in a later operand. */
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
    result = grd_pending() ? grd_failed : sum_bits(result, ending_with(&e, 0), operands.n == 1);
    for (int64_t i = 1; i < operands.n && !grd_pending(); i++) {
        grd_tensor *next = aligned(&e, i, operands.data[i], labels[i]);
        result = grd_pending() ? grd_failed : sum_of_product(result, next, ending_with(&e, (int)i));
    }
    /* The summed dimensions are the last ones and have size 1, so a view removes them. */
    return e.nplaces == e.noutput || grd_pending() ? result : grd_view(result, grd_dims_from(result->sizes, e.noutput));
}
