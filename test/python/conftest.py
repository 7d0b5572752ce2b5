"""What tests share: the package of the build (GRADUS_BUILD, build/release) on the path, an install, once per run, and running commands."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / os.environ.get("GRADUS_BUILD", "build/release")
sys.path.insert(0, str(BUILD / "python"))


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
