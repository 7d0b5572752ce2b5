/* Computes stft and istft by calls of other operators. Schema: schema/fft.toml. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "gen/uses/op/stft.h"
#include "core/dtype.h"
#include "core/tensor.h"
#include "op/formula.h"

/* Arguments of a call of stft or istft. Error texts repeat them. */
struct call {
    const char *name;
    const grd_tensor *self, *window;
    int64_t n_fft, hop, length;
    bool is_inverse, center, normalized;
    grd_scalar onesided, return_complex;
    grd_scalar last; /* the last argument of the call: align_to_window for stft, `length` for istft */
};

/* Returns the value of a scalar, or `otherwise` if it is None. */
static int64_t given_or(grd_scalar s, int64_t otherwise)
{
    return s.kind != GRD_SCALAR_NONE ? grd_scalar_int64(s) : otherwise;
}

/* Appends the tensor's type as PyTorch's errors name it, e.g. "torch.FloatTensor". Types without such a legacy name are written as e.g.
 * "CPUBoolType". */
static void add_type(struct grd_text *text, const grd_tensor *t)
{
    static const bool has_old_name[GRD_DTYPE_COUNT] = {
        [GRD_UINT8] = true, [GRD_INT8] = true,    [GRD_INT16] = true,   [GRD_INT32] = true,
        [GRD_INT64] = true, [GRD_FLOAT16] = true, [GRD_FLOAT32] = true, [GRD_FLOAT64] = true};
    grd_text_add(text, has_old_name[t->dtype] ? "torch.%sTensor" : "CPU%sType", grd_dtype_type_name((grd_dtype)t->dtype));
}

static void add_option(struct grd_text *text, const char *name, grd_scalar value)
{
    grd_text_add(text, value.kind == GRD_SCALAR_NONE ? ", %s=None" : ", %s=%lld", name, (long long)given_or(value, 0));
}

/* Raises RuntimeError with a text that repeats the call and states the reason, which `format` and the following arguments give. Returns
 * grd_failed. */
static grd_tensor *refuse(const struct call *c, const char *format, ...)
{
    struct grd_text text = {0};
    char reason[256];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    grd_text_add(&text, "%s(", c->name);
    add_type(&text, c->self);
    grd_text_add(&text, "%s, n_fft=%lld, hop_length=%lld, win_length=%lld, window=", grd_list_text(grd_sizes(c->self)), (long long)c->n_fft,
                 (long long)c->hop, (long long)c->length);
    if (c->window != NULL) {
        add_type(&text, c->window);
        grd_text_add(&text, "{%s}", grd_list_text(grd_sizes(c->window)));
    } else {
        grd_text_add(&text, "None");
    }
    if (c->is_inverse)
        grd_text_add(&text, ", center=%d", c->center);
    grd_text_add(&text, ", normalized=%d", c->normalized);
    add_option(&text, "onesided", c->onesided);
    if (c->is_inverse)
        add_option(&text, "length", c->last);
    add_option(&text, "return_complex", c->return_complex);
    if (!c->is_inverse)
        add_option(&text, "align_to_window", c->last);
    grd_text_add(&text, ") %s", reason);
    if (!text.failed)
        grd_raise(GRD_ERROR_RUNTIME, "%s", text.data);
    grd_text_done(&text);
    return grd_failed;
}

/* Returns the window padded with zeros on both sides to n_fft elements. A NULL window stands for ones. If it needs no padding, NULL is returned. */
static grd_tensor *centered_window(const struct call *c, grd_tensor *window, grd_dtype dtype)
{
    const int64_t left = (c->n_fft - c->length) / 2;
    if (c->length == c->n_fft)
        return window;
    if (window == NULL)
        window = grd_ones(grd_dims(c->length), .dtype = dtype, .device = grd_tensor_device(c->self));
    return grd_constant_pad_nd(window, grd_dims(left, c->n_fft - c->length - left));
}

/* ---- stft -------------------------------------------------------------------------------------------------------------------------------- */

/* Returns the signal padded on both sides of the last dimension. */
static grd_tensor *bordered(grd_tensor *self, int64_t left, int64_t right, const char *mode)
{
    int64_t sizes[GRD_MAX_DIMS], n = 0;
    for (int d = self->ndim; d < 3; d++)
        sizes[n++] = 1;
    memcpy(sizes + n, self->sizes, self->ndim * sizeof *sizes);
    grd_tensor *t = grd_pad(grd_reshape(self, grd_dims_from(sizes, n + self->ndim)), grd_dims(left, right), .mode = mode);
    return grd_pending() ? grd_failed : grd_reshape(t, grd_dims_from(t->sizes + n, self->ndim));
}

static grd_tensor *check_frames(const struct call *c, int64_t signal)
{
    if (c->n_fft <= 0 || c->n_fft > signal)
        return refuse(c, ": expected 0 < n_fft < %lld, but got n_fft=%lld", (long long)signal, (long long)c->length);
    if (c->hop <= 0)
        return refuse(c, ": expected hop_length > 0, but got hop_length=%lld", (long long)c->hop);
    if (c->length <= 0 || c->length > c->n_fft)
        return refuse(c, ": expected 0 < win_length <= n_fft, but got win_length=%lld", (long long)c->length);
    if (c->window != NULL && (c->window->ndim != 1 || c->window->sizes[0] != c->length))
        return refuse(c, ": expected a 1D window tensor of size equal to win_length=%lld, but got window with size %s",
                      (long long)c->length, grd_list_text(grd_sizes(c->window)));
    return NULL;
}

static bool is_complex(const grd_tensor *t)
{
    return t != NULL && grd_dtype_is_complex((grd_dtype)t->dtype);
}

static struct call call_of(const char *name, grd_tensor *self, grd_tensor *window, int64_t n_fft, grd_scalar hop_length,
                           grd_scalar win_length, bool normalized, grd_scalar onesided)
{
    return (struct call){.name = name,
                         .self = self,
                         .window = window,
                         .n_fft = n_fft,
                         .hop = given_or(hop_length, n_fft / 4),
                         .length = given_or(win_length, n_fft),
                         .normalized = normalized,
                         .onesided = onesided};
}

grd_tensor *op_stft(grd_tensor *self, int64_t n_fft, grd_scalar hop_length, grd_scalar win_length, grd_tensor *window, bool center,
                    const char *pad_mode, bool normalized, grd_scalar onesided, grd_scalar return_complex, grd_scalar align_to_window)
{
    const grd_dtype dtype = (grd_dtype)self->dtype;
    if (center && align_to_window.kind != GRD_SCALAR_NONE)
        return grd_fail(GRD_ERROR_RUNTIME, "stft align_to_window should only be set when center = false");
    if (center)
        self = bordered(self, n_fft / 2, n_fft / 2, pad_mode);
    if (grd_pending())
        return grd_failed;
    struct call c = call_of("stft", self, window, n_fft, hop_length, win_length, normalized, onesided);
    c.return_complex = return_complex;
    c.last = align_to_window;
    if (window != NULL && !grd_check_same_device(grd_tensors(self, window)))
        return grd_failed;
    if (return_complex.kind == GRD_SCALAR_NONE && !is_complex(self) && !is_complex(window))
        return grd_fail(GRD_ERROR_RUNTIME,
                        "stft requires the return_complex parameter be given for real inputs, and will further require that "
                        "return_complex=True in a future PyTorch release.");
    if (!grd_dtype_is_inexact(dtype))
        return refuse(&c, ": expected a tensor of floating point or complex values");
    if (self->ndim < 1 || self->ndim > 2)
        return refuse(&c, ": expected a 1D or 2D tensor");
    grd_tensor *input = self->ndim == 1 ? grd_unsqueeze(self, 0) : self;
    if (check_frames(&c, self->sizes[self->ndim - 1]) != NULL)
        return grd_failed;
    if (given_or(align_to_window, false)) {
        const int64_t left = (n_fft - c.length) / 2;
        input = grd_constant_pad_nd(input, grd_dims(left, n_fft - c.length - left));
    }
    grd_tensor *frames = grd_unfold(input, 1, n_fft, c.hop), *factors = centered_window(&c, window, dtype);
    if (factors != NULL)
        frames = grd_mul(frames, factors);
    const bool complex = is_complex(frames);
    if (complex && given_or(onesided, false))
        return grd_fail(GRD_ERROR_RUNTIME, "Cannot have onesided output if window or input is complex");
    grd_tensor *result = complex ? grd_hidden_fft_c2c(frames, grd_dims(2), normalized, true)
                                 : grd_hidden_fft_r2c(frames, grd_dims(2), normalized, given_or(onesided, true));
    result = grd_transpose(result, 1, 2);
    if (self->ndim == 1)
        result = grd_squeeze(result, .dim = grd_dims(0));
    return given_or(return_complex, true) ? result : grd_view_as_real(result);
}

/* ---- istft ------------------------------------------------------------------------------------------------------------------------------- */

static grd_tensor *check_spectrum(const struct call *c)
{
    const grd_tensor *self = c->self;
    const int64_t frequencies = self->sizes[self->ndim - 2];
    if (self->numel == 0)
        return refuse(c, ": input tensor cannot be empty.");
    if (self->ndim > 3)
        return refuse(c, ": expected a tensor with 3 or 4 dimensions, but got %d", self->ndim + 1);
    const bool onesided = given_or(c->onesided, frequencies != c->n_fft);
    if (onesided && frequencies != c->n_fft / 2 + 1)
        return refuse(
            c,
            ": expected the frequency dimension (3rd to the last) of the input tensor to match n_fft / 2 + 1 when onesided=True, but "
            "got %lld",
            (long long)frequencies);
    if (!onesided && frequencies != c->n_fft)
        return refuse(
            c, ": expected the frequency dimension (3rd to the last) of the input tensor to match n_fft when onesided=False, but got %lld",
            (long long)frequencies);
    if (c->hop <= 0 || c->hop > c->length)
        return refuse(c, ": expected 0 < hop_length <= win_length");
    if (c->length > c->n_fft)
        return refuse(c, ": expected 0 < win_length <= n_fft");
    if (c->window != NULL && (c->window->ndim != 1 || c->window->sizes[0] != c->length))
        return refuse(c, ": Invalid window shape. window has to be 1D and length of `win_length`");
    if (given_or(c->return_complex, false) && onesided)
        return grd_fail(GRD_ERROR_RUNTIME, "Cannot have onesided output if window or input is complex");
    if (!given_or(c->return_complex, false) && is_complex(c->window))
        return grd_fail(GRD_ERROR_RUNTIME, "Complex windows are incompatible with return_complex=False");
    return NULL;
}

grd_tensor *op_istft(grd_tensor *self, int64_t n_fft, grd_scalar hop_length, grd_scalar win_length, grd_tensor *window, bool center,
                     bool normalized, grd_scalar onesided, grd_scalar length, bool return_complex)
{
    struct call c = call_of("istft", self, window, n_fft, hop_length, win_length, normalized, onesided);
    c.is_inverse = true;
    c.center = center;
    c.return_complex = grd_bool(return_complex);
    c.last = length;
    if (!is_complex(self))
        return grd_fail(GRD_ERROR_RUNTIME,
                        "istft requires a complex-valued input tensor matching the output from stft with return_complex=True.");
    if (self->ndim < 2)
        return grd_fail(GRD_ERROR_INDEX, "Dimension out of range (expected to be in range of [%d, %d], but got -3)", -self->ndim - 1,
                        self->ndim);
    if (check_spectrum(&c) != NULL || (window != NULL && !grd_check_same_device(grd_tensors(self, window))))
        return grd_failed;
    grd_tensor *input = grd_transpose(self->ndim == 2 ? grd_unsqueeze(self, 0) : self, 1, 2);
    const int64_t frames = input->sizes[1], total = n_fft + c.hop * (frames - 1);
    const grd_dtype real = grd_dtype_to_real((grd_dtype)self->dtype);
    grd_tensor *factors = centered_window(&c, window, real);
    if (factors == NULL)
        factors = grd_ones(grd_dims(n_fft), .dtype = real, .device = grd_tensor_device(self));
    const int64_t normalization = normalized ? 1 : 2;
    grd_tensor *parts = return_complex ? grd_hidden_fft_c2c(input, grd_dims(2), normalization, false)
                                       : grd_hidden_fft_c2r(grd_slice(input, .dim = 2, .start = grd_int(0), .end = grd_int(n_fft / 2 + 1)),
                                                            grd_dims(2), normalization, n_fft);
    grd_tensor *sums = grd_hidden_overlapped(grd_mul(parts, factors), grd_dims(input->sizes[0], total), c.hop);
    grd_tensor *weights =
        grd_hidden_overlapped(grd_expand(grd_mul(factors, factors), grd_dims(1, frames, n_fft)), grd_dims(1, total), c.hop);
    const int64_t start = center ? n_fft / 2 : 0;
    const int64_t end = length.kind != GRD_SCALAR_NONE ? start + grd_scalar_int64(length) : center ? total - n_fft / 2 : total;
    sums = grd_slice(sums, .dim = 1, .start = grd_int(start), .end = grd_int(end));
    weights = grd_slice(weights, .dim = 1, .start = grd_int(start), .end = grd_int(end));
    double least, largest;
    if (grd_composite_extremes(grd_physical(grd_min(grd_abs(weights))), &least, &largest) && least < 1e-11)
        return refuse(&c, "window overlap add min: 1\n[ CPUBoolType{} ]");
    grd_tensor *result = grd_div(sums, weights);
    if (self->ndim == 2)
        result = grd_squeeze(result, .dim = grd_dims(0));
    return end > total ? grd_constant_pad_nd(result, grd_dims(0, end - total)) : result;
}
