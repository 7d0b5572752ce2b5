"""The parts of ``gradus.serialization``.

``archive`` knows zip files and nothing of tensors; ``rebuild`` makes tensors of what a pickle says; ``globals`` is the closed list;
``unpickler`` follows it; ``reader`` and ``writer`` are ``load`` and ``save``.
"""
