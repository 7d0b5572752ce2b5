/* Tests saving under SIGKILL. A process saves repeatedly and is killed at a random moment. Afterwards the file must be complete, i.e. be what one of
 * the saves wrote, and the directory must have no other file. The environment variable GRADUS_KILLS sets the number of rounds (default 40). */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "../unit/folder.h"

enum { KILLS = 40, MOST_ELEMENTS = 100000 };

static const char path[] = "model.safetensors";

static int remove_file(void **state)
{
    unlink(path);
    return leave_folder(state);
}

/* Returns the number of files in the working directory, not counting the saved file at `path`. */
static int count_others(void)
{
    return count_files() - (access(path, F_OK) == 0);
}

/* Returns the number of files that a killed save leaves in the working directory. Waits up to two seconds for the files to disappear, because a
 * child of the killed process makes the last two system calls of a save and lives a little longer. */
static int count_litter(void)
{
    const struct timespec moment = {0, 1000000};
    int n = count_others();
    for (int i = 0; i < 2000 && n > 0; i++) {
        nanosleep(&moment, NULL);
        n = count_others();
    }
    return n;
}

static int64_t elements_of(int i)
{
    return 1 + (int64_t)i * 7919 % MOST_ELEMENTS;
}

/* Saves two tensors to `path`: "x", whose elements are all i, and "i", which holds the number i of the save. */
static void save_number(int i)
{
    const grd_scope scope = grd_scope_open();
    grd_tensor *x = grd_full(grd_dims(elements_of(i)), grd_int(i), .dtype = GRD_INT32);
    grd_save(path, grd_named_tensors({"x", x}, {"i", grd_full(GRD_NO_DIMS, grd_int(i), .dtype = GRD_INT64)}));
    grd_scope_close(scope);
}

/* Loads the file, checks that it is complete, and returns the number of the save that wrote it. */
static int saved_number(void)
{
    const grd_scope scope = grd_scope_open();
    const grd_named_tensors model = grd_load(path);
    grd_tensor *x = grd_named_tensor_find(model, "x");
    const int i = (int)grd_item_int64(grd_named_tensor_find(model, "i"));
    assert_int_equal(grd_numel(x), elements_of(i));
    assert_true(grd_item_int64(grd_all(grd_eq(x, grd_number(grd_int(i))))));
    assert_string_equal(grd_error_message(), "");
    grd_scope_close(scope);
    return i;
}

static _Noreturn void save_until_killed(int first)
{
    for (int i = first; grd_ok(); i++)
        save_number(i);
    end_child(1);
}

static void a_killed_save_leaves_a_complete_file(void **state)
{
    (void)state;
    const char *wanted = getenv("GRADUS_KILLS");
    const int kills = wanted != NULL ? atoi(wanted) : KILLS;
    uint64_t random = 88172645463325252u;
    int litter = 0, number = 0;
    save_number(0);
    for (int k = 0; k < kills; k++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        const pid_t child = fork();
        if (child == 0)
            save_until_killed(number + 1);
        assert_true(child > 0);
        const struct timespec wait = {0, (long)(random % 30000000)};
        nanosleep(&wait, NULL);
        int status;
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        litter += count_litter();
        const int now = saved_number();
        assert_true(now >= number);
        number = now;
    }
    printf("%d kills, %d saves\n", kills, number);
    assert_int_equal(litter, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {IN_SCOPE(a_killed_save_leaves_a_complete_file)};
    return cmocka_run_group_tests(tests, enter_folder, remove_file);
}
