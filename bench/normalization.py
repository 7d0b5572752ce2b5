"""Compares batch, group and instance normalization, forward and with gradients, with PyTorch. PyTorch is timed in two memory layouts, and the faster
one counts."""
from beside import compare

SHAPES = ((8, 64, 32, 32), (8, 256, 8, 8), (32, 16, 28, 28), (128, 64), (16, 8), (2, 4, 4, 4), (4, 32, 7, 7))


def cases(torch, layout):
    found = {}
    for shape in SHAPES:
        x, grad = torch.rand(*shape), torch.rand(*shape)
        if layout == "channels_last" and len(shape) == 4:
            x, grad = x.to(memory_format=torch.channels_last), grad.to(memory_format=torch.channels_last)
        found |= of_batches(torch, shape, x, grad)
        if len(shape) == 4 and layout == "default":
            found |= both(torch, f"group norm {shape}", torch.nn.GroupNorm(4, shape[1]), x, grad) | both(torch, f"instance norm {shape}", torch.nn.InstanceNorm2d(shape[1], affine=True), x, grad)
    return found


def of_batches(torch, shape, x, grad):
    kind = torch.nn.BatchNorm2d if len(shape) == 4 else torch.nn.BatchNorm1d
    evaluated = kind(shape[1]).eval()
    return both(torch, f"batch norm {shape}", kind(shape[1]), x, grad) | {f"batch norm {shape} eval": without_gradients(torch, evaluated, x)}


def without_gradients(torch, layer, x):
    def run():
        with torch.no_grad():
            layer(x)
    return run


def both(torch, name, layer, x, grad):
    leaf = x.detach().requires_grad_()
    return {f"{name} forward": without_gradients(torch, layer, x), f"{name} and back": lambda: torch.autograd.grad(layer(leaf), [leaf, layer.weight, layer.bias], grad)}


if __name__ == "__main__":
    compare(cases, __doc__, layouts=("default", "channels_last"))
