"""Tests gradus.viz.strides. The drawing must be valid XML with every cell and every element exactly once. An element has the color of its cell, and
its tooltip shows the sum of index times stride."""
import random
import re
import xml.etree.ElementTree as ElementTree

import pytest

import gradus as torch
from gradus.viz import Picture, strides

SVG = "{http://www.w3.org/2000/svg}"


def parsed(t):
    """Parses the drawing of the tensor `t`. Returns {storage cell: (color, value, number of elements that read it)} and {index of an element: (cell,
    color, value, tooltip)}."""
    root = ElementTree.fromstring(str(strides(t)))
    assert root.tag == f"{SVG}svg"
    cells, elements = {}, {}
    for group in root.iter(f"{SVG}g"):
        kind = group.get("class")
        if kind not in ("cell", "element"):
            continue
        color, value, tooltip = group.find(f"{SVG}rect").get("fill"), group.findall(f"{SVG}text")[1].text or "", group.find(f"{SVG}title").text
        if kind == "cell":
            cells[int(group.get("data-cell"))] = color, value, int(group.get("data-reads"))
        else:
            elements[tuple(map(int, filter(None, group.get("data-index").split(","))))] = int(group.get("data-cell")), color, value, tooltip
    return cells, elements


def check(t):
    """Checks the drawing of the tensor `t`. Each element must name the storage cell that its index and the strides give, and must have that cell's
    value and color. Each cell must show the number of elements that read it."""
    cells, elements = parsed(t)
    assert sorted(cells) == list(range(t.untyped_storage().nbytes() // t.element_size()))
    assert len(elements) == t.numel()
    reads = dict.fromkeys(cells, 0)
    for index, (cell, color, value, tooltip) in elements.items():
        assert cell == t.storage_offset() + sum(i * s for i, s in zip(index, t.stride()))
        assert (color, value) == cells[cell][:2] and float(value) == t[index].item()
        terms = [f"{i}·({s})" if s < 0 else f"{i}·{s}" for i, s in zip(index, t.stride())]
        assert tooltip == f"{list(index)}: {' + '.join([str(t.storage_offset()), *terms])} is storage cell {cell}"
        reads[cell] += 1
    assert reads == {cell: count for cell, (_, _, count) in cells.items()}
    assert all((color == "none") == (count == 0) for color, _, count in cells.values())


VIEWS = {
    "contiguous": lambda t: t, "transposed": lambda t: t.transpose(0, 2), "every other": lambda t: t[:, ::2], "backwards": lambda t: t[::-1, :, ::-2], "diagonal": lambda t: t.diagonal(1, 1, 2),
    "windows": lambda t: t.unfold(2, 2, 1), "expanded": lambda t: t[:, :1].expand(2, 5, 4), "one": lambda t: t[1, 2, 3], "none": lambda t: t[:, 3:],
    "channels last": lambda t: t.view(1, 2, 3, 4).contiguous(memory_format=torch.channels_last), "permuted": lambda t: t.permute(2, 0, 1), "of floats": lambda t: t.double(),
}


@pytest.mark.parametrize("name", VIEWS)
def test_drawings_of_views(name):
    check(VIEWS[name](torch.arange(24).view(2, 3, 4)))


def test_drawings_of_random_geometries():
    pick = random.Random(7)
    for _ in range(60):
        sizes = [pick.randrange(1, 5) for _ in range(pick.randrange(0, 4))]
        steps = [pick.randrange(-6, 12) for _ in sizes]
        low, high = (sum(f(0, (n - 1) * s) for n, s in zip(sizes, steps)) for f in (min, max))
        check(torch.arange(high - low + 1 + pick.randrange(3)).as_strided(sizes, steps, -low))


def test_each_cell_has_its_own_color():
    _, elements = parsed(torch.arange(12).unfold(0, 4, 2))
    assert len({cell for cell, *_ in elements.values()}) == len({color for _, color, *_ in elements.values()}) == 12


def test_matrices_are_drawn_side_by_side():
    """The last dimension is drawn to the right, the second-last one downward, and the third-last one to the right again."""
    text = str(strides(torch.arange(24).view(2, 3, 4)))
    places = {index: tuple(map(int, place.split(","))) for place, index in re.findall(r'class="element" transform="translate\(([\d,]+)\)" data-index="([\d,]+)"', text)}
    (x, y), cell = places["0,0,0"], (48, 46)
    assert places["0,0,1"] == (x + cell[0], y) and places["0,1,0"] == (x, y + cell[1])
    assert places["1,0,0"][1] == y and places["1,0,0"][0] > places["0,0,3"][0] + cell[0]


def test_large_tensors_are_abbreviated_as_in_printing():
    cells, elements = parsed(torch.zeros(100, 100))
    assert {i for i, _ in elements} == {0, 1, 2, 97, 98, 99} and sorted(cells) == sorted(cell for cell, *_ in elements.values())


def test_meta_tensors_are_drawn_without_values():
    cells, elements = parsed(torch.empty(2, 3, device="meta"))
    assert len(cells) == len(elements) == 6 and {value for _, value, _ in cells.values()} == {""}
    assert "values not read" in str(strides(torch.empty(2, device="meta")))


def test_drawings_of_resized_storages():
    t = torch.arange(6)
    t.untyped_storage().resize_(64)
    cells, elements = parsed(t)
    assert len(cells) == 8 and len(elements) == 6
    t.untyped_storage().resize_(16)
    cells, elements = parsed(t)
    assert len(elements) == 6 and [elements[i,][2] for i in range(2)] == ["0", "1"]


def test_invalid_arguments_are_refused():
    with pytest.raises(TypeError, match=r"strides\(\): argument 't' \(position 1\) must be Tensor, not int"):
        strides(3)
    with pytest.raises(RuntimeError, match=r"has more than 4096 elements to draw"):
        strides(torch.zeros([2] * 13))
    with pytest.raises(RuntimeError, match="batch tensor"):
        torch.func.vmap(lambda row: strides(row) and row)(torch.zeros(2, 3))


def test_picture_repr_and_save(tmp_path):
    picture = strides(torch.nn.Parameter(torch.arange(4.0)))
    assert isinstance(picture, Picture) and picture._repr_svg_() == str(picture)
    picture.save(tmp_path / "picture.svg")
    assert (tmp_path / "picture.svg").read_text(encoding="utf-8") == str(picture)
    assert torch.viz.strides is strides
