"""Records the steps of PyTorch's optimizers and gradient clipping: python3 test/record_optim.py, with torch 2.13 installed (a CPU build suffices).

Writes test/unit/recorded_optim.h. test_optim.c takes the same steps; parameters and gradients are numbers that float32 represents exactly.
"""
import textwrap
from pathlib import Path

import torch

STEPS = 4
SIZES = [(13,), (2, 3)]
# Each entry has name, class and options. test_optim.c makes the same optimizers under the same names.
OPTIMIZERS = [
    ("sgd", "SGD", {"lr": 0.1}),
    ("sgd_momentum", "SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.25, "weight_decay": 0.01, "maximize": True}),
    ("sgd_nesterov", "SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01, "nesterov": True}),
    ("adam", "Adam", {"lr": 0.01}),
    ("adam_all", "Adam", {"lr": 0.01, "betas": (0.4, 0.99), "eps": 1e-4, "weight_decay": 0.1, "amsgrad": True, "maximize": True}),
    ("adamw", "AdamW", {"lr": 0.01}),
    ("adamw_all", "AdamW", {"lr": 0.01, "betas": (0.8, 0.9), "eps": 1e-4, "weight_decay": 0.1, "amsgrad": True, "maximize": True}),
]
CLIPS = [("clip_2", 2.0), ("clip_1", 1.0), ("clip_3", 3.0), ("clip_inf", float("inf"))]


def start(size):
    n = torch.Size(size).numel()
    return torch.tensor([(i % 5 - 2) / 2 for i in range(n)]).reshape(size)


def gradient(size, step):
    n = torch.Size(size).numel()
    return torch.tensor([((i * 7 + step * 5) % 11 - 5) / 4 for i in range(n)]).reshape(size)


def hexadecimal(values):
    return ", ".join(f"{float.hex(value)}f" for value in values)


def line(name, tensors):
    text = f"static const float {name}[] = {{{hexadecimal(torch.cat([t.flatten() for t in tensors]).tolist())}}};"
    return "\n".join(textwrap.wrap(text, 140, subsequent_indent="    "))


def optimized(kind, options):
    params = [start(size).requires_grad_() for size in SIZES]
    optimizer = getattr(torch.optim, kind)(params, foreach=False, **options)
    for step in range(STEPS):
        for i, param in enumerate(params):
            param.grad = None if step == 0 and i == 1 else gradient(SIZES[i], step)  # the second parameter has no gradient in the first step
        optimizer.step()
    return [param.detach() for param in params]


def clipped(norm_type):
    params = [start(size).requires_grad_() for size in SIZES]
    for param in params:
        param.grad = gradient(param.shape, 1)
    total = torch.nn.utils.clip_grad_norm_(params, 0.75, norm_type, foreach=False)
    return [total, *(param.grad for param in params)]


def main():
    lines = ["/* Written by test/record_optim.py. Holds the parameters after four optimizer steps of PyTorch, and the norms and gradients of clip_grad_norm_. */",
             "#ifndef GRD_TEST_RECORDED_OPTIM_H", "#define GRD_TEST_RECORDED_OPTIM_H", "", "/* clang-format off */"]
    lines += [line(name, optimized(kind, options)) for name, kind, options in OPTIMIZERS]
    lines += [line(name, clipped(order)) for name, order in CLIPS]
    lines += ["/* clang-format on */", "", "#endif", ""]
    (Path(__file__).resolve().parent / "unit" / "recorded_optim.h").write_text("\n".join(lines))


if __name__ == "__main__":
    main()
