/* The header of a safetensors file: a JSON object that says where each tensor lies.
 *
 *     {"__metadata__":{"format":"pt"},"weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}
 *
 * Invariant of one that was read: names differ and are valid UTF-8 without NUL; each tensor's bytes are as many as its dtype and sizes say; the
 * tensors cover the data behind the header, each byte once. */
#ifndef GRD_IO_HEADER_H
#define GRD_IO_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradus/io.h"

/* The format's own limit. */
#define GRD_HEADER_MAX ((size_t)100000000)
#define GRD_METADATA_NAME "__metadata__"

struct grd_header_entry {
    const char *name;
    int64_t sizes; /* index of the first one in header.sizes */
    uint64_t begin, end;
    uint8_t dtype, ndim;
};

struct grd_header {
    char *text; /* strings are decoded and terminated where they stand; entries point here */
    size_t text_size;
    struct grd_header_entry *entries; /* by name */
    int64_t nentries, entries_capacity;
    int64_t *sizes;
    int64_t nsizes, sizes_capacity;
    grd_named_text *metadata; /* by name */
    int64_t nmetadata, metadata_capacity;
};

/* Reads and checks header->text, the header of a file with `data_size` bytes behind it. `what` names the file in errors. False, with RuntimeError or
 * MemoryError. grd_header_done follows in either case. */
bool grd_header_read(struct grd_header *header, uint64_t data_size, const char *what);
/* Frees everything, the text too. */
void grd_header_done(struct grd_header *header);

/* The format's name of a dtype, or NULL where it has none. */
const char *grd_header_dtype_name(grd_dtype dtype);
/* Dtypes of larger alignment are written first, in an order that the format's own library has. Smaller is earlier. */
int grd_header_dtype_order(grd_dtype dtype);

/* Sorts a list of structures that begin with a name. Returns one that is there twice, or NULL. */
const char *grd_sort_by_name(void *list, int64_t n, size_t item);

#endif
