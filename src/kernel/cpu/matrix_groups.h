/* Groups of as many small real matrices as a vector has lanes, element i of all of them one vector: read, written, and computed column by column. */
#ifndef GRD_KERNEL_CPU_MATRIX_GROUPS_H
#define GRD_KERNEL_CPU_MATRIX_GROUPS_H

#include "kernel/cpu/lanes.h"
#include "kernel/cpu/matrix_lanes.h"

/* A function of its own, and a loop that is not written out for as many rounds as fit into an array: short code, as it is compiled for each level. */
#define NOT_INLINE __attribute__((noinline))
#define BY_ONE _Pragma("GCC unroll 1")

enum { ABREAST = 4 }; /* vectors that are summed up at a time */

/* Reads `size` elements of each matrix of a group. */
static NOT_INLINE void read_lanes(int64_t size, int64_t count, const int32_t *place, const T *first, vector *ret_lanes)
{
    const T *from[LANES];
    lanes_from_wide(LANES, first, size, count, from);
    gather_wide(LANES, size, from, place, (T *)ret_lanes);
}

static NOT_INLINE void write_lanes(int64_t size, int64_t count, const int32_t *place, T *const *to, const vector *lanes_of_elements)
{
    scatter_wide(LANES, size, (int)count, to, place, (const T *)lanes_of_elements);
}

/* Writes them one after the other. */
GRD_INLINE void write_group(int64_t size, int64_t count, const int32_t *place, T *first, const vector *lanes_of_elements)
{
    T *to[LANES];
    lanes_to_wide(LANES, first, size, to);
    write_lanes(size, count, place, to, lanes_of_elements);
}

#endif
