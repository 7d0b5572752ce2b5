/* Loads OpenBLAS, an optional shared library, when a product or decomposition first needs it. OpenBLAS is used if it is found and there is enough
 * memory.
 *
 * Invariants
 * - OpenBLAS is loaded at most once. Afterwards the process either always uses it or never uses it.
 * - OpenBLAS never starts threads of its own. No more threads call it at the same time than it has memory for, because it ends the process if it
 *   cannot allocate memory.
 * - The environment is changed only as Note [The environment for OpenBLAS] says. */
#define _GNU_SOURCE /* for dladdr and environ */
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
    /* Maximum number of simultaneous calls. OpenBLAS ends the process if the number of simultaneous calls reaches twice the number of threads for
     * which OpenBLAS was built. */
    MOST_CALLS = 32,
    LOAD_BYTES = 160 << 20, /* memory for loading OpenBLAS and for the first call: 25 MiB of code and 64 MiB of buffers, plus a margin */
    CALL_BYTES = 48 << 20   /* memory for each further simultaneous call: buffers of 32 MiB, plus a margin */
};

/* ---- Functions of OpenBLAS that are used --------------------------------------------------------------------------------------- */

static struct grd_openblas blas;

static const struct {
    const char *name;
    void *function; /* address of the member of `blas` that receives the function's address */
} symbols[] = {
    {"cblas_sgemm64_", &blas.sgemm},
    {"cblas_dgemm64_", &blas.dgemm},
    {"cblas_cgemm64_", &blas.cgemm},
    {"cblas_zgemm64_", &blas.zgemm},
    {"openblas_set_num_threads64_", &blas.set_num_threads},
    {"openblas_get_config64_", &blas.get_config},
    {"openblas_get_corename64_", &blas.get_corename},
};

/* Returns the address of a function in a library, or NULL if there is none. Tries the name with the prefix "scipy_" of the scipy-openblas64 package
 * first, then without it. */
static void *find_symbol(void *library, const char *name)
{
    char prefixed[64];
    snprintf(prefixed, sizeof prefixed, "scipy_%s", name);
    void *found = dlsym(library, prefixed);
    return found != NULL ? found : dlsym(library, name);
}

/* Looks up all functions of `symbols` in a library and stores their addresses. Returns false if one is missing. */
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

/* ---- Finding the library --------------------------------------------------------------------------------------------------------- */

static const char *const package_name = "libscipy_openblas64_.so";

/* Opens OpenBLAS in `folder`, a path relative to the folder of this library. Returns NULL if the file does not exist. */
static void *open_beside(const char *folder)
{
    Dl_info info;
    char path[4096];
    if (dladdr(&blas, &info) == 0 || info.dli_fname == NULL)
        return NULL;
    const char *slash = strrchr(info.dli_fname, '/');
    /* If the path of this library has no folder, returns NULL, because the path built below would lead to a file in the current directory. */
    if (slash == NULL)
        return NULL;
    const int length = (int)(slash - info.dli_fname + 1);
    const int written = snprintf(path, sizeof path, "%.*s%s%s", length, info.dli_fname, folder, package_name);
    return written < (int)sizeof path && access(path, R_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

/* Opens OpenBLAS. Tries the file `wanted` if it is given. Otherwise it tries the folder of this library, then the Python package scipy_openblas64 if
 * it is installed next to this one, then system libraries with 64-bit integers. */
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

/* ---- Loading the library --------------------------------------------------------------------------------------------------------- */

/* Note [The environment for OpenBLAS]
 *
 * OpenBLAS reads its settings from the environment only while it is loaded. We need two settings. The number of threads must be 1, because work is
 * divided among threads here and OpenBLAS ends the process if it cannot start threads. The kernels must be those for our instruction set level,
 * because OpenBLAS selects slow ones on processors it does not know. setenv() and unsetenv() are not safe while other threads read the environment.
 * Instead, `environ` is replaced by a copy with two more entries while OpenBLAS is loaded, and then restored. Other threads read either the old or
 * the new environment, and both are complete. The copy is never freed. If another thread changes the environment during this time, the change may be
 * lost, as always when two threads change the environment. */
extern char **environ;

/* Returns a copy of the environment with `count` more entries, or NULL if memory runs out. */
static char **extended_environment(const char *const *more, size_t count)
{
    size_t n = 0;
    while (environ != NULL && environ[n] != NULL)
        n++;
    char **copy = malloc((n + count + 1) * sizeof *copy);
    if (copy == NULL)
        return NULL;
    memcpy(copy, more, count * sizeof *copy); /* first, because getenv() returns the first entry of several with one name */
    if (n > 0)
        memcpy(copy + count, environ, n * sizeof *copy);
    copy[count + n] = NULL;
    return copy;
}

/* Opens OpenBLAS with environment variables that limit it to one thread and choose its kernels (Note [The environment for OpenBLAS]). Returns NULL
 * if OpenBLAS is not found. */
static void *open_with_settings(const char *wanted)
{
    static const char *const cores[GRD_ISA_COUNT] = {[GRD_ISA_V2] = "OPENBLAS_CORETYPE=Nehalem",
                                                     [GRD_ISA_V3] = "OPENBLAS_CORETYPE=Haswell",
                                                     [GRD_ISA_V4] = "OPENBLAS_CORETYPE=SkylakeX"};
    const char *more[2] = {"OPENBLAS_NUM_THREADS=1", cores[grd_cpu_level()]};
    static char **ours; /* static, so that leak checkers see that the copy is still referenced */
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

/* True if `bytes` bytes of memory can be mapped now. */
static bool is_memory_there(size_t bytes)
{
    void *probe = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return probe != MAP_FAILED && munmap(probe, bytes) == 0;
}

/* Runs a small product, during which OpenBLAS allocates the buffers of one call. */
static void run_first_call(void)
{
    enum { SIDE = 64 };
    static const float one[2] = {1, 0}, zero[2] = {0, 0};
    static float cells[SIDE * SIDE * 2], result[SIDE * SIDE * 2];
    blas.cgemm(GRD_BLAS_ROW_MAJOR, GRD_BLAS_NO_TRANSPOSE, GRD_BLAS_NO_TRANSPOSE, SIDE, SIDE, SIDE, one, cells, SIDE, cells, SIDE, zero,
               result, SIDE);
}

/* ---- State of the library -------------------------------------------------------------------------------------------------------- */

enum { UNTRIED, LOADING, SERVES, REFUSED };
static void *library; /* handle of OpenBLAS; NULL unless it is used */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t call_ended = PTHREAD_COND_INITIALIZER;
static atomic_int state = UNTRIED;
static int calls, most_calls; /* calls: number of calls that run now; most_calls: number of calls that OpenBLAS has buffers for */
static char description[160] = "built-in";

/* Writes `description`, the text that grd_blas() returns, and finds out whether the kernels of OpenBLAS use 512-bit vectors. */
static void describe(void)
{
    const char *core = blas.get_corename();
    char version[32] = "";
    sscanf(blas.get_config(), "OpenBLAS %31s", version);
    snprintf(description, sizeof description, "openblas %s %s", version, core);
    blas.has_wide_vectors =
        strcasecmp(core, "SkylakeX") == 0 || strcasecmp(core, "Cooperlake") == 0 || strcasecmp(core, "SapphireRapids") == 0;
}

/* Writes `description` for the case that OpenBLAS is not used, and returns false. */
static bool refuse(const char *reason)
{
    snprintf(description, sizeof description, "built-in (OpenBLAS is not used: %s)", reason);
    return false;
}

/* Loads OpenBLAS and allocates the buffers of one call. Returns false if OpenBLAS is not to be used. */
static bool load(void)
{
    const char *wanted = getenv("GRADUS_OPENBLAS");
    if (wanted != NULL && strcmp(wanted, "none") == 0)
        return refuse("GRADUS_OPENBLAS=none");
    if (!is_memory_there(LOAD_BYTES))
        return refuse("there is not enough memory for it");
    void *opened = open_with_settings(wanted);
    if (opened == NULL)
        return refuse(wanted != NULL && *wanted != '\0' ? "the file that GRADUS_OPENBLAS names cannot be loaded" : "it was not found");
    if (!find_symbols(opened))
        return refuse("it lacks functions for 64-bit integers");
    library = opened;
    blas.set_num_threads(1); /* another part of the process may have loaded the library before and set more threads */
    run_first_call();
    most_calls = 1;
    describe();
    return true;
}

/* Resets the count of running calls after a fork. The child has only one thread, so the calls of the parent's other threads never end in the child.
 * OpenBLAS still counts their buffers as in use, so most_calls shrinks. */
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

/* Returns the LAPACK or BLAS routine `name` for the dtype, or NULL if OpenBLAS has no such routine. */
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

/* Returns the LAPACK or BLAS routine `name` for the dtype, or NULL if there is none. Routines that were found are cached, since looking up a name
 * takes longer than LAPACK takes for a small matrix. */
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
            /* Checks that there is memory for most_calls more calls, not just for one: earlier calls may not have allocated their memory yet. */
            is_memory_there((size_t)most_calls * CALL_BYTES)) {
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
