/* Telling AddressSanitizer and valgrind's memcheck which memory nobody may use. The library itself is built without either: the program that loads it brings
 * AddressSanitizer's functions, or runs under valgrind. */
#ifndef GRD_BASE_POISON_H
#define GRD_BASE_POISON_H

#include <stdbool.h>
#include <stddef.h>

/* True if one of them watches this process. */
bool grd_poison_is_watched(void);
/* From now on any use of these bytes is reported. */
void grd_poison(void *bytes, size_t size);
/* Ends that; what the bytes hold is undefined. */
void grd_unpoison(void *bytes, size_t size);

#endif
