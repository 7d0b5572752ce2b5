/* Chooses the kernel table for this processor when the library is loaded. */
#include "kernel/table.h"

extern const struct grd_kernel_table grd_kernel_table_portable;
#if defined(__x86_64__)
extern const struct grd_kernel_table grd_kernel_table_v2, grd_kernel_table_v3, grd_kernel_table_v4;
#endif

const struct grd_kernel_table *grd_kernels = &grd_kernel_table_portable;

__attribute__((constructor)) static void select_kernels(void)
{
#if defined(__x86_64__)
    static const struct grd_kernel_table *const tables[GRD_ISA_COUNT] = {
        [GRD_ISA_PORTABLE] = &grd_kernel_table_portable,
        [GRD_ISA_V2] = &grd_kernel_table_v2,
        [GRD_ISA_V3] = &grd_kernel_table_v3,
        [GRD_ISA_V4] = &grd_kernel_table_v4,
    };
    grd_kernels = tables[grd_cpu_level()];
#endif
}

/* Returns the integer dtype of the elements that a quantized dtype stores, e.g. int8 for qint8; for any other dtype, `dtype` itself. */
static grd_dtype stored_as(grd_dtype dtype)
{
    return dtype == GRD_QINT8 ? GRD_INT8 : dtype == GRD_QUINT8 ? GRD_UINT8 : dtype == GRD_QINT32 ? GRD_INT32 : dtype;
}

grd_loop_kernel *grd_cast_kernel(grd_dtype from, grd_dtype to)
{
    const grd_dtype source = stored_as(from), target = stored_as(to);
    if ((source != from || target != to) && source != target)
        return NULL;
    return grd_kernels->cast[source] != NULL ? grd_kernels->cast[source][target] : NULL;
}
