/* Makes calls that need exclusive use of a tensor while another thread uses the tensor. test/python/test_races.py runs one case at a time. The
 * program prints one line for each call, with the error that the library reports. The other thread is held inside an operator by a fallback that
 * waits. */
#include <semaphore.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <gradus/gradus.h>

static sem_t inside, go_on;
static grd_tensor *x;

static void report(const char *call)
{
    printf("%s: %s\n", call, grd_ok() ? "nothing" : grd_error_message());
    grd_error_clear();
}

/* Waits inside an operator until the main thread has made its calls, then runs the operator. This function is the fallback for the dispatch key
 * WRAPPER. Only the second thread has this key in its key set. */
static void wait_inside(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)context;
    sem_post(&inside);
    sem_wait(&go_on);
    const grd_key_guard guard = grd_key_guard_set(0, 1u << GRD_KEY_WRAPPER);
    grd_redispatch(op, keys & ~(grd_keyset)(1u << GRD_KEY_WRAPPER), out, args, ret_results);
    grd_key_guard_restore(guard);
}

static void *run_mul(void *context)
{
    (void)context;
    const grd_scope scope = grd_scope_open();
    grd_key_guard_set(1u << GRD_KEY_WRAPPER, 0);
    grd_mul(x, x);
    report("mul");
    grd_scope_close(scope);
    return NULL;
}

static void *run_resize(void *context)
{
    (void)context;
    const grd_scope scope = grd_scope_open();
    grd_key_guard_set(1u << GRD_KEY_WRAPPER, 0);
    grd_resize_(x, grd_dims(1));
    report("resize_");
    grd_scope_close(scope);
    return NULL;
}

static void change(grd_tensor *t)
{
    grd_resize_(t, grd_dims(2));
    report("grd_resize_");
    grd_set_data(t, grd_ones(grd_dims(5)));
    report("grd_set_data");
    grd_detach_(t);
    report("grd_detach_");
}

/* Reads and writes x, then changes a new tensor. All calls are allowed while the other thread is inside mul with x. While the other thread is
 * inside resize_ of x, the calls with x are refused. */
static void use(void)
{
    grd_add(x, x);
    report("grd_add");
    grd_add_(x, x);
    report("grd_add_");
    change(grd_zeros(grd_dims(3)));
}

int main(int argc, char **argv)
{
    const grd_scope scope = grd_scope_open();
    const char *name = argc > 1 ? argv[1] : "";
    pthread_t thread;
    sem_init(&inside, 0, 0);
    sem_init(&go_on, 0, 0);
    x = grd_keep(grd_ones(grd_dims(3)));
    grd_tensor *view = grd_detach(x);
    grd_register_fallback(GRD_KEY_WRAPPER, wait_inside, NULL);
    pthread_create(&thread, NULL, strcmp(name, "reads_meet_resize") == 0 ? run_resize : run_mul, NULL);
    sem_wait(&inside);
    if (strcmp(name, "changes_meet_mul") == 0) {
        change(x);
        grd_resize_(view, grd_dims(2));
        report("grd_resize_ of a view");
    } else {
        use();
    }
    sem_post(&go_on);
    pthread_join(thread, NULL);
    change(x);
    grd_drop(x);
    grd_scope_close(scope);
    return 0;
}
