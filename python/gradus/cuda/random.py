"""Functions for the random number generators of CUDA devices. There are no CUDA devices."""
from gradus.cuda._absent import refuse as _refuse

__all__ = ["get_rng_state", "get_rng_state_all", "manual_seed", "manual_seed_all", "seed", "seed_all"]


def manual_seed(seed):
    """Does nothing, because there is no CUDA device."""


def manual_seed_all(seed):
    """Does nothing, because there is no CUDA device."""


def seed():
    """Does nothing, because there is no CUDA device."""


def seed_all():
    """Does nothing, because there is no CUDA device."""


def get_rng_state_all():
    """Returns an empty list, because there is no CUDA device."""
    return []


def get_rng_state(device="cuda"):
    """Raises AssertionError, because there is no CUDA device."""
    _refuse()
