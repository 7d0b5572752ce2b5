"""Implements anomaly detection. If a node fails in a backward pass, the traceback of the forward call that recorded the node is shown. A NaN in a
gradient raises an error."""

import sys
import traceback
import warnings

from gradus import _C

__all__ = ["detect_anomaly", "set_detect_anomaly"]


def _format_stack():
    """Returns the Python stack of the caller as text. In anomaly mode the C extension calls this function for every node that is recorded, so that an
    error of a backward pass can show the forward call."""
    caller = sys._getframe().f_back
    return "".join(traceback.format_stack(caller)) if caller is not None else ""


class _Restore:
    """Context manager that on exit restores the anomaly mode that was set when the object was created."""

    def __init__(self):
        self.prev = _C.is_anomaly_enabled()
        self.prev_check_nan = _C.is_anomaly_check_nan_enabled()

    def __exit__(self, *exception):
        _C.set_anomaly_enabled(self.prev, self.prev_check_nan)


class detect_anomaly(_Restore):
    """Context manager. If a node fails in a backward pass, a warning shows the traceback of the forward call that recorded the node. A NaN in
    a gradient raises RuntimeError.

    Args:
        check_nan: if False, a NaN is not an error.
    """

    def __init__(self, check_nan=True):
        super().__init__()
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.", stacklevel=2)

    def __enter__(self):
        _C.set_anomaly_enabled(True, self.check_nan)


class set_detect_anomaly(_Restore):
    """Turns anomaly detection on or off at once. As a context manager it restores the previous setting on exit.

    Args:
        mode: True to turn anomaly detection on.
        check_nan: if False, a NaN is not an error.
    """

    def __init__(self, mode, check_nan=True):
        super().__init__()
        _C.set_anomaly_enabled(mode, check_nan)

    def __enter__(self):
        return None
