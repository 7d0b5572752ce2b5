/* The process around the tensors: scopes, memory, threads, random generators, instruction set. */
#ifndef GRADUS_RUNTIME_H
#define GRADUS_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradus/types.h"

GRD_BEGIN_DECLS

/* Of the library that runs: "0.1.0"; GRD_VERSION is that of the headers. */
GRD_API const char *grd_version(void);

/* ---- Scopes own temporaries -------------------------------------------------------------------------------------
 * Every function that returns a tensor returns a pooled reference: it belongs to the innermost open scope of the
 * thread and goes when that scope closes. grd_keep takes ownership, grd_drop gives it up.
 *
 *     grd_scope scope = grd_scope_open();
 *     ... one training step ...
 *     grd_scope_close(scope);
 *
 * With no scope open, references belong to the thread and go when it ends. */
typedef struct grd_scope {
    int64_t mark;
} grd_scope;

GRD_API grd_scope grd_scope_open(void);
/* Drops what was pooled since the scope opened; scopes opened inside it and not closed are closed too. */
GRD_API void grd_scope_close(grd_scope scope);
/* Closes the scope but moves `result` out of it, into the scope around it; returns `result`. */
GRD_API grd_tensor *grd_scope_return(grd_scope scope, grd_tensor *result);

/* ---- Memory ----------------------------------------------------------------------------------------------------- */
typedef struct grd_memory_stats {
    int64_t allocated; /* bytes in use */
    int64_t cached;    /* bytes held for reuse */
    int64_t peak;      /* highest `allocated` since the last grd_memory_reset_peak */
    int64_t blocks;    /* blocks in use */
    int64_t limit;     /* bytes, 0: none */
} grd_memory_stats;

GRD_API grd_memory_stats grd_memory_get_stats(void);
GRD_API void grd_memory_reset_peak(void);
/* An allocation that would take `allocated` above the limit fails with MemoryError. 0 removes the limit. */
GRD_API void grd_memory_set_limit(int64_t bytes);
/* Gives cached blocks back to the system: those of this thread and the shared ones. */
GRD_API void grd_memory_trim(void);
/* For tests: the n-th allocation from now on fails (1: the next), and every later one too when `forever`. 0: off. */
GRD_API void grd_memory_fail_at(int64_t n, bool forever);

/* ---- Threads ---------------------------------------------------------------------------------------------------- */
/* Threads an operator may use, the caller included. Default: GRADUS_NUM_THREADS, else the cores this process may use
 * (affinity and cgroup quota). Results do not depend on it. */
GRD_API int grd_num_threads(void);
GRD_API void grd_set_num_threads(int n); /* ValueError unless 1 <= n <= 1024 */

/* ---- Random generators ------------------------------------------------------------------------------------------- */
/* A new generator, mt19937 seeded with `seed`; owned by the caller. */
GRD_API grd_generator *grd_generator_new(uint64_t seed);
GRD_API grd_generator *grd_generator_keep(grd_generator *generator);
GRD_API void grd_generator_drop(grd_generator *generator);
/* The generator operators use when none is given. */
GRD_API grd_generator *grd_generator_default(void);
/* In these five NULL means the default generator. A negative seed is its 64 bits, as in PyTorch. */
GRD_API void grd_generator_seed(grd_generator *generator, uint64_t seed);
/* Seeds with a number of 53 bits nobody can foresee, and returns it. */
GRD_API uint64_t grd_generator_seed_randomly(grd_generator *generator);
GRD_API uint64_t grd_generator_initial_seed(const grd_generator *generator);
/* Bytes of a state; get writes that many, set reads them (ValueError when they are not a state). They are those of PyTorch's
 * Generator.get_state() on a CPU: a state saved there goes on here, and the other way round. */
GRD_API size_t grd_generator_state_size(void);
GRD_API void grd_generator_get_state(const grd_generator *generator, void *ret_state);
GRD_API void grd_generator_set_state(grd_generator *generator, const void *state, size_t size);
/* Seeds the default generator. */
GRD_API void grd_manual_seed(uint64_t seed);

/* ---- Instruction set ---------------------------------------------------------------------------------------------- */
/* The level the kernels run at: "portable", "x86-64-v2", "x86-64-v3" or "x86-64-v4"; GRADUS_ISA=portable|v2|v3|v4 lowers it. */
GRD_API const char *grd_isa(void);
/* "openblas 0.3.31 …" or "built-in". */
GRD_API const char *grd_blas(void);

GRD_END_DECLS
#endif
