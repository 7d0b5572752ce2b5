"""Provides the context managers and decorators that turn recording for autograd on and off."""

import functools
import inspect
import sys
import warnings

from gradus import _stand_ins
from gradus._C import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "set_multithreading_enabled"]


def decorate(mode, target):
    """Returns a wrapper of the function `target` that runs every call inside a clone of the context manager `mode`. For a generator function, every
    step runs inside a clone. If `target` is a class, wraps its __init__, warns, and returns the class."""
    if inspect.isclass(target):
        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions or methods. "
            "To preserve the current behavior of class decoration, you can directly decorate the `__init__` method and nothing else.",
            FutureWarning,
            stacklevel=2,
        )
        target.__init__ = decorate(mode, target.__init__)
        return target
    if inspect.isgeneratorfunction(target):
        return _decorate_generator(mode, target)

    @functools.wraps(target)
    def decorated(*args, **kwargs):
        with mode.clone():
            return target(*args, **kwargs)

    return decorated


def _decorate_generator(mode, target):
    @functools.wraps(target)
    def decorated(*args, **kwargs):
        generator = target(*args, **kwargs)
        step, sent = generator.send, (None,)
        while True:
            try:
                with mode.clone():
                    item = step(*sent)
            except StopIteration as stop:
                return stop.value
            try:
                step, sent = generator.send, ((yield item),)
            except GeneratorExit:
                with mode.clone():
                    generator.close()
                raise
            except BaseException:
                step, sent = generator.throw, sys.exc_info()[1:2]

    return decorated


class set_multithreading_enabled:
    """Has no effect, because a backward pass always runs on the calling thread. It can be called as a function or used as a context manager."""

    def __init__(self, mode):
        self.mode = mode

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        return None


__getattr__ = _stand_ins.of_module(__name__)
