"""Anomaly detection, which does not exist: turning it on is refused, turning it off is fine."""

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Context manager or function that sets whether anomalies are looked for; True is refused."""

    def __init__(self, mode, check_nan=True):
        if mode:
            raise NotImplementedError("anomaly detection is not available")

    def __enter__(self):
        return None

    def __exit__(self, *exception):
        return None


class detect_anomaly(set_detect_anomaly):
    """Refused."""

    def __init__(self, check_nan=True):
        super().__init__(True, check_nan)
