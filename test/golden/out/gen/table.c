/* Generated from schema by codegen. Do not edit. */
#include <math.h>

#include "dispatch/op.h"
#include "gen/op_impl.h"
#include "gen/op_index.h"

static void thunk_l_ti(grd_kernel *kernel, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    typedef grd_tensors typed(grd_tensor *, int64_t);
    (void)out;
    ret_results[0] = (grd_value){.kind = GRD_KIND_TENSORS, .v.tensors = ((typed *)kernel)(args[0].v.tensor, args[1].v.integer)};
}

static void thunk_m2_tib(grd_kernel *kernel, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    typedef void typed(grd_tensor *, int64_t, bool, grd_tensor **);
    (void)out;
    grd_tensor *results[2];
    ((typed *)kernel)(args[0].v.tensor, args[1].v.integer, args[2].v.boolean, results);
    grd_set_tensor(&ret_results[0], results[0]);
    grd_set_tensor(&ret_results[1], results[1]);
}

static void thunk_o_t(grd_kernel *kernel, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    typedef grd_tensor *typed(grd_tensor *, grd_tensor *);
    grd_set_tensor(&ret_results[0], ((typed *)kernel)(out, args[0].v.tensor));
}

static void thunk_o_tt(grd_kernel *kernel, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    typedef grd_tensor *typed(grd_tensor *, grd_tensor *, grd_tensor *);
    grd_set_tensor(&ret_results[0], ((typed *)kernel)(out, args[0].v.tensor, args[1].v.tensor));
}

static void thunk_o_tts(grd_kernel *kernel, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    typedef grd_tensor *typed(grd_tensor *, grd_tensor *, grd_tensor *, grd_scalar);
    grd_set_tensor(&ret_results[0], ((typed *)kernel)(out, args[0].v.tensor, args[1].v.tensor, args[2].v.scalar));
}

static void thunk_t_dyvb(grd_kernel *kernel, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    typedef grd_tensor *typed(grd_dims, grd_dtype, grd_device, bool);
    (void)out;
    grd_set_tensor(&ret_results[0], ((typed *)kernel)(args[0].v.dims, args[1].v.dtype, args[2].v.device, args[3].v.boolean));
}

static void thunk_t_li(grd_kernel *kernel, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    typedef grd_tensor *typed(grd_tensors, int64_t);
    (void)out;
    grd_set_tensor(&ret_results[0], ((typed *)kernel)(args[0].v.tensors, args[1].v.integer));
}

static void thunk_t_t(grd_kernel *kernel, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    typedef grd_tensor *typed(grd_tensor *);
    (void)out;
    grd_set_tensor(&ret_results[0], ((typed *)kernel)(args[0].v.tensor));
}

static void thunk_t_ttibd(grd_kernel *kernel, grd_tensor *out, const grd_value *args, grd_value *ret_results)
{
    typedef grd_tensor *typed(grd_tensor *, grd_tensor *, int64_t, bool, grd_dims);
    (void)out;
    grd_set_tensor(&ret_results[0], ((typed *)kernel)(args[0].v.tensor, args[1].v.tensor, args[2].v.integer, args[3].v.boolean, args[4].v.dims));
}

struct grd_op grd_op_table[] = {
    [GRD_OP_TANH] = {.name = "tanh", .schema = "tanh(Tensor self) -> Tensor",
        .args = (const struct grd_arg[]){{.name = "self", .kind = GRD_KIND_TENSOR, .optional = false}},
        .nargs = 1, .nresults = 1, .forms = 1 << GRD_FUNCTIONAL | 1 << GRD_INPLACE | 1 << GRD_OUT, .has_out = true, .counts_writes = true,
        .thunk = thunk_o_t, .derivative = &grd_derivative_tanh, .kernel = (grd_kernel *)op_tanh},
    [GRD_OP_ADD] = {.name = "add", .schema = "add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        .args = (const struct grd_arg[]){{.name = "self", .kind = GRD_KIND_TENSOR, .optional = false}, {.name = "other", .kind = GRD_KIND_TENSOR, .optional = false}, {.name = "alpha", .kind = GRD_KIND_SCALAR, .optional = false, .value = {.kind = GRD_KIND_SCALAR, .v.scalar = {.kind = GRD_SCALAR_INT, .v.i = 1}}}},
        .nargs = 3, .nresults = 1, .forms = 1 << GRD_FUNCTIONAL | 1 << GRD_INPLACE | 1 << GRD_OUT, .has_out = true, .counts_writes = true,
        .thunk = thunk_o_tts, .derivative = &grd_derivative_add, .kernel = (grd_kernel *)op_add},
    [GRD_OP_SUB] = {.name = "sub", .schema = "sub(Tensor self, Tensor other) -> Tensor",
        .args = (const struct grd_arg[]){{.name = "self", .kind = GRD_KIND_TENSOR, .optional = false}, {.name = "other", .kind = GRD_KIND_TENSOR, .optional = false}},
        .nargs = 2, .nresults = 1, .forms = 1 << GRD_FUNCTIONAL | 1 << GRD_INPLACE | 1 << GRD_OUT, .has_out = true, .counts_writes = true,
        .thunk = thunk_o_tt, .derivative = &grd_derivative_sub, .kernel = (grd_kernel *)op_sub},
    [GRD_OP_MUL] = {.name = "mul", .schema = "mul(Tensor self, Tensor other) -> Tensor",
        .args = (const struct grd_arg[]){{.name = "self", .kind = GRD_KIND_TENSOR, .optional = false}, {.name = "other", .kind = GRD_KIND_TENSOR, .optional = false}},
        .nargs = 2, .nresults = 1, .forms = 1 << GRD_FUNCTIONAL | 1 << GRD_INPLACE | 1 << GRD_OUT, .has_out = true, .counts_writes = true,
        .thunk = thunk_o_tt, .derivative = &grd_derivative_mul, .kernel = (grd_kernel *)op_mul},
    [GRD_OP_NEG] = {.name = "neg", .schema = "neg(Tensor self) -> Tensor",
        .args = (const struct grd_arg[]){{.name = "self", .kind = GRD_KIND_TENSOR, .optional = false}},
        .nargs = 1, .nresults = 1, .forms = 1 << GRD_FUNCTIONAL | 1 << GRD_INPLACE | 1 << GRD_OUT, .has_out = true, .counts_writes = true,
        .thunk = thunk_o_t, .derivative = &grd_derivative_neg, .kernel = (grd_kernel *)op_neg},
    [GRD_OP_SIN] = {.name = "sin", .schema = "sin(Tensor self) -> Tensor",
        .args = (const struct grd_arg[]){{.name = "self", .kind = GRD_KIND_TENSOR, .optional = false}},
        .nargs = 1, .nresults = 1, .forms = 1 << GRD_FUNCTIONAL | 1 << GRD_INPLACE | 1 << GRD_OUT, .has_out = true, .counts_writes = true,
        .thunk = thunk_o_t, .derivative = NULL, .kernel = (grd_kernel *)op_sin},
    [GRD_OP_LT] = {.name = "lt", .schema = "lt(Tensor self, Tensor other) -> Tensor",
        .args = (const struct grd_arg[]){{.name = "self", .kind = GRD_KIND_TENSOR, .optional = false}, {.name = "other", .kind = GRD_KIND_TENSOR, .optional = false}},
        .nargs = 2, .nresults = 1, .forms = 1 << GRD_FUNCTIONAL | 1 << GRD_INPLACE | 1 << GRD_OUT, .has_out = true, .counts_writes = true,
        .thunk = thunk_o_tt, .derivative = NULL, .kernel = (grd_kernel *)op_lt},
    [GRD_OP_TWICE] = {.name = "twice", .schema = "twice(Tensor self) -> Tensor",
        .args = (const struct grd_arg[]){{.name = "self", .kind = GRD_KIND_TENSOR, .optional = false}},
        .nargs = 1, .nresults = 1, .forms = 1 << GRD_FUNCTIONAL, .composite = true,
        .thunk = thunk_t_t, .derivative = NULL, .kernel = (grd_kernel *)op_twice},
    [GRD_OP_UNBIND] = {.name = "unbind", .schema = "unbind(Tensor self, int dim=0) -> Tensor[]",
        .args = (const struct grd_arg[]){{.name = "self", .kind = GRD_KIND_TENSOR, .optional = false}, {.name = "dim", .kind = GRD_KIND_INT, .optional = false, .value = {.kind = GRD_KIND_INT, .v.integer = 0}}},
        .nargs = 2, .nresults = 1, .forms = 1 << GRD_FUNCTIONAL, .is_view = true, .everywhere = true, .returns_list = true,
        .thunk = thunk_l_ti, .derivative = &grd_derivative_unbind, .kernel = (grd_kernel *)op_unbind},
    [GRD_OP_STACK] = {.name = "stack", .schema = "stack(Tensor[] tensors, int dim=0) -> Tensor",
        .args = (const struct grd_arg[]){{.name = "tensors", .kind = GRD_KIND_TENSORS, .optional = false}, {.name = "dim", .kind = GRD_KIND_INT, .optional = false, .value = {.kind = GRD_KIND_INT, .v.integer = 0}}},
        .nargs = 2, .nresults = 1, .forms = 1 << GRD_FUNCTIONAL,
        .thunk = thunk_t_li, .derivative = &grd_derivative_stack, .kernel = (grd_kernel *)op_stack},
    [GRD_OP_MAX_DIM] = {.name = "max_dim", .schema = "max_dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        .args = (const struct grd_arg[]){{.name = "self", .kind = GRD_KIND_TENSOR, .optional = false}, {.name = "dim", .kind = GRD_KIND_INT, .optional = false}, {.name = "keepdim", .kind = GRD_KIND_BOOL, .optional = false, .value = {.kind = GRD_KIND_BOOL, .v.boolean = false}}},
        .nargs = 3, .nresults = 2, .forms = 1 << GRD_FUNCTIONAL,
        .thunk = thunk_m2_tib, .derivative = &grd_derivative_max_dim, .kernel = (grd_kernel *)op_max_dim},
    [GRD_OP_HIDDEN_PLACE] = {.name = "_place", .schema = "_place(Tensor grad, Tensor indices, int dim, bool keepdim, int[] sizes) -> Tensor",
        .args = (const struct grd_arg[]){{.name = "grad", .kind = GRD_KIND_TENSOR, .optional = false}, {.name = "indices", .kind = GRD_KIND_TENSOR, .optional = false}, {.name = "dim", .kind = GRD_KIND_INT, .optional = false}, {.name = "keepdim", .kind = GRD_KIND_BOOL, .optional = false}, {.name = "sizes", .kind = GRD_KIND_DIMS, .optional = false}},
        .nargs = 5, .nresults = 1, .forms = 1 << GRD_FUNCTIONAL,
        .thunk = thunk_t_ttibd, .derivative = NULL, .kernel = (grd_kernel *)op_hidden_place},
    [GRD_OP_ZEROS] = {.name = "zeros", .schema = "zeros(int[] size, *, dtype? dtype=None, device? device=None, bool requires_grad=False) -> Tensor",
        .args = (const struct grd_arg[]){{.name = "size", .kind = GRD_KIND_DIMS, .optional = false}, {.name = "dtype", .kind = GRD_KIND_DTYPE, .optional = true}, {.name = "device", .kind = GRD_KIND_DEVICE, .optional = true}, {.name = "requires_grad", .kind = GRD_KIND_BOOL, .optional = false, .value = {.kind = GRD_KIND_BOOL, .v.boolean = false}}},
        .nargs = 4, .nresults = 1, .forms = 1 << GRD_FUNCTIONAL,
        .thunk = thunk_t_dyvb, .derivative = NULL, .kernel = (grd_kernel *)op_zeros},
};

const int64_t grd_op_table_size = GRD_OP_COUNT;
