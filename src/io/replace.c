/* Writes a new file that, once it is complete, replaces an existing file of the same name.
 *
 * Invariants
 * - At every moment the name leads to the old file or to the complete new file.
 * - A new file with a temporary name is locked (flock) by the process that writes it. So an unlocked file with such a name was left by a process
 *   that was killed. */
#define _GNU_SOURCE /* for O_TMPFILE, O_PATH and clone */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/random.h"
#include "gradus/io.h"

enum {
    MAX_LINKS = 40,         /* most symbolic links to follow, as in the Linux kernel */
    NAME_PART = 200,        /* most bytes of the old name in the temporary name, which must have at most NAME_MAX bytes */
    MOST_WRITTEN = 1 << 30, /* most bytes in one call of write, which accepts at most 2^31 - 4096 */
};

struct grd_replacement {
    size_t size;                  /* bytes allocated for this struct and the path */
    int descriptor;               /* descriptor of the file that is written; -1 if it is closed */
    int folder;                   /* descriptor of the folder; -1 if the file is written directly and replaces no other file */
    pid_t process;                /* the process that opened the file; a forked child does not remove the new file */
    bool exists;                  /* true if there is an old file to replace */
    char name[NAME_MAX + 1];      /* name of the old file in the folder */
    char temporary[NAME_MAX + 1]; /* temporary name of the new file in the folder; empty if it has none */
    char path[];                  /* the path as the caller gave it, for error texts */
};

/* Raises OSError for `number`, a value of errno. Always returns false. */
static bool fail(const struct grd_replacement *file, int number)
{
    return grd_raise_system(number, "cannot save '%s'", file->path);
}

static void close_descriptor(int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
    *descriptor = -1;
}

/* ---- Where the file goes ----------------------------------------------------------------------------------------------------------- */

/* Opens the folder that contains the file at `path` as file->folder, and stores the last part of `path` in file->name. A relative path starts at
 * the previous file->folder if it is open, otherwise at the current folder. False, with OSError, on failure. */
static bool enter_folder(struct grd_replacement *file, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    char folder[PATH_MAX];
    if (strlen(path) >= sizeof folder || strlen(name) >= sizeof file->name)
        return fail(file, ENAMETOOLONG);
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return fail(file, path[0] == '\0' ? ENOENT : EISDIR);
    snprintf(folder, sizeof folder, "%.*s", slash != NULL ? (int)(slash + 1 - path) : 1, slash != NULL ? path : ".");
    const int from = file->folder >= 0 ? file->folder : AT_FDCWD;
    int opened = openat(from, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (opened < 0 && errno == EACCES)
        opened = openat(from, folder, O_PATH | O_DIRECTORY | O_CLOEXEC); /* the folder may be writable but not readable */
    if (opened < 0)
        return fail(file, errno);
    close_descriptor(&file->folder);
    file->folder = opened;
    strcpy(file->name, name);
    return true;
}

/* Finds the folder and the name of the file that `path` denotes, by following symbolic links. False, with OSError, on failure. */
static bool find_place(struct grd_replacement *file, const char *path)
{
    char target[PATH_MAX];
    for (int links = 0; links <= MAX_LINKS; links++) {
        if (!enter_folder(file, path))
            return false;
        const ssize_t length = readlinkat(file->folder, file->name, target, sizeof target - 1);
        if (length < 0)
            /* EINVAL: the name is no link. ENOENT: it does not exist. Neither is an error. */
            return errno == EINVAL || errno == ENOENT || fail(file, errno);
        target[length] = '\0';
        path = target;
    }
    return fail(file, ELOOP);
}

/* ---- What killed processes have left ------------------------------------------------------------------------------------------------ */

/* Sets the temporary name of the new file, made of the name of the old file and a random number. */
static void name_temporary(struct grd_replacement *file)
{
    snprintf(file->temporary, sizeof file->temporary, ".%.*s.%016" PRIx64 ".saving", NAME_PART, file->name, grd_random_unpredictable());
}

/* True if `name` has the form of the temporary names that name_temporary makes for file->name, with any random number. */
static bool is_temporary_name(const struct grd_replacement *file, const char *name)
{
    const size_t part = strnlen(file->name, NAME_PART);
    if (name[0] != '.' || strncmp(name + 1, file->name, part) != 0 || name[1 + part] != '.')
        return false;
    const char *digits = name + part + 2;
    return strspn(digits, "0123456789abcdef") == 16 && strcmp(digits + 16, ".saving") == 0;
}

/* Removes the file `name`, which has a temporary name, from the folder if no process has locked the file. */
static void remove_if_left(int folder, const char *name)
{
    const int descriptor = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0)
        return;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0)
        unlinkat(folder, name, 0);
    close(descriptor);
}

/* Removes the temporary files of killed processes from the folder. Errors are ignored, because they do not prevent saving. */
static void remove_left_files(const struct grd_replacement *file)
{
    int descriptor = openat(file->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listing = descriptor >= 0 ? fdopendir(descriptor) : NULL;
    if (listing == NULL) {
        close_descriptor(&descriptor);
        return;
    }
    const struct dirent *entry;
    while ((entry = readdir(listing)) != NULL)
        if (is_temporary_name(file, entry->d_name))
            remove_if_left(file->folder, entry->d_name);
    closedir(listing);
}

/* ---- The new file ------------------------------------------------------------------------------------------------------------------------- */

/* Bytes in the array that descriptor_path writes to. */
enum { DESCRIPTOR_PATH = 40 };

/* Writes a path of the open file to ret_path and returns ret_path. The path works even if the file has no name. */
static const char *descriptor_path(const struct grd_replacement *file, char *ret_path)
{
    snprintf(ret_path, DESCRIPTOR_PATH, "/proc/self/fd/%d", file->descriptor);
    return ret_path;
}

/* Creates a new file without a name in the folder and locks it. False, with no error raised, if the system cannot make such a file or give it a
 * name later. */
static bool create_without_name(struct grd_replacement *file)
{
#ifdef O_TMPFILE
    file->descriptor = openat(file->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    char path[DESCRIPTOR_PATH];
    if (file->descriptor >= 0 && access(descriptor_path(file, path), F_OK) == 0 && flock(file->descriptor, LOCK_EX) == 0)
        return true;
    close_descriptor(&file->descriptor);
#endif
    return false;
}

/* Creates a new file with a temporary name and locks it. Before the file is locked, another process may mistake it for a file that was left by a
 * killed process, and remove it. In this case the file is created again. False, with OSError, on failure. */
static bool create_with_name(struct grd_replacement *file)
{
    struct stat status = {0};
    do {
        close_descriptor(&file->descriptor);
        name_temporary(file);
        file->descriptor = openat(file->folder, file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file->descriptor < 0) {
            file->temporary[0] = '\0';
            return fail(file, errno);
        }
        /* A failure of flock is harmless. A process locks a temporary file before removing it, so where files cannot be locked, none is removed. */
        flock(file->descriptor, LOCK_EX);
        if (fstat(file->descriptor, &status) != 0)
            return fail(file, errno);
    } while (status.st_nlink == 0);
    return true;
}

/* Gives the new file the permissions of the old file and, if the system allows it, the owner. False, with OSError, if the old file is not
 * writable or a system call fails. */
static bool take_permissions(struct grd_replacement *file)
{
    struct stat old, new;
    file->exists = fstatat(file->folder, file->name, &old, AT_SYMLINK_NOFOLLOW) == 0;
    if (!file->exists)
        return errno == ENOENT || fail(file, errno);
    if (faccessat(file->folder, file->name, W_OK, AT_EACCESS) != 0 || fstat(file->descriptor, &new) != 0)
        return fail(file, errno);
    if ((old.st_uid != new.st_uid || old.st_gid != new.st_gid) && fchown(file->descriptor, old.st_uid, old.st_gid) != 0)
        errno = 0; /* no failure: only root may give the new file to the owner of the old file, so the new file belongs to the caller */
    return fchmod(file->descriptor, old.st_mode & 07777) == 0 || fail(file, errno);
}

/* Opens the file to write to. Usually this is a new file in the folder of the old file. If the path leads to something other than a regular file,
 * e.g. a pipe or a device, opens this pipe or device itself. False, with OSError, on failure. */
static bool open_new(struct grd_replacement *file)
{
    struct stat status;
    if (stat(file->path, &status) == 0 && !S_ISREG(status.st_mode)) {
        file->descriptor = open(file->path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
        return file->descriptor >= 0 || fail(file, errno);
    }
    if (!find_place(file, file->path))
        return false;
    remove_left_files(file);
    return (create_without_name(file) || create_with_name(file)) && take_permissions(file);
}

grd_replacement *grd_replacement_open(const char *path)
{
    if (grd_pending() || !grd_given_pointer(path, "grd_replacement_open", "path"))
        return NULL;
    const size_t length = strlen(path), size = sizeof(struct grd_replacement) + length + 1;
    struct grd_replacement *file = grd_alloc(size);
    if (file == NULL)
        return NULL;
    *file = (struct grd_replacement){.size = size, .descriptor = -1, .folder = -1, .process = getpid()};
    memcpy(file->path, path, length + 1);
    if (open_new(file))
        return file;
    grd_replacement_abandon(file);
    return NULL;
}

int grd_replacement_descriptor(const grd_replacement *file)
{
    return file != NULL ? file->descriptor : -1;
}

bool grd_replacement_write(grd_replacement *file, const void *data, size_t size)
{
    if (grd_pending() || file == NULL)
        return false;
    const char *at = data;
    while (size > 0) {
        const ssize_t written = write(file->descriptor, at, size < MOST_WRITTEN ? size : MOST_WRITTEN);
        if (written < 0 && errno != EINTR)
            return fail(file, errno);
        at += written > 0 ? written : 0;
        size -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

/* ---- Taking the place ---------------------------------------------------------------------------------------------------------------------- */

/* Waits until the contents of the file or folder `descriptor` are on disk. False, with OSError, on failure. */
static bool synchronize(const struct grd_replacement *file, int descriptor)
{
    int result;
    while ((result = fsync(descriptor)) != 0 && errno == EINTR)
        continue;
    /* Ignores EINVAL and EROFS, which mean that the file or folder cannot be synchronized, and EBADF, which means that the folder was opened
     * without the right to read it. */
    return result == 0 || errno == EINVAL || errno == EROFS || errno == EBADF || fail(file, errno);
}

/* Gives the new file, which was created without a name, the name `name` in the folder. Returns the result of linkat: 0, or -1 with errno set. */
static int link_as(const struct grd_replacement *file, const char *name)
{
    char path[DESCRIPTOR_PATH];
    return linkat(AT_FDCWD, descriptor_path(file, path), file->folder, name, AT_SYMLINK_FOLLOW);
}

/* Note [A name for a moment]
 * linkat gives a file a name but cannot replace another file. So the new file first gets a temporary name, which is then renamed to the name of the
 * old file. If SIGKILL ended the process between these two calls, the temporary name would stay; without a remedy this happened once in some hundred
 * kills. Therefore a child process makes the two calls. It goes on if its parent is killed. The child shares its parent's memory, has all signals
 * blocked, and makes only these system calls. If its parent has ended, the child removes the temporary name instead of renaming it, because another
 * process may already have saved a newer file. */
struct naming {
    const struct grd_replacement *file;
    pid_t parent; /* the process that started the child process; 0 if there is no child */
    int error;    /* errno of the system call that failed; 0 if none failed */
};

/* True in a child process whose parent process has ended. */
static bool is_orphan(const struct naming *naming)
{
    return naming->parent != 0 && getppid() != naming->parent;
}

/* Gives the new file its temporary name and renames it to the name of the old file; see Note [A name for a moment]. Stores a failure in
 * naming->error. Always returns 0. */
static int link_and_rename(void *context)
{
    struct naming *naming = context;
    const struct grd_replacement *file = naming->file;
    if (is_orphan(naming))
        return 0;
    if (link_as(file, file->temporary) != 0) {
        naming->error = errno;
        return 0;
    }
    if (!is_orphan(naming) && renameat(file->folder, file->temporary, file->folder, file->name) == 0)
        return 0;
    naming->error = errno;
    unlinkat(file->folder, file->temporary, 0);
    return 0;
}

/* Runs link_and_rename in a child process, which survives if this process is killed. If no child can be made, runs it in this process. */
static void link_and_rename_unkilled(struct naming *naming)
{
#ifdef __linux__
    enum { STACK = 16384 };
    _Alignas(16) char stack[STACK];
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    naming->parent = getpid();
    const pid_t child = clone(link_and_rename, stack + STACK, CLONE_VM | CLONE_VFORK, naming); /* no signal is sent when the child ends */
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (child > 0) {
        while (waitpid(child, NULL, __WCLONE) < 0 && errno == EINTR)
            continue;
        return;
    }
    naming->parent = 0;
#endif
    link_and_rename(naming);
}

/* Gives the new file the name of the old file. The old file loses this name. False, with OSError, on failure. */
static bool take_place(struct grd_replacement *file)
{
    if (file->temporary[0] != '\0') {
        if (renameat(file->folder, file->temporary, file->folder, file->name) != 0)
            return fail(file, errno);
        file->temporary[0] = '\0';
        return true;
    }
    if (!file->exists && link_as(file, file->name) == 0)
        return true;
    struct naming naming = {.file = file};
    name_temporary(file);
    link_and_rename_unkilled(&naming);
    file->temporary[0] = '\0';
    return naming.error == 0 || fail(file, naming.error);
}

bool grd_replacement_commit(grd_replacement *file)
{
    const bool done = !grd_pending() && file != NULL &&
                      (file->folder < 0 || (synchronize(file, file->descriptor) && take_place(file) && synchronize(file, file->folder)));
    grd_replacement_abandon(file);
    return done;
}

void grd_replacement_abandon(grd_replacement *file)
{
    if (file == NULL)
        return;
    if (file->temporary[0] != '\0' && file->process == getpid())
        unlinkat(file->folder, file->temporary, 0);
    close_descriptor(&file->descriptor);
    close_descriptor(&file->folder);
    grd_free(file, file->size);
}
