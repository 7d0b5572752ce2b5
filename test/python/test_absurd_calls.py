"""Calls every public function with NULL, negative counts, invalid dtypes and scopes that are not open. Each call must report an error and must
not crash."""
import re

import pytest

from conftest import BUILD, ROOT, run

HEADERS = sorted((ROOT / "include" / "gradus").glob("*.h")) + sorted((BUILD / "include" / "gradus" / "ops").glob("*.h"))

HEAD = r"""
#include <gradus/gradus.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static grd_tensor *t;
static int failures;

static void try(const char *name, void (*call)(void))
{
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
        freopen("/dev/null", "w", stdout);
        alarm(20);
        grd_scope scope = grd_scope_open();
        t = grd_ones(grd_dims(2, 3));
        call();
        grd_error_clear();
        grd_key_guard_restore((grd_key_guard){0, 0});
        grd_scope_close(scope);
        grd_print(grd_ones(grd_dims(2)));
        _exit(grd_ok() ? 0 : 3);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) {
        failures++;
        printf("%s: %s %d\n", name, WIFSIGNALED(status) ? "signal" : "exit", WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    }
}
"""

LEFT_OUT = {"grd_error_set"}  # its text is a printf format, which would read arguments that are absent
# These functions take over a reference of the caller. Only GRADUS_DEBUG=lifetimes can report that the caller owns no reference.
NEED_A_REFERENCE = {"grd_drop", "grd_scope_give"}

# Three values for each type of argument: zero, and two others, which are mostly invalid or extreme.
NOTHING = {"int": ("0", "-1", "INT_MAX"), "int64_t": ("0", "-1", "INT64_MAX"), "uint64_t": ("0", "1", "UINT64_MAX"), "size_t": ("0", "1", "SIZE_MAX"), "unsigned": ("0", "1", "~0u"),
           "double": ("0", "NAN", "-INFINITY"), "bool": ("false", "true", "true"), "uint32_t": ("0", "~0u", "1u << 31"), "grd_keyset": ("0", "~0u", "1u << 31")}
ENUMS = {"grd_dtype", "grd_randomness", "grd_key", "grd_form", "grd_error_code", "grd_layout", "grd_kind"}
STRUCTS = {"grd_scope": ("{-3}", "{INT64_MAX}", "{INT64_MIN}"), "grd_dims_view": ("{0}", "{5, NULL}", "{-1, NULL}"), "grd_tensors_view": ("{0}", "{5, NULL}", "{-1, NULL}"),
           "grd_scalar": ("{.kind = GRD_SCALAR_NONE}", "{.kind = (grd_scalar_kind)77}", "{.kind = GRD_SCALAR_UNTYPED}"), "grd_device": ("{0, 0}", "{200, -1}", "{1, 99}"),
           "grd_print_options": ("{0}", "{-1, -1, -1, -1, 5}", "{99, INT64_MAX, INT64_MAX, 0, 0}"), "grd_named_tensors_view": ("{0}", "{.n = 5}", "{.n = -1}"),
           "grd_named_texts_view": ("{0}", "{.n = 5}", "{.n = -1}"), "grd_key_guard": ("{0, 0}", "{~0u, 0}", "{0, ~0u}")}


def prototypes():
    """Returns [(name, parameter types)] of the functions declared in the headers."""
    found = []
    for header in HEADERS:
        text = re.sub(r"/\*.*?\*/", " ", header.read_text(), flags=re.S)
        for name, parameters in re.findall(r"^GRD_API [^;(]*?\b(grd_\w+)\((.*?)\)(?: GRD_PRINTF\(.*?\))?;", text, re.M | re.S):
            depth, words = 0, [""]
            for c in parameters:
                depth += (c == "(") - (c == ")")
                words = words + [""] if c == "," and depth == 0 else words[:-1] + [words[-1] + c]
            types = [re.sub(r"\s+", " ", w).strip() for w in words]
            found.append((name, [] if types == ["void"] else types))
    return found


def argument(declaration, way, tensors):
    if "(*" in declaration:
        return "NULL"
    kind = re.sub(r"\bconst\b|\b\w+$", "", declaration).strip()
    if tensors and re.fullmatch(r"grd_tensor \*", kind):
        return "t"
    if "*" in kind or kind in ("grd_tensor_hook", "grd_node_hook"):
        return "NULL"
    if kind in ENUMS:
        return f"({kind}){(0, -1, 9999)[way]}"
    if kind in STRUCTS:
        return f"({kind}){STRUCTS[kind][way]}"
    return NOTHING[kind][way]


def test_no_public_function_crashes_on_invalid_arguments(tmp_path):
    text, calls = "#include <limits.h>\n" + HEAD, ""
    functions = [(name, types) for name, types in prototypes() if name not in LEFT_OUT]
    assert len(functions) > 700
    for name, types in functions:
        seen = set()
        for way in range(3):
            for tensors in (False,) if name in NEED_A_REFERENCE else (False, True):
                given = ", ".join(argument(declaration, way, tensors) for declaration in types)
                if given in seen:
                    continue
                seen.add(given)
                function = f"call_{name}_{way}{int(tensors)}"
                text += f"static void {function}(void)\n{{\n    (void){name}({given});\n}}\n"
                calls += f'    try("{name}({given.replace(chr(34), "")})", {function});\n'
    (tmp_path / "main.c").write_text(f"{text}int main(void)\n{{\n{calls}    return failures != 0;\n}}\n")
    built = run(f"cc -std=gnu11 -w -O0 -I{ROOT / 'include'} -I{BUILD / 'include'} main.c -o main -L{BUILD} -lgradus -Wl,-rpath,{BUILD}", tmp_path)
    assert built.returncode == 0, built.stderr[:3000]
    ran = run(["./main"], tmp_path)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout[:6000]
