/* Defines gather, scatter and mask loops for elements of SIZE bytes, which are moved as integers of the type WORD. index.c defines SIZE and WORD and
 * includes this file once per size. */
#define SIZED(name) GRD_PASTE2(name, SIZE)

GRD_INLINE void SIZED(move)(char *restrict to, const char *restrict from)
{
    memcpy(to, from, SIZE);
}

/* Moves n elements from `from` to `to`. In the operand `indexed`, element i is at a distance of index[i] * step bytes from the start. The other
 * operand is contiguous, and so is `index`. Several elements are loaded before the first is stored, because a load waits until the addresses of the
 * stores before it are known. */
GRD_INLINE void SIZED(move_listed)(int64_t n, char *to, const char *from, int64_t step, const int64_t *index, enum side indexed)
{
    enum { SOME = 4 };
    int64_t i = 0;
    for (; i + SOME <= n; i += SOME) {
        WORD x[SOME];
        UNROLLED for (int k = 0; k < SOME; k++) memcpy(&x[k], from + (indexed == SOURCE ? index[i + k] * step : (i + k) * SIZE), SIZE);
        UNROLLED for (int k = 0; k < SOME; k++) memcpy(to + (indexed == RESULT ? index[i + k] * step : (i + k) * SIZE), &x[k], SIZE);
    }
    for (; i < n; i++)
        memcpy(to + (indexed == RESULT ? index[i] * step : i * SIZE), from + (indexed == SOURCE ? index[i] * step : i * SIZE), SIZE);
}

static void SIZED(gather)(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    const int64_t step = *(const int64_t *)params, *index = (const int64_t *)(const void *)data[2];
    if (strides[0] != SIZE || strides[1] != 0 || strides[2] != sizeof *index)
        at_indices(n, data, strides, params, SOURCE, move_row, SIZED(move), SIZE);
    else if (step == SIZE)
        SIZED(move_listed)(n, data[0], data[1], SIZE, index, SOURCE);
    else
        SIZED(move_listed)(n, data[0], data[1], step, index, SOURCE);
}

static void SIZED(scatter)(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    const int64_t step = *(const int64_t *)params, *index = (const int64_t *)(const void *)data[2];
    if (strides[0] != 0 || strides[1] != SIZE || strides[2] != sizeof *index)
        at_indices(n, data, strides, params, RESULT, move_row, SIZED(move), SIZE);
    else if (step == SIZE)
        SIZED(move_listed)(n, data[0], data[1], SIZE, index, RESULT);
    else
        SIZED(move_listed)(n, data[0], data[1], step, index, RESULT);
}

#if SIZE <= 8
/* Adds the integer at `from` to the integer at `to`. Both are signed or both are unsigned; the sum wraps. */
GRD_INLINE void SIZED(add_word)(char *restrict to, const char *restrict from)
{
    WORD x, y;
    memcpy(&x, to, SIZE);
    memcpy(&y, from, SIZE);
    x = (WORD)(x + y);
    memcpy(to, &x, SIZE);
}

static void SIZED(add)(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    at_indices(n, data, strides, params, RESULT, add_row, SIZED(add_word), SIZE);
}

GRD_INLINE bool SIZED(has_zero)(int64_t n, const char *data, int64_t stride)
{
    bool found = false;
    for (int64_t i = 0; i < n; i++) {
        WORD x;
        memcpy(&x, data + i * stride, SIZE);
        found |= x == 0;
    }
    return found;
}

/* Sets the atomic_bool to which *params points to true if one of n elements is 0. */
static void SIZED(find_zero)(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    const bool found = strides[0] == SIZE ? SIZED(has_zero)(n, data[0], SIZE) : SIZED(has_zero)(n, data[0], strides[0]);
    if (found)
        atomic_store_explicit(*(atomic_bool *const *)params, true, memory_order_relaxed);
}
#endif

GRD_INLINE void SIZED(fill)(int64_t n, char *to, int64_t to_stride, const char *from, int64_t from_stride, const char *mask,
                            int64_t mask_stride, const void *value)
{
    WORD filling, x;
    memcpy(&filling, value, SIZE);
    for (int64_t i = 0; i < n; i++) {
        memcpy(&x, from + i * from_stride, SIZE);
        x = mask[i * mask_stride] ? filling : x;
        memcpy(to + i * to_stride, &x, SIZE);
    }
}

/* Sets each element of the result (data[0]) to the value at `params` if the mask (data[2]) is set there, and otherwise to the element of the
 * source (data[1]). If the result and the source are the same array, fill() gets data[0] for both, so that the compiler knows this and vectorises
 * the loop. */
static void SIZED(masked_fill)(int64_t n, char *const *data, const int64_t *strides, const void *params)
{
    bool together = strides[0] == SIZE && strides[1] == SIZE && strides[2] == 1;
    if (together && data[0] == data[1])
        SIZED(fill)(n, data[0], SIZE, data[0], SIZE, data[2], 1, params);
    else if (together)
        SIZED(fill)(n, data[0], SIZE, data[1], SIZE, data[2], 1, params);
    else
        SIZED(fill)(n, data[0], strides[0], data[1], strides[1], data[2], strides[2], params);
}

/* Selects the elements of `from` at which the mask is set, copies them to the start of `to`, one after the other, and returns their number. */
static int64_t SIZED(compress)(int64_t n, const uint8_t *mask, char *to, const char *from)
{
    int64_t moved = 0, i = 0;
    n = set_end(n, mask);
    for (; i + 8 <= n; i += 8) {
        if (are_eight_unset(mask + i))
            continue;
        UNROLLED for (int k = 0; k < 8; k++)
        {
            SIZED(move)(to + moved * SIZE, from + (i + k) * SIZE);
            moved += mask[i + k] != 0;
        }
    }
    for (; i < n; i++) {
        SIZED(move)(to + moved * SIZE, from + i * SIZE);
        moved += mask[i] != 0;
    }
    return moved;
}

/* Copies the elements of `from`, one after the other, to those elements of `to` at which the mask is set. Returns how many elements were copied. */
static int64_t SIZED(expand)(int64_t n, const uint8_t *mask, char *to, const char *from)
{
    int64_t moved = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!mask[i])
            continue;
        SIZED(move)(to + i * SIZE, from + moved * SIZE);
        moved++;
    }
    return moved;
}

#undef SIZED
#undef SIZE
#undef WORD
