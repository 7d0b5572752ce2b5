/* A device whose memory the CPU cannot access.
 *
 * All tensors of the device are in one arena of pages without access rights. A kernel or a copy gives itself access to the arena while it works. At
 * any other time the program ends with SIGSEGV if it, or the library, dereferences an address in the arena. A program that runs on this device
 * therefore shows that nothing reads device memory except through the device.
 *
 * The device has kernels for add, sub, mul, relu and neg of contiguous float32 tensors of one shape. Other operands and all other operators use
 * the library's fallback to the CPU. The device's name is VAULT_NAME, so the file can be built into several devices that one program uses
 * together. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <gradus/gradus.h>

#ifndef VAULT_NAME
#define VAULT_NAME "vault"
#endif

enum { DEVICES = 2, ALIGNMENT = 64 };
/* The size of the reserved address range. A page in this range takes memory only once it is written. */
#define ARENA_BYTES ((int64_t)1 << 30)

/* ---- The arena --------------------------------------------------------------------------------------------------------------- */

/* A part of the arena, in use or free. The parts form a list ordered by address. The list is stored outside the arena. */
struct piece {
    char *start;
    int64_t bytes;
    bool used;
    struct piece *next;
};

static char *arena;
static struct piece *pieces;
static pthread_mutex_t pieces_lock = PTHREAD_MUTEX_INITIALIZER;

static int open_count;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

/* Makes the arena, i.e. the device's memory, readable and writable until close_arena is called. If several threads have opened the arena, it stays
 * accessible until the last of them closes it. Returns false, with an error set, if the system refuses. */
static bool open_arena(void)
{
    pthread_mutex_lock(&open_lock);
    const bool opened = open_count > 0 || mprotect(arena, (size_t)ARENA_BYTES, PROT_READ | PROT_WRITE) == 0;
    open_count += opened;
    pthread_mutex_unlock(&open_lock);
    if (!opened)
        grd_error_set(GRD_ERROR_MEMORY, VAULT_NAME ": the arena cannot be opened");
    return opened;
}

static void close_arena(void)
{
    pthread_mutex_lock(&open_lock);
    if (--open_count == 0)
        mprotect(arena, (size_t)ARENA_BYTES, PROT_NONE);
    pthread_mutex_unlock(&open_lock);
}

static struct piece *new_piece(char *start, int64_t bytes, struct piece *next)
{
    struct piece *piece = malloc(sizeof *piece);
    if (piece != NULL)
        *piece = (struct piece){start, bytes, false, next};
    return piece;
}

/* Finds the first free part of the arena that has at least `bytes` bytes, cuts it to this size, marks it as used and returns it. Returns NULL if
 * there is no such part. */
static struct piece *take_piece(int64_t bytes)
{
    struct piece *piece = pieces;
    while (piece != NULL && (piece->used || piece->bytes < bytes))
        piece = piece->next;
    if (piece == NULL)
        return NULL;
    if (piece->bytes > bytes) {
        struct piece *rest = new_piece(piece->start + bytes, piece->bytes - bytes, piece->next);
        if (rest == NULL)
            return NULL;
        piece->next = rest;
        piece->bytes = bytes;
    }
    piece->used = true;
    return piece;
}

static void *vault_allocate(grd_device device, int64_t bytes)
{
    (void)device;
    if (bytes > ARENA_BYTES)
        return NULL;
    pthread_mutex_lock(&pieces_lock);
    const struct piece *piece = take_piece((bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    pthread_mutex_unlock(&pieces_lock);
    return piece != NULL ? piece->start : NULL;
}

static void join_with_next(struct piece *piece)
{
    struct piece *next = piece->next;
    if (next == NULL || next->used)
        return;
    piece->bytes += next->bytes;
    piece->next = next->next;
    free(next);
}

static void vault_release(grd_device device, void *data, int64_t bytes)
{
    (void)device, (void)bytes;
    pthread_mutex_lock(&pieces_lock);
    struct piece *piece = pieces, *before = NULL;
    for (; piece->start != data; piece = piece->next)
        before = piece;
    piece->used = false;
    join_with_next(piece);
    if (before != NULL && !before->used)
        join_with_next(before);
    pthread_mutex_unlock(&pieces_lock);
}

static void vault_copy(void *to, grd_device to_device, const void *from, grd_device from_device, int64_t bytes)
{
    (void)to_device, (void)from_device;
    if (!open_arena())
        return;
    memcpy(to, from, (size_t)bytes);
    close_arena();
}

/* ---- Kernels ------------------------------------------------------------------------------------------------------------------- */

typedef void loop(int64_t n, float *to, const float *a, const float *b);

static void add_loop(int64_t n, float *to, const float *a, const float *b)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = a[i] + b[i];
}

static void sub_loop(int64_t n, float *to, const float *a, const float *b)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = a[i] - b[i];
}

static void mul_loop(int64_t n, float *to, const float *a, const float *b)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = a[i] * b[i];
}

/* Computes relu. NaN stays NaN, because a comparison with NaN is false. */
static void relu_loop(int64_t n, float *to, const float *a, const float *b)
{
    (void)b;
    for (int64_t i = 0; i < n; i++)
        to[i] = a[i] < 0 ? 0 : a[i];
}

static void neg_loop(int64_t n, float *to, const float *a, const float *b)
{
    (void)b;
    for (int64_t i = 0; i < n; i++)
        to[i] = -a[i];
}

/* True if `t` is a contiguous float32 tensor with the sizes and the device of `like`. */
static bool is_plain(const grd_tensor *t, const grd_tensor *like)
{
    const grd_dims sizes = grd_sizes(t), wanted = grd_sizes(like);
    return grd_tensor_dtype(t) == GRD_FLOAT32 && grd_is_contiguous(t) && grd_tensor_device(t).type == grd_tensor_device(like).type &&
           sizes.n == wanted.n && memcmp(sizes.data, wanted.data, (size_t)sizes.n * sizeof *sizes.data) == 0;
}

static bool is_one(grd_scalar alpha)
{
    return alpha.kind != GRD_SCALAR_COMPLEX && grd_scalar_double(alpha) == 1;
}

/* True if the device's kernels can compute the call: if all tensors are contiguous float32 tensors of one shape, and the alpha of add and sub is
 * 1. */
static bool takes(const grd_op *op, const grd_value *args)
{
    for (int i = 0; i < grd_op_arg_count(op); i++)
        if (args[i].kind == GRD_KIND_TENSOR ? !is_plain(args[i].v.tensor, args[0].v.tensor) : !is_one(args[i].v.scalar))
            return false;
    return true;
}

struct work {
    loop *loop;
};

/* Computes the elements of a call's result. The library has already checked the call and allocated the result, which has the arguments' shape,
 * strides and dtype. `context` is the struct work with the loop to run. */
static bool compute(const grd_op *op, const grd_value *args, grd_tensor *const *results, void *context)
{
    const struct work *work = context;
    grd_tensor *const a = args[0].v.tensor, *const b = grd_op_arg_count(op) > 1 ? args[1].v.tensor : a;
    if (!open_arena())
        return false;
    work->loop(grd_numel(a), grd_data(results[0]), grd_data(a), grd_data(b));
    close_arena();
    return true;
}

static void run(loop *loop, const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    struct work work = {loop};
    if (takes(op, args))
        grd_run_planned(op, out, args, ret_results, compute, &work);
    else
        grd_cpu_fallback(op, keys, out, args, ret_results, NULL);
}

static void vault_add(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)context;
    run(add_loop, op, keys, out, args, ret_results);
}

static void vault_sub(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)context;
    run(sub_loop, op, keys, out, args, ret_results);
}

static void vault_mul(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)context;
    run(mul_loop, op, keys, out, args, ret_results);
}

static void vault_relu(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)context;
    run(relu_loop, op, keys, out, args, ret_results);
}

static void vault_neg(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)context;
    run(neg_loop, op, keys, out, args, ret_results);
}

/* ---- Loading --------------------------------------------------------------------------------------------------------------------- */

static bool load(void)
{
    static const grd_device_kernel kernels[] = {
        {"add", vault_add}, {"sub", vault_sub}, {"mul", vault_mul}, {"relu", vault_relu}, {"neg", vault_neg},
    };
    static const grd_device_type vault = {
        .name = VAULT_NAME,
        .count = DEVICES,
        .allocate = vault_allocate,
        .release = vault_release,
        .copy = vault_copy,
        .kernels = kernels,
        .nkernels = sizeof kernels / sizeof *kernels,
        .fallback = grd_cpu_fallback,
    };
    arena = mmap(NULL, (size_t)ARENA_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (arena == MAP_FAILED) {
        grd_error_set(GRD_ERROR_MEMORY, "the arena cannot be had");
        return false;
    }
    pieces = new_piece(arena, ARENA_BYTES, NULL);
    if (pieces != NULL && grd_device_register(&vault).type != GRD_DEVICE_NONE)
        return true;
    grd_error_set(GRD_ERROR_MEMORY, "out of memory");
    free(pieces);
    munmap(arena, (size_t)ARENA_BYTES);
    return false;
}

GRD_PLUGIN(VAULT_NAME, load)
