"""Checks that the programs in the documents compile or run, and print what the documents show. Also checks that the recorded names of PyTorch are
those of the installed PyTorch."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import BUILD, ROOT, needs, needs_python_headers
from oracle import needs_torch

DOCS = ROOT / "docs"
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-pedantic", "-Werror"]


def programs(language, begins):
    """Returns a pytest parameter (program, expected output) for each complete program in `language`, i.e. each code block that contains `begins`. The
    expected output is the text block that follows the code, or None if there is none."""
    found = []
    for page in sorted(DOCS.glob("*.md")):
        for number, match in enumerate(re.finditer(rf"```{language}\n(.*?)```\s+(?:```text\n(.*?)```)?", page.read_text(), re.S)):
            if begins in match[1]:
                found.append(pytest.param(match[1], match[2], id=f"{page.stem}-{number}"))
    return found


def run(program, folder):
    return subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=60, env=os.environ | {"PYTHONPATH": str(BUILD / "python")})


@pytest.mark.parametrize("program, printed", programs("c", "int main("))
def test_c_programs_print_what_the_documents_show(program, printed, tmp_path):
    (tmp_path / "main.c").write_text(program)
    build = ["cc", "-std=c11", *WARNINGS, "main.c", "-o", "main", f"-I{ROOT}/include", f"-I{BUILD}/include", f"-L{BUILD}", f"-Wl,-rpath,{BUILD}", "-lgradus", "-lm"]
    built = run(build, tmp_path)
    assert built.returncode == 0, built.stderr
    ran = run(["./main"], tmp_path)
    assert (ran.returncode, ran.stdout) == (0, printed), ran.stderr


@pytest.mark.parametrize("program, printed", programs("cpp", "int main("))
def test_cpp_programs_print_what_the_documents_show(program, printed, tmp_path):
    needs("c++", "as root, apt-get install g++")
    (tmp_path / "main.cpp").write_text(program)
    built = run(["c++", "-std=c++17", *WARNINGS, "main.cpp", "-o", "main", f"-I{ROOT}/include", f"-I{BUILD}/include", f"-L{BUILD}", f"-Wl,-rpath,{BUILD}", "-lgradus"], tmp_path)
    assert built.returncode == 0, built.stderr
    ran = run(["./main"], tmp_path)
    assert (ran.returncode, ran.stdout) == (0, printed), ran.stderr


@pytest.mark.parametrize("program, printed", programs("python", "import gradus"))
def test_python_programs_print_what_the_documents_show(program, printed, tmp_path):
    needs_python_headers()
    ran = run([sys.executable, "-c", program], tmp_path)
    assert (ran.returncode, ran.stdout) == (0, printed), ran.stderr


def test_documents_contain_programs_in_each_language():
    assert len(programs("c", "int main(")) >= 5 and programs("cpp", "int main(") and programs("python", "import gradus")


def test_the_recorded_names_are_those_of_the_installed_pytorch():
    needs_torch()
    result = run([sys.executable, "-W", "ignore", "-c", "import record_torch_names as r; print(r.recorded_text(), end='')"], ROOT / "tools")
    assert result.returncode == 0, result.stderr
    assert result.stdout == (DOCS / "torch_names.txt").read_text()


def test_generated_pages_list_every_operator_and_header():
    """The pages that are generated without Sphinx list every operator and every header, and the page of missing names lists all missing names."""
    needs_python_headers()
    sys.path[:0] = [str(DOCS), str(ROOT)]
    from codegen.schema import read_schema
    from generator import c_reference, pages, python_reference

    c_pages = c_reference.pages(ROOT)
    text = "".join(c_pages.values())
    for name, operator in read_schema(ROOT / "schema").items():
        assert (f"## {name}\n" in text) != operator.hidden, name
    for header in (ROOT / "include/gradus").glob("*.h"):
        for prototype in re.findall(r"^GRD_API [^;]*?(grd_\w+)\(", header.read_text(), re.M):
            assert prototype in text, prototype
    python = python_reference.pages()
    assert "## softmax\n" in python["python/gradus.md"] and "## Linear\n" in python["python/gradus.nn.md"]
    missing = pages.missing_page(ROOT)
    assert "`torch.package`" in missing and "`add`" not in missing


def test_links_between_pages_have_targets():
    made = {"benchmarks.md", "examples.md", "missing.md", "CHANGELOG.md", "SECURITY.md"}
    for page in DOCS.glob("*.md"):
        for target in re.findall(r"\]\(([^)#]+\.md)", page.read_text()):
            assert (DOCS / target).exists() or target in made, f"{page.name}: {target}"
