"""Runs an unchanged PyTorch program on Gradus.

    python -m gradus.as_torch script.py [argument ...]
    python -m gradus.as_torch -m module [argument ...]
    python -m gradus.as_torch -c code [argument ...]

``import torch`` gives ``gradus``, ``import torch.nn`` gives ``gradus.nn``, and so on: both names stand for the same module object. Names that Gradus
lacks raise ModuleNotFoundError or AttributeError. Instead of being run by this module, a program can call ``install()``.
"""
import builtins
import importlib
import importlib.abc
import importlib.machinery
import io
import os
import runpy
import sys
import types

from gradus._absent import refuse

__all__ = ["install", "main"]

_USAGE = "usage: python -m gradus.as_torch (script.py | -m module | -c code) [argument ...]"


class _SameModule(importlib.abc.Loader):
    """A loader that returns a module that has already been imported under another name."""

    def __init__(self, module):
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec):
        return self._module

    def exec_module(self, module):
        # The import system has set __spec__ to the spec for the name that begins with torch. Restore the spec for the name that begins with gradus.
        module.__spec__ = self._spec


class _TorchFinder(importlib.abc.MetaPathFinder):
    """An import finder that maps ``torch`` to ``gradus``, and each submodule of ``torch`` to the submodule of ``gradus`` with the same name."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch" and not name.startswith("torch."):
            return None
        own_name = "gradus" + name[len("torch"):]
        try:
            module = importlib.import_module(own_name)
        except ModuleNotFoundError as exception:
            if exception.name is None or not (own_name + ".").startswith(exception.name + "."):
                raise  # The module exists, but a module that it imports does not.
            return refuse(name)
        _name_loaded(own_name)
        return importlib.machinery.ModuleSpec(name, _SameModule(module), is_package=hasattr(module, "__path__"))


def _name_loaded(package):
    """Registers each loaded submodule of `package` in sys.modules a second time, with ``torch`` in place of ``gradus`` in its name.

    Without the second entry, importing torch.autograd.gradcheck would set the attribute `gradcheck` of gradus.autograd to the imported module. The
    module would replace the function gradus.autograd.gradcheck.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith(package + ".") and module is not None:
            sys.modules.setdefault("torch" + name[len("gradus"):], module)


def install():
    """Makes ``import torch`` give Gradus from now on, in this process.

    Raises RuntimeError if PyTorch itself has been imported already.

    >>> install()
    >>> import gradus, torch.nn
    >>> torch is gradus and torch.nn is gradus.nn
    True
    """
    import gradus

    if sys.modules.get("torch", gradus) is not gradus:
        raise RuntimeError("torch has been imported already, and is not Gradus")
    if not any(isinstance(finder, _TorchFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _TorchFinder())


def main(arguments=None):
    """Runs the program given on the command line. Exit status, exceptions and tracebacks are those of the program.

    Args:
        arguments (list of str, optional): the command line after ``python -m gradus.as_torch``. Defaults to sys.argv[1:].
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    option = arguments[0] if arguments else "--help"
    if option in ("-h", "--help"):
        print(_USAGE, file=sys.stdout if arguments else sys.stderr)
        sys.exit(0 if arguments else 2)
    if option in ("-m", "-c"):
        if len(arguments) == 1:
            sys.exit(f"{_USAGE}\nArgument expected for the {option} option")
        what, sys.argv = arguments[1], [option, *arguments[2:]]
    elif option.startswith("-") and option != "-":
        sys.exit(f"{_USAGE}\nunknown option {option}")
    else:
        what, sys.argv = os.path.abspath(option) if os.path.isfile(option) else option, arguments
    install()
    _hide_own_frames()
    if option == "-m":
        sys.path[0] = os.getcwd()
        sys.argv[0] = what
        runpy.run_module(what, run_name="__main__", alter_sys=True)
    elif option == "-c":
        sys.path[0] = ""
        _run(what, "<string>", None)
    elif os.path.isdir(what) or what.endswith((".zip", ".pyz")):
        runpy.run_path(what, run_name="__main__")
    else:
        sys.path[0] = os.path.dirname(os.path.realpath(what))
        try:
            with io.open_code(os.path.abspath(what)) as file:
                source = file.read()
        except OSError as exception:
            print(f"{sys.executable}: can't open file {os.path.abspath(what)!r}: [Errno {exception.errno}] {exception.strerror}",
                  file=sys.stderr)
            sys.exit(2)
        _run(source, what, what)


def _run(source, name, path):
    """Runs source code as the module ``__main__``, as python does with a script. `name` is the file name in tracebacks; `path` is the file, or
    None."""
    module = types.ModuleType("__main__")
    module.__builtins__ = builtins
    module.__annotations__ = {}
    if path is not None:
        module.__file__ = os.path.abspath(path)
        module.__cached__ = None
        module.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    sys.modules["__main__"] = module
    exec(compile(source, name, "exec", dont_inherit=True), module.__dict__)


def _hide_own_frames():
    """Makes tracebacks of uncaught exceptions begin in the user's program. Sets sys.excepthook to a function that removes the frames of this module
    and of runpy, which come first."""
    own = (__file__, runpy.__file__, "<frozen runpy>", "<frozen importlib._bootstrap>")
    show = sys.excepthook

    def show_program(kind, exception, trace):
        kept = trace
        while kept is not None and kept.tb_frame.f_code.co_filename in own:
            kept = kept.tb_next
        show(kind, exception.with_traceback(kept), kept)

    sys.excepthook = show_program


if __name__ == "__main__":
    # The user's program becomes the module __main__, so this file is imported again under its own name.
    importlib.import_module("gradus.as_torch").main()
