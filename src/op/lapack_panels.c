/* Decompositions of large matrices on all threads. LAPACK decomposes panels of some columns, one after the other; by each panel, the columns to
 * the right of it are updated. Threads take whichever step can be done, leftmost first: so the next panel is decomposed while columns farther
 * right still wait for updates.
 *
 * Invariants
 * - The steps, and their order for each column, depend on the sizes alone: so the bits do not depend on the number of threads.
 * - Columns are changed by one thread at a time.
 * - A step that has begun can be done: OpenBLAS, which has had memory for a call, has it again. */
#include "op/lapack_panels.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/parallel.h"
#include "gradus/runtime.h"
#include "op/lapack.h"
#include "op/openblas.h"
#include "op/sizes.h"

typedef void laswp_routine(const int64_t *n, void *a, const int64_t *lda, const int64_t *first, const int64_t *last, const int64_t *pivots,
                           const int64_t *step);
typedef void herk_routine(const char *triangle, const char *transposition, const int64_t *n, const int64_t *k, const void *alpha,
                          const void *a, const int64_t *lda, const void *beta, void *c, const int64_t *ldc, size_t length1, size_t length2);

/* The shorter side from which on two threads are faster than one call of LAPACK, and one thread as fast. */
enum { LU_SIDE = 128, CHOLESKY_SIDE = 192 };

/* Measured on two threads of a Zen 5, for sides of 200 to 2,000. */
enum {
    WIDTH = 48, /* columns of a panel */
    GROUP = 3,  /* panels of a group */
    MOST_PANELS = 256
};

/* The updates that some columns have had. */
struct progress {
    int64_t updates;
    bool is_busy; /* a thread changes them */
};

/* Note [Groups]
 * Each product copies the rows of the panel to where they are read fast, which takes less time the more columns there are. But a panel of many
 * columns is decomposed late. Therefore the columns of GROUP panels are updated together by all panels but those of the group before theirs: by
 * these, and among themselves, they are updated panel by panel, so that the leftmost one is ready early. */
struct job {
    grd_dtype dtype;
    int64_t m, n;           /* rows and columns */
    int64_t width;          /* columns of a panel */
    int64_t count, factors; /* panels in all; the first `factors` of them are decomposed */
    char *a;
    int64_t *pivots; /* those of a panel count from its first row */
    int64_t info;
    const void *one, *minus_one;
    grd_getrf_routine *getrf;
    grd_potrf_routine *potrf;
    grd_trsm_routine *trsm;
    laswp_routine *laswp;
    grd_gemm_routine *gemm;
    herk_routine *herk;
    void (*decompose)(struct job *job, int64_t panel);
    void (*update)(struct job *job, int64_t panel, int64_t column, int64_t end); /* columns [column, end) */

    pthread_mutex_t lock; /* protects the members that follow */
    int64_t decomposed;   /* panels that are decomposed */
    struct progress groups[MOST_PANELS], panels[MOST_PANELS];
    atomic_int changes; /* number of steps done */
};

/* What a thread does next: it decomposes the columns [column, end), which are a panel, or updates them. */
struct step {
    struct progress *progress;
    int64_t column, end;
};

static void *at(const struct job *job, int64_t row, int64_t column)
{
    return job->a + (row + column * job->m) * grd_dtype_size(job->dtype);
}

static int64_t end_of(const struct job *job, int64_t panel)
{
    return grd_least(job->n, (panel + 1) * job->width);
}

/* Returns the number of pivots of a panel. */
static int64_t depth_of(const struct job *job, int64_t panel)
{
    return grd_least(job->m, end_of(job, panel)) - panel * job->width;
}

/* ---- Steps -------------------------------------------------------------------------------------------------------------------------------- */

/* Returns how many panels update all panels of a group. */
static int64_t shared_updates(const struct job *job, int64_t group)
{
    return grd_least(grd_greatest(group - 1, 0) * GROUP, job->factors);
}

/* True if columns that need `wanted` updates can have the next one. The caller holds the lock. */
static bool can_update(const struct job *job, const struct progress *progress, int64_t wanted)
{
    return !progress->is_busy && progress->updates < grd_least(wanted, job->decomposed);
}

/* Finds the leftmost step that can be done; false if there is none now. The caller holds the lock. */
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

/* True if all steps are done. The caller holds the lock. */
static bool is_done(const struct job *job)
{
    bool done = job->decomposed == job->factors;
    for (int64_t panel = job->factors; panel < job->count && done; panel++)
        done = job->panels[panel].updates == job->factors;
    return done;
}

/* Does a step. The caller holds the lock, which is released meanwhile. */
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

/* Spins until a step is done, since a step takes less time than it takes to wake a thread; yields the processor now and then. */
static void wait_for_change(const struct job *job, int seen)
{
    enum { LOOKS = 1000 };
    for (int i = 1; atomic_load_explicit(&job->changes, memory_order_relaxed) == seen; i++)
        if (i % LOOKS == 0)
            sched_yield();
        else
            grd_relax();
}

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

static struct job job_of(grd_dtype dtype, int64_t m, int64_t n, void *a)
{
    const int64_t width = grd_greatest(WIDTH, (n + MOST_PANELS - 1) / MOST_PANELS);
    return (struct job){.dtype = dtype,
                        .m = m,
                        .n = n,
                        .width = width,
                        .count = (n + width - 1) / width,
                        .factors = (grd_least(m, n) + width - 1) / width,
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

/* False, with nothing written, where OpenBLAS does not serve. */
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
    enum { GAIN = 2 * WIDTH }; /* columns per thread that are worth it */
    const int64_t threads = grd_num_threads(), last = count % threads;
    const bool shares = grd_lapack_is_chosen(p) && last < grd_least(threads, side / GAIN);
    const int64_t shared = shares ? last : 0;
    grd_parallel_for(0, count - shared, grain, task, context);
    if (shared > 0)
        task(count - shared, count, context);
}

/* ---- L U ---------------------------------------------------------------------------------------------------------------------------------- */

static void decompose_lu(struct job *job, int64_t panel)
{
    const int64_t first = panel * job->width, rows = job->m - first, columns = end_of(job, panel) - first;
    int64_t info = 0;
    job->getrf(&rows, &columns, at(job, first, first), &job->m, job->pivots + first, &info);
    if (info != 0 && job->info == 0)
        job->info = first + info;
}

/* Exchanges rows of the columns [column, end) as the pivots of a panel say. */
static void exchange_rows(const struct job *job, int64_t panel, int64_t column, int64_t end)
{
    const int64_t first = panel * job->width, pivots = depth_of(job, panel), columns = end - column, one = 1;
    job->laswp(&columns, at(job, first, column), &job->m, &one, &pivots, job->pivots + first, &one);
}

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

/* Exchanges the rows of panels [begin, end) by the pivots of the panels to their right, which count from the first row of the matrix. */
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

/* ---- Cholesky ----------------------------------------------------------------------------------------------------------------------------- */

/* Decomposes a panel. Once one has failed, those to its right are skipped. */
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
