/* Implements the random number generator. It gives the same bits in the same order as PyTorch's CPU generator, and its saved state has the same
 * layout. Invariant: the engine is used only between grd_generator_lock and grd_generator_unlock. */
#define _GNU_SOURCE /* for getrandom */
#include "base/random.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/random.h>
#endif

#include "base/error.h"
#include "base/memory.h"

/* ---- The generator ---------------------------------------------------------------------------------------------------- */

static void reseed(struct grd_generator *generator, uint64_t seed)
{
    uint32_t *s = generator->engine.state;
    s[0] = (uint32_t)seed;
    for (uint32_t i = 1; i < GRD_MT19937_WORDS; i++)
        s[i] = UINT32_C(1812433253) * (s[i - 1] ^ (s[i - 1] >> 30)) + i;
    generator->engine.left = 1;
    generator->engine.next = 0;
    generator->seed = seed;
    generator->has_normal_double = generator->has_normal_float = false;
}

static void destroy_generator(struct grd_object *object)
{
    grd_free(object, sizeof(struct grd_generator));
}

static const struct grd_object_type generator_type = {.name = "generator", .destroy = destroy_generator};

static struct grd_generator default_generator = {
    .object = {.type = &generator_type, .refs = GRD_IMMORTAL},
    .lock = ATOMIC_FLAG_INIT,
};

/* Returns a random number of 53 bits, which a double represents exactly. The seeds that PyTorch chooses also have 53 bits. */
uint64_t grd_random_unpredictable(void)
{
    uint64_t seed;
#ifdef __linux__
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
        return seed >> 11;
#endif
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    seed = (uint64_t)now.tv_sec * UINT64_C(1000000007) + (uint64_t)now.tv_nsec;
    return ((seed ^ (uint64_t)getpid() << 32) * UINT64_C(0x9e3779b97f4a7c15)) >> 11;
}

/* Unlocks the default generator in the child of a fork. If a thread held the lock at the fork, that thread does not exist in the child and would
 * never unlock it. */
static void unlock_in_child(void)
{
    atomic_flag_clear(&default_generator.lock);
}

static void start_default(void)
{
    reseed(&default_generator, grd_random_unpredictable());
    pthread_atfork(NULL, NULL, unlock_in_child);
}

grd_generator *grd_generator_default(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, start_default);
    return &default_generator;
}

struct grd_generator *grd_generator_lock(struct grd_generator *generator)
{
    if (generator == NULL)
        generator = grd_generator_default();
    while (atomic_flag_test_and_set_explicit(&generator->lock, memory_order_acquire))
        sched_yield();
    return generator;
}

void grd_generator_unlock(struct grd_generator *generator)
{
    atomic_flag_clear_explicit(&generator->lock, memory_order_release);
}

grd_generator *grd_generator_new(uint64_t seed)
{
    struct grd_generator *generator = grd_alloc_zeroed(sizeof *generator);
    if (generator == NULL)
        return NULL;
    generator->object.type = &generator_type;
    atomic_init(&generator->object.refs, 1);
    atomic_flag_clear(&generator->lock);
    reseed(generator, seed);
    return generator;
}

grd_generator *grd_generator_keep(grd_generator *generator)
{
    return generator != NULL ? grd_object_keep(generator) : NULL;
}

void grd_generator_drop(grd_generator *generator)
{
    grd_object_drop(generator);
}

void grd_generator_seed(grd_generator *generator, uint64_t seed)
{
    generator = grd_generator_lock(generator);
    reseed(generator, seed);
    grd_generator_unlock(generator);
}

uint64_t grd_generator_seed_randomly(grd_generator *generator)
{
    const uint64_t seed = grd_random_unpredictable();
    grd_generator_seed(generator, seed);
    return seed;
}

void grd_manual_seed(uint64_t seed)
{
    grd_generator_seed(NULL, seed);
}

uint64_t grd_generator_initial_seed(const grd_generator *generator)
{
    struct grd_generator *g = grd_generator_lock((struct grd_generator *)generator);
    uint64_t seed = g->seed;
    grd_generator_unlock(g);
    return seed;
}

/* ---- The saved state: the layout of torch.Generator.get_state(), 5056 bytes ---------------------------------------------- */

struct saved_state {
    uint64_t seed;
    int32_t left;
    int32_t seeded; /* always 1 */
    uint64_t next;
    uint64_t words[GRD_MT19937_WORDS]; /* only the lower 32 bits are used */
    double normal_x;                   /* always 0 */
    double normal_double;
    double normal_rho; /* always 0 */
    int32_t has_normal_double;
    int32_t pad;
    float normal_float;
    uint8_t has_normal_float, pad_end[3];
};

_Static_assert(sizeof(struct saved_state) == 5056, "the size of PyTorch's state");

size_t grd_generator_state_size(void)
{
    return sizeof(struct saved_state);
}

void grd_generator_get_state(const grd_generator *generator, void *ret_state)
{
    struct saved_state s = {.seeded = 1};
    if (ret_state == NULL) {
        grd_raise(GRD_ERROR_TYPE, "room for the generator's state is required, not NULL");
        return;
    }
    struct grd_generator *g = grd_generator_lock((struct grd_generator *)generator);
    s.seed = g->seed;
    s.left = g->engine.left;
    s.next = (uint64_t)g->engine.next;
    for (int i = 0; i < GRD_MT19937_WORDS; i++)
        s.words[i] = g->engine.state[i];
    s.has_normal_double = g->has_normal_double;
    s.normal_double = g->has_normal_double ? g->normal_double : 0;
    s.has_normal_float = g->has_normal_float;
    s.normal_float = g->has_normal_float ? g->normal_float : 0;
    grd_generator_unlock(g);
    memcpy(ret_state, &s, sizeof s);
}

static bool read_state(const void *state, size_t size, struct saved_state *ret_state)
{
    const struct saved_state *s = ret_state;
    if (size != sizeof *s)
        return grd_raise(GRD_ERROR_VALUE, "a generator state has %zu bytes, got %zu", sizeof *s, size);
    if (state == NULL)
        return grd_raise(GRD_ERROR_TYPE, "the state of a generator is required, not NULL");
    memcpy(ret_state, state, size);
    /* In a valid state left + next is 625, or 1 if no value has been drawn yet. With a larger sum the engine would read beyond its 624 words. */
    bool valid = s->seeded == 1 && s->left >= 1 && s->next <= GRD_MT19937_WORDS && (uint64_t)s->left + s->next <= GRD_MT19937_WORDS + 1;
    for (int i = 0; i < GRD_MT19937_WORDS; i++)
        valid &= s->words[i] <= UINT32_MAX;
    return valid || grd_raise(GRD_ERROR_VALUE, "these %zu bytes are not the state of a generator", size);
}

void grd_generator_set_state(grd_generator *generator, const void *state, size_t size)
{
    struct saved_state s;
    if (!read_state(state, size, &s))
        return;
    struct grd_generator *g = grd_generator_lock(generator);
    g->seed = s.seed;
    g->engine.left = s.left;
    g->engine.next = (int)s.next;
    for (int i = 0; i < GRD_MT19937_WORDS; i++)
        g->engine.state[i] = (uint32_t)s.words[i];
    g->has_normal_double = s.has_normal_double != 0;
    g->normal_double = s.normal_double;
    g->has_normal_float = s.has_normal_float != 0;
    g->normal_float = s.normal_float;
    grd_generator_unlock(g);
}
