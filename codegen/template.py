"""Fills templates and wraps lines. A template is C code with $name or ${name} wherever a value is inserted.

A line that consists only of a $name is replaced by the lines of its value, each with the indentation of the $name. If the value is empty, the line is
removed.
"""
import re
import textwrap

WIDTH = 180


def fill(template, **parts):
    lines = []
    for line in textwrap.dedent(template).strip("\n").split("\n"):
        alone = re.fullmatch(r"( *)\$(\w+)", line)
        if alone:
            lines += [alone[1] + part if part else "" for part in str(parts[alone[2]]).splitlines()]
        else:
            lines.append(re.sub(r"\$(?:(\w+)|\{(\w+)\})", lambda name: str(parts[name[1] or name[2]]), line))
    return "\n".join(lines) + "\n"


def pieces(text):
    """Returns the text split at the positions where a line may end, that is, after commas and semicolons outside strings."""
    return re.findall(r"""(?:"(?:\\.|[^"\\])*"|[^",;]|[,;](?! ))*(?:[,;] |$)""", text)


def wrap(words, before="", after="", separator=", ", indent="    "):
    """Returns the words joined by `separator` and broken into lines of at most WIDTH columns. The first line begins with `before`, the last ends
    with `after`."""
    lines, line = [], ""
    for piece in pieces(before + separator.join(words) + after):
        if line.strip() and len(line) + len(piece.rstrip()) > WIDTH:
            lines.append(line.rstrip())
            line = indent
        line += piece
    return "\n".join([*lines, line]) + "\n"


def function(head, body):
    """Returns a C function, on a single line if its body has one line and everything fits in WIDTH columns."""
    if "\n" not in body.strip() and len(head) + len(body.strip()) + 5 <= WIDTH:
        return f"{head} {{ {body.strip()} }}\n"
    return f"{head}\n{{\n{textwrap.indent(body.strip(chr(10)), '    ')}\n}}\n"


def joined(*parts):
    """Returns the texts that are not empty, joined with an empty line between them."""
    return "\n".join(part for part in parts if part)
