/* The check that a dtype can be ordered (kernel/order.h). */
#ifndef GRD_OP_ORDER_H
#define GRD_OP_ORDER_H

#include "kernel/order.h"
#include "kernel/table.h"
#include "op/checks.h"

/* NotImplementedError for complex dtypes, and others that have no order: "\"sort_cpu\" not implemented for 'ComplexFloat'". */
static inline bool grd_check_ordered(const char *name, grd_dtype dtype)
{
    return grd_kernels->order[dtype] != NULL || grd_raise_no_kernel(name, dtype);
}

#endif
