/* Reads the header of a safetensors file by its grammar, and then checks that the sizes and offsets in it are consistent. */
#include "io/header.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "io/json.h"

/* The printf format for a name from a file in an error text. It shows at most 80 bytes of the name. */
#define SHOWN "%.80s"

/* The dtypes of the safetensors format, in the order in which the format's own library writes tensors. */
static const struct {
    char name[8];
    uint8_t dtype;
} dtypes[] = {
    {"U64", GRD_UINT64},          {"I64", GRD_INT64},  {"F64", GRD_FLOAT64}, {"C64", GRD_COMPLEX64},
    {"F32", GRD_FLOAT32},         {"U32", GRD_UINT32}, {"I32", GRD_INT32},   {"BF16", GRD_BFLOAT16},
    {"F16", GRD_FLOAT16},         {"U16", GRD_UINT16}, {"I16", GRD_INT16},   {"F8_E4M3", GRD_FLOAT8_E4M3FN},
    {"F8_E5M2", GRD_FLOAT8_E5M2}, {"I8", GRD_INT8},    {"U8", GRD_UINT8},    {"BOOL", GRD_BOOL},
};

int grd_header_dtype_order(grd_dtype dtype)
{
    int i = 0;
    while (i < GRD_LENGTH(dtypes) && dtypes[i].dtype != dtype)
        i++;
    return i;
}

const char *grd_header_dtype_name(grd_dtype dtype)
{
    const int i = grd_header_dtype_order(dtype);
    return i < GRD_LENGTH(dtypes) ? dtypes[i].name : NULL;
}

/* ---- The grammar -------------------------------------------------------------------------------------------------------------------------- */

/* Reads the character behind an item of a JSON list or object. Sets *ret_more to true for ',' and to false for `close`, the end of the list.
 * False, with RuntimeError, for any other character. */
static bool read_separator(struct grd_json *json, char close, bool *ret_more)
{
    *ret_more = grd_json_take(json, ',');
    return *ret_more || grd_json_take(json, close) || grd_json_fail(json, "expected ',' or '%c'", close);
}

/* Reads the JSON object of metadata, whose values are all strings, into header->metadata. False, with the error raised, on failure. */
static bool read_metadata(struct grd_json *json, struct grd_header *header)
{
    if (!grd_json_expect(json, '{'))
        return false;
    for (bool more = !grd_json_take(json, '}'); more;) {
        if (!grd_reserve(&header->metadata, header->nmetadata + 1, &header->metadata_capacity, sizeof *header->metadata))
            return false;
        grd_named_text *text = &header->metadata[header->nmetadata];
        if (!grd_json_string(json, &text->name) || !grd_json_expect(json, ':') || !grd_json_string(json, &text->text) ||
            !read_separator(json, '}', &more))
            return false;
        header->nmetadata++;
    }
    return true;
}

static bool read_sizes(struct grd_json *json, struct grd_header *header, struct grd_header_entry *entry)
{
    uint64_t size;
    entry->sizes = header->nsizes;
    if (!grd_json_expect(json, '['))
        return false;
    for (bool more = !grd_json_take(json, ']'); more;) {
        if (entry->ndim == GRD_MAX_DIMS)
            return grd_json_fail(json, "tensor '" SHOWN "' has more than %d dimensions", entry->name, GRD_MAX_DIMS);
        if (!grd_json_integer(json, &size))
            return false;
        if (size > INT64_MAX)
            return grd_json_fail(json, "a size of tensor '" SHOWN "' is above 2^63 - 1", entry->name);
        if (!grd_reserve(&header->sizes, header->nsizes + 1, &header->sizes_capacity, sizeof *header->sizes) ||
            !read_separator(json, ']', &more))
            return false;
        header->sizes[header->nsizes++] = (int64_t)size;
        entry->ndim++;
    }
    return true;
}

static bool read_dtype(struct grd_json *json, struct grd_header_entry *entry)
{
    const char *name;
    if (!grd_json_string(json, &name))
        return false;
    for (int i = 0; i < GRD_LENGTH(dtypes); i++)
        if (strncmp(dtypes[i].name, name, sizeof dtypes[i].name) == 0)
            entry->dtype = dtypes[i].dtype;
    return entry->dtype != GRD_DTYPE_NONE ||
           grd_json_fail(json, "tensor '" SHOWN "' has the dtype '" SHOWN "', which is not known", entry->name, name);
}

static bool read_offsets(struct grd_json *json, struct grd_header_entry *entry)
{
    return grd_json_expect(json, '[') && grd_json_integer(json, &entry->begin) && grd_json_expect(json, ',') &&
           grd_json_integer(json, &entry->end) && grd_json_expect(json, ']');
}

/* Reads the description of tensor `name`, which is a JSON object, and adds it to header->entries. The object has three fields in any order, each
 * once. False, with the error raised, on failure. */
static bool read_entry(struct grd_json *json, struct grd_header *header, const char *name)
{
    static const char *const fields[] = {"dtype", "shape", "data_offsets"};
    if (!grd_reserve(&header->entries, header->nentries + 1, &header->entries_capacity, sizeof *header->entries))
        return false;
    struct grd_header_entry *entry = &header->entries[header->nentries];
    *entry = (struct grd_header_entry){.name = name};
    unsigned seen = 0;
    if (!grd_json_expect(json, '{'))
        return false;
    for (bool more = !grd_json_take(json, '}'); more;) {
        const char *field;
        int which = 0;
        if (!grd_json_string(json, &field))
            return false;
        while (which < 3 && strcmp(field, fields[which]) != 0)
            which++;
        if (which == 3 || (seen & 1u << which) != 0)
            return grd_json_fail(json, "tensor '" SHOWN "' has the field '" SHOWN "', which is %s", name, field,
                                 which == 3 ? "not known" : "there twice");
        seen |= 1u << which;
        if (!grd_json_expect(json, ':') ||
            !(which == 0   ? read_dtype(json, entry)
              : which == 1 ? read_sizes(json, header, entry)
                           : read_offsets(json, entry)) ||
            !read_separator(json, '}', &more))
            return false;
    }
    header->nentries++;
    return seen == 7 || grd_json_fail(json, "tensor '" SHOWN "' lacks one of the fields dtype, shape and data_offsets", name);
}

static bool read_object(struct grd_json *json, struct grd_header *header)
{
    bool has_metadata = false;
    if (json->at == json->end || *json->at != '{')
        return grd_json_fail(json, "expected '{'"); /* unlike elsewhere, no spaces may come before this brace */
    json->at++;
    for (bool more = !grd_json_take(json, '}'); more;) {
        const char *name;
        if (!grd_json_string(json, &name) || !grd_json_expect(json, ':'))
            return false;
        const bool is_metadata = strcmp(name, GRD_METADATA_NAME) == 0;
        if (is_metadata && has_metadata)
            return grd_json_fail(json, GRD_METADATA_NAME " is there twice");
        has_metadata |= is_metadata;
        if (!(is_metadata ? read_metadata(json, header) : read_entry(json, header, name)) || !read_separator(json, '}', &more))
            return false;
    }
    return grd_json_at_end(json) || grd_json_fail(json, "text behind the object");
}

/* ---- Consistency of the numbers --------------------------------------------------------------------------------------------------------------- */

/* True if a tensor has exactly as many bytes in the file as its dtype and sizes require; otherwise raises RuntimeError. `what` names the file. */
static bool check_size(const struct grd_header *header, const struct grd_header_entry *entry, const char *what)
{
    uint64_t bytes = 1;
    bool fits = true;
    for (int i = 0; i < entry->ndim && fits; i++)
        fits = !__builtin_mul_overflow(bytes, (uint64_t)header->sizes[entry->sizes + i], &bytes);
    fits = fits && !__builtin_mul_overflow(bytes, (uint64_t)grd_dtype_size((grd_dtype)entry->dtype), &bytes);
    if (fits && entry->begin <= entry->end && entry->end - entry->begin == bytes)
        return true;
    if (!fits)
        return grd_raise(GRD_ERROR_RUNTIME, "cannot load %s: the sizes of tensor '" SHOWN "' multiply to more than 2^64 bytes", what,
                         entry->name);
    return grd_raise(GRD_ERROR_RUNTIME,
                     "cannot load %s: tensor '" SHOWN "' needs %llu bytes for its dtype and sizes, but its data_offsets are [%llu, %llu]",
                     what, entry->name, (unsigned long long)bytes, (unsigned long long)entry->begin, (unsigned long long)entry->end);
}

/* Compares two tensors by the position of their first byte, for qsort. An empty tensor comes before others that begin at the same byte. */
static int compare_places(const void *a, const void *b)
{
    const struct grd_header_entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

/* True if the tensors cover the `data_size` bytes of data without gaps and overlaps; otherwise raises RuntimeError. The entries must be sorted by
 * compare_places. */
static bool check_places(const struct grd_header *header, uint64_t data_size, const char *what)
{
    uint64_t covered = 0;
    for (int64_t i = 0; i < header->nentries; i++) {
        const struct grd_header_entry *entry = &header->entries[i];
        if (!check_size(header, entry, what))
            return false;
        if (entry->begin != covered)
            return grd_raise(GRD_ERROR_RUNTIME,
                             "cannot load %s: tensor '" SHOWN "' begins at byte %llu of the data, but the one before it ends at byte %llu",
                             what, entry->name, (unsigned long long)entry->begin, (unsigned long long)covered);
        covered = entry->end;
    }
    return covered == data_size ||
           grd_raise(GRD_ERROR_RUNTIME, "cannot load %s: its tensors have %llu bytes, but %llu bytes follow the header", what,
                     (unsigned long long)covered, (unsigned long long)data_size);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char *grd_sort_by_name(void *list, int64_t n, size_t item)
{
    if (n > 1)
        qsort(list, (size_t)n, item, compare_names);
    for (int64_t i = 1; i < n; i++) {
        const char *entry = (const char *)list + (size_t)i * item;
        if (compare_names(entry - item, entry) == 0)
            return *(const char *const *)(const void *)entry;
    }
    return NULL;
}

_Static_assert(offsetof(struct grd_header_entry, name) == 0 && offsetof(grd_named_text, name) == 0, "they are sorted by name");

static bool names_differ(const char *twice, const char *what)
{
    return twice == NULL || grd_raise(GRD_ERROR_RUNTIME, "cannot load %s: the name '" SHOWN "' is there twice", what, twice);
}

bool grd_header_read(struct grd_header *header, uint64_t data_size, const char *what)
{
    struct grd_json json = {header->text, header->text, header->text + header->text_size, what};
    if (!read_object(&json, header))
        return false;
    if (header->nentries > 1)
        qsort(header->entries, (size_t)header->nentries, sizeof *header->entries, compare_places);
    return check_places(header, data_size, what) &&
           names_differ(grd_sort_by_name(header->entries, header->nentries, sizeof *header->entries), what) &&
           names_differ(grd_sort_by_name(header->metadata, header->nmetadata, sizeof *header->metadata), what);
}

void grd_header_done(struct grd_header *header)
{
    grd_free(header->text, header->text_size);
    grd_free(header->entries, (size_t)header->entries_capacity * sizeof *header->entries);
    grd_free(header->sizes, (size_t)header->sizes_capacity * sizeof *header->sizes);
    grd_free(header->metadata, (size_t)header->metadata_capacity * sizeof *header->metadata);
    *header = (struct grd_header){0};
}
