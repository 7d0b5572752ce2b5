/* Makes mistakes with tensors that were freed. A run executes the case named by its argument, and prints the library's error for each mistake.
 * test/python/test_lifetimes.py checks these errors with GRADUS_DEBUG=lifetimes, and runs other cases under valgrind or AddressSanitizer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gradus/gradus.h>

static void report(void)
{
    puts(grd_ok() ? "nothing" : grd_error_message());
    grd_error_clear();
}

/* Returns a pointer to a freed tensor: the product of two tensors of n ones, freed by closing the scope in which it was made. */
__attribute__((noinline)) grd_tensor *dead_product(int n);
grd_tensor *dead_product(int n)
{
    grd_scope scope = grd_scope_open();
    grd_tensor *ones = grd_ones(grd_dims(n)), *product = grd_mul(ones, ones);
    grd_scope_close(scope);
    return product;
}

/* ---- Cases ----------------------------------------------------------------------------------------------------------------------- */

static void use_after_scope(void)
{
    grd_scope scope = grd_scope_open();
    grd_tensor *dead = dead_product(3), *large = dead_product(3000), *live = grd_zeros(grd_dims(3));
    grd_add(live, dead), report();
    grd_add_(dead, live), report();
    grd_add_out(dead, live, live), report();
    grd_stack(grd_tensors(live, large)), report();
    grd_item(dead), report();
    grd_add(live, live), report();
    grd_scope_close(scope);
    grd_sum(live), report();
}

static void names_of_makers(void)
{
    grd_scope outer = grd_scope_open(), inner = grd_scope_open();
    grd_tensor *x = grd_set_requires_grad(grd_ones(grd_dims(2, 2)), true);
    grd_tensor *composite = grd_mse_loss(x, grd_zeros(grd_dims(2, 2))), *view = grd_t(x), *inplace = grd_exp_(grd_sqrt(x));
    grd_tensor *memory = grd_from_data(&(float){1}, grd_dims(1), GRD_FLOAT32);
    grd_tensor *part = grd_unbind(grd_cos(x)).data[1];
    grd_scope_close(inner);
    grd_numel(composite), report();
    grd_numel(view), report();
    grd_numel(inplace), report();
    grd_numel(memory), report();
    grd_numel(part), report();
    grd_scope_close(outer);
}

static void references(void)
{
    grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_ones(grd_dims(2)), *kept = grd_keep(grd_zeros(grd_dims(2)));
    grd_drop(t), report();
    grd_drop(kept), report();
    grd_drop(kept), report();
    grd_keep(kept);
    grd_scope_close(scope);
    grd_drop(kept), report();
    grd_drop(kept), report();
    grd_keep(kept), report();
    grd_scope_close(scope), report();
}

static void scopes(void)
{
    grd_scope outer = grd_scope_open(), inner = grd_scope_open();
    grd_tensor *moved = grd_scope_return(inner, grd_ones(grd_dims(2)));
    grd_numel(moved), report();
    grd_scope_open(); /* this scope is only closed by closing the outer one */
    grd_tensor *t = grd_ones(grd_dims(2));
    grd_scope_close(outer);
    grd_numel(moved), report();
    grd_numel(t), report();
    outer = grd_scope_open();
    grd_scope_return(outer, t), report();
}

/* Calls every operator with a freed tensor for each of its tensor arguments in turn. Prints the operators that do not refuse the freed tensor. */
static void operators(void)
{
    int64_t refused = 0;
    for (int64_t o = 0; o < grd_op_count(); o++) {
        const grd_op *op = grd_op_at(o);
        for (int place = 0; place < grd_op_arg_count(op); place++) {
            grd_scope scope = grd_scope_open();
            grd_tensor *live = grd_ones(grd_dims(2)), *dead = dead_product(2);
            grd_tensor *const both[] = {live, live}, *const one_dead[] = {live, dead};
            grd_value args[GRD_MAX_ARGS], results[GRD_MAX_RESULTS];
            for (int i = 0; i < grd_op_arg_count(op); i++) {
                args[i] = (grd_value){.kind = grd_op_arg_optional(op, i) && i != place ? GRD_KIND_NONE : grd_op_arg_kind(op, i)};
                if (args[i].kind == GRD_KIND_TENSOR)
                    args[i].v.tensor = i == place ? dead : live;
                else if (args[i].kind == GRD_KIND_TENSORS)
                    args[i].v.tensors = grd_tensors_from(i == place ? one_dead : both, 2);
                else if (args[i].kind == GRD_KIND_SCALAR)
                    args[i].v.scalar = grd_int(1);
                else if (args[i].kind == GRD_KIND_DIMS)
                    args[i].v.dims = GRD_NO_DIMS;
                else if (args[i].kind == GRD_KIND_DTYPE)
                    args[i].v.dtype = GRD_FLOAT32;
                else if (args[i].kind == GRD_KIND_DEVICE)
                    args[i].v.device = GRD_CPU;
                else if (args[i].kind == GRD_KIND_STRING)
                    args[i].v.string = "none";
            }
            const grd_kind kind = grd_op_arg_kind(op, place);
            if (kind == GRD_KIND_TENSOR || kind == GRD_KIND_TENSORS) {
                const grd_form form = grd_op_forms(op) >> GRD_FUNCTIONAL & 1 ? GRD_FUNCTIONAL : GRD_INPLACE;
                grd_call(op, form, args, grd_op_arg_count(op), NULL, results);
                if (strstr(grd_error_message(), "made by mul that has been freed: scope ") == NULL)
                    printf("%s, argument %d: %s\n", grd_op_name(op), place + 1, grd_error_message());
                else
                    refused++;
                grd_error_clear();
            }
            grd_scope_close(scope);
        }
    }
    printf("%s\n", refused > 500 ? "refused" : "too few operators were called");
}

static void named_tensors(void)
{
    grd_scope scope = grd_scope_open();
    grd_tensor *live = grd_ones(grd_dims(2)), *dead = dead_product(2);
    const grd_named_tensor both[] = {{"live", live}, {"dead", dead}};
    grd_save("/nowhere", (grd_named_tensors){both, 2}), report();
    const char *path = "named_tensors.safetensors";
    grd_save(path, (grd_named_tensors){&(grd_named_tensor){"dead", live}, 1}), report();
    grd_load_into(path, (grd_named_tensors){both + 1, 1}), report();
    remove(path);
    grd_scope_close(scope);
}

/* Trains without any mistake, so the library must report nothing and leak no memory. */
static void training(void)
{
    grd_tensor *w = grd_keep(grd_set_requires_grad(grd_ones(grd_dims(40, 40)), true));
    grd_optimizer *optimizer = grd_adamw_new(grd_tensors(w), 0.1);
    for (int step = 0; step < 300; step++) {
        grd_scope scope = grd_scope_open();
        grd_tensor *loss = grd_sum(grd_tanh(grd_mm(w, w)));
        grd_backward(loss);
        grd_optimizer_step(optimizer);
        grd_optimizer_zero_grad(optimizer);
        grd_scope_close(scope);
    }
    grd_optimizer_drop(optimizer);
    grd_drop(w);
    report();
    printf("%lld blocks\n", (long long)grd_memory_get_stats().blocks);
}

/* Reads freed memory through a pointer from grd_data. Only tools that check every memory access can find this mistake. */
static void stale_pointer(void)
{
    grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_ones(grd_dims(3));
    const volatile float *data = grd_data(t);
    grd_scope_close(scope);
    printf("%d\n", data[1] == 1);
}

static void stale_large_pointer(void)
{
    grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_ones(grd_dims(3000));
    const volatile float *data = grd_data(t);
    grd_scope_close(scope);
    printf("%d\n", data[1] == 1);
}

static void stale_sizes(void)
{
    grd_scope scope = grd_scope_open();
    const grd_dims sizes = grd_sizes(grd_ones(grd_dims(3)));
    grd_scope_close(scope);
    printf("%d\n", *(const volatile int64_t *)sizes.data == 3);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } cases[] = {
        {"use_after_scope", use_after_scope},
        {"names_of_makers", names_of_makers},
        {"references", references},
        {"scopes", scopes},
        {"named_tensors", named_tensors},
        {"operators", operators},
        {"training", training},
        {"stale_pointer", stale_pointer},
        {"stale_large_pointer", stale_large_pointer},
        {"stale_sizes", stale_sizes},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (argc == 2 && strcmp(argv[1], cases[i].name) == 0) {
            cases[i].run();
            return 0;
        }
    return 2;
}
