/* Tells AddressSanitizer and valgrind's memcheck which memory must not be used. The library itself is built without these tools:
 * AddressSanitizer's functions come from the program that loads the library, and memcheck runs that program. */
#ifndef GRD_BASE_POISON_H
#define GRD_BASE_POISON_H

#include <stdbool.h>
#include <stddef.h>

/* True if AddressSanitizer or memcheck watches this process. */
bool grd_poison_is_watched(void);
/* Makes AddressSanitizer and memcheck report any use of the `size` bytes at `bytes`. */
void grd_poison(void *bytes, size_t size);
/* Ends the effect of grd_poison for these bytes. Their contents are undefined afterwards. */
void grd_unpoison(void *bytes, size_t size);

#endif
