"""Saves and loads objects in PyTorch's file formats.

In the current format, a file is a zip archive of ``data.pkl`` and one record for each storage. ``data.pkl`` is a pickle of the object, with
references in place of the storages. In the older format, used before PyTorch 1.6, the storages follow the pickle.

By default ``load`` accepts only pickles whose names and instructions are on a fixed list (``_serialization/unpickler.py``), so that no file can run
code. For a trusted file the caller can pass ``weights_only=False``, which removes this restriction.
"""
from gradus._serialization.globals import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from gradus._serialization.reader import load
from gradus._serialization.writer import save

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]
