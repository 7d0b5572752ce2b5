/* Tests saving, loading and shared memory on systems whose calls fail: file systems without O_TMPFILE or locks, no child processes, disks with errors,
 * no room for mappings. The linker redirects the library's calls of the C library to the wrappers in this file (see CMakeLists.txt). */
#define _GNU_SOURCE /* for O_TMPFILE and clone */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "folder.h"

/* ---- The simulated system ----------------------------------------------------------------------------------------------------------------- */

/* Which system calls fail. Each member but `times` holds the errno with which one kind of call fails, or 0 if these calls succeed. `times` is the
 * number of failures left; a negative number stands for any number. */
static struct {
    int nameless, opened, locked, synced, linked, renamed, cloned, waited, written, read, mapped;
    int times;
} refused;

/* Returns true and sets errno to `error` if the system call being made must fail, i.e. if `error` is not 0 and `times` failures are left. */
static bool refuse(int error)
{
    if (error == 0 || refused.times == 0)
        return false;
    refused.times--;
    errno = error;
    return true;
}

int __real_openat(int directory, const char *path, int flags, ...);
int __wrap_openat(int directory, const char *path, int flags, ...);
int __real_flock(int descriptor, int operation);
int __wrap_flock(int descriptor, int operation);
int __real_fsync(int descriptor);
int __wrap_fsync(int descriptor);
int __real_linkat(int from_folder, const char *from, int to_folder, const char *to, int flags);
int __wrap_linkat(int from_folder, const char *from, int to_folder, const char *to, int flags);
int __real_renameat(int from_folder, const char *from, int to_folder, const char *to);
int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to);
int __real_clone(int (*run)(void *), void *stack, int flags, void *context);
int __wrap_clone(int (*run)(void *), void *stack, int flags, void *context);
pid_t __real_waitpid(pid_t process, int *ret_status, int options);
pid_t __wrap_waitpid(pid_t process, int *ret_status, int options);
ssize_t __real_write(int descriptor, const void *data, size_t size);
ssize_t __wrap_write(int descriptor, const void *data, size_t size);
ssize_t __real_pread(int descriptor, void *ret_data, size_t size, off_t offset);
ssize_t __wrap_pread(int descriptor, void *ret_data, size_t size, off_t offset);
void *__real_mmap(void *address, size_t size, int protection, int flags, int descriptor, off_t offset);
void *__wrap_mmap(void *address, size_t size, int protection, int flags, int descriptor, off_t offset);

int __wrap_openat(int directory, const char *path, int flags, ...)
{
    if (refuse((flags & O_TMPFILE) == O_TMPFILE ? refused.nameless : (flags & O_CREAT) != 0 ? refused.opened : 0))
        return -1;
    return __real_openat(directory, path, flags, 0666);
}

static bool remove_before_locking;

static void remove_open_file(int descriptor)
{
    char path[40], name[300];
    snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    const ssize_t n = readlink(path, name, sizeof name - 1);
    name[n > 0 ? n : 0] = '\0';
    assert_int_equal(unlink(name), 0);
}

int __wrap_flock(int descriptor, int operation)
{
    if (remove_before_locking && refused.times > 0) {
        refused.times--;
        remove_open_file(descriptor);
    }
    return refuse(refused.locked) ? -1 : __real_flock(descriptor, operation);
}

int __wrap_fsync(int descriptor)
{
    return refuse(refused.synced) ? -1 : __real_fsync(descriptor);
}

static pid_t killed_when_linked; /* the process that is killed once linkat has named the new file; 0 for none */

int __wrap_linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    const int result = refuse(refused.linked) ? -1 : __real_linkat(from_folder, from, to_folder, to, flags);
    if (killed_when_linked != 0)
        kill(killed_when_linked, SIGKILL);
    return result;
}

int __wrap_renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    return refuse(refused.renamed) ? -1 : __real_renameat(from_folder, from, to_folder, to);
}

int __wrap_clone(int (*run)(void *), void *stack, int flags, void *context)
{
    return refuse(refused.cloned) ? -1 : __real_clone(run, stack, flags, context);
}

pid_t __wrap_waitpid(pid_t process, int *ret_status, int options)
{
    return refuse(refused.waited) ? -1 : __real_waitpid(process, ret_status, options);
}

/* Fails if `refused.written` is set. Otherwise writes at most 3 bytes, as an interrupted write may. */
ssize_t __wrap_write(int descriptor, const void *data, size_t size)
{
    return refuse(refused.written) ? -1 : __real_write(descriptor, data, size > 3 ? 3 : size);
}

ssize_t __wrap_pread(int descriptor, void *ret_data, size_t size, off_t offset)
{
    return refuse(refused.read) ? -1 : __real_pread(descriptor, ret_data, size > 3 ? 3 : size, offset);
}

void *__wrap_mmap(void *address, size_t size, int protection, int flags, int descriptor, off_t offset)
{
    if (refuse(descriptor >= 0 ? refused.mapped : 0))
        return MAP_FAILED;
    return __real_mmap(address, size, protection, flags, descriptor, offset);
}

/* ---- Setup and checks ------------------------------------------------------------------------------------------------------------------------ */

static int remove_file(void **state)
{
    unlink("a");
    return leave_folder(state);
}

static int begin(void **state)
{
    (void)state;
    grd_error_clear();
    memset(&refused, 0, sizeof refused);
    unlink("a");
    return 0;
}

static bool save(int number)
{
    const grd_scope scope = grd_scope_open();
    const bool saved = grd_save("a", grd_named_tensors({"number", grd_full(GRD_NO_DIMS, grd_int(number), .dtype = GRD_INT64)}));
    grd_scope_close(scope);
    return saved;
}

static int saved_number(void)
{
    const grd_scope scope = grd_scope_open();
    const int number = (int)grd_item_int64(grd_named_tensor_find(grd_load("a"), "number"));
    grd_scope_close(scope);
    return number;
}

/* Returns the number of entries of the working directory, including "." and "..". */
static int count_entries(void)
{
    int n = 0;
    DIR *listing = opendir(".");
    while (readdir(listing) != NULL)
        n++;
    closedir(listing);
    return n;
}

/* Checks that the file "a" holds `number`, and that the working directory contains no other file. */
static void expect_saved(int number)
{
    const int n = count_entries();
    refused.times = 0;
    assert_int_equal(saved_number(), number);
    assert_string_equal(grd_error_message(), "");
    assert_int_equal(n, 3);
}

/* ---- The tests --------------------------------------------------------------------------------------------------------------------------------- */

static void partial_and_interrupted_reads_and_writes_are_continued(void **state)
{
    (void)state;
    refused.written = refused.read = EINTR;
    refused.times = 50;
    assert_true(save(1));
    expect_saved(1);
}

static void saving_works_without_o_tmpfile(void **state)
{
    (void)state;
    static const int errors[] = {EOPNOTSUPP, EISDIR, EINVAL, ENOENT};
    for (int i = 0; i < GRD_LENGTH(errors); i++) {
        refused.nameless = errors[i];
        refused.times = -1;
        assert_true(save(2 * i) && save(2 * i + 1));
        expect_saved(2 * i + 1);
    }
}

static void saving_works_without_o_tmpfile_and_locks(void **state)
{
    (void)state;
    refused.nameless = refused.locked = ENOLCK;
    refused.times = -1;
    assert_true(save(1) && save(2));
    expect_saved(2);
}

/* Another process finds the new temporary file before it is locked, regards it as left by a killed process, and removes it. */
static void a_new_file_removed_by_another_process_is_created_again(void **state)
{
    (void)state;
    refused.nameless = EOPNOTSUPP;
    refused.times = 3; /* O_TMPFILE fails once, then another process removes the new file twice */
    remove_before_locking = true;
    assert_true(save(3));
    remove_before_locking = false;
    expect_saved(3);
}

static void saving_works_without_child_processes(void **state)
{
    (void)state;
    assert_true(save(1));
    refused.cloned = EAGAIN;
    refused.times = -1;
    assert_true(save(2));
    expect_saved(2);
}

/* SIGKILL arrives when the new file has its temporary name and has not yet replaced the old file. See Note [A name for a moment]. */
static void a_kill_before_renaming_leaves_no_temporary_file(void **state)
{
    (void)state;
    assert_true(save(1));
    const pid_t saver = fork();
    if (saver == 0) {
        killed_when_linked = getpid();
        save(2);
        end_child(1);
    }
    int status;
    assert_int_equal(__real_waitpid(saver, &status, 0), saver);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    for (int i = 0; i < 2000 && count_entries() > 3; i++)
        usleep(1000); /* the child of the killed process may still have to rename the file */
    expect_saved(saved_number() == 2 ? 2 : 1);
}

static void an_interrupted_wait_for_the_child_is_continued(void **state)
{
    (void)state;
    assert_true(save(1));
    refused.waited = EINTR;
    refused.times = 3;
    assert_true(save(2));
    assert_int_equal(refused.times, 0);
    expect_saved(2);
}

static void a_failed_system_call_leaves_the_old_file(void **state)
{
    (void)state;
    int *const calls[] = {&refused.synced, &refused.linked, &refused.renamed, &refused.written};
    assert_true(save(1));
    for (int nameless = 0; nameless < 2; nameless++)
        for (int i = 0; i < GRD_LENGTH(calls); i++) {
            memset(&refused, 0, sizeof refused);
            refused.nameless = nameless ? 0 : EOPNOTSUPP;
            *calls[i] = EIO;
            refused.times = nameless ? 1 : 2;
            if (!nameless && calls[i] == &refused.linked)
                continue; /* without O_TMPFILE the file has a name from the start, so link is not called */
            assert_false(save(2));
            assert_int_equal(grd_error_system(), EIO);
            expect_error(GRD_ERROR_IO, "cannot save 'a': Input/output error");
            expect_saved(1);
        }
}

static void saving_works_where_fsync_is_unsupported_or_interrupted(void **state)
{
    (void)state;
    refused.synced = EINVAL;
    refused.times = -1;
    assert_true(save(1));
    expect_saved(1);
    refused.synced = EINTR;
    refused.times = 5;
    assert_true(save(2));
    expect_saved(2);
}

static void a_read_only_directory_raises_os_error(void **state)
{
    (void)state;
    refused.nameless = refused.opened = EACCES;
    refused.times = -1;
    assert_false(save(1));
    assert_int_equal(grd_error_system(), EACCES);
    expect_error(GRD_ERROR_IO, "cannot save 'a': Permission denied");
}

static void a_failed_read_raises_os_error(void **state)
{
    (void)state;
    assert_true(save(1));
    refused.read = EIO;
    refused.times = 1;
    assert_null(grd_tensor_file_open("a"));
    assert_int_equal(grd_error_system(), EIO);
    expect_error(GRD_ERROR_IO, "cannot load 'a': Input/output error");
    grd_tensor_file *file = grd_tensor_file_open("a");
    const grd_scope scope = grd_scope_open();
    refused.times = 1;
    assert_true(grd_tensor_file_read(file, "number") == grd_failed);
    expect_error(GRD_ERROR_IO, "cannot load 'a': Input/output error");
    grd_scope_close(scope);
    grd_tensor_file_close(file);
}

static void shared_memory_that_could_not_be_opened_loses_its_name_with_its_maker(void **state)
{
    (void)state;
    char name[40];
    snprintf(name, sizeof name, "/gradus_test_%d", (int)getpid());
    for (int too_many = 0; too_many < 2; too_many++) {
        const grd_scope scope = grd_scope_open();
        grd_tensor *t = grd_ones(grd_dims(1000));
        assert_true(grd_share_memory(&t, 1, name));
        grd_shared_announce(t);
        refused.mapped = too_many ? 0 : ENOMEM;
        refused.times = 1;
        assert_true(grd_open_shared_name(name, too_many ? 4001 : 4000) == grd_failed);
        assert_int_equal(grd_error_get(), too_many ? GRD_ERROR_RUNTIME : GRD_ERROR_IO);
        grd_error_clear();
        const int descriptor = shm_open(name, O_RDWR, 0);
        assert_true(descriptor >= 0);
        close(descriptor);
        grd_scope_close(scope);
        assert_int_equal(shm_unlink(name), -1);
        assert_int_equal(errno, ENOENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(partial_and_interrupted_reads_and_writes_are_continued, begin),
        cmocka_unit_test_setup(saving_works_without_o_tmpfile, begin),
        cmocka_unit_test_setup(saving_works_without_o_tmpfile_and_locks, begin),
        cmocka_unit_test_setup(a_new_file_removed_by_another_process_is_created_again, begin),
        cmocka_unit_test_setup(saving_works_without_child_processes, begin),
        cmocka_unit_test_setup(a_kill_before_renaming_leaves_no_temporary_file, begin),
        cmocka_unit_test_setup(an_interrupted_wait_for_the_child_is_continued, begin),
        cmocka_unit_test_setup(a_failed_system_call_leaves_the_old_file, begin),
        cmocka_unit_test_setup(saving_works_where_fsync_is_unsupported_or_interrupted, begin),
        cmocka_unit_test_setup(a_read_only_directory_raises_os_error, begin),
        cmocka_unit_test_setup(a_failed_read_raises_os_error, begin),
        cmocka_unit_test_setup(shared_memory_that_could_not_be_opened_loses_its_name_with_its_maker, begin),
    };
    return cmocka_run_group_tests(tests, enter_folder, remove_file);
}
