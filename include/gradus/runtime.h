/* Declares functions for the state of the process and of threads: scopes, memory, number of threads, random generators, instruction set. */
#ifndef GRADUS_RUNTIME_H
#define GRADUS_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradus/types.h"

GRD_BEGIN_DECLS

/* Functions of the caller that the library calls (kernels, hooks, forward, backward, release ...) must return normally: no C++ exception and no
 * longjmp may leave them. They report failure with grd_error_set. */

/* Returns the version of the library that is running, e.g. "0.1.0". GRD_VERSION is the version of the headers. */
GRD_API const char *grd_version(void);

/* ---- Scopes own temporaries -------------------------------------------------------------------------------------
 * Every function that returns a tensor returns a pooled reference: the innermost open scope of the thread owns the reference and drops it when the
 * scope closes. grd_keep takes a reference for the caller, grd_drop gives it up.
 *
 *     grd_scope scope = grd_scope_open();
 *     ... one training step ...
 *     grd_scope_close(scope);
 *
 * If no scope is open, the thread owns the references and drops them when it ends.
 *
 * A tensor must not be used after its scope has closed, unless grd_keep was called for it, because its memory is given to the next tensor at once.
 * With the environment variable GRADUS_DEBUG=lifetimes every such use raises a RuntimeError that names the call, the operator that made the tensor,
 * and the scope. So do grd_drop without a grd_keep, and closing a scope twice. The last 64 MiB of freed memory are then not used again, and elements
 * in them read as NaN or -1. Under valgrind's memcheck, and in a program built with AddressSanitizer, every block of memory comes from the system's
 * allocator, so that these tools can check its uses. */
typedef struct grd_scope {
    int64_t mark;
} grd_scope;

/* Opens a scope. From now on it owns the references that functions return on this thread. */
GRD_API grd_scope grd_scope_open(void);
/* Closes the scope, i.e. drops all references that it owns. Scopes that were opened later and are still open are closed too. */
GRD_API void grd_scope_close(grd_scope scope);
/* Closes the scope as grd_scope_close does, except that the enclosing scope takes over the reference to `result`. Returns `result`. */
GRD_API grd_tensor *grd_scope_return(grd_scope scope, grd_tensor *result);

/* ---- Memory ----------------------------------------------------------------------------------------------------- */
typedef struct grd_memory_stats {
    int64_t allocated;   /* bytes in use by tensors and by the library itself */
    int64_t cached;      /* bytes of freed memory held for reuse */
    int64_t peak;        /* highest `allocated` since the last grd_memory_reset_peak */
    int64_t blocks;      /* number of memory blocks in use */
    int64_t limit;       /* limit of `allocated` in bytes; 0 if there is none */
    int64_t cache_limit; /* limit of `cached` in bytes; negative if there is none */
    int64_t peak_held;   /* highest `allocated` + `cached` since the last grd_memory_reset_peak */
} grd_memory_stats;

GRD_API grd_memory_stats grd_memory_get_stats(void);
GRD_API void grd_memory_reset_peak(void);
/* Sets the limit of `allocated` in bytes: an allocation that would exceed it fails with MemoryError. 0 removes the limit. */
GRD_API void grd_memory_set_limit(int64_t bytes);
/* Limits the freed memory that is held for reuse to `bytes`. The short free lists of threads and partly used pages do not count. If `bytes` is
 * negative, the environment variable GRADUS_CACHE_LIMIT gives the limit (bytes, or a number followed by K, M, G or T). If the variable is not set, a
 * default applies: `cached` is at most a quarter of the machine's memory, and `allocated` + `cached` is at most 64 MiB + 1.25 * (the highest recent
 * value of `allocated`). */
GRD_API void grd_memory_set_cache_limit(int64_t bytes);
/* Gives the free memory blocks of this thread, and those that all threads share, back to the system, and frees cached tables of Fourier
 * transforms. */
GRD_API void grd_memory_trim(void);
/* Makes the n-th allocation from now on fail, to test how failures are handled. n = 1 is the next allocation. With `forever` all later allocations
 * fail too. n = 0 turns this off. */
GRD_API void grd_memory_fail_at(int64_t n, bool forever);

/* ---- Threads ----------------------------------------------------------------------------------------------------
 * Each thread has its own scopes, pending error, grad mode and key guards. All other state of the process (default dtype, number of threads, default
 * generator, print options, registered kernels) is shared by all threads and may be set while other threads compute.
 *
 * Tensors, nodes and generators may be used by several threads at once, if each thread has a reference of its own (grd_keep) or some reference
 * outlives all the uses. A scope drops only the references of its own thread. These calls on one tensor may run at the same time:
 *
 *   - operators that read the tensor, views of it, its sizes and strides, grd_keep, and grd_drop of the thread's own reference;
 *   - operators that write the tensor in place. An element that several threads write or read may be old, new or torn, but nothing crashes; if the
 *     writes are recorded, the tensor has the history of one of them;
 *   - grd_grad_of, grd_set_grad, grd_retain_grad and accumulation by backward, none of which is lost;
 *   - grd_set_requires_grad, adding, removing and calling hooks, and backward passes over graphs that share nodes and leaves.
 *
 * A call that changes the memory, the sizes or the history of a tensor needs the tensor and its views for itself: meanwhile no other thread may use
 * them or run backward on a graph that has saved them. These calls are grd_set_data, grd_resize_, grd_detach_, and an operator whose `out` has other
 * sizes than the result. In Python the first three wait until no operator and no backward pass runs without the GIL. With GRADUS_DEBUG=races it is
 * an error if one of the first three and an operator, or two of the three, use the same memory at once in threads that have opened a scope: the
 * later call does nothing and raises a RuntimeError that names both. */

/* Returns the number of threads that an operator may use, the calling thread included. The default is the environment variable GRADUS_NUM_THREADS
 * or else the number of cores that the process may use (affinity and cgroup quota). Results do not depend on the number of threads. */
GRD_API int grd_num_threads(void);
GRD_API void grd_set_num_threads(int n); /* ValueError unless 1 <= n <= 1024 */

/* Returns the number of bytes that are free on the stack of this thread, minus a reserve; SIZE_MAX if the number is unknown. Backward and custom
 * functions can call each other through hooks. They raise RuntimeError if 0 bytes are left, so that the stack does not overflow. */
GRD_API size_t grd_stack_left(void);

/* ---- Random generators ------------------------------------------------------------------------------------------- */
/* Returns a new mt19937 generator seeded with `seed`. The caller owns it and must call grd_generator_drop. */
GRD_API grd_generator *grd_generator_new(uint64_t seed);
/* Takes a reference to the generator; returns `generator`. */
GRD_API grd_generator *grd_generator_keep(grd_generator *generator);
/* Gives up a reference to the generator; NULL is allowed. */
GRD_API void grd_generator_drop(grd_generator *generator);
/* Returns the default generator, which operators use when no generator is given. */
GRD_API grd_generator *grd_generator_default(void);
/* Seeds the generator. NULL stands for the default generator, in this function and in the functions below. A negative seed is converted to uint64_t,
 * as in PyTorch. */
GRD_API void grd_generator_seed(grd_generator *generator, uint64_t seed);
/* Seeds the generator with an unpredictable number of 53 bits and returns this number. */
GRD_API uint64_t grd_generator_seed_randomly(grd_generator *generator);
/* Returns the seed with which the generator was last seeded. */
GRD_API uint64_t grd_generator_initial_seed(const grd_generator *generator);
/* Returns the number of bytes of a generator's state. grd_generator_get_state writes this many bytes. grd_generator_set_state reads them and
 * raises ValueError if they are not a valid state. The bytes have the format of PyTorch's Generator.get_state() on a CPU, so that states can be
 * exchanged with PyTorch. */
GRD_API size_t grd_generator_state_size(void);
GRD_API void grd_generator_get_state(const grd_generator *generator, void *ret_state);
GRD_API void grd_generator_set_state(grd_generator *generator, const void *state, size_t size);
/* Seeds the default generator. */
GRD_API void grd_manual_seed(uint64_t seed);

/* ---- Instruction set ---------------------------------------------------------------------------------------------- */
/* Returns the instruction set for which the kernels in use were compiled: "portable", "x86-64-v2", "x86-64-v3" or "x86-64-v4". The environment
 * variable GRADUS_ISA=portable|v2|v3|v4 selects a smaller instruction set. */
GRD_API const char *grd_isa(void);
/* Returns a text that says whether OpenBLAS is used: "openblas" with its version and kernels, or "built-in" and the reason why OpenBLAS is not used.
 * OpenBLAS computes large matrix products for which Gradus's own kernels are not faster. This function or the first product that needs OpenBLAS loads
 * it. If the environment variable GRADUS_OPENBLAS names a file, this file is loaded; "none" turns OpenBLAS off. Otherwise OpenBLAS is searched for
 * beside the library, in the Python package scipy_openblas64 beside Gradus's package, and by the system's loader. OpenBLAS ends the process when an
 * allocation fails, so it is not used if there is too little memory for it. */
GRD_API const char *grd_blas(void);

GRD_END_DECLS
#endif
