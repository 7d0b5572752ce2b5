/* What this machine has, and how much of it this process may use. */
#ifndef GRD_BASE_CPU_H
#define GRD_BASE_CPU_H

#include <stdint.h>

enum grd_isa_level { GRD_ISA_PORTABLE, GRD_ISA_V2, GRD_ISA_V3, GRD_ISA_V4, GRD_ISA_COUNT };

/* The highest level the machine has and the operating system saves, lowered by GRADUS_ISA. Computed once. */
enum grd_isa_level grd_cpu_level(void);

/* Cores this process may use: affinity and cgroup quota, at least 1. */
int grd_cpu_count(void);

/* Bytes of memory this process may use: the machine's, or the cgroup's if that is less. Computed once. */
int64_t grd_system_memory(void);

#endif
