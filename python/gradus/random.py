"""Functions for the default random number generator, which returns the numbers of PyTorch's CPU generator for equal seeds."""
import contextlib

from gradus._C import default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, device_type="cuda"):
    """Context manager that restores the state of the default generator at the end of the block.

    Args:
        devices (iterable, optional): must be None or empty, because only the CPU has a generator. AssertionError otherwise.
        enabled (bool): if False, the context manager has no effect.
        device_type (str): has no effect.

    >>> import gradus
    >>> _ = gradus.manual_seed(0)
    >>> with fork_rng():
    ...     x = gradus.rand(1)
    >>> gradus.equal(x, gradus.rand(1))
    True
    """
    if devices is not None and list(devices):
        raise AssertionError("Gradus has generators for no devices but the cpu")
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
