"""Anomaly detection: an error of a backward pass shows the forward call it comes from, and a NaN in a gradient is an error."""

import sys
import traceback
import warnings

from gradus import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


def _format_stack():
    """Returns the Python stack of the caller as text. The extension calls it for every node that is recorded in anomaly mode."""
    caller = sys._getframe().f_back
    return "".join(traceback.format_stack(caller)) if caller is not None else ""


class _Restore:
    """A context manager that on exit restores the mode that was set when the object was made."""

    def __init__(self):
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()

    def __exit__(self, *exception):
        _C.set_anomaly_enabled(self.prev, self.prev_check_nan)


class detect_anomaly(_Restore):
    """Context manager in which an error of a backward pass warns with the traceback of the forward call, and a gradient that holds a NaN is a RuntimeError.

    Args:
        check_nan: False if a NaN is no error.
    """

    def __init__(self, check_nan=True):
        super().__init__()
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.", stacklevel=2)

    def __enter__(self):
        _C.set_anomaly_enabled(True, self.check_nan)


class set_detect_anomaly(_Restore):
    """Sets at once whether anomalies are looked for. As a context manager it goes back.

    Args:
        mode: True if they are.
        check_nan: False if a NaN is no error.
    """

    def __init__(self, mode, check_nan=True):
        super().__init__()
        _C.set_anomaly_enabled(mode, check_nan)

    def __enter__(self):
        return None
