"""The picture of a tensor's storage and elements, which the library draws."""
from pathlib import Path

from gradus import _C


class Picture:
    """A picture in SVG. A notebook shows it, `str()` is its text, `save()` writes it to a file.

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
        """Writes the text to a file, in UTF-8."""
        Path(path).write_text(self._svg, encoding="utf-8")


def strides(t) -> Picture:
    """Draws the cells of a tensor's storage beside its elements, each in the color of the cell it is read from; the tooltip of an element is the sum
    offset + Σ index · stride that leads there. The stride page of the documents does the same for views that one types.

    As in printing, the middle of each dimension is left out where there are more elements than the threshold of `torch.set_printoptions()`, and of a larger storage
    the cells that no drawn element is read from. Elements on other devices than the cpu are drawn without values.

    Args:
        t (Tensor): the tensor to draw.

    Raises:
        RuntimeError: more than 4096 elements are left to draw, or `t` is one of a batch (`torch.func.vmap`).

    >>> picture = gradus.viz.strides(torch.arange(6).view(2, 3).t())
    >>> str(picture).count('class="element"')
    6
    >>> "[2, 1]: 0 + 2·1 + 1·3 is storage cell 5" in str(picture)
    True
    """
    return Picture(_C._draw_strides(t))
