/* Checks and converts the arguments of the functions of torch.fft: dtypes, lengths, dims and norms. The functions of torch.fft are formulas over
 * _fft_c2c, _fft_r2c and _fft_c2r. The functions of this file are documented in formula.h. Schema: schema/fft.toml. */
#include <string.h>

#include "base/object.h"
#include "gen/uses/op/fft_arguments.h"
#include "gen/words.h"
#include "core/dtype.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "kernel/table.h"
#include "op/formula.h"

int64_t grd_fft_paired(int64_t n)
{
    return (n + 1) / 2;
}

/* Returns a new list of n numbers and writes the address of its numbers to *ret_data, for the caller to fill. The list is empty, with an error
 * pending, if memory runs out. */
static grd_dims new_list(int64_t n, int64_t **ret_data)
{
    *ret_data = grd_pool_array(n, sizeof **ret_data);
    return grd_dims_from(*ret_data, *ret_data != NULL ? n : 0);
}

static bool check_length(int64_t n)
{
    return n >= 1 || grd_raise(GRD_ERROR_RUNTIME, "Invalid number of data points (%lld) specified", (long long)n);
}

static bool wrap_dim(const grd_tensor *self, int64_t dim, int64_t *ret_dim)
{
    if (self->ndim == 0)
        return grd_raise(GRD_ERROR_INDEX, "Dimension specified as %lld but tensor has no dimensions", (long long)dim);
    return grd_wrap_dim(self, dim, ret_dim);
}

grd_tensor *grd_fft_input(grd_tensor *self, bool complex)
{
    const grd_dtype dtype = grd_dtype_to_float((grd_dtype)self->dtype);
    if (grd_kernels->fft[grd_dtype_to_real(dtype)] == NULL && !grd_dtype_is_complex(dtype)) {
        grd_raise(GRD_ERROR_RUNTIME, "Unsupported dtype %s", grd_dtype_type_name(dtype));
        return grd_failed;
    }
    return grd_to(self, .dtype = complex ? grd_dtype_to_complex(dtype) : dtype);
}

bool grd_fft_check_real(const grd_tensor *self, const char *function, const char *wanted)
{
    return !grd_dtype_is_complex((grd_dtype)self->dtype) || grd_raise(GRD_ERROR_RUNTIME, "%s expects a %s input tensor, but got %s",
                                                                      function, wanted, grd_dtype_type_name((grd_dtype)self->dtype));
}

int64_t grd_fft_length(const grd_tensor *self, grd_scalar n, int64_t dim, bool half)
{
    if (!wrap_dim(self, dim, &dim))
        return 0;
    const int64_t size = self->sizes[dim];
    const int64_t length = n.kind != GRD_SCALAR_NONE ? grd_scalar_int64(n) : half ? 2 * (size - 1) : size;
    return check_length(length) ? length : 0;
}

grd_dims grd_fft_dims(const grd_tensor *self, grd_dims s, grd_dims dim, const char *function)
{
    const bool all = dim.data == NULL, sized = s.data != NULL;
    bool seen[GRD_MAX_DIMS] = {false};
    int64_t *dims;
    const grd_dims list = new_list(all ? (sized ? s.n : self->ndim) : dim.n, &dims);
    for (int64_t i = 0; i < list.n && !all; i++) {
        if (!wrap_dim(self, dim.data[i], &dims[i]))
            return (grd_dims){0};
        if (seen[dims[i]])
            return grd_raise(GRD_ERROR_RUNTIME, "FFT dims must be unique"), (grd_dims){0};
        seen[dims[i]] = true;
    }
    if (sized && s.n != list.n)
        grd_raise(GRD_ERROR_RUNTIME, "When given, dim and shape arguments must have the same length");
    else if (sized && s.n > self->ndim)
        grd_raise(GRD_ERROR_RUNTIME, "Got shape with %lld values but input tensor only has %d dimensions.", (long long)s.n,
                  (int)self->ndim);
    for (int64_t i = 0; i < list.n && all && !grd_pending(); i++)
        dims[i] = self->ndim - list.n + i;
    for (int64_t i = 0; i < list.n && !grd_pending(); i++)
        check_length(sized && s.data[i] != -1 ? s.data[i] : self->sizes[dims[i]]);
    if (list.n == 0 && function != NULL && !grd_pending())
        grd_raise(GRD_ERROR_RUNTIME, "%s must transform at least one axis", function);
    return list;
}

grd_dims grd_fft_sizes(const grd_tensor *self, grd_dims s, grd_dims dims)
{
    int64_t *sizes;
    const grd_dims list = new_list(grd_pending() ? 0 : dims.n, &sizes);
    for (int64_t i = 0; i < list.n; i++)
        sizes[i] = s.data != NULL && s.data[i] != -1 ? s.data[i] : self->sizes[dims.data[i]];
    return list;
}

int64_t grd_fft_real_length(const grd_tensor *self, grd_dims s, grd_dims dims)
{
    if (grd_pending())
        return 0;
    const int64_t given = s.data != NULL ? grd_last_of(s) : -1;
    const int64_t length = given != -1 ? given : 2 * (self->sizes[grd_last_of(dims)] - 1);
    return check_length(length) ? length : 0;
}

grd_dims grd_fft_halved(grd_dims sizes, int64_t length)
{
    int64_t *halved;
    const grd_dims list = new_list(sizes.n, &halved);
    for (int64_t i = 0; i < list.n; i++)
        halved[i] = i == list.n - 1 ? length / 2 + 1 : sizes.data[i];
    return list;
}

grd_tensor *grd_fft_resized(grd_tensor *self, grd_dims dims, grd_dims sizes)
{
    int64_t pad[2 * GRD_MAX_DIMS] = {0};
    bool is_longer = false;
    for (int64_t i = 0; i < dims.n && !grd_pending(); i++) {
        int64_t d = 0;
        if (!wrap_dim(self, dims.data[i], &d))
            return grd_failed;
        const int64_t size = self->sizes[d], wanted = sizes.data[i];
        pad[2 * (self->ndim - 1 - d) + 1] = grd_greatest(wanted - size, 0);
        is_longer |= wanted > size;
        if (wanted < size)
            self = grd_slice(self, .dim = d, .start = grd_int(0), .end = grd_int(wanted));
    }
    return is_longer ? grd_constant_pad_nd(self, grd_dims_from(pad, 2 * self->ndim)) : self;
}

int64_t grd_fft_normalization(const char *norm, bool forward)
{
    enum { NONE, BY_ROOT, BY_COUNT };
    if (norm == NULL || strcmp(norm, "backward") == 0)
        return forward ? NONE : BY_COUNT;
    if (strcmp(norm, "forward") == 0)
        return forward ? BY_COUNT : NONE;
    if (strcmp(norm, "ortho") == 0)
        return BY_ROOT;
    grd_raise(GRD_ERROR_RUNTIME, "Invalid normalization mode: \"%s\", it must be " GRD_WORDS_FFT_FFT_NORM, norm);
    return NONE;
}

grd_dtype grd_fft_frequency_dtype(grd_dtype dtype, const char *function)
{
    if (dtype == GRD_DTYPE_NONE)
        return grd_default_dtype();
    if (!grd_dtype_is_inexact(dtype))
        grd_raise(GRD_ERROR_RUNTIME, "%s requires a floating point or complex dtype", function);
    return dtype;
}

grd_dims grd_fft_shift_dims(grd_dims sizes, grd_dims dim)
{
    int64_t *dims;
    if (dim.data != NULL)
        return dim;
    const grd_dims list = new_list(sizes.n, &dims);
    for (int64_t i = 0; i < list.n; i++)
        dims[i] = i;
    return list;
}

grd_dims grd_fft_shifts(grd_dims sizes, grd_dims dims, bool back)
{
    int64_t *shifts;
    const grd_dims list = new_list(dims.n, &shifts);
    for (int64_t i = 0; i < list.n; i++) {
        int64_t d = 0;
        if (!grd_shape_wrap_dim(dims.data[i], sizes.n, &d))
            return (grd_dims){0};
        shifts[i] = (sizes.data[d] + back) / 2;
    }
    return list;
}
