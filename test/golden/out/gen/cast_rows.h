/* Generated from a list of dtypes by codegen. Do not edit. */
static void to_bool_block(int64_t n, char *const *data, const void *params)
{
    (void)params;
    uint8_t *y = (uint8_t *)data[0];
    const T *x_data = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        const T x = x_data[i];
        y[i] = to_bool(x);
    }
}
static void to_bool_loop(int64_t n, char *const *data, const int64_t *strides, const void *params) { cast(n, data, strides, params, GRD_BOOL, sizeof(uint8_t), to_bool_block); }

static void to_uint8_block(int64_t n, char *const *data, const void *params)
{
    (void)params;
    uint8_t *y = (uint8_t *)data[0];
    const T *x_data = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        const T x = x_data[i];
        y[i] = (uint8_t)to_int32(source(x));
    }
}
static void to_uint8_loop(int64_t n, char *const *data, const int64_t *strides, const void *params) { cast(n, data, strides, params, GRD_UINT8, sizeof(uint8_t), to_uint8_block); }

static void to_uint16_block(int64_t n, char *const *data, const void *params)
{
    (void)params;
    uint16_t *y = (uint16_t *)data[0];
    const T *x_data = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        const T x = x_data[i];
        y[i] = (uint16_t)to_int32(source(x));
    }
}
static void to_uint16_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_UINT16, sizeof(uint16_t), to_uint16_block);
}

static void to_int32_block(int64_t n, char *const *data, const void *params)
{
    (void)params;
    int32_t *y = (int32_t *)data[0];
    const T *x_data = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        const T x = x_data[i];
        y[i] = to_int32(source(x));
    }
}
static void to_int32_loop(int64_t n, char *const *data, const int64_t *strides, const void *params) { cast(n, data, strides, params, GRD_INT32, sizeof(int32_t), to_int32_block); }

static void to_uint32_block(int64_t n, char *const *data, const void *params)
{
    (void)params;
    uint32_t *y = (uint32_t *)data[0];
    const T *x_data = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        const T x = x_data[i];
        y[i] = (uint32_t)to_int64(source(x));
    }
}
static void to_uint32_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_UINT32, sizeof(uint32_t), to_uint32_block);
}

static void to_int64_block(int64_t n, char *const *data, const void *params)
{
    (void)params;
    int64_t *y = (int64_t *)data[0];
    const T *x_data = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        const T x = x_data[i];
        y[i] = to_int64(source(x));
    }
}
static void to_int64_loop(int64_t n, char *const *data, const int64_t *strides, const void *params) { cast(n, data, strides, params, GRD_INT64, sizeof(int64_t), to_int64_block); }

static void to_uint64_block(int64_t n, char *const *data, const void *params)
{
    (void)params;
    uint64_t *y = (uint64_t *)data[0];
    const T *x_data = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        const T x = x_data[i];
        y[i] = to_uint64(source(x));
    }
}
static void to_uint64_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_UINT64, sizeof(uint64_t), to_uint64_block);
}

static void to_float16_block(int64_t n, char *const *data, const void *params)
{
    (void)params;
    uint16_t *y = (uint16_t *)data[0];
    const T *x_data = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        const T x = x_data[i];
        y[i] = grd_to_float16((float)source(x));
    }
}
static void to_float16_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_FLOAT16, sizeof(uint16_t), to_float16_block);
}

static void to_bfloat16_block(int64_t n, char *const *data, const void *params)
{
    (void)params;
    uint16_t *y = (uint16_t *)data[0];
    const T *x_data = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        const T x = x_data[i];
        y[i] = grd_to_bfloat16((float)source(x));
    }
}
static void to_bfloat16_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_BFLOAT16, sizeof(uint16_t), to_bfloat16_block);
}

static void to_float8_e4m3fn_block(int64_t n, char *const *data, const void *params)
{
    (void)params;
    uint8_t *y = (uint8_t *)data[0];
    const T *x_data = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        const T x = x_data[i];
        y[i] = grd_to_float8_e4m3fn((float)source(x));
    }
}
static void to_float8_e4m3fn_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_FLOAT8_E4M3FN, sizeof(uint8_t), to_float8_e4m3fn_block);
}

static void to_float8_e5m2_block(int64_t n, char *const *data, const void *params)
{
    (void)params;
    uint8_t *y = (uint8_t *)data[0];
    const T *x_data = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        const T x = x_data[i];
        y[i] = grd_to_float8_e5m2((float)source(x));
    }
}
static void to_float8_e5m2_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_FLOAT8_E5M2, sizeof(uint8_t), to_float8_e5m2_block);
}

static void to_float32_block(int64_t n, char *const *data, const void *params)
{
    (void)params;
    float *y = (float *)data[0];
    const T *x_data = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        const T x = x_data[i];
        y[i] = (float)source(x);
    }
}
static void to_float32_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_FLOAT32, sizeof(float), to_float32_block);
}

static void to_float64_block(int64_t n, char *const *data, const void *params)
{
    (void)params;
    double *y = (double *)data[0];
    const T *x_data = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        const T x = x_data[i];
        y[i] = (double)source(x);
    }
}
static void to_float64_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_FLOAT64, sizeof(double), to_float64_block);
}

static void to_complex32_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_COMPLEX32, sizeof(struct pair_complex32), NULL);
}

static void to_complex64_block(int64_t n, char *const *data, const void *params)
{
    (void)params;
    struct pair_complex64 *y = (struct pair_complex64 *)data[0];
    const T *x_data = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        const T x = x_data[i];
        y[i] = (struct pair_complex64){(float)source(x), (float)imaginary(x)};
    }
}
static void to_complex64_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_COMPLEX64, sizeof(struct pair_complex64), to_complex64_block);
}

static void to_complex128_block(int64_t n, char *const *data, const void *params)
{
    (void)params;
    struct pair_complex128 *y = (struct pair_complex128 *)data[0];
    const T *x_data = (const T *)data[1];
    IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        const T x = x_data[i];
        y[i] = (struct pair_complex128){(double)source(x), (double)imaginary(x)};
    }
}
static void to_complex128_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    cast(n, data, strides, params, GRD_COMPLEX128, sizeof(struct pair_complex128), to_complex128_block);
}

grd_loop_kernel *const GRD_TYPED(grd_cast_row)[GRD_DTYPE_COUNT] = {
    [GRD_BOOL] = CAST_IF(bool, to_bool_loop),
    [GRD_UINT8] = CAST_IF(uint8, to_uint8_loop),
    [GRD_UINT16] = CAST_IF(uint16, to_uint16_loop),
    [GRD_INT32] = CAST_IF(int32, to_int32_loop),
    [GRD_UINT32] = CAST_IF(uint32, to_uint32_loop),
    [GRD_INT64] = CAST_IF(int64, to_int64_loop),
    [GRD_UINT64] = CAST_IF(uint64, to_uint64_loop),
    [GRD_FLOAT16] = CAST_IF(float16, to_float16_loop),
    [GRD_BFLOAT16] = CAST_IF(bfloat16, to_bfloat16_loop),
    [GRD_FLOAT8_E4M3FN] = CAST_IF(float8_e4m3fn, to_float8_e4m3fn_loop),
    [GRD_FLOAT8_E5M2] = CAST_IF(float8_e5m2, to_float8_e5m2_loop),
    [GRD_FLOAT32] = CAST_IF(float32, to_float32_loop),
    [GRD_FLOAT64] = CAST_IF(float64, to_float64_loop),
    [GRD_COMPLEX32] = CAST_IF(complex32, to_complex32_loop),
    [GRD_COMPLEX64] = CAST_IF(complex64, to_complex64_loop),
    [GRD_COMPLEX128] = CAST_IF(complex128, to_complex128_loop),
    [GRD_INT8] = CAST_IF(int8, to_uint8_loop),
    [GRD_INT16] = CAST_IF(int16, to_uint16_loop),
};
