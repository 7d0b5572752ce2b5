/* Makes and opens memory that processes share, and maps files into memory.
 *
 * Memory without a name is a memfd. It uses no space in /dev/shm. The operating system frees it when no process has it open or mapped any
 * more, even if a process was killed.
 * Memory with a name begins with a count of its users in all processes, and the last user removes the name. A forked child has the mapping of its
 * parent but does not count as a user.
 * Invariant: all pages of new memory are allocated when the memory is made, and a memfd cannot shrink. So reading and writing never raise SIGBUS. */
#define _GNU_SOURCE /* for memfd_create */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/data.h"
#include "core/loan.h"
#include "core/given.h"
#include "core/relocate.h"
#include "core/tensor.h"
#include "gradus/share.h"

enum { HEADER = GRD_DATA_ALIGNMENT }; /* bytes before the data of named memory, which contain the count of users */

/* The shared memory, or the mapped file, that holds the data of a storage. */
struct shared {
    size_t size;    /* bytes allocated for this struct and its name */
    char *start;    /* address of the mapping; NULL if there is none */
    size_t length;  /* bytes of the mapping */
    int descriptor; /* descriptor of the shared memory or file; -1 if it is closed */
    bool counted;   /* true for named memory, which begins with a count of its users */
    pid_t process;  /* id of the process that is counted as a user; in a forked child, which is not counted, it differs from getpid() */
    char name[];    /* name of the memory or path of the file; empty if it has none */
};

/* Returns the address of the count of users, at the start of named memory. */
static _Atomic int64_t *users_of(const struct shared *shared)
{
    return (_Atomic int64_t *)shared->start;
}

static char *data_of(const struct shared *shared)
{
    return shared->start + (shared->counted ? HEADER : 0);
}

/* The release function of the storage: unmaps the memory and frees `context`, a struct shared. If this process was the last user of named memory,
 * removes the memory's name. */
static void end_shared(void *context)
{
    struct shared *shared = context;
    if (shared->counted && shared->start != NULL && shared->process == getpid() && atomic_fetch_sub(users_of(shared), 1) == 1)
        shm_unlink(shared->name);
    if (shared->start != NULL)
        munmap(shared->start, shared->length);
    if (shared->descriptor >= 0)
        close(shared->descriptor);
    grd_free(shared, shared->size);
}

/* Returns the shared memory or mapped file that holds the data of the tensor's storage, or NULL if the storage has none. */
static const struct shared *shared_of(const grd_tensor *t)
{
    const struct grd_storage *root = grd_storage_root(t->storage);
    return root->release == end_shared ? root->context : NULL;
}

/* True if another process can open this memory or file. False for NULL and for a file that is mapped privately. */
static bool can_be_sent(const struct shared *shared)
{
    return shared != NULL && (shared->counted || shared->descriptor >= 0);
}

/* Returns a new struct that owns the descriptor, with nothing mapped yet. Returns NULL, with MemoryError and the descriptor closed, on failure. */
static struct shared *new_shared(int descriptor, const char *name)
{
    const size_t size = sizeof(struct shared) + strlen(name) + 1;
    struct shared *shared = grd_alloc(size);
    if (shared == NULL) {
        close(descriptor);
        return NULL;
    }
    *shared = (struct shared){.size = size, .descriptor = descriptor, .process = getpid()};
    strcpy(shared->name, name);
    return shared;
}

/* Maps `bytes` bytes and, for named memory, the header in front of them. `flags` are passed to mmap(). False, with OSError, on failure. */
static bool map(struct shared *shared, int64_t bytes, int flags)
{
    const size_t length = (size_t)bytes + (shared->counted ? HEADER : 0);
    void *start = mmap(NULL, length > 0 ? length : 1, PROT_READ | PROT_WRITE, flags, shared->descriptor, 0);
    if (start == MAP_FAILED)
        return grd_raise_system(errno, "unable to mmap %lld bytes from file <%s>", (long long)bytes, shared->name);
    shared->start = start;
    shared->length = length > 0 ? length : 1;
    return true;
}

/* True if the file has at least `bytes` bytes, not counting the header of named memory. Otherwise raises an error. */
static bool check_size(const struct shared *shared, int64_t bytes)
{
    struct stat status;
    if (fstat(shared->descriptor, &status) != 0)
        return grd_raise_system(errno, "unable to stat the file <%s>", shared->name);
    const int64_t size = (int64_t)status.st_size - (shared->counted ? HEADER : 0);
    if (bytes < 0)
        return grd_raise(GRD_ERROR_RUNTIME, "unable to mmap %lld bytes from file <%s>", (long long)bytes, shared->name);
    if (bytes <= size)
        return true;
    return grd_raise(GRD_ERROR_RUNTIME, "file <%s> size <%lld> is smaller than the required mapping size <%lld>", shared->name,
                     (long long)size, (long long)bytes);
}

/* Returns a uint8 tensor over the `bytes` mapped bytes; the tensor owns `shared`. If an error is pending, ends `shared`, which may be NULL, and
 * returns grd_failed. */
static grd_tensor *over(struct shared *shared, int64_t bytes)
{
    if (shared == NULL)
        return grd_failed;
    grd_tensor *t =
        grd_pending() ? grd_failed : grd_from_memory(data_of(shared), grd_dims(bytes), grd_dims(1), 0, GRD_UINT8, end_shared, shared);
    if (grd_is_failed(t))
        end_shared(shared);
    return t;
}

/* ---- Making ------------------------------------------------------------------------------------------------------------------------ */

/* Makes new shared memory, with a name unless `name` is "". Returns its descriptor, or -1 with OSError. */
static int make_memory(const char *name)
{
    const int descriptor = name[0] != '\0' ? shm_open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                                           : memfd_create("gradus", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor < 0)
        grd_raise_system(errno, "cannot make shared memory%s%s", name[0] != '\0' ? " " : "", name);
    return descriptor;
}

/* Allocates all pages of new shared memory and maps them. False, with OSError, on failure. */
static bool fill_new(struct shared *shared, int64_t bytes)
{
    const int64_t length = bytes + (shared->counted ? HEADER : 0);
    const int error = posix_fallocate(shared->descriptor, 0, length > 0 ? length : 1);
    if (error != 0)
        return grd_raise_system(error, "cannot allocate %lld bytes of shared memory", (long long)bytes);
    if (!shared->counted)
        return fcntl(shared->descriptor, F_ADD_SEALS, F_SEAL_SHRINK) == 0 ? map(shared, bytes, MAP_SHARED)
                                                                          : grd_raise_system(errno, "cannot seal shared memory");
    if (!map(shared, bytes, MAP_SHARED))
        return false;
    atomic_init(users_of(shared), 1);
    close(shared->descriptor); /* other processes open the memory by its name */
    shared->descriptor = -1;
    return true;
}

bool grd_share_memory(grd_tensor *const *tensors, int64_t n, const char *name)
{
    if (grd_pending() || !grd_given_all(tensors, n, "grd_share_memory", "tensors"))
        return false;
    if (can_be_sent(shared_of(tensors[0])))
        return true;
    const grd_device device = grd_device_of(tensors[0]);
    if (device.type != GRD_DEVICE_CPU)
        return grd_raise(GRD_ERROR_NOT_IMPLEMENTED, "memory of device %s cannot be shared between processes", grd_device_name(device));
    if (name == NULL)
        name = "";
    const int descriptor = make_memory(name);
    struct shared *shared = descriptor >= 0 ? new_shared(descriptor, name) : NULL;
    if (shared == NULL)
        return false;
    shared->counted = name[0] != '\0';
    const int64_t bytes = grd_storage_root(tensors[0]->storage)->bytes;
    if (fill_new(shared, bytes) && grd_storage_replace(tensors, n, data_of(shared), bytes, end_shared, shared))
        return true;
    if (shared->start == NULL && shared->counted)
        shm_unlink(name);
    end_shared(shared);
    return false;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------------------------- */

grd_tensor *grd_open_shared(int descriptor, int64_t bytes)
{
    if (grd_pending())
        return grd_failed;
    const int own = fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    if (own < 0) {
        grd_raise_system(errno, "cannot open shared memory");
        return grd_failed;
    }
    struct shared *shared = new_shared(own, "");
    if (shared != NULL && check_size(shared, bytes))
        map(shared, bytes, MAP_SHARED);
    return over(shared, bytes);
}

grd_tensor *grd_open_shared_name(const char *name, int64_t bytes)
{
    if (grd_pending() || !grd_given_pointer(name, "grd_open_shared_name", "name"))
        return grd_failed;
    const int descriptor = shm_open(name, O_RDWR | O_CLOEXEC, 0);
    if (descriptor < 0) {
        grd_raise_system(errno, "cannot open shared memory %s", name);
        return grd_failed;
    }
    struct shared *shared = new_shared(descriptor, name);
    if (shared != NULL) {
        shared->counted = true;
        if (check_size(shared, bytes) && map(shared, bytes, MAP_SHARED)) {
            close(descriptor);
            shared->descriptor = -1;
        } else if (check_size(shared, 0))
            map(shared, 0, MAP_SHARED); /* the header, in which end_shared() takes the announced user off the count */
    }
    return over(shared, bytes);
}

grd_tensor *grd_map_file(const char *path, bool shared, int64_t bytes)
{
    if (grd_pending() || !grd_given_pointer(path, "grd_map_file", "path"))
        return grd_failed;
    const int descriptor = open(path, O_CLOEXEC | (shared ? O_RDWR | O_CREAT : O_RDONLY), 0666);
    struct stat status;
    if (descriptor < 0) {
        grd_raise_system(errno, "unable to open file <%s> in read-%s mode", path, shared ? "write" : "only");
        return grd_failed;
    }
    struct shared *file = new_shared(descriptor, path);
    if (file == NULL)
        return grd_failed;
    if (shared && fstat(descriptor, &status) == 0 && status.st_size < bytes && ftruncate(descriptor, bytes) != 0)
        grd_raise_system(errno, "unable to resize file <%s> to the right size", path);
    else if (check_size(file, bytes) && map(file, bytes, shared ? MAP_SHARED : MAP_PRIVATE) && !shared) {
        close(descriptor);
        /* The descriptor is kept only to be sent to other processes, and a private mapping cannot be shared with them. */
        file->descriptor = -1;
    }
    return over(file, bytes);
}

/* ---- Asking ------------------------------------------------------------------------------------------------------------------------ */

bool grd_is_shared(const grd_tensor *t)
{
    return grd_given(t, "grd_is_shared", "t") && shared_of(t) != NULL;
}

int grd_shared_descriptor(const grd_tensor *t)
{
    const struct shared *shared = grd_given(t, "grd_shared_descriptor", "t") ? shared_of(t) : NULL;
    return shared != NULL ? shared->descriptor : -1;
}

const char *grd_shared_name(const grd_tensor *t)
{
    const struct shared *shared = grd_given(t, "grd_shared_name", "t") ? shared_of(t) : NULL;
    return shared != NULL && shared->name[0] != '\0' ? shared->name : NULL;
}

void grd_shared_announce(const grd_tensor *t)
{
    const struct shared *shared = grd_given(t, "grd_shared_announce", "t") ? shared_of(t) : NULL;
    if (shared != NULL && shared->counted)
        atomic_fetch_add(users_of(shared), 1);
}
