"""What tests share that build something against an install: the install itself, once per run, and running commands."""
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def run(command, cwd, **environment):
    return subprocess.run(command, cwd=cwd, shell=isinstance(command, str), capture_output=True, text=True, env={**os.environ, **environment})


@pytest.fixture(scope="session")
def prefix(tmp_path_factory):
    """The release build, installed into a folder of its own."""
    folder = tmp_path_factory.mktemp("prefix")
    result = run(["cmake", "--install", str(ROOT / "build/release"), "--prefix", str(folder)], ROOT)
    assert result.returncode == 0, result.stderr
    return folder


def libdir(prefix):
    """Where gradus.pc is: for PKG_CONFIG_PATH."""
    return next(prefix.rglob("gradus.pc")).parent
