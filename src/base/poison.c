/* Marks memory for AddressSanitizer and memcheck. AddressSanitizer is called through weak functions, which exist only in a program that is built
 * with AddressSanitizer. Memcheck is called through instruction sequences that valgrind recognises (see valgrind/valgrind.h and memcheck.h). Without
 * valgrind these instructions change nothing. */
#include "base/poison.h"

#include <stdint.h>

void __asan_poison_memory_region(const volatile void *address, size_t size) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *address, size_t size) __attribute__((weak));

/* Client requests to memcheck, whose tool code is "MC", in the order of memcheck.h. */
enum memcheck_request { MAKE_NO_ACCESS, MAKE_UNDEFINED, MAKE_DEFINED, DISCARD, CHECK_IS_ADDRESSABLE, CHECK_IS_DEFINED };

/* Returns memcheck's answer to a request about `size` bytes at `bytes`, or `otherwise` if memcheck does not run. */
static uint64_t ask_memcheck(enum memcheck_request request, const void *bytes, size_t size, uint64_t otherwise)
{
    const uint64_t words[6] = {((uint64_t)'M' << 24 | (uint64_t)'C' << 16) + request, (uint64_t)(uintptr_t)bytes, size, 0, 0, 0};
    uint64_t answer = otherwise;
#if defined(__x86_64__)
    __asm__ volatile("rolq $3, %%rdi; rolq $13, %%rdi; rolq $61, %%rdi; rolq $51, %%rdi; xchgq %%rbx, %%rbx"
                     : "=d"(answer)
                     : "a"(words), "0"(otherwise)
                     : "cc", "memory");
#elif defined(__aarch64__)
    __asm__ volatile("mov x3, %1; mov x4, %2; ror x12, x12, #3; ror x12, x12, #13; ror x12, x12, #51; ror x12, x12, #61; "
                     "orr x10, x10, x10; mov %0, x3"
                     : "=r"(answer)
                     : "r"(otherwise), "r"(words)
                     : "cc", "memory", "x3", "x4");
#else
    (void)words;
#endif
    return answer;
}

bool grd_poison_is_watched(void)
{
    /* Memcheck answers 0 for bytes that may be used. Without memcheck the answer is 1, the last argument of ask_memcheck. */
    char byte = 0;
    return __asan_poison_memory_region != NULL || ask_memcheck(CHECK_IS_ADDRESSABLE, &byte, 1, 1) == 0;
}

void grd_poison(void *bytes, size_t size)
{
    if (__asan_poison_memory_region != NULL)
        __asan_poison_memory_region(bytes, size);
    ask_memcheck(MAKE_NO_ACCESS, bytes, size, 0);
}

void grd_unpoison(void *bytes, size_t size)
{
    if (__asan_unpoison_memory_region != NULL)
        __asan_unpoison_memory_region(bytes, size);
    ask_memcheck(MAKE_UNDEFINED, bytes, size, 0);
}
