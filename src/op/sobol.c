/* Implements the operators that torch.quasirandom.SobolEngine uses. This file checks arguments, and passes contiguous CPU tensors to
 * the kernels. */
#include "kernel/sobol.h"

#include "gen/uses/op/sobol.h"
#include "core/new.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "op/checks.h"

static bool check_integers(const grd_tensor *t, const char *name, grd_dims sizes)
{
    if (t->dtype != GRD_INT64)
        return grd_raise(GRD_ERROR_RUNTIME, "%s needs to be of type torch.int64", name);
    return grd_dims_equal(grd_sizes(t), sizes) || grd_raise(GRD_ERROR_RUNTIME, "%s must have %lld entries in its first dimension%s", name,
                                                            (long long)sizes.data[0], sizes.n > 1 ? " and 30 in the others" : "");
}

static bool check_state(const grd_tensor *state, int64_t dimension)
{
    if (dimension < 1 || dimension > GRD_SOBOL_DIMENSIONS)
        return grd_raise(GRD_ERROR_VALUE, "Supported range of dimensionality for SobolEngine is [1, %d]", GRD_SOBOL_DIMENSIONS);
    return check_integers(state, "sobolstate", grd_dims(dimension, GRD_SOBOL_BITS));
}

static bool on_one_device(grd_tensor *a, grd_tensor *b)
{
    return grd_check_same_device((grd_tensors){.data = (grd_tensor *[]){a, b}, .n = 2});
}

/* True if the arguments are valid. Raises RuntimeError if a tensor has a wrong dtype, size or device. Raises ValueError if n or `num_generated` is
 * negative, or if their sum is not less than 2^GRD_SOBOL_BITS, the number of points of the sequence. */
static bool check_walk(grd_tensor *point, int64_t n, grd_tensor *state, int64_t dimension, int64_t num_generated)
{
    if (!check_state(state, dimension) || !check_integers(point, "quasi", grd_dims(dimension)) || !on_one_device(point, state))
        return false;
    return (n >= 0 && num_generated >= 0 && n < (INT64_C(1) << GRD_SOBOL_BITS) - num_generated) ||
           grd_raise(GRD_ERROR_VALUE, "the Sobol sequence has 2^%d points; there are not %lld points after point %lld", GRD_SOBOL_BITS,
                     (long long)n, (long long)num_generated);
}

/* ---- Contiguous integers on the CPU --------------------------------------------------------------------------------------------------- */

/* Returns the address of the elements of t. If t is not contiguous or not on the CPU, returns the address of the elements of a contiguous copy on the
 * CPU. Returns NULL for a meta tensor, or on an error. */
static const int64_t *read(grd_tensor *t)
{
    grd_tensor *on_cpu = grd_is_meta(t) ? grd_failed : grd_contiguous(grd_to(t, .device = GRD_CPU));
    return grd_is_failed(on_cpu) ? NULL : (const int64_t *)on_cpu->data;
}

/* Returns a contiguous copy of t on the CPU, for a kernel to write to. Returns a meta tensor if t is one. */
static grd_tensor *copy_of(grd_tensor *t)
{
    return grd_copy_(grd_new(grd_sizes(t), GRD_INT64, grd_is_meta(t) ? grd_device_of(t) : GRD_CPU), t);
}

static bool has_data(const grd_tensor *t)
{
    return !grd_pending() && !grd_is_meta(t);
}

/* ---- Operators ------------------------------------------------------------------------------------------------------------------------ */

grd_tensor *op_sobol_engine_initialize_state(grd_tensor *self, int64_t dimension)
{
    if (!check_state(self, dimension))
        return grd_failed;
    grd_tensor *directions = copy_of(self);
    if (has_data(directions))
        grd_sobol_directions(dimension, (int64_t *)directions->data);
    return grd_copy_(self, directions);
}

grd_tensor *op_sobol_engine_scramble(grd_tensor *self, grd_tensor *ltm, int64_t dimension)
{
    if (!check_state(self, dimension) || !check_integers(ltm, "ltm", grd_dims(dimension, GRD_SOBOL_BITS, GRD_SOBOL_BITS)) ||
        !on_one_device(self, ltm))
        return grd_failed;
    grd_tensor *directions = copy_of(self);
    const int64_t *matrices = read(ltm);
    if (has_data(directions) && matrices != NULL)
        grd_sobol_scramble(dimension, matrices, (int64_t *)directions->data);
    return grd_copy_(self, directions);
}

grd_tensor *op_sobol_engine_ff(grd_tensor *self, int64_t n, grd_tensor *sobolstate, int64_t dimension, int64_t num_generated)
{
    if (!check_walk(self, n, sobolstate, dimension, num_generated))
        return grd_failed;
    grd_tensor *point = copy_of(self);
    const int64_t *directions = read(sobolstate);
    if (has_data(point) && directions != NULL)
        grd_sobol_move(dimension, directions, num_generated, num_generated + n, (int64_t *)point->data);
    return grd_copy_(self, point);
}

void op_sobol_engine_draw(grd_tensor *quasi, int64_t n, grd_tensor *sobolstate, int64_t dimension, int64_t num_generated, grd_dtype dtype,
                          grd_tensor **ret)
{
    if (!check_walk(quasi, n, sobolstate, dimension, num_generated))
        return;
    const grd_device device = grd_device_of(quasi);
    grd_tensor *point = copy_of(quasi), *points = grd_new(grd_dims(n, dimension), GRD_FLOAT64, grd_device_of(point));
    const int64_t *directions = read(sobolstate);
    if (has_data(points) && directions != NULL)
        grd_sobol_draw(dimension, directions, num_generated, n, (int64_t *)point->data, (double *)points->data);
    ret[0] = grd_to(points, .device = device, .dtype = dtype == GRD_DTYPE_NONE ? GRD_FLOAT32 : dtype);
    ret[1] = grd_to(point, .device = device);
}
