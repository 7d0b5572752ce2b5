/* Defines functions that the formulas of window functions in schema/window.toml call to check their arguments and to find the dtype of the result. */
#include "core/dtype.h"
#include "op/formula.h"

grd_dtype grd_window_dtype(grd_dtype dtype, int64_t length, const char *function)
{
    if (dtype == GRD_DTYPE_NONE)
        dtype = grd_default_dtype();
    if (!grd_dtype_is_inexact(dtype))
        grd_raise(
            GRD_ERROR_RUNTIME,
            "%s expects floating point dtypes, got: TensorOptions(dtype=%s, device=cpu, layout=Strided (default), requires_grad=false "
            "(default), pinned_memory=false, memory_format=(nullopt))",
            function, grd_dtype_c_name(dtype));
    else if (length < 0)
        grd_raise(GRD_ERROR_RUNTIME, "%s requires non-negative window_length, got window_length=%lld", function, (long long)length);
    return dtype;
}

grd_dtype grd_signal_window_dtype(grd_dtype dtype, int64_t length, const char *function)
{
    if (dtype == GRD_DTYPE_NONE)
        dtype = grd_default_dtype();
    if (length < 0)
        grd_raise(GRD_ERROR_VALUE, "%s requires non-negative window length, got M=%lld", function, (long long)length);
    else if (dtype != GRD_FLOAT32 && dtype != GRD_FLOAT64)
        grd_raise(GRD_ERROR_VALUE, "%s expects float32 or float64 dtypes, got: torch.%s", function, grd_dtype_name(dtype));
    return dtype;
}
