"""Formats masked tensors as PyTorch prints them. Numbers have four decimals and are padded to eight characters. A masked element is ``--``."""
__all__ = ["text_of"]


def text_of(data, mask):
    """Returns the repr of a masked tensor with the given data and mask."""
    is_float = data.is_floating_point()
    if data.dim() == 0:
        return f"MaskedTensor({_number(data.item(), is_float)}, True)" if mask.item() else "MaskedTensor(--, False)"
    texts = iter([_number(value, is_float) if counts else None for value, counts in zip(data.reshape(-1).tolist(), mask.reshape(-1).tolist())])
    return "MaskedTensor(\n" + _nested(texts, data.shape, "  ") + "\n)"


def _number(value, is_float):
    return f"{value:8.4f}" if is_float else str(value)


def _nested(texts, sizes, indent):
    """Returns a string in the form of nested lists with the given sizes, filled with the next items of the iterator `texts`. An item None is a masked
    element; it is printed as -- in the width of the widest text in its row."""
    if len(sizes) == 1:
        line = [next(texts) for _ in range(sizes[0])]
        hidden = "--".rjust(max([8, *(len(text) for text in line if text is not None)]))
        return indent + "[" + ", ".join(hidden if text is None else text for text in line) + "]"
    rows = [_nested(texts, sizes[1:], indent + "  ") for _ in range(sizes[0])]
    return indent + "[\n" + ",\n".join(rows) + "\n" + indent + "]"
