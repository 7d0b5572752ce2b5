"""Switches that are kept and have no effect."""


class Switch:
    """A function name_enabled() of a module's switch, and one to set it."""

    def __init__(self, value=True):
        self._value = value

    def get(self):
        """Returns the value that was set."""
        return self._value

    def set(self, value, *others):
        """Keeps the value."""
        self._value = bool(value)


class KeptFlags:
    """A context manager that keeps its arguments and changes nothing."""

    def __init__(self, *args, **kwargs):
        self.args, self.kwargs = args, kwargs

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        return None
