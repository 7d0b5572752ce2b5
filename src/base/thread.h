/* The hot state of one thread, in one small block of static TLS: everything an operator call looks at.
 * Lives here: the pending error flag, the scope pool, dispatch masks, small-block free lists.
 * Does not: what is looked at rarely, which is in struct grd_thread_cold (base/cold.h).
 * Invariant: all zero is a valid state, that of a thread the library has not seen yet. */
#ifndef GRD_BASE_THREAD_H
#define GRD_BASE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/inline.h"

#define GRD_LIKELY(x) __builtin_expect(!!(x), 1)
#define GRD_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* For data of other files: it is found without a table. */
#define GRD_HIDDEN __attribute__((visibility("hidden")))
/* What the compiler cannot see. */
#define GRD_ASSUME(x) ((x) ? (void)0 : __builtin_unreachable())
#define GRD_LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Block sizes 32, 64, 128, 192, … 1024. */
enum { GRD_SMALL_CLASSES = 17 };

/* Free blocks of one size; the first word of each points to the next. */
struct grd_block_list {
    void *head;
    int64_t room; /* blocks that may still be added before some are handed to the shared list */
};

struct grd_object;

/* A run of vmap on a thread (gradus/transform.h). All zero: none. */
struct grd_level {
    uint64_t id; /* of no other level of the process */
    int64_t size;
    uint32_t randomness; /* grd_randomness */
};

struct grd_thread_state {
    /* Scope pool: a stack of references; [top] is the next free slot. Grown by grd_pool_grow. */
    void **pool;
    int64_t pool_top, pool_capacity;
    uint32_t error;               /* grd_error_code, 0: none */
    uint32_t include, exclude;    /* dispatch key sets */
    uint32_t grad_off;            /* the autograd key while grad mode is off, else 0 */
    struct grd_thread_cold *cold; /* error text, larger free lists, …; made on first use, freed at thread exit */
    struct grd_level level;
    bool in_parallel;           /* running a piece of a split task */
    bool is_ending;             /* an object that may own a chain of others is being freed */
    struct grd_object *waiting; /* objects to be freed after that one, linked; NULL unless is_ending */
    /* The allocator: what this thread allocated minus what it freed since it last told the shared counters.
     * Written by this thread only, read by others. */
    _Atomic int64_t memory_counted; /* blocks in the upper half, bytes in the lower, both signed */
    int32_t memory_high;            /* most bytes in that time */
    struct grd_block_list small[GRD_SMALL_CLASSES];
};

extern _Thread_local struct grd_thread_state grd_thread __attribute__((tls_model("initial-exec")));

/* The dispatch keys that a thread includes from its start on. Set once, while the library is loaded. */
extern GRD_HIDDEN uint32_t grd_thread_first_keys;

/* Threads that have a cold state, and so may hold references. */
extern _Atomic int32_t grd_thread_count;

/* True if no other thread works with the library's objects. To be asked after what other threads could see has been taken away from them: a
 * thread that begins later does not find it. */
static inline bool grd_thread_is_alone(void)
{
    return atomic_load(&grd_thread_count) <= 1;
}

#endif
