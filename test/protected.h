/* A simulated device for tests. Its memory consists of pages without access rights, so code that dereferences a device address ends the test with
 * SIGSEGV. Only the device's copy function makes the pages accessible, for the time of a copy. */
#ifndef TEST_PROTECTED_H
#define TEST_PROTECTED_H

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "gradus/gradus.h"

static pthread_mutex_t protected_lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t protected_blocks;  /* number of allocated blocks of device memory */
static int64_t protected_copies;  /* number of copies to and from the device so far */
static int64_t protected_fail_at; /* number of copies until one fails (1: the next copy); 0 if none fails */

static size_t protected_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t protected_round(int64_t bytes)
{
    return ((size_t)bytes + protected_page() - 1) / protected_page() * protected_page();
}

static void *protected_allocate(grd_device device, int64_t bytes)
{
    (void)device;
    void *data = mmap(NULL, protected_round(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED)
        return NULL;
    pthread_mutex_lock(&protected_lock);
    protected_blocks++;
    pthread_mutex_unlock(&protected_lock);
    return data;
}

static void protected_release(grd_device device, void *data, int64_t bytes)
{
    (void)device;
    munmap(data, protected_round(bytes));
    pthread_mutex_lock(&protected_lock);
    protected_blocks--;
    pthread_mutex_unlock(&protected_lock);
}

/* Sets the access rights of the pages that contain the `bytes` bytes at `data`. */
static void protected_open(const void *data, int64_t bytes, int access)
{
    const uintptr_t page = protected_page(), first = (uintptr_t)data / page * page;
    mprotect((void *)first, (uintptr_t)data + (uintptr_t)bytes - first, access);
}

static void protected_copy(void *to, grd_device to_device, const void *from, grd_device from_device, int64_t bytes)
{
    const bool to_cpu = to_device.type == GRD_DEVICE_CPU, from_cpu = from_device.type == GRD_DEVICE_CPU;
    pthread_mutex_lock(&protected_lock);
    protected_copies++;
    const bool failing = protected_fail_at > 0 && --protected_fail_at == 0;
    if (!to_cpu)
        protected_open(to, bytes, PROT_READ | PROT_WRITE);
    if (!from_cpu)
        protected_open(from, bytes, PROT_READ | PROT_WRITE);
    if (!failing)
        memcpy(to, from, (size_t)bytes);
    if (!to_cpu)
        protected_open(to, bytes, PROT_NONE);
    if (!from_cpu)
        protected_open(from, bytes, PROT_NONE);
    pthread_mutex_unlock(&protected_lock);
    if (failing)
        grd_error_set(GRD_ERROR_RUNTIME, "the copy failed");
}

static inline grd_device protected_register(const char *name, grd_boxed_kernel *fallback)
{
    const grd_device_type type = {.name = name,
                                  .count = 2,
                                  .allocate = protected_allocate,
                                  .release = protected_release,
                                  .copy = protected_copy,
                                  .fallback = fallback};
    return grd_device_register(&type);
}

#endif
