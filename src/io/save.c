/* Writing safetensors: everything is checked, the header is composed, then the tensors follow one after another, each packed on its own. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "io/header.h"
#include "gen/uses/io/save.h"

/* One tensor and its place among the data. */
struct piece {
    const grd_named_tensor *source;
    uint64_t begin, end;
};

/* Where the bytes go. */
struct sink {
    grd_replacement *file; /* NULL: to memory */
    char *memory;          /* the next byte */
};

static bool put(struct sink *sink, const void *bytes, size_t size)
{
    if (sink->file != NULL)
        return grd_replacement_write(sink->file, bytes, size);
    if (size > 0)
        memcpy(sink->memory, bytes, size);
    sink->memory += size;
    return true;
}

/* ---- Checks ----------------------------------------------------------------------------------------------------------------------------------- */

static bool check_list(const void *data, int64_t n, const char *what)
{
    return n == 0 || (n > 0 && data != NULL) ||
           grd_raise(GRD_ERROR_TYPE, "grd_save: argument '%s' is no list: its length is %lld and its data %s", what, (long long)n,
                     data != NULL ? "not NULL" : "NULL");
}

static bool check_text(const char *text, const char *what)
{
    if (text == NULL)
        return grd_raise(GRD_ERROR_TYPE, "grd_save: a %s is NULL", what);
    return grd_is_utf8(text, strlen(text)) || grd_raise(GRD_ERROR_RUNTIME, "grd_save: a %s is not UTF-8", what);
}

static bool check_tensor(const grd_named_tensor *named)
{
    const grd_tensor *t = named->tensor;
    if (!check_text(named->name, "name of a tensor"))
        return false;
    if (t == NULL)
        return grd_raise(GRD_ERROR_TYPE, "grd_save: tensor '%s' is NULL", named->name);
    if (!grd_given(t, "grd_save", "tensors"))
        return false;
    if (strcmp(named->name, GRD_METADATA_NAME) == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "grd_save: no tensor can be named '" GRD_METADATA_NAME "', which is the metadata");
    if (grd_header_dtype_name((grd_dtype)t->dtype) == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "grd_save: tensor '%s' is %s, a dtype that safetensors does not have", named->name,
                         grd_dtype_name((grd_dtype)t->dtype));
    return !grd_is_meta(t) || grd_raise(GRD_ERROR_RUNTIME, "grd_save: tensor '%s' is on the meta device and has no data", named->name);
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool check_metadata(grd_named_texts metadata)
{
    for (int64_t i = 0; i < metadata.n; i++)
        if (!check_text(metadata.data[i].name, "name in the metadata") || !check_text(metadata.data[i].text, "text in the metadata"))
            return false;
    const char **names = grd_pool_alloc((size_t)metadata.n * sizeof *names);
    if (names == NULL)
        return false;
    for (int64_t i = 0; i < metadata.n; i++)
        names[i] = metadata.data[i].name;
    if (metadata.n > 1)
        qsort(names, (size_t)metadata.n, sizeof *names, compare_texts);
    for (int64_t i = 1; i < metadata.n; i++)
        if (strcmp(names[i - 1], names[i]) == 0)
            return grd_raise(GRD_ERROR_RUNTIME, "grd_save: the name '%s' is twice in the metadata", names[i]);
    return true;
}

/* ---- Places ------------------------------------------------------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    return strcmp(x->source->name, y->source->name);
}

/* By alignment first, so that every tensor of a mapped file is aligned. */
static int compare_pieces(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    const int order =
        grd_header_dtype_order((grd_dtype)x->source->tensor->dtype) - grd_header_dtype_order((grd_dtype)y->source->tensor->dtype);
    return order != 0 ? order : compare_names(a, b);
}

static bool check_names_differ(struct piece *pieces, int64_t n)
{
    if (n > 1)
        qsort(pieces, (size_t)n, sizeof *pieces, compare_names);
    for (int64_t i = 1; i < n; i++)
        if (compare_names(&pieces[i - 1], &pieces[i]) == 0)
            return grd_raise(GRD_ERROR_RUNTIME, "grd_save: two tensors are named '%s'", pieces[i].source->name);
    return true;
}

/* The tensors in the order in which they are written. NULL, with the error raised, on failure. */
static struct piece *place_tensors(grd_named_tensors tensors)
{
    struct piece *pieces = grd_pool_alloc((size_t)tensors.n * sizeof *pieces);
    if (pieces == NULL)
        return NULL;
    for (int64_t i = 0; i < tensors.n; i++)
        pieces[i] = (struct piece){.source = &tensors.data[i]};
    if (!check_names_differ(pieces, tensors.n))
        return NULL;
    if (tensors.n > 1)
        qsort(pieces, (size_t)tensors.n, sizeof *pieces, compare_pieces);
    uint64_t end = 0;
    for (int64_t i = 0; i < tensors.n; i++) {
        const grd_tensor *t = pieces[i].source->tensor;
        pieces[i].begin = end;
        uint64_t bytes;
        if (__builtin_mul_overflow((uint64_t)t->numel, t->itemsize, &bytes) || __builtin_add_overflow(end, bytes, &end) ||
            end > INT64_MAX) {
            grd_raise(GRD_ERROR_RUNTIME, "grd_save: the tensors have more than 2^63 - 1 bytes");
            return NULL;
        }
        pieces[i].end = end;
    }
    return pieces;
}

/* ---- The header ---------------------------------------------------------------------------------------------------------------------------------- */

static void add_string(struct grd_text *text, const char *string)
{
    static const char letters[] = "\"\\\b\f\n\r\t", escapes[] = "\"\\bfnrt";
    grd_text_add(text, "\"");
    for (const char *at = string; *at != '\0';) {
        const size_t plain = strcspn(at, "\"\\\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
                                         "\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f");
        if (plain > 0)
            grd_text_add(text, "%.*s", (int)plain, at);
        at += plain;
        if (*at == '\0')
            break;
        const char *letter = strchr(letters, *at);
        if (letter != NULL)
            grd_text_add(text, "\\%c", escapes[letter - letters]);
        else
            grd_text_add(text, "\\u%04x", (unsigned char)*at);
        at++;
    }
    grd_text_add(text, "\"");
}

static void add_metadata(struct grd_text *text, grd_named_texts metadata)
{
    grd_text_add(text, "\"" GRD_METADATA_NAME "\":{");
    for (int64_t i = 0; i < metadata.n; i++) {
        grd_text_add(text, i > 0 ? "," : "");
        add_string(text, metadata.data[i].name);
        grd_text_add(text, ":");
        add_string(text, metadata.data[i].text);
    }
    grd_text_add(text, "}");
}

static void add_piece(struct grd_text *text, const struct piece *piece)
{
    const grd_tensor *t = piece->source->tensor;
    add_string(text, piece->source->name);
    grd_text_add(text, ":{\"dtype\":\"%s\",\"shape\":[", grd_header_dtype_name((grd_dtype)t->dtype));
    for (int i = 0; i < t->ndim; i++)
        grd_text_add(text, "%s%lld", i > 0 ? "," : "", (long long)t->sizes[i]);
    grd_text_add(text, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)piece->begin, (unsigned long long)piece->end);
}

/* Spaces at the end bring the data to a multiple of 8 bytes. */
static bool compose_header(struct grd_text *text, const struct piece *pieces, int64_t n, grd_named_texts metadata)
{
    grd_text_add(text, "{");
    if (metadata.n > 0)
        add_metadata(text, metadata);
    for (int64_t i = 0; i < n; i++) {
        grd_text_add(text, i > 0 || metadata.n > 0 ? "," : "");
        add_piece(text, &pieces[i]);
    }
    grd_text_add(text, "}");
    grd_text_add(text, "%*s", (int)(-text->size % 8), "");
    if (text->failed)
        return false;
    return text->size <= GRD_HEADER_MAX ||
           grd_raise(GRD_ERROR_RUNTIME, "grd_save: the header would have %llu bytes, the format's limit is %llu",
                     (unsigned long long)text->size, (unsigned long long)GRD_HEADER_MAX);
}

/* ---- Writing -------------------------------------------------------------------------------------------------------------------------------------- */

static bool put_header(struct sink *sink, const struct grd_text *header)
{
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)header->size >> 8 * i);
    return put(sink, length, sizeof length) && put(sink, header->data, header->size);
}

static bool put_tensor(struct sink *sink, const struct piece *piece)
{
    const grd_scope scope = grd_scope_open();
    const grd_tensor *packed = grd_contiguous(grd_on_cpu(piece->source->tensor));
    const bool done = !grd_pending() && put(sink, packed->data, piece->end - piece->begin);
    grd_scope_close(scope);
    return done;
}

/* Everything that can be wrong with the arguments is found before `open` makes the sink, which gets the size of the file. */
static bool write_all(grd_named_tensors tensors, grd_named_texts metadata,
                      bool (*open)(void *context, uint64_t size, struct sink *ret_sink), void *context)
{
    struct grd_text header = {0};
    struct sink sink = {0};
    bool done = check_list(tensors.data, tensors.n, "tensors") && check_list(metadata.data, metadata.n, "metadata");
    for (int64_t i = 0; i < tensors.n && done; i++)
        done = check_tensor(&tensors.data[i]);
    const struct piece *pieces = done && check_metadata(metadata) ? place_tensors(tensors) : NULL;
    const uint64_t bytes = pieces != NULL && tensors.n > 0 ? pieces[tensors.n - 1].end : 0;
    done = pieces != NULL && compose_header(&header, pieces, tensors.n, metadata) && open(context, 8 + header.size + bytes, &sink) &&
           put_header(&sink, &header);
    for (int64_t i = 0; i < tensors.n && done; i++)
        done = put_tensor(&sink, &pieces[i]);
    grd_text_done(&header);
    return done;
}

/* Outside autograd, with a scope for the lists. */
static void write_in_scope(grd_named_tensors tensors, grd_named_texts metadata,
                           bool (*open)(void *context, uint64_t size, struct sink *ret_sink), void *context)
{
    if (grd_pending())
        return;
    const grd_scope scope = grd_scope_open();
    const bool grad = grd_set_grad_enabled(false);
    write_all(tensors, metadata, open, context);
    grd_set_grad_enabled(grad);
    grd_scope_close(scope);
}

struct file_context {
    const char *path;
    grd_replacement *file;
};

static bool open_file(void *context, uint64_t size, struct sink *ret_sink)
{
    struct file_context *c = context;
    (void)size;
    c->file = ret_sink->file = grd_replacement_open(c->path);
    return c->file != NULL;
}

bool grd_save_with_metadata(const char *path, grd_named_tensors tensors, grd_named_texts metadata)
{
    struct file_context context = {.path = path};
    if (!grd_pending() && path == NULL)
        return grd_raise(GRD_ERROR_TYPE, "grd_save: argument 'path' must not be NULL");
    write_in_scope(tensors, metadata, open_file, &context);
    return grd_replacement_commit(context.file);
}

bool grd_save(const char *path, grd_named_tensors tensors)
{
    return grd_save_with_metadata(path, tensors, (grd_named_texts){NULL, 0});
}

static bool open_memory(void *context, uint64_t size, struct sink *ret_sink)
{
    grd_tensor **bytes = context;
    grd_tensor *made = grd_empty(grd_dims((int64_t)size), .dtype = GRD_UINT8, .device = GRD_CPU);
    if (grd_pending())
        return false;
    *bytes = grd_keep(made);
    ret_sink->memory = made->data;
    return true;
}

grd_tensor *grd_save_to_tensor(grd_named_tensors tensors, grd_named_texts metadata)
{
    const grd_scope scope = grd_scope_open();
    grd_tensor *bytes = NULL;
    write_in_scope(tensors, metadata, open_memory, &bytes);
    grd_tensor *result = grd_scope_return(scope, bytes != NULL && !grd_pending() ? bytes : grd_failed);
    grd_drop(bytes);
    return result;
}
