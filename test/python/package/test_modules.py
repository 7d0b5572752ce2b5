"""Runs tools/modules.py on a few samples of each module in the database of PyTorch's own tests, for every dtype and mode."""
import sys

import gradus
import pytest
from conftest import ROOT

from oracle import torch

sys.path.insert(0, str(ROOT / "tools"))
# Number of samples of each module, dtype and mode. By default tools/modules.py runs all samples, which takes long.
SAMPLES = 12


def names():
    """Returns the names of the modules in the database, or none if PyTorch is not installed."""
    if not hasattr(torch, "__version__"):
        return []
    import modules

    return [info.name for info in modules.database()]


@pytest.mark.parametrize("name", names())
def test_module_samples_agree_with_pytorch(name):
    import modules

    info = next(info for info in modules.database() if info.name == name)
    if not hasattr(gradus.nn, info.module_cls.__name__):
        pytest.skip(f"there is no {name} yet")
    count, reasons = modules.run(info, SAMPLES)
    assert count > 0 and not reasons, f"{len(reasons)} of {count} samples differ:\n" + "\n".join(reasons[:5])
