"""Checks that the generator and the run-time parser read the same formula language. For every operator with derivative formulas in schema/, the
test defines an operator with the same signature, whose formulas are parsed at run time. Both operators must compute the same bits for the sample
arguments in the schema."""
import ast
import json
import sys

from conftest import BUILD, ROOT, flags, run

sys.path.insert(0, str(ROOT))
from codegen.schema import read_schema  # noqa: E402

PROGRAM = r'''
#include "call.h"

/* Runs the operator of the schema, so that only the derivative is another's. It may return its arguments or views of them, which a kernel may not. */
static void same(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)keys, (void)out;
    grd_call(grd_op_find(context), GRD_FUNCTIONAL, args, grd_op_arg_count(op), NULL, ret_results);
    const bool list = ret_results[0].kind == GRD_KIND_TENSORS;
    for (int64_t i = 0; i < (list ? ret_results[0].v.tensors.n : grd_op_result_count(op)); i++) {
        grd_tensor **result = list ? &ret_results[0].v.tensors.data[i] : &ret_results[i].v.tensor;
        *result = grd_clone(*result);
    }
}

static const grd_definition definitions[] = {
%s};

/* Gradients of all results, whose own are not alike. create_graph has the formula run where an operator has a faster way for first order. */
static int64_t gradients(const grd_op *op, const struct test_case *test, grd_dtype dtype, grd_tensor **ret_grads)
{
    const struct setting s = {dtype, dtype, CONTIGUOUS, GRD_CPU, true};
    struct call call;
    grd_tensor *seeds[MAX_RESULTS];
    make_call(&call, test, &s);
    call.op = op;
    const grd_tensors outputs = as_function(call.differentiable, call.ndifferentiable, &call);
    for (int64_t i = 0; i < outputs.n; i++)
        seeds[i] = grd_detach(grd_add(grd_sin(outputs.data[i]), grd_full_like(outputs.data[i], grd_float(1.25))));
    const grd_backward_options options = {.grad_outputs = grd_tensors_from(seeds, outputs.n), .allow_unused = true, .create_graph = true};
    return outputs.n > 0 && grd_grad(outputs, grd_tensors_from(call.differentiable, call.ndifferentiable), &options, ret_grads)
               ? call.ndifferentiable : -1;
}

static bool same_bits(grd_tensor *a, grd_tensor *b)
{
    static char bits[2][16 * MAX_VALUES];
    if (a == NULL || b == NULL)
        return a == b;
    const grd_dtype dtype = grd_tensor_dtype(a);
    const grd_dims sizes = grd_sizes(a), others = grd_sizes(b);
    if (grd_tensor_dtype(b) != dtype || sizes.n != others.n || memcmp(sizes.data, others.data, (size_t)sizes.n * sizeof(int64_t)) != 0)
        return false;
    grd_to_memory(a, bits[0], dtype);
    grd_to_memory(b, bits[1], dtype);
    return memcmp(bits[0], bits[1], (size_t)(grd_numel(a) * grd_dtype_size(dtype))) == 0;
}

int main(void)
{
    static const grd_dtype dtypes[] = {GRD_FLOAT64, GRD_FLOAT32, GRD_COMPLEX128};
    int compared = 0;
    for (size_t i = 0; i < sizeof definitions / sizeof *definitions; i++)
        if (grd_define_operator(&definitions[i]) == NULL) {
            printf("%%s\n", grd_error_message());
            grd_error_clear();
        }
    for (const struct test_case *test = test_cases; test->op != NULL; test++) {
        char name[128];
        snprintf(name, sizeof name, "again::%%s", test->op);
        const grd_op *op = grd_op_find(test->op), *again = grd_op_find(name);
        for (int i = 0; again != NULL && !test->skip && i < 3; i++) {
            const grd_scope scope = grd_scope_open();
            grd_tensor *wanted[MAX_TENSORS], *got[MAX_TENSORS];
            const int64_t n = gradients(op, test, dtypes[i], wanted);
            grd_error_clear();
            const int64_t m = gradients(again, test, dtypes[i], got);
            bool alike = m == n;
            for (int64_t k = 0; alike && k < n; k++)
                alike = same_bits(wanted[k], got[k]);
            if (!alike)
                printf("%%s(%%s) of %%s: other gradients %%s\n", test->op, test->text, grd_dtype_name(dtypes[i]), grd_error_message());
            compared += n > 0;
            grd_error_clear();
            grd_scope_close(scope);
        }
    }
    printf("compared %%d\n", compared);
    return 0;
}
'''


class Written(ast.NodeTransformer):
    """Replaces names in a gradient formula. `names` is the operator's `where` table in the schema: {name of a common subexpression: its formula}."""

    def __init__(self, names):
        self.names = names

    def visit_Name(self, node):
        return self.visit(ast.parse(self.names[node.id].strip(), mode="eval").body) if node.id in self.names else node


def definition(operator):
    names = Written(getattr(operator, "where", {}))
    formulas = ", ".join(f"{{{json.dumps(name)}, {json.dumps(ast.unparse(names.visit(ast.parse(formula.strip(), mode='eval'))))}}}" for name, formula in operator.grads.items())
    return f"    {{.schema = {json.dumps('again::' + operator.schema)}, .gradients = {{{formulas}}}, .kernel = same, .context = (void *){json.dumps(operator.name)}}},\n"


# Operators whose derivative formulas cannot be used at run time, with the reason.
UNREAD = {"linalg_qr": "written out it has more parts than a formula may have", "_max_pool2d": "it asks one of several results of a call", "_max_pool3d": "likewise",
          "_linalg_eigh": "likewise", "_linalg_svd": "likewise", "_linalg_eig": "likewise", "_lu_factor": "written out it has more parts than a formula may have"}


def test_every_derivative_of_the_schema_gives_the_same_bits_at_run_time(prefix, tmp_path):
    operators = [o for o in read_schema(ROOT / "schema").values() if o.grads and not o.underived and "functional" in o.forms and o.name not in UNREAD]
    assert len(operators) > 100
    (tmp_path / "main.c").write_text(PROGRAM % "".join(definition(o) for o in operators))
    sources = f"main.c {ROOT}/test/op/call.c {BUILD}/gen/test_cases.c"
    built = run(f"cc -std=gnu17 -D_GNU_SOURCE -I{ROOT}/test/op {sources} -o main {flags(prefix)} -lcmocka -lm", tmp_path)
    assert built.returncode == 0, built.stderr
    ran = run(["./main"], tmp_path)
    *wrong, compared = ran.stdout.splitlines()
    assert (ran.returncode, wrong) == (0, []), "\n".join(wrong)
    assert int(compared.removeprefix("compared ")) > 1000
