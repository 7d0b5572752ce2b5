"""Defines TorchVersion, the type of ``__version__``, a string that compares like a version number."""
from gradus.version import __version__ as _version

__all__ = ["TorchVersion"]


def _pattern():
    """Returns the compiled pattern of version numbers according to PEP 440."""
    import re

    return re.compile(r"""
        \s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)
        (?:[-_.]?(?P<pre>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre_number>\d*))?
        (?P<post>-(?P<post_implied>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post_number>\d*))?
        (?P<dev>[-_.]?dev[-_.]?(?P<dev_number>\d*))?
        (?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*""", re.VERBOSE | re.IGNORECASE)


_PHASES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}


def _key(text):
    """Returns a sort key for the version `text`: a tuple, ordered as PEP 440 orders versions. Returns None if `text` is not a version."""
    found = _pattern().fullmatch(text)
    if found is None:
        return None
    release = [int(number) for number in found["release"].split(".")]
    while release and release[-1] == 0:
        release.pop()
    # A development release without a phase (alpha, beta, rc) sorts before all phases, and a final release after them.
    if found["pre"] is not None:
        phase = _PHASES[found["pre"].lower()]
    else:
        phase = -1 if found["dev"] is not None and found["post"] is None else 3
    post = -1 if found["post"] is None else int(found["post_implied"] or found["post_number"] or 0)
    dev = float("inf") if found["dev"] is None else int(found["dev_number"] or 0)
    local = found["local"].lower().replace("-", ".").replace("_", ".").split(".") if found["local"] else []
    # In the local part of a version (after the +), numbers sort after words, and a longer part sorts after its prefix.
    parts = tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in local)
    return int(found["epoch"] or 0), release, phase, int(found["pre_number"] or 0), post, dev, parts


def _text(other):
    """Returns `other` (a str, a packaging.version.Version or a sequence) as the text of a version, or None if `other` has another type."""
    if isinstance(other, str):
        return str.__str__(other)
    if hasattr(other, "release"):  # it is a packaging.version.Version
        return str(other)
    try:
        return ".".join(str(part) for part in other)
    except TypeError:
        return None


def _comparison(name):
    of_texts, of_keys = getattr(str, name), getattr(tuple, name)

    def compare(self, other):
        text = _text(other)
        key = None if text is None else _key(text)
        own = _key(str.__str__(self))
        return of_texts(self, other) if key is None or own is None else of_keys(own, key)

    compare.__name__ = name
    return compare


class TorchVersion(str):
    """A string that compares with strings, tuples and packaging.version.Version in the order of PEP 440.

    If one side is not a version, the two are compared as strings.

    >>> TorchVersion("1.10.0a") > (1, 2)
    True
    >>> TorchVersion("2.13.0") < "2.2" or TorchVersion("2.13.0") == "2.13"
    True
    """

    __slots__ = ()
    __hash__ = str.__hash__
    __lt__, __le__, __eq__, __ne__, __gt__, __ge__ = map(_comparison, ("__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__"))


__version__ = TorchVersion(_version)
