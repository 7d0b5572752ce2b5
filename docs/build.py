"""Builds the documents to an offline site: python docs/build.py [FOLDER], build/docs unless said. Needs tools/requirements-docs.txt and a built package.

The pages in docs/*.md are written by hand; docs/generator makes the others from headers, schema, docstrings and
records, and draws the pictures from the code.
"""
import shutil
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(DOCS), str(ROOT), str(ROOT / "build" / "release" / "python")]

from generator import c_reference, pages, pictures, python_reference  # noqa: E402  the path must be there before


def write_source(folder):
    """The Markdown of the whole site in one folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for page in DOCS.glob("*.md"):
        (folder / page.name).write_text(pictures.with_pictures(page.read_text()))
    for page in ("CHANGELOG.md", "SECURITY.md"):
        shutil.copy(ROOT / page, folder)
    for path, text in (c_reference.pages(ROOT) | python_reference.pages() | pages.pages(ROOT)).items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)


def main():
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "docs"
    write_source(target / "source")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-c", DOCS, target / "source", target / "html"]
    sys.exit(subprocess.run([str(part) for part in command]).returncode)


if __name__ == "__main__":
    main()
