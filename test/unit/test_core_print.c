/* Compares printed tensors with text recorded from PyTorch 2.13, for chosen tensors and print options. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/new.h"
#include "core/print.h"
#include "core/scalar.h"
#include "core/tensor.h"
#include "support.h"

#define VALUES(...) ((const double[]){__VA_ARGS__})
#define NO_VALUES VALUES(0)
#define RAMP NULL /* stands for the elements -3, -2.75, -2.5, ... */
#define DEFAULTS                                                                                                                           \
    {                                                                                                                                      \
        4, 1000, 3, 80, -1                                                                                                                 \
    }

struct golden {
    grd_dtype dtype;
    int64_t sizes[5];
    int64_t ndim;
    const double *values; /* elements, in pairs (re, im) for complex dtypes; NULL stands for -3, -2.75, -2.5, ... */
    grd_print_options options;
    const char *text;
};

/* Each entry is one line of arguments, followed by the printed text. */
/* clang-format off */
static const struct golden goldens[] = {
    {GRD_FLOAT32, {0}, 0, VALUES(1.5), DEFAULTS,
     "tensor(1.5000)"},
    {GRD_FLOAT32, {0}, 0, VALUES(3.0), DEFAULTS,
     "tensor(3.)"},
    {GRD_FLOAT32, {0}, 0, VALUES(NAN), DEFAULTS,
     "tensor(nan)"},
    {GRD_FLOAT32, {3}, 1, VALUES(1.0, 2.0, 3.0), DEFAULTS,
     "tensor([1., 2., 3.])"},
    {GRD_FLOAT32, {3}, 1, VALUES(1.0, 2.5, -3.0), DEFAULTS,
     "tensor([ 1.0000,  2.5000, -3.0000])"},
    {GRD_FLOAT32, {3}, 1, VALUES(0.0, -0.0, 0.0), DEFAULTS,
     "tensor([0., -0., 0.])"},
    {GRD_FLOAT32, {4}, 1, VALUES(1.0, INFINITY, -INFINITY, NAN), DEFAULTS,
     "tensor([1., inf, -inf, nan])"},
    {GRD_FLOAT32, {4}, 1, VALUES(1.5, INFINITY, -INFINITY, NAN), DEFAULTS,
     "tensor([1.5000,    inf,   -inf,    nan])"},
    {GRD_FLOAT32, {2}, 1, VALUES(NAN, NAN), DEFAULTS,
     "tensor([nan, nan])"},
    {GRD_FLOAT32, {2}, 1, VALUES(1e-05, 1.0), DEFAULTS,
     "tensor([1.0000e-05, 1.0000e+00])"},
    {GRD_FLOAT32, {2}, 1, VALUES(100000.0, 1.5), DEFAULTS,
     "tensor([1.0000e+05, 1.5000e+00])"},
    {GRD_FLOAT32, {2}, 1, VALUES(1000000000.0, 1000000000.0), DEFAULTS,
     "tensor([1.0000e+09, 1.0000e+09])"},
    {GRD_FLOAT32, {2}, 1, VALUES(1000000000.0, -INFINITY), DEFAULTS,
     "tensor([1.0000e+09,       -inf])"},
    {GRD_FLOAT32, {3}, 1, VALUES(100000.0, 1.0, 0.0), DEFAULTS,
     "tensor([1.0000e+05, 1.0000e+00, 0.0000e+00])"},
    {GRD_FLOAT32, {2}, 1, VALUES(1000.0, 1.0), DEFAULTS,
     "tensor([1000.,    1.])"},
    {GRD_FLOAT32, {2}, 1, VALUES(1001.0, 1.0), DEFAULTS,
     "tensor([1.0010e+03, 1.0000e+00])"},
    {GRD_FLOAT32, {2}, 1, VALUES(0.0001, 0.0001), DEFAULTS,
     "tensor([1.0000e-04, 1.0000e-04])"},
    {GRD_FLOAT64, {2}, 1, VALUES(1e-300, 1e+300), DEFAULTS,
     "tensor([1.0000e-300, 1.0000e+300], dtype=torch.float64)"},
    {GRD_FLOAT64, {2}, 1, VALUES(0.1, 0.2), DEFAULTS,
     "tensor([0.1000, 0.2000], dtype=torch.float64)"},
    {GRD_FLOAT16, {3}, 1, VALUES(1.0, 2.5, 65504.0), DEFAULTS,
     "tensor([1.0000e+00, 2.5000e+00, 6.5504e+04], dtype=torch.float16)"},
    {GRD_BFLOAT16, {2, 2}, 2, VALUES(1.0, 2.0, 3.5, 4.0), DEFAULTS,
     "tensor([[1.0000, 2.0000],\n"
     "        [3.5000, 4.0000]], dtype=torch.bfloat16)"},
    {GRD_FLOAT8_E4M3FN, {3}, 1, VALUES(1.0, 2.5, 448.0), DEFAULTS,
     "tensor([  1.0000,   2.5000, 448.0000], dtype=torch.float8_e4m3fn)"},
    {GRD_FLOAT8_E5M2, {3}, 1, VALUES(1.0, 0.5, -57344.0), DEFAULTS,
     "tensor([ 1.0000e+00,  5.0000e-01, -5.7344e+04], dtype=torch.float8_e5m2)"},
    {GRD_INT64, {2, 3}, 2, VALUES(1.0, 2.0, 3.0, -4.0, 50.0, 600.0), DEFAULTS,
     "tensor([[  1,   2,   3],\n"
     "        [ -4,  50, 600]])"},
    {GRD_INT32, {2}, 1, VALUES(1.0, -2.0), DEFAULTS,
     "tensor([ 1, -2], dtype=torch.int32)"},
    {GRD_UINT8, {2}, 1, VALUES(0.0, 255.0), DEFAULTS,
     "tensor([  0, 255], dtype=torch.uint8)"},
    {GRD_INT8, {1}, 1, VALUES(-128.0), DEFAULTS,
     "tensor([-128], dtype=torch.int8)"},
    {GRD_UINT64, {2}, 1, VALUES(1.0, -1.0), DEFAULTS,
     "tensor([                   1, 18446744073709551615], dtype=torch.uint64)"},
    {GRD_UINT16, {1}, 1, VALUES(65535.0), DEFAULTS,
     "tensor([65535], dtype=torch.uint16)"},
    {GRD_BOOL, {2, 2}, 2, VALUES(1.0, 0.0, 0.0, 1.0), DEFAULTS,
     "tensor([[ True, False],\n"
     "        [False,  True]])"},
    {GRD_BOOL, {0}, 0, VALUES(1.0), DEFAULTS,
     "tensor(True)"},
    {GRD_INT64, {0}, 0, VALUES(-7.0), DEFAULTS,
     "tensor(-7)"},
    {GRD_COMPLEX64, {2}, 1, VALUES(1.0, 2.0, -3.0, -4.0), DEFAULTS,
     "tensor([ 1.+2.j, -3.-4.j])"},
    {GRD_COMPLEX64, {2}, 1, VALUES(1.5, -0.0, INFINITY, NAN), DEFAULTS,
     "tensor([1.5000-0.j,    inf+nanj])"},
    {GRD_COMPLEX128, {0}, 0, VALUES(1.0, 2.5), DEFAULTS,
     "tensor(1.+2.5000j, dtype=torch.complex128)"},
    {GRD_COMPLEX64, {2}, 1, VALUES(1e-06, 1.0, 1.0, 1000000.0), DEFAULTS,
     "tensor([1.0000e-06+1.0000e+00j, 1.0000e+00+1.0000e+06j])"},
    {GRD_COMPLEX64, {1, 2}, 2, VALUES(0.0, 1.0, 100.0, -20.0), DEFAULTS,
     "tensor([[  0.+1.j, 100.-20.j]])"},
    {GRD_FLOAT32, {0}, 1, NO_VALUES, DEFAULTS,
     "tensor([])"},
    {GRD_FLOAT32, {0, 3}, 2, NO_VALUES, DEFAULTS,
     "tensor([], size=(0, 3))"},
    {GRD_INT64, {0}, 1, NO_VALUES, DEFAULTS,
     "tensor([], dtype=torch.int64)"},
    {GRD_BOOL, {2, 0}, 2, NO_VALUES, DEFAULTS,
     "tensor([], size=(2, 0), dtype=torch.bool)"},
    {GRD_COMPLEX64, {0}, 1, NO_VALUES, DEFAULTS,
     "tensor([], dtype=torch.complex64)"},
    {GRD_FLOAT32, {30}, 1, RAMP, DEFAULTS,
     "tensor([-3.0000, -2.7500, -2.5000, -2.2500, -2.0000, -1.7500, -1.5000, -1.2500,\n"
     "        -1.0000, -0.7500, -0.5000, -0.2500,  0.0000,  0.2500,  0.5000,  0.7500,\n"
     "         1.0000,  1.2500,  1.5000,  1.7500,  2.0000,  2.2500,  2.5000,  2.7500,\n"
     "         3.0000,  3.2500,  3.5000,  3.7500,  4.0000,  4.2500])"},
    {GRD_FLOAT32, {2, 3, 4}, 3, RAMP, DEFAULTS,
     "tensor([[[-3.0000, -2.7500, -2.5000, -2.2500],\n"
     "         [-2.0000, -1.7500, -1.5000, -1.2500],\n"
     "         [-1.0000, -0.7500, -0.5000, -0.2500]],\n"
     "\n"
     "        [[ 0.0000,  0.2500,  0.5000,  0.7500],\n"
     "         [ 1.0000,  1.2500,  1.5000,  1.7500],\n"
     "         [ 2.0000,  2.2500,  2.5000,  2.7500]]])"},
    {GRD_FLOAT32, {1001}, 1, RAMP, DEFAULTS,
     "tensor([ -3.0000,  -2.7500,  -2.5000,  ..., 246.5000, 246.7500, 247.0000])"},
    {GRD_INT64, {40, 50}, 2, RAMP, DEFAULTS,
     "tensor([[ -3,  -2,  -2,  ...,   8,   9,   9],\n"
     "        [  9,   9,  10,  ...,  21,  21,  21],\n"
     "        [ 22,  22,  22,  ...,  33,  34,  34],\n"
     "        ...,\n"
     "        [459, 459, 460,  ..., 471, 471, 471],\n"
     "        [472, 472, 472,  ..., 483, 484, 484],\n"
     "        [484, 484, 485,  ..., 496, 496, 496]])"},
    {GRD_FLOAT64, {12, 10, 9}, 3, RAMP, DEFAULTS,
     "tensor([[[-3.0000e+00, -2.7500e+00, -2.5000e+00,  ..., -1.5000e+00,\n"
     "          -1.2500e+00, -1.0000e+00],\n"
     "         [-7.5000e-01, -5.0000e-01, -2.5000e-01,  ...,  7.5000e-01,\n"
     "           1.0000e+00,  1.2500e+00],\n"
     "         [ 1.5000e+00,  1.7500e+00,  2.0000e+00,  ...,  3.0000e+00,\n"
     "           3.2500e+00,  3.5000e+00],\n"
     "         ...,\n"
     "         [ 1.2750e+01,  1.3000e+01,  1.3250e+01,  ...,  1.4250e+01,\n"
     "           1.4500e+01,  1.4750e+01],\n"
     "         [ 1.5000e+01,  1.5250e+01,  1.5500e+01,  ...,  1.6500e+01,\n"
     "           1.6750e+01,  1.7000e+01],\n"
     "         [ 1.7250e+01,  1.7500e+01,  1.7750e+01,  ...,  1.8750e+01,\n"
     "           1.9000e+01,  1.9250e+01]],\n"
     "\n"
     "        [[ 1.9500e+01,  1.9750e+01,  2.0000e+01,  ...,  2.1000e+01,\n"
     "           2.1250e+01,  2.1500e+01],\n"
     "         [ 2.1750e+01,  2.2000e+01,  2.2250e+01,  ...,  2.3250e+01,\n"
     "           2.3500e+01,  2.3750e+01],\n"
     "         [ 2.4000e+01,  2.4250e+01,  2.4500e+01,  ...,  2.5500e+01,\n"
     "           2.5750e+01,  2.6000e+01],\n"
     "         ...,\n"
     "         [ 3.5250e+01,  3.5500e+01,  3.5750e+01,  ...,  3.6750e+01,\n"
     "           3.7000e+01,  3.7250e+01],\n"
     "         [ 3.7500e+01,  3.7750e+01,  3.8000e+01,  ...,  3.9000e+01,\n"
     "           3.9250e+01,  3.9500e+01],\n"
     "         [ 3.9750e+01,  4.0000e+01,  4.0250e+01,  ...,  4.1250e+01,\n"
     "           4.1500e+01,  4.1750e+01]],\n"
     "\n"
     "        [[ 4.2000e+01,  4.2250e+01,  4.2500e+01,  ...,  4.3500e+01,\n"
     "           4.3750e+01,  4.4000e+01],\n"
     "         [ 4.4250e+01,  4.4500e+01,  4.4750e+01,  ...,  4.5750e+01,\n"
     "           4.6000e+01,  4.6250e+01],\n"
     "         [ 4.6500e+01,  4.6750e+01,  4.7000e+01,  ...,  4.8000e+01,\n"
     "           4.8250e+01,  4.8500e+01],\n"
     "         ...,\n"
     "         [ 5.7750e+01,  5.8000e+01,  5.8250e+01,  ...,  5.9250e+01,\n"
     "           5.9500e+01,  5.9750e+01],\n"
     "         [ 6.0000e+01,  6.0250e+01,  6.0500e+01,  ...,  6.1500e+01,\n"
     "           6.1750e+01,  6.2000e+01],\n"
     "         [ 6.2250e+01,  6.2500e+01,  6.2750e+01,  ...,  6.3750e+01,\n"
     "           6.4000e+01,  6.4250e+01]],\n"
     "\n"
     "        ...,\n"
     "\n"
     "        [[ 1.9950e+02,  1.9975e+02,  2.0000e+02,  ...,  2.0100e+02,\n"
     "           2.0125e+02,  2.0150e+02],\n"
     "         [ 2.0175e+02,  2.0200e+02,  2.0225e+02,  ...,  2.0325e+02,\n"
     "           2.0350e+02,  2.0375e+02],\n"
     "         [ 2.0400e+02,  2.0425e+02,  2.0450e+02,  ...,  2.0550e+02,\n"
     "           2.0575e+02,  2.0600e+02],\n"
     "         ...,\n"
     "         [ 2.1525e+02,  2.1550e+02,  2.1575e+02,  ...,  2.1675e+02,\n"
     "           2.1700e+02,  2.1725e+02],\n"
     "         [ 2.1750e+02,  2.1775e+02,  2.1800e+02,  ...,  2.1900e+02,\n"
     "           2.1925e+02,  2.1950e+02],\n"
     "         [ 2.1975e+02,  2.2000e+02,  2.2025e+02,  ...,  2.2125e+02,\n"
     "           2.2150e+02,  2.2175e+02]],\n"
     "\n"
     "        [[ 2.2200e+02,  2.2225e+02,  2.2250e+02,  ...,  2.2350e+02,\n"
     "           2.2375e+02,  2.2400e+02],\n"
     "         [ 2.2425e+02,  2.2450e+02,  2.2475e+02,  ...,  2.2575e+02,\n"
     "           2.2600e+02,  2.2625e+02],\n"
     "         [ 2.2650e+02,  2.2675e+02,  2.2700e+02,  ...,  2.2800e+02,\n"
     "           2.2825e+02,  2.2850e+02],\n"
     "         ...,\n"
     "         [ 2.3775e+02,  2.3800e+02,  2.3825e+02,  ...,  2.3925e+02,\n"
     "           2.3950e+02,  2.3975e+02],\n"
     "         [ 2.4000e+02,  2.4025e+02,  2.4050e+02,  ...,  2.4150e+02,\n"
     "           2.4175e+02,  2.4200e+02],\n"
     "         [ 2.4225e+02,  2.4250e+02,  2.4275e+02,  ...,  2.4375e+02,\n"
     "           2.4400e+02,  2.4425e+02]],\n"
     "\n"
     "        [[ 2.4450e+02,  2.4475e+02,  2.4500e+02,  ...,  2.4600e+02,\n"
     "           2.4625e+02,  2.4650e+02],\n"
     "         [ 2.4675e+02,  2.4700e+02,  2.4725e+02,  ...,  2.4825e+02,\n"
     "           2.4850e+02,  2.4875e+02],\n"
     "         [ 2.4900e+02,  2.4925e+02,  2.4950e+02,  ...,  2.5050e+02,\n"
     "           2.5075e+02,  2.5100e+02],\n"
     "         ...,\n"
     "         [ 2.6025e+02,  2.6050e+02,  2.6075e+02,  ...,  2.6175e+02,\n"
     "           2.6200e+02,  2.6225e+02],\n"
     "         [ 2.6250e+02,  2.6275e+02,  2.6300e+02,  ...,  2.6400e+02,\n"
     "           2.6425e+02,  2.6450e+02],\n"
     "         [ 2.6475e+02,  2.6500e+02,  2.6525e+02,  ...,  2.6625e+02,\n"
     "           2.6650e+02,  2.6675e+02]]], dtype=torch.float64)"},
    {GRD_INT32, {1, 1, 1, 2, 2}, 5, RAMP, DEFAULTS,
     "tensor([[[[[-3, -2],\n"
     "           [-2, -2]]]]], dtype=torch.int32)"},
    {GRD_COMPLEX64, {30}, 1, RAMP, DEFAULTS,
     "tensor([-3.0000+0.j, -2.7500+0.j, -2.5000+0.j, -2.2500+0.j, -2.0000+0.j, -1.7500+0.j,\n"
     "        -1.5000+0.j, -1.2500+0.j, -1.0000+0.j, -0.7500+0.j, -0.5000+0.j, -0.2500+0.j,\n"
     "         0.0000+0.j,  0.2500+0.j,  0.5000+0.j,  0.7500+0.j,  1.0000+0.j,  1.2500+0.j,\n"
     "         1.5000+0.j,  1.7500+0.j,  2.0000+0.j,  2.2500+0.j,  2.5000+0.j,  2.7500+0.j,\n"
     "         3.0000+0.j,  3.2500+0.j,  3.5000+0.j,  3.7500+0.j,  4.0000+0.j,  4.2500+0.j])"},
    {GRD_FLOAT32, {2, 600}, 2, RAMP, DEFAULTS,
     "tensor([[ -3.0000,  -2.7500,  -2.5000,  ..., 146.2500, 146.5000, 146.7500],\n"
     "        [147.0000, 147.2500, 147.5000,  ..., 296.2500, 296.5000, 296.7500]])"},
    {GRD_FLOAT32, {20}, 1, RAMP, {2, 1000, 3, 40, -1},
     "tensor([-3.00, -2.75, -2.50, -2.25,\n"
     "        -2.00, -1.75, -1.50, -1.25,\n"
     "        -1.00, -0.75, -0.50, -0.25,\n"
     "         0.00,  0.25,  0.50,  0.75,\n"
     "         1.00,  1.25,  1.50,  1.75])"},
    {GRD_FLOAT32, {20}, 1, RAMP, {4, 5, 2, 80, -1},
     "tensor([-3.0000, -2.7500,  ...,  1.5000,  1.7500])"},
    {GRD_FLOAT32, {3, 20}, 2, RAMP, {4, 5, 0, 80, -1},
     "tensor([...], size=(3, 20))"},
    {GRD_FLOAT32, {3}, 1, RAMP, {4, 1000, 0, 80, -1},
     "tensor([-3.0000, -2.7500, -2.5000], size=(3,))"},
    {GRD_FLOAT32, {5}, 1, RAMP, {4, 1000, 3, 80, 1},
     "tensor([-3.0000e+00, -2.7500e+00, -2.5000e+00, -2.2500e+00, -2.0000e+00])"},
    {GRD_FLOAT32, {2}, 1, VALUES(1e-06, 1000000.0), {4, 1000, 3, 80, 0},
     "tensor([      0.0000, 1000000.0000])"},
    {GRD_FLOAT64, {7}, 1, RAMP, {4, 1000, 3, 57, -1},
     "tensor([-3.0000, -2.7500, -2.5000, -2.2500, -2.0000,\n"
     "        -1.7500, -1.5000], dtype=torch.float64)"},
    {GRD_FLOAT16, {3}, 1, RAMP, {0, 1000, 3, 80, -1},
     "tensor([-3, -3, -2], dtype=torch.float16)"},
};
/* clang-format on */

static grd_tensor *make(const struct golden *golden)
{
    grd_tensor *t = grd_new(grd_dims_from(golden->sizes, golden->ndim), golden->dtype, GRD_CPU);
    bool complex = grd_dtype_is_complex(golden->dtype);
    for (int64_t i = 0; i < t->numel; i++) {
        double value[2] = {-3 + 0.25 * (double)i, 0};
        if (golden->values != NULL) {
            value[0] = golden->values[complex ? 2 * i : i];
            value[1] = complex ? golden->values[2 * i + 1] : 0;
        }
        grd_element_convert(value, GRD_COMPLEX128, t->data + i * t->itemsize, golden->dtype);
    }
    return t;
}

static void tensors_are_printed_as_in_pytorch(void **state)
{
    (void)state;
    grd_print_options before = grd_print_options_get();
    for (int i = 0; i < GRD_LENGTH(goldens); i++) {
        grd_scope scope = grd_scope_open();
        grd_print_options_set(goldens[i].options);
        char *text = grd_to_string(make(&goldens[i]));
        assert_non_null(text);
        assert_string_equal(text, goldens[i].text);
        free(text);
        grd_scope_close(scope);
    }
    grd_print_options_set(before);
    assert_true(grd_ok());
}

static void expect(grd_tensor *t, const char *expected)
{
    char *text = grd_to_string(t);
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static const char *fake_grad_fn(const grd_tensor *t)
{
    return t->ndim == 1 ? "AddBackward0" : NULL;
}

static void views_meta_tensors_and_grad_suffixes_are_printed(void **state)
{
    (void)state;
    grd_scope scope = grd_scope_open();
    float data[] = {1, 2, 3, 4};
    grd_tensor *t = grd_from_data(data, grd_dims(2, 2), GRD_FLOAT32);
    expect(grd_new_view(t, grd_dims(2, 2), grd_dims(-1, -2), 3), "tensor([[4., 2.],\n        [3., 1.]])");
    expect(grd_new(grd_dims(2, 3), GRD_FLOAT32, GRD_META), "tensor(..., device='meta', size=(2, 3))");
    expect(grd_new(grd_dims(2), GRD_INT64, GRD_META), "tensor(..., device='meta', size=(2,), dtype=torch.int64)");
    grd_mark_requires_grad(t, true);
    expect(t, "tensor([[1., 2.],\n        [3., 4.]], requires_grad=True)");
    const char *(*previous)(const grd_tensor *) = grd_print_grad_fn;
    grd_print_grad_fn = fake_grad_fn;
    grd_tensor *result = grd_new_view(t, grd_dims(2), grd_dims(1), 0);
    grd_mark_requires_grad(result, true);
    expect(result, "tensor([1., 2.], grad_fn=<AddBackward0>)");
    expect(t, "tensor([[1., 2.],\n        [3., 4.]], requires_grad=True)");
    grd_print_grad_fn = previous;
    expect(grd_failed, "tensor(nan)");
    grd_scope_close(scope);
}

static void a_tensor_of_64_dimensions_is_printed(void **state)
{
    (void)state;
    int64_t ones[GRD_MAX_DIMS];
    for (int i = 0; i < GRD_MAX_DIMS; i++)
        ones[i] = 1;
    grd_scope scope = grd_scope_open();
    float one = 1;
    char *text = grd_to_string(grd_from_data(&one, grd_dims_from(ones, GRD_MAX_DIMS), GRD_FLOAT32));
    assert_int_equal(strlen(text), strlen("tensor(1.)") + 2 * GRD_MAX_DIMS);
    free(text);
    grd_scope_close(scope);
}

static void null_and_negative_precision_are_refused(void **state)
{
    (void)state;
    assert_null(grd_to_string(NULL));
    assert_int_equal(grd_error_get(), GRD_ERROR_TYPE);
    grd_error_clear();
    grd_print_options_set((grd_print_options){.precision = -1});
    assert_int_equal(grd_error_get(), GRD_ERROR_VALUE);
    grd_error_clear();
    assert_int_equal(grd_print_options_get().precision, 4);
}

static void failed_allocations_leak_nothing(void **state)
{
    (void)state;
    grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_new(grd_dims(900), GRD_INT8, GRD_CPU);
    memset(t->data, 1, 900);
    free(grd_to_string(t));
    int64_t before = grd_memory_get_stats().allocated;
    bool failed = true;
    for (int64_t n = 1; failed; n++) {
        grd_memory_fail_at(n, true);
        char *text = grd_to_string(t);
        grd_memory_fail_at(0, false);
        failed = text == NULL;
        assert_int_equal(grd_error_get(), failed ? GRD_ERROR_MEMORY : GRD_ERROR_NONE);
        free(text);
        grd_error_clear();
        assert_int_equal(grd_memory_get_stats().allocated, before);
    }
    grd_scope_close(scope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_printed_as_in_pytorch),    cmocka_unit_test(views_meta_tensors_and_grad_suffixes_are_printed),
        cmocka_unit_test(a_tensor_of_64_dimensions_is_printed), cmocka_unit_test(null_and_negative_precision_are_refused),
        cmocka_unit_test(failed_allocations_leak_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
