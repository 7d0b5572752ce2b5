/* Implements encrypted tensors, which encrypted.h describes. They are wrapper tensors: the library calls `serve` for every operator on them and never
 * reads their elements.
 *
 * Invariant: for every encrypted tensor, number = masked word - mask, modulo 2^64. */
#include "encrypted.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { MASKED, MASK, SHARES };

struct secret {
    grd_tensor *share[SHARES];
};

static void release(void *content)
{
    struct secret *secret = content;
    for (int i = 0; i < SHARES; i++)
        grd_drop(secret->share[i]);
    free(secret);
}

static grd_boxed_kernel serve;
static const grd_wrapper_type encrypted = {.name = "encrypted", .kernel = serve, .release = release};

static grd_tensor *wrap(grd_tensor *const *shares)
{
    struct secret *secret = grd_ok() ? malloc(sizeof *secret) : NULL;
    if (secret == NULL) {
        grd_error_set(GRD_ERROR_MEMORY, "encrypted: out of memory");
        return grd_failed;
    }
    for (int i = 0; i < SHARES; i++)
        secret->share[i] = grd_keep(shares[i]);
    grd_tensor *t = grd_wrap(&encrypted, grd_sizes(shares[MASKED]), GRD_INT64, secret);
    if (!grd_ok())
        release(secret);
    return t;
}

static const struct secret *secret_of(const grd_tensor *t)
{
    return grd_wrapper_content(t, &encrypted);
}

/* ---- Operators: each runs twice, on the masked words and on the mask ------------------------------------------------------------- */

/* The way in which an operator treats an unencrypted tensor among its arguments. */
enum rule {
    LINEAR, /* an unencrypted tensor is refused */
    SUM,    /* the unencrypted tensor is added to the masked words only, not to the mask */
    PRODUCT /* the unencrypted tensor is multiplied with the masked words and with the mask; two encrypted tensors cannot be multiplied */
};

static const struct {
    const char *op;
    enum rule rule;
} served[] = {
    {"neg", LINEAR},   {"sum", LINEAR}, {"select", LINEAR}, {"slice", LINEAR}, {"t", LINEAR},   {"view", LINEAR},
    {"clone", LINEAR}, {"add", SUM},    {"sub", SUM},       {"mul", PRODUCT},  {"mm", PRODUCT},
};

static bool find_rule(const char *name, enum rule *ret_rule)
{
    for (size_t i = 0; i < sizeof served / sizeof *served; i++)
        if (strcmp(served[i].op, name) == 0) {
            *ret_rule = served[i].rule;
            return true;
        }
    return false;
}

/* True if the rule allows the encrypted and unencrypted tensors of this call. */
static bool fits(const grd_op *op, enum rule rule, const grd_value *args)
{
    int secrets = 0, plain = 0;
    for (int i = 0; i < grd_op_arg_count(op); i++)
        if (args[i].kind == GRD_KIND_TENSOR && args[i].v.tensor != NULL)
            *(secret_of(args[i].v.tensor) != NULL ? &secrets : &plain) += 1;
    return rule == SUM || (rule == LINEAR && plain == 0) || (rule == PRODUCT && secrets == 1);
}

/* Calls `op` with each encrypted argument replaced by one of its two shares, and returns the result. The shares are the masked words, if
 * `share` is MASKED, or the masks, if `share` is MASK. If `rule` is SUM, unencrypted tensors are replaced by zeros in the call with MASK. */
static grd_tensor *run_on(int share, const grd_op *op, enum rule rule, const grd_value *args)
{
    grd_value near[GRD_MAX_ARGS], result;
    for (int i = 0; i < grd_op_arg_count(op); i++) {
        near[i] = args[i];
        if (args[i].kind != GRD_KIND_TENSOR || args[i].v.tensor == NULL)
            continue;
        const struct secret *secret = secret_of(args[i].v.tensor);
        if (secret != NULL)
            near[i].v.tensor = secret->share[share];
        else if (rule == SUM && share == MASK)
            near[i].v.tensor = grd_zeros_like(args[i].v.tensor);
    }
    grd_call(op, GRD_FUNCTIONAL, near, grd_op_arg_count(op), NULL, &result);
    if (grd_ok() && grd_tensor_dtype(result.v.tensor) != GRD_INT64)
        grd_error_set(GRD_ERROR_TYPE, "encrypted tensors are int64: the result of '%s' would be %s", grd_op_name(op),
                      grd_dtype_name(grd_tensor_dtype(result.v.tensor)));
    return result.v.tensor;
}

static void serve(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)keys, (void)context;
    enum rule rule;
    if (out != NULL || !find_rule(grd_op_name(op), &rule) || !fits(op, rule, args)) {
        grd_wrapper_refuse(&encrypted, op);
        return;
    }
    grd_tensor *shares[SHARES];
    for (int i = 0; i < SHARES; i++)
        shares[i] = run_on(i, op, rule, args);
    ret_results[0].v.tensor = wrap(shares);
}

/* ---- Encryption and decryption ------------------------------------------------------------------------------------------------------- */

/* Returns a tensor of unpredictable random words with the sizes of `like`. */
static grd_tensor *noise_like(grd_tensor *like)
{
    grd_tensor *noise = grd_empty(grd_sizes(like), .dtype = GRD_INT64);
    char *at = grd_data(noise);
    for (int64_t left = grd_ok() ? grd_storage_bytes(noise) : 0; left > 0;) {
        const ssize_t n = getrandom(at, (size_t)left, 0);
        if (n <= 0) {
            grd_error_set(GRD_ERROR_IO, "encrypted: the system gives no random numbers");
            return noise;
        }
        at += n;
        left -= n;
    }
    return noise;
}

grd_tensor *encrypted_from(grd_tensor *plain)
{
    if (grd_tensor_dtype(plain) != GRD_INT64 || grd_tensor_device(plain).type != GRD_DEVICE_CPU)
        grd_error_set(GRD_ERROR_TYPE, "encrypted_from: an int64 cpu tensor is required");
    if (!grd_ok())
        return grd_failed;
    grd_tensor *mask = noise_like(plain), *masked = grd_add(plain, mask);
    return wrap((grd_tensor *[]){masked, mask});
}

static const struct secret *required(const grd_tensor *t, const char *function)
{
    const struct secret *secret = secret_of(t);
    if (secret == NULL)
        grd_error_set(GRD_ERROR_TYPE, "%s: an encrypted tensor is required", function);
    return secret;
}

grd_tensor *encrypted_reveal(grd_tensor *t)
{
    const struct secret *secret = required(t, "encrypted_reveal");
    return secret != NULL ? grd_sub(secret->share[MASKED], secret->share[MASK]) : grd_failed;
}

grd_tensor *encrypted_masked(grd_tensor *t)
{
    const struct secret *secret = required(t, "encrypted_masked");
    return secret != NULL ? grd_clone(secret->share[MASKED]) : grd_failed;
}
