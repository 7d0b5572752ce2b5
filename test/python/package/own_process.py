"""Runs parts of a test in processes of their own, so that a crash is detected. Tests that call the library with arbitrary arguments use this file."""
import os
import subprocess
import sys
from pathlib import Path

PARTS = 4


def attempt(function, *arguments, **keywords):
    """Returns the result of the call, or None if it raises an exception that a caller can expect."""
    try:
        return function(*arguments, **keywords)
    except (SystemExit, KeyboardInterrupt, SystemError):
        raise
    except Exception:
        return None


def check_part(file, part):
    """Runs the test file `file` as a program, with the number of the part as its argument, and checks that it succeeds."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-X", "faulthandler", file, str(part)], cwd=Path(file).resolve().parent, env=environment, capture_output=True,
                            text=True, errors="replace")
    assert result.returncode == 0, result.stderr[-4000:]
