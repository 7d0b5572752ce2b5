"""Prints the call stack of torch.add(x, y, alpha=2), with broadcasting and a gradient, at the moment when the loop over the elements runs.

  way.py [--build build/dev]      prints the frames from the loop up to the interpreter, and the numbers of frames, of files, and of calls
                                  between hand-written and generated code. The build must have debug information, as preset dev has;
                                  gdb also shows inlined calls.
"""
import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOOP = "hidden_add_scaled_block"
PROGRAM = "import gradus as torch; torch.add(torch.ones(3, 4, requires_grad=True), torch.ones(4), alpha=2)"
FRAME = re.compile(r"^#\d+ +(?:0x[0-9a-f]+ in )?(\w+)[\w.]* \(.*\) (?:at (\S+):(\d+)|from (\S+))$")


def environment_of(build):
    """Returns the environment for gdb and ldd. It has no LD_PRELOAD, because only the debugged program needs the sanitizer's library."""
    kept = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    return {**kept, "PYTHONPATH": str(build / "python"), "ASAN_OPTIONS": "detect_leaks=0"}


def preloaded(build):
    """Returns the path of the sanitizer's library if the extension is linked with one, otherwise "". The library must be loaded before all others."""
    extension = next((build / "python/gradus").glob("_C.*.so"))
    wanted = subprocess.run(["ldd", extension], capture_output=True, text=True, check=True, env=environment_of(build)).stdout
    return " ".join(re.findall(r"=> (\S*lib[at]san\S*)", wanted))


def frames(build, program, function):
    """Returns the stack frames [(function, file, line)] at the first call of `function` in `program`, from that function up to the interpreter.
    Without debug information `file` is the library, `line` is "", and inlined functions are missing."""
    commands = ["set pagination off", "set breakpoint pending on", f"set environment LD_PRELOAD {preloaded(build)}", f"break {function}", "run", "backtrace"]
    command = ["gdb", "-batch", "-nx", *(word for text in commands for word in ("-ex", text)), "--args", sys.executable, "-c", program]
    printed = subprocess.run(command, capture_output=True, text=True, env=environment_of(build), stdin=subprocess.DEVNULL).stdout
    found = [(match[1], match[2] or match[4], match[3] or "") for line in printed.splitlines() if (match := FRAME.match(line))]
    if not found or found[0][0] != function:
        sys.exit(f"{function} was not reached; gdb said:\n{printed[-2000:]}")
    return found


def stack(build):
    """Returns the stack frames [(function, file, line)] from the loop LOOP up to the C function that the interpreter calls."""
    return [(function, file, line) for function, file, line in frames(build, PROGRAM, LOOP) if "gen/" in file or "/src/" in file or "/_C/" in file]


def is_generated(file):
    return file.removeprefix("./").startswith("gen/")


def counted(frames):
    kinds = [is_generated(file) for _, file, _ in frames]
    return {"frames": len(frames), "files": len({file for _, file, _ in frames}), "crossings": sum(a != b for a, b in zip(kinds, kinds[1:]))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build/dev", type=Path)
    frames = stack(parser.parse_args().build.resolve())
    for function, file, line in frames:
        print(f"{'generated' if is_generated(file) else 'written':9}  {function:28} {file.removeprefix('../').removeprefix('../').removeprefix('./')}:{line}")
    print(", ".join(f"{number} {name}" for name, number in counted(frames).items()))


if __name__ == "__main__":
    main()
