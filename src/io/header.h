/* Reads the header of a safetensors file, a JSON object that says where the data of each tensor is:
 *
 *     {"__metadata__":{"format":"pt"},"weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}
 *
 * Invariants of a header that was read: no two names are equal, and all are valid UTF-8 without NUL. Each tensor has as many bytes as its dtype
 * and sizes require. The tensors cover the data behind the header, each byte once. */
#ifndef GRD_IO_HEADER_H
#define GRD_IO_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradus/io.h"

/* The largest number of bytes that the format allows for a header. */
#define GRD_HEADER_MAX ((size_t)100000000)
#define GRD_METADATA_NAME "__metadata__"

/* The description of one tensor of the file. */
struct grd_header_entry {
    const char *name;
    int64_t sizes;       /* index of the tensor's first size in header.sizes */
    uint64_t begin, end; /* the tensor has the bytes [begin, end) of the data, which starts behind the header */
    uint8_t dtype, ndim;
};

struct grd_header {
    char *text; /* the text of the header; strings in it are decoded and NUL-terminated in place, and the entries point to them */
    size_t text_size;
    struct grd_header_entry *entries; /* descriptions of the tensors, sorted by name */
    int64_t nentries, entries_capacity;
    int64_t *sizes; /* sizes of all tensors, one tensor after another */
    int64_t nsizes, sizes_capacity;
    grd_named_text *metadata; /* the named texts in the file, sorted by name */
    int64_t nmetadata, metadata_capacity;
};

/* Reads and checks header->text, the header of a file that has `data_size` bytes behind its header. `what` names the file in errors. False, with
 * RuntimeError or MemoryError, on failure. The caller must call grd_header_done in either case. */
bool grd_header_read(struct grd_header *header, uint64_t data_size, const char *what);
/* Frees what the header owns, including its text. */
void grd_header_done(struct grd_header *header);

/* Returns the name of a dtype in the safetensors format, or NULL if the format does not have the dtype. */
const char *grd_header_dtype_name(grd_dtype dtype);
/* Returns the sort key of a dtype. A file holds its tensors in ascending order of this key. Tensors of larger alignment come first. The safetensors
 * library uses the same order. */
int grd_header_dtype_order(grd_dtype dtype);

/* Sorts a list of `n` structs of `item` bytes each by their first member, which is a pointer to a name. Returns a name that occurs twice, or NULL
 * if there is none. */
const char *grd_sort_by_name(void *list, int64_t n, size_t item);

#endif
