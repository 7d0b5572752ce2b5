"""Checks that every use of a freed tensor is reported by GRADUS_DEBUG=lifetimes, and that valgrind and AddressSanitizer find reads of freed memory,
all with the release library."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build" / "release"
COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
PLACE = r"opened (in \w+ \(|at )\S+\+0x[0-9a-f]+\)?"


def build(source, program, *flags):
    command = [COMPILER, "-g", "-O1", "-Wall", "-Wextra", "-Werror", *flags, f"-I{ROOT}/include", f"-I{BUILD}/include", source, "-o", program,
               f"-L{BUILD}", "-lgradus", f"-Wl,-rpath,{BUILD}"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return program


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build(ROOT / "test" / "lifetimes" / "lifetimes.c", tmp_path_factory.mktemp("lifetimes") / "lifetimes", "-rdynamic")


def run(*command, debug=True, **environment):
    environment = {**os.environ, **environment}
    environment.pop("GRADUS_DEBUG", None)
    if debug:
        environment["GRADUS_DEBUG"] = "lifetimes"
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def reports(program, case):
    result = run(program, case)
    assert result.returncode == 0, result.stderr
    return result.stdout.splitlines()


def expect(lines, *patterns):
    assert len(lines) == len(patterns), lines
    for line, pattern in zip(lines, patterns):
        assert re.fullmatch(pattern, line), (line, pattern)


def after_its_scope(scope, depth):
    return rf" that has been freed: scope {scope}, at depth {depth}, {PLACE}, was closed"


def test_use_after_the_scope_reports_operator_argument_and_scope(program):
    expect(reports(program, "use_after_scope"),
           r"add: argument 'other' \(position 2\) is a tensor made by mul" + after_its_scope(2, 2),
           r"add: argument 'self' \(position 1\) is a tensor made by mul" + after_its_scope(2, 2),
           r"add: argument 'out' is a tensor made by mul" + after_its_scope(2, 2),
           r"stack: argument 'tensors' \(position 1\) is a tensor made by mul" + after_its_scope(3, 2),
           r"grd_item: argument 't' is a tensor made by mul" + after_its_scope(2, 2),
           "nothing",
           r"sum: argument 'self' \(position 1\) is a tensor made by zeros" + after_its_scope(1, 1))
    assert "opened in dead_product (" in reports(program, "use_after_scope")[0]


def test_a_report_names_the_operator_that_made_the_tensor(program):
    # The tensors are made by a composed operator, a view, an in-place operator, no operator, and an operator with several results.
    makers = [" made by mse_loss", " made by t", " made by sqrt", "", " made by unbind"]
    expect(reports(program, "names_of_makers"), *(rf"grd_numel: argument 't' is a tensor{maker}" + after_its_scope(2, 2) for maker in makers))


def test_drop_and_keep_without_a_reference_are_reported(program):
    unowned = r" to which the caller has no reference; grd_keep takes one"
    expect(reports(program, "references"),
           "grd_drop: argument 't' is a tensor made by ones" + unowned,
           "nothing",
           "grd_drop: argument 't' is a tensor made by zeros" + unowned,
           "nothing",
           "grd_drop: argument 't' is a tensor made by zeros that has been freed: its last owner gave it up",
           "grd_keep: argument 't' is a tensor made by zeros that has been freed: its last owner gave it up",
           "grd_scope_close: the scope is not open: it, or one around it, was closed before")


def test_closing_a_scope_frees_tensors_of_scopes_left_open_inside_it(program):
    expect(reports(program, "scopes"), "nothing", r"grd_numel: argument 't' is a tensor made by ones" + after_its_scope(1, 1),
           r"grd_numel: argument 't' is a tensor made by ones" + after_its_scope(1, 1),
           r"grd_scope_return: argument 'result' is a tensor made by ones" + after_its_scope(1, 1))


def test_every_operator_refuses_freed_tensors(program):
    assert reports(program, "operators") == ["refused"]


def test_a_correct_program_prints_the_same_with_lifetime_checks(program):
    assert reports(program, "training") == run(program, "training", debug=False).stdout.splitlines()


def test_save_and_load_into_refuse_freed_tensors(program, tmp_path):
    result = subprocess.run([program, "named_tensors"], capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "GRADUS_DEBUG": "lifetimes"})
    expect(result.stdout.splitlines(), r"grd_save: argument 'tensors' is a tensor made by mul" + after_its_scope(2, 2), "nothing",
           r"grd_load_into: argument 'tensors' is a tensor made by mul" + after_its_scope(2, 2))


# Public functions that take a tensor without checking that it is alive. The comments say why that is harmless.
HARMLESS = {
    # A language binding calls these functions for its own objects. Each object owns a reference to its tensor, so the tensor is alive.
    "grd_binding_of", "grd_binding_set", "grd_binding_is_owned", "grd_is_sole_owner",
    # Kernels call these functions with tensors that the operator has already checked.
    "grd_cpu_fallback", "grd_redispatch", "grd_run_planned",
    # These functions take a grd_custom_call, so they can only be called during a call of a custom function.
    "grd_custom_mark_dirty", "grd_custom_mark_non_differentiable", "grd_custom_save", "grd_custom_end",
}
VALUES = {"grd_dims": "GRD_NO_DIMS", "grd_dims_view": "GRD_NO_DIMS", "grd_dtype": "GRD_FLOAT32", "bool": "false", "int": "1", "int64_t": "0", "double": "0.5", "grd_form": "GRD_OUT",
          "uint64_t": "0", "size_t": "0", "grd_scope": "inner"}
POINTERS = {"const char *": '"exp_avg"', "const grd_optimizer *": "optimizer", "grd_optimizer *": "optimizer", "const grd_op *": 'grd_op_find("exp")', "const grd_value *": "values", "grd_value *": "values + 1",
            "grd_tensor **": "results", "const grd_custom_function *": "&function", "grd_node *": "grd_grad_fn(other)", "grd_tensor_hook *": "hook", "grd_function *": "identity", "const grd_wrapper_type *": "&wrapper"}


def public_functions():
    """Yields (name, [type of each parameter]) of the functions in the headers that take tensors."""
    for header in sorted((ROOT / "include" / "gradus").glob("*.h")):
        text = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.S)
        for returned, name, parameters in re.findall(r"GRD_API ([\w\s*]+?)(\w+)\(([^;{]*)\)\s*;", text):
            parameters = [re.sub(r"\s+", " ", p).strip() for p in re.split(r",(?![^(]*\))", parameters)]
            types = [re.sub(r"\b\w+$", "", p).strip() if "(" not in p else "function" for p in parameters]
            if any(re.search(r"\bgrd_tensors?(_view)?\b", t) for t in types):
                yield name, types


def argument(kind, dead):
    if kind in ("grd_tensor *", "const grd_tensor *"):
        return "dead" if dead else "live"
    if kind in ("grd_tensors", "grd_tensors_view"):
        return "grd_tensors(live, dead)" if dead else "grd_tensors(live, other)"
    if kind == "grd_tensor *const *":
        return "&dead" if dead else "&live"
    return VALUES.get(kind) or POINTERS.get(kind) or "(void *)0"


def test_every_public_function_refuses_freed_tensors(tmp_path):
    calls = []
    for name, types in public_functions():
        places = [i for i, t in enumerate(types) if re.search(r"\bgrd_tensors?(_view)?\b", t) and t != "grd_tensor **"]
        for place in [] if name in HARMLESS else places:
            given = ", ".join("1" if i > 0 and types[i - 1] == "grd_tensor *const *" and t == "int64_t" else argument(t, i == place) for i, t in enumerate(types))
            calls.append(f'    {{ BEGIN (void){name}({given}); END("{name}, argument {place + 1}"); }}')
    assert len(calls) > 60
    source = tmp_path / "functions.c"
    source.write_text(r"""
#include <gradus/gradus.h>
#include <stdio.h>
#include <string.h>
static void backward(grd_custom_call *call, grd_tensor *const *grads, grd_tensor **ret) { (void)call, (void)grads, (void)ret; }
static void forward(grd_custom_call *call, grd_tensor *const *inputs, grd_tensor **ret) { (void)call; ret[0] = inputs[0]; }
static grd_tensor *hook(grd_tensor *grad, void *context) { (void)context; return grad; }
static grd_tensors identity(grd_tensor *const *inputs, int n, void *context) { (void)context; return grd_tensors_from(inputs, n); }
static const grd_wrapper_type wrapper;
#define BEGIN                                                                                                   \
    grd_scope outer = grd_scope_open(), inner = grd_scope_open();                                               \
    grd_tensor *dead = grd_exp(grd_ones(grd_dims(1)));                                                          \
    grd_scope_close(inner);                                                                                     \
    inner = grd_scope_open();                                                                                   \
    grd_tensor *live = grd_ones(grd_dims(1), .requires_grad = true), *other = grd_clone(live), *results[8];     \
    grd_optimizer *optimizer = grd_adam_new(grd_tensors(live), 0.1);                                            \
    grd_custom_function function = {.name = "f", .forward = forward, .backward = backward, .inputs = 1, .outputs = 1}; \
    grd_value values[2] = {{.kind = GRD_KIND_TENSOR, .v.tensor = live}};                                        \
    (void)other, (void)results, (void)optimizer, (void)function, (void)dead, (void)values;
#define END(what)                                                                                               \
    if (strstr(grd_error_message(), "that has been freed") == NULL)                                                    \
        printf("%s: %s\n", what, grd_error_message());                                                          \
    grd_error_clear();                                                                                          \
    grd_optimizer_drop(optimizer);                                                                              \
    grd_scope_close(outer);                                                                                     \
    grd_error_clear();
int main(void)
{
""" + "\n".join(calls) + "\n    return 0;\n}\n")
    result = run(build(source, tmp_path / "functions", "-Wno-unused-value"))
    assert result.returncode == 0 and result.stdout == "", result.stdout + result.stderr


# ---- valgrind and AddressSanitizer ---------------------------------------------------------------------------------------------------

STALE = ["stale_pointer", "stale_large_pointer", "stale_sizes"]


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed: as root, apt-get install valgrind")
@pytest.mark.parametrize("case", STALE)
def test_memcheck_reports_reads_of_freed_tensors(program, case):
    environment = {"GRADUS_ISA": "v3", "OPENBLAS_CORETYPE": "Haswell"}
    plain = run("valgrind", "--error-exitcode=9", program, case, debug=False, **environment)
    assert plain.returncode == 9 and "Invalid read" in plain.stderr and "free'd" in plain.stderr and case in plain.stderr
    quarantined = run("valgrind", "--error-exitcode=9", program, case, **environment)
    assert quarantined.returncode == 9 and "Invalid read" in quarantined.stderr


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed: as root, apt-get install valgrind")
def test_memcheck_reports_nothing_for_a_correct_program(program):
    for debug in (False, True):
        result = run("valgrind", "--error-exitcode=9", program, "training", debug=debug, GRADUS_ISA="v3", OPENBLAS_CORETYPE="Haswell")
        assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    program = tmp_path_factory.mktemp("sanitized") / "lifetimes"
    try:
        build(ROOT / "test" / "lifetimes" / "lifetimes.c", program, "-rdynamic", "-fsanitize=address")
    except AssertionError as error:
        if "asan" in str(error):
            pytest.skip("the compiler has no AddressSanitizer")
        raise
    return program


@pytest.mark.parametrize("case", STALE)
def test_address_sanitizer_reports_reads_of_freed_tensors(sanitized, case):
    plain = run(sanitized, case, debug=False)
    assert plain.returncode != 0 and "heap-use-after-free" in plain.stderr and case in plain.stderr
    quarantined = run(sanitized, case)
    assert quarantined.returncode != 0 and "use-after-poison" in quarantined.stderr


def test_address_sanitizer_reports_nothing_for_a_correct_program(sanitized):
    for debug in (False, True):
        assert run(sanitized, "training", debug=debug, ASAN_OPTIONS="detect_leaks=0").returncode == 0
    assert run(sanitized, "operators").stdout == "refused\n"
