/* Measures how far the float32 results of unary elementwise operators are from the correctly rounded ones, at the instruction-set level in use.
 *
 *   test_accuracy [NAME...]            tests every 4099th float, and the floats around multiples of 1/2 and around powers of 2; takes seconds
 *   test_accuracy --every N [NAME...]  tests every Nth float; with N = 1 all 2^32 floats
 *
 * The reference is libm's function in float64 if there is one. Otherwise it is the operator itself in float64, which test_special_accuracy.py
 * compares with mpmath. Each operator has a bound for the distance, counted in floats, between a result and the correctly rounded result. The bound
 * is test.ulps in the schema, by default 1. A result exceeds every bound if it is a NaN and the exact value is not, or the reverse. The same is true
 * of a result that differs from an infinite exact value, and of a zero with the wrong sign. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "matrix.h"

enum { BLOCK = 1 << 15, STEP = 4099, AROUND = 16, MAX_WORKERS = 64 };

static const struct reference {
    const char *op;
    double (*function)(double x);
} references[] = {
    {"sqrt", sqrt},   {"exp", exp},     {"exp2", exp2}, {"expm1", expm1}, {"log", log},     {"log2", log2},     {"log10", log10},
    {"log1p", log1p}, {"sin", sin},     {"cos", cos},   {"tan", tan},     {"asin", asin},   {"acos", acos},     {"atan", atan},
    {"sinh", sinh},   {"cosh", cosh},   {"tanh", tanh}, {"asinh", asinh}, {"acosh", acosh}, {"atanh", atanh},   {"erf", erf},
    {"erfc", erfc},   {"floor", floor}, {"ceil", ceil}, {"round", rint},  {"trunc", trunc}, {"lgamma", lgamma},
};

struct worst {
    double ulps;    /* the largest error |y - f(x)| of a result y, in ulps of f(x) */
    int64_t floats; /* the largest number of floats between y and the correctly rounded result */
    uint64_t wrong; /* number of results that are not correctly rounded */
    float x, y;     /* the argument and the result with the largest `floats`; if `floats` is equal, the pair with the larger `ulps` */
    double exact;
};

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Returns the position of x among all floats in increasing order. Adjacent floats have consecutive positions, and both zeros have position 0. */
static int64_t place_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits < 0 ? -(int64_t)(bits & INT32_MAX) : bits;
}

/* Returns |y - exact| in ulps of `exact`. An infinity counts as 2^128 if `exact` is finite. */
static double ulps_between(float y, double exact)
{
    const double limit = 0x1p128, a = isinf(y) ? copysign(limit, y) : y, b = fabs(exact) > limit ? copysign(limit, exact) : exact;
    int exponent;
    frexp(fabs(b) == limit ? limit / 2 : b, &exponent);
    return fabs(a - b) * ldexp(1, 24 - (exponent < -125 ? -125 : exponent));
}

static void compare(struct worst *worst, float x, float y, double exact)
{
    const float rounded = (float)exact;
    if (memcmp(&y, &rounded, sizeof y) == 0 || (isnan(y) && isnan(rounded)))
        return;
    worst->wrong++;
    const bool lost = isnan(y) || isnan(rounded) || ((y == 0 || rounded == 0) && !signbit(y) != !signbit(rounded));
    const double ulps = lost ? INFINITY : ulps_between(y, exact);
    const int64_t between = place_of(y) - place_of(rounded), floats = lost || isinf(exact) != 0 ? INT64_MAX
                                                                      : between < 0             ? -between
                                                                                                : between;
    if (floats > worst->floats || (floats == worst->floats && ulps > worst->ulps))
        *worst = (struct worst){worst->ulps, floats, worst->wrong, x, y, exact};
    if (ulps > worst->ulps)
        worst->ulps = ulps;
}

/* ---- Arguments ------------------------------------------------------------------------------------------------------------------------ */

/* The floats to test, as bit patterns: the `count` patterns in `listed`, or if `listed` is NULL, the first `count` multiples of `step`. */
struct inputs {
    const uint32_t *listed;
    uint64_t count, step;
};

/* Adds the bit patterns of the floats around x and around -x to `list`, which has n entries. Returns the new length of `list`. */
static uint64_t add_around(uint32_t *list, uint64_t n, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    for (int64_t at = (int64_t)bits - AROUND; at <= (int64_t)bits + AROUND; at++)
        if (at >= 0 && at <= 0x7fffffff) {
            list[n++] = (uint32_t)at;
            list[n++] = (uint32_t)at | 0x80000000u;
        }
    return n;
}

static struct inputs sample(void)
{
    enum { HALVES = 512, LEAST = -149, MOST = 127, POINTS = HALVES + 1 + (MOST - LEAST + 1) + 1 };
    uint32_t *list = malloc((size_t)((UINT64_C(1) << 32) / STEP + 1 + POINTS * 2 * (2 * AROUND + 1)) * sizeof *list);
    uint64_t n = 0;
    for (uint64_t bits = 0; list != NULL && bits < UINT64_C(1) << 32; bits += STEP)
        list[n++] = (uint32_t)bits;
    for (int k = 0; list != NULL && k <= HALVES; k++)
        n = add_around(list, n, (float)k / 2);
    for (int k = LEAST; list != NULL && k <= MOST; k++)
        n = add_around(list, n, ldexpf(1, k));
    if (list != NULL)
        n = add_around(list, n, INFINITY);
    return (struct inputs){list, n, 0};
}

/* ---- One operator --------------------------------------------------------------------------------------------------------------------- */

struct job {
    const struct test_case *test;
    double (*reference)(double x); /* NULL if the reference is the operator in float64 */
    struct inputs inputs;
    atomic_uint_fast64_t next; /* index of the first input that no thread has taken yet */
    atomic_bool failed;
};

struct worker {
    pthread_t thread;
    struct job *job;
    struct worst worst;
    float x[BLOCK];
    double wide[BLOCK];
};

/* Calls the operator of `test` with x as its tensor argument. Stores the address of the result's elements in *ret_data. Returns false if the call
 * failed. */
static bool call(const struct test_case *test, grd_tensor *x, const void **ret_data)
{
    const grd_op *op = grd_op_find(test->op);
    grd_value args[GRD_MAX_ARGS] = {0}, results[GRD_MAX_RESULTS];
    for (int i = 0; i < test->n; i++)
        if (test->args[i].kind == TEST_FLOATS || test->args[i].kind == TEST_CONSTANTS)
            args[i] = (grd_value){.kind = GRD_KIND_TENSOR, .v.tensor = x};
        else if (test->args[i].kind == TEST_NUMBER)
            args[i] = (grd_value){.kind = GRD_KIND_SCALAR, .v.scalar = test->args[i].number};
        else if (test->args[i].kind == TEST_STRING)
            args[i] = (grd_value){.kind = GRD_KIND_STRING, .v.string = test->args[i].text};
    if (!grd_call(op, GRD_FUNCTIONAL, args, test->n, NULL, results))
        return false;
    *ret_data = grd_data(results[0].v.tensor);
    return true;
}

static bool run_block(struct worker *w, uint64_t start)
{
    const struct job *job = w->job;
    const int64_t n = (int64_t)(job->inputs.count - start < BLOCK ? job->inputs.count - start : BLOCK);
    for (int64_t i = 0; i < n; i++) {
        w->x[i] = float_of(job->inputs.listed != NULL ? job->inputs.listed[start + (uint64_t)i]
                                                      : (uint32_t)((start + (uint64_t)i) * job->inputs.step));
        w->wide[i] = w->x[i];
    }
    const int64_t sizes[] = {n};
    const void *y, *exact = w->wide;
    const grd_scope scope = grd_scope_open();
    bool done = call(job->test, grd_from_data(w->x, (grd_dims_view){1, sizes}, GRD_FLOAT32), &y);
    if (job->reference != NULL)
        for (int64_t i = 0; i < n; i++)
            w->wide[i] = job->reference(w->wide[i]);
    else
        done = done && call(job->test, grd_from_data(w->wide, (grd_dims_view){1, sizes}, GRD_FLOAT64), &exact);
    for (int64_t i = 0; done && i < n; i++)
        compare(&w->worst, w->x[i], ((const float *)y)[i], ((const double *)exact)[i]);
    grd_scope_close(scope);
    return done;
}

static void *work(void *worker)
{
    struct worker *w = worker;
    for (uint64_t start; !w->job->failed && (start = atomic_fetch_add(&w->job->next, BLOCK)) < w->job->inputs.count;)
        if (!run_block(w, start)) {
            fprintf(stderr, "%s: %s\n", w->job->test->op, grd_error_message());
            w->job->failed = true;
        }
    return NULL;
}

/* Tests an operator and prints a line with its errors. Returns false if the call failed or an error exceeds the operator's bound. */
static bool check(const struct test_case *test, struct inputs inputs, struct worker **workers, int nworkers)
{
    struct job job = {.test = test, .inputs = inputs};
    for (size_t i = 0; i < sizeof references / sizeof *references; i++)
        if (strcmp(references[i].op, test->op) == 0)
            job.reference = references[i].function;
    for (int i = 0; i < nworkers; i++) {
        workers[i]->job = &job;
        workers[i]->worst = (struct worst){0};
        if (i > 0 && pthread_create(&workers[i]->thread, NULL, work, workers[i]) != 0)
            nworkers = i;
    }
    work(workers[0]);
    struct worst worst = workers[0]->worst;
    for (int i = 1; i < nworkers; i++) {
        pthread_join(workers[i]->thread, NULL);
        const struct worst other = workers[i]->worst;
        const uint64_t wrong = worst.wrong + other.wrong;
        const double ulps = fmax(worst.ulps, other.ulps);
        if (other.floats > worst.floats || (other.floats == worst.floats && other.ulps > worst.ulps))
            worst = other;
        worst.wrong = wrong;
        worst.ulps = ulps;
    }
    const bool good = !job.failed && worst.floats <= (int64_t)test->ulps;
    const char *rest = strchr(test->text, ')') + 1;
    printf("%s%s%*s %8.3f ulp, %9.2e of all not correctly rounded", test->op, rest, (int)(40 - strlen(test->op) - strlen(rest)), "",
           worst.ulps, (double)worst.wrong / (double)inputs.count);
    if (worst.wrong > 0)
        printf("; (%a) = %a, exact %a", worst.x, worst.y, worst.exact);
    printf(good ? "\n" : "  BEYOND %g\n", test->ulps);
    fflush(stdout);
    return good;
}

static bool is_wanted(const struct test_case *test, char **names, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(names[i], test->op) == 0)
            return true;
    return n == 0;
}

int main(int argc, char **argv)
{
    const bool counted = argc > 2 && strcmp(argv[1], "--every") == 0;
    const uint64_t step = counted ? strtoull(argv[2], NULL, 10) : 0;
    char **names = argv + (counted ? 3 : 1);
    const int nnames = argc - (counted ? 3 : 1);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int nworkers = cores < 1 ? 1 : cores > MAX_WORKERS ? MAX_WORKERS : (int)cores;
    struct worker *workers[MAX_WORKERS];
    for (int i = 0; i < nworkers; i++)
        if ((workers[i] = malloc(sizeof *workers[i])) == NULL)
            return 1;
    const struct inputs inputs = step > 0 ? (struct inputs){NULL, ((UINT64_C(1) << 32) - 1) / step + 1, step} : sample();
    if (inputs.count == 0)
        return 1;
    grd_set_num_threads(1); /* this program starts one thread per processor itself, so the library's threads would be too many */
    printf("%s, %llu floats\n", grd_isa(), (unsigned long long)inputs.count);
    int tested = 0, beyond = 0;
    for (const struct test_case *test = test_cases; test->op != NULL; test++)
        if (test->accuracy && is_wanted(test, names, nnames)) {
            tested++;
            beyond += !check(test, inputs, workers, nworkers);
        }
    printf("%d tested, %d beyond their bounds\n", tested, beyond);
    for (int i = 0; i < nworkers; i++)
        free(workers[i]);
    free((void *)inputs.listed);
    return tested == 0 || beyond > 0;
}
