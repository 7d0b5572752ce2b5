/* The host allocator. Small blocks come from free lists of the thread; large ones from a size-classed cache shared by all.
 * Every byte the library owns comes from here, so that it is counted, limited, and can be failed by a test.
 * Counted for the limit: small blocks by their class, larger ones by the size asked for. */
#ifndef GRD_BASE_MEMORY_H
#define GRD_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `size` bytes, aligned to 64 when size >= 64 and to 16 below. NULL, with MemoryError pending, on failure. size 0 is allowed.
 * Not zeroed. */
void *grd_alloc(size_t size);
/* Zeroed. */
void *grd_alloc_zeroed(size_t size);
/* Frees a block of grd_alloc; `size` is the size asked for (checked under AddressSanitizer). NULL is allowed. Any thread may free. */
void grd_free(void *block, size_t size);
/* Grows or shrinks, keeping the contents; NULL with the block untouched on failure. */
void *grd_realloc(void *block, size_t old_size, size_t new_size);

/* Makes room for `n` items in the growing block that `list`, the address of a pointer, leads to. False, with MemoryError and the block untouched,
 * on failure. */
bool grd_reserve(void *list, int64_t n, int64_t *capacity, size_t item);

/* Called by a thread that ends, while it has its state: hands its free lists over. */
void grd_memory_thread_exit(void);
/* Sets the function that grd_memory_trim calls first, which drops what is kept for later calls. */
void grd_memory_on_trim(void (*release)(void));

#endif
