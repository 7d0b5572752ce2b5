"""Logs for TensorBoard: numbers, pictures, texts and more, in event files that it reads. Neither TensorBoard nor TensorFlow is needed to write them.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
    ...     for step in range(3):
    ...         writer.add_scalar("loss", 1.0 / (step + 1), step)
"""
from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter"]
