"""Saving and loading in PyTorch's formats, in both directions.

A zip file holds ``data.pkl``, a pickle of the object in which every storage is a reference, and each storage as a record of its own. In the
format from before PyTorch 1.6, the storages follow the pickle. Reading
follows a closed list of what such a pickle may name and do (``_serialization/unpickler.py``), so that no file runs code; a caller who trusts a
file can say ``weights_only=False``, which runs what the file says.
"""
from gradus._serialization.globals import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from gradus._serialization.reader import load
from gradus._serialization.writer import save

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]
