"""Tests docs/strides.html. Its computations, run in Chromium, must give the sizes, strides, offsets, copies, elements and errors that Gradus gives
for random chains of views. The page must draw the tensor that the fragment of its URL describes, e.g. #storage=12&sizes=3,4&strides=4,1&offset=0."""
import html
import json
import math
import os
import random
import re
import subprocess

import pytest

import gradus as torch
from conftest import ROOT, needs

PAGE = ROOT / "docs/strides.html"
CHAINS = 1000
OPERATORS = ("transpose", "slice", "expand", "diagonal", "unfold", "flip", "reshape", "contiguous")
# Operators that work for tensors of any rank. The others need two dimensions.
SCALAR = ("slice", "expand", "unfold", "reshape")

# This script reads chains (lists of view operators) as JSON from a <script> element, applies each to a tensor and replaces the page by the results.
RUNNER = """
const results = JSON.parse(document.getElementById("chains").textContent).map(chain => {
  const steps = [], described = ({tensor, copy, gap}) => ({sizes: tensor.sizes, strides: tensor.strides, offset: tensor.offset, copy, gap: gap ?? null,
    cells: strides.cells(tensor), values: strides.cells(tensor).map(cell => tensor.storage[cell]), storage: tensor.storage.length,
    contiguous: strides.isContiguous(tensor), channels_last: strides.isChannelsLast(tensor)});
  try {
    let step = strides.asStrided(strides.arange(chain.storage), chain.sizes, chain.strides, chain.offset);
    steps.push(described(step));
    for (const call of chain.calls) {
      step = strides.apply(step.tensor, call);
      steps.push(described(step));
    }
  } catch (error) {
    steps.push({error: `${error.name}: ${error.message}`});
  }
  return steps;
});
document.body.textContent = "RESULTS" + JSON.stringify(results) + "END";
"""


def dump(page, tmp_path, address=""):
    """Returns the HTML document after its scripts have run in Chromium."""
    needs("chromium", "as root, sh tools/install-packages.sh")
    path = tmp_path / "page.html"
    path.write_text(page)
    command = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile", "--virtual-time-budget=10000", "--dump-dom", f"{path.as_uri()}{address}"]
    # LD_PRELOAD would load the tests' sanitizer into Chromium.
    result = subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ, "LD_PRELOAD": ""})
    assert result.returncode == 0, result.stderr
    return result.stdout


def ran(chains, tmp_path):
    data = f'<script type="application/json" id="chains">{json.dumps(chains)}</script><script>{RUNNER}</script>'
    found = re.search("RESULTS(.*)END", html.unescape(dump(PAGE.read_text() + data, tmp_path)), re.S)
    return json.loads(found[1])


# ---- Chains -----------------------------------------------------------------------------------------------------------------


def dim(pick, t):
    """Returns a dimension of `t`, counted from either end. Rarely the dimension is out of range."""
    n = max(t.dim(), 1)
    return pick.randrange(-n - 1, n + 1) if pick.random() < 0.03 else pick.randrange(-n, n)


def factors(pick, n):
    """Returns random sizes whose product is n."""
    sizes = []
    while n > 1 and len(sizes) < 5:
        divisor = pick.choice([d for d in range(1, n + 1) if n % d == 0])
        sizes.append(divisor)
        n //= divisor
    return sizes + [n] * (n != 1 or pick.random() < 0.2)


def arguments(name, pick, t):
    wrong = pick.random() < 0.03
    if name == "transpose":
        return [dim(pick, t), dim(pick, t)]
    if name == "slice":
        step = pick.choice([-3, -2, -1, -1, 1, 1, 2, 3] + [0] * wrong)
        low, high = pick.choice([None, None, 0, 1, -1, -4, -9]), pick.choice([None, None, 2, 3, -1, 9])
        return [dim(pick, t), *((low, high) if step > 0 or pick.random() < 0.1 else (high, low)), step]
    if name == "expand":
        sizes = [pick.choice([1, 2, 3]) if size == 1 and pick.random() < 0.7 else pick.choice([size, size, -1]) for size in t.shape]
        sizes = [pick.choice([1, 1, 2, 2, 3, 3, 0]) for _ in range(pick.choice([0, 0, 1, 2]))] + sizes
        return [sizes[1:] if wrong else [pick.choice([-1, 4, *sizes]) for _ in sizes] if pick.random() < 0.05 else sizes]
    if name == "diagonal":
        return [pick.choice([0, 0, 0, -1, 1, -2, 3]), *(pick.sample(range(t.dim()), 2) if t.dim() > 1 and pick.random() < 0.9 else [dim(pick, t), dim(pick, t)])]
    if name == "unfold":
        along = dim(pick, t)
        present = t.shape[along] if -t.dim() <= along < t.dim() else 1
        return [along, pick.randrange(-1, present + 2) if wrong else pick.randrange(present > 0 and pick.random() < 0.9, present + 1), pick.choice([1, 1, 2, 3] + [0] * wrong)]
    if name == "flip":
        return [pick.sample(range(-t.dim(), 0), pick.randrange(0, t.dim() + 1)) + [dim(pick, t)] * wrong]
    if name == "reshape":
        sizes = factors(pick, t.numel())
        if sizes and pick.random() < 0.3:
            sizes[pick.randrange(len(sizes))] = -1
        return [sizes + [pick.choice([-2, -1, 1, 2, 5])] * wrong]
    return []


def call(t, name, args):
    return torch.ops.aten.slice(t, *args) if name == "slice" else getattr(t, name)(*args)


def start(pick):
    """Returns (size of a storage, sizes, strides, offset) of a random tensor. The tensor is contiguous, or has strides of any sign and may exceed the
    storage."""
    sizes = [pick.choice([0, 1, 1, 2, 3, 4, 5] if pick.random() < 0.1 else [1, 2, 3, 4]) for _ in range(pick.choice([0, 1, 2, 2, 3, 3, 4, 4]))]
    if pick.random() < 0.5:
        return max(math.prod(sizes), pick.randrange(1, 5)), sizes, list(torch.empty(sizes).stride()), 0
    strides = [pick.randrange(-6, 13) for _ in sizes]
    spans = [(size - 1) * stride for size, stride in zip(sizes, strides)] if 0 not in sizes else []
    lowest, highest = sum(min(s, 0) for s in spans), sum(max(s, 0) for s in spans)
    offset = -lowest + pick.choice([0, 0, 0, 1, 5]) - pick.choice([0] * 12 + [1, 3])
    storage = max(offset + highest + 1, 1) + pick.choice([0, 0, 4]) - pick.choice([0] * 12 + [1])
    if pick.random() < 0.02:
        sizes = sizes + [pick.choice([-1, 2])]
    return max(storage, 0), sizes, strides, offset


def described(t, copy):
    n = t.untyped_storage().nbytes() // 4
    places = torch.arange(float(n)).as_strided(t.shape, t.stride(), t.storage_offset()) if t.numel() else t
    return {"sizes": list(t.shape), "strides": list(t.stride()), "offset": t.storage_offset(), "copy": copy, "cells": [int(v) for v in places.reshape(-1).tolist()],
            "values": [int(v) for v in t.reshape(-1).tolist()], "storage": n, "contiguous": t.is_contiguous(),
            "channels_last": t.dim() == 4 and t.is_contiguous(memory_format=torch.channels_last)}


def chain(pick):
    """Returns (chain, expected results). The chain describes a tensor and up to six random view operators, each applied to the result of the one
    before. RUNNER computes the chain on the page docs/strides.html. The chain ends after the first operator that is refused."""
    storage, sizes, strides, offset = start(pick)
    told, steps = {"storage": storage, "sizes": sizes, "strides": strides, "offset": offset, "calls": []}, []
    try:
        t = torch.arange(float(storage)).as_strided(sizes, strides, offset)
        steps.append(described(t, False))
        for _ in range(pick.randrange(1, 7)):
            name = pick.choice([o for o in OPERATORS if t.dim() > 1 or o in SCALAR or pick.random() < 0.1])
            args = arguments(name, pick, t)
            told["calls"].append({"name": name, "args": args})
            result = call(t, name, args)
            if result.numel() > 2000 or result.dim() > 8:
                told["calls"].pop()
                break
            steps.append(described(result, result.untyped_storage().data_ptr() != t.untyped_storage().data_ptr()))
            t = result
    except (RuntimeError, IndexError) as error:
        steps.append({"error": f"{type(error).__name__}: {error}"})
    return told, steps


def merges(step, gap):
    """True if the dimensions gap["outer"] and gap["inner"] of the tensor before a reshape can be merged into one without a copy."""
    return step["strides"][gap["outer"]] == step["sizes"][gap["inner"]] * step["strides"][gap["inner"]]


def test_computations_of_the_page_agree_with_gradus(tmp_path):
    pick = random.Random(20)
    told, wanted = zip(*(chain(pick) for _ in range(CHAINS)))
    found = ran(told, tmp_path)
    gaps = [(before, step.pop("gap")) for steps in found for before, step in zip([None, *steps], steps) if "gap" in step]
    for number, (chained, ours, pages) in enumerate(zip(told, wanted, found)):
        assert pages == list(ours), f"chain {number}: {chained}"
    named = [(before, gap) for before, gap in gaps if gap is not None]
    assert len(named) > 50 and not any(merges(before, gap) for before, gap in named)
    steps = [step for ours in wanted for step in ours]
    calls = [one["name"] for chained in told for one in chained["calls"]]
    assert {name: calls.count(name) > 200 for name in OPERATORS} == dict.fromkeys(OPERATORS, True)
    assert sum("error" in step for step in steps) > 150 and sum(step.get("copy", False) for step in steps) > 400
    assert len({re.sub(r"-?\d+", "", step["error"]) for step in steps if "error" in step}) > 20


# ---- The page -----------------------------------------------------------------------------------------------------------------


def texts(document, pattern):
    return [html.unescape(re.sub(r"<[^>]+>", "", found)) for found in re.findall(pattern, document, re.S)]


def test_the_page_draws_the_tensor_of_its_address(tmp_path):
    page = PAGE.read_text().replace("</body>", '<script>document.querySelector(`.cell[data-side="tensor"][data-number="5"]`).click();</script></body>')
    document = dump(page, tmp_path, "#storage=12&sizes=3,4&strides=4,1&offset=0&ops=transpose(0,1).slice(0,,,-1)")
    cells = re.findall(r'<button[^>]*aria-label="([^"]*)"[^>]*data-side="(\w+)"[^>]*data-number="(\d+)"', document)
    assert [side for _, side, _ in cells].count("storage") == 12
    t = torch.arange(12.0).view(3, 4).transpose(0, 1).flip(0)
    elements = [label for label, side, _ in cells if side == "tensor"]
    assert elements == [f"element [{i}, {j}], value {int(t[i, j])}, storage cell {int(t[i, j])}" for i in range(4) for j in range(3)]
    assert texts(document, r'<span class="call">(.*?)</span>') == ["as_strided over 12 cells", ".transpose(0, 1)", "[::-1]"]
    assert "tensor[1, 2] is storage[10]" in document and "= 3 + 1·(-1) + 2·4" in document
    assert len(re.findall(r'class="cell hot"', document)) == 2


def clicked(script, tmp_path, address=""):
    """Loads the page in Chromium and runs the JavaScript `script`, e.g. with clicks. Returns the list `said`, to which the script adds what it
    observes."""
    end = 'document.body.textContent = "RESULTS" + JSON.stringify(said) + "END";'
    page = PAGE.read_text().replace("</body>", f"<script>const said = [], $ = id => document.getElementById(id); {script} {end}</script></body>")
    return json.loads(re.search("RESULTS(.*)END", html.unescape(dump(page, tmp_path, address)), re.S)[1])


def test_arrow_keys_move_between_elements(tmp_path):
    script = """
    document.querySelector('.cell[data-side="tensor"][data-number="0"]').focus();
    for (const [key, shiftKey] of [["ArrowRight"], ["ArrowDown"], ["ArrowRight", true], ["ArrowUp"], ["ArrowUp"], ["End"], ["ArrowRight"], ["ArrowLeft", true], ["Home"]]) {
      document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key, shiftKey, bubbles: true}));
      said.push(document.activeElement.getAttribute("aria-label").split(",").slice(0, -2).join(","));
    }"""
    moved = clicked(script, tmp_path, "#storage=24&sizes=2,3,4&strides=12,4,1&offset=0")
    assert moved == [f"element {index}" for index in ([0, 0, 1], [0, 1, 1], [1, 1, 1], [1, 0, 1], [1, 0, 1], [1, 2, 3], [1, 2, 3], [0, 2, 3], [0, 0, 0])]


def test_typed_strides_operators_and_undo_change_the_address(tmp_path):
    script = """
    const type = (input, value) => { input.value = value; input.dispatchEvent(new InputEvent("input", {bubbles: true})); said.push([location.hash, $("geometry-error").textContent]); };
    type($("geometry").elements.strides, "1, 5");
    type($("geometry").elements.strides, "1, x");
    type($("geometry").elements.strides, "1, 3");
    [...$("operators").children].find(button => button.textContent === "reshape").click();
    said.push($("preview").textContent);
    $("apply").click(); said.push(location.hash);
    $("undo").click(); said.push(location.hash);
    $("redo").click(); said.push(location.hash, $("code").textContent);"""
    first, second, third, preview, applied, undone, redone, code = clicked(script, tmp_path)
    with pytest.raises(RuntimeError) as caught:
        torch.arange(12.0).as_strided((3, 4), (1, 5), 0)
    before, after = "#storage=12&sizes=3,4&strides=4,1&offset=0", "#storage=12&sizes=3,4&strides=1,3&offset=0"
    assert first == [before, f"RuntimeError: {caught.value}"] and second == [before, "strides: “ x” is not an integer."] and third == [after, ""]
    assert preview.startswith("copy.reshape(-1)sizes [12]strides [1]offset 0Dims 0 and 1 do not merge: dim 1 has 4 elements with stride 3")
    assert [applied, undone, redone] == [f"{after}&ops=reshape(-1)", f"{after}&ops=reshape(-1)&at=0", f"{after}&ops=reshape(-1)"]
    assert eval(code).tolist() == [*range(0, 12, 3), *range(1, 12, 3), *range(2, 12, 3)]


def test_the_page_refuses_an_invalid_address_with_the_text_of_gradus(tmp_path):
    document = dump(PAGE.read_text(), tmp_path, "#storage=10&sizes=3,4&strides=4,1&offset=0")
    with pytest.raises(RuntimeError) as caught:
        torch.arange(10.0).as_strided((3, 4), (4, 1), 0)
    assert texts(document, r'<p class="error" id="geometry-error"[^>]*>(.*?)</p>') == [f"The address cannot be shown: RuntimeError: {caught.value}"]


def test_the_page_loads_no_other_files():
    text = PAGE.read_text()
    assert not re.findall(r'<(?:script|img|link|iframe)[^>]+(?:src|href)=|@import|url\(|fetch\(|XMLHttpRequest|import\s*\(', text)
    assert re.findall(r'https?://[^"\s<]+', text) == ["https://ezyang.github.io/stride-visualizer/index.html", "http://www.w3.org/2000/svg"]
