"""Compares convolutions of well-known networks with PyTorch: the forward pass, the gradient of the input and the gradient of the weight."""
from beside import compare

# For each name the sizes of a case: samples, input channels, size of the image, output channels, size of the kernel, stride, padding, groups.
SHAPES = {
    "resnet 7x7/2": (2, 3, (112, 112), 64, (7, 7), 2, 3, 1),
    "resnet 64": (4, 64, (56, 56), 64, (3, 3), 1, 1, 1),
    "resnet 64->128/2": (4, 64, (56, 56), 128, (3, 3), 2, 1, 1),
    "resnet 1x1/2": (4, 64, (56, 56), 128, (1, 1), 2, 0, 1),
    "resnet 128": (4, 128, (28, 28), 128, (3, 3), 1, 1, 1),
    "resnet 256": (4, 256, (14, 14), 256, (3, 3), 1, 1, 1),
    "resnet 512": (4, 512, (7, 7), 512, (3, 3), 1, 1, 1),
    "cifar 64": (8, 64, (32, 32), 64, (3, 3), 1, 1, 1),
    "cifar 512": (8, 512, (4, 4), 512, (3, 3), 1, 1, 1),
    "mobile expand": (4, 24, (28, 28), 88, (1, 1), 1, 0, 1),
    "mobile depthwise 3": (4, 88, (28, 28), 88, (3, 3), 1, 1, 88),
    "mobile depthwise 5/2": (4, 96, (28, 28), 96, (5, 5), 2, 2, 96),
    "mobile project": (4, 240, (14, 14), 40, (1, 1), 1, 0, 1),
    "mobile stem": (4, 3, (112, 112), 16, (3, 3), 2, 1, 1),
    "unet 3->32": (2, 3, (128, 128), 32, (3, 3), 1, 1, 1),
    "unet 32": (2, 32, (128, 128), 32, (3, 3), 1, 1, 1),
    "unet 64->2": (2, 64, (128, 128), 2, (1, 1), 1, 0, 1),
    "lenet 1->6": (32, 1, (28, 28), 6, (5, 5), 1, 2, 1),
    "lenet 6->16": (32, 6, (14, 14), 16, (5, 5), 1, 0, 1),
    "line 64": (8, 64, (256,), 64, (5,), 1, 2, 1),
    "line depthwise": (8, 128, (128,), 128, (4,), 1, 3, 128),
    "tiny 1->6": (1, 1, (8, 8), 6, (3, 3), 1, 1, 1),
    "tiny 6->6": (1, 6, (8, 8), 6, (3, 3), 1, 1, 1),
}


def cases(torch, layout):
    made = {}
    for name, (samples, channels, size, out, kernel, stride, padding, groups) in SHAPES.items():
        x, weight = torch.rand(samples, channels, *size), torch.rand(out, channels // groups, *kernel)
        if layout == "channels_last" and len(size) == 2:
            x, weight = x.contiguous(memory_format=torch.channels_last), weight.contiguous(memory_format=torch.channels_last)
        function = torch.conv2d if len(size) == 2 else torch.conv1d
        settings = {"stride": stride, "padding": padding, "groups": groups}
        grad = torch.ones_like(function(x, weight, **settings))
        made[name] = lambda x=x, weight=weight, settings=settings, function=function: function(x, weight, **settings)
        for what, leaf in (("input", x), ("weight", weight)):
            inputs = [t.detach().requires_grad_(t is leaf) for t in (x, weight)]
            y = function(*inputs, **settings)
            made[f"{name}, {what}"] = lambda y=y, leaf=inputs[what == "weight"], grad=grad: torch.autograd.grad(y, leaf, grad, retain_graph=True)
    return made


if __name__ == "__main__":
    compare(cases, __doc__, layouts=("default", "channels_last"))
