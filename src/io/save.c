/* Writes safetensors files. All arguments are checked and the header is composed first. Then the tensors are written one after another. Each
 * tensor is made contiguous just before it is written, so that at most one contiguous copy exists at a time. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/given.h"
#include "core/tensor.h"
#include "core/transfer.h"
#include "gradus/library.h"
#include "io/header.h"
#include "io/json.h"
#include "gen/uses/io/save.h"

/* A tensor and the positions of its bytes in the data of the file, which are `begin` to `end` - 1. */
struct piece {
    const char *name;
    grd_tensor *tensor;
    uint64_t begin, end;
};

/* The contents of a file: the tensors in their order in the file, and the text of the header. */
struct content {
    struct piece *pieces;
    int64_t n;
    struct grd_text header;
    uint64_t bytes; /* number of bytes of all tensors together */
};

/* The destination that bytes are written to, which is a file or memory. */
struct sink {
    grd_replacement *file; /* NULL if the destination is memory */
    char *memory;          /* address of the next byte to be written; NULL if the destination is a file */
};

/* Writes `size` bytes to the destination. False, with the error raised, on failure. */
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

static bool check_metadata(grd_named_texts metadata)
{
    for (int64_t i = 0; i < metadata.n; i++)
        if (!check_text(metadata.data[i].name, "name in the metadata") || !check_text(metadata.data[i].text, "text in the metadata"))
            return false;
    grd_named_text *sorted = grd_pool_alloc((size_t)metadata.n * sizeof *sorted);
    if (sorted == NULL)
        return false;
    for (int64_t i = 0; i < metadata.n; i++)
        sorted[i] = metadata.data[i];
    const char *twice = grd_sort_by_name(sorted, metadata.n, sizeof *sorted);
    return twice == NULL || grd_raise(GRD_ERROR_RUNTIME, "grd_save: the name '%s' is twice in the metadata", twice);
}

/* ---- Order of the tensors ---------------------------------------------------------------------------------------------------- */

/* Compares two tensors for qsort. Tensors whose dtype needs a larger alignment come first, because then every tensor is aligned in the mapped file
 * without padding. Tensors with the same alignment are ordered by name. */
static int compare_pieces(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    const int order = grd_header_dtype_order((grd_dtype)x->tensor->dtype) - grd_header_dtype_order((grd_dtype)y->tensor->dtype);
    return order != 0 ? order : strcmp(x->name, y->name);
}

/* Makes content->pieces, which lists the tensors in their order in the file and gives the positions of their bytes. False, with the error raised,
 * on failure, e.g. if two tensors have the same name or the tensors are too large. */
static bool place_tensors(struct content *content, grd_named_tensors tensors)
{
    struct piece *pieces = content->pieces = grd_pool_alloc((size_t)tensors.n * sizeof *pieces);
    if (pieces == NULL)
        return false;
    content->n = tensors.n;
    for (int64_t i = 0; i < tensors.n; i++)
        pieces[i] = (struct piece){.name = tensors.data[i].name, .tensor = tensors.data[i].tensor};
    const char *twice = grd_sort_by_name(pieces, tensors.n, sizeof *pieces);
    if (twice != NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "grd_save: two tensors are named '%s'", twice);
    if (tensors.n > 1)
        qsort(pieces, (size_t)tensors.n, sizeof *pieces, compare_pieces);
    for (int64_t i = 0; i < tensors.n; i++) {
        const grd_tensor *t = pieces[i].tensor;
        pieces[i].begin = content->bytes;
        uint64_t bytes;
        if (__builtin_mul_overflow((uint64_t)t->numel, t->itemsize, &bytes) ||
            __builtin_add_overflow(content->bytes, bytes, &content->bytes) || content->bytes > INT64_MAX)
            return grd_raise(GRD_ERROR_RUNTIME, "grd_save: the tensors have more than 2^63 - 1 bytes");
        pieces[i].end = content->bytes;
    }
    return true;
}

/* ---- The header ---------------------------------------------------------------------------------------------------------------------------------- */

/* Appends `string` to `text` as a JSON string, with quotes and escapes. */
static void add_string(struct grd_text *text, const char *string)
{
    static const char letters[] = "\"\\\b\f\n\r\t", escapes[] = "\"\\bfnrt";
    grd_text_add(text, "\"");
    for (const char *at = string; *at != '\0';) {
        const size_t ordinary = strcspn(at, "\"\\\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f"
                                            "\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f");
        if (ordinary > 0)
            grd_text_add(text, "%.*s", (int)ordinary, at);
        at += ordinary;
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
    const grd_tensor *t = piece->tensor;
    add_string(text, piece->name);
    grd_text_add(text, ":{\"dtype\":\"%s\",\"shape\":[", grd_header_dtype_name((grd_dtype)t->dtype));
    for (int i = 0; i < t->ndim; i++)
        grd_text_add(text, "%s%lld", i > 0 ? "," : "", (long long)t->sizes[i]);
    grd_text_add(text, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)piece->begin, (unsigned long long)piece->end);
}

/* Composes the text of the header. Spaces at its end make the data begin at a multiple of 8 bytes. False, with the error raised, on failure. */
static bool compose_header(struct content *content, grd_named_texts metadata)
{
    struct grd_text *text = &content->header;
    grd_text_add(text, "{");
    if (metadata.n > 0)
        add_metadata(text, metadata);
    for (int64_t i = 0; i < content->n; i++) {
        grd_text_add(text, i > 0 || metadata.n > 0 ? "," : "");
        add_piece(text, &content->pieces[i]);
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

/* Checks all arguments and composes the header. This is done before a file is opened, so that a wrong argument leaves the old file as it is.
 * False, with the error raised, on failure. */
static bool compose(struct content *content, grd_named_tensors tensors, grd_named_texts metadata)
{
    bool ok = !grd_pending() && check_list(tensors.data, tensors.n, "tensors") && check_list(metadata.data, metadata.n, "metadata");
    for (int64_t i = 0; i < tensors.n && ok; i++)
        ok = check_tensor(&tensors.data[i]);
    return ok && check_metadata(metadata) && place_tensors(content, tensors) && compose_header(content, metadata);
}

/* Writes the elements of a tensor to the destination as contiguous bytes. False, with the error raised, on failure. */
static bool put_tensor(struct sink *sink, const struct piece *piece)
{
    const grd_scope scope = grd_scope_open();
    const grd_tensor *packed = grd_contiguous(grd_resolve_neg(grd_resolve_conj(grd_on_cpu(piece->tensor))));
    const bool done = !grd_pending() && put(sink, packed->data, piece->end - piece->begin);
    grd_scope_close(scope);
    return done;
}

static void put_all(struct sink *sink, const struct content *content)
{
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)content->header.size >> 8 * i);
    bool ok = put(sink, length, sizeof length) && put(sink, content->header.data, content->header.size);
    for (int64_t i = 0; i < content->n && ok; i++)
        ok = put_tensor(sink, &content->pieces[i]);
}

bool grd_save_with_metadata(const char *path, grd_named_tensors tensors, grd_named_texts metadata)
{
    struct content content = {0};
    struct sink sink = {0};
    if (!grd_pending() && !grd_given_pointer(path, "grd_save", "path"))
        return false;
    const grd_scope scope = grd_scope_open();
    const bool grad = grd_set_grad_enabled(false);
    if (compose(&content, tensors, metadata) && (sink.file = grd_replacement_open(path)) != NULL)
        put_all(&sink, &content);
    grd_set_grad_enabled(grad);
    grd_text_done(&content.header);
    grd_scope_close(scope);
    return grd_replacement_commit(sink.file);
}

bool grd_save(const char *path, grd_named_tensors tensors)
{
    return grd_save_with_metadata(path, tensors, (grd_named_texts){NULL, 0});
}

grd_tensor *grd_save_to_tensor(grd_named_tensors tensors, grd_named_texts metadata)
{
    struct content content = {0};
    grd_tensor *bytes = grd_failed;
    const grd_scope scope = grd_scope_open();
    const bool grad = grd_set_grad_enabled(false);
    if (compose(&content, tensors, metadata))
        bytes = grd_empty(grd_dims((int64_t)(8 + content.header.size + content.bytes)), .dtype = GRD_UINT8, .device = GRD_CPU);
    if (!grd_is_failed(bytes))
        put_all(&(struct sink){.memory = bytes->data}, &content);
    grd_set_grad_enabled(grad);
    grd_text_done(&content.header);
    return grd_scope_return(scope, bytes);
}
