"""One gradient language: every derivative of schema/ is read at run time as the generator reads it, for an operator defined with the same signature."""
import json
import sys

from conftest import ROOT, flags, run

sys.path.insert(0, str(ROOT))
from codegen.schema import read_schema  # noqa: E402

PROGRAM = r'''
#include <stdio.h>
#include <gradus/gradus.h>

static const grd_definition definitions[] = {
%s};

int main(void)
{
    for (size_t i = 0; i < sizeof definitions / sizeof *definitions; i++)
        if (grd_define_operator(&definitions[i]) == NULL) {
            printf("%%s\n", grd_error_message());
            grd_error_clear();
        }
    return 0;
}
'''


def definition(operator):
    formulas = ", ".join(f"{{{json.dumps(name)}, {json.dumps(formula)}}}" for name, formula in operator.grads.items())
    return f"    {{.schema = {json.dumps('again::' + operator.schema)}, .gradients = {{{formulas}}}}},\n"


def test_every_formula_of_the_schema(prefix, tmp_path):
    operators = [o for o in read_schema(ROOT / "schema").values() if o.grads]
    assert len(operators) > 100
    (tmp_path / "main.c").write_text(PROGRAM % "".join(definition(o) for o in operators))
    built = run(f"cc -std=c11 -Wall -Wextra -Werror main.c -o main {flags(prefix)}", tmp_path)
    assert built.returncode == 0, built.stderr
    ran = run(["./main"], tmp_path)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout
