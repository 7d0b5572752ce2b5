/* Compares grd_mm_out with a direct call of cblas. The two calls alternate in one process, so that other load on the machine slows both, and they
 * write to a result that already exists. The time of Gradus is the time of the complete operator, with checks, dispatch, choice of the kernel and
 * the version counter of the result. The time of OpenBLAS is the time of cblas with pointers and leading dimensions. For each name that contains
 * PART the program prints a line "name<TAB>nanoseconds<TAB>nanoseconds of OpenBLAS" with the shortest times of many rounds.
 *
 *     OPENBLAS_THREAD_TIMEOUT=4 bench_products [PART]
 *
 * OPENBLAS_THREAD_TIMEOUT keeps OpenBLAS's idle threads off the cores while Gradus is timed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gradus/gradus.h>

enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112, MOST_ROUNDS = 1000 };
static const double BATCH_SECONDS = 2e-4, CASE_SECONDS = 0.6;

void scipy_openblas_set_num_threads64_(int threads);
void scipy_cblas_sgemm64_(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                          const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
void scipy_cblas_dgemm64_(int order, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double *a, int64_t lda,
                          const double *b, int64_t ldb, double beta, double *c, int64_t ldc);

/* The sizes of a product of an m x k matrix and a k x n matrix. If `transposed`, the second matrix is the transpose of a contiguous n x k matrix, as
 * in nn.Linear. */
struct shape {
    const char *name;
    int64_t m, n, k;
    bool transposed;
};

static const struct shape shapes[] = {
    {"4", 4, 4, 4, false},
    {"8", 8, 8, 8, false},
    {"16", 16, 16, 16, false},
    {"31", 31, 31, 31, false},
    {"32", 32, 32, 32, false},
    {"48", 48, 48, 48, false},
    {"63", 63, 63, 63, false},
    {"64", 64, 64, 64, false},
    {"128", 128, 128, 128, false},
    {"256", 256, 256, 256, false},
    {"512", 512, 512, 512, false},
    {"1024", 1024, 1024, 1024, false},
    {"2048", 2048, 2048, 2048, false},
    {"linear_1x256x256", 1, 256, 256, true},
    {"linear_16x64x32", 16, 32, 64, true},
    {"linear_16x32x10", 16, 10, 32, true},
    {"linear_64x512x512", 64, 512, 512, true},
    {"row_1x100x100", 1, 100, 100, false},
    {"row_1x256x256", 1, 256, 256, false},
    {"column_100x1x100", 100, 1, 100, false},
    {"thin_16x1024x1024", 16, 1024, 1024, false},
    {"thin_1000x3x64", 1000, 3, 64, false},
};

struct operands {
    const struct shape *shape;
    grd_tensor *a, *b, *c;
};

static void ours(const struct operands *o)
{
    grd_mm_out(o->c, o->a, o->b);
}

static void openblas(const struct operands *o)
{
    const struct shape *s = o->shape;
    const int trans_b = s->transposed ? TRANSPOSE : NO_TRANSPOSE;
    const int64_t ldb = s->transposed ? s->k : s->n;
    if (grd_tensor_dtype(o->a) == GRD_FLOAT32)
        scipy_cblas_sgemm64_(ROW_MAJOR, NO_TRANSPOSE, trans_b, s->m, s->n, s->k, 1, grd_data(o->a), s->k, grd_data(o->b), ldb, 0,
                             grd_data(o->c), s->n);
    else
        scipy_cblas_dgemm64_(ROW_MAJOR, NO_TRANSPOSE, trans_b, s->m, s->n, s->k, 1, grd_data(o->a), s->k, grd_data(o->b), ldb, 0,
                             grd_data(o->c), s->n);
}

static clockid_t timer; /* the clock to time with: CPU time if there is one thread, so that the time of other processes does not count */

static double nanoseconds(void (*call)(const struct operands *), const struct operands *o, int64_t n)
{
    struct timespec start, end;
    clock_gettime(timer, &start);
    for (int64_t i = 0; i < n; i++)
        call(o);
    clock_gettime(timer, &end);
    return ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / (double)n;
}

static grd_tensor *uniform(grd_dims sizes, grd_dtype dtype)
{
    return grd_uniform_(grd_empty(sizes, .dtype = dtype), .from = -1, .to = 1);
}

static void compare(const char *name, const struct shape *s, grd_dtype dtype, int threads)
{
    const grd_scope scope = grd_scope_open();
    grd_tensor *b = s->transposed ? grd_t(uniform(grd_dims(s->n, s->k), dtype)) : uniform(grd_dims(s->k, s->n), dtype);
    const struct operands o = {s, uniform(grd_dims(s->m, s->k), dtype), b, grd_empty(grd_dims(s->m, s->n), .dtype = dtype)};
    const double once = fmax(2e-11 * (double)s->m * (double)s->n * (double)s->k, 1e-7);
    const int64_t n = (int64_t)(BATCH_SECONDS / once) + 1;
    const int rounds = (int)fmin(MOST_ROUNDS, CASE_SECONDS / ((double)n * once) + 5);
    double mine = INFINITY, theirs = INFINITY;
    for (int round = 0; round <= rounds; round++) { /* round 0 warms up and is not counted */
        scipy_openblas_set_num_threads64_(1);
        const double x = nanoseconds(ours, &o, n);
        scipy_openblas_set_num_threads64_(threads);
        const double y = nanoseconds(openblas, &o, n);
        mine = round > 0 ? fmin(mine, x) : mine;
        theirs = round > 0 ? fmin(theirs, y) : theirs;
    }
    scipy_openblas_set_num_threads64_(1);
    printf("%s\t%.1f\t%.1f\n", name, mine, theirs);
    fflush(stdout);
    grd_scope_close(scope);
}

int main(int argc, char **argv)
{
    const char *const part = argc > 1 ? argv[1] : "";
    fprintf(stderr, "kernels: %s, products: %s\n", grd_isa(), grd_blas());
    grd_manual_seed(0);
    for (int threads = 1; threads <= 2; threads++) {
        grd_set_num_threads(threads);
        timer = threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
        for (int wide = 0; wide <= 1; wide++)
            for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
                char name[64];
                const struct shape *s = &shapes[i];
                snprintf(name, sizeof name, "%s_%s/%d", wide ? "dgemm" : "sgemm", s->name, threads);
                if (strstr(name, part) != NULL && (threads == 1 || s->m * s->n * s->k >= 1 << 20))
                    compare(name, s, wide ? GRD_FLOAT64 : GRD_FLOAT32, threads);
            }
    }
    if (grd_ok())
        return 0;
    fprintf(stderr, "error: %s\n", grd_error_message());
    return 1;
}
