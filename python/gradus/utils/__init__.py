"""Helpers that belong to no other package: handles of hooks, data loading, checkpointing, DLPack, measuring, logs for TensorBoard."""
import importlib

__all__ = ["benchmark", "checkpoint", "data", "dlpack", "hooks", "tensorboard"]


def __getattr__(name):
    if name in __all__:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *__all__})
