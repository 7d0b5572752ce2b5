/* Caches the tables of Fourier transforms. A node (fft_node.h) holds the tables for one length. The most recently used nodes are kept, up to
 * KEPT_BYTES.
 *
 * Invariant: the cache owns a reference to each of its nodes, and nodes never change. A node removed from the cache lives until its last user
 * drops it. */
#include "op/fft_tables.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "base/fork.h"
#include "base/integer.h"
#include "base/memory.h"
#include "core/dtype.h"
#include "kernel/table.h"
#include "op/fft_passes.h"
#include "core/tensor.h"

enum { KEPT_BYTES = 64 << 20, TABLE_ALIGNMENT = 64 };

/* Guards the list `kept`. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct grd_fft_node *kept; /* list of cached nodes (each the tables for one length), most recently used first */

static void drop_all(struct grd_fft_node *node)
{
    while (node != NULL) {
        struct grd_fft_node *const next = node->next;
        grd_object_drop(node);
        node = next;
    }
}

static void release_kept(void)
{
    pthread_mutex_lock(&lock);
    struct grd_fft_node *const all = kept;
    kept = NULL;
    pthread_mutex_unlock(&lock);
    drop_all(all);
}

void grd_fft_tables_init(void)
{
    static struct grd_held_lock held = {.lock = &lock};
    grd_hold_around_fork(&held);
    grd_memory_on_trim(release_kept);
}

/* ---- How a length is transformed ------------------------------------------------------------------------------------------------------- */

/* Writes to ret_radices the radices of the passes (stages) of a transform of n elements, and returns their number. Prime factors of n above
 * GRD_FFT_MOST_RADIX have no pass; *ret_rest is their product, or 1 if there are none. */
static int radices_of(int64_t n, int ret_radices[GRD_FFT_MOST_PASSES], int64_t *ret_rest)
{
    int count = 0, twos = 0;
    for (; n % 2 == 0; n /= 2)
        twos++;
    for (int prime = 3; prime <= GRD_FFT_MOST_RADIX; prime += 2)
        for (; n % prime == 0; n /= prime)
            ret_radices[count++] = prime;
    /* A pass of radix 2 takes as long as one of radix 4, so radix 2 is used only if n has a single factor of 2. Otherwise the factors of 2 get at
     * most two passes of radix 4, and passes of radix 8 for the rest. */
    for (; twos % 3 != 0 && twos > 1; twos -= 2)
        ret_radices[count++] = 4;
    for (; twos >= 3; twos -= 3)
        ret_radices[count++] = 8;
    if (twos == 1)
        ret_radices[count++] = 2;
    *ret_rest = n;
    return count;
}

/* Returns the estimated time of transforms of n elements that run side by side, one in each lane of a vector. Includes reading and writing. The unit
 * is the time in which a pass of radix 2 processes one element of each lane. */
static double cost_of_lanes(int64_t n)
{
    int radices[GRD_FFT_MOST_PASSES];
    int64_t rest;
    const int count = radices_of(n, radices, &rest);
    double cost = 2.5;
    for (int i = 0; i < count; i++)
        cost += radices[i] == 8 ? 1.9 : radices[i] == 4 ? 1.3 : radices[i] <= 5 ? 0.7 + 0.3 * radices[i] : 1 + 0.4 * radices[i];
    return cost * (double)n * (n > 512 ? 1.4 : n > 192 ? 1.15 : 1);
}

/* Returns the estimated time of the transform of a line of a * b elements as an a x b matrix. The unit is the time that a pass
 * of radix 2 takes per element. */
static double cost_of_matrix(int64_t a, int64_t b, int64_t lanes)
{
    return (double)grd_ceil_div(b, lanes) * (cost_of_lanes(a) + 20) + (double)grd_ceil_div(a, lanes) * (cost_of_lanes(b) + 20);
}

/* Returns the estimated time of the transform of a line of n elements as the best a x b matrix, where n is not a prime. Writes the number of rows of
 * this matrix to *ret_rows. */
static double cost_of_line(int64_t n, int64_t lanes, int64_t *ret_rows)
{
    double least = INFINITY;
    for (int64_t a = 2; a * a <= n; a++) {
        const int64_t both[] = {a, n / a};
        for (int i = 0; i < 2 && n % a == 0; i++) {
            const double cost = cost_of_matrix(both[i], both[1 - i], lanes);
            if (cost < least) {
                least = cost;
                *ret_rows = both[i];
            }
        }
    }
    return least;
}

/* Returns the length m at which Bluestein's convolution for n elements is estimated to be fastest. It is a power of 2 times 1, 3, 5, 9, 15, 25 or
 * 27. */
static int64_t convolution_length(enum grd_fft_kind kind, int64_t n, int64_t lanes)
{
    double least = INFINITY;
    int64_t found = 0, rows;
    for (int64_t odd = 1; odd < 4 * n; odd = odd == 1    ? 3
                                             : odd == 3  ? 5
                                             : odd == 5  ? 9
                                             : odd == 9  ? 15
                                             : odd == 15 ? 25
                                             : odd == 25 ? 27
                                                         : 4 * n) {
        int64_t m = odd;
        while (m < 2 * n - 1)
            m *= 2;
        const double cost = kind == GRD_FFT_SHORT ? cost_of_lanes(m) : cost_of_line(m, lanes, &rows);
        if (cost < least) {
            least = cost;
            found = m;
        }
    }
    return found;
}

/* ---- Tables ------------------------------------------------------------------------------------------------------------------------------ */

/* Returns the size in bytes of a table of `numbers` numbers, rounded up to TABLE_ALIGNMENT. */
static int64_t in_table(int64_t numbers, int64_t itemsize)
{
    const int64_t bytes = numbers * itemsize;
    return bytes + (-bytes & (TABLE_ALIGNMENT - 1));
}

/* Returns the number of real numbers in the table node->factors. The table has one root of unity per element of an a x b matrix, where a and b are
 * rounded up to multiples of the number of lanes. */
static int64_t factors_of(const struct grd_fft_node *node)
{
    const int64_t lanes = node->row->lanes;
    return grd_ceil_div(node->b, lanes) * grd_round_up(node->a, lanes) * 2 * lanes;
}

/* True if the pass reads a table of roots of unity. Passes of a radix up to 8 have specialised functions, which need no table. */
static bool has_roots(const struct grd_fft_pass *pass)
{
    return pass->radix > 8;
}

/* Returns the size in bytes of all tables of the node. The tables follow the node in memory. */
static int64_t table_bytes(const struct grd_fft_node *node, int64_t itemsize)
{
    int64_t bytes = 0;
    for (int i = 0; i < node->npasses && node->kind == GRD_FFT_SHORT; i++) {
        const struct grd_fft_pass *pass = &node->passes[i];
        bytes += in_table(2 * pass->m * (pass->radix - 1), itemsize) + (has_roots(pass) ? in_table(2 * pass->radix, itemsize) : 0);
    }
    if (node->columns != NULL)
        bytes += in_table(factors_of(node), itemsize);
    if (node->inner != NULL)
        bytes += in_table(2 * node->n, itemsize) + in_table(2 * node->m, itemsize);
    if (node->kind == GRD_FFT_REAL)
        bytes += in_table(node->n / 2 + 2, itemsize);
    return bytes;
}

/* Returns *at as the address of a table of `numbers` numbers, and advances *at past this table. */
static char *place(char **at, int64_t numbers, int64_t itemsize)
{
    char *const table = *at;
    *at += in_table(numbers, itemsize);
    return table;
}

/* Transforms the filter of Bluestein's convolution in place. False if memory runs out. */
static bool make_filter(const struct grd_fft_node *node, char *filter, int64_t itemsize)
{
    const struct grd_fft_row *row = node->row;
    const int64_t m = node->m, lanes_bytes = grd_fft_lanes_bytes(row, m);
    const size_t bytes = (size_t)(node->kind == GRD_FFT_SHORT ? 2 * lanes_bytes : grd_fft_line_bytes(node->inner, 1));
    char *const work = grd_alloc(bytes);
    if (work == NULL)
        return false;
    if (node->kind == GRD_FFT_SHORT) {
        const struct grd_fft_lines line = {filter, filter + itemsize, 2, 1, {0}};
        row->take(&line, m, work);
        row->put(grd_fft_lanes(node->inner, work, work + lanes_bytes), m, 1, &line);
    } else {
        const struct grd_fft_line line = {filter, filter + itemsize, 2};
        grd_fft_line(node->inner, &line, &line, m, 1, 1, work);
    }
    row->finish_filter(m, filter);
    grd_free(work, bytes);
    return true;
}

/* Computes all tables of the node (the tables for one length) into the memory at `at`, which has table_bytes() bytes. Returns false if memory
 * runs out. */
static bool fill_tables(struct grd_fft_node *node, char *at, const struct grd_fft_roots *roots, int64_t itemsize)
{
    const struct grd_fft_row *row = node->row;
    for (int i = 0; i < node->npasses && node->kind == GRD_FFT_SHORT; i++) {
        struct grd_fft_pass *pass = &node->passes[i];
        char *const twiddles = place(&at, 2 * pass->m * (pass->radix - 1), itemsize);
        row->fill_twiddles(roots, pass->radix, pass->m, twiddles);
        pass->twiddles = twiddles;
        if (has_roots(pass)) {
            char *const all = place(&at, 2 * pass->radix, itemsize);
            row->fill_roots(roots, node->n / pass->radix, pass->radix, all);
            pass->roots = all;
        }
    }
    if (node->columns != NULL) {
        char *const factors = place(&at, factors_of(node), itemsize);
        row->fill_factors(roots, node->a, node->b, factors);
        node->factors = node->passes[node->columns->npasses - 1].factors = factors;
    }
    if (node->kind == GRD_FFT_REAL) {
        char *const all = place(&at, node->n / 2 + 2, itemsize);
        row->fill_roots(roots, 1, node->n / 4 + 1, all);
        node->roots = all;
    }
    if (node->inner == NULL)
        return true;
    char *const chirp = place(&at, 2 * node->n, itemsize), *const filter = place(&at, 2 * node->m, itemsize);
    row->fill_chirp(roots, node->n, chirp, node->m, filter);
    node->chirp = chirp;
    node->filter = filter;
    return make_filter(node, filter, itemsize);
}

/* Computes the roots of unity exactly, calls fill_tables with them, and frees them. False if memory runs out. */
static bool fill(struct grd_fft_node *node, int64_t itemsize)
{
    struct grd_fft_roots roots = {.n = node->inner != NULL ? 2 * node->n : node->n};
    roots.step = (int64_t)ceil(sqrt((double)roots.n));
    const int64_t high = (roots.n - 1) / roots.step + 1;
    const size_t bytes = (size_t)(roots.step + high) * 2 * sizeof(long double);
    roots.low = grd_alloc(bytes);
    if (roots.low == NULL)
        return false;
    roots.high = roots.low + 2 * roots.step;
    grd_fft_exact_roots(roots.n, 1, roots.step, roots.low);
    grd_fft_exact_roots(roots.n, roots.step, high, roots.high);
    const bool is_done = fill_tables(node, (char *)node + in_table(sizeof *node, 1), &roots, itemsize);
    grd_free(roots.low, bytes);
    return is_done;
}

/* ---- Nodes ----------------------------------------------------------------------------------------------------------------------------- */

static struct grd_fft_node *owned_node(enum grd_fft_kind kind, int64_t n, grd_dtype dtype);

static void drop_parts(const struct grd_fft_node *node)
{
    grd_object_drop((void *)(uintptr_t)node->columns);
    grd_object_drop((void *)(uintptr_t)node->rows);
    grd_object_drop((void *)(uintptr_t)node->inner);
}

static void destroy(struct grd_object *object)
{
    struct grd_fft_node *node = (struct grd_fft_node *)object;
    drop_parts(node);
    grd_free(node, node->bytes);
}

static const struct grd_object_type node_type = {.name = "tables of a Fourier transform", .destroy = destroy};

/* Chooses a and b for a long line, which is transformed as an a x b matrix: first its columns, then its rows. Also lists the passes (stages of one
 * radix) of columns and rows in node->passes. They are used when several long lines are transformed at once, one in each vector lane. Returns false
 * if memory runs out. */
static bool plan_matrix(struct grd_fft_node *node, grd_dtype dtype)
{
    cost_of_line(node->n, node->row->lanes, &node->a);
    node->b = node->n / node->a;
    node->columns = owned_node(GRD_FFT_SHORT, node->a, dtype);
    node->rows = node->columns != NULL ? owned_node(GRD_FFT_SHORT, node->b, dtype) : NULL;
    if (node->rows == NULL)
        return false;
    for (int i = 0; i < node->columns->npasses; i++) {
        struct grd_fft_pass *pass = &node->passes[node->npasses++];
        *pass = node->columns->passes[i];
        pass->m *= node->b;
        pass->repeats = node->b;
    }
    for (int i = 0; i < node->rows->npasses; i++) {
        struct grd_fft_pass *pass = &node->passes[node->npasses++];
        *pass = node->rows->passes[i];
        pass->s *= node->a;
    }
    return true;
}

/* Chooses the algorithm by which the node's length is transformed, and gets the nodes of other lengths that the algorithm uses. Returns false if
 * memory runs out. */
static bool plan_node(struct grd_fft_node *node, grd_dtype dtype)
{
    int radices[GRD_FFT_MOST_PASSES];
    int64_t rest, length = node->n;
    const int count = radices_of(node->n, radices, &rest);
    if (node->kind == GRD_FFT_REAL)
        return true;
    if (rest > 1) {
        node->m = convolution_length(node->kind, node->n, node->row->lanes);
        return (node->inner = owned_node(node->kind, node->m, dtype)) != NULL;
    }
    if (node->kind == GRD_FFT_LONG)
        return plan_matrix(node, dtype);
    node->npasses = count;
    for (int i = 0; i < count; i++) {
        node->passes[i] = (struct grd_fft_pass){.radix = radices[i], .m = length / radices[i], .s = node->n / length, .repeats = 1};
        length /= radices[i];
    }
    return true;
}

static struct grd_fft_node *make_node(enum grd_fft_kind kind, int64_t n, grd_dtype dtype)
{
    const int64_t itemsize = grd_dtype_table[dtype].size;
    struct grd_fft_node plan = {.object = {&node_type, 1}, .row = grd_kernels->fft[dtype], .kind = kind, .n = n};
    struct grd_fft_node *node = NULL;
    if (plan_node(&plan, dtype)) {
        plan.bytes = (size_t)(in_table(sizeof plan, 1) + table_bytes(&plan, itemsize));
        node = grd_alloc(plan.bytes);
    }
    if (node == NULL) {
        drop_parts(&plan);
        return NULL;
    }
    *node = plan;
    if (!fill(node, itemsize)) {
        destroy(&node->object);
        return NULL;
    }
    return node;
}

/* Returns the cached node (the tables for one length) for these arguments, moved to the front of the list, with a reference for the caller.
 * Returns NULL if there is none. */
static struct grd_fft_node *find_kept(enum grd_fft_kind kind, int64_t n, grd_dtype dtype)
{
    for (struct grd_fft_node **at = &kept; *at != NULL; at = &(*at)->next) {
        struct grd_fft_node *node = *at;
        if (node->n == n && node->kind == kind && node->row == grd_kernels->fft[dtype]) {
            *at = node->next;
            node->next = kept;
            kept = node;
            return grd_object_keep(node);
        }
    }
    return NULL;
}

/* Adds the node (the tables for one length) to the cache, unless it is larger than KEPT_BYTES. If the cache then exceeds KEPT_BYTES, removes the
 * least recently used nodes and returns them as a list, which the caller drops. */
static struct grd_fft_node *keep_node(struct grd_fft_node *node)
{
    if (node->bytes > KEPT_BYTES)
        return NULL;
    node->next = kept;
    kept = grd_object_keep(node);
    size_t bytes = 0;
    struct grd_fft_node **at = &kept;
    while (*at != NULL && bytes + (*at)->bytes <= KEPT_BYTES) {
        bytes += (*at)->bytes;
        at = &(*at)->next;
    }
    struct grd_fft_node *const leaving = *at;
    *at = NULL;
    return leaving;
}

/* Returns the node (the tables for one length) for these arguments, cached or newly made, with a reference for the caller. Returns NULL if memory
 * runs out. */
static struct grd_fft_node *owned_node(enum grd_fft_kind kind, int64_t n, grd_dtype dtype)
{
    pthread_mutex_lock(&lock);
    struct grd_fft_node *node = find_kept(kind, n, dtype);
    pthread_mutex_unlock(&lock);
    if (node != NULL || (node = make_node(kind, n, dtype)) == NULL)
        return node;
    pthread_mutex_lock(&lock);
    struct grd_fft_node *leaving = keep_node(node);
    pthread_mutex_unlock(&lock);
    drop_all(leaving);
    return node;
}

const struct grd_fft_node *grd_fft_node(enum grd_fft_kind kind, int64_t n, grd_dtype dtype)
{
    struct grd_fft_node *const node = owned_node(kind, n, dtype);
    return node != NULL && grd_pool_push(node) ? node : NULL;
}
