/* Reads safetensors files. The header is read and checked when a file is opened. A tensor is read into new memory when it is requested.
 *
 * Files are not mapped into memory: if another process shortened a mapped file, an access behind its new end would kill this process. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "io/header.h"
#include "gen/uses/io/tensor_file.h"

enum {
    LENGTH_BYTES = 8,    /* bytes at the start of a file, which hold the size of the header */
    MOST_READ = 1 << 30, /* most bytes in one call of pread, which reads at most 2^31 - 4096 */
};

struct grd_tensor_file {
    size_t size;        /* bytes allocated for this struct and `what` */
    int descriptor;     /* descriptor of the file; -1 if its bytes are in memory */
    const char *memory; /* borrowed bytes of a file that is in memory; NULL for a file on disk */
    uint64_t bytes;     /* number of bytes of the file */
    struct grd_header header;
    char what[]; /* names the file in error texts */
};

/* Returns the offset in the file of the first byte behind the header, where the data starts. */
static uint64_t data_start(const struct grd_tensor_file *file)
{
    return LENGTH_BYTES + file->header.text_size;
}

/* ---- Bytes -------------------------------------------------------------------------------------------------------------------------------- */

/* Reads `size` bytes at `offset` of the file. The caller has checked that the file had these bytes when it was opened. False, with the error
 * raised, on failure. */
static bool read_bytes(const struct grd_tensor_file *file, uint64_t offset, void *ret_bytes, uint64_t size)
{
    if (file->memory != NULL) {
        memcpy(ret_bytes, file->memory + offset, size);
        return true;
    }
    for (uint64_t done = 0; done < size;) {
        const uint64_t wanted = size - done < MOST_READ ? size - done : MOST_READ;
        const ssize_t n = pread(file->descriptor, (char *)ret_bytes + done, wanted, (off_t)(offset + done));
        if (n == 0)
            return grd_raise(GRD_ERROR_RUNTIME, "cannot load %s: it has become shorter since it was opened", file->what);
        if (n < 0 && errno != EINTR)
            return grd_raise_system(errno, "cannot load %s", file->what);
        done += n > 0 ? (uint64_t)n : 0;
    }
    return true;
}

/* ---- Opening ------------------------------------------------------------------------------------------------------------------------------- */

static bool read_length(const struct grd_tensor_file *file, uint64_t *ret_length)
{
    unsigned char bytes[LENGTH_BYTES];
    if (file->bytes < LENGTH_BYTES)
        return grd_raise(GRD_ERROR_RUNTIME, "cannot load %s: a safetensors file has at least %d bytes, this one has %llu", file->what,
                         LENGTH_BYTES, (unsigned long long)file->bytes);
    if (!read_bytes(file, 0, bytes, sizeof bytes))
        return false;
    uint64_t length = 0;
    for (int i = LENGTH_BYTES - 1; i >= 0; i--)
        length = length << 8 | bytes[i];
    if (length > GRD_HEADER_MAX)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "cannot load %s: it is no safetensors file, or its header of %llu bytes is longer than the format's limit, %llu",
                         file->what, (unsigned long long)length, (unsigned long long)GRD_HEADER_MAX);
    if (length > file->bytes - LENGTH_BYTES)
        return grd_raise(GRD_ERROR_RUNTIME, "cannot load %s: its header of %llu bytes is longer than the file", file->what,
                         (unsigned long long)length);
    *ret_length = length;
    return true;
}

static bool read_header(struct grd_tensor_file *file)
{
    uint64_t length = 0;
    if (!read_length(file, &length))
        return false;
    file->header.text = grd_alloc(length);
    if (file->header.text == NULL)
        return false;
    file->header.text_size = length;
    return read_bytes(file, LENGTH_BYTES, file->header.text, length) &&
           grd_header_read(&file->header, file->bytes - data_start(file), file->what);
}

/* Returns a new struct for a file, or NULL with MemoryError. Error texts name the file as `what`, with `quote` before and after it. `memory`
 * holds the `bytes` bytes of the file. If `memory` is NULL, the file is on disk. */
static struct grd_tensor_file *new_file(const char *what, const char *quote, const void *memory, size_t bytes)
{
    const size_t size = sizeof(struct grd_tensor_file) + strlen(what) + 2 * strlen(quote) + 1;
    struct grd_tensor_file *file = grd_alloc(size);
    if (file == NULL)
        return NULL;
    *file = (struct grd_tensor_file){.size = size, .descriptor = -1, .memory = memory, .bytes = bytes};
    snprintf(file->what, size - sizeof *file, "%s%s%s", quote, what, quote);
    return file;
}

static bool open_descriptor(struct grd_tensor_file *file, const char *path)
{
    struct stat status;
    file->descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); /* O_NONBLOCK: open does not wait for a pipe's writer */
    if (file->descriptor < 0 || fstat(file->descriptor, &status) != 0)
        return grd_raise_system(errno, "cannot load %s", file->what);
    if (S_ISDIR(status.st_mode))
        return grd_raise_system(EISDIR, "cannot load %s", file->what);
    if (!S_ISREG(status.st_mode))
        return grd_raise(GRD_ERROR_RUNTIME, "cannot load %s: it is no regular file", file->what);
    file->bytes = (uint64_t)status.st_size;
    return true;
}

grd_tensor_file *grd_tensor_file_open(const char *path)
{
    if (grd_pending() || !grd_given_pointer(path, "grd_tensor_file_open", "path"))
        return NULL;
    struct grd_tensor_file *file = new_file(path, "'", NULL, 0);
    if (file == NULL || (open_descriptor(file, path) && read_header(file)))
        return file;
    grd_tensor_file_close(file);
    return NULL;
}

grd_tensor_file *grd_tensor_file_over(const void *data, size_t size)
{
    if (grd_pending() || !grd_given_pointer(data, "grd_tensor_file_over", "data"))
        return NULL;
    struct grd_tensor_file *file = new_file("safetensors from memory", "", data, size);
    if (file == NULL || read_header(file))
        return file;
    grd_tensor_file_close(file);
    return NULL;
}

void grd_tensor_file_close(grd_tensor_file *file)
{
    if (file == NULL)
        return;
    if (file->descriptor >= 0)
        close(file->descriptor);
    grd_header_done(&file->header);
    grd_free(file, file->size);
}

/* ---- Contents of the header ------------------------------------------------------------------------------------------------------------------- */

/* Returns the entry of the header for tensor number `index`. Returns NULL, with the error raised, if there is no such tensor or if `file` is
 * NULL. */
static const struct grd_header_entry *entry_at(const grd_tensor_file *file, int64_t index)
{
    if (!grd_given_pointer(file, "grd_tensor_file", "file"))
        return NULL;
    if (index >= 0 && index < file->header.nentries)
        return &file->header.entries[index];
    grd_raise(GRD_ERROR_INDEX, "grd_tensor_file: %s has %lld tensors, none has the number %lld", file->what,
              (long long)file->header.nentries, (long long)index);
    return NULL;
}

int64_t grd_tensor_file_count(const grd_tensor_file *file)
{
    return file != NULL ? file->header.nentries : 0;
}

const char *grd_tensor_file_name(const grd_tensor_file *file, int64_t index)
{
    const struct grd_header_entry *entry = entry_at(file, index);
    return entry != NULL ? entry->name : NULL;
}

grd_dtype grd_tensor_file_dtype(const grd_tensor_file *file, int64_t index)
{
    const struct grd_header_entry *entry = entry_at(file, index);
    return entry != NULL ? (grd_dtype)entry->dtype : GRD_DTYPE_NONE;
}

static grd_dims sizes_of(const grd_tensor_file *file, const struct grd_header_entry *entry)
{
    static const int64_t none = 0;
    return grd_dims_from(entry->ndim > 0 ? file->header.sizes + entry->sizes : &none, entry->ndim);
}

grd_dims grd_tensor_file_sizes(const grd_tensor_file *file, int64_t index)
{
    const struct grd_header_entry *entry = entry_at(file, index);
    return entry != NULL ? sizes_of(file, entry) : grd_dims_from(NULL, 0);
}

int64_t grd_tensor_file_offset(const grd_tensor_file *file, int64_t index)
{
    const struct grd_header_entry *entry = entry_at(file, index);
    return entry != NULL ? (int64_t)entry->begin : -1;
}

int64_t grd_tensor_file_find(const grd_tensor_file *file, const char *name)
{
    int64_t low = 0, high = grd_tensor_file_count(file) - 1;
    while (low <= high && name != NULL) {
        const int64_t middle = low + (high - low) / 2;
        const int order = strcmp(name, file->header.entries[middle].name);
        if (order == 0)
            return middle;
        if (order < 0)
            high = middle - 1;
        else
            low = middle + 1;
    }
    return -1;
}

grd_named_texts grd_tensor_file_metadata(const grd_tensor_file *file)
{
    return file != NULL ? (grd_named_texts){file->header.metadata, file->header.nmetadata} : (grd_named_texts){NULL, 0};
}

/* ---- Reading ------------------------------------------------------------------------------------------------------------------------------------ */

static grd_tensor *read_entry(const grd_tensor_file *file, const struct grd_header_entry *entry)
{
    const grd_dtype dtype = (grd_dtype)entry->dtype;
    /* A bool must be 0 or 1 in memory, but the file may contain any byte for it. So the bytes are read as uint8 and compared with 0. */
    grd_tensor *t = grd_empty(sizes_of(file, entry), .dtype = dtype == GRD_BOOL ? GRD_UINT8 : dtype, .device = GRD_CPU);
    if (grd_pending() || !read_bytes(file, data_start(file) + entry->begin, grd_data(t), entry->end - entry->begin))
        return grd_failed;
    return dtype == GRD_BOOL ? grd_ne(t, grd_number(grd_int(0))) : t;
}

grd_tensor *grd_tensor_file_read(const grd_tensor_file *file, const char *name)
{
    if (grd_pending())
        return grd_failed;
    if (!grd_given_pointer(file, "grd_tensor_file_read", "file") || !grd_given_pointer(name, "grd_tensor_file_read", "name"))
        return grd_failed;
    const int64_t index = grd_tensor_file_find(file, name);
    if (index < 0)
        return grd_fail(GRD_ERROR_RUNTIME, "cannot load %s: it has no tensor '%s'", file->what, name);
    const grd_scope scope = grd_scope_open();
    return grd_scope_return(scope, read_entry(file, &file->header.entries[index]));
}
