/* Draws a strided tensor as SVG, with the cells of its storage beside its elements. A cell is the part of the storage that one element occupies.
 *
 * Each element has the color of the storage cell that it is read from, and its tooltip shows how the index of the cell follows from the element's
 * indices and the strides. Invariant: tensors with equal sizes, strides, offsets and storage contents have equal drawings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/given.h"
#include "core/read.h"
#include "core/scalar.h"
#include "core/tensor.h"
#include "core/wrapper.h"

enum {
    /* The largest number of elements that are drawn. Dots, which are drawn instead of left-out elements, count too. A storage with more cells than
     * this is not drawn completely. */
    MAX_PLACES = 4096,
    LIST_CHARS = 512,
    VALUE_CHARS = 64,
    MARGIN = 14,
    HEAD = 62, /* height of the text above the cells, in SVG units */
    HEIGHT = 42,
    MIN_WIDTH = 44,
    GAP = 4,
    BLOCK_GAP = 16, /* gap between two matrices of a tensor with more than two dimensions */
    SIDE_GAP = 40,  /* gap between the storage and the tensor */
};

/* The state of a drawing. Coordinates and widths are in SVG user units.
 *
 * A place is one position along a dimension of the drawing. It shows one index of that dimension, or dots instead of the indices that are left
 * out in the middle. */
struct picture {
    const grd_tensor *t;
    bool has_values, all_cells; /* all_cells: draw also those cells that no drawn element is read from */
    int64_t edge;               /* number of indices drawn at each end of a dimension whose middle is left out */
    int64_t ncells, nplaces;
    /* Number of places along each dimension, where a place shows one index or dots. It is the size of the dimension, or 2 * edge + 1 if the
     * middle of the dimension is left out. */
    int64_t entries[GRD_MAX_DIMS];
    int64_t pitch[GRD_MAX_DIMS]; /* distance in SVG units between neighbouring places of a dimension */
    /* Indices of the cells that the drawn elements are read from, sorted, with one entry for each element. nread is the number of entries. The
     * array is freed when the innermost grd_scope closes. */
    int64_t *read, nread;
    int64_t width;         /* width of each cell in SVG units */
    int64_t right, bottom; /* largest x and y coordinates drawn so far */
    struct grd_text text;
};

/* ---- Places: each dimension has one for every index that is drawn, and one for the dots in its middle -------------------------------------- */

/* Returns the index that is drawn at place number `place` of dimension `dim`, or -1 if the place shows dots. */
static int64_t index_at(const struct picture *p, int dim, int64_t place)
{
    const int64_t left_out = p->t->sizes[dim] + 1 - p->entries[dim];
    return left_out == 1 || place < p->edge ? place : place == p->edge ? -1 : place - 1 + left_out;
}

/* Advances `places`, which holds a place for each dimension, to the next element in row-major order. */
static void advance(const struct picture *p, int64_t *places)
{
    for (int dim = p->t->ndim - 1; dim >= 0 && ++places[dim] == p->entries[dim]; dim--)
        places[dim] = 0;
}

/* Writes to ret_indices[d] the index at places[d], for each dimension d. Returns false if one of the places shows dots. */
static bool indices_at(const struct picture *p, const int64_t *places, int64_t *ret_indices)
{
    bool drawn = true;
    for (int dim = 0; dim < p->t->ndim; dim++)
        drawn &= (ret_indices[dim] = index_at(p, dim, places[dim])) >= 0;
    return drawn;
}

/* Returns the distance, in elements, from the tensor's first element to the element at these indices: the sum of index * stride. */
static int64_t distance(const struct picture *p, const int64_t *indices)
{
    int64_t sum = 0;
    for (int dim = 0; dim < p->t->ndim; dim++)
        sum += indices[dim] * p->t->strides[dim];
    return sum;
}

/* Decides how many places each dimension has and whether all storage cells are drawn. Returns false, with RuntimeError, if there are more than
 * MAX_PLACES elements to draw. */
static bool plan_places(struct picture *p)
{
    const grd_tensor *t = p->t;
    const grd_print_options options = grd_print_options_get();
    char list[LIST_CHARS];
    p->edge = options.edge;
    p->nplaces = t->numel == 0 ? 0 : 1;
    for (int dim = 0; dim < t->ndim && p->nplaces > 0; dim++) {
        const bool leaves_out = t->numel > options.threshold && (t->sizes[dim] - 1) / 2 >= options.edge;
        p->entries[dim] = leaves_out ? 2 * options.edge + 1 : t->sizes[dim];
        if (__builtin_mul_overflow(p->nplaces, p->entries[dim], &p->nplaces) || p->nplaces > MAX_PLACES)
            return grd_raise(
                GRD_ERROR_RUNTIME,
                "grd_draw_strides: argument 't' of sizes %s has more than %d elements to draw: draw a slice of it, or let the print "
                "options omit more elements",
                grd_format_int64s(list, sizeof list, t->sizes, t->ndim), MAX_PLACES);
    }
    p->ncells = t->storage->bytes / t->itemsize;
    p->all_cells = p->ncells <= options.threshold && p->ncells <= MAX_PLACES;
    return true;
}

/* ---- Texts ----------------------------------------------------------------------------------------------------------------------- */

/* Writes the value at address `element` as text and returns the length of the text. If `in_memory` is true, this is the value as stored. Otherwise it
 * is the value of the tensor's element, i.e. the conjugate of the stored value if the tensor has the key CONJUGATE. Writes "" and returns 0 if values
 * cannot be read. */
static int format_value(const struct picture *p, const void *element, bool in_memory, char *ret_text)
{
    ret_text[0] = '\0';
    if (!p->has_values)
        return 0;
    const grd_scalar x = in_memory ? grd_scalar_read(element, (grd_dtype)p->t->dtype) : grd_element_of(p->t, element);
    if (x.kind == GRD_SCALAR_BOOL)
        return snprintf(ret_text, VALUE_CHARS, "%s", x.v.i ? "True" : "False");
    if (x.kind == GRD_SCALAR_COMPLEX)
        return snprintf(ret_text, VALUE_CHARS, "%.4g%+.4gj", x.v.c.re, x.v.c.im);
    if (p->t->dtype == GRD_UINT64)
        return snprintf(ret_text, VALUE_CHARS, "%llu", (unsigned long long)x.v.i);
    if (x.kind == GRD_SCALAR_INT)
        return snprintf(ret_text, VALUE_CHARS, "%lld", (long long)x.v.i);
    return snprintf(ret_text, VALUE_CHARS, "%.4g", grd_scalar_double(x));
}

/* Writes the indices separated by commas, e.g. "1,2", into `buffer` of LIST_CHARS characters. Returns `buffer`. */
static const char *format_indices(const struct picture *p, const int64_t *indices, char *buffer)
{
    int n = 0;
    buffer[0] = '\0';
    for (int dim = 0; dim < p->t->ndim && n < LIST_CHARS; dim++)
        n += snprintf(buffer + n, (size_t)(LIST_CHARS - n), "%s%lld", dim > 0 ? "," : "", (long long)indices[dim]);
    return buffer;
}

/* Writes the color of storage cell number `cell` as "#rrggbb". Colors go from blue at the start of the storage through green and yellow to red at
 * its end. */
static void format_color(const struct picture *p, int64_t cell, char ret_color[8])
{
    const double hue = 255 - 240.0 * (double)cell / (double)(p->ncells > 1 ? p->ncells - 1 : 1), lightness = 0.84,
                 reach = 0.75 * (1 - lightness);
    int channels[3];
    for (int i = 0; i < 3; i++) { /* the formula of CSS for hsl(), with saturation 75 % */
        const double k = fmod(8.0 * (i == 1) + 4.0 * (i == 2) + hue / 30, 12);
        channels[i] = (int)lround(255 * (lightness - reach * fmax(-1, fmin(fmin(k - 3, 9 - k), 1))));
    }
    snprintf(ret_color, 8, "#%02x%02x%02x", channels[0] & 255, channels[1] & 255, channels[2] & 255);
}

/* ---- Cells ----------------------------------------------------------------------------------------------------------------------- */

static const char *cell_data(const struct picture *p, int64_t cell)
{
    return (const char *)p->t->storage->data + cell * p->t->itemsize;
}

/* Opens an SVG group of the class `kind`, for a storage cell or an element at the coordinates x, y. The caller adds a tooltip and calls add_label,
 * which closes the group. */
static void open_cell(struct picture *p, const char *kind, int64_t x, int64_t y)
{
    p->right = x + p->width > p->right ? x + p->width : p->right;
    p->bottom = y + HEIGHT > p->bottom ? y + HEIGHT : p->bottom;
    grd_text_add(&p->text, "<g class=\"%s\" transform=\"translate(%lld,%lld)\"", kind, (long long)x, (long long)y);
}

static void add_label(struct picture *p, const char *above, const char *value)
{
    grd_text_add(&p->text, "<text x=\"%lld\" y=\"13\" font-size=\"10\">%s</text><text x=\"%lld\" y=\"31\">%s</text></g>\n",
                 (long long)(p->width / 2), above, (long long)(p->width / 2), value);
}

static void add_rectangle(struct picture *p, int64_t cell, bool is_read)
{
    char color[8];
    format_color(p, cell, color);
    grd_text_add(&p->text, "<rect width=\"%lld\" height=\"%d\" rx=\"6\" %s%s\"/>", (long long)p->width, HEIGHT,
                 is_read ? "fill=\"" : "stroke-dasharray=\"3 3\" stroke=\"#8a8f98\" fill=\"", is_read ? color : "none");
}

static void add_dots(struct picture *p, int64_t x, int64_t y, const char *left_out)
{
    open_cell(p, "dots", x, y);
    grd_text_add(&p->text, "><title>%s</title>", left_out);
    add_label(p, "", "…");
}

/* ---- The storage -------------------------------------------------------------------------------------------------------------------- */

/* The layout of the storage: its cells are drawn in rows of `columns` cells. `drawn` is the number of cells drawn so far. */
struct rows {
    int64_t columns, drawn;
};

/* Writes the coordinates of the next storage cell to be drawn to *ret_x and *ret_y, and counts the cell as drawn. */
static void place_next(const struct picture *p, struct rows *rows, int64_t *ret_x, int64_t *ret_y)
{
    *ret_x = MARGIN + rows->drawn % rows->columns * (p->width + GAP);
    *ret_y = HEAD + rows->drawn / rows->columns * (HEIGHT + GAP);
    rows->drawn++;
}

/* Draws storage cell number `cell`; `reads` is the number of drawn elements that are read from it. */
static void draw_cell(struct picture *p, struct rows *rows, int64_t cell, int64_t reads)
{
    char value[VALUE_CHARS] = "", number[VALUE_CHARS];
    int64_t x, y;
    place_next(p, rows, &x, &y);
    open_cell(p, "cell", x, y);
    if (cell < p->ncells) /* a storage that was shrunk may end before the tensor's last element, and then the cell has no value */
        format_value(p, cell_data(p, cell), true, value);
    grd_text_add(&p->text, " data-cell=\"%lld\" data-reads=\"%lld\"><title>storage cell %lld, read by %lld element%s</title>",
                 (long long)cell, (long long)reads, (long long)cell, (long long)reads, reads == 1 ? "" : "s");
    add_rectangle(p, cell, reads > 0);
    snprintf(number, sizeof number, reads > 1 ? "%lld ×%lld" : "%lld", (long long)cell, (long long)reads);
    add_label(p, number, value);
}

/* Draws the storage cells from `first` to `past` - 1. No drawn element is read from them. If `all_cells` is false, draws dots instead. */
static void draw_unread(struct picture *p, struct rows *rows, int64_t first, int64_t past)
{
    char text[VALUE_CHARS];
    int64_t x, y;
    for (; p->all_cells && first < past; first++)
        draw_cell(p, rows, first, 0);
    if (first >= past)
        return;
    snprintf(text, sizeof text, "storage cells %lld to %lld", (long long)first, (long long)(past - 1));
    place_next(p, rows, &x, &y);
    add_dots(p, x, y, text);
}

static void draw_storage(struct picture *p)
{
    struct rows rows = {.columns = (p->all_cells ? p->ncells : p->nread) > 128 ? 16 : 8};
    int64_t next = 0;
    for (int64_t i = 0, reads; i < p->nread; i += reads) {
        const int64_t cell = p->read[i];
        for (reads = 1; i + reads < p->nread && p->read[i + reads] == cell;)
            reads++;
        draw_unread(p, &rows, next, cell);
        draw_cell(p, &rows, cell, reads);
        next = cell + 1;
    }
    draw_unread(p, &rows, next, p->ncells);
}

/* ---- The tensor ------------------------------------------------------------------------------------------------------------------------ */

/* Adds a tooltip that shows the computation of the storage cell from the element's indices: "[1, 2]: 0 + 1*4 + 2*1 is storage cell 6". */
static void add_sum(struct picture *p, const int64_t *indices, int64_t cell)
{
    char list[LIST_CHARS];
    const grd_tensor *t = p->t;
    grd_text_add(&p->text, "<title>%s: %lld", grd_format_int64s(list, sizeof list, indices, t->ndim), (long long)t->offset);
    for (int dim = 0; dim < t->ndim; dim++)
        grd_text_add(&p->text, t->strides[dim] < 0 ? " + %lld·(%lld)" : " + %lld·%lld", (long long)indices[dim],
                     (long long)t->strides[dim]);
    grd_text_add(&p->text, " is storage cell %lld</title>", (long long)cell);
}

/* Draws the element with these indices at the coordinates x, y. */
static void draw_element(struct picture *p, const int64_t *indices, int64_t x, int64_t y)
{
    char above[LIST_CHARS], value[VALUE_CHARS];
    const int64_t steps = distance(p, indices), cell = p->t->offset + steps;
    open_cell(p, "element", x, y);
    grd_text_add(&p->text, " data-index=\"%s\" data-cell=\"%lld\">", format_indices(p, indices, above), (long long)cell);
    add_sum(p, indices, cell);
    add_rectangle(p, cell, true);
    format_value(p, p->t->data + steps * p->t->itemsize, false, value);
    add_label(p, above, value);
}

/* Sets the distance between neighbouring places of each dimension. The last dimension runs to the right, the dimension before it downwards, the
 * next one to the right again (as a row of matrices), and so on. */
static void plan_pitch(struct picture *p)
{
    const int ndim = p->t->ndim;
    for (int k = 0; k < ndim; k++) {
        const int dim = ndim - 1 - k;
        p->pitch[dim] = k == 0 ? p->width + GAP : k == 1 ? HEIGHT + GAP : p->pitch[dim + 2] * p->entries[dim + 2] + BLOCK_GAP;
    }
}

/* Draws the elements of the tensor, beginning at the x coordinate `left`. */
static void draw_tensor(struct picture *p, int64_t left)
{
    int64_t places[GRD_MAX_DIMS] = {0}, indices[GRD_MAX_DIMS];
    plan_pitch(p);
    for (int64_t i = 0; i < p->nplaces && !p->text.failed; i++) {
        int64_t x = left, y = HEAD;
        for (int dim = 0; dim < p->t->ndim; dim++)
            *((p->t->ndim - 1 - dim) % 2 == 0 ? &x : &y) += places[dim] * p->pitch[dim];
        if (indices_at(p, places, indices))
            draw_element(p, indices, x, y);
        else
            add_dots(p, x, y, "left out");
        advance(p, places);
    }
}

/* ---- All ---------------------------------------------------------------------------------------------------------------------------------- */

static int compare_cells(const void *a, const void *b)
{
    const int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;
    return (first > second) - (first < second);
}

/* Makes all cells wide enough for a text of `n` characters, each `size` units wide. */
static void widen(struct picture *p, int64_t n, int64_t size)
{
    const int64_t width = n * size + 8;
    p->width = width > p->width ? width : p->width;
}

/* Finds the cells that drawn elements are read from, and the cell width that the texts need. Returns false, with the error raised, if there is no
 * memory. */
static bool measure(struct picture *p)
{
    int64_t places[GRD_MAX_DIMS] = {0}, indices[GRD_MAX_DIMS];
    char text[LIST_CHARS];
    if ((p->read = grd_pool_array(p->nplaces, sizeof *p->read)) == NULL)
        return false;
    for (int64_t i = 0; i < p->nplaces; i++, advance(p, places)) {
        if (!indices_at(p, places, indices))
            continue;
        const int64_t steps = distance(p, indices);
        p->read[p->nread++] = p->t->offset + steps;
        widen(p, format_value(p, p->t->data + steps * p->t->itemsize, false, text), 9);
        widen(p, (int64_t)strlen(format_indices(p, indices, text)), 6);
    }
    for (int64_t cell = 0; p->all_cells && cell < p->ncells; cell++)
        widen(p, format_value(p, cell_data(p, cell), true, text), 9);
    qsort(p->read, (size_t)p->nread, sizeof *p->read, compare_cells);
    return true;
}

/* Writes the complete SVG file to *ret_text: the size of the picture, a header with sizes, strides and offset, the two captions, and the cells
 * and elements, which are already in p->text. `left` is the x coordinate of the tensor's caption. */
static void add_frame(const struct picture *p, int64_t left, struct grd_text *ret_text)
{
    const grd_tensor *t = p->t;
    char sizes[LIST_CHARS], strides[LIST_CHARS];
    grd_format_int64s(sizes, sizeof sizes, t->sizes, t->ndim);
    grd_format_int64s(strides, sizeof strides, t->strides, t->ndim);
    const int64_t text_width = 8 * (int64_t)(strlen(sizes) + strlen(strides) + 52),
                  needed = left + 190 > text_width ? left + 190 : text_width;
    const int64_t width = (p->right > needed ? p->right : needed) + MARGIN, height = p->bottom + MARGIN;
    grd_text_add(ret_text,
                 "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%lld\" height=\"%lld\" viewBox=\"0 0 %lld %lld\" role=\"img\" "
                 "aria-label=\"storage and elements of a tensor of sizes %s, strides %s, offset %lld\" "
                 "font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"14\" text-anchor=\"middle\" fill=\"#16181c\">\n"
                 "<rect width=\"100%%\" height=\"100%%\" rx=\"8\" fill=\"#ffffff\"/>\n<g text-anchor=\"start\" font-size=\"13\">\n"
                 "<text x=\"%d\" y=\"26\" font-weight=\"bold\">sizes %s, strides %s, offset %lld, %s%s</text>\n",
                 (long long)width, (long long)height, (long long)width, (long long)height, sizes, strides, (long long)t->offset, MARGIN,
                 sizes, strides, (long long)t->offset, grd_dtype_name((grd_dtype)t->dtype), p->has_values ? "" : ", values not read");
    grd_text_add(ret_text,
                 "<text x=\"%d\" y=\"52\">storage: %lld cell%s</text>\n<text x=\"%lld\" y=\"52\">tensor: %lld element%s</text>\n</g>\n",
                 MARGIN, (long long)p->ncells, p->ncells == 1 ? "" : "s", (long long)left, (long long)t->numel, t->numel == 1 ? "" : "s");
    grd_text_add(ret_text, "%s</svg>\n", p->text.data != NULL ? p->text.data : "");
}

static bool check_drawable(const grd_tensor *t)
{
    const grd_wrapper_type *wrapper = grd_wrapper_type_of(t);
    if (wrapper != NULL)
        return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "grd_draw_strides: argument 't' is a wrapper, '%s', whose storage has no cells",
                         wrapper->name);
    return !grd_is_batch(t) ||
           grd_raise(GRD_ERROR_RUNTIME, "grd_draw_strides: argument 't' is a batch tensor, whose strides are those of one "
                                        "element of the batch: draw the tensor it was made of");
}

/* Returns the text of the SVG file, allocated by malloc, which the caller owns. Returns NULL, with the error raised, on failure. */
static char *drawn(struct picture *p)
{
    struct grd_text whole = {0};
    char *result = NULL;
    if (!measure(p))
        return NULL;
    p->right = MARGIN + 170; /* room for the caption above the storage */
    p->bottom = HEAD;
    draw_storage(p);
    const int64_t left = p->right + SIDE_GAP;
    draw_tensor(p, left);
    if (!p->text.failed)
        add_frame(p, left, &whole);
    if (!p->text.failed && !whole.failed && (result = strdup(whole.data)) == NULL)
        grd_raise(GRD_ERROR_MEMORY, "out of memory");
    grd_text_done(&p->text);
    grd_text_done(&whole);
    return result;
}

char *grd_draw_strides(grd_tensor *t)
{
    struct picture p = {.t = t, .width = MIN_WIDTH};
    if (!grd_given(t, "grd_draw_strides", "t") || !check_drawable(t) || !plan_places(&p))
        return NULL;
    p.has_values = t->device == GRD_DEVICE_CPU;
    const int64_t mark = grd_pool_mark();
    char *result = drawn(&p);
    grd_pool_release(mark);
    return result;
}
