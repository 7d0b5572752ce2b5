/* Runs a fuzz target without libFuzzer on bytes from a deterministic generator, so that a short run can serve as a test and a failure can be
 * reproduced.
 *
 *   fuzz_shape              executes the target 20,000 times (or GRADUS_FUZZ_RUNS times)
 *   fuzz_shape run 123      executes only run number 123
 *   fuzz_shape FILE...      executes the target on inputs that libFuzzer has saved in files */
#include <signal.h>
#include <unistd.h>

#include "fuzz.h"

enum { RUNS = 20000, MAX_SIZE = 256 };

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static const char *program;
static uint64_t current;

/* Signal handler that prints the command that reproduces the failing run, and then lets the signal end the program. */
static void name_the_run(int signal_number)
{
    char text[256];
    const int length = snprintf(text, sizeof text, "reproduce: %s run %llu\n", program, (unsigned long long)current);
    if (write(STDERR_FILENO, text, (size_t)length) < 0)
        _exit(3);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

/* Executes the target on the bytes of run number `run`. Half of the runs use random bytes. The other half use mostly bytes below 8. */
static void execute(uint64_t run)
{
    uint8_t data[MAX_SIZE];
    current = run;
    uint64_t state = run * 0x2545f4914f6cdd1du;
    const size_t size = next_random(&state) % (MAX_SIZE + 1);
    const bool small = next_random(&state) % 2 == 0;
    for (size_t i = 0; i < size; i++) {
        const uint64_t random = next_random(&state);
        data[i] = (uint8_t)(small && random >> 32 & 3 ? random % 8 : random);
    }
    LLVMFuzzerTestOneInput(data, size);
}

static int execute_file(const char *path)
{
    static uint8_t data[1 << 20];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    const size_t size = fread(data, 1, sizeof data, file);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    return 0;
}

int main(int argc, char **argv)
{
    static const int signals[] = {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGTRAP};
    program = argv[0];
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        signal(signals[i], name_the_run);
    if (argc == 3 && strcmp(argv[1], "run") == 0) {
        execute(strtoull(argv[2], NULL, 10));
        return 0;
    }
    int failed = 0;
    for (int i = 1; i < argc; i++)
        failed |= execute_file(argv[i]);
    const char *wanted = getenv("GRADUS_FUZZ_RUNS");
    const uint64_t runs = argc > 1 ? 0 : wanted != NULL ? strtoull(wanted, NULL, 10) : RUNS;
    for (uint64_t run = 0; run < runs; run++)
        execute(run);
    return failed;
}
