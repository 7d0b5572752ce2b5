"""Compares the times of pooling in Gradus and in PyTorch, forward and backward."""
from beside import compare

SHAPES = {"LeNet 8x16x24x24 k2": ((8, 16, 24, 24), (2, 2, 0)), "8x64x32x32 k2": ((8, 64, 32, 32), (2, 2, 0)), "ResNet stem 8x64x112x112 k3 s2": ((8, 64, 112, 112), (3, 2, 1)),
          "8x64x14x14 k3 s1": ((8, 64, 14, 14), (3, 1, 1)), "8x64x8x8 k2": ((8, 64, 8, 8), (2, 2, 0))}


def cases(torch, layout):
    functional, found = torch.nn.functional, {}
    for name, (shape, arguments) in SHAPES.items():
        for kind in ("max_pool2d", "avg_pool2d"):
            pool, x = getattr(functional, kind), torch.rand(*shape)
            x = x.to(memory_format=torch.channels_last) if layout == "channels_last" else x
            y = pool(x.requires_grad_(), *arguments)
            grad, plain = torch.ones_like(y), x.detach()
            found[f"{kind} {name}"] = lambda pool=pool, x=plain, a=arguments: pool(x, *a)
            found[f"{kind} {name} backward"] = lambda y=y, x=x, g=grad: torch.autograd.grad(y, x, g, retain_graph=True)
    return found


if __name__ == "__main__":
    compare(cases, __doc__, layouts=("default", "channels_last"))
