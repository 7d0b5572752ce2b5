"""Context managers, which are decorators, too, that turn the recording of operations on and off."""

import functools
import inspect
import sys
import warnings

from gradus import _stand_ins
from gradus._C import enable_grad, inference_mode, no_grad, set_grad_enabled

__all__ = ["no_grad", "enable_grad", "set_grad_enabled", "inference_mode", "set_multithreading_enabled"]


def decorate(mode, target):
    """`target` with every call of it inside a mode like `mode`; of a generator every step, of a class its __init__."""
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
    """A context, or a call, that changes nothing: a backward pass runs on the thread that asks for it, and operators use all threads."""

    def __init__(self, mode):
        self.mode = mode

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        return None


__getattr__ = _stand_ins.of_module(__name__)
