/* Computes LU and Cholesky decompositions of large matrices on all threads. LAPACK decomposes panels (blocks of adjacent columns) from left to right,
 * and each decomposed panel is used to update the columns to its right. A thread always takes the leftmost step (decomposition of a panel or update
 * of some columns) that can be done now, so the next panel is decomposed while columns farther right still wait for updates.
 *
 * Invariants
 * - The set of steps, and their order for each column, depend only on the sizes of the matrix, so the bits do not depend on the number of threads.
 * - Each column is changed by one thread at a time.
 * - No step fails for lack of memory, because run() has made sure that OpenBLAS has its buffers. */
#include "op/lapack_panels.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/integer.h"
#include "base/parallel.h"
#include "gradus/runtime.h"
#include "op/lapack.h"
#include "op/openblas.h"
#include "op/sizes.h"

typedef void laswp_routine(const int64_t *n, void *a, const int64_t *lda, const int64_t *first, const int64_t *last, const int64_t *pivots,
                           const int64_t *step);
typedef void herk_routine(const char *triangle, const char *transposition, const int64_t *n, const int64_t *k, const void *alpha,
                          const void *a, const int64_t *lda, const void *beta, void *c, const int64_t *ldc, size_t length1, size_t length2);

/* Smallest min(m, n) of a matrix that is decomposed panel by panel (a panel is a block of adjacent columns); smaller matrices are decomposed by
 * one LAPACK call. From this size on, panels are faster on two threads and as fast on one. */
enum { LU_SIDE = 128, CHOLESKY_SIDE = 192 };

/* The values were chosen by measurements on two threads of a Zen 5, for sides of 200 to 2,000. */
enum {
    WIDTH = 48, /* minimum number of columns of a panel, i.e. of a block of adjacent columns that is decomposed at a time */
    GROUP = 3,  /* number of adjacent panels whose columns are updated together; see Note [Groups] */
    MOST_PANELS = 256
};

/* Counts the updates of the columns of one panel (a block of adjacent columns), or of a group of adjacent panels. */
struct progress {
    /* Number of panels that have updated the columns of this panel or group, i.e. whose contribution has been subtracted. */
    int64_t updates;
    bool is_busy; /* true while a thread is changing the columns of this panel or group */
};

/* Note [Groups]
 * A panel is a block of adjacent columns. Updating columns by a decomposed panel is a matrix product that first packs rows of the panel into a
 * contiguous buffer. The cost of packing per updated column falls with the number of columns that are updated together. But with wider panels, each
 * panel would be decomposed later, and threads would wait for it. Therefore GROUP adjacent panels form a group. A panel in an earlier group
 * than the previous one updates all columns of a group together. A panel in the previous group, or in the group itself, updates the panels of the
 * group one at a time, so that the leftmost of them can be decomposed early. */
struct job {
    grd_dtype dtype;
    int64_t m, n;  /* size of the matrix: m rows, n columns */
    int64_t width; /* number of columns of a panel, i.e. of a block of adjacent columns; the last panel may have fewer */
    /* Number of panels, i.e. of blocks of adjacent columns. The first `factors` panels contain pivots and are decomposed; the others are only
     * updated. */
    int64_t count, factors;
    char *a;
    int64_t *pivots; /* 1-based pivot rows; during run(), relative to the first row of their panel; NULL for Cholesky */
    int64_t info;
    const void *one, *minus_one;
    grd_getrf_routine *getrf;
    grd_potrf_routine *potrf;
    grd_trsm_routine *trsm;
    laswp_routine *laswp;
    grd_gemm_routine *gemm;
    herk_routine *herk;
    void (*decompose)(struct job *job, int64_t panel);
    /* Updates the columns [column, end) by panel number `panel`, which is already decomposed. */
    void (*update)(struct job *job, int64_t panel, int64_t column, int64_t end);

    pthread_mutex_t lock; /* protects `decomposed`, `groups` and `panels` */
    int64_t decomposed;   /* number of panels that are decomposed */
    struct progress groups[MOST_PANELS], panels[MOST_PANELS];
    atomic_int changes; /* number of decompositions and updates that are done; waiting threads poll this number without the lock */
};

/* A step that a thread can do next. It either decomposes the panel that consists of the columns [column, end), or updates the columns [column, end).
 * An update subtracts the contribution of one panel that is already decomposed. The index of this panel is progress->updates. */
struct step {
    struct progress *progress;
    int64_t column, end;
};

static void *at(const struct job *job, int64_t row, int64_t column)
{
    return job->a + (row + column * job->m) * grd_dtype_size(job->dtype);
}

/* Returns the index of the first column after the panel. */
static int64_t end_of(const struct job *job, int64_t panel)
{
    return grd_least(job->n, (panel + 1) * job->width);
}

/* Returns the number of pivots of the panel: its number of columns, or the number of rows from its diagonal on if this is less. */
static int64_t depth_of(const struct job *job, int64_t panel)
{
    return grd_least(job->m, end_of(job, panel)) - panel * job->width;
}

/* ---- Scheduling of the steps -------------------------------------------------------------------------------------------------------------- */

/* Returns how many panels, counted from the left, update all columns of the group in one product. These are the panels at least two groups to the
 * left. See Note [Groups]. */
static int64_t shared_updates(const struct job *job, int64_t group)
{
    return grd_least(grd_greatest(group - 1, 0) * GROUP, job->factors);
}

/* True if the columns that `progress` describes (those of a panel or a group) can be updated now: no thread is changing them, fewer than `wanted`
 * panels have updated them, and the next panel is decomposed. The caller holds the lock. */
static bool can_update(const struct job *job, const struct progress *progress, int64_t wanted)
{
    return !progress->is_busy && progress->updates < grd_least(wanted, job->decomposed);
}

/* Finds the leftmost step that can be done now and stores it in *ret_step. A step decomposes a panel (a block of adjacent columns), or updates
 * columns by a decomposed panel. Returns false if nothing can be done now. The caller holds the lock. */
static bool find_step(struct job *job, struct step *ret_step)
{
    for (int64_t panel = job->decomposed; panel < job->count; panel++) {
        const int64_t group = panel / GROUP, shared = shared_updates(job, group), wanted = grd_least(panel, job->factors);
        struct progress *const together = &job->groups[group], *const alone = &job->panels[panel];
        if (can_update(job, together, shared)) {
            *ret_step = (struct step){together, group * GROUP * job->width, end_of(job, group * GROUP + GROUP - 1)};
            return true;
        }
        const bool is_next = panel == job->decomposed && panel < job->factors && alone->updates == wanted && !alone->is_busy;
        if (together->updates == shared && (is_next || can_update(job, alone, wanted))) {
            *ret_step = (struct step){alone, panel * job->width, end_of(job, panel)};
            return true;
        }
    }
    return false;
}

/* True if the matrix is completely decomposed: all panels (blocks of columns) with pivots are decomposed, and the columns to the right of them
 * are updated. The caller holds the lock. */
static bool is_done(const struct job *job)
{
    bool done = job->decomposed == job->factors;
    for (int64_t panel = job->factors; panel < job->count && done; panel++)
        done = job->panels[panel].updates == job->factors;
    return done;
}

/* Executes one step, i.e. decomposes a panel (a block of adjacent columns) or updates columns by a decomposed panel. The caller holds the lock,
 * which is released during the computation. */
static void do_step(struct job *job, const struct step *step)
{
    struct progress *const progress = step->progress;
    const int64_t panel = progress->updates;
    const bool decomposes = step->column == panel * job->width;
    progress->is_busy = true;
    pthread_mutex_unlock(&job->lock);
    grd_openblas_begin();
    if (decomposes)
        job->decompose(job, panel);
    else
        job->update(job, panel, step->column, step->end);
    grd_openblas_end();
    pthread_mutex_lock(&job->lock);
    progress->is_busy = false;
    if (decomposes)
        job->decomposed++;
    else
        progress->updates++;
    atomic_fetch_add_explicit(&job->changes, 1, memory_order_relaxed);
}

/* Spins until another thread has finished a step, that is until job->changes differs from `seen`. The thread does not sleep, since a step takes less
 * time than waking a thread, but yields the processor after every 1,000 polls. */
static void wait_for_change(const struct job *job, int seen)
{
    enum { LOOKS = 1000 };
    for (int i = 1; atomic_load_explicit(&job->changes, memory_order_relaxed) == seen; i++)
        if (i % LOOKS == 0)
            sched_yield();
        else
            grd_relax();
}

/* Decomposes panels and updates columns until nothing is left to do. Each thread runs this task once, so the range [begin, end) has no meaning. */
static void do_steps(int64_t begin, int64_t end, void *context)
{
    struct job *job = context;
    struct step step;
    (void)begin, (void)end;
    pthread_mutex_lock(&job->lock);
    while (!is_done(job)) {
        if (find_step(job, &step)) {
            do_step(job, &step);
        } else {
            const int seen = atomic_load_explicit(&job->changes, memory_order_relaxed);
            pthread_mutex_unlock(&job->lock);
            wait_for_change(job, seen);
            pthread_mutex_lock(&job->lock);
        }
    }
    pthread_mutex_unlock(&job->lock);
}

/* Returns the struct job for decomposing the m x n matrix a. The caller sets `pivots`, `decompose` and `update`. */
static struct job job_of(grd_dtype dtype, int64_t m, int64_t n, void *a)
{
    const int64_t width = grd_greatest(WIDTH, grd_ceil_div(n, MOST_PANELS));
    return (struct job){.dtype = dtype,
                        .m = m,
                        .n = n,
                        .width = width,
                        .count = grd_ceil_div(n, width),
                        .factors = grd_ceil_div(grd_least(m, n), width),
                        .a = a,
                        .one = grd_lapack_number(dtype, 1),
                        .minus_one = grd_lapack_number(dtype, -1),
                        .getrf = (grd_getrf_routine *)grd_lapack(dtype, GRD_LAPACK_GETRF),
                        .potrf = (grd_potrf_routine *)grd_lapack(dtype, GRD_LAPACK_POTRF),
                        .trsm = (grd_trsm_routine *)grd_lapack(dtype, GRD_LAPACK_TRSM),
                        .laswp = (laswp_routine *)grd_lapack(dtype, GRD_LAPACK_LASWP),
                        .gemm = (grd_gemm_routine *)grd_lapack(dtype, GRD_LAPACK_GEMM),
                        .herk = (herk_routine *)grd_lapack(dtype, GRD_LAPACK_SYRK)};
}

/* Decomposes the matrix on all threads. Returns false, with nothing written, if OpenBLAS or one of the routines is not available. */
static bool run(struct job *job)
{
    if (job->getrf == NULL || job->potrf == NULL || job->trsm == NULL || job->laswp == NULL || job->gemm == NULL || job->herk == NULL ||
        !grd_openblas_begin())
        return false;
    grd_openblas_end();
    for (int64_t panel = 0; panel < job->count; panel++)
        job->panels[panel].updates = shared_updates(job, panel / GROUP);
    pthread_mutex_init(&job->lock, NULL);
    grd_parallel_for(0, grd_least(grd_num_threads(), job->count), 1, do_steps, job);
    pthread_mutex_destroy(&job->lock);
    return true;
}

void grd_for_matrices(const struct grd_plan *p, int64_t side, int64_t count, int64_t grain, grd_task *task, void *context)
{
    /* All threads together decompose one matrix faster than one thread does if the matrix has at least this many columns per thread. */
    enum { GAIN = 2 * WIDTH };
    const int64_t threads = grd_num_threads(), last = count % threads;
    const bool shares = grd_lapack_is_chosen(p) && last < grd_least(threads, side / GAIN);
    const int64_t shared = shares ? last : 0;
    grd_parallel_for(0, count - shared, grain, task, context);
    if (shared > 0)
        task(count - shared, count, context);
}

/* ---- LU decomposition --------------------------------------------------------------------------------------------------------------------- */

/* Decomposes panel number `panel` (a block of adjacent columns), which all panels to its left have updated. If the panel contains the first zero
 * pivot of the matrix, stores the pivot's number, counted from 1, in job->info. */
static void decompose_lu(struct job *job, int64_t panel)
{
    const int64_t first = panel * job->width, rows = job->m - first, columns = end_of(job, panel) - first;
    int64_t info = 0;
    job->getrf(&rows, &columns, at(job, first, first), &job->m, job->pivots + first, &info);
    if (info != 0 && job->info == 0)
        job->info = first + info;
}

/* Applies the row exchanges (pivots) of the decomposed panel number `panel` to the columns [column, end). */
static void exchange_rows(const struct job *job, int64_t panel, int64_t column, int64_t end)
{
    const int64_t first = panel * job->width, pivots = depth_of(job, panel), columns = end - column, one = 1;
    job->laswp(&columns, at(job, first, column), &job->m, &one, &pivots, job->pivots + first, &one);
}

/* Updates the columns [column, end) by panel number `panel`, which is already decomposed. Exchanges rows, solves for rows of U, and subtracts L times
 * U from the rows below. */
static void update_lu(struct job *job, int64_t panel, int64_t column, int64_t end)
{
    const int64_t first = panel * job->width, k = depth_of(job, panel), below = first + k, rows = job->m - below, columns = end - column;
    exchange_rows(job, panel, column, end);
    grd_lapack_solve(job->dtype, &(struct grd_triangle){.n = k, .stride = job->m, .unit = true, .left = true, .a = at(job, first, first)},
                     false, columns, job->m, at(job, first, column));
    if (rows > 0)
        job->gemm("N", "N", &rows, &columns, &k, job->minus_one, at(job, below, first), &job->m, at(job, first, column), &job->m, job->one,
                  at(job, below, column), &job->m, 1, 1);
}

/* For each panel in [begin, end), exchanges rows of the panel's columns by the pivots of all panels to its right. A panel is a block of adjacent
 * columns. The pivots are relative to the first row of the matrix. */
static void exchange_left(int64_t begin, int64_t end, void *context)
{
    const struct job *job = context;
    const int64_t last = grd_least(job->m, job->n), one = 1;
    for (int64_t panel = begin; panel < end; panel++) {
        const int64_t first = panel * job->width, below = end_of(job, panel), columns = below - first, next = below + 1;
        if (below < last)
            job->laswp(&columns, at(job, 0, first), &job->m, &next, &last, job->pivots, &one);
    }
}

/* Overwrites the m x n matrix a with L and U, computed panel by panel (a panel is a block of adjacent columns) on all threads. Writes the pivots,
 * counted from 1, to ret_pivots. *ret_info is 0 or the number of the first zero pivot. Returns false, with nothing written, if OpenBLAS or one of
 * the routines is not available. */
static bool lu_by_panels(grd_dtype dtype, int64_t m, int64_t n, void *a, int64_t *ret_pivots, int32_t *ret_info)
{
    struct job job = job_of(dtype, m, n, a);
    job.pivots = ret_pivots;
    job.decompose = decompose_lu;
    job.update = update_lu;
    if (!run(&job))
        return false;
    for (int64_t i = 0; i < grd_least(m, n); i++)
        ret_pivots[i] += i / job.width * job.width;
    grd_parallel_for(0, job.factors, 1, exchange_left, &job);
    *ret_info = (int32_t)job.info;
    return true;
}

bool grd_lapack_lu(grd_dtype dtype, int64_t m, int64_t n, void *a, int64_t *ret_pivots, int32_t *ret_info)
{
    if (grd_least(m, n) >= LU_SIDE)
        return lu_by_panels(dtype, m, n, a, ret_pivots, ret_info);
    grd_getrf_routine *const getrf = (grd_getrf_routine *)grd_lapack_begin(dtype, GRD_LAPACK_GETRF);
    int64_t info = 0;
    if (getrf == NULL)
        return false;
    getrf(&m, &n, a, &m, ret_pivots, &info);
    grd_openblas_end();
    *ret_info = (int32_t)info;
    return true;
}

/* ---- Cholesky decomposition --------------------------------------------------------------------------------------------------------------- */

/* Decomposes panel number `panel`, a block of adjacent columns. Does nothing if the decomposition of a panel to the left has failed (job->info is
 * not 0). */
static void decompose_cholesky(struct job *job, int64_t panel)
{
    const int64_t first = panel * job->width, below = end_of(job, panel), columns = below - first, rows = job->n - below;
    int64_t info = 0;
    if (job->info != 0)
        return;
    job->potrf("L", &columns, at(job, first, first), &job->n, &info, 1);
    if (info != 0)
        job->info = first + info;
    else if (rows > 0 && grd_dtype_is_complex(job->dtype))
        job->trsm("R", "L", "C", "N", &rows, &columns, job->one, at(job, first, first), &job->n, at(job, below, first), &job->n, 1, 1, 1,
                  1);
    else if (rows > 0)
        grd_lapack_solve(job->dtype, &(struct grd_triangle){.n = columns, .stride = job->n, .upper = true, .a = at(job, first, first)},
                         true, rows, job->n, at(job, below, first));
}

/* Updates the columns [column, end) of the lower triangle by panel number `panel`, which is already decomposed. Subtracts the product of the panel's
 * rows and their adjoints. */
static void update_cholesky(struct job *job, int64_t panel, int64_t column, int64_t end)
{
    const int64_t first = panel * job->width, columns = end - column, rows = job->n - end;
    job->herk("L", "N", &columns, &job->width, job->minus_one, at(job, column, first), &job->n, job->one, at(job, column, column), &job->n,
              1, 1);
    if (rows > 0)
        job->gemm("N", "C", &rows, &columns, &job->width, job->minus_one, at(job, end, first), &job->n, at(job, column, first), &job->n,
                  job->one, at(job, end, column), &job->n, 1, 1);
}

static bool cholesky_by_panels(grd_dtype dtype, int64_t n, void *a, int32_t *ret_info)
{
    struct job job = job_of(dtype, n, n, a);
    job.decompose = decompose_cholesky;
    job.update = update_cholesky;
    if (!run(&job))
        return false;
    *ret_info = (int32_t)job.info;
    return true;
}

bool grd_lapack_cholesky(grd_dtype dtype, int64_t n, void *a, int32_t *ret_info)
{
    if (n >= CHOLESKY_SIDE)
        return cholesky_by_panels(dtype, n, a, ret_info);
    grd_potrf_routine *const potrf = (grd_potrf_routine *)grd_lapack_begin(dtype, GRD_LAPACK_POTRF);
    int64_t info = 0;
    if (potrf == NULL)
        return false;
    potrf("L", &n, a, &n, &info, 1);
    grd_openblas_end();
    *ret_info = (int32_t)info;
    return true;
}
