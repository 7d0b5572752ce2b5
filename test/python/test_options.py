"""Passes numbers for every option of every operator, in C and in C++. Each number must arrive unchanged in the kernel. If the option takes no number,
the call must not compile."""
import shutil
import sys

import pytest

from conftest import BUILD, ROOT, run

sys.path.insert(0, str(ROOT))
from codegen import ctype, headers  # noqa: E402
from codegen.schema import read_schema  # noqa: E402

OPERATORS = [o for o in read_schema(ROOT / "schema").values() if headers.options(o) and not o.hidden]
COMPILERS = [("gcc", "c11"), ("gcc", "c17"), ("gcc", "c2x"), ("clang", "c11"), ("clang", "c2x"), ("g++", "c++11"), ("g++", "c++20"), ("clang++", "c++17")]
STRICT = "-Wall -Wextra -pedantic -Wshadow"
INCLUDE = f"-I{ROOT / 'include'} -I{BUILD / 'include'}"
PLACEHOLDERS = {"Tensor": "t", "Scalar": "grd_int(1)", "int": "1", "float": "1", "bool": "false", "str": '"x"', "dtype": "GRD_FLOAT32", "device": "GRD_CPU",
                "Generator": "NULL"}

# The C kernel `capture` receives every call. It stores the argument that `wanted` names, and ends the call with an error.
HEAD = r"""
#include <gradus/gradus.h>
#include <stdio.h>
#include <string.h>

static const char *wanted;
static grd_value got;
static int64_t element;
static int failures;

static void capture(const grd_op *op, grd_keyset keys, grd_tensor *out, const grd_value *args, grd_value *ret_results, void *context)
{
    (void)keys, (void)out, (void)ret_results, (void)context;
    for (int i = 0; i < grd_op_arg_count(op); i++)
        if (strcmp(grd_op_arg_name(op, i), wanted) == 0)
            got = args[i];
    element = got.kind == GRD_KIND_DIMS && got.v.dims.n == 1 ? *got.v.dims.data : -99;
    grd_error_set(GRD_ERROR_RUNTIME, "captured");
}

static void want(const char *name)
{
    wanted = name;
    memset(&got, 0, sizeof got);
}

static void expect(bool is, const char *call)
{
    if (!is || strstr(grd_error_message(), "captured") == NULL) {
        failures++;
        printf("%s: kind %d, %s\n", call, (int)got.kind, grd_error_message());
    }
    grd_error_clear();
}
"""
MAIN = r"""
int main(void)
{
    grd_scope scope = grd_scope_open();
    grd_tensor *t = grd_ones(grd_dims(1));
    for (int64_t i = 0; i < grd_op_count(); i++)
        grd_register_kernel(grd_op_name(grd_op_at(i)), GRD_KEY_WRAPPER, capture, NULL);
    grd_key_guard_set(1u << GRD_KEY_WRAPPER, 0);
    run(t);
    grd_scope_close(scope);
    return failures != 0;
}
"""


def placeholder(argument):
    if argument.list:
        return "grd_tensors(t)" if argument.is_tensor else "grd_dims(1)"
    return "grd_int(1)" if ctype.is_scalar(argument) else PLACEHOLDERS[argument.kind]


def call(operator, option, value, cpp):
    """Returns a C or C++ statement that calls the operator with one option."""
    words = [placeholder(a) for a in headers.required(operator)]
    suffix = headers.form_names(operator)[0][0]
    name = f"grd_{operator.name}{suffix}"
    if cpp:
        return f"{{ grd_{operator.name}_options o; o.{option.name} = {value}; {name}({', '.join([*words, 'o'])}); }}"
    return f"{name}({', '.join([*words, f'.{option.name} = {value}'])});"


def expectations(option):
    """Returns [(value as it is written, C condition that is true if the value has arrived)] for an option that takes a number."""
    if option.list:
        return [(f"{v}", f"got.kind == GRD_KIND_DIMS && element == {v}") for v in (0, 1, -1)]
    if ctype.is_scalar(option):
        whole = [(f"{v}", f"got.v.scalar.kind == GRD_SCALAR_INT && got.v.scalar.v.i == {v}") for v in (0, 1, -3)]
        return whole + [("-0.25", "got.v.scalar.kind == GRD_SCALAR_FLOAT && got.v.scalar.v.c.re == -0.25"),
                        ("grd_float(2)", "got.v.scalar.kind == GRD_SCALAR_FLOAT && got.v.scalar.v.c.re == 2")]
    if option.kind == "int":
        return [(f"{v}", f"got.v.integer == {v}") for v in (0, 1, -1, "INT64_MAX")]
    if option.kind == "float":
        return [(f"{v}", f"got.v.number == {v}") for v in (0, 1, 0.5, -2)]
    return [("0", "!got.v.boolean"), ("1", "got.v.boolean")] if option.kind == "bool" else []


def numbers(operator):
    return [a for a in headers.options(operator) if a.kind in ctype.NUMBERS]


def program(cpp):
    text, calls = HEAD, []
    for operator in OPERATORS:
        lines = ""
        for option in numbers(operator):
            for value, test in expectations(option):
                shown = f"{operator.name}: .{option.name} = {value}"
                lines += f'    want("{option.name}");\n    {call(operator, option, value, cpp)}\n    expect({test}, "{shown}");\n'
            default = f"grd_{operator.name}{headers.form_names(operator)[0][0]}({', '.join(placeholder(a) for a in headers.required(operator))});"
            lines += f'    want("{option.name}");\n    {default}\n    expect({default_test(option)}, "{operator.name}: {option.name} not given");\n'
        if lines:
            text += f"static void run_{operator.name}(grd_tensor *t)\n{{\n    (void)t;\n{lines}}}\n"
            calls.append(f"    run_{operator.name}(t);\n")
    return text + "static void run(grd_tensor *t)\n{\n" + "".join(calls) + "}\n" + MAIN


def default_test(option):
    value = option.default
    if option.list:
        return "true" if value is not None else "got.v.dims.data == NULL"
    if ctype.is_scalar(option):
        kind, member = ("INT", "i") if isinstance(value, int) else ("FLOAT", "c.re")
        return "got.v.scalar.kind == GRD_SCALAR_NONE" if value is None else f"got.v.scalar.kind == GRD_SCALAR_{kind} && got.v.scalar.v.{member} == {value}"
    member = {"int": "integer", "float": "number", "bool": "boolean"}[option.kind]
    return f"got.v.{member} == {ctype.literal(value)}"


@pytest.mark.parametrize("compiler, standard", COMPILERS)
def test_numbers_given_as_options_arrive_unchanged(compiler, standard, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed: as root, apt-get install g++ clang")
    cpp = "++" in standard
    source = tmp_path / f"options.{'cpp' if cpp else 'c'}"
    source.write_text(program(cpp))
    built = run(f"{compiler} -std={standard} {STRICT} -Werror {INCLUDE} {source.name} -o options -L{BUILD} -lgradus -Wl,-rpath,{BUILD}", tmp_path)
    assert built.returncode == 0, built.stderr[-3000:]
    ran = run(["./options"], tmp_path)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout[-3000:] + ran.stderr[-1000:]


@pytest.mark.parametrize("compiler, standard", [("gcc", "c11"), ("clang", "c11"), ("g++", "c++11"), ("clang++", "c++17")])
def test_a_number_for_an_option_that_is_no_number_does_not_compile(compiler, standard, tmp_path):
    """A number given for a tensor, a string or a generator does not compile. 0 is an exception: it is a null pointer and stands for None. Dtypes are
    tested in C++ only, because in C a dtype may be any integer. Devices in C are tested in test_errors.c."""
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed: as root, apt-get install g++ clang")
    cpp = "++" in standard
    lines, text = {}, "#include <gradus/gradus.h>\nvoid run(grd_tensor *t);\nvoid run(grd_tensor *t)\n{\n    (void)t;\n"
    for operator in OPERATORS:
        for option in headers.options(operator):
            pointer = option.kind in ("Tensor", "str", "Generator")
            for value in ("1", "0.5") if pointer else ("0", "1", "0.5") if cpp and option.kind in ("dtype", "device") else ():
                text += f"    {call(operator, option, value, cpp)}\n"
                lines[text.count("\n")] = f"{operator.name}: .{option.name} = {value}"
    source = tmp_path / f"refused.{'cpp' if cpp else 'c'}"
    source.write_text(text + "}\n")
    limit = "-fmax-errors=0" if compiler in ("gcc", "g++") else "-ferror-limit=0"
    errors = run(f"{compiler} -std={standard} {STRICT} -Werror {limit} -fsyntax-only {INCLUDE} {source.name}", tmp_path).stderr.splitlines()
    refused = {int(line.split(":")[1]) for line in errors if line.startswith(source.name + ":") and "error:" in line}
    assert lines and not [call for number, call in lines.items() if number not in refused]


def test_an_option_without_a_name_does_not_compile(tmp_path):
    calls = "".join(f"    grd_{o.name}{headers.form_names(o)[0][0]}({', '.join([placeholder(a) for a in headers.required(o)] + ['0'])});\n" for o in OPERATORS)
    (tmp_path / "main.c").write_text(f"#include <gradus/gradus.h>\nvoid run(grd_tensor *t);\nvoid run(grd_tensor *t)\n{{\n{calls}}}\n")
    errors = run(f"gcc -std=c11 -Wall -Werror -fmax-errors=0 -fsyntax-only {INCLUDE} main.c", tmp_path).stderr
    assert sum("main.c" in line and "excess elements" in line and "error:" in line for line in errors.splitlines()) == len(OPERATORS)
