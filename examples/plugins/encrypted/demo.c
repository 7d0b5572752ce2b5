/* Computes sums and other linear functions of numbers that stay encrypted all the time.
 *
 * The program shows what works on encrypted tensors, what is refused, and how encrypted tensors are printed. The exit status is 1 if a decrypted
 * result is wrong. */
#include <stdio.h>

#include "encrypted.h"

static bool all_right = true;

/* Prints an encrypted tensor and its decrypted numbers, and compares these numbers with `wanted`. */
static void show(const char *what, grd_tensor *t, grd_tensor *wanted)
{
    printf("%s: ", what);
    grd_print(t);
    grd_tensor *plain = encrypted_reveal(t);
    printf("    revealed: ");
    grd_print(plain);
    all_right &= grd_equal(plain, wanted);
}

static void show_refusal(grd_tensor *t)
{
    all_right &= t == grd_failed;
    printf("refused: %s: %s\n", grd_error_class(grd_error_get()), grd_error_message());
    grd_error_clear();
}

int main(void)
{
    const grd_scope scope = grd_scope_open();
    grd_tensor *a = grd_from_data((const int64_t[]){1, 0, 0, 0, 1, 0}, grd_dims(2, 3), GRD_INT64);
    grd_tensor *b = grd_from_data((const int64_t[]){0, 0, 1, -7, 1, 0}, grd_dims(2, 3), GRD_INT64);
    grd_tensor *weights = grd_from_data((const int64_t[]){2, 3, 5, 7, 11, 13}, grd_dims(3, 2), GRD_INT64);
    grd_tensor *x = encrypted_from(a), *y = encrypted_from(b);

    show("x + y", grd_add(x, y), grd_add(a, b));
    show("x - 3 y", grd_sub(x, y, .alpha = 3), grd_sub(a, b, .alpha = 3));
    show("x + plain", grd_add(x, b), grd_add(a, b));
    show("-2 x", grd_mul_scalar(grd_neg(x), grd_int(2)), grd_mul_scalar(a, grd_int(-2)));
    show("x @ weights", grd_mm(x, weights), grd_mm(a, weights));
    show("second row", grd_select(y, 0, 1), grd_select(b, 0, 1));
    show("all together", grd_sum(grd_t(grd_add(x, y))), grd_sum(grd_add(a, b)));

    show_refusal(grd_mul(x, y));
    show_refusal(grd_exp(x));
    show_refusal(grd_add_(x, y));
    show_refusal(grd_add_scalar(x, grd_float(0.5)));
    show_refusal(encrypted_reveal(a));
    all_right &= grd_data(x) == NULL;

    /* Encrypting the same numbers twice gives different masked words, because each encryption has its own mask. */
    all_right &= !grd_equal(encrypted_masked(x), a) && !grd_equal(encrypted_masked(x), encrypted_masked(encrypted_from(a)));
    printf("%s\n", all_right && grd_ok() ? "all as in plain" : "NOT as in plain");
    grd_scope_close(scope);
    return all_right && grd_ok() ? 0 : 1;
}
