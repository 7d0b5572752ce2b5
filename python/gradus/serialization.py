"""Saves and loads objects in PyTorch's file formats.

A zip file contains ``data.pkl``, which is a pickle of the object in which every storage is a reference, and one record for each storage. In the
format from before PyTorch 1.6, the storages follow the pickle. ``load`` obeys a closed list of names and instructions that such a pickle may contain
(``_serialization/unpickler.py``), so that no file can run code. A caller who trusts a file can pass ``weights_only=False``, which runs whatever the
file says.
"""
from gradus._serialization.globals import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from gradus._serialization.reader import load
from gradus._serialization.writer import save

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]
