/* Declares the hot state of a thread: everything that an operator call reads, in one small struct of static thread-local storage. It holds the
 * code of the pending error, the scope pool (the references to temporaries), sets of dispatch keys and the free lists of small memory blocks. Rarely
 * used state is in struct grd_thread_cold (base/cold.h). Invariant: a state of all zero bytes is valid, and is what a thread has before it uses the
 * library. */
#ifndef GRD_BASE_THREAD_H
#define GRD_BASE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hidden.h"
#include "base/inline.h"

#define GRD_LIKELY(x) __builtin_expect(!!(x), 1)
#define GRD_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Tells the compiler that `x` is true. */
#define GRD_ASSUME(x) ((x) ? (void)0 : __builtin_unreachable())
#define GRD_LENGTH(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* The number of small size classes. Their sizes are 32, 64, 128, 192, ..., 1024 bytes. */
enum { GRD_SMALL_CLASSES = 17 };

/* A linked list of free memory blocks of one size. The first word of each block points to the next one. */
struct grd_block_list {
    void *head;
    int64_t room; /* number of blocks that may still be added before some are moved to their slabs */
};

struct grd_object;

/* The call of vmap that a thread is in (gradus/transform.h). All members are 0 outside vmap. */
struct grd_level {
    uint64_t id;         /* a number that identifies this call of vmap in the process */
    int64_t size;        /* number of elements in the batch */
    uint32_t randomness; /* a value of enum grd_randomness */
};

struct grd_thread_state {
    /* The pool is the stack of references that this thread's open scopes own. A scope that closes drops the references that were pushed since it was
     * opened. pool[pool_top] is the next free entry; grd_pool_grow makes room. */
    void **pool;
    int64_t pool_top, pool_capacity;
    uint32_t error;               /* grd_error_code of the pending error; 0 if there is none */
    uint32_t include, exclude;    /* dispatch keys that are added to (include) and removed from (exclude) the keys of each call */
    uint32_t grad_off;            /* the autograd key while grad mode is off, otherwise 0; also removed from the keys of each call */
    struct grd_thread_cold *cold; /* the state that is rarely used (cold.h); NULL until first used; freed when the thread ends */
    struct grd_level level;
    bool in_parallel; /* true while this thread runs its part of a parallel loop */
    /* true while this thread frees an object; objects that lose their last owner meanwhile go into `waiting` */
    bool is_ending;
    struct grd_object *waiting; /* objects to be freed next, as a linked list (grd_object_end); NULL if there are none */
    /* The memory that this thread has allocated minus the memory that it has freed, since it last added its counter to the shared counters.
     * Written by this thread only, but read by others. */
    _Atomic int64_t memory_counted; /* number of blocks in the upper half, bytes in the lower half, both signed */
    int32_t memory_high;            /* largest number of bytes in memory_counted since the counter was last added to the shared ones */
    struct grd_block_list small[GRD_SMALL_CLASSES]; /* free lists of small blocks, by size class */
};

extern _Thread_local struct grd_thread_state grd_thread __attribute__((tls_model("initial-exec")));

/* The dispatch keys that a thread adds to grd_thread.include when it first uses the library. Set once, while the library is loaded. */
extern GRD_HIDDEN uint32_t grd_thread_first_keys;

/* The number of threads whose cold state (struct grd_thread_cold) is allocated. Only a thread with a cold state can hold references to objects. */
extern _Atomic int32_t grd_thread_count;

/* True if no other thread uses objects of the library. A caller that wants to free an object first makes the object unreachable for other
 * threads and then calls this function. A thread that starts later cannot reach the object either. */
static inline bool grd_thread_is_alone(void)
{
    return atomic_load(&grd_thread_count) <= 1;
}

#endif
