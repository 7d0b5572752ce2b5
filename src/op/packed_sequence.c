/* Computes pack_padded_sequence, pad_packed_sequence and pad_sequence by calls of other operators. A packed batch of sequences contains, for each
 * step, one row of each sequence that is long enough. Schema: schema/rnn.toml. */
#include <string.h>

#include "gen/uses/op/packed_sequence.h"
#include "core/dtype.h"
#include "core/new.h"
#include "core/tensor.h"
#include "core/transfer.h"
#include "gradus/library.h"
#include "op/formula.h"
#include "op/copy.h"

/* Returns the elements of a 1-D int64 tensor as a contiguous array on the CPU. Returns NULL, with an error raised, for any other tensor. The error
 * text calls the argument 'lengths' for all callers, as PyTorch does. */
static const int64_t *read_lengths(const grd_tensor *lengths)
{
    if (!grd_check_has_data(lengths))
        return NULL;
    if (lengths->ndim != 1 || lengths->dtype != GRD_INT64) {
        grd_raise(GRD_ERROR_RUNTIME, "'lengths' argument should be a 1D CPU int64 tensor, but got %dD %s %s tensor", lengths->ndim,
                  grd_device_name(grd_device_of(lengths)), grd_dtype_type_name((grd_dtype)lengths->dtype));
        return NULL;
    }
    const grd_tensor *read = grd_contiguous_as(grd_on_cpu(lengths), GRD_DTYPE_NONE);
    return grd_pending() ? NULL : (const int64_t *)(const void *)read->data;
}

static bool check_lengths(const int64_t *lengths, int64_t n, int64_t batch)
{
    if (n != batch)
        return grd_raise(GRD_ERROR_RUNTIME, "Expected `len(lengths)` to be equal to batch_size, but got %lld (batch_size=%lld)",
                         (long long)n, (long long)batch);
    bool positive = true, descending = true;
    for (int64_t i = 0; i < n; i++) {
        positive = positive && lengths[i] > 0;
        descending = descending && (i == 0 || lengths[i] <= lengths[i - 1]);
    }
    if (!positive)
        return grd_raise(GRD_ERROR_RUNTIME,
                         "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0");
    return descending ||
           grd_raise(GRD_ERROR_RUNTIME,
                     "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
                     "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
                     "do not need ONNX exportability.");
}

/* Returns the steps [at, at + n) of the first `rows` sequences as one row per step and sequence. The dims of `input` are (step, sequence, ...). */
static grd_tensor *rows_of_steps(grd_tensor *input, int64_t at, int64_t n, int64_t rows)
{
    return grd_pending() ? grd_failed : grd_flatten(grd_narrow(grd_narrow(input, 0, at, n), 1, 0, rows), .start_dim = 0, .end_dim = 1);
}

void op_pack_padded_sequence(grd_tensor *input, grd_tensor *lengths, bool batch_first, grd_tensor **ret)
{
    ret[0] = ret[1] = grd_failed;
    int64_t dim;
    const int64_t *given = read_lengths(lengths);
    input = batch_first && given != NULL ? grd_transpose(input, 0, 1) : input;
    if (given == NULL || grd_pending())
        return;
    if (grd_wrap_dim(input, 1, &dim) && input->numel == 0)
        grd_raise(GRD_ERROR_RUNTIME, "Cannot pack empty tensors.");
    if (grd_pending() || !check_lengths(given, lengths->numel, input->sizes[1]))
        return;
    const int64_t n = lengths->numel;
    if (given[0] > input->sizes[0]) {
        grd_raise(GRD_ERROR_RUNTIME, "start (%lld) + length (%lld) exceeds dimension size (%lld).", (long long)input->sizes[0],
                  (long long)(given[0] - input->sizes[0]), (long long)input->sizes[0]);
        return;
    }
    grd_tensor **parts = grd_pool_array(n, sizeof *parts), *sizes = grd_new(grd_dims(given[0]), GRD_INT64, GRD_CPU);
    int64_t count = 0, *made = grd_pending() ? NULL : (void *)sizes->data;
    /* The sequences are sorted by descending length, so of the first `rows` sequences, the last is the shortest. */
    for (int64_t rows = n, at = 0; rows > 0 && !grd_pending(); rows--) {
        const int64_t steps = given[rows - 1] - at;
        if (steps == 0)
            continue;
        parts[count++] = rows_of_steps(input, at, steps, rows);
        for (int64_t k = 0; k < steps; k++)
            made[at + k] = rows;
        at += steps;
    }
    if (grd_pending())
        return;
    ret[0] = grd_cat(grd_tensors_from(parts, count), .dim = 0);
    ret[1] = grd_to(sizes, .device = grd_device_of(lengths));
}

/* Raises RuntimeError if batch_sizes increase somewhere, or their sum exceeds the rows of the data. */
static bool check_batch_sizes(const int64_t *sizes, int64_t n, int64_t total)
{
    if (n == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "batch_sizes can not be empty");
    int64_t rest = total;
    for (int64_t i = 0; i < n; i++) {
        if (sizes[i] < 0 || sizes[i] > rest || (i > 0 && sizes[i] > sizes[i - 1]))
            return grd_raise(GRD_ERROR_RUNTIME, "batch_sizes must not grow, and sum to the %lld rows of the data", (long long)total);
        rest -= sizes[i];
    }
    return true;
}

/* Returns `steps` steps of a packed batch as a tensor of sizes (steps, batch, ...). In `data` they start at row `at`, and each has `rows` rows. In
 * the result each step has `batch` rows, of which the last batch - rows are filled with `value`. */
static grd_tensor *padded_steps(grd_tensor *data, int64_t at, int64_t steps, int64_t rows, int64_t batch, grd_scalar value)
{
    int64_t sizes[GRD_MAX_DIMS + 1] = {steps, rows};
    for (int i = 1; i < data->ndim; i++)
        sizes[i + 1] = data->sizes[i];
    grd_tensor *part = grd_reshape(grd_narrow(data, 0, at, steps * rows), grd_dims_from(sizes, data->ndim + 1));
    if (rows == batch || grd_pending())
        return part;
    sizes[1] = batch - rows;
    return grd_cat(
        grd_tensors(part, grd_full(grd_dims_from(sizes, data->ndim + 1), value, .dtype = data->dtype, .device = grd_device_of(data))),
        .dim = 1);
}

/* Writes the length of each of `batch` sequences to ret_lengths. sizes[k] is the number of sequences that have a step k, for k from 0 to n - 1. */
static void write_lengths(const int64_t *sizes, int64_t n, int64_t batch, int64_t *ret_lengths)
{
    for (int64_t i = 0; i < batch; i++)
        ret_lengths[i] = 0;
    for (int64_t k = 0; k < n; k++)
        for (int64_t i = 0; i < sizes[k]; i++)
            ret_lengths[i] = k + 1;
}

void op_pad_packed_sequence(grd_tensor *data, grd_tensor *batch_sizes, bool batch_first, grd_scalar padding_value, int64_t total_length,
                            grd_tensor **ret)
{
    ret[0] = ret[1] = grd_failed;
    int64_t dim;
    const int64_t *sizes = read_lengths(batch_sizes), n = batch_sizes->numel;
    if (sizes == NULL || !grd_wrap_dim(data, 0, &dim) || !grd_check_ndim(data->ndim + 1) ||
        !check_batch_sizes(sizes, n, grd_size_along(data, 0)))
        return;
    if (total_length > 0 && total_length < n) {
        grd_raise(GRD_ERROR_RUNTIME,
                  "Expected total_length to be at least the length of the longest sequence in input, but got total_length=%lld and max "
                  "sequence length being %lld",
                  (long long)total_length, (long long)n);
        return;
    }
    const int64_t batch = sizes[0], length = total_length > 0 ? total_length : n;
    grd_tensor **parts = grd_pool_array(n + 1, sizeof *parts), *lengths = grd_new(grd_dims(batch), GRD_INT64, GRD_CPU);
    int64_t count = 0;
    for (int64_t k = 0, at = 0, steps; k < n && !grd_pending(); k += steps, at += steps * sizes[k - steps]) {
        for (steps = 1; k + steps < n && sizes[k + steps] == sizes[k];)
            steps++;
        parts[count++] = padded_steps(data, at, steps, sizes[k], batch, padding_value);
    }
    if (grd_pending())
        return;
    if (length > n)
        parts[count++] = padded_steps(data, 0, length - n, 0, batch, padding_value);
    grd_tensor *padded = grd_cat(grd_tensors_from(parts, count), .dim = 0);
    write_lengths(sizes, n, batch, (int64_t *)(void *)lengths->data);
    ret[0] = batch_first ? grd_transpose(padded, 0, 1) : padded;
    ret[1] = grd_to(lengths, .device = grd_device_of(batch_sizes));
}

/* ---- Padding --------------------------------------------------------------------------------------------------------------------------- */

/* Raises RuntimeError if the sequence `t` is zero-dimensional, or if its sizes differ from those of the sequence `first`. sizes[0] is not compared,
 * because it is the number of steps. */
static bool check_sequence(const grd_tensor *t, const grd_tensor *first)
{
    if (t->ndim == 0)
        return grd_raise(GRD_ERROR_RUNTIME, "sequences must have a dimension for their steps");
    if (t->ndim != first->ndim)
        return grd_raise(GRD_ERROR_RUNTIME, "sequences must have the same number of dimensions, but got %d and %d", first->ndim, t->ndim);
    for (int i = 1; i < t->ndim; i++)
        if (t->sizes[i] != first->sizes[i])
            return grd_raise(GRD_ERROR_RUNTIME,
                             "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d",
                             (long long)first->sizes[i], (long long)t->sizes[i], i);
    return true;
}

/* Converts `t` to the dtype of `first` and returns it padded with `value` to `length` steps. The padding is at the start if `before`, otherwise at
 * the end. */
static grd_tensor *padded_sequence(grd_tensor *t, const grd_tensor *first, int64_t length, grd_scalar value, bool before)
{
    int64_t sizes[GRD_MAX_DIMS] = {length - t->sizes[0]};
    for (int i = 1; i < first->ndim; i++)
        sizes[i] = first->sizes[i];
    t = grd_to(t, .dtype = first->dtype);
    if (grd_pending() || sizes[0] == 0)
        return t;
    grd_tensor *padding = grd_full(grd_dims_from(sizes, first->ndim), value, .dtype = first->dtype, .device = grd_device_of(first));
    return grd_cat(before ? grd_tensors(padding, t) : grd_tensors(t, padding), .dim = 0);
}

grd_tensor *op_pad_sequence(grd_tensors sequences, bool batch_first, double padding_value, const char *padding_side)
{
    const bool before = strcmp(padding_side, "left") == 0;
    if (sequences.n == 0)
        return grd_fail(GRD_ERROR_RUNTIME, "received an empty list of sequences");
    if (!before && strcmp(padding_side, "right") != 0)
        return grd_fail(GRD_ERROR_RUNTIME, "Expected padding_side to be one of left or right, but got %s.", padding_side);
    grd_tensor **parts = grd_pool_array(sequences.n, sizeof *parts);
    int64_t length = 0;
    for (int64_t i = 0; i < sequences.n; i++) {
        if (!check_sequence(sequences.data[i], sequences.data[0]))
            return grd_failed;
        length = grd_greatest(length, sequences.data[i]->sizes[0]);
    }
    for (int64_t i = 0; i < sequences.n && !grd_pending(); i++)
        parts[i] = padded_sequence(sequences.data[i], sequences.data[0], length, grd_float(padding_value), before);
    return grd_pending() ? grd_failed : grd_stack(grd_tensors_from(parts, sequences.n), .dim = batch_first ? 0 : 1);
}
