"""Switches of cuDNN. cuDNN is not used, so the switches only store their values. Results are always deterministic."""
import contextlib

enabled = True
deterministic = False
benchmark = False
benchmark_limit = 10
allow_tf32 = True


def is_available():
    """Returns False, because cuDNN is not used."""
    return False


def version():
    """Returns None, because cuDNN is not used."""
    return None


@contextlib.contextmanager
def flags(enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True):
    """Context manager that sets the switches inside a ``with`` block and restores them at its end.

    >>> import gradus
    >>> with flags(benchmark=True):
    ...     gradus.backends.cudnn.benchmark
    True
    """
    given = dict(locals())
    before = {name: globals()[name] for name in given}
    globals().update(given)
    try:
        yield
    finally:
        globals().update(before)
