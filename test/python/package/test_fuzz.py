"""Every function, called with random arguments of wrong types, sizes and values: only exceptions come out.

Each run is a process of its own, so that a crash is seen as one. GRADUS_FUZZ_CALLS says how many calls each function gets."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CALLS = int(os.environ.get("GRADUS_FUZZ_CALLS", "60"))
PARTS = 4


def run(part):
    import resource
    import warnings

    from surface import Arguments, functions

    if "LD_PRELOAD" not in os.environ:  # a sanitizer needs all the addresses there are
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    warnings.simplefilter("ignore")
    for number, (name, function) in enumerate(functions()):
        if number % PARTS != part:
            continue
        arguments = Arguments(number)
        print(name, file=sys.stderr, flush=True)
        for _ in range(CALLS):
            positional, keywords = arguments.call()
            try:
                function(*positional, **keywords)
            except (SystemExit, KeyboardInterrupt, SystemError):
                raise
            except Exception:
                pass


@pytest.mark.parametrize("part", range(PARTS))
def test_only_exceptions_come_out(part):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    result = subprocess.run([sys.executable, "-X", "faulthandler", __file__, str(part)], cwd=HERE, env=environment, capture_output=True, text=True,
                            errors="replace")
    assert result.returncode == 0, result.stderr[-4000:]


if __name__ == "__main__":
    run(int(sys.argv[1]))
