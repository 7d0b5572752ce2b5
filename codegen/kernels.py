"""Generates the C files of the elementwise kernels. For each operator they contain the C function that computes one element, the loop over
contiguous elements, and the row in the kernel table of each dtype."""
import re

from codegen import ctype, expression
from codegen.headers import BANNER
from codegen.schema import KERNELS
from codegen.template import fill, function

TABLE = """
    #pragma once

    enum grd_${kind}_kernel {
        $rows
        GRD_${KIND}_COUNT
    };
"""

BLOCK = """
    static void ${operator}_block(int64_t n, char *const *data, __attribute__((unused)) const void *params)
    {
        $numbers
        $result *made = ($result *)data[0];
        $inputs
        IN_PLACE for (int64_t i = 0; i < n; i++)
            made[i] = $body($words);
    }
"""

MAP_BLOCK = """
    static void ${operator}_block(int64_t n, char *const *data, __attribute__((unused)) const void *params) { $map(n, data, $body); }
"""

LIGHT_BLOCK = """
    static void ${operator}_block(int64_t n, char *const *data, const void *params) { $map(n, data, params, $body); }
"""

BITS = """
    static void ${operator}_block(int64_t n, char *const *data, __attribute__((unused)) const void *params)
    {
        T *made = (T *)data[0];
        $inputs
        IN_PLACE for (int64_t i = 0; i < n; i++)
            made[i] = (T)($bits);
    }
"""

BLOCK_OF_ITS_OWN = """
    static void ${operator}_block(int64_t n, char *const *data, __attribute__((unused)) const void *params)
    {
        $body(n, (C *)data[0], $inputs);
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
    """Returns the header with the enum of indices into the kernel table of one kind. Each kind has a header of its own, so that a new kernel
    recompiles only the kernels of that kind."""
    rows = "".join(f"{index(o)},\n" for o in operators.values() if o.kernel == kind)
    return BANNER.format("schema") + fill(TABLE, kind=kind, KIND=kind.upper(), rows=rows)


def where(categories, text):
    return f"#if {condition(categories)}\n{text}#endif\n"


def bodies(operator, operators):
    """Returns the C functions that compute one element, each inside an #if for its categories of dtypes. The functions take the elements of the
    tensors as x, y and z."""
    rest = operator.dtypes - operator.block
    text = bodies_of(operator, rest, operators)
    return where(rest, text) if operator.block and text else text


def bodies_of(operator, dtypes, operators):
    categories = {}
    for category in sorted(dtypes):
        text = expression.body(operator, category, operators)
        if text is not None:
            categories.setdefault(text, set()).add(category)
    arguments = expression.words(operator).values()
    parameters = ", ".join(f"{'bool' if operator.mask and name == 'x' else 'C'} {name}" for name in arguments)
    text = ""
    for value, members in categories.items():
        unused = "".join(f"(void){name};\n" for name in arguments if not re.search(rf"\b{name}\b", value))
        body = function(f"static inline {'bool' if operator.gives_bool else 'C'} {operator.kernel}_{operator.c_name}({parameters})", f"{unused}{value}")
        text += body if members == dtypes else f"#{'elif' if text else 'if'} {condition(members)}\n{body}"
    return f"{text}#endif\n" if text.startswith("#") else text


def declared(operator, element):
    """Returns the C declarations of a loop's input pointers, one declaration for each type."""
    operands = {}
    for place, a in enumerate((a for a in operator.args if a.is_tensor), 1):
        t = "uint8_t" if operator.mask and place == 1 else element
        operands.setdefault(t, []).append(f"*{a.name}_data = (const {t} *)data[{place}]")
    return "\n".join(f"const {t} {', '.join(names)};" for t, names in operands.items())


def map_block(operator, body):
    """Returns the C loop of a kernel whose inputs are tensors only, without numbers."""
    if operator.light:
        return fill(LIGHT_BLOCK, operator=operator.c_name, map=f"light_{operator.inputs}", body=body)
    return fill(MAP_BLOCK, operator=operator.c_name, map=f"{'test' if operator.gives_bool else 'map'}_{operator.inputs}", body=body)


def half_block(operator, operators):
    """Returns the C loop of a kernel for 16-bit floats. If the schema entry has `bits`, the loop is for bfloat16 and float16. Otherwise it is for
    bfloat16 only, because float16 is faster with CPU instructions that convert it to and from float32 around the float32 kernel."""
    if operator.bits:
        letters = {word: f"{name}_data[i]" for name, word in expression.words(operator).items()}
        return fill(BITS, operator=operator.c_name, inputs=declared(operator, "T"), bits=re.sub(r"\b[xyz]\b", lambda word: letters[word[0]], operator.bits))
    return f"#if GRD_IS_BFLOAT16\n{bodies_of(operator, {'float'}, operators)}{map_block(operator, f'{operator.kernel}_{operator.c_name}')}#endif\n"


def block(operator, operators):
    """Returns the C code of a kernel: the functions that compute one element, and a loop over contiguous elements that the compiler can vectorise."""
    body = f"{operator.kernel}_{operator.c_name}"
    own = where(operator.block, fill(BLOCK_OF_ITS_OWN, operator=operator.c_name, body=body, inputs=", ".join(f"(const C *)data[{i}]" for i in range(1, operator.inputs + 1)))) if operator.block else ""
    rest = operator.dtypes - operator.block
    if not (operator.mask or any(a.kind in ctype.NUMBERS for a in operator.args)):
        mapped = map_block(operator, body)
        return bodies(operator, operators) + own + (mapped if not own else where(rest, mapped) if rest else "")
    numbers = [f"number_{i}" for i in range(sum(a.kind in ctype.NUMBERS for a in operator.args))]
    scalar = fill(BLOCK, operator=operator.c_name, body=body, result="uint8_t" if operator.gives_bool else "C",
                numbers="\n".join(f"const C {name} = param(params, {i});" for i, name in enumerate(numbers)),
                inputs=declared(operator, "C"), words=", ".join([f"{a.name}_data[i]" for a in operator.args if a.is_tensor] + numbers))
    return bodies(operator, operators) + own + (where(rest, scalar) if own else scalar)


def sizes(operator):
    """Returns the name of the C constant with the element sizes of the result and the inputs. For example, SIZES_1_CC stands for a result of one
    byte and two inputs of the dtype's size."""
    return f"SIZES_{'1' if operator.gives_bool else 'C'}_{''.join('1' if operator.mask and i == 0 else 'C' for i in range(operator.inputs))}"


def sizes_enum(operators):
    """Returns the C enum of the constants SIZES_..., one for each combination of element sizes (result, inputs) that the given operators have."""
    rows = ""
    for name in sorted(set(map(sizes, operators))):
        letters = name.removeprefix("SIZES_").replace("_", "").ljust(4, "0")
        rows += f"{name} = GRD_MAP_SIZES({', '.join({'C': 'sizeof(T)'}.get(c, c) for c in letters)}),\n"
    return fill(SIZES, rows=rows)


def row(operator, light):
    return f"[{index(operator)}] = {{{operator.c_name}_block, {sizes(operator)}, {'LIGHT' if light else 'false'}}},\n"


def condition(categories):
    return " || ".join(f"GRD_IS_{category.upper()}" for category in sorted(categories))


def rows_file(kind, members, operators):
    """Returns the text of a C file with the kernels of one kind and their table. The file is compiled once for each dtype. Operators with equal
    sets of dtypes share an #if."""
    groups = {}
    for operator in (o for o in members if o.kernel == kind):
        groups.setdefault(condition(operator.dtypes), []).append(operator)
    text, rows = BANNER.format("schema") + f'#include "gen/{kind}_kernels.h"\n\n', ""
    text += sizes_enum([o for o in members if o.kernel == kind])
    halves = [o for o in members if o.kernel == kind and (o.light or o.bits)]
    if halves:
        text += f"\n#if GRD_IS_HALF\n{''.join(half_block(o, operators) for o in halves)}#else\n"
        rows += "#if GRD_IS_HALF\n" + "".join(row(o, False) if o.bits else f"#if GRD_IS_BFLOAT16\n{row(o, o.light)}#endif\n" for o in halves) + "#else\n"
    for dtypes, alike in groups.items():
        functions = "".join(block(o, operators) for o in alike)
        text += f"\n#if {dtypes}\n{functions}#endif\n"
        rows += f"#if {dtypes}\n{''.join(row(o, o.light and not o.block) for o in alike)}#endif\n"
    if halves:
        text += "#endif\n"
        rows += "#endif\n"
    return text + "\n" + fill(ROWS, kind=kind, KIND=kind.upper(), rows=rows)


# Target dtype -> (C type of its elements, C expression that converts the element x of the source dtype). The functions called in the expressions are
# in src/kernel/cpu/cast.c. int8 and int16 use the loops of uint8 and uint16, because the bits are equal. complex32 has no expression, because
# `convert_parts` computes it from complex64.
CASTS = {
    "bool": ("uint8_t", "to_bool(x)"),
    "uint8": ("uint8_t", "(uint8_t)to_int32(source(x))"),
    "uint16": ("uint16_t", "(uint16_t)to_int32(source(x))"),
    "int32": ("int32_t", "to_int32(source(x))"),
    "uint32": ("uint32_t", "(uint32_t)to_int64(source(x))"),
    "int64": ("int64_t", "to_int64(source(x))"),
    "uint64": ("uint64_t", "to_uint64(source(x))"),
    "float16": ("uint16_t", "grd_to_float16((float)source(x))"),
    "bfloat16": ("uint16_t", "grd_to_bfloat16((float)source(x))"),
    "float8_e4m3fn": ("uint8_t", "grd_to_float8_e4m3fn((float)source(x))"),
    "float8_e5m2": ("uint8_t", "grd_to_float8_e5m2((float)source(x))"),
    "float32": ("float", "(float)source(x)"),
    "float64": ("double", "(double)source(x)"),
    "complex32": ("struct pair_complex32", None),
    "complex64": ("struct pair_complex64", "(struct pair_complex64){(float)source(x), (float)imaginary(x)}"),
    "complex128": ("struct pair_complex128", "(struct pair_complex128){(double)source(x), (double)imaginary(x)}"),
}
SAME_BITS = {"int8": "uint8", "int16": "uint16"}

CAST_BLOCK = """
    static void to_${dtype}_block(int64_t n, char *const *data, const void *params)
    {
        (void)params;
        $type *y = ($type *)data[0];
        const T *x_data = (const T *)data[1];
        IN_PLACE
        for (int64_t i = 0; i < n; i++) {
            const T x = x_data[i];
            y[i] = $number;
        }
    }
"""

CAST_ROWS = """
    grd_loop_kernel *const GRD_TYPED(grd_cast_row)[GRD_DTYPE_COUNT] = {
        $rows
    };
"""


def cast_rows():
    """Returns the C kernels that convert a source dtype to each target dtype, for a file that is compiled once for each source dtype."""
    text, rows = BANNER.format("a list of dtypes"), ""
    for dtype, (type, number) in CASTS.items():
        text += fill(CAST_BLOCK, dtype=dtype, type=type, number=number) if number is not None else ""
        text += function(f"static void to_{dtype}_loop(int64_t n, char *const *data, const int64_t *strides, const void *params)",
                         f"cast(n, data, strides, params, GRD_{dtype.upper()}, sizeof({type}), {f'to_{dtype}_block' if number is not None else 'NULL'});") + "\n"
    for dtype in [*CASTS, *SAME_BITS]:
        rows += f"[GRD_{dtype.upper()}] = CAST_IF({dtype}, to_{SAME_BITS.get(dtype, dtype)}_loop),\n"
    return text + fill(CAST_ROWS, rows=rows)


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
    """Returns the header with the enum of indices of the kernels that work along one dimension (src/kernel/lines.h)."""
    return BANNER.format("schema") + fill(LINES, rows="".join(f"GRD_LINES_{o.c_name.upper()},\n" for o in members))


def lines_rows(members):
    """Returns the C table of the kernels that work along one dimension, for one dtype. The kernels are the functions lines_NAME in
    src/kernel/cpu/lines.c."""
    return BANNER.format("schema") + fill(LINES_ROWS, rows="".join(f"#if {condition(o.dtypes)}\n    [GRD_LINES_{o.c_name.upper()}] = lines_{o.c_name},\n#endif\n" for o in members))


def files(operators):
    lines = [o for o in operators.values() if o.law == "lines"]
    result = {"gen/cast_rows.h": cast_rows(), "gen/lines_kernels.h": lines_header(lines), "gen/lines_rows.h": lines_rows(lines)}
    for kind in (*KERNELS, "gradient"):
        result |= {f"gen/{kind}_kernels.h": kernels_header(kind, operators), f"gen/{kind}_rows.h": rows_file(kind, operators.values(), operators)}
    return result
