"""Compares interpolate and grid_sample of images, forward and backward, with PyTorch. PyTorch is timed in two memory layouts, and the faster one
counts."""
from beside import compare

# For each name the size of the images, the size of the result, and the options of interpolate.
SIZES = {"nearest x2": ((8, 32, 32, 32), (64, 64), {"mode": "nearest"}), "bilinear x2": ((8, 32, 32, 32), (64, 64), {"mode": "bilinear"}),
         "bicubic x2": ((4, 8, 32, 32), (64, 64), {"mode": "bicubic"}), "bilinear half": ((8, 32, 64, 64), (32, 32), {"mode": "bilinear"}),
         "bilinear 224": ((1, 3, 500, 375), (224, 224), {"mode": "bilinear"}), "bilinear 224 antialias": ((1, 3, 500, 375), (224, 224), {"mode": "bilinear", "antialias": True}),
         "trilinear x2": ((1, 8, 16, 16, 16), (32, 32, 32), {"mode": "trilinear"}), "linear x2": ((8, 32, 128), (256,), {"mode": "linear"})}


def cases(torch, layout):
    functional, found = torch.nn.functional, {}
    for name, (shape, size, options) in SIZES.items():
        x = torch.rand(*shape)
        x = x.to(memory_format=torch.channels_last) if layout == "channels_last" and len(shape) == 4 else x
        y = functional.interpolate(x.requires_grad_(), size, **options)
        grad, plain = torch.rand(*y.shape).as_strided(y.shape, y.stride()), x.detach()
        found[name] = lambda x=plain, size=size, options=options: functional.interpolate(x, size, **options)
        found[f"{name} backward"] = lambda x=x, y=y, grad=grad: torch.autograd.grad(y, x, grad, retain_graph=True)
    image = torch.randint(0, 256, (1, 3, 500, 375), dtype=torch.uint8)
    image = image.to(memory_format=torch.channels_last) if layout == "channels_last" else image
    for antialias in (False, True):
        found[f"bytes 224{' antialias' if antialias else ''}"] = lambda antialias=antialias: functional.interpolate(image, (224, 224), mode="bilinear", antialias=antialias)
    return found | grid_cases(torch, layout)


def grid_cases(torch, layout):
    functional, found = torch.nn.functional, {}
    for shape, size in (((8, 16, 32, 32), (32, 32)), ((1, 3, 224, 224), (224, 224)), ((1, 4, 16, 16, 16), (16, 16, 16))):
        x, grid = torch.rand(*shape), torch.rand(shape[0], *size, len(size)) * 2 - 1
        x = x.to(memory_format=torch.channels_last) if layout == "channels_last" and len(shape) == 4 else x
        for mode in ("bilinear", "nearest") + (("bicubic",) if len(size) == 2 else ()):
            leaves = [x.clone().requires_grad_(), grid.clone().requires_grad_()]
            y = functional.grid_sample(*leaves, mode=mode, align_corners=False)
            found[f"grid_sample {mode} {shape}"] = lambda x=x, grid=grid, mode=mode: functional.grid_sample(x, grid, mode=mode, align_corners=False)
            found[f"grid_sample {mode} {shape} backward"] = lambda y=y, leaves=leaves, grad=torch.ones_like(y): torch.autograd.grad(y, leaves, grad, retain_graph=True)
    return found


if __name__ == "__main__":
    compare(cases, __doc__, layouts=("default", "channels_last"))
