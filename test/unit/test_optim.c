/* Tests optimizers and gradient clipping: steps compared with those recorded from PyTorch by test/record_optim.py, parameter groups, state and
 * errors. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "recorded_optim.h"
#include "support.h"

enum { STEPS = 4, PARAMETERS = 2 };
static const int64_t counts[PARAMETERS] = {13, 6};

/* ---- The parameters and gradients of the recording ------------------------------------------------------------------------------ */

static grd_tensor *shaped(int parameter, const float *values)
{
    grd_tensor *t = grd_from_data(values, grd_dims(counts[parameter]), GRD_FLOAT32);
    return parameter == 0 ? t : grd_view(t, grd_dims(2, 3));
}

static grd_tensor *start_of(int parameter)
{
    float values[13];
    for (int i = 0; i < counts[parameter]; i++)
        values[i] = (float)(i % 5 - 2) / 2;
    return grd_set_requires_grad(grd_clone(shaped(parameter, values)), true);
}

static grd_tensor *gradient_of(int parameter, int step)
{
    float values[13];
    for (int i = 0; i < counts[parameter]; i++)
        values[i] = (float)((i * 7 + step * 5) % 11 - 5) / 4;
    return grd_clone(shaped(parameter, values));
}

static void start(grd_tensor **ret_parameters)
{
    for (int i = 0; i < PARAMETERS; i++)
        ret_parameters[i] = start_of(i);
}

/* Repeats the recorded steps `from` to `to` - 1. In step 0 the second parameter has no gradient. */
static void take_steps(grd_optimizer *optimizer, grd_tensor **parameters, int from, int to)
{
    for (int step = from; step < to; step++) {
        for (int i = 0; i < PARAMETERS; i++)
            grd_set_grad(parameters[i], step == 0 && i == 1 ? NULL : gradient_of(i, step));
        grd_optimizer_step(optimizer);
    }
}

/* Checks that each element differs from the recorded one by at most `ulps` ulps of the tensor's largest recorded element. If `ulps` is 0, the bits
 * must be equal, except at instruction-set levels below x86-64-v3. These have no FMA and round a product before adding it, so each step may differ
 * in the last place (kernel/cpu/optim.c). */
static void expect_recorded(grd_tensor *const *tensors, const float *recorded, int ulps)
{
    assert_true(grd_ok());
    if (grd_cpu_level() < GRD_ISA_V3 && ulps < 2)
        ulps = 2;
    for (int i = 0; i < PARAMETERS; i++) {
        float values[13], largest = 0;
        grd_to_memory(tensors[i], values, GRD_FLOAT32);
        for (int64_t k = 0; k < counts[i]; k++)
            largest = fmaxf(largest, fabsf(recorded[k]));
        for (int64_t k = 0; k < counts[i]; k++)
            assert_true(fabsf(values[k] - recorded[k]) <= (float)ulps * FLT_EPSILON * largest);
        recorded += counts[i];
    }
}

/* Returns a new optimizer with the class and options that test/record_optim.py uses under this name. */
static grd_optimizer *make(const char *name, grd_tensors parameters)
{
    if (strcmp(name, "sgd") == 0)
        return grd_sgd_new(parameters, 0.1);
    if (strcmp(name, "sgd_momentum") == 0)
        return grd_sgd_new(parameters, 0.1, .momentum = 0.9, .dampening = 0.25, .weight_decay = 0.01, .maximize = true);
    if (strcmp(name, "sgd_nesterov") == 0)
        return grd_sgd_new(parameters, 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true);
    if (strcmp(name, "adam") == 0)
        return grd_adam_new(parameters, 0.01);
    if (strcmp(name, "adamw") == 0)
        return grd_adamw_new(parameters, 0.01);
    if (strcmp(name, "adamw_all") == 0)
        return grd_adamw_new(parameters, 0.01, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-4, .weight_decay = 0.1, .amsgrad = true,
                             .maximize = true);
    return grd_adam_new(parameters, 0.01, .beta1 = 0.4, .beta2 = 0.99, .eps = 1e-4, .weight_decay = 0.1, .amsgrad = true, .maximize = true);
}

/* Gradus does Adam's arithmetic in another order than PyTorch, so the parameters may differ by up to `ulps` units in the last place. */
static const struct {
    const char *name;
    const float *recorded;
    int ulps;
} optimizers[] = {
    {"sgd", sgd, 0},     {"sgd_momentum", sgd_momentum, 0}, {"sgd_nesterov", sgd_nesterov, 0}, {"adam", adam, 4}, {"adam_all", adam_all, 4},
    {"adamw", adamw, 4}, {"adamw_all", adamw_all, 4},
};

static void test_optimizer_steps_equal_pytorch(void **state)
{
    (void)state;
    for (int k = 0; k < GRD_LENGTH(optimizers); k++) {
        grd_tensor *parameters[PARAMETERS];
        start(parameters);
        grd_optimizer *optimizer = make(optimizers[k].name, grd_tensors_from(parameters, PARAMETERS));
        take_steps(optimizer, parameters, 0, STEPS);
        expect_recorded(parameters, optimizers[k].recorded, optimizers[k].ulps);
        grd_optimizer_drop(optimizer);
    }
}

/* ---- State ---------------------------------------------------------------------------------------------------------------------------- */

static void test_optimizer_state_can_be_copied_to_another_optimizer(void **state)
{
    (void)state;
    for (int k = 0; k < GRD_LENGTH(optimizers); k++) {
        grd_tensor *parameters[PARAMETERS];
        start(parameters);
        const grd_tensors list = grd_tensors_from(parameters, PARAMETERS);
        grd_optimizer *first = make(optimizers[k].name, list), *second = make(optimizers[k].name, list);
        take_steps(first, parameters, 0, STEPS / 2);
        for (int i = 0; i < PARAMETERS; i++)
            for (int64_t s = 0; grd_optimizer_state_name(first, s) != NULL; s++) {
                const char *name = grd_optimizer_state_name(first, s);
                grd_optimizer_set_state(second, parameters[i], name, grd_optimizer_get_state(first, parameters[i], name));
            }
        grd_optimizer_drop(first);
        take_steps(second, parameters, STEPS / 2, STEPS);
        expect_recorded(parameters, optimizers[k].recorded, optimizers[k].ulps);
        grd_optimizer_drop(second);
    }
}

static void test_optimizer_state_is_read_and_set_by_name(void **state)
{
    (void)state;
    grd_tensor *parameters[PARAMETERS];
    start(parameters);
    grd_optimizer *optimizer = grd_adam_new(grd_tensors_from(parameters, PARAMETERS), 0.01);
    assert_string_equal(grd_optimizer_state_name(optimizer, 0), "step");
    assert_string_equal(grd_optimizer_state_name(optimizer, 3), "max_exp_avg_sq");
    assert_null(grd_optimizer_state_name(optimizer, 4));
    assert_null(grd_optimizer_state_name(optimizer, -1));
    assert_null(grd_optimizer_get_state(optimizer, parameters[0], "exp_avg"));
    take_steps(optimizer, parameters, 0, 3);
    assert_true(grd_item_double(grd_optimizer_get_state(optimizer, parameters[0], "step")) == 3);
    assert_true(grd_item_double(grd_optimizer_get_state(optimizer, parameters[1], "step")) == 2);
    assert_null(grd_optimizer_get_state(optimizer, parameters[0], "max_exp_avg_sq"));

    grd_tensor *kept = grd_optimizer_get_state(optimizer, parameters[0], "exp_avg");
    grd_tensor *doubles = grd_full(grd_dims(13), grd_int(7), .dtype = GRD_FLOAT64);
    grd_optimizer_set_state(optimizer, parameters[0], "exp_avg", doubles);
    grd_tensor *copy = grd_optimizer_get_state(optimizer, parameters[0], "exp_avg");
    assert_int_equal(grd_tensor_dtype(copy), GRD_FLOAT32);
    assert_true(grd_item_double(grd_select(copy, 0, 12)) == 7);
    assert_ptr_not_equal(copy, kept);
    grd_optimizer_set_state(optimizer, parameters[0], "step", grd_full(grd_dims(1), grd_int(9)));
    assert_true(grd_item_double(grd_optimizer_get_state(optimizer, parameters[0], "step")) == 9);
    grd_optimizer_set_state(optimizer, parameters[0], "exp_avg", NULL);
    assert_null(grd_optimizer_get_state(optimizer, parameters[0], "exp_avg"));
    assert_true(grd_ok());

    grd_optimizer_set_state(optimizer, parameters[0], "exp_avg", grd_zeros(grd_dims(12)));
    expect_error(GRD_ERROR_RUNTIME, "grd_optimizer_set_state: 'exp_avg' does not have the sizes of its parameter");
    assert_null(grd_optimizer_get_state(optimizer, parameters[0], "momentum_buffer"));
    expect_error(GRD_ERROR_VALUE, "grd_optimizer_get_state: Adam has no state 'momentum_buffer'");
    grd_optimizer_get_state(optimizer, doubles, "step");
    expect_error(GRD_ERROR_VALUE, "grd_optimizer_get_state: the tensor is not a parameter of the optimizer");
    grd_optimizer_drop(optimizer);
}

/* ---- Groups and options ----------------------------------------------------------------------------------------------------------------- */

static void test_parameter_groups_have_separate_options(void **state)
{
    (void)state;
    grd_tensor *together[PARAMETERS], *apart[PARAMETERS];
    start(together);
    start(apart);
    grd_optimizer *optimizer = grd_sgd_new(grd_tensors(together[0]), 0.5, .momentum = 0.9);
    assert_int_equal(grd_optimizer_add_group(optimizer, grd_tensors(together[1])), 1);
    assert_int_equal(grd_optimizer_group_count(optimizer), 2);
    assert_ptr_equal(grd_optimizer_parameter(optimizer, 1, 0), together[1]);
    assert_null(grd_optimizer_parameter(optimizer, 1, 1));
    assert_true(grd_optimizer_get_option(optimizer, 1, "momentum") == 0.9);
    grd_optimizer_set_option(optimizer, 1, "lr", 0.25);
    assert_true(grd_optimizer_get_option(optimizer, 0, "lr") == 0.5 && grd_optimizer_get_option(optimizer, 1, "lr") == 0.25);
    take_steps(optimizer, together, 0, STEPS);

    grd_optimizer *first = grd_sgd_new(grd_tensors(apart[0]), 0.5, .momentum = 0.9);
    grd_optimizer *second = grd_sgd_new(grd_tensors(apart[1]), 0.25, .momentum = 0.9);
    take_steps(first, apart, 0, STEPS);
    for (int step = 1; step < STEPS; step++) {
        grd_set_grad(apart[1], gradient_of(1, step));
        grd_optimizer_step(second);
    }
    for (int i = 0; i < PARAMETERS; i++)
        assert_true(grd_equal(together[i], apart[i]));
    grd_optimizer_drop(optimizer);
    grd_optimizer_drop(first);
    grd_optimizer_drop(second);
}

static void test_zero_grad_removes_gradients(void **state)
{
    (void)state;
    grd_tensor *parameters[PARAMETERS];
    start(parameters);
    grd_optimizer *optimizer = grd_adamw_new(grd_tensors_from(parameters, PARAMETERS), 0.1);
    take_steps(optimizer, parameters, 1, 2);
    assert_non_null(grd_grad_of(parameters[1]));
    grd_optimizer_zero_grad(optimizer);
    assert_null(grd_grad_of(parameters[0]));
    assert_null(grd_grad_of(parameters[1]));
    grd_tensor *before = grd_clone(parameters[0]);
    grd_optimizer_step(optimizer); /* no parameter has a gradient, so the step does nothing */
    assert_true(grd_equal(before, parameters[0]) && grd_ok());
    grd_optimizer_drop(optimizer);
}

/* Dropping an optimizer frees its state and its references to the parameters. The caller's references stay valid. */
static void test_dropping_an_optimizer_frees_its_memory(void **state)
{
    (void)state;
    const int64_t before = grd_memory_get_stats().blocks;
    grd_scope scope = grd_scope_open();
    grd_tensor *parameters[PARAMETERS];
    start(parameters);
    grd_optimizer *optimizer = grd_adam_new(grd_tensors(parameters[0]), 0.1, .amsgrad = true);
    grd_optimizer_add_group(optimizer, grd_tensors(parameters[1]));
    take_steps(optimizer, parameters, 0, 2);
    grd_scope_close(scope);
    assert_true(grd_ok());
    assert_true(grd_numel(grd_optimizer_parameter(optimizer, 0, 0)) == 13);
    grd_optimizer_drop(optimizer);
    assert_int_equal(grd_memory_get_stats().blocks, before);
    grd_optimizer_drop(NULL);
}

/* ---- Clipping --------------------------------------------------------------------------------------------------------------------------------- */

static void test_clip_grad_norm_equals_pytorch(void **state)
{
    (void)state;
    const double orders[] = {2, 1, 3, (double)INFINITY};
    const float *const recorded[] = {clip_2, clip_1, clip_3, clip_inf};
    for (int k = 0; k < GRD_LENGTH(orders); k++) {
        grd_tensor *parameters[PARAMETERS], *grads[PARAMETERS];
        start(parameters);
        for (int i = 0; i < PARAMETERS; i++)
            grd_set_grad(parameters[i], gradient_of(i, 1));
        grd_tensor *total = grd_clip_grad_norm(grd_tensors_from(parameters, PARAMETERS), 0.75, .norm_type = orders[k]);
        assert_true((float)grd_item_double(total) == recorded[k][0]);
        for (int i = 0; i < PARAMETERS; i++)
            grads[i] = grd_grad_of(parameters[i]);
        expect_recorded(grads, recorded[k] + 1, 0);
    }
}

static void test_clipping_of_missing_and_nonfinite_gradients(void **state)
{
    (void)state;
    grd_tensor *w = grd_ones(grd_dims(2), .requires_grad = true), *without = grd_ones(grd_dims(2), .requires_grad = true);
    assert_true(grd_item_double(grd_clip_grad_norm(grd_tensors(without), 1)) == 0);
    assert_true(grd_item_double(grd_with_clip_grad_norm(grd_tensors_from(NULL, 0), 1, NULL)) == 0);
    grd_set_grad(w, grd_full(grd_dims(2), grd_float(INFINITY)));
    assert_ptr_equal(grd_clip_grad_norm(grd_tensors(w, without), 1, .error_if_nonfinite = true), grd_failed);
    expect_error(GRD_ERROR_RUNTIME,
                 "grd_clip_grad_norm: The total norm of order 2 for gradients from `parameters` is non-finite, so it cannot be clipped. To "
                 "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`");
    assert_true(isinf(grd_item_double(grd_select(grd_grad_of(w), 0, 0))));
    assert_true(isinf(grd_item_double(grd_clip_grad_norm(grd_tensors(w, without), 1))));
    assert_true(isnan(grd_item_double(grd_select(grd_grad_of(w), 0, 0))));

    grd_set_grad(w, grd_from_data((const float[]){-3, 0.5f}, grd_dims(2), GRD_FLOAT32));
    grd_clip_grad_value(grd_tensors(w, without), 1);
    assert_true(grd_item_double(grd_select(grd_grad_of(w), 0, 0)) == -1 && grd_item_double(grd_select(grd_grad_of(w), 0, 1)) == 0.5);
    assert_true(grd_ok());
    grd_clip_grad_value(grd_tensors(w, NULL), 1);
    expect_error(GRD_ERROR_TYPE, "grd_clip_grad_value: entry 1 of argument 'parameters' must be a tensor, not NULL");
}

/* ---- Errors ------------------------------------------------------------------------------------------------------------------------------------ */

static void test_optimizer_options_out_of_range_are_refused(void **state)
{
    (void)state;
    grd_tensor *w = grd_ones(grd_dims(2), .requires_grad = true);
    const grd_tensors list = grd_tensors(w);
    assert_null(grd_sgd_new(list, -1));
    expect_error(GRD_ERROR_VALUE, "Invalid learning rate: -1");
    assert_null(grd_adam_new(list, NAN));
    expect_error(GRD_ERROR_VALUE, "Invalid learning rate: nan");
    assert_null(grd_sgd_new(list, 1, .momentum = -0.5));
    expect_error(GRD_ERROR_VALUE, "Invalid momentum value: -0.5");
    assert_null(grd_sgd_new(list, 1, .weight_decay = -0.5));
    expect_error(GRD_ERROR_VALUE, "Invalid weight_decay value: -0.5");
    assert_null(grd_sgd_new(list, 1, .nesterov = true));
    expect_error(GRD_ERROR_VALUE, "Nesterov momentum requires a momentum and zero dampening");
    assert_null(grd_adam_new(list, 1, .beta1 = 1));
    expect_error(GRD_ERROR_VALUE, "Invalid beta parameter at index 0: 1");
    assert_null(grd_adam_new(list, 1, .beta2 = -0.1));
    expect_error(GRD_ERROR_VALUE, "Invalid beta parameter at index 1: -0.1");
    assert_null(grd_adamw_new(list, 1, .eps = -1));
    expect_error(GRD_ERROR_VALUE, "Invalid epsilon value: -1");

    grd_optimizer *optimizer = grd_sgd_new(list, 1, .momentum = 0.5, .nesterov = true);
    grd_optimizer_set_option(optimizer, 0, "lr", -2);
    expect_error(GRD_ERROR_VALUE, "Invalid learning rate: -2");
    grd_optimizer_set_option(optimizer, 0, "momentum", 0);
    expect_error(GRD_ERROR_VALUE, "Nesterov momentum requires a momentum and zero dampening");
    grd_optimizer_set_option(optimizer, 0, "maximize", 2);
    expect_error(GRD_ERROR_VALUE, "Invalid maximize value: 2, which is neither 0 nor 1");
    assert_true(grd_optimizer_get_option(optimizer, 0, "lr") == 1 && grd_optimizer_get_option(optimizer, 0, "momentum") == 0.5);
    assert_true(isnan(grd_optimizer_get_option(optimizer, 0, "beta1")));
    expect_error(GRD_ERROR_VALUE, "grd_optimizer_get_option: SGD has no option 'beta1'");
    assert_true(isnan(grd_optimizer_get_option(optimizer, 1, "lr")));
    expect_error(GRD_ERROR_INDEX, "grd_optimizer_get_option: there is no group 1 among 1");
    grd_optimizer_drop(optimizer);
}

static void test_invalid_optimizer_parameters_are_refused(void **state)
{
    (void)state;
    grd_tensor *w = grd_ones(grd_dims(2), .requires_grad = true);
    assert_null(grd_with_sgd_new(grd_tensors_from(NULL, 0), 1, NULL));
    expect_error(GRD_ERROR_VALUE, "optimizer got an empty parameter list");
    assert_null(grd_sgd_new(grd_tensors(w, NULL), 1));
    expect_error(GRD_ERROR_TYPE, "grd_sgd_new: entry 1 of argument 'parameters' must be a tensor, not NULL");
    assert_null(grd_sgd_new(grd_tensors_from(NULL, 2), 1));
    expect_error(GRD_ERROR_TYPE, "grd_sgd_new: argument 'parameters' must be a list of tensors");
    assert_null(grd_sgd_new(grd_tensors(grd_exp(w)), 1));
    expect_error(GRD_ERROR_VALUE, "can't optimize a non-leaf Tensor");
    assert_null(grd_sgd_new(grd_tensors(w, w), 1));
    expect_error(GRD_ERROR_VALUE, "parameters 0 and 1 of the group are one tensor");
    grd_optimizer *optimizer = grd_sgd_new(grd_tensors(w), 1);
    assert_int_equal(grd_optimizer_add_group(optimizer, grd_tensors(w)), -1);
    expect_error(GRD_ERROR_VALUE, "some parameters appear in more than one parameter group");
    assert_int_equal(grd_optimizer_group_count(optimizer), 1);
    grd_optimizer_step(NULL);
    expect_error(GRD_ERROR_TYPE, "grd_optimizer_step: argument 'optimizer' must not be NULL");
    grd_error_set(GRD_ERROR_RUNTIME, "earlier");
    grd_optimizer_step(optimizer);
    assert_null(grd_sgd_new(grd_tensors(w), 1));
    expect_error(GRD_ERROR_RUNTIME, "earlier");
    grd_optimizer_drop(optimizer);
}

/* If an allocation fails during a step, the step raises MemoryError and can be repeated. The failed step leaves the parameters unchanged, except
 * in SGD with momentum. */
static void test_a_step_with_a_failed_allocation_can_be_repeated(void **state)
{
    (void)state;
    for (int k = 0; k < GRD_LENGTH(optimizers); k++) {
        grd_tensor *parameters[PARAMETERS];
        start(parameters);
        grd_optimizer *optimizer = make(optimizers[k].name, grd_tensors_from(parameters, PARAMETERS));
        take_steps(optimizer, parameters, 0, 1);
        for (int i = 0; i < PARAMETERS; i++)
            grd_set_grad(parameters[i], gradient_of(i, 1));
        bool failed = true;
        for (int n = 1; failed && n < 1000; n++) {
            grd_tensor *before = grd_clone(parameters[0]);
            grd_memory_fail_at(n, false);
            grd_optimizer_step(optimizer);
            grd_memory_fail_at(0, false);
            failed = !grd_ok();
            if (failed) {
                assert_int_equal(grd_error_get(), GRD_ERROR_MEMORY);
                grd_error_clear();
                /* SGD with momentum first updates the parameters that have a momentum buffer, so these may be changed already. */
                assert_true(grd_equal(before, parameters[0]) || strncmp(optimizers[k].name, "sgd_", 4) == 0);
            }
        }
        assert_false(failed);
        grd_optimizer_drop(optimizer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SCOPE(test_optimizer_steps_equal_pytorch),
        IN_SCOPE(test_optimizer_state_can_be_copied_to_another_optimizer),
        IN_SCOPE(test_optimizer_state_is_read_and_set_by_name),
        IN_SCOPE(test_parameter_groups_have_separate_options),
        IN_SCOPE(test_zero_grad_removes_gradients),
        IN_SCOPE(test_dropping_an_optimizer_frees_its_memory),
        IN_SCOPE(test_clip_grad_norm_equals_pytorch),
        IN_SCOPE(test_clipping_of_missing_and_nonfinite_gradients),
        IN_SCOPE(test_optimizer_options_out_of_range_are_refused),
        IN_SCOPE(test_invalid_optimizer_parameters_are_refused),
        IN_SCOPE(test_a_step_with_a_failed_allocation_can_be_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
