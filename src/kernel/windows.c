/* Copies the input elements that the windows of a convolution cover (declared in windows.h). Output positions that differ only in the last dimension
 * are processed together. */
#include "kernel/windows.h"
#include "base/integer.h"

#include <string.h>

typedef struct {
    uint64_t low, high;
} pair;

/* Copies n elements to contiguous memory at `to`. In `from` they are `step` elements apart. */
static void copy_elements(int64_t n, int64_t itemsize, char *to, const char *from, int64_t step)
{
    if (step == 1) {
        memcpy(to, from, (size_t)(n * itemsize));
        return;
    }
    switch (itemsize) {
    case 1:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)to)[i] = ((const uint8_t *)from)[i * step];
        break;
    case 2:
        for (int64_t i = 0; i < n; i++)
            ((uint16_t *)to)[i] = ((const uint16_t *)from)[i * step];
        break;
    case 4:
        for (int64_t i = 0; i < n; i++)
            ((uint32_t *)to)[i] = ((const uint32_t *)from)[i * step];
        break;
    case 8:
        for (int64_t i = 0; i < n; i++)
            ((uint64_t *)to)[i] = ((const uint64_t *)from)[i * step];
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            ((pair *)to)[i] = ((const pair *)from)[i * step];
    }
}

/* Returns the index, along dimension `dim`, of the input element that output position p reads at kernel position `tap`, or -1 if it reads padding. */
static inline int64_t element_at(const struct grd_windows *w, int dim, int64_t p, int64_t tap)
{
    const int64_t i = p * w->step[dim] + tap * w->dilation[dim] - w->padding[dim];
    return i >= 0 && i < w->plane[dim] ? i : -1;
}

/* Copies the elements that n output positions read at kernel position `tap`, or 0 where a position reads padding. The output positions are p to
 * p + n - 1 along the last dimension; they read `row`, a row of the input. */
static void read_run(const struct grd_windows *w, const char *row, int64_t tap, int64_t p, int64_t n, char *to)
{
    enum { LAST = GRD_WINDOW_DIMS - 1 };
    const int64_t offset = tap * w->dilation[LAST] - w->padding[LAST], step = w->step[LAST], size = w->plane[LAST], itemsize = w->itemsize;
    const int64_t first = grd_clamped(offset < 0 ? grd_ceil_div(-offset, step) : 0, p, p + n);
    const int64_t past = grd_clamped(offset < size ? grd_ceil_div(size - offset, step) : 0, first, p + n);
    memset(to, 0, (size_t)((first - p) * itemsize));
    if (past > first)
        copy_elements(past - first, itemsize, to + (first - p) * itemsize, row + (first * step + offset) * itemsize, step);
    memset(to + (past - p) * itemsize, 0, (size_t)((p + n - past) * itemsize));
}

void grd_windows_line(const struct grd_windows *w, const char *plane, const int64_t tap[GRD_WINDOW_DIMS], int64_t first, int64_t n,
                      char *line)
{
    int64_t last = first % w->places[2], middle = first / w->places[2] % w->places[1], outer = first / w->places[2] / w->places[1];
    for (int64_t done = 0; done < n;) {
        const int64_t run = w->places[2] - last < n - done ? w->places[2] - last : n - done;
        const int64_t i = element_at(w, 0, outer, tap[0]), j = element_at(w, 1, middle, tap[1]);
        if (i < 0 || j < 0)
            memset(line + done * w->itemsize, 0, (size_t)(run * w->itemsize));
        else
            read_run(w, plane + (i * w->plane[1] + j) * w->plane[2] * w->itemsize, tap[2], last, run, line + done * w->itemsize);
        done += run;
        last = 0;
        if (++middle == w->places[1]) {
            middle = 0;
            outer++;
        }
    }
}

void grd_windows_offsets(const int64_t counts[GRD_WINDOW_DIMS], const int64_t steps[GRD_WINDOW_DIMS], int64_t start, int64_t first,
                         int64_t n, int32_t *to)
{
    int64_t l = first % counts[2], k = first / counts[2] % counts[1], j = first / counts[2] / counts[1];
    for (int64_t i = 0; i < n; i++) {
        to[i] = (int32_t)(start + j * steps[0] + k * steps[1] + l * steps[2]);
        if (++l == counts[2]) {
            l = 0;
            if (++k == counts[1]) {
                k = 0;
                j++;
            }
        }
    }
}
