"""The state of the default random number generator, which gives PyTorch's numbers for the same seed."""
import contextlib

from gradus._C import default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, device_type="cuda"):
    """Restores the state of the generator at the end of the block.

    Args:
        devices (iterable, optional): only None or empty; there are no others than the cpu.
        enabled (bool): False makes this do nothing.
        device_type (str): accepted for PyTorch's sake.

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
