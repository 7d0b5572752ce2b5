/* Defines functions that combine an element of TYPE with the element at an index, by sum, product, maximum or minimum, and loops that apply them.
 * index.c defines TYPE, NAME (the dtype in the names of the functions) and DOES (the operations to instantiate), and includes this file once per
 * TYPE. Maximum and minimum propagate NaN. */
#define TYPED(name) GRD_PASTE2(name, NAME)

#if DOES & ADDS
GRD_INLINE void TYPED(add)(char *restrict to, const char *restrict from)
{
    const TYPE x = *(const TYPE *)to, y = *(const TYPE *)from;
    *(TYPE *)to = x + y;
}

static void TYPED(add_loop)(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    at_indices(n, data, strides, params, RESULT, add_row, TYPED(add), sizeof(TYPE));
}
#endif

#if DOES & MULTIPLIES
GRD_INLINE void TYPED(prod)(char *restrict to, const char *restrict from)
{
    const TYPE x = *(const TYPE *)to, y = *(const TYPE *)from;
    *(TYPE *)to = x * y;
}

static void TYPED(prod_loop)(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    at_indices(n, data, strides, params, RESULT, add_row, TYPED(prod), sizeof(TYPE));
}
#endif

#if DOES & COMPARES
#if DOES & HAS_NAN
#define IS_NAN(x) ((x) != (x))
#else
#define IS_NAN(x) false
#endif

GRD_INLINE void TYPED(amax)(char *restrict to, const char *restrict from)
{
    const TYPE x = *(const TYPE *)to, y = *(const TYPE *)from;
    *(TYPE *)to = y > x || IS_NAN(y) ? y : x;
}

static void TYPED(amax_loop)(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    at_indices(n, data, strides, params, RESULT, add_row, TYPED(amax), sizeof(TYPE));
}

GRD_INLINE void TYPED(amin)(char *restrict to, const char *restrict from)
{
    const TYPE x = *(const TYPE *)to, y = *(const TYPE *)from;
    *(TYPE *)to = y < x || IS_NAN(y) ? y : x;
}

static void TYPED(amin_loop)(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    at_indices(n, data, strides, params, RESULT, add_row, TYPED(amin), sizeof(TYPE));
}

#undef IS_NAN
#endif

#undef TYPED
#undef DOES
#undef TYPE
#undef NAME
