/* Computes roots of unity with the accuracy of long double. Sine and cosine are computed only for angles of at most 45 degrees; reflections give the
 * other roots. */
#include "kernel/fft.h"

#include <math.h>

static const long double quarter_pi = 0.78539816339744830961566084581987572L;

void grd_fft_exact_roots(int64_t n, int64_t step, int64_t count, long double *to)
{
    for (int64_t k = 0; k < count; k++) {
        const int64_t octant = 8 * k * step / n, rest = 8 * k * step % n;
        const long double angle = quarter_pi * (long double)(octant % 2 == 0 ? rest : n - rest) / (long double)n;
        const long double c = cosl(angle), s = sinl(angle);
        const bool is_steep = octant == 1 || octant == 2 || octant == 5 || octant == 6;
        to[2 * k] = (octant >= 2 && octant < 6 ? -1 : 1) * (is_steep ? s : c);
        to[2 * k + 1] = (octant >= 4 ? 1 : -1) * (is_steep ? c : s);
    }
}
