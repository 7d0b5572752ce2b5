"""Generators of CUDA devices, of which there are none."""
from gradus.cuda._absent import refuse as _refuse

__all__ = ["get_rng_state", "get_rng_state_all", "manual_seed", "manual_seed_all", "seed", "seed_all"]


def manual_seed(seed):
    """Nothing: there is no generator to seed."""


def manual_seed_all(seed):
    """Nothing: there is no generator to seed."""


def seed():
    """Nothing: there is no generator to seed."""


def seed_all():
    """Nothing: there is no generator to seed."""


def get_rng_state_all():
    """Returns an empty list."""
    return []


def get_rng_state(device="cuda"):
    """Raises AssertionError."""
    _refuse()
