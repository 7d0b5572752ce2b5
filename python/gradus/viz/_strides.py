"""The function strides, which returns a picture of a tensor's storage and elements. The C library draws it."""
from pathlib import Path

from gradus import _C


class Picture:
    """A picture in SVG format. Notebooks display it, `str()` returns its text, and `save()` writes it to a file.

    >>> len(str(gradus.viz.strides(torch.arange(3)))) > 100
    True
    """

    def __init__(self, svg: str) -> None:
        self._svg = svg

    def __str__(self) -> str:
        return self._svg

    def _repr_svg_(self) -> str:
        return self._svg

    def save(self, path) -> None:
        """Writes the SVG text to the file `path`, in UTF-8."""
        Path(path).write_text(self._svg, encoding="utf-8")


def strides(t) -> Picture:
    """Draws the cells of a tensor's storage next to its elements. Each element has the color of the cell from which it is read, and its tooltip shows
    the sum offset + Σ index · stride that gives the number of the cell. The stride page of the documents draws such pictures interactively.

    As in printing, the middle of each dimension is left out if there are more elements than the threshold of `torch.set_printoptions()`. Cells of a
    large storage are left out if no drawn element is read from them. Elements on devices other than the CPU are drawn without values.

    Args:
        t (Tensor): the tensor to draw.

    Raises:
        RuntimeError: more than 4096 elements would be drawn, or `t` is a batch tensor (`torch.func.vmap`).

    >>> picture = gradus.viz.strides(torch.arange(6).view(2, 3).t())
    >>> str(picture).count('class="element"')
    6
    >>> "[2, 1]: 0 + 2·1 + 1·3 is storage cell 5" in str(picture)
    True
    """
    return Picture(_C._draw_strides(t))
