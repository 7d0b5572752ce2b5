"""The kernel tables: for each operator with a scalar body in src/kernel/cpu, the loop over contiguous elements and its place in the table of its dtype."""
from codegen import ctype
from codegen.headers import BANNER
from codegen.schema import KERNELS
from codegen.template import fill

TABLE = """
    #pragma once

    enum grd_${kind}_kernel {
        $rows
        GRD_${KIND}_COUNT
    };
"""

BLOCK = """
    static void ${operator}_block(int64_t n, char *const *data, const void *params)
    {
        $numbers
        $result *result_data = ($result *)data[0];
        $inputs
        IN_PLACE
        for (int64_t i = 0; i < n; i++)
            result_data[i] = $body($words);
    }
"""

BLOCK_OF_ITS_OWN = """
    static void ${operator}_block(int64_t n, char *const *data, const void *params)
    {
        (void)params;
        $body(n, (C *)data[0], (const C *)data[1]);
    }
"""

SIZES = """
    enum {
        $rows
    };
"""

ROWS = """
    const struct grd_map_kernel GRD_TYPED(grd_${kind}_row)[GRD_${KIND}_COUNT] = {
        $rows
    };
"""


def index(operator):
    return f"GRD_{operator.kernel.upper()}_{operator.c_name.upper()}"


def kernels_header(kind, operators):
    """The indices of one kernel table. A header per kind, so that a new kernel builds only its kind again."""
    rows = "".join(f"{index(o)},\n" for o in operators.values() if o.kernel == kind)
    return BANNER.format("schema") + fill(TABLE, kind=kind, KIND=kind.upper(), rows=rows)


def gives_bool(operator):
    return operator.rule in ("compare", "bool")


def block(operator):
    """The loop of a kernel: over contiguous elements, so that it vectorises."""
    body = f"{operator.kernel}_{operator.c_name}"
    if operator.block:
        return fill(BLOCK_OF_ITS_OWN, operator=operator.c_name, body=body)
    inputs = [("uint8_t" if operator.mask and i == 0 else "C", f"{a.name}_data") for i, a in enumerate(a for a in operator.args if a.is_tensor)]
    numbers = [f"number_{i}" for i in range(sum(a.kind in ctype.NUMBERS for a in operator.args))]
    return fill(BLOCK, operator=operator.c_name, body=body, result="uint8_t" if gives_bool(operator) else "C",
                numbers="\n".join(f"const C {name} = param(params, {i});" for i, name in enumerate(numbers)) or "(void)params;",
                inputs="\n".join(f"const {t} *{name} = (const {t} *)data[{i}];" for i, (t, name) in enumerate(inputs, 1)),
                words=", ".join([f"{name}[i]" for _, name in inputs] + numbers))


def sizes(operator):
    """The name of the sizes of the operands: SIZES_1_CC is a result of one byte of two operands of the dtype."""
    count = KERNELS[operator.kernel]
    return f"SIZES_{'1' if gives_bool(operator) else 'C'}_{''.join('1' if operator.mask and i == 0 else 'C' for i in range(count))}"


def sizes_enum(operators):
    """The sizes that these operators name."""
    rows = ""
    for name in sorted(set(map(sizes, operators))):
        letters = name.removeprefix("SIZES_").replace("_", "").ljust(4, "0")
        rows += f"{name} = GRD_MAP_SIZES({', '.join({'C': 'sizeof(C)'}.get(c, c) for c in letters)}),\n"
    return fill(SIZES, rows=rows)


def row(operator):
    return f"[{index(operator)}] = {{{operator.c_name}_block, {sizes(operator)}}},\n"


def condition(operator):
    return " || ".join(f"GRD_IS_{category.upper()}" for category in sorted(operator.dtypes))


def rows_file(kind, operators):
    """The kernels of one typed file: those that its dtype has, together with others of the same dtypes."""
    groups = {}
    for operator in (o for o in operators.values() if o.kernel == kind):
        groups.setdefault(condition(operator), []).append(operator)
    text, rows = BANNER.format("schema") + f'#include "gen/{kind}_kernels.h"\n\n', ""
    text += sizes_enum([o for o in operators.values() if o.kernel == kind])
    for dtypes, members in groups.items():
        functions = "\n".join(map(block, members))
        text += f"\n#if {dtypes}\n{functions}#endif\n"
        rows += f"#if {dtypes}\n{''.join(map(row, members))}#endif\n"
    return text + "\n" + fill(ROWS, kind=kind, KIND=kind.upper(), rows=rows)


LINES = """
    #pragma once

    enum grd_lines_kernel_index {
        $rows
        GRD_LINES_COUNT
    };
"""

LINES_ROWS = """
    grd_lines_kernel *const GRD_TYPED(grd_lines_row)[GRD_LINES_COUNT] = {
    $rows
    };
"""


def lines_header(members):
    """The indices of the kernels over lines."""
    return BANNER.format("schema") + fill(LINES, rows="".join(f"GRD_LINES_{o.c_name.upper()},\n" for o in members))


def lines_rows(members):
    """Those that a dtype has: lines_NAME of src/kernel/cpu/lines.c."""
    return BANNER.format("schema") + fill(LINES_ROWS, rows="".join(f"#if {condition(o)}\n    [GRD_LINES_{o.c_name.upper()}] = lines_{o.c_name},\n#endif\n" for o in members))


def files(operators):
    lines = [o for o in operators.values() if o.law == "lines"]
    result = {"gen/lines_kernels.h": lines_header(lines), "gen/lines_rows.h": lines_rows(lines)}
    for kind in KERNELS:
        result |= {f"gen/{kind}_kernels.h": kernels_header(kind, operators), f"gen/{kind}_rows.h": rows_file(kind, operators)}
    return result
