/* Tests reference counts, and the pool that owns the objects of the open scopes. */
#include <pthread.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/object.h"
#include "support.h"

static atomic_int alive;

static void destroy_thing(struct grd_object *object)
{
    atomic_fetch_sub(&alive, 1);
    grd_free(object, sizeof *object);
}

static const struct grd_object_type thing_type = {.name = "thing", .destroy = destroy_thing};

static struct grd_object *new_thing(void)
{
    struct grd_object *thing = grd_alloc(sizeof *thing);
    assert_non_null(thing);
    thing->type = &thing_type;
    atomic_init(&thing->refs, 1);
    atomic_fetch_add(&alive, 1);
    return thing;
}

static int nothing_alive(void **state)
{
    (void)state;
    grd_pool_release(0);
    grd_error_clear();
    return atomic_load(&alive);
}

static void keep_and_drop_change_the_reference_count(void **state)
{
    (void)state;
    struct grd_object *thing = new_thing();
    assert_true(grd_object_unique(thing));
    assert_ptr_equal(grd_object_keep(thing), thing);
    assert_false(grd_object_unique(thing));
    grd_object_drop(thing);
    assert_true(grd_object_unique(thing));
    grd_object_drop(thing);
    grd_object_drop(NULL);
}

static void immortal_objects_are_never_destroyed(void **state)
{
    (void)state;
    static struct grd_object eternal = {&thing_type, GRD_IMMORTAL};
    for (int i = 0; i < 10; i++)
        grd_object_drop(&eternal);
    grd_object_keep(&eternal);
    assert_int_equal(atomic_load(&eternal.refs), GRD_IMMORTAL);
    int64_t mark = grd_pool_mark();
    grd_pool_push(new_thing());
    assert_true(grd_pool_return(mark, &eternal));
    assert_int_equal(grd_pool_mark(), mark);
}

static void closing_a_scope_drops_its_objects(void **state)
{
    (void)state;
    grd_scope outer = grd_scope_open();
    grd_pool_push(new_thing());
    grd_scope inner = grd_scope_open();
    for (int i = 0; i < 1000; i++)
        grd_pool_push(new_thing());
    assert_int_equal(atomic_load(&alive), 1001);
    grd_scope_close(inner);
    assert_int_equal(atomic_load(&alive), 1);
    /* Closing an outer scope also closes an inner scope that is still open. Closing the inner scope afterwards is an error. */
    grd_scope forgotten = grd_scope_open();
    grd_pool_push(new_thing());
    grd_scope_close(outer);
    assert_int_equal(atomic_load(&alive), 0);
    const grd_scope bad[] = {forgotten, {-5}, {INT64_MAX}, {INT64_MIN}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        grd_scope_close(bad[i]);
        assert_string_equal(grd_error_message(), "grd_scope_close: the scope is not open: it, or one around it, was closed before");
        grd_error_clear();
    }
}

static void a_result_moves_to_the_outer_scope(void **state)
{
    (void)state;
    int64_t mark = grd_pool_mark();
    struct grd_object *only = new_thing();
    grd_pool_push(only);
    assert_true(grd_pool_return(mark, only)); /* tests the fast path for returning the newest object of the pool */
    assert_int_equal(grd_pool_mark(), mark + 1);

    int64_t inner = grd_pool_mark();
    struct grd_object *result = NULL;
    for (int i = 0; i < 5; i++) {
        struct grd_object *thing = new_thing();
        grd_pool_push(thing);
        if (i == 2)
            result = thing;
    }
    assert_true(grd_pool_return(inner, result));
    assert_int_equal(grd_pool_mark(), inner + 1);
    assert_int_equal(atomic_load(&alive), 2);
    assert_true(grd_object_unique(result));

    /* Returns an object that the inner scope does not own, as when an operator returns its argument. The outer scope gets a second reference. */
    inner = grd_pool_mark();
    grd_pool_push(new_thing());
    assert_true(grd_pool_return(inner, only));
    assert_int_equal(atomic_load(&only->refs), 2);
    assert_int_equal(grd_pool_mark(), inner + 1);
}

static void several_results_move_to_the_outer_scope(void **state)
{
    (void)state;
    for (int total = 0; total < 7; total++) {
        for (int returned = 0; returned <= total; returned++) {
            struct grd_object *outside = new_thing();
            grd_pool_push(outside);
            int64_t mark = grd_pool_mark();
            void **list = grd_pool_alloc(8 * sizeof *list); /* belongs to the scope that is closed below */
            for (int i = 0; i < total; i++) {
                struct grd_object *thing = new_thing();
                grd_pool_push(thing);
                if (i < returned)
                    list[i] = thing;
            }
            list[returned] = outside;
            void *copy[8];
            for (int i = 0; i <= returned; i++)
                copy[i] = list[i];
            assert_true(grd_pool_return_many(mark, list, returned + 1));
            assert_int_equal(grd_pool_mark(), mark + returned + 1);
            assert_int_equal(atomic_load(&alive), returned + 1);
            for (int i = 0; i <= returned; i++)
                assert_ptr_equal(grd_thread.pool[mark + i], copy[i]);
            assert_int_equal(atomic_load(&outside->refs), 2);
            grd_pool_release(0);
            assert_int_equal(atomic_load(&alive), 0);
        }
    }
}

static void pool_memory_is_freed_with_its_scope(void **state)
{
    (void)state;
    int64_t mark = grd_pool_mark();
    int64_t blocks = grd_memory_get_stats().blocks;
    for (size_t size = 0; size < 3000; size += 100) {
        unsigned char *bytes = grd_pool_alloc(size);
        assert_non_null(bytes);
        assert_int_equal((uintptr_t)bytes % 16, 0);
        for (size_t i = 0; i < size; i++)
            bytes[i] = 1;
    }
    grd_pool_release(mark);
    assert_int_equal(grd_memory_get_stats().blocks, blocks);
    assert_null(grd_pool_alloc(SIZE_MAX));
    assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
}

/* Thread function: makes each allocation fail in turn and checks that nothing leaks, that the error is MemoryError, and that the pool stays
 * usable. */
static void *grow_with_failures(void *unused)
{
    (void)unused;
    for (int n = 1; n < 10; n++) {
        grd_memory_fail_at(n, false);
        bool ok = true;
        int pushed = 0;
        for (int i = 0; i < 2000 && ok; i++) {
            struct grd_object *thing = grd_alloc(sizeof *thing);
            if (thing == NULL)
                break;
            thing->type = &thing_type;
            atomic_init(&thing->refs, 1);
            atomic_fetch_add(&alive, 1);
            ok = grd_pool_push(thing);
            pushed += ok;
        }
        grd_memory_fail_at(0, false);
        assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
        grd_error_clear();
        assert_int_equal(atomic_load(&alive), pushed);
        grd_pool_release(0);
        assert_int_equal(atomic_load(&alive), 0);
    }
    grd_pool_push(new_thing()); /* stays in the thread's pool of temporary objects, which must drop it when the thread ends */
    return NULL;
}

static void failed_allocations_leak_nothing(void **state)
{
    (void)state;
    int64_t blocks = grd_memory_get_stats().blocks;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, grow_with_failures, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&alive), 0);
    assert_int_equal(grd_memory_get_stats().blocks, blocks);
}

static void *keep_and_drop_often(void *thing)
{
    for (int i = 0; i < 20000; i++)
        grd_object_drop(grd_object_keep(thing));
    grd_object_drop(thing);
    return NULL;
}

static void reference_counts_are_atomic(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    struct grd_object *thing = new_thing();
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_and_drop_often, grd_object_keep(thing)), 0);
    grd_object_drop(thing);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(keep_and_drop_change_the_reference_count, nothing_alive),
        cmocka_unit_test_teardown(immortal_objects_are_never_destroyed, nothing_alive),
        cmocka_unit_test_teardown(closing_a_scope_drops_its_objects, nothing_alive),
        cmocka_unit_test_teardown(a_result_moves_to_the_outer_scope, nothing_alive),
        cmocka_unit_test_teardown(several_results_move_to_the_outer_scope, nothing_alive),
        cmocka_unit_test_teardown(pool_memory_is_freed_with_its_scope, nothing_alive),
        cmocka_unit_test_teardown(failed_allocations_leak_nothing, nothing_alive),
        cmocka_unit_test_teardown(reference_counts_are_atomic, nothing_alive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
