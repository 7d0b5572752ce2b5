/* Implements the optimizers. An optimizer has groups of parameters with their options and state, and calls an operator that updates the
 * parameters of a group. The arithmetic is in these operators (schema/optim.toml).
 * Invariants
 * - The optimizer owns a reference to every parameter and to every tensor of its state. No parameter occurs twice.
 * - Options are in their ranges. An option that is a bool is 0 or 1. */
#include "optim/optim.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/object.h"
#include "core/given.h"
#include "core/shape.h"
#include "core/tensor.h"
#include "gradus/autograd.h"
#include "gen/uses/optim/optimizer.h"
#include "gradus/optim.h"

enum { MAX_OPTIONS = 7, MAX_STATES = 4 };

struct parameter {
    grd_tensor *tensor;
    grd_tensor *state[MAX_STATES]; /* owned; a state tensor is NULL until an update makes it or the user sets it */
};

struct group {
    struct parameter *parameters;
    int64_t n;
    double options[MAX_OPTIONS];
};

/* An option that a kind of optimizer has, such as the learning rate. */
struct option {
    const char *name;
    const char *noun;    /* the name of the option in the error for a value out of range */
    double least, below; /* a value of the option must be at least `least` and less than `below` */
    bool is_bool;
};

struct kind {
    const char *name;
    const struct option *options;         /* the options, ending with one whose name is NULL */
    const char *const *states;            /* names of the state tensors, ending with NULL */
    bool (*check)(const double *options); /* true if options that depend on each other fit together; NULL if nothing is to be checked */
    /* Updates the `n` parameters in `chosen`, which belong to `group`, with the gradients grads[0] to grads[n - 1]. */
    void (*step)(const struct kind *kind, struct group *group, struct parameter **chosen, grd_tensor **grads, int64_t n);
    bool decoupled; /* true if weight decay changes the parameters directly and not the gradients (AdamW) */
};

struct grd_optimizer {
    const struct kind *kind;
    struct group *groups;
    int64_t ngroups, capacity;
};

enum { PARAMETER = -1 };

/* Returns a list with state tensor number `state` of each of the `n` parameters in `chosen`. If `state` is PARAMETER, the list holds the parameters
 * themselves. The innermost scope owns the list. Returns an empty list, with MemoryError, on failure. */
static grd_tensors list_of(struct parameter *const *chosen, int64_t n, int state)
{
    grd_tensor **list = grd_pool_alloc((size_t)n * sizeof *list);
    for (int64_t i = 0; list != NULL && i < n; i++)
        list[i] = state == PARAMETER ? chosen[i]->tensor : chosen[i]->state[state];
    return grd_tensors_from(list, list != NULL ? n : 0);
}

/* Replaces *state by a new reference to `value` and drops the old reference. *state and `value` may be NULL. */
static void set_state(grd_tensor **state, grd_tensor *value)
{
    grd_tensor *old = *state;
    *state = grd_keep(value);
    grd_drop(old);
}

/* ---- SGD ------------------------------------------------------------------------------------------------------------------ */

enum { LR, MOMENTUM, DAMPENING, SGD_DECAY, NESTEROV, SGD_MAXIMIZE };
enum { MOMENTUM_BUFFER };

/* False, with ValueError, for Nesterov momentum without momentum or with dampening; otherwise true. */
static bool check_sgd(const double *o)
{
    return (o[NESTEROV] != 0 && (o[MOMENTUM] <= 0 || o[DAMPENING] != 0))
               ? grd_raise(GRD_ERROR_VALUE, "Nesterov momentum requires a momentum and zero dampening")
               : true;
}

static void call_sgd(const double *o, grd_tensors params, grd_tensors grads, grd_tensors buffers, bool first)
{
    grd_sgd_step(params, grads, buffers, o[LR], o[MOMENTUM], o[DAMPENING], o[SGD_DECAY], o[NESTEROV] != 0, o[SGD_MAXIMIZE] != 0, first);
}

/* Reorders the lists `chosen` and `grads` in the same way, so that the parameters without a momentum buffer come last. Returns the number of
 * parameters with a buffer. */
static int64_t put_first_steps_last(struct parameter **chosen, grd_tensor **grads, int64_t n)
{
    int64_t later = 0;
    for (int64_t i = 0; i < n; i++) {
        if (chosen[i]->state[MOMENTUM_BUFFER] == NULL)
            continue;
        struct parameter *parameter = chosen[i];
        grd_tensor *grad = grads[i];
        chosen[i] = chosen[later];
        grads[i] = grads[later];
        chosen[later] = parameter;
        grads[later++] = grad;
    }
    return later;
}

/* Returns uninitialized momentum buffers for the `n` parameters in `chosen`. The buffers become state tensors after the first update has written
 * them. */
static grd_tensors new_buffers(struct parameter *const *chosen, int64_t n)
{
    grd_tensor **list = grd_pool_alloc((size_t)n * sizeof *list);
    for (int64_t i = 0; list != NULL && i < n; i++)
        list[i] = grd_empty_like(chosen[i]->tensor);
    return grd_tensors_from(list, list != NULL ? n : 0);
}

static void step_sgd(const struct kind *kind, struct group *group, struct parameter **chosen, grd_tensor **grads, int64_t n)
{
    (void)kind;
    const double *o = group->options;
    if (o[MOMENTUM] == 0) {
        call_sgd(o, list_of(chosen, n, PARAMETER), grd_tensors_from(grads, n), (grd_tensors){0}, false);
        return;
    }
    const int64_t later = put_first_steps_last(chosen, grads, n), first = n - later;
    if (later > 0)
        call_sgd(o, list_of(chosen, later, PARAMETER), grd_tensors_from(grads, later), list_of(chosen, later, MOMENTUM_BUFFER), false);
    if (first == 0)
        return;
    const grd_tensors buffers = new_buffers(chosen + later, first);
    call_sgd(o, list_of(chosen + later, first, PARAMETER), grd_tensors_from(grads + later, first), buffers, true);
    for (int64_t i = 0; i < first && !grd_pending(); i++)
        set_state(&chosen[later + i]->state[MOMENTUM_BUFFER], buffers.data[i]);
}

static const struct option sgd_options[] = {
    [LR] = {.name = "lr", .noun = "learning rate", .least = 0, .below = INFINITY},
    [MOMENTUM] = {.name = "momentum", .noun = "momentum value", .least = 0, .below = INFINITY},
    [DAMPENING] = {.name = "dampening", .noun = "dampening value", .least = -INFINITY, .below = INFINITY},
    [SGD_DECAY] = {.name = "weight_decay", .noun = "weight_decay value", .least = 0, .below = INFINITY},
    [NESTEROV] = {.name = "nesterov", .is_bool = true},
    [SGD_MAXIMIZE] = {.name = "maximize", .is_bool = true},
    {0},
};
static const char *const sgd_states[] = {[MOMENTUM_BUFFER] = "momentum_buffer", NULL};
static const struct kind sgd = {"SGD", sgd_options, sgd_states, check_sgd, step_sgd, false};

/* ---- Adam and AdamW --------------------------------------------------------------------------------------------------------- */

enum { BETA1 = LR + 1, BETA2, EPS, ADAM_DECAY, AMSGRAD, ADAM_MAXIMIZE };
enum { STEP, EXP_AVG, EXP_AVG_SQ, MAX_EXP_AVG_SQ };

/* Makes those state tensors that the parameter does not have yet, filled with zeros. */
static void start_adam(struct parameter *parameter, bool amsgrad)
{
    for (int state = STEP; state < (amsgrad ? MAX_STATES : MAX_EXP_AVG_SQ) && !grd_pending(); state++) {
        if (parameter->state[state] != NULL)
            continue;
        grd_tensor *zeros = state == STEP ? grd_zeros(GRD_NO_DIMS, .dtype = GRD_FLOAT32) : grd_zeros_like(parameter->tensor);
        if (!grd_pending())
            set_state(&parameter->state[state], zeros);
    }
}

static void step_adam(const struct kind *kind, struct group *group, struct parameter **chosen, grd_tensor **grads, int64_t n)
{
    const double *o = group->options;
    const bool amsgrad = o[AMSGRAD] != 0;
    for (int64_t i = 0; i < n; i++)
        start_adam(chosen[i], amsgrad);
    if (grd_pending())
        return;
    grd_adam_step(list_of(chosen, n, PARAMETER), grd_tensors_from(grads, n), list_of(chosen, n, EXP_AVG), list_of(chosen, n, EXP_AVG_SQ),
                  amsgrad ? list_of(chosen, n, MAX_EXP_AVG_SQ) : (grd_tensors){0}, list_of(chosen, n, STEP), o[LR], o[BETA1], o[BETA2],
                  o[ADAM_DECAY], o[EPS], amsgrad, o[ADAM_MAXIMIZE] != 0, kind->decoupled);
}

static const struct option adam_options[] = {
    [LR] = {.name = "lr", .noun = "learning rate", .least = 0, .below = INFINITY},
    [BETA1] = {.name = "beta1", .noun = "beta parameter at index 0", .least = 0, .below = 1},
    [BETA2] = {.name = "beta2", .noun = "beta parameter at index 1", .least = 0, .below = 1},
    [EPS] = {.name = "eps", .noun = "epsilon value", .least = 0, .below = INFINITY},
    [ADAM_DECAY] = {.name = "weight_decay", .noun = "weight_decay value", .least = 0, .below = INFINITY},
    [AMSGRAD] = {.name = "amsgrad", .is_bool = true},
    [ADAM_MAXIMIZE] = {.name = "maximize", .is_bool = true},
    {0},
};
static const char *const adam_states[] = {
    [STEP] = "step", [EXP_AVG] = "exp_avg", [EXP_AVG_SQ] = "exp_avg_sq", [MAX_EXP_AVG_SQ] = "max_exp_avg_sq", NULL};
static const struct kind adam = {"Adam", adam_options, adam_states, NULL, step_adam, false};
static const struct kind adamw = {"AdamW", adam_options, adam_states, NULL, step_adam, true};

/* ---- Checks ------------------------------------------------------------------------------------------------------------------- */

bool grd_optim_check_list(grd_tensors parameters, const char *function)
{
    if (parameters.n < 0 || (parameters.n > 0 && parameters.data == NULL))
        return grd_raise(GRD_ERROR_TYPE, "%s: argument 'parameters' must be a list of tensors", function);
    for (int64_t i = 0; i < parameters.n; i++) {
        if (parameters.data[i] == NULL)
            return grd_raise(GRD_ERROR_TYPE, "%s: entry %lld of argument 'parameters' must be a tensor, not NULL", function, (long long)i);
        if (!grd_given(parameters.data[i], function, "parameters"))
            return false;
    }
    return true;
}

static bool is_valid(const struct option *option, double value)
{
    if (option->is_bool)
        return value == 0 || value == 1 ? true
                                        : grd_raise(GRD_ERROR_VALUE, "Invalid %s value: %g, which is neither 0 nor 1", option->name, value);
    if (value >= option->least && value < option->below)
        return true;
    return grd_raise(GRD_ERROR_VALUE, "Invalid %s: %g", option->noun, value);
}

/* True if all options are in their ranges and fit together; otherwise raises ValueError. */
static bool are_valid(const struct kind *kind, const double *options)
{
    for (int i = 0; kind->options[i].name != NULL; i++)
        if (!is_valid(&kind->options[i], options[i]))
            return false;
    return kind->check == NULL || kind->check(options);
}

static struct parameter *find_parameter(const grd_optimizer *optimizer, const grd_tensor *tensor)
{
    for (int64_t g = 0; g < optimizer->ngroups; g++)
        for (int64_t i = 0; i < optimizer->groups[g].n; i++)
            if (optimizer->groups[g].parameters[i].tensor == tensor)
                return &optimizer->groups[g].parameters[i];
    return NULL;
}

/* True if the parameters can become a new group of the optimizer; otherwise raises ValueError. */
static bool check_parameters(const grd_optimizer *optimizer, grd_tensors parameters)
{
    if (parameters.n == 0)
        return grd_raise(GRD_ERROR_VALUE, "optimizer got an empty parameter list");
    for (int64_t i = 0; i < parameters.n; i++) {
        grd_tensor *t = parameters.data[i];
        if (!grd_is_leaf(t) && !grd_retains_grad(t))
            return grd_raise(GRD_ERROR_VALUE, "can't optimize a non-leaf Tensor");
        if (find_parameter(optimizer, t) != NULL)
            return grd_raise(GRD_ERROR_VALUE, "some parameters appear in more than one parameter group");
        for (int64_t k = 0; k < i; k++)
            if (parameters.data[k] == t)
                return grd_raise(GRD_ERROR_VALUE, "parameters %lld and %lld of the group are one tensor", (long long)k, (long long)i);
    }
    return !grd_pending();
}

/* True if no error is pending and `pointer`, the argument called `argument` of the public function `function`, is not NULL. Raises TypeError for
 * NULL. */
static bool is_given(const void *pointer, const char *function, const char *argument)
{
    return !grd_pending() && grd_given_pointer(pointer, function, argument);
}

/* ---- Making and freeing ----------------------------------------------------------------------------------------------------------- */

static void free_group(struct group *group)
{
    for (int64_t i = 0; i < group->n; i++) {
        grd_drop(group->parameters[i].tensor);
        for (int state = 0; state < MAX_STATES; state++)
            grd_drop(group->parameters[i].state[state]);
    }
    grd_free(group->parameters, (size_t)group->n * sizeof *group->parameters);
}

/* Adds a group of parameters to the optimizer. The caller has checked the parameters and options. False, with MemoryError, on failure. */
static bool add_group(grd_optimizer *optimizer, grd_tensors parameters, const double *options)
{
    struct group group = {.n = parameters.n, .parameters = grd_alloc_zeroed((size_t)parameters.n * sizeof *group.parameters)};
    if (group.parameters == NULL)
        return false;
    memcpy(group.options, options, sizeof group.options); /* copied first: `options` may be inside the array that grd_reserve moves */
    if (!grd_reserve(&optimizer->groups, optimizer->ngroups + 1, &optimizer->capacity, sizeof group)) {
        free_group(&group);
        return false;
    }
    for (int64_t i = 0; i < parameters.n; i++)
        group.parameters[i].tensor = grd_keep(parameters.data[i]);
    optimizer->groups[optimizer->ngroups++] = group;
    return true;
}

static grd_optimizer *new_optimizer(const struct kind *kind, grd_tensors parameters, const double *options, const char *function)
{
    const grd_optimizer empty = {.kind = kind};
    if (grd_pending() || !grd_optim_check_list(parameters, function) || !are_valid(kind, options) || !check_parameters(&empty, parameters))
        return NULL;
    grd_optimizer *optimizer = grd_alloc(sizeof *optimizer);
    if (optimizer == NULL)
        return NULL;
    *optimizer = empty;
    if (add_group(optimizer, parameters, options))
        return optimizer;
    grd_free(optimizer, sizeof *optimizer);
    return NULL;
}

grd_optimizer *grd_with_sgd_new(grd_tensors parameters, double lr, const grd_sgd_options *given)
{
    const grd_sgd_options o = given != NULL ? *given : (grd_sgd_options){0};
    const double options[MAX_OPTIONS] = {
        [LR] = lr,
        [MOMENTUM] = o.momentum,
        [DAMPENING] = o.dampening,
        [SGD_DECAY] = o.weight_decay,
        [NESTEROV] = o.nesterov,
        [SGD_MAXIMIZE] = o.maximize,
    };
    return new_optimizer(&sgd, parameters, options, "grd_sgd_new");
}

static grd_optimizer *new_adam(const struct kind *kind, grd_tensors parameters, double lr, grd_adam_options o, const char *function)
{
    const double options[MAX_OPTIONS] = {
        [LR] = lr,
        [BETA1] = o.beta1,
        [BETA2] = o.beta2,
        [EPS] = o.eps,
        [ADAM_DECAY] = o.weight_decay,
        [AMSGRAD] = o.amsgrad,
        [ADAM_MAXIMIZE] = o.maximize,
    };
    return new_optimizer(kind, parameters, options, function);
}

grd_optimizer *grd_with_adam_new(grd_tensors parameters, double lr, const grd_adam_options *options)
{
    const grd_adam_options defaults = {GRD_ADAM_DEFAULTS};
    return new_adam(&adam, parameters, lr, options != NULL ? *options : defaults, "grd_adam_new");
}

grd_optimizer *grd_with_adamw_new(grd_tensors parameters, double lr, const grd_adamw_options *options)
{
    const grd_adamw_options defaults = {GRD_ADAMW_DEFAULTS}, *o = options != NULL ? options : &defaults;
    const grd_adam_options same = {o->beta1, o->beta2, o->eps, o->weight_decay, o->amsgrad, o->maximize};
    return new_adam(&adamw, parameters, lr, same, "grd_adamw_new");
}

void grd_optimizer_drop(grd_optimizer *optimizer)
{
    if (optimizer == NULL)
        return;
    for (int64_t g = 0; g < optimizer->ngroups; g++)
        free_group(&optimizer->groups[g]);
    grd_free(optimizer->groups, (size_t)optimizer->capacity * sizeof *optimizer->groups);
    grd_free(optimizer, sizeof *optimizer);
}

/* ---- Stepping ------------------------------------------------------------------------------------------------------------------------ */

/* Updates those parameters of a group that have a gradient. */
static void step_group(const struct kind *kind, struct group *group)
{
    struct parameter **chosen = grd_pool_alloc((size_t)group->n * sizeof *chosen);
    grd_tensor **grads = grd_pool_alloc((size_t)group->n * sizeof *grads);
    int64_t n = 0;
    if (grd_pending())
        return;
    for (int64_t i = 0; i < group->n; i++) {
        grd_tensor *grad = grd_grad_of(group->parameters[i].tensor);
        if (grad != NULL) {
            chosen[n] = &group->parameters[i];
            grads[n++] = grad;
        }
    }
    if (n > 0 && !grd_pending())
        kind->step(kind, group, chosen, grads, n);
}

void grd_optimizer_step(grd_optimizer *optimizer)
{
    if (!is_given(optimizer, "grd_optimizer_step", "optimizer"))
        return;
    const bool recording = grd_set_grad_enabled(false);
    for (int64_t g = 0; g < optimizer->ngroups && !grd_pending(); g++) {
        const int64_t mark = grd_pool_mark();
        step_group(optimizer->kind, &optimizer->groups[g]);
        grd_pool_release(mark);
    }
    grd_set_grad_enabled(recording);
    grd_error_add_context("grd_optimizer_step");
}

void grd_optimizer_zero_grad(grd_optimizer *optimizer)
{
    if (!is_given(optimizer, "grd_optimizer_zero_grad", "optimizer"))
        return;
    for (int64_t g = 0; g < optimizer->ngroups; g++)
        for (int64_t i = 0; i < optimizer->groups[g].n; i++)
            grd_set_grad(optimizer->groups[g].parameters[i].tensor, NULL);
}

/* ---- Groups and options ---------------------------------------------------------------------------------------------------------------- */

int64_t grd_optimizer_add_group(grd_optimizer *optimizer, grd_tensors parameters)
{
    if (!is_given(optimizer, "grd_optimizer_add_group", "optimizer") || !grd_optim_check_list(parameters, "grd_optimizer_add_group") ||
        !check_parameters(optimizer, parameters) || !add_group(optimizer, parameters, optimizer->groups[0].options))
        return -1;
    return optimizer->ngroups - 1;
}

int64_t grd_optimizer_group_count(const grd_optimizer *optimizer)
{
    return is_given(optimizer, "grd_optimizer_group_count", "optimizer") ? optimizer->ngroups : 0;
}

static struct group *find_group(const grd_optimizer *optimizer, int64_t group, const char *function)
{
    if (!is_given(optimizer, function, "optimizer"))
        return NULL;
    if (group >= 0 && group < optimizer->ngroups)
        return &optimizer->groups[group];
    grd_raise(GRD_ERROR_INDEX, "%s: there is no group %lld among %lld", function, (long long)group, (long long)optimizer->ngroups);
    return NULL;
}

grd_tensor *grd_optimizer_parameter(const grd_optimizer *optimizer, int64_t group, int64_t index)
{
    const struct group *found = find_group(optimizer, group, "grd_optimizer_parameter");
    return found != NULL && index >= 0 && index < found->n ? found->parameters[index].tensor : NULL;
}

/* Returns the index of the option called `name`, or -1 with ValueError. */
static int find_option(const struct kind *kind, const char *name, const char *function)
{
    for (int i = 0; name != NULL && kind->options[i].name != NULL; i++)
        if (strcmp(kind->options[i].name, name) == 0)
            return i;
    grd_raise(GRD_ERROR_VALUE, "%s: %s has no option '%s'", function, kind->name, name != NULL ? name : "(NULL)");
    return -1;
}

double grd_optimizer_get_option(const grd_optimizer *optimizer, int64_t group, const char *name)
{
    const char *function = "grd_optimizer_get_option";
    const struct group *found = find_group(optimizer, group, function);
    const int place = found != NULL ? find_option(optimizer->kind, name, function) : -1;
    return place >= 0 ? found->options[place] : (double)NAN;
}

void grd_optimizer_set_option(grd_optimizer *optimizer, int64_t group, const char *name, double value)
{
    const char *function = "grd_optimizer_set_option";
    struct group *found = find_group(optimizer, group, function);
    const int place = found != NULL ? find_option(optimizer->kind, name, function) : -1;
    if (place < 0)
        return;
    double options[MAX_OPTIONS];
    memcpy(options, found->options, sizeof options);
    options[place] = value;
    if (are_valid(optimizer->kind, options))
        found->options[place] = value;
}

/* ---- State ---------------------------------------------------------------------------------------------------------------------------------- */

const char *grd_optimizer_state_name(const grd_optimizer *optimizer, int64_t index)
{
    if (!is_given(optimizer, "grd_optimizer_state_name", "optimizer"))
        return NULL;
    const char *const *names = optimizer->kind->states;
    for (int64_t i = 0; *names != NULL && i < index; i++)
        names++;
    return index >= 0 ? *names : NULL;
}

/* Returns the address of the state tensor called `name` of the parameter `tensor`. Returns NULL, with the error raised, if there is no such state
 * or parameter. */
static grd_tensor **find_state(const grd_optimizer *optimizer, const grd_tensor *tensor, const char *name, const char *function)
{
    if (!is_given(optimizer, function, "optimizer") || !grd_given(tensor, function, "parameter"))
        return NULL;
    struct parameter *parameter = find_parameter(optimizer, tensor);
    if (parameter == NULL) {
        grd_raise(GRD_ERROR_VALUE, "%s: the tensor is not a parameter of the optimizer", function);
        return NULL;
    }
    for (int i = 0; name != NULL && optimizer->kind->states[i] != NULL; i++)
        if (strcmp(optimizer->kind->states[i], name) == 0)
            return &parameter->state[i];
    grd_raise(GRD_ERROR_VALUE, "%s: %s has no state '%s'", function, optimizer->kind->name, name != NULL ? name : "(NULL)");
    return NULL;
}

grd_tensor *grd_optimizer_get_state(const grd_optimizer *optimizer, const grd_tensor *parameter, const char *name)
{
    grd_tensor **state = find_state(optimizer, parameter, name, "grd_optimizer_get_state");
    return state != NULL ? *state : NULL;
}

/* Returns a copy of `value` in the form in which the state called `name` is stored. The state "step" is a zero-dimensional float32 tensor. Any
 * other state has the sizes, dtype and strides of the parameter. */
static grd_tensor *copy_of_state(const grd_tensor *parameter, const char *name, grd_tensor *value)
{
    if (strcmp(name, "step") == 0)
        return grd_copy_(grd_empty(GRD_NO_DIMS, .dtype = GRD_FLOAT32), grd_reshape(value, GRD_NO_DIMS));
    if (!grd_dims_equal(grd_sizes(parameter), grd_sizes(value)))
        return grd_fail(GRD_ERROR_RUNTIME, "'%s' does not have the sizes of its parameter", name);
    return grd_copy_(grd_empty_like((grd_tensor *)(uintptr_t)parameter), value);
}

void grd_optimizer_set_state(grd_optimizer *optimizer, const grd_tensor *parameter, const char *name, grd_tensor *value)
{
    grd_tensor **state = find_state(optimizer, parameter, name, "grd_optimizer_set_state");
    if (state == NULL || !grd_given_or_null(value, "grd_optimizer_set_state", "value"))
        return;
    const int64_t mark = grd_pool_mark();
    const bool recording = grd_set_grad_enabled(false);
    grd_tensor *copy = value != NULL ? copy_of_state(parameter, name, value) : NULL;
    grd_set_grad_enabled(recording);
    if (!grd_pending())
        set_state(state, copy);
    grd_error_add_context("grd_optimizer_set_state");
    grd_pool_release(mark);
}
