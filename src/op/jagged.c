/* Converts between concatenated sequences (jagged) and padded sequences, and implements segment_reduce. In the conversions, each row of the result is
 * either a row of the input or padding. Schema: schema/jagged.toml. */
#include <math.h>
#include <string.h>

#include "gen/uses/op/jagged.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "gradus/library.h"
#include "op/composite.h"
#include "op/index_loops.h"
#include "op/checks.h"
#include "op/sizes.h"

/* Raises RuntimeError if `offsets` is not a list of one vector of integers. */
static bool check_offsets(grd_tensors offsets)
{
    if (offsets.n != 1)
        return grd_raise(GRD_ERROR_RUNTIME, "only a single jagged dim is supported for now");
    const grd_tensor *t = offsets.data[0];
    return (t->ndim == 1 && t->numel > 0 && grd_is_index_dtype(t)) ||
           grd_raise(GRD_ERROR_RUNTIME, "offsets must be a vector of int32 or int64 with at least one element, not %s of %s",
                     grd_list_text(grd_sizes(t)), grd_dtype_name((grd_dtype)t->dtype));
}

/* Returns table[row] where `valid` is true and `value` elsewhere. `row` holds indices of rows of the table, and `valid` has the sizes of `row`. The
 * result has the sizes of `row`, followed by the sizes of one row of the table. */
static grd_tensor *rows_or(grd_tensor *table, grd_tensor *row, grd_tensor *valid, grd_scalar value)
{
    if (grd_pending() || !grd_check_ndim(row->ndim + table->ndim - 1))
        return grd_failed;
    int64_t sizes[GRD_MAX_DIMS], as_mask[GRD_MAX_DIMS];
    const int n = row->ndim + table->ndim - 1;
    for (int i = 0; i < n; i++) {
        sizes[i] = i < row->ndim ? row->sizes[i] : table->sizes[i - row->ndim + 1];
        as_mask[i] = i < row->ndim ? row->sizes[i] : 1;
    }
    /* index_select() cannot select rows of an empty table. So an empty table gets one row, which `valid` then excludes from the result. */
    if (table->sizes[0] == 0) {
        int64_t one_row[GRD_MAX_DIMS] = {1};
        memcpy(one_row + 1, table->sizes + 1, (size_t)(table->ndim - 1) * sizeof *one_row);
        grd_tensor *blank =
            grd_full(grd_dims_from(one_row, table->ndim), value, .dtype = (grd_dtype)table->dtype, .device = grd_device_of(table));
        table = grd_cat(grd_tensors(table, blank), .dim = 0);
    }
    grd_tensor *rows = grd_index_select(table, 0, grd_reshape(grd_mul(row, valid), grd_dims(row->numel)));
    return grd_masked_fill(grd_reshape(rows, grd_dims_from(sizes, n)), grd_logical_not(grd_reshape(valid, grd_dims_from(as_mask, n))),
                           value);
}

/* Returns a tensor (sequences, length, ...) with rows [start, stop) of `values` for each sequence, followed by rows of `value` up to `length` rows.
 * Longer sequences are cut after `length` rows. */
static grd_tensor *padded(grd_tensor *values, grd_tensor *starts, grd_tensor *stops, int64_t length, grd_scalar value)
{
    if (values->ndim == 0)
        return grd_fail(GRD_ERROR_INDEX, "Dimension specified as 0 but tensor has no dimensions");
    grd_tensor *steps = grd_arange(grd_int(length), .dtype = GRD_INT64, .device = grd_device_of(values));
    grd_tensor *row = grd_add(grd_unsqueeze(starts, 1), steps);
    return rows_or(values, row, grd_lt(row, grd_unsqueeze(stops, 1)), value);
}

grd_tensor *op_hidden_jagged_to_padded_dense_forward(grd_tensor *values, grd_tensors offsets, grd_dims max_lengths, double padding_value)
{
    if (!check_offsets(offsets))
        return grd_failed;
    if (max_lengths.n != 1)
        return grd_fail(GRD_ERROR_RUNTIME, "only a single jagged dim is supported for now");
    const int64_t sequences = offsets.data[0]->numel - 1;
    grd_tensor *bounds = grd_to(offsets.data[0], .dtype = GRD_INT64);
    return padded(values, grd_narrow(bounds, 0, 0, sequences), grd_narrow(bounds, 0, 1, sequences), max_lengths.data[0],
                  grd_float(padding_value));
}

grd_tensor *op_hidden_padded_dense_to_jagged_forward(grd_tensor *dense, grd_tensors offsets, grd_scalar total_L)
{
    int64_t dim;
    if (!check_offsets(offsets) || !grd_wrap_dim(dense, 1, &dim))
        return grd_failed;
    const int64_t sequences = dense->sizes[0], length = dense->sizes[1];
    grd_tensor *bounds = grd_to(offsets.data[0], .dtype = GRD_INT64);
    if (bounds->numel != sequences + 1)
        return grd_fail(GRD_ERROR_RUNTIME, "offsets must have one element more than the %lld sequences, not %lld elements",
                        (long long)sequences, (long long)bounds->numel);
    const grd_scalar total = total_L.kind != GRD_SCALAR_NONE ? total_L : grd_item(grd_select(bounds, 0, -1));
    grd_tensor *at = grd_arange(total, .dtype = GRD_INT64, .device = grd_device_of(dense));
    /* `sequence` has an element for each row of the result. The element is the number of the row's sequence, or -1 for rows before the first
     * sequence. Rows that belong to no sequence are not valid. */
    grd_tensor *sequence = grd_sub_scalar(grd_searchsorted(bounds, at, .right = true), grd_int(1));
    grd_tensor *step = grd_sub(at, grd_index_select(bounds, 0, grd_clamp(sequence, .min = grd_int(0))));
    grd_tensor *valid = grd_logical_and(grd_logical_and(grd_ge_scalar(sequence, grd_int(0)), grd_lt_scalar(sequence, grd_int(sequences))),
                                        grd_logical_and(grd_ge_scalar(step, grd_int(0)), grd_lt_scalar(step, grd_int(length))));
    return rows_or(grd_flatten(dense, .start_dim = 0, .end_dim = 1), grd_add(grd_mul_scalar(sequence, grd_int(length)), step), valid,
                   grd_int(0));
}

/* ---- Reductions of segments -------------------------------------------------------------------------------------------------------------- */

enum reduction { SUM, MEAN, MAX, MIN, PROD };

static bool read_reduction(const char *name, enum reduction *ret)
{
    static const struct {
        const char *name;
        enum reduction reduction;
    } reductions[] = {{"sum", SUM}, {"mean", MEAN}, {"max", MAX}, {"amax", MAX}, {"min", MIN}, {"amin", MIN}, {"prod", PROD}};
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (strcmp(name, reductions[i].name) == 0) {
            *ret = reductions[i].reduction;
            return true;
        }
    return grd_raise(GRD_ERROR_RUNTIME, "reduce argument must be either sum, prod, mean, amax or amin, got %s", name);
}

/* Checks the arguments of segment_reduce. Raises RuntimeError if `indices` is given, or if neither `lengths` nor `offsets` is given. Raises
 * RuntimeError if the dtype or the sizes of `offsets`, or of `lengths` if `offsets` is NULL, are wrong. Raises NotImplementedError if `data` is not
 * floating-point. */
static bool check_segments(const grd_tensor *data, const grd_tensor *lengths, const grd_tensor *indices, const grd_tensor *offsets,
                           int64_t axis)
{
    if (indices != NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "segment_reduce(): indices based reduction is not supported yet.");
    if (lengths == NULL && offsets == NULL)
        return grd_raise(GRD_ERROR_RUNTIME, "segment_reduce(): Either lengths or offsets must be defined.");
    const grd_tensor *given = offsets != NULL ? offsets : lengths;
    if (!grd_dtype_is_floating((grd_dtype)data->dtype))
        return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "\"_segment_reduce_cpu\" not implemented for '%s'",
                         grd_dtype_type_name((grd_dtype)data->dtype));
    if (given->ndim != axis + 1)
        return grd_raise(GRD_ERROR_RUNTIME, "segment_reduce(): Expected axis to be the last dimension of %s but got %lld.",
                         offsets != NULL ? "offsets" : "lengths", (long long)axis);
    if (!grd_is_index_dtype(given) || memcmp(given->sizes, data->sizes, (size_t)axis * sizeof *data->sizes) != 0 ||
        (offsets != NULL && offsets->sizes[axis] == 0))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "segment_reduce(): segments must be int32 or int64 and have the sizes of data before axis, not %s and %s",
                         grd_dtype_name((grd_dtype)given->dtype), grd_list_text(grd_sizes(given)));
    return true;
}

/* Raises RuntimeError if a segment [start, stop) is not within the n elements along axis. Writes the length of the longest segment, but at least 1,
 * to *ret_longest. */
static bool check_bounds(grd_tensor *starts, grd_tensor *stops, int64_t n, int64_t *ret_longest)
{
    double first = 0, last = 0, unused, longest = 1;
    grd_composite_extremes(starts, &first, &unused);
    grd_composite_extremes(stops, &unused, &last);
    grd_composite_extremes(grd_sub(stops, starts), &unused, &longest);
    if (first < 0 || last > (double)n)
        return grd_raise(GRD_ERROR_RUNTIME, "segment_reduce(): segments must lie within the %lld elements along axis", (long long)n);
    *ret_longest = longest > 1 ? (int64_t)longest : 1;
    return !grd_pending();
}

/* Computes the starts and stops of the segments as tensors of sizes (rows, segments), from `offsets` or, if `offsets` is NULL, from `lengths`. A row
 * is the n elements along axis for one combination of indices of the dimensions before axis. Raises RuntimeError if a length is negative, or if the
 * lengths of a row do not add up to n and `unsafe` is false. */
static bool read_segments(grd_tensor *lengths, grd_tensor *offsets, int64_t n, bool unsafe, grd_tensor **ret_starts, grd_tensor **ret_stops)
{
    if (offsets != NULL) {
        grd_tensor *bounds =
            grd_to(grd_flatten(grd_unsqueeze(offsets, 0), .start_dim = 0, .end_dim = offsets->ndim - 1), .dtype = GRD_INT64);
        *ret_starts = grd_narrow(bounds, 1, 0, offsets->sizes[offsets->ndim - 1] - 1);
        *ret_stops = grd_narrow(bounds, 1, 1, offsets->sizes[offsets->ndim - 1] - 1);
        return !grd_pending();
    }
    double least = 0, least_sum = (double)n, sum = (double)n, unused;
    grd_tensor *given = grd_to(grd_flatten(grd_unsqueeze(lengths, 0), .start_dim = 0, .end_dim = lengths->ndim - 1), .dtype = GRD_INT64);
    grd_composite_extremes(given, &least, &unused);
    if (least < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "lengths contains negative value!");
    grd_composite_extremes(grd_sum(given, .dim = grd_dims(1)), &least_sum, &sum);
    if (!unsafe && (least_sum != (double)n || sum != (double)n))
        return grd_raise(GRD_ERROR_RUNTIME,
                         "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.");
    *ret_stops = grd_cumsum(given, 1);
    *ret_starts = grd_sub(*ret_stops, given);
    return !grd_pending();
}

/* Returns the reduction of `rows` over dimension 1. `rows` holds segments padded with the identity of the reduction. `counts` has the lengths of the
 * segments and broadcasts to the result. If `initial` is given, each reduction includes it as one more element, which the mean does not count. */
static grd_tensor *reduced(enum reduction reduction, grd_tensor *rows, grd_tensor *counts, grd_scalar initial)
{
    const bool given = initial.kind != GRD_SCALAR_NONE;
    grd_tensor *result;
    switch (reduction) {
    case MAX:
        result = grd_amax(rows, .dim = grd_dims(1));
        return given ? grd_clamp(result, .min = initial) : result;
    case MIN:
        result = grd_amin(rows, .dim = grd_dims(1));
        return given ? grd_clamp(result, .max = initial) : result;
    case PROD:
        result = grd_prod(rows, .dim = grd_int(1));
        return given ? grd_mul_scalar(result, initial) : result;
    case SUM:
    case MEAN:
        break;
    }
    result = grd_sum(rows, .dim = grd_dims(1));
    result = given ? grd_add_scalar(result, initial) : result;
    return reduction == SUM ? result : grd_div(result, given ? grd_clamp(counts, .min = grd_int(1)) : counts);
}

grd_tensor *op_segment_reduce(grd_tensor *data, const char *reduce, grd_tensor *lengths, grd_tensor *indices, grd_tensor *offsets,
                              int64_t axis, bool unsafe, grd_scalar initial)
{
    static const double identities[] = {[SUM] = 0, [MEAN] = 0, [MAX] = -INFINITY, [MIN] = INFINITY, [PROD] = 1};
    enum reduction reduction = SUM;
    grd_tensor *starts = NULL, *stops = NULL;
    int64_t longest = 1, sizes[GRD_MAX_DIMS];
    if (!read_reduction(reduce, &reduction) || !grd_wrap_dim(data, axis, &axis) || !check_segments(data, lengths, indices, offsets, axis))
        return grd_failed;
    const int64_t n = grd_size_along(data, axis);
    if (!read_segments(lengths, offsets, n, unsafe, &starts, &stops) || !check_bounds(starts, stops, n, &longest))
        return grd_failed;
    const int64_t segments = starts->sizes[1];
    grd_tensor *first = grd_arange(grd_int(starts->sizes[0]), .dtype = GRD_INT64, .device = grd_device_of(data));
    first = grd_unsqueeze(grd_mul_scalar(first, grd_int(n)), 1); /* index of each row's first element in the flattened data */
    grd_tensor *counts = grd_reshape(grd_sub(stops, starts), grd_dims(starts->numel));
    starts = grd_reshape(grd_add(starts, first), grd_dims(starts->numel));
    stops = grd_reshape(grd_add(stops, first), grd_dims(stops->numel));
    grd_tensor *rows = padded(axis == 0 ? data : grd_flatten(data, .start_dim = 0, .end_dim = axis), starts, stops, longest,
                              grd_float(identities[reduction]));
    if (grd_pending())
        return grd_failed;
    for (int i = 1; i < data->ndim - (int)axis; i++)
        counts = grd_unsqueeze(counts, -1);
    memcpy(sizes, data->sizes, data->ndim * sizeof *sizes);
    sizes[axis] = segments;
    grd_tensor *result =
        /* Under autocast, prod returns float32, so the result is converted back to data's dtype. */
        grd_to(reduced(reduction, rows, counts, initial), .dtype = (grd_dtype)data->dtype);
    return grd_reshape(result, grd_dims_from(sizes, data->ndim));
}
