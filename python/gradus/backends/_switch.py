"""Switches that only store their value."""


class Switch:
    """A switch that only stores a bool. Modules export its `get` and `set` as functions, for instance flash_sdp_enabled() and enable_flash_sdp()."""

    def __init__(self, value=True):
        self._value = value

    def get(self):
        """Returns the stored value."""
        return self._value

    def set(self, value, *others):
        """Stores bool(value)."""
        self._value = bool(value)


class KeptFlags:
    """A context manager that stores its arguments and has no effect."""

    def __init__(self, *args, **kwargs):
        self.args, self.kwargs = args, kwargs

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None
