/* Formats tensors as PyTorch prints them: all elements have one width, and the middle of large tensors is left out.
 *
 * Invariant: the format (integers only, scientific notation, width) depends only on the elements that are shown. */
#include "core/print.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/device.h"
#include "core/dtype.h"
#include "core/geometry.h"
#include "core/given.h"
#include "core/read.h"
#include "core/tensor.h"
#include "core/transfer.h"
#include "core/wrapper.h"

const char *(*grd_print_grad_fn)(const grd_tensor *t);
grd_tensor *(*grd_print_tangent)(const grd_tensor *t);

/* ---- Options ------------------------------------------------------------------------------------------------------------ */

/* NUMBER_CHARS is the size in bytes of the text of one number. It has room for a sign, the 309 digits of the largest double, the point and
 * MAX_PRECISION digits. */
enum { MAX_PRECISION = 100, NUMBER_CHARS = 512 };

static grd_print_options options = {.precision = 4, .threshold = 1000, .edge = 3, .line_width = 80, .sci_mode = -1};
static pthread_mutex_t options_lock = PTHREAD_MUTEX_INITIALIZER;

grd_print_options grd_print_options_get(void)
{
    pthread_mutex_lock(&options_lock);
    grd_print_options result = options;
    pthread_mutex_unlock(&options_lock);
    return result;
}

void grd_print_options_set(grd_print_options wanted)
{
    if (wanted.precision < 0 || wanted.precision > MAX_PRECISION || wanted.threshold < 0 || wanted.edge < 0 || wanted.line_width < 0) {
        grd_raise(GRD_ERROR_VALUE, "print options: precision must be in [0, %d], threshold, edge and line width not negative",
                  MAX_PRECISION);
        return;
    }
    pthread_mutex_lock(&options_lock);
    options = wanted;
    pthread_mutex_unlock(&options_lock);
}

/* ---- One column of numbers: all elements, or the real or imaginary parts of complex elements ---------------------------------- */

enum part { WHOLE, REAL, IMAGINARY };

/* The format of one column of printed numbers. A complex tensor has two columns, one for the real and one for the imaginary parts. Any other tensor
 * has one column. */
struct column {
    enum part part;
    bool floating, integers_only, scientific;
    int width;
};

/* The state of printing one tensor `t`. */
struct printer {
    const grd_tensor *t;
    /* A tensor with the same elements on the CPU, which may be `t` itself; NULL on the meta device. */
    const grd_tensor *near;
    grd_print_options options;
    bool summarize;
    struct column columns[2];
    int ncolumns, indent; /* indent: number of spaces before each text line after the first */
    int64_t last_line;    /* length of the last text line as PyTorch counts it; decides whether a suffix starts a new line */
    struct grd_text text;
};

/* Returns the number that a floating-point column shows for an element: its imaginary part, its real part, or the element itself. */
static double number_of(const struct column *column, grd_scalar element)
{
    return column->part == IMAGINARY ? element.v.c.im : grd_scalar_double(element);
}

/* Writes the number that `column` shows for `element` as text without padding; returns the length of the text. */
static int format_number(const struct printer *p, const struct column *column, grd_scalar element, char *ret_text)
{
    if (!column->floating) {
        if (element.kind == GRD_SCALAR_BOOL)
            return snprintf(ret_text, NUMBER_CHARS, "%s", element.v.i ? "True" : "False");
        if (p->t->dtype == GRD_UINT64)
            return snprintf(ret_text, NUMBER_CHARS, "%llu", (unsigned long long)element.v.i);
        return snprintf(ret_text, NUMBER_CHARS, "%lld", (long long)element.v.i);
    }
    double x = number_of(column, element);
    if (isnan(x))
        return snprintf(ret_text, NUMBER_CHARS, "nan");
    if (isinf(x))
        return snprintf(ret_text, NUMBER_CHARS, x < 0 ? "-inf" : "inf");
    if (column->scientific)
        return snprintf(ret_text, NUMBER_CHARS, "%.*e", p->options.precision, x);
    if (column->integers_only)
        return snprintf(ret_text, NUMBER_CHARS, "%.0f.", x);
    return snprintf(ret_text, NUMBER_CHARS, "%.*f", p->options.precision, x);
}

/* ---- The elements that are shown ------------------------------------------------------------------------------------------------ */

/* The state of a pass over the elements that are shown. The first pass finds the range of their absolute values; the second one (`measuring`)
 * finds the width of their text. */
struct scan {
    double min, max; /* range of the absolute values, where zeros, infinities and NaNs are ignored */
    bool any, integers_only, measuring;
    struct column *column;
};

/* True if the entries in the middle of dimension `dim` are left out. */
static bool leaves_out_middle(const struct printer *p, int dim)
{
    return p->summarize && (p->t->sizes[dim] - 1) / 2 >= p->options.edge;
}

/* Returns how many entries dimension `dim` shows. The dots for a left-out middle count as one entry. */
static int64_t entries_shown(const struct printer *p, int dim)
{
    return leaves_out_middle(p, dim) ? 2 * p->options.edge + 1 : p->t->sizes[dim];
}

/* Returns the address of the i-th entry that dimension `dim` shows, or NULL if this entry is the dots. `at` is the address of the first entry. */
static const char *entry_shown(const struct printer *p, int dim, int64_t i, const char *at)
{
    const int64_t skipped = p->t->sizes[dim] - entries_shown(p, dim);
    if (leaves_out_middle(p, dim) && i == p->options.edge)
        return NULL;
    return at + (i > p->options.edge ? skipped + i : i) * grd_byte_stride(p->t, dim);
}

/* Takes one element into account. The first pass extends the range of absolute values. The second pass (`measuring`) widens the column if the text of
 * the element is longer. */
static void scan_element(const struct printer *p, struct scan *scan, const char *element_bytes)
{
    grd_scalar element = grd_element_of(p->t, element_bytes);
    if (scan->column->floating) {
        double x = fabs(number_of(scan->column, element));
        if (!isfinite(x) || x == 0)
            return;
        if (!scan->measuring) {
            scan->min = scan->any ? fmin(scan->min, x) : x;
            scan->max = scan->any ? fmax(scan->max, x) : x;
            scan->integers_only &= x == ceil(x);
            scan->any = true;
            return;
        }
    }
    char number[NUMBER_CHARS];
    int width = format_number(p, scan->column, element, number);
    if (width > scan->column->width)
        scan->column->width = width;
}

/* Scans the shown elements of dimension `dim` and of all dimensions inside it. `at` is the address of the first of these elements. */
static void scan_shown(const struct printer *p, struct scan *scan, int dim, const char *at)
{
    if (dim == p->t->ndim) {
        scan_element(p, scan, at);
        return;
    }
    const int64_t entries = entries_shown(p, dim);
    for (int64_t i = 0; i < entries; i++) {
        const char *entry = entry_shown(p, dim, i, at);
        if (entry != NULL)
            scan_shown(p, scan, dim + 1, entry);
    }
}

/* Decides how the numbers of `column` are formatted. `first` is the address of the tensor's first element. Zeros, infinities and NaNs do not
 * influence the notation. */
static void prepare_column(struct printer *p, struct column *column, enum part part, const char *first)
{
    int category = grd_dtype_table[p->t->dtype].category;
    *column = (struct column){.part = part, .integers_only = true, .width = 1};
    column->floating = category == GRD_CATEGORY_FLOAT || category == GRD_CATEGORY_COMPLEX;
    struct scan scan = {.column = column, .integers_only = true};
    if (column->floating) {
        scan_shown(p, &scan, 0, first);
        if (!scan.any)
            return;
        column->integers_only = scan.integers_only;
        column->scientific =
            p->options.sci_mode < 0 ? scan.max / scan.min > 1000 || scan.max > 1e8 || scan.min < 1e-4 : p->options.sci_mode != 0;
    }
    scan.measuring = true;
    scan_shown(p, &scan, 0, first);
}

/* ---- Text ------------------------------------------------------------------------------------------------------------------------- */

static void add_element(struct printer *p, const char *at)
{
    grd_scalar element = grd_element_of(p->t, at);
    char number[NUMBER_CHARS];
    format_number(p, &p->columns[0], element, number);
    grd_text_add(&p->text, "%*s", p->columns[0].width, number);
    if (p->ncolumns == 2) {
        format_number(p, &p->columns[1], element, number);
        grd_text_add(&p->text, "%s%sj", number[0] == '-' ? "" : "+", number);
    }
}

static int64_t elements_per_line(const struct printer *p, int indent)
{
    const int64_t width = p->columns[0].width + 2 + (p->ncolumns == 2 ? p->columns[1].width + 1 : 0);
    const int64_t n = (p->options.line_width - indent) / width;
    return n > 1 ? n : 1;
}

static void add_newlines(struct printer *p, int n, int indent)
{
    grd_text_add(&p->text, ",");
    for (; n > 0; n--)
        grd_text_add(&p->text, "\n");
    grd_text_add(&p->text, "%*s", indent, "");
}

/* Adds the shown elements of dimension `dim` and of all dimensions inside it to the text, in nested brackets. `at` is the address of the first of
 * these elements. */
static void add_slices(struct printer *p, int dim, int indent, const char *at)
{
    const int below = p->t->ndim - 1 - dim; /* number of dimensions further inwards than `dim` */
    if (below < 0) {
        add_element(p, at);
        return;
    }
    const int64_t entries = entries_shown(p, dim), per_line = below == 0 ? elements_per_line(p, indent) : 1;
    grd_text_add(&p->text, "[");
    for (int64_t i = 0; i < entries && !p->text.failed; i++) {
        const char *entry = entry_shown(p, dim, i, at);
        if (i > 0 && i % per_line == 0)
            add_newlines(p, below > 1 ? below : 1, indent + 1);
        else if (i > 0)
            grd_text_add(&p->text, ", ");
        if (entry != NULL)
            add_slices(p, dim + 1, indent + 1, entry);
        else
            grd_text_add(&p->text, below == 0 && p->options.edge > 0 ? " ..." : "...");
    }
    grd_text_add(&p->text, "]");
}

/* Adds a suffix such as "device='meta'" after a comma to the text, on a new line if it does not fit on the last one. */
static void add_suffix(struct printer *p, const char *suffix)
{
    int64_t length = (int64_t)strlen(suffix);
    bool wraps = p->last_line + length + 2 > p->options.line_width;
    if (wraps)
        grd_text_add(&p->text, ",\n%*s%s", p->indent, "", suffix);
    else
        grd_text_add(&p->text, ", %s", suffix);
    p->last_line = wraps ? p->indent + length : p->last_line + length + 2;
}

/* Adds the suffix "size=(2, 3)" to the text. It is printed if the elements do not show the sizes. */
static void add_size_suffix(struct printer *p)
{
    struct grd_text tuple = {0};
    grd_text_add(&tuple, "size=(");
    for (int dim = 0; dim < p->t->ndim; dim++)
        grd_text_add(&tuple, "%s%lld", dim > 0 ? ", " : "", (long long)p->t->sizes[dim]);
    grd_text_add(&tuple, p->t->ndim == 1 ? ",)" : ")");
    if (tuple.failed)
        p->text.failed = true;
    else
        add_suffix(p, tuple.data);
    grd_text_done(&tuple);
}

/* True if the dtype must be printed because the elements do not show it. If no elements are printed, every dtype except the default
 * dtype must be printed. */
static bool shows_dtype(const grd_tensor *t, bool has_numbers)
{
    grd_dtype dtype = (grd_dtype)t->dtype, standard = grd_default_dtype();
    if (!has_numbers)
        return dtype != standard;
    return dtype != standard && dtype != grd_dtype_to_complex(standard) && dtype != GRD_INT64 && dtype != GRD_BOOL;
}

static void add_tangent(struct printer *p, grd_tensor *tangent)
{
    char *text = grd_to_string(tangent);
    struct grd_text suffix = {0};
    if (text != NULL)
        grd_text_add(&suffix, "tangent=%s", text);
    if (text != NULL && !suffix.failed)
        add_suffix(p, suffix.data);
    grd_text_done(&suffix);
    free(text);
}

/* Adds the suffixes that PyTorch prints after the elements: device, size, dtype, grad_fn or requires_grad, and the tangent. */
static void add_suffixes(struct printer *p)
{
    const grd_tensor *t = p->t;
    const char *newline = strrchr(p->text.data, '\n');
    int64_t line_start = newline != NULL ? newline - p->text.data : -1;
    p->last_line = (int64_t)p->text.size - line_start + 1; /* 2 more characters than the line has, as in PyTorch's _add_suffixes */
    bool meta = grd_is_meta(t), has_numbers = !meta && t->numel > 0;
    char suffix[NUMBER_CHARS];
    const grd_wrapper_type *wrapper = grd_wrapper_type_of(t);
    if (wrapper != NULL) {
        snprintf(suffix, sizeof suffix, "wrapper='%s'", wrapper->name);
        add_suffix(p, suffix);
    } else if (t->device != GRD_DEVICE_CPU) {
        snprintf(suffix, sizeof suffix, "device='%s'", grd_device_text(grd_device_of(t)).chars);
        add_suffix(p, suffix);
    }
    if (meta || (t->numel == 0 && t->ndim != 1) || (has_numbers && p->options.edge == 0))
        add_size_suffix(p);
    if (shows_dtype(t, has_numbers)) {
        snprintf(suffix, sizeof suffix, "dtype=torch.%s", grd_dtype_name((grd_dtype)t->dtype));
        add_suffix(p, suffix);
    }
    const char *grad_fn = grd_print_grad_fn != NULL ? grd_print_grad_fn(t) : NULL;
    if (grad_fn != NULL) {
        snprintf(suffix, sizeof suffix, "grad_fn=<%s>", grad_fn);
        add_suffix(p, suffix);
    } else if (grd_marked_requires_grad(t)) {
        add_suffix(p, "requires_grad=True");
    }
    grd_tensor *tangent = grd_print_tangent != NULL ? grd_print_tangent(t) : NULL;
    if (tangent != NULL)
        add_tangent(p, tangent);
}

/* Adds the elements to the text, or "..." for a meta tensor and "[]" for an empty one. */
static void add_contents(struct printer *p)
{
    const grd_tensor *t = p->t;
    if (grd_is_meta(t) || t->numel == 0) {
        grd_text_add(&p->text, grd_is_meta(t) ? "..." : "[]");
        return;
    }
    const char *first = p->near->data;
    p->summarize = t->numel > p->options.threshold;
    p->ncolumns = grd_dtype_table[t->dtype].category == GRD_CATEGORY_COMPLEX ? 2 : 1;
    for (int i = 0; i < p->ncolumns; i++)
        prepare_column(p, &p->columns[i], p->ncolumns == 1 ? WHOLE : i == 0 ? REAL : IMAGINARY, first);
    add_slices(p, 0, p->indent, first);
}

char *grd_to_string(grd_tensor *t)
{
    return grd_to_string_as(t, "tensor");
}

/* Returns the text of a batch tensor (a tensor inside vmap), allocated by malloc: "BatchedTensor(lvl=1, bdim=0, value=...)". In place of the dots
 * it has the text of the tensor that holds the whole batch, indented by 4 spaces. Returns NULL, with the error raised, on failure. */
static char *batch_to_string(const grd_tensor *t, const char *name)
{
    struct grd_text text = {0};
    char *result = NULL, *value = grd_to_string_as(grd_physical(t), name);
    if (value == NULL)
        return NULL;
    grd_text_add(&text, "BatchedTensor(lvl=1, bdim=0, value=");
    for (const char *line = value; line != NULL && !text.failed;) {
        const char *end = strchr(line, '\n');
        grd_text_add(&text, "\n    %.*s", end != NULL ? (int)(end - line) : (int)strlen(line), line);
        line = end != NULL ? end + 1 : NULL;
    }
    grd_text_add(&text, "\n)");
    if (text.failed || (result = strdup(text.data)) == NULL)
        grd_raise(GRD_ERROR_MEMORY, "out of memory");
    grd_text_done(&text);
    free(value);
    return result;
}

char *grd_to_string_as(grd_tensor *t, const char *name)
{
    struct printer p = {.t = t, .options = grd_print_options_get()};
    char *result = NULL;
    if (!grd_given_pointer(name, "grd_to_string", "name") || !grd_given(t, "grd_to_string", "t"))
        return NULL;
    if (grd_is_batch(t))
        return batch_to_string(t, name);
    p.indent = (int)strlen(name) + 1;
    const int64_t mark = grd_pool_mark();
    if (!grd_is_meta(t))
        p.near = grd_on_cpu(t);
    if (p.near == grd_failed && t != grd_failed) {
        grd_pool_release(mark);
        return NULL;
    }
    grd_text_add(&p.text, "%s(", name);
    add_contents(&p);
    if (!p.text.failed)
        add_suffixes(&p);
    grd_text_add(&p.text, ")");
    if (!p.text.failed && (result = strdup(p.text.data)) == NULL)
        grd_raise(GRD_ERROR_MEMORY, "out of memory");
    grd_text_done(&p.text);
    grd_pool_release(mark);
    return result;
}

void grd_print(grd_tensor *t)
{
    char *text = grd_to_string(t);
    if (text != NULL)
        puts(text);
    free(text);
}
