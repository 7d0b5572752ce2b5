"""cuDNN: not there. The switches that programs set are kept and have no effect; the same inputs give the same bits anyway."""
import contextlib

enabled = True
deterministic = False
benchmark = False
benchmark_limit = 10
allow_tf32 = True


def is_available():
    """False."""
    return False


def version():
    """None."""
    return None


@contextlib.contextmanager
def flags(enabled=False, benchmark=False, benchmark_limit=10, deterministic=False, allow_tf32=True):
    """Set the switches inside a ``with`` block.

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
