/* The process around the tensors: scopes, memory, threads, random generators, instruction set. */
#ifndef GRADUS_RUNTIME_H
#define GRADUS_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gradus/types.h"

GRD_BEGIN_DECLS

/* Functions of the caller that the library calls (kernels, hooks, forward, backward, release …) must return: no exception of C++ and no longjmp
 * may pass through the library. They report failure with grd_error_set. */

/* Returns the version of the library that runs, "0.1.0"; GRD_VERSION is the version of the headers. */
GRD_API const char *grd_version(void);

/* ---- Scopes own temporaries -------------------------------------------------------------------------------------
 * Every function that returns a tensor returns a pooled reference: it belongs to the innermost open scope of the
 * thread and goes when that scope closes. grd_keep takes ownership, grd_drop gives it up.
 *
 *     grd_scope scope = grd_scope_open();
 *     ... one training step ...
 *     grd_scope_close(scope);
 *
 * With no scope open, references belong to the thread and go when it ends.
 *
 * A tensor must not be used after its scope has closed, unless it was kept: its memory is given to the next tensor at once. With the environment
 * variable GRADUS_DEBUG=lifetimes every such use is a RuntimeError that names the call, the operator that made the tensor, and the scope; so is
 * grd_drop of what the caller has not kept, and a scope closed twice. Memory of the last 64 MiB that were freed is not used again then, and reads
 * as NaN and -1. Under valgrind's memcheck, and in a program built for AddressSanitizer, every block of memory is one of the system's, so that
 * they see what is done with it. */
typedef struct grd_scope {
    int64_t mark;
} grd_scope;

GRD_API grd_scope grd_scope_open(void);
/* Drops what was pooled since the scope opened; scopes opened inside it and not closed are closed too. */
GRD_API void grd_scope_close(grd_scope scope);
/* Closes the scope, but first moves its reference to `result` to the enclosing scope. Returns `result`. */
GRD_API grd_tensor *grd_scope_return(grd_scope scope, grd_tensor *result);

/* ---- Memory ----------------------------------------------------------------------------------------------------- */
typedef struct grd_memory_stats {
    int64_t allocated;   /* bytes in use */
    int64_t cached;      /* bytes held for reuse */
    int64_t peak;        /* highest `allocated` since the last grd_memory_reset_peak */
    int64_t blocks;      /* blocks in use */
    int64_t limit;       /* bytes, 0: none */
    int64_t cache_limit; /* bytes, negative: none */
    int64_t peak_held;   /* highest `allocated` + `cached` since the last grd_memory_reset_peak */
} grd_memory_stats;

GRD_API grd_memory_stats grd_memory_get_stats(void);
GRD_API void grd_memory_reset_peak(void);
/* An allocation that would take `allocated` above the limit fails with MemoryError. 0 removes the limit. */
GRD_API void grd_memory_set_limit(int64_t bytes);
/* Keeps at most `bytes` of freed memory for reuse, besides the short free lists of threads and partly used pages. Without such a limit,
 * `allocated` + `cached` stays within a quarter and 64 MiB above the most that was in use lately, and `cached` within a quarter of the
 * machine's memory. Negative: the limit is that of the environment variable GRADUS_CACHE_LIMIT (bytes, or a number followed by K, M, G
 * or T), if it is set. */
GRD_API void grd_memory_set_cache_limit(int64_t bytes);
/* Gives cached blocks back to the system: those of this thread and the shared ones, and the tables of transforms that are kept. */
GRD_API void grd_memory_trim(void);
/* For tests: the n-th allocation from now on fails (1: the next), and every later one too when `forever`. 0: off. */
GRD_API void grd_memory_fail_at(int64_t n, bool forever);

/* ---- Threads ----------------------------------------------------------------------------------------------------
 * Every thread has its own scopes, pending error, grad mode and key guards. The rest of the process's state (default dtype, number of threads,
 * default generator, print options, registered kernels) is shared, and may be set while others compute.
 *
 * A tensor that two threads use must be kept by both (grd_keep): a scope ends the references of its own thread alone. These calls may then meet on
 * one tensor:
 *
 *     reading it by operators, geometry, grd_keep and grd_drop of one's own reference
 *     grd_grad_of (keep what it returns), grd_set_grad, grd_set_requires_grad, hooks
 *     forward and backward passes over shared graphs, accumulation into one leaf
 *     writing its elements in place, which another thread may see half done: a value may be old, new or torn, but nothing crashes
 *
 * These need the tensor to themselves, and its views too, because they change where its memory is or what it looks like: grd_set_data, grd_resize_,
 * grd_detach_. With GRADUS_DEBUG=races it is a RuntimeError that names both calls when one of these and an operator, or two of these, meet in
 * threads that have opened a scope; the call that comes later does nothing. */
/* Threads an operator may use, the caller included. Default: GRADUS_NUM_THREADS, else the cores this process may use
 * (affinity and cgroup quota). Results do not depend on it. */
GRD_API int grd_num_threads(void);
GRD_API void grd_set_num_threads(int n); /* ValueError unless 1 <= n <= 1024 */

/* What threads may share. Scopes, the pending error, grad mode and key guards belong to the thread that opens or sets them. Tensors, nodes and
 * generators may be used by any threads at the same time, each with a reference of its own or under one that outlives all of them:
 *   - operators that read a tensor, views of it, and its geometry;
 *   - operators that write a tensor in place, with and without a history: elements that several threads touch have values of any of them, and a
 *     history is that of one of the writes;
 *   - grd_grad_of, grd_set_grad, grd_retain_grad and accumulation by backward, none of which is ever lost;
 *   - grd_set_requires_grad, hooks registered, removed and called, and backward on graphs that share nodes and leaves;
 *   - grd_keep, and grd_drop of a reference that is the thread's.
 * What changes the memory or the sizes of a tensor, or takes its history away, needs it for itself: no other thread may use that tensor, or run
 * backward on a graph that saved it, meanwhile. These are grd_set_data, grd_resize_, grd_detach_, and an `out` of another size than the result.
 * In Python they wait until no operator and no backward pass runs without the interpreter's lock; only an `out=` of another size does not. */

/* Bytes that calls may still put on this thread's stack, less a reserve; SIZE_MAX where that is unknown. backward and custom functions, which
 * may call each other through hooks, refuse with RuntimeError at 0. */
GRD_API size_t grd_stack_left(void);

/* ---- Random generators ------------------------------------------------------------------------------------------- */
/* Returns a new generator, mt19937 seeded with `seed`, which the caller owns. */
GRD_API grd_generator *grd_generator_new(uint64_t seed);
GRD_API grd_generator *grd_generator_keep(grd_generator *generator);
GRD_API void grd_generator_drop(grd_generator *generator);
/* Returns the generator that operators use when none is given. */
GRD_API grd_generator *grd_generator_default(void);
/* In the next five functions NULL means the default generator. A negative seed is its 64 bits, as in PyTorch. */
GRD_API void grd_generator_seed(grd_generator *generator, uint64_t seed);
/* Seeds the generator with an unpredictable number of 53 bits and returns the number. */
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
/* Tells what multiplies large matrices where Gradus's own kernels are not faster: "openblas", its version and its kernels, or "built-in",
 * and why OpenBLAS is not used. OpenBLAS is loaded when a product first wants it, or here. It is looked for in the file named by the
 * environment variable GRADUS_OPENBLAS ("none": nowhere), beside the library, in the Python package scipy_openblas64 beside its own package,
 * and by the system; and not used where the memory it needs cannot be had, since it would end the process. */
GRD_API const char *grd_blas(void);

GRD_END_DECLS
#endif
