/* Reads cpuid, the affinity mask and the limits of cgroups. Nothing here fails: a limit that cannot be read counts as no limit. The files of
 * cgroups are described at https://docs.kernel.org/admin-guide/cgroup-v2.html. The instruction-set levels x86-64-v2 to x86-64-v4 are described in
 * the x86-64 psABI. */
#define _GNU_SOURCE /* for sched_getaffinity */
#include "base/cpu.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "gradus/runtime.h"

/* ---- Instruction set ------------------------------------------------------------------------------------------------ */

#if defined(__x86_64__)
static bool has_all(uint32_t word, uint32_t bits)
{
    return (word & bits) == bits;
}

/* Returns the low half of the register XCR0, whose bits tell which vector registers the operating system saves. */
static uint32_t saved_by_system(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static enum grd_isa_level detect_level(void)
{
    uint32_t a, b, c, d, extended_c = 0, ignored;
    if (!__get_cpuid(1, &a, &b, &c, &d))
        return GRD_ISA_PORTABLE;
    __get_cpuid(0x80000001, &ignored, &ignored, &extended_c, &ignored);
    enum { LAHF = 1 << 0, LZCNT = 1 << 5, CMPXCHG16B = 1 << 13 };
    if (!has_all(c, bit_SSE3 | bit_SSSE3 | bit_SSE4_1 | bit_SSE4_2 | bit_POPCNT | CMPXCHG16B) || !has_all(extended_c, LAHF))
        return GRD_ISA_PORTABLE;
    if (!has_all(c, bit_OSXSAVE | bit_AVX | bit_F16C | bit_FMA | bit_MOVBE) || !has_all(extended_c, LZCNT))
        return GRD_ISA_V2;
    uint32_t features = 0;
    __get_cpuid_count(7, 0, &ignored, &features, &ignored, &ignored);
    enum { SAVES_AVX = 0x06, SAVES_AVX512 = 0xe6 };
    uint32_t saved = saved_by_system();
    if (!has_all(features, bit_AVX2 | bit_BMI | bit_BMI2) || !has_all(saved, SAVES_AVX))
        return GRD_ISA_V2;
    if (!has_all(features, bit_AVX512F | bit_AVX512BW | bit_AVX512CD | bit_AVX512DQ | bit_AVX512VL) || !has_all(saved, SAVES_AVX512))
        return GRD_ISA_V3;
    return GRD_ISA_V4;
}
#else
static enum grd_isa_level detect_level(void)
{
    return GRD_ISA_PORTABLE;
}
#endif

static enum grd_isa_level level;

static void choose_level(void)
{
    static const char *const words[GRD_ISA_COUNT] = {"portable", "v2", "v3", "v4"};
    level = detect_level();
    const char *wanted = getenv("GRADUS_ISA");
    for (int i = 0; wanted != NULL && i < (int)level; i++)
        if (strcmp(wanted, words[i]) == 0)
            level = (enum grd_isa_level)i;
}

enum grd_isa_level grd_cpu_level(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose_level);
    return level;
}

const char *grd_isa(void)
{
    static const char *const names[GRD_ISA_COUNT] = {"portable", "x86-64-v2", "x86-64-v3", "x86-64-v4"};
    return names[grd_cpu_level()];
}

/* ---- cgroups -------------------------------------------------------------------------------------------------------- */

/* Writes the path of this process's cgroup, such as "/a/b", to `ret_path`, which has room for `size` bytes. `controller` selects the cgroup: "cpu" or
 * "memory", or "" for cgroup version 2. Returns false if there is none. */
static bool cgroup_path(const char *controller, char *ret_path, size_t size)
{
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (file == NULL)
        return false;
    char line[PATH_MAX + 256];
    bool found = false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        /* A line is like "4:cpu,cpuacct:/a/b" (cgroup version 1) or "0::/a/b" (version 2). */
        char *list = strchr(line, ':');
        char *path = list != NULL ? strchr(list + 1, ':') : NULL;
        if (path == NULL)
            continue;
        *path++ = '\0';
        path[strcspn(path, "\n")] = '\0';
        list++;
        if (*controller == '\0') {
            found = *list == '\0';
        } else {
            char *rest = NULL;
            for (char *word = strtok_r(list, ",", &rest); word != NULL && !found; word = strtok_r(NULL, ",", &rest))
                found = strcmp(word, controller) == 0;
        }
        if (found)
            snprintf(ret_path, size, "%s", path);
    }
    fclose(file);
    return found;
}

/* Reads up to two numbers from the file root/path/name of a cgroup. Returns how many numbers it read. This is 0 or negative if the file has no
 * numbers or does not exist. */
static int read_numbers(const char *root, const char *path, const char *name, double *ret_first, double *ret_second)
{
    char full[2 * PATH_MAX];
    snprintf(full, sizeof full, "%s%s/%s", root, path, name);
    FILE *file = fopen(full, "re");
    if (file == NULL)
        return 0;
    const int n = fscanf(file, "%lf %lf", ret_first, ret_second);
    fclose(file);
    return n;
}

/* Tells where the files of a cgroup contain a limit. The limit is the first number in the file root/<cgroup>/name, divided by the first number in the
 * file root/<cgroup>/divisor. If `divisor` is NULL, the divisor is the second number in the file root/<cgroup>/name, or 1 if that file has
 * only one number. `controller` is "" for cgroup version 2. */
struct restriction {
    const char *controller, *root, *name, *divisor;
};

/* Returns a limit of the cgroup at `path`. `r` says in which files of the cgroup the limit and its divisor are. Returns a negative
 * number if there is no such limit. */
static double value_of(const struct restriction *r, const char *path)
{
    double value, divisor = 1, none;
    const int n = read_numbers(r->root, path, r->name, &value, &divisor);
    if (n < 1 || (r->divisor != NULL && read_numbers(r->root, path, r->divisor, &divisor, &none) < 1))
        return -1;
    return divisor > 0 ? value / divisor : -1;
}

/* Returns the smallest of `least` and the limits of this process's cgroup and of the cgroups above it. `restriction` says which limit of a cgroup is
 * meant. */
static double least_value(struct restriction restriction, double least)
{
    char path[PATH_MAX];
    if (!cgroup_path(restriction.controller, path, sizeof path))
        return least;
    for (;;) {
        double v = value_of(&restriction, path);
        if (v > 0 && v < least)
            least = v;
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return least;
        *slash = '\0';
    }
}

int grd_cpu_count(void)
{
    double count = (double)sysconf(_SC_NPROCESSORS_ONLN);
#ifdef __linux__
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < count)
        count = CPU_COUNT(&set);
    count = least_value((struct restriction){"", "/sys/fs/cgroup", "cpu.max", NULL}, count);
    count = least_value((struct restriction){"cpu", "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us"}, count);
#endif
    int whole = (int)count;
    whole += whole < count; /* round up: a quota of 1.5 cores keeps two threads busy */
    return whole > 1 ? whole : 1;
}

static int64_t system_memory;

static void find_system_memory(void)
{
    double bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (bytes <= 0)
        bytes = (double)(INT64_C(1) << 30);
#ifdef __linux__
    bytes = least_value((struct restriction){"", "/sys/fs/cgroup", "memory.max", NULL}, bytes);
    bytes = least_value((struct restriction){"memory", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", NULL}, bytes);
#endif
    system_memory = (int64_t)bytes;
}

int64_t grd_system_memory(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_system_memory);
    return system_memory;
}
