/* The host allocator. Small blocks of memory come from free lists of the thread, large ones from free blocks that all threads share. All objects
 * of the library are allocated here, so that their memory is counted and limited, and a test can make each allocation fail. A small block counts
 * as the size of its size class, a larger one as the size requested, rounded up to a multiple of 64. */
#ifndef GRD_BASE_MEMORY_H
#define GRD_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns a block of `size` bytes, which may be 0. It is not zeroed, and aligned to 64 bytes if size >= 64 and to 16 otherwise. Returns NULL,
 * with MemoryError pending, on failure. */
void *grd_alloc(size_t size);
/* Returns a block of `size` bytes that are all 0. Otherwise it works like grd_alloc. */
void *grd_alloc_zeroed(size_t size);
/* Frees a block that grd_alloc returned; does nothing for NULL. `size` must be the size that was requested for the block (checked under
 * AddressSanitizer). Any thread may free a block. */
void grd_free(void *block, size_t size);
/* Changes the size of a block from `old_size` to `new_size` bytes, keeping its contents, and returns its new address. Returns NULL, with
 * MemoryError and the block unchanged, on failure. */
void *grd_realloc(void *block, size_t old_size, size_t new_size);

/* Gives a growable array room for `n` items of `item` bytes each. `list` is the address of the pointer to the array, and *capacity the number of
 * items that the array has room for. Returns false, with MemoryError and the array unchanged, on failure. */
bool grd_reserve(void *list, int64_t n, int64_t *capacity, size_t item);

/* Moves the blocks in this thread's free lists to the memory that all threads share, and adds the thread's counters to the shared counters.
 * Called when the thread ends, while its state still exists. */
void grd_memory_thread_exit(void);
/* Makes grd_memory_trim call `release` first. `release` frees memory that the library caches for later calls. */
void grd_memory_on_trim(void (*release)(void));

#endif
