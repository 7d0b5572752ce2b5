/* Detects the instruction set of the machine, and the cores and the memory that this process may use. */
#ifndef GRD_BASE_CPU_H
#define GRD_BASE_CPU_H

#include <stdint.h>

/* The instruction sets for which kernels are compiled. V2 to V4 are the levels x86-64-v2 to x86-64-v4 of the x86-64 psABI. PORTABLE needs no
 * extension of the architecture's basic instruction set. */
enum grd_isa_level { GRD_ISA_PORTABLE, GRD_ISA_V2, GRD_ISA_V3, GRD_ISA_V4, GRD_ISA_COUNT };

/* Returns the largest instruction set that the processor supports and whose registers the operating system saves. The environment variable
 * GRADUS_ISA can select a smaller one. The result is computed once. */
enum grd_isa_level grd_cpu_level(void);

/* Returns the number of cores that this process may use according to its affinity mask and its cgroup's quota, at least 1. */
int grd_cpu_count(void);

/* Returns the number of bytes of memory that this process may use: the machine's memory, or the limit of the process's cgroup if that is less.
 * The result is computed once. */
int64_t grd_system_memory(void);

#endif
