"""The pictures of docs/call.md, drawn from the code as SVG whenever the site is built, so they show what the code has at that time.

A picture takes the place of a line `<!-- picture: NAME -->`. Its colours are in docs/static/gradus.css, in light and dark.
"""
import ast
import re
import sys
import textwrap
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from generator import chains

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
from lint import FLOORS  # noqa: E402

WIDTH = 350  # of every picture: a telephone shows its letters at their size
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)
PLACE = re.compile(r"^<!-- picture: (\w+) -->$", re.M)


# ---- SVG ----------------------------------------------------------------------------------------------------------------------------


def text(x, y, words, kind, **attributes):
    more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f'<text x="{x:g}" y="{y:g}" class="{kind}"{more}>{escape(str(words))}</text>'


def box(x, y, width, height, kind=""):
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" class="box {kind}"/>'


def arrow(path, kind=""):
    return f'<path d="{path}" class="arrow {kind}" marker-end="url(#head)"/>'


def picture(name, title, height, parts):
    """A figure with its SVG on lines without blank ones between, as HTML inside Markdown must be."""
    head = '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8Z" class="head"/></marker></defs>'
    svg = f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title, quote=True)}" xmlns="http://www.w3.org/2000/svg">'
    return "\n".join([f'<figure class="picture" id="picture-{name}">', svg, head, *parts, "</svg>", f"<figcaption>{escape(title)}</figcaption>", "</figure>"])


# ---- The floors ----------------------------------------------------------------------------------------------------------------------


@dataclass
class Floor:
    """`includes` counts the include lines of the floor's files by floor; "public" (include/gradus) and "generated" count as floors."""
    name: str
    files: int
    includes: dict
    allowed: list
    level: int = 0


def floor_of(include, folder):
    first = include.split("/")[0] if "/" in include else folder
    return {"gradus": "public", "gen": "generated"}.get(first, first)


def floors(root=ROOT):
    """{name: Floor}; a floor's level is one more than that of the highest floor that it may include."""
    found = {}
    for name, prefixes in FLOORS.items():
        paths = [path for path in (root / "src" / name).rglob("*") if path.suffix in (".c", ".h")]
        includes = {}
        for one in (floor_of(include, name) for path in paths for include in INCLUDE.findall(path.read_text())):
            includes[one] = includes.get(one, 0) + 1
        allowed = [other for other in FLOORS if other != name and f"{other}/" in prefixes]
        found[name] = Floor(name, len(paths), includes, allowed)
    for _ in found:
        for floor in found.values():
            floor.level = max((found[other].level + 1 for other in floor.allowed), default=0)
    return found


def direct(found, floor):
    """The floors that a floor may include and reaches through no other: an arrow leads to each."""
    below = {name: set(found[name].allowed) for name in found}
    return [name for name in floor.allowed if not any(name in below[other] for other in floor.allowed)]


def floors_picture(root=ROOT):
    found, parts, places, gap, y = floors(root), [], {}, 30, 4
    rows = [[floor for floor in found.values() if floor.level == level] for level in range(max(f.level for f in found.values()), -1, -1)]
    for row in rows:
        # A floor that an arrow from further up leads to comes last, so that the arrow passes at the right edge.
        row.sort(key=lambda floor: any(floor.name in direct(found, other) and other.level > floor.level + 1 for other in found.values()))
    for row in rows:
        lines = {floor.name: [(name, floor.includes[name]) for name in [*reversed(floor.allowed), "public", "generated"] if name in floor.includes] for floor in row}
        height = 40 + 14 * max(map(len, lines.values()))
        width = min(170, (WIDTH - 26 - 8 * (len(row) - 1)) / len(row))
        x = (WIDTH - 26 - len(row) * width - 8 * (len(row) - 1)) / 2
        for floor in row:
            places[floor.name] = (x, y, width, height)
            parts += [f'<g class="floor-{floor.name}">', box(x, y, width, height), text(x + 8, y + 17, floor.name, "name"), text(x + 8, y + 31, f"{floor.files} files", "soft")]
            for number, (name, count) in enumerate(lines[floor.name]):
                parts += [text(x + 8, y + 47 + 14 * number, name, "small"), text(x + width - 8, y + 47 + 14 * number, count, "small", text_anchor="end")]
            parts.append("</g>")
            x += width + 8
        y += height + gap
    arrows = []
    for floor in found.values():
        fx, fy, fw, fh = places[floor.name]
        for name in direct(found, floor):
            tx, ty, tw, _ = places[name]
            start, end = fx + fw / 2, tx + tw / 2 + (fx + fw / 2 - tx - tw / 2) * 0.25
            if found[name].level < floor.level - 1:
                edge = WIDTH - 10
                arrows.append(arrow(f"M{fx + fw:g} {fy + fh / 2:g} H{edge - 8:g} Q{edge:g} {fy + fh / 2:g} {edge:g} {fy + fh / 2 + 8:g} V{ty - 24:g} Q{edge:g} {ty - 16:g} "
                                    f"{edge - 8:g} {ty - 16:g} H{tx + tw * .75 + 8:g} Q{tx + tw * .75:g} {ty - 16:g} {tx + tw * .75:g} {ty - 8:g} V{ty - 1:g}"))
            else:
                arrows.append(arrow(f"M{start:g} {fy + fh:g} C{start:g} {ty - 8:g} {end:g} {ty - 22:g} {end:g} {ty - 1:g}"))
    return picture("floors", "The floors of src. A box lists the lower floors that its files include, with the number of include lines; public is include/gradus, generated is gen.", y - gap + 4, arrows + parts)


# ---- A call --------------------------------------------------------------------------------------------------------------------------


def chain_picture(name, root=ROOT):
    chain, code, parts, y, places = chains.CHAINS[name], chains.Code(root), [], 4, []
    for problem in chains.problems(chain, code):
        raise ValueError(problem)
    for number, step in enumerate(chain.steps):
        x = 10 + min(9, 130 / max(s.depth for s in chain.steps)) * step.depth
        width = WIDTH - 2 - x
        does = textwrap.wrap(step.does, int((width - 16) / 6))
        height = 36 + 13.5 * len(does)
        caller = chain.caller(number)
        if caller is not None:
            cx, cy, ch = places[caller]
            middle = y + 14
            parts.append(f'<path d="M{cx + 3:g} {cy + ch:g} V{middle - 4:g} Q{cx + 3:g} {middle:g} {cx + 7:g} {middle:g} H{x:g}" class="arrow{" through" if step.link else ""}"/>')
        places.append((x, y, height))
        parts += [f'<g class="floor-{step.floor}">', box(x, y, width, height), f'<rect x="{x:g}" y="{y:g}" width="3.5" height="{height:g}" rx="1.5" class="bar"/>',
                  text(x + 10, y + 16, step.function, "name"), text(x + width - 7, y + 15, number + 1, "soft", text_anchor="end"),
                  text(x + 10, y + 29, f"{step.shown_path}:{code.line(step.path, step.function)}", "path")]
        parts += [text(x + 10, y + 43 + 13.5 * i, line, "does") for i, line in enumerate(does)]
        parts.append("</g>")
        y += height + 6
    return picture(name, f"{chain.title}: {len(chain.steps)} functions, in the order in which they are called. A dashed line leads to a function that is found in a table.", y, parts)


# ---- A backward pass -----------------------------------------------------------------------------------------------------------------


@dataclass
class Node:
    """A node of a graph. `edges` are the indices of the nodes below, `made` the line that made it, `order` its place in the order of the pass and `gradient` what it got."""
    name: str
    made: str = ""
    edges: list = field(default_factory=list)
    order: int = 0
    gradient: str = ""
    layer: int = 0


def backward_program(root=ROOT):
    """The lines of the program in docs/call.md that make a loss."""
    return re.search(r"```python\n(import gradus\n.*?)\n\n", (root / "docs" / "call.md").read_text(), re.S)[1]


def readable(gradient):
    numbers = gradient.tolist() if gradient is not None else None
    return "[" + ", ".join(f"{number:.2f}" for number in numbers) + "]" if isinstance(numbers, list) else f"{numbers:g}"


def graph(program):
    """The nodes of the graph of `loss` in a program, the root first. The program is run, the graph walked, and a hook on each node notes when the engine calls it."""
    values = {}
    exec(program, values)
    made = {}
    for line in ast.parse(program).body:
        if isinstance(line, ast.Assign):
            name = line.targets[0].id
            node = getattr(values[name], "grad_fn", None)
            made[node if node is not None else name] = ast.unparse(line)
    nodes, found, order = [], {}, []

    def visit(node):
        if node not in found:
            found[node] = number = len(nodes)
            variable = getattr(node, "variable", None)
            leaf = next((name for name, value in values.items() if variable is not None and value is variable), None)
            nodes.append(Node(node.name().rpartition("::")[2], f"adds to {leaf}.grad" if leaf else made.get(node, "")))
            node.register_prehook(lambda gradients: order.append((number, gradients[0])))
            nodes[number].edges = [visit(below) for below, _ in node.next_functions if below is not None]
        return found[node]

    visit(values["loss"].grad_fn)
    values["loss"].backward()
    for place, (number, gradient) in enumerate(order):
        nodes[number].order, nodes[number].gradient = place + 1, readable(gradient)
    for _ in nodes:
        for node in nodes:
            for below in node.edges:
                nodes[below].layer = max(nodes[below].layer, node.layer + 1)
    return nodes


def run_order(nodes):
    return [node.name for node in sorted(nodes, key=lambda node: node.order)]


def backward_picture(root=ROOT):
    nodes, parts, arrows = graph(backward_program(root)), [], []
    height, gap, width = 62, 34, 166
    layers = [[i for i, node in enumerate(nodes) if node.layer == layer] for layer in range(max(node.layer for node in nodes) + 1)]
    # A node alone in its layer is below its only user, or in the middle below several; but an edge that passes a layer takes the right half of it.
    passed = {layer for node in nodes for below in node.edges for layer in range(node.layer + 1, nodes[below].layer)}
    left, right, middle = 4 + width / 2, WIDTH - 4 - width / 2, WIDTH / 2
    at = {}
    for layer, row in enumerate(layers):
        users = [at[i][0] for i, node in enumerate(nodes) if row[0] in node.edges]
        columns = [left, right] if len(row) == 2 else [left if layer in passed else users[0] if len(users) == 1 else middle]
        for i, x in zip(row, columns):
            at[i] = (x, 4 + layer * (height + gap))
    for i, node in enumerate(nodes):
        x, y = at[i]
        into = sum(other.edges.count(i) for other in nodes)
        kind = "leaf" if node.name == "AccumulateGrad" else "autograd"
        parts += [f'<g class="floor-{kind}">', box(x - width / 2, y, width, height), f'<circle cx="{x - width / 2 + 17:g}" cy="{y + 18:g}" r="10" class="number"/>',
                  text(x - width / 2 + 17, y + 22, node.order, "count", text_anchor="middle"), text(x - width / 2 + 33, y + 22, node.name, "name"),
                  text(x - width / 2 + 10, y + 40, node.made, "path"),
                  text(x - width / 2 + 10, y + 54, f"{'gets' if into < 2 else f'gets {into}, sum'} {node.gradient}", "does"), "</g>"]
        for below in node.edges:
            bx, by = at[below]
            start, end = x, bx
            if nodes[below].layer > node.layer + 1:
                start, end, far = x + width / 4, bx + width / 4, right + width / 4
                top, bottom = y + height, by
                arrows.append(arrow(f"M{start:g} {top:g} C{start:g} {top + 30:g} {far:g} {top + 10:g} {far:g} {(top + bottom) / 2:g} S{end:g} {bottom - 30:g} {end:g} {bottom - 1:g}"))
            else:
                arrows.append(arrow(f"M{start:g} {y + height:g} C{start:g} {y + height + gap * .6:g} {end:g} {by - gap * .6:g} {end:g} {by - 1:g}"))
    y = 4 + len(layers) * (height + gap) - gap + 4
    return picture("graph", "The graph of the loss. Arrows lead from a node to the nodes that its gradients go to; the numbers are the order in which the engine called the nodes.", y,
                   arrows + parts)


PICTURES = {"floors": floors_picture, "add": lambda: chain_picture("add"), "recorded": lambda: chain_picture("recorded"), "backward": lambda: chain_picture("backward"), "graph": backward_picture}


def with_pictures(page):
    """The Markdown of a page with its pictures in their places."""
    return PLACE.sub(lambda found: PICTURES[found[1]](), page)
