"""Times in PyTorch the cases of micro.c, under the same names. Prints a line "name<TAB>nanoseconds" for each name that contains the first argument.

The statements run inside timeit's loop, so the times do not include a call of a function of this file.
"""
import ctypes
import math
import sys
import timeit

import torch
import torch.nn.functional as F

BATCHES, BATCH_SECONDS, LARGE, SIDE = 40, 0.004, 4 << 20, 2048


class Network:
    """A network with layers of 64, 32, 32 and 10 units, and its training step on 16 samples. AdamW is written with in-place operators."""

    def __init__(self):
        widths = [64, 32, 32, 10]
        self.images = uniform(16, widths[0])
        self.labels = torch.arange(16) % widths[-1]
        self.parameters = []
        for inputs, outputs in zip(widths, widths[1:]):
            self.parameters += [(uniform(outputs, inputs) * 0.1).requires_grad_(), (uniform(outputs) * 0.1).requires_grad_()]
        self.mean = [torch.zeros_like(p) for p in self.parameters]
        self.square = [torch.zeros_like(p) for p in self.parameters]
        self.steps = 0

    def step(self):
        w1, b1, w2, b2, w3, b3 = self.parameters
        hidden = torch.relu(F.linear(torch.relu(F.linear(self.images, w1, b1)), w2, b2))
        F.cross_entropy(F.linear(hidden, w3, b3), self.labels).backward()
        self.adamw()

    @torch.no_grad()
    def adamw(self):
        lr, beta1, beta2, eps, decay = 1e-3, 0.9, 0.999, 1e-8, 0.01
        self.steps += 1
        correction1, correction2 = 1 - beta1 ** self.steps, 1 - beta2 ** self.steps
        for p, m, v in zip(self.parameters, self.mean, self.square):
            p.mul_(1 - lr * decay)
            m.mul_(beta1)
            m.add_(p.grad, alpha=1 - beta1)
            v.mul_(beta2)
            v.addcmul_(p.grad, p.grad, value=1 - beta2)
            p.addcdiv_(m, (v / correction2).sqrt() + eps, value=-lr / correction1)
            p.grad = None


def uniform(*sizes):
    return torch.empty(sizes).uniform_(-1, 1)


def small():
    names = {"a": uniform(4), "b": uniform(4), "matrix": uniform(4, 4), "one": uniform(1), "net": Network(), "torch": torch,
             "x": uniform(4).requires_grad_(), "y": uniform(4).requires_grad_(), "linear": torch.nn.functional.linear,
             "row": [uniform(1, 8), uniform(8, 8), uniform(8)], "batch": [uniform(16, 64), uniform(32, 64), uniform(32)]}
    return names, {
        "add": "a + b",
        "add_number": "a + 2.0",
        "add_recorded": "x + b",
        "select": "matrix.select(0, 1)",
        "view": "a.view(2, 2)",
        "transpose": "matrix.transpose(0, 1)",
        "zeros": "torch.zeros(4)",
        "sum": "a.sum()",
        "mm": "matrix.mm(matrix)",
        "linear_1x8x8": "linear(*row)",
        "linear_16x64x32": "linear(*batch)",
        "item": "one.item()",
        "backward": "(x * y).sum().backward(); x.grad = None; y.grad = None",
        "training_step": "net.step()",
    }


def large():
    p = uniform(LARGE)
    names = {"p": p, "q": uniform(LARGE), "rows": p.view(-1, 1024), "side": p.view(SIDE, -1).t(), "i": torch.arange(LARGE), "j": torch.arange(LARGE),
             "memmove": ctypes.memmove, "buffer": ctypes.create_string_buffer(LARGE * 4), "address": p.data_ptr(), "torch": torch}
    statements = {
        "memcpy_4M": f"memmove(buffer, address, {LARGE * 4})",
        "add_4M": "p + q",
        "exp_4M": "p.exp()",
        "tanh_4M": "p.tanh()",
        "sum_4M": "p.sum()",
        "softmax_4M": "rows.softmax(1)",
        "transpose_copy_4M": "side.contiguous()",
        "add_int64_4M": "i + j",
    }
    for size in (64, 128, 256, 512, 1024, 2048):
        names[f"left{size}"], names[f"right{size}"] = uniform(size, size), uniform(size, size)
        statements[f"mm_{size}"] = f"left{size}.mm(right{size})"
    return names, statements


def least_nanoseconds(statement, names):
    timer = timeit.Timer(statement, globals=names)
    timer.timeit(1)  # the first call warms up and is not counted
    n, taken = 1, timer.timeit(1)
    while taken < BATCH_SECONDS / 4:
        n *= 4
        taken = timer.timeit(n)
    n = max(1, math.floor(n * BATCH_SECONDS / taken))
    return min(timer.timeit(n) / n * 1e9 for _ in range(BATCHES))


def report(part, names, statements, threads=0):
    for name, statement in statements.items():
        full = f"{name}/{threads}" if threads else name
        if part in full and not (threads > 1 and name == "memcpy_4M"):
            print(f"{full}\t{least_nanoseconds(statement, names):.1f}", flush=True)


def main():
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    print(f"torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}", file=sys.stderr)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    report(part, *small())
    names, statements = large()
    for threads in (1, 2):
        torch.set_num_threads(threads)
        report(part, names, statements, threads)


if __name__ == "__main__":
    main()
