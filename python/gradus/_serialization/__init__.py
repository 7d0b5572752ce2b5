"""Implements ``gradus.serialization``.

``archive`` reads and writes zip files and handles no tensors. ``rebuild`` creates tensors from the contents of a pickle. ``globals`` holds the list
of names that a checkpoint may contain, and ``unpickler`` enforces that list. ``reader`` implements ``load`` and ``writer`` implements ``save``.
"""
