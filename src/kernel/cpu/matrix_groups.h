/* Loads and stores groups of small real matrices. Each vector holds one element of all matrices of a group, with matrix l of the group in lane l. */
#ifndef GRD_KERNEL_CPU_MATRIX_GROUPS_H
#define GRD_KERNEL_CPU_MATRIX_GROUPS_H

#include "kernel/cpu/lanes.h"
#include "kernel/cpu/matrix_lanes.h"

/* NOT_INLINE keeps a function from being inlined, and BY_ONE keeps the next loop from being unrolled. Both make the code of these kernels shorter,
 * which matters because they are compiled once for each instruction-set level. */
#define NOT_INLINE __attribute__((noinline))
#define BY_ONE _Pragma("GCC unroll 1")

enum { ABREAST = 4 }; /* number of sums that are computed side by side, because within one sum each addition waits for the one before it */

/* Loads `count` matrices of `size` elements, the first of which is at `first`, into lanes. Element i of all matrices goes to the vector
 * ret_lanes[place[i]], or ret_lanes[i] if `place` is NULL. Lanes without a matrix get a copy of the last one. */
static NOT_INLINE void read_lanes(int64_t size, int64_t count, const int32_t *place, const T *first, vector *ret_lanes)
{
    const T *from[LANES];
    lanes_from_wide(LANES, first, size, count, from);
    gather_wide(LANES, size, from, place, (T *)ret_lanes);
}

/* Stores the matrices of the first `count` lanes, matrix l to the address to[l]. Element i of a matrix is in the vector number place[i], or i if
 * `place` is NULL. */
static NOT_INLINE void write_lanes(int64_t size, int64_t count, const int32_t *place, T *const *to, const vector *lanes_of_elements)
{
    scatter_wide(LANES, size, (int)count, to, place, (const T *)lanes_of_elements);
}

/* Stores the matrices of the first `count` lanes one after the other, beginning at `first`. Element i of a matrix is in the vector number place[i],
 * or i if `place` is NULL. */
GRD_INLINE void write_group(int64_t size, int64_t count, const int32_t *place, T *first, const vector *lanes_of_elements)
{
    T *to[LANES];
    lanes_to_wide(LANES, first, size, to);
    write_lanes(size, count, place, to, lanes_of_elements);
}

#endif
