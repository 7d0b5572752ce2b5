/* Makes the state of a thread when the thread first uses the library, and frees it when the thread ends. */
#include <pthread.h>
#include <stdlib.h>

#include "base/cold.h"
#include "base/memory.h"
#include "base/object.h"
#include "base/thread.h"
#include "gradus/error.h"

_Thread_local struct grd_thread_state grd_thread __attribute__((tls_model("initial-exec")));

_Atomic int32_t grd_thread_count;
uint32_t grd_thread_first_keys;

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool key_made;

/* Frees the state of a thread when the thread ends. Destructors of objects in the scope pool may use the library again. If they do, the state is
 * made again and this function runs once more. */
static void thread_exit(void *cold)
{
    grd_pool_release(0);
    grd_free(grd_thread.pool, (size_t)grd_thread.pool_capacity * sizeof(void *));
    grd_thread.pool = NULL;
    grd_thread.pool_capacity = 0;
    grd_error_clear();
    grd_memory_thread_exit();
    grd_thread.cold = NULL;
    free(cold);
    atomic_fetch_sub(&grd_thread_count, 1);
}

static void make_key(void)
{
    key_made = pthread_key_create(&key, thread_exit) == 0;
}

struct grd_thread_cold *grd_thread_get_cold(void)
{
    if (GRD_LIKELY(grd_thread.cold != NULL))
        return grd_thread.cold;
    /* Uses calloc, because grd_alloc needs the thread's state. Raising a MemoryError also needs this state. */
    struct grd_thread_cold *cold = calloc(1, sizeof *cold);
    if (cold == NULL)
        return NULL;
    atomic_fetch_add(&grd_thread_count, 1);
    cold->owner = &grd_thread;
    grd_thread.cold = cold;
    grd_thread.include |= grd_thread_first_keys;
    pthread_once(&key_once, make_key);
    if (key_made)
        pthread_setspecific(key, cold);
    grd_memory_thread_start(cold);
    return cold;
}
