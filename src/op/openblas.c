/* OpenBLAS is loaded when a product or decomposition first wants it, and serves if it is found and its memory can be had.
 *
 * Invariants
 * - OpenBLAS is loaded at most once, and whether it serves is decided then and for good.
 * - It never works on threads of its own, and runs on no more threads at once than it has memory for: it ends the process where it asks for
 *   memory in vain.
 * - Note [The environment for OpenBLAS]. */
#define _GNU_SOURCE /* dladdr, environ */
#include "op/openblas.h"

#include "gradus/runtime.h"

#if GRD_OPENBLAS

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cpu.h"
#include "base/thread.h"

enum {
    MOST_CALLS = 32,        /* calls at the same time; OpenBLAS ends the process at twice the threads it was built for */
    LOAD_BYTES = 160 << 20, /* its code, which is 25 MiB, and the memory of the first call, 64 MiB, with a margin */
    CALL_BYTES = 48 << 20   /* the memory of another call at the same time, which is 32 MiB */
};

/* ---- What is used of it -------------------------------------------------------------------------------------------------------- */

static struct grd_openblas blas;

static const struct {
    const char *name;
    void *function; /* where in `blas` it is stored */
} symbols[] = {
    {"cblas_sgemm64_", &blas.sgemm},
    {"cblas_dgemm64_", &blas.dgemm},
    {"cblas_cgemm64_", &blas.cgemm},
    {"cblas_zgemm64_", &blas.zgemm},
    {"openblas_set_num_threads64_", &blas.set_num_threads},
    {"openblas_get_config64_", &blas.get_config},
    {"openblas_get_corename64_", &blas.get_corename},
};

/* Returns a function of a library, whose name has the prefix of the scipy-openblas64 package or none; NULL if there is none. */
static void *find_symbol(void *library, const char *name)
{
    char prefixed[64];
    snprintf(prefixed, sizeof prefixed, "scipy_%s", name);
    void *found = dlsym(library, prefixed);
    return found != NULL ? found : dlsym(library, name);
}

/* True if a library has all functions that are used. */
static bool find_symbols(void *library)
{
    for (int i = 0; i < GRD_LENGTH(symbols); i++) {
        void *found = find_symbol(library, symbols[i].name);
        if (found == NULL)
            return false;
        memcpy(symbols[i].function, &found, sizeof found);
    }
    return true;
}

/* ---- Finding it ------------------------------------------------------------------------------------------------------------------ */

static const char *const package_name = "libscipy_openblas64_.so";

/* Opens a library in the folder of this one, or in a folder beside it. */
static void *open_beside(const char *folder)
{
    Dl_info info;
    char path[4096];
    if (dladdr(&blas, &info) == 0 || info.dli_fname == NULL)
        return NULL;
    const char *slash = strrchr(info.dli_fname, '/');
    if (slash == NULL) /* a name without a folder: nothing relative to the current folder is loaded */
        return NULL;
    const int length = (int)(slash - info.dli_fname + 1);
    const int written = snprintf(path, sizeof path, "%.*s%s%s", length, info.dli_fname, folder, package_name);
    return written < (int)sizeof path && access(path, R_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* Opens OpenBLAS: beside an installed library, in the package scipy_openblas64 beside a Python package, or a system library with 64-bit integers. */
static void *open_library(const char *wanted)
{
    static const char *const system_names[] = {"libscipy_openblas64_.so", "libopenblas64_.so.0", "libopenblas64.so.0"};
    if (wanted != NULL && *wanted != '\0')
        return dlopen(wanted, RTLD_NOW | RTLD_LOCAL);
    void *library = open_beside("");
    if (library == NULL)
        library = open_beside("../scipy_openblas64/lib/");
    for (int i = 0; i < GRD_LENGTH(system_names) && library == NULL; i++)
        library = dlopen(system_names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

/* ---- Loading it ------------------------------------------------------------------------------------------------------------------ */

/* Note [The environment for OpenBLAS]
 *
 * OpenBLAS reads its settings from the environment while it is loaded, and there only: one thread, since work is divided here and since it
 * ends the process where it cannot start threads; and the kernels of the level that ours run at, since its own choice is too narrow on
 * processors it does not know. setenv and unsetenv change the environment under the eyes of other threads. Instead the whole environment
 * is exchanged for a copy with two more entries while OpenBLAS is loaded, and then put back: who reads it sees the one or the other, whole.
 * The copy is never freed. A program that changes its environment in another thread at that moment may lose the change, as it may
 * wherever two threads change the environment. */
extern char **environ;

/* Returns a copy of the environment with `count` more entries; NULL if there is no memory. */
static char **extended_environment(const char *const *more, size_t count)
{
    size_t n = 0;
    while (environ != NULL && environ[n] != NULL)
        n++;
    char **copy = malloc((n + count + 1) * sizeof *copy);
    if (copy == NULL)
        return NULL;
    memcpy(copy, more, count * sizeof *copy); /* the first entry of a name counts */
    if (n > 0)
        memcpy(copy + count, environ, n * sizeof *copy);
    copy[count + n] = NULL;
    return copy;
}

static void *open_with_settings(const char *wanted)
{
    static const char *const cores[GRD_ISA_COUNT] = {[GRD_ISA_V2] = "OPENBLAS_CORETYPE=Nehalem",
                                                     [GRD_ISA_V3] = "OPENBLAS_CORETYPE=Haswell",
                                                     [GRD_ISA_V4] = "OPENBLAS_CORETYPE=SkylakeX"};
    const char *more[2] = {"OPENBLAS_NUM_THREADS=1", cores[grd_cpu_level()]};
    static char **ours; /* static, so that the copy counts as in use for ever */
    char **before = environ;
    ours = extended_environment(more, more[1] != NULL && getenv("OPENBLAS_CORETYPE") == NULL ? 2 : 1);
    if (ours == NULL)
        return NULL;
    environ = ours;
    void *library = open_library(wanted);
    if (environ == ours)
        environ = before;
    return library;
}

/* True if that much memory can be allocated now. */
static bool is_memory_there(size_t bytes)
{
    void *probe = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return probe != MAP_FAILED && munmap(probe, bytes) == 0;
}

/* Runs a small product, at which OpenBLAS allocates the memory of a call. */
static void run_first_call(void)
{
    enum { SIDE = 64 };
    static const float one[2] = {1, 0}, zero[2] = {0, 0};
    static float cells[SIDE * SIDE * 2], result[SIDE * SIDE * 2];
    blas.cgemm(GRD_BLAS_ROW_MAJOR, GRD_BLAS_NO_TRANSPOSE, GRD_BLAS_NO_TRANSPOSE, SIDE, SIDE, SIDE, one, cells, SIDE, cells, SIDE, zero,
               result, SIDE);
}

/* ---- Whether it serves ----------------------------------------------------------------------------------------------------------- */

enum { UNTRIED, LOADING, SERVES, REFUSED };
static void *library; /* NULL unless it serves */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t call_ended = PTHREAD_COND_INITIALIZER;
static atomic_int state = UNTRIED;
static int calls, most_calls; /* calls that run now, and the number that OpenBLAS has memory for */
static char description[160] = "built-in";

static void describe(void)
{
    const char *core = blas.get_corename();
    char version[32] = "";
    sscanf(blas.get_config(), "OpenBLAS %31s", version);
    snprintf(description, sizeof description, "openblas %s %s", version, core);
    blas.has_wide_vectors =
        strcasecmp(core, "SkylakeX") == 0 || strcasecmp(core, "Cooperlake") == 0 || strcasecmp(core, "SapphireRapids") == 0;
}

static bool refuse(const char *reason)
{
    snprintf(description, sizeof description, "built-in (OpenBLAS is not used: %s)", reason);
    return false;
}

static bool load(void)
{
    const char *wanted = getenv("GRADUS_OPENBLAS");
    if (wanted != NULL && strcmp(wanted, "none") == 0)
        return refuse("GRADUS_OPENBLAS=none");
    if (!is_memory_there(LOAD_BYTES))
        return refuse("there is too little memory for it");
    void *opened = open_with_settings(wanted);
    if (opened == NULL)
        return refuse(wanted != NULL && *wanted != '\0' ? "the file that GRADUS_OPENBLAS names cannot be loaded" : "it was not found");
    if (!find_symbols(opened))
        return refuse("it lacks functions for 64-bit integers");
    library = opened;
    blas.set_num_threads(1); /* it may have been in the process before */
    run_first_call();
    most_calls = 1;
    describe();
    return true;
}

/* Resets the count of running calls: the child has one thread, and calls of others never end. OpenBLAS goes on counting their memory as in use. */
static void after_fork_in_child(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    call_ended = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    most_calls -= calls;
    calls = 0;
    if (atomic_load(&state) == LOADING) {
        refuse("the process was forked while it was loaded");
        atomic_store(&state, REFUSED);
    }
}

const struct grd_openblas *grd_openblas(void)
{
    int now = atomic_load_explicit(&state, memory_order_acquire);
    if (GRD_LIKELY(now >= SERVES))
        return now == SERVES ? &blas : NULL;
    pthread_mutex_lock(&lock);
    if (atomic_load(&state) == UNTRIED) {
        pthread_atfork(NULL, NULL, after_fork_in_child);
        atomic_store(&state, LOADING);
        atomic_store_explicit(&state, load() ? SERVES : REFUSED, memory_order_release);
    }
    now = atomic_load(&state);
    pthread_mutex_unlock(&lock);
    return now == SERVES ? &blas : NULL;
}

/* Looks a routine up under its name for a dtype. */
static grd_lapack_routine *find_routine(grd_dtype dtype, enum grd_lapack_name name)
{
    static const char *const real[GRD_LAPACK_COUNT] = {"potrf", "trtri", "lauum", "getrf", "trsm",   "trsv",  "gemm",  "syrk",
                                                       "laswp", "geqrf", "orgqr", "ormqr", "geqrt3", "larft", "sytrf", "sytrs",
                                                       "sytrf", "sytrs", "syevd", "gesdd", "geev",   "gelsy"};
    static const char *const complex[GRD_LAPACK_COUNT] = {"potrf", "trtri", "lauum", "getrf", "trsm",   "trsv",  "gemm",  "herk",
                                                          "laswp", "geqrf", "ungqr", "unmqr", "geqrt3", "larft", "sytrf", "sytrs",
                                                          "hetrf", "hetrs", "heevd", "gesdd", "geev",   "gelsy"};
    static const char letters[GRD_DTYPE_COUNT] = {[GRD_FLOAT32] = 's', [GRD_FLOAT64] = 'd', [GRD_COMPLEX64] = 'c', [GRD_COMPLEX128] = 'z'};
    char symbol[32];
    grd_lapack_routine *routine = NULL;
    if (letters[dtype] == '\0')
        return NULL;
    snprintf(symbol, sizeof symbol, "%c%s_64_", letters[dtype], (grd_dtype_is_complex(dtype) ? complex : real)[name]);
    void *found = find_symbol(library, symbol);
    memcpy(&routine, &found, sizeof routine);
    return routine;
}

/* Found routines are kept, since looking up a name takes longer than LAPACK takes for a small matrix. */
grd_lapack_routine *grd_lapack(grd_dtype dtype, enum grd_lapack_name name)
{
    static _Atomic(grd_lapack_routine *) found[GRD_DTYPE_COUNT][GRD_LAPACK_COUNT];
    if (grd_openblas() == NULL)
        return NULL;
    grd_lapack_routine *routine = atomic_load_explicit(&found[dtype][name], memory_order_relaxed);
    if (routine == NULL) {
        routine = find_routine(dtype, name);
        atomic_store_explicit(&found[dtype][name], routine, memory_order_relaxed);
    }
    return routine;
}

const char *grd_blas(void)
{
    grd_openblas();
    return description;
}

bool grd_openblas_begin(void)
{
    pthread_mutex_lock(&lock);
    while (calls == most_calls) {
        if (most_calls < MOST_CALLS &&
            is_memory_there((size_t)most_calls * CALL_BYTES)) { /* other new calls may not have allocated theirs yet */
            most_calls++;
        } else if (calls == 0) {
            pthread_mutex_unlock(&lock);
            return false;
        } else {
            pthread_cond_wait(&call_ended, &lock);
        }
    }
    calls++;
    pthread_mutex_unlock(&lock);
    return true;
}

void grd_openblas_end(void)
{
    pthread_mutex_lock(&lock);
    calls--;
    pthread_cond_signal(&call_ended);
    pthread_mutex_unlock(&lock);
}

#else

const char *grd_blas(void)
{
    return "built-in";
}

const struct grd_openblas *grd_openblas(void)
{
    return NULL;
}

grd_lapack_routine *grd_lapack(grd_dtype dtype, enum grd_lapack_name name)
{
    (void)dtype, (void)name;
    return NULL;
}

bool grd_openblas_begin(void)
{
    return false;
}

void grd_openblas_end(void)
{
}

#endif
