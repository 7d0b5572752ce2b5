/* Tests providers, which are alternative implementations of operators: which provider computes a call, which tensors it is given, and what happens
 * to its results and failures. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

/* ---- A provider registered by a plug-in ---------------------------------------------------------------------------------- */

struct seen {
    int calls;
    bool fails;
    int64_t sizes[2];
    grd_dtype dtype;
};

static bool takes_two_rows(const grd_op *op, const grd_value *args, void *context)
{
    (void)op, (void)context;
    return grd_size(args[0].v.tensor, 0) == 2;
}

/* An implementation of an operator, to be registered as a provider. It fills the result with sevens and records the result's sizes and dtype in
 * `context`. Returns false if the test asks it to fail. */
static bool write_sevens(const grd_op *op, const grd_value *args, grd_tensor *const *results, void *context)
{
    struct seen *seen = context;
    (void)op, (void)args;
    seen->calls++;
    for (int i = 0; i < 2 && i < grd_ndim(results[0]); i++)
        seen->sizes[i] = grd_size(results[0], i);
    seen->dtype = grd_tensor_dtype(results[0]);
    grd_fill_(results[0], grd_int(7));
    if (seen->fails)
        grd_error_set(GRD_ERROR_RUNTIME, "no convergence");
    return !seen->fails;
}

static double sum_of(grd_tensor *t)
{
    return grd_item_double(grd_sum(t, .dtype = GRD_FLOAT64));
}

static void expect_providers(const char *op, const char *names)
{
    assert_string_equal(grd_providers(op), names);
}

static struct seen mm, addmm, sort, cumsum;

static void test_grd_providers_lists_built_in_providers(void **state)
{
    (void)state;
    expect_providers("bmm", "blas native");
    expect_providers("add", "native");
    expect_providers("matmul", "");
    grd_providers("no_such_operator");
    expect_error(GRD_ERROR_RUNTIME, "there is no operator 'no_such_operator'");
}

static void test_a_provider_computes_the_calls_it_accepts(void **state)
{
    (void)state;
    grd_register_provider("mm", "sevens", takes_two_rows, write_sevens, &mm);
    expect_providers("mm", "sevens blas native");
    grd_tensor *a = grd_ones(grd_dims(2, 3)), *b = grd_ones(grd_dims(3, 4));
    assert_true(sum_of(grd_mm(a, b)) == 56 && mm.calls == 1);
    assert_true(mm.sizes[0] == 2 && mm.sizes[1] == 4 && mm.dtype == GRD_FLOAT32);
    assert_true(sum_of(grd_mm(b, grd_ones(grd_dims(4, 1)))) == 12 && mm.calls == 1); /* the provider refuses products with three rows */
    grd_tensor *out = grd_empty(grd_dims(0));
    assert_true(sum_of(grd_mm_out(out, a, b)) == 56 && grd_size(out, 1) == 4);
    /* The operator checks its arguments before it calls the provider (the registered replacement for its kernel), so the operator raises the
     * error. */
    grd_mm(a, a);
    expect_error(GRD_ERROR_RUNTIME, "mm: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)");
    assert_int_equal(mm.calls, 2);
}

static void test_backward_uses_the_provider(void **state)
{
    (void)state;
    grd_tensor *a = grd_set_requires_grad(grd_ones(grd_dims(2, 2)), true);
    grd_backward(grd_sum(grd_mm(a, a)));
    assert_true(grd_ok() && sum_of(grd_grad_of(a)) == 56);
}

static void test_a_failed_provider_leaves_in_place_operands_unchanged(void **state)
{
    (void)state;
    grd_register_provider("addmm", "sevens", NULL, write_sevens, &addmm);
    grd_tensor *c = grd_ones(grd_dims(2, 2)), *a = grd_ones(grd_dims(2, 2));
    const uint32_t version = grd_version_of(c);
    addmm.fails = true;
    grd_addmm_(c, a, a);
    expect_error(GRD_ERROR_RUNTIME, "addmm: no convergence");
    assert_true(sum_of(c) == 4 && grd_version_of(c) == version);
    addmm.fails = false;
    grd_addmm_(c, a, a);
    assert_true(sum_of(c) == 28 && grd_version_of(c) == version + 1);
    grd_addmm_(grd_ones(grd_dims(2)), a, a);
    expect_error(GRD_ERROR_RUNTIME, "addmm: output with shape [2] doesn't match the broadcast shape [2, 2]");
}

static void test_operators_with_several_results_can_have_providers(void **state)
{
    (void)state;
    grd_register_provider("sort", "sevens", NULL, write_sevens, &sort);
    grd_register_provider("cumsum", "sevens", NULL, write_sevens, &cumsum);
    const grd_sort_result sorted = grd_sort(grd_zeros(grd_dims(3)));
    assert_true(sum_of(sorted.values) == 21 && grd_tensor_dtype(sorted.indices) == GRD_INT64);
    assert_true(sum_of(grd_cumsum(grd_zeros(grd_dims(3), .dtype = GRD_INT32), 0)) == 21 && cumsum.dtype == GRD_INT64);
}

static void test_invalid_registrations_of_providers_are_refused(void **state)
{
    (void)state;
    grd_register_provider("no_such_operator", "sevens", NULL, write_sevens, NULL);
    expect_error(GRD_ERROR_RUNTIME, "there is no operator 'no_such_operator' to register a provider for");
    grd_register_provider("exp", "sevens", NULL, NULL, NULL);
    expect_error(GRD_ERROR_TYPE, "a provider is a function, not NULL");
    grd_register_provider("exp", "se vens", NULL, write_sevens, NULL);
    expect_error(GRD_ERROR_VALUE, "'se vens' cannot be a provider's name: letters, digits and '_', at most 63");
    grd_register_provider("matmul", "sevens", NULL, write_sevens, NULL);
    expect_error(GRD_ERROR_RUNTIME, "operator 'matmul' cannot have a provider: it is made of other operators");
    grd_register_provider("select", "sevens", NULL, write_sevens, NULL);
    expect_error(GRD_ERROR_RUNTIME, "operator 'select' cannot have a provider: it is a view");
    grd_register_provider("bmm", "blas", NULL, write_sevens, NULL);
    expect_error(GRD_ERROR_RUNTIME, "operator 'bmm' has a provider 'blas' already");
}

/* ---- GRADUS_PROVIDER: it is read once per process, so each setting is tested in a new process ------------------------------ */

/* Path of this program. A test starts the program again with GRADUS_PROVIDER set, and the child prints the sum of a matrix product, or the error. */
static const char *program;

static void test_products_in_a_child(const char *wish, const char *expected)
{
    char command[512], line[128] = "";
    snprintf(command, sizeof command, "GRADUS_PROVIDER='%s' GRADUS_PROVIDER_CHILD=1 %s 2>&1", wish, program);
    FILE *child = popen(command, "r");
    assert_non_null(child);
    assert_non_null(fgets(line, sizeof line, child));
    pclose(child);
    line[strcspn(line, "\n")] = '\0';
    assert_string_equal(line, expected);
}

static int run_as_child(void)
{
    static struct seen seen;
    const grd_scope scope = grd_scope_open();
    grd_register_provider("mm", "sevens", NULL, write_sevens, &seen);
    const double sum = sum_of(grd_mm(grd_ones(grd_dims(1, 2)), grd_ones(grd_dims(2, 1))));
    if (grd_ok())
        printf("%g\n", sum);
    else
        printf("%s\n", grd_error_message());
    grd_scope_close(scope);
    return 0;
}

static void test_gradus_provider_selects_and_excludes_providers(void **state)
{
    (void)state;
    test_products_in_a_child("", "7");
    test_products_in_a_child("mm:native", "2");
    test_products_in_a_child("-sevens", "2");
    test_products_in_a_child("mm:-sevens", "2");
    test_products_in_a_child("bmm:-sevens", "7");
    test_products_in_a_child("-sevens,mm:sevens", "7");
    test_products_in_a_child("-sevens,-native,-blas",
                             "mm: GRADUS_PROVIDER excludes every provider of this call; available are: sevens blas native");
    test_products_in_a_child("mm:", "gradus: GRADUS_PROVIDER: 'mm:' is not understood: say operator:provider or -provider");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(test_grd_providers_lists_built_in_providers),
        IN_SCOPE(test_a_provider_computes_the_calls_it_accepts),
        IN_SCOPE(test_backward_uses_the_provider),
        IN_SCOPE(test_a_failed_provider_leaves_in_place_operands_unchanged),
        IN_SCOPE(test_operators_with_several_results_can_have_providers),
        IN_SCOPE(test_invalid_registrations_of_providers_are_refused),
        IN_SCOPE(test_gradus_provider_selects_and_excludes_providers),
    };
    (void)argc;
    program = argv[0];
    if (getenv("GRADUS_PROVIDER_CHILD") != NULL)
        return run_as_child();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
