/* Tests that files are replaced atomically. A file has its complete old or new content at any time and keeps its permissions, symbolic links to it
 * stay, and no temporary file is left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "folder.h"

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void expect_content(const char *name, const char *text)
{
    char content[64] = {0};
    FILE *file = fopen(name, "r");
    assert_non_null(file);
    fread(content, 1, sizeof content - 1, file);
    fclose(file);
    assert_string_equal(content, text);
}

static bool replace(const char *name, const char *text)
{
    grd_replacement *file = grd_replacement_open(name);
    grd_replacement_write(file, text, strlen(text));
    return grd_replacement_commit(file);
}

static int count_entries(void)
{
    int n = -2; /* the entries "." and ".." are not counted */
    DIR *listing = opendir(".");
    while (readdir(listing) != NULL)
        n++;
    closedir(listing);
    return n;
}

static unsigned mode_of(const char *name)
{
    struct stat status;
    assert_int_equal(lstat(name, &status), 0);
    return status.st_mode & 07777;
}

static void a_file_is_created_and_replaced(void **state)
{
    (void)state;
    assert_true(replace("a", "first"));
    expect_content("a", "first");
    grd_replacement *file = grd_replacement_open("./a");
    assert_true(grd_replacement_write(file, "second", 6));
    expect_content("a", "first");
    assert_true(grd_replacement_descriptor(file) >= 0);
    assert_true(grd_replacement_commit(file));
    expect_content("a", "second");
    char name[sizeof folder + 8];
    snprintf(name, sizeof name, "%s/a", folder);
    assert_true(replace(name, ""));
    expect_content("a", "");
    assert_int_equal(count_entries(), 1);
    unlink("a");
}

static void an_abandoned_replacement_leaves_the_old_file(void **state)
{
    (void)state;
    write_file("a", "old");
    grd_replacement *file = grd_replacement_open("a");
    grd_replacement_write(file, "new", 3);
    grd_replacement_abandon(file);
    expect_content("a", "old");
    file = grd_replacement_open("a");
    grd_error_set(GRD_ERROR_VALUE, "of the caller");
    assert_false(grd_replacement_commit(file));
    expect_error(GRD_ERROR_VALUE, "of the caller");
    expect_content("a", "old");
    assert_int_equal(count_entries(), 1);
    grd_replacement_abandon(NULL);
    unlink("a");
}

static void replacing_keeps_the_permissions(void **state)
{
    (void)state;
    const mode_t mask = umask(027);
    assert_true(replace("a", "1"));
    assert_int_equal(mode_of("a"), 0640);
    chmod("a", 0604);
    assert_true(replace("a", "2"));
    assert_int_equal(mode_of("a"), 0604);
    umask(mask);
    unlink("a");
}

static void replacing_keeps_symbolic_links(void **state)
{
    (void)state;
    mkdir("inner", 0777);
    write_file("inner/a", "old");
    assert_int_equal(symlink("inner/b", "link") | symlink("a", "inner/b") | symlink("inner/new", "dangling") | symlink("round", "round"),
                     0);
    assert_true(replace("link", "new"));
    expect_content("inner/a", "new");
    assert_true(replace("dangling", "fresh"));
    expect_content("inner/new", "fresh");
    struct stat status;
    assert_true(lstat("link", &status) == 0 && S_ISLNK(status.st_mode) && lstat("inner/b", &status) == 0 && S_ISLNK(status.st_mode) &&
                lstat("dangling", &status) == 0 && S_ISLNK(status.st_mode));
    assert_false(replace("round", "x"));
    assert_int_equal(grd_error_system(), ELOOP);
    expect_error(GRD_ERROR_IO, "cannot save 'round': Too many levels of symbolic links");
    unlink("inner/a");
    unlink("inner/b");
    unlink("inner/new");
    unlink("link");
    unlink("dangling");
    unlink("round");
    assert_int_equal(rmdir("inner"), 0);
}

static void device_files_are_written_in_place(void **state)
{
    (void)state;
    assert_true(replace("/dev/null", "x"));
    struct stat status;
    assert_true(stat("/dev/null", &status) == 0 && S_ISCHR(status.st_mode));
    assert_false(replace("/dev/full", "x"));
    assert_int_equal(grd_error_system(), ENOSPC);
    expect_error(GRD_ERROR_IO, "cannot save '/dev/full': No space left on device");
}

static void invalid_paths_are_refused(void **state)
{
    (void)state;
    char name[300];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    const struct {
        const char *path;
        int error;
    } cases[] = {{"", ENOENT},        {".", EISDIR}, {"/tmp", EISDIR}, {"a/", EISDIR}, {"absent/a", ENOENT}, {"/dev/null/a", ENOTDIR},
                 {name, ENAMETOOLONG}};
    for (int i = 0; i < GRD_LENGTH(cases); i++) {
        assert_null(grd_replacement_open(cases[i].path));
        assert_int_equal(grd_error_get(), GRD_ERROR_IO);
        assert_int_equal(grd_error_system(), cases[i].error);
        grd_error_clear();
    }
    assert_null(grd_replacement_open(NULL));
    expect_error(GRD_ERROR_TYPE, "grd_replacement_open: argument 'path' must not be NULL");
    assert_int_equal(count_entries(), 0);
    name[255] = '\0';
    assert_true(replace(name, "x"));
    unlink(name);
}

/* Root may write to every file, so the test runs in a child process as another user. */
static void a_read_only_file_is_not_replaced(void **state)
{
    (void)state;
    write_file("a", "old");
    chmod("a", 0444);
    chmod(".", 0777);
    const pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            end_child(2);
        end_child(replace("a", "new") || grd_error_system() != EACCES);
    }
    assert_int_equal(status_of(child), 0);
    expect_content("a", "old");
    assert_int_equal(count_entries(), 1);
    chmod(".", 0700);
    unlink("a");
}

static void files_in_an_unreadable_directory_are_replaced(void **state)
{
    (void)state;
    assert_int_equal(mkdir("drop", 0777), 0);
    chmod("drop", 0333);
    chmod(".", 0777);
    const pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(65534) != 0)
            end_child(2);
        end_child(!replace("drop/a", "first") || !replace("drop/a", "second"));
    }
    assert_int_equal(status_of(child), 0);
    chmod("drop", 0777);
    chmod(".", 0700);
    expect_content("drop/a", "second");
    unlink("drop/a");
    assert_int_equal(rmdir("drop"), 0);
}

/* A limit on the size of files stands in for a full disk. */
static void a_full_disk_leaves_the_old_file(void **state)
{
    (void)state;
    write_file("a", "old");
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit limit = {1000, 1000};
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &limit);
        static char large[5000];
        grd_replacement *file = grd_replacement_open("a");
        const bool refused = !grd_replacement_write(file, large, sizeof large) && grd_error_system() == EFBIG;
        end_child(grd_replacement_commit(file) || !refused);
    }
    assert_int_equal(status_of(child), 0);
    expect_content("a", "old");
    assert_int_equal(count_entries(), 1);
    unlink("a");
}

/* ---- Files left by killed processes -------------------------------------------------------------------------------------------------------- */

static void temporary_files_of_killed_processes_are_removed(void **state)
{
    (void)state;
    static const char *const left = ".a.0123456789abcdef.saving", *const others[] = {
                                                                      ".b.0123456789abcdef.saving", ".a.0123456789abcdef.savin",
                                                                      ".a.0123456789abcde.saving", ".a.0123456789abcdeg.saving"};
    write_file(left, "part");
    for (int i = 0; i < GRD_LENGTH(others); i++)
        write_file(others[i], "not ours");
    assert_true(replace("a", "new"));
    assert_int_equal(access(left, F_OK), -1);
    assert_int_equal(count_entries(), 1 + GRD_LENGTH(others));
    for (int i = 0; i < GRD_LENGTH(others); i++)
        unlink(others[i]);
    unlink("a");
}

static void temporary_files_locked_by_others_are_kept(void **state)
{
    (void)state;
    static const char *const name = ".a.0123456789abcdef.saving";
    const int descriptor = open(name, O_WRONLY | O_CREAT, 0666);
    assert_int_equal(flock(descriptor, LOCK_EX), 0);
    assert_true(replace("a", "new"));
    assert_int_equal(access(name, F_OK), 0);
    close(descriptor);
    assert_true(replace("a", "newer"));
    assert_int_equal(count_entries(), 1);
    unlink("a");
}

static void the_replacement_committed_last_wins(void **state)
{
    (void)state;
    grd_replacement *first = grd_replacement_open("a"), *second = grd_replacement_open("a");
    assert_true(grd_replacement_write(first, "first", 5) && grd_replacement_write(second, "second", 6));
    assert_true(grd_replacement_commit(second));
    expect_content("a", "second");
    assert_true(grd_replacement_commit(first));
    expect_content("a", "first");
    assert_int_equal(count_entries(), 1);
    unlink("a");
}

/* Starts to replace the file "a" and forks. The child abandons the replacement and ends, but the parent can still complete it. */
static void a_forked_child_does_not_disturb_a_replacement(void **state)
{
    (void)state;
    grd_replacement *file = grd_replacement_open("a");
    const pid_t child = fork();
    if (child == 0) {
        grd_replacement_abandon(file);
        end_child(0);
    }
    assert_int_equal(status_of(child), 0);
    assert_true(grd_replacement_write(file, "whole", 5) && grd_replacement_commit(file));
    expect_content("a", "whole");
    unlink("a");
}

static void child_processes_of_the_program_can_still_be_waited_for(void **state)
{
    (void)state;
    const pid_t child = fork();
    if (child == 0)
        end_child(7);
    write_file("a", "old");
    assert_true(replace("a", "new"));
    assert_int_equal(status_of(child), 7);
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, 0), -1); /* no child process is left */
    assert_int_equal(errno, ECHILD);
    unlink("a");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_created_and_replaced),
        cmocka_unit_test(an_abandoned_replacement_leaves_the_old_file),
        cmocka_unit_test(replacing_keeps_the_permissions),
        cmocka_unit_test(replacing_keeps_symbolic_links),
        cmocka_unit_test(device_files_are_written_in_place),
        cmocka_unit_test(invalid_paths_are_refused),
        cmocka_unit_test(a_read_only_file_is_not_replaced),
        cmocka_unit_test(files_in_an_unreadable_directory_are_replaced),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(temporary_files_of_killed_processes_are_removed),
        cmocka_unit_test(temporary_files_locked_by_others_are_kept),
        cmocka_unit_test(the_replacement_committed_last_wins),
        cmocka_unit_test(a_forked_child_does_not_disturb_a_replacement),
        cmocka_unit_test(child_processes_of_the_program_can_still_be_waited_for),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
