"""Compares updates by optimizers, and gradient clipping, with PyTorch. There are cases with 20 small parameters and with one large parameter.
PyTorch runs its default, foreach and fused implementations; the fastest one counts."""
from beside import compare

OPTIMIZERS = {"SGD": {"lr": 1e-3}, "SGD momentum": {"lr": 1e-3, "momentum": 0.9}, "Adam": {}, "AdamW": {}, "Adadelta": {}, "Adagrad": {}, "Adamax": {}, "ASGD": {}, "NAdam": {}, "RAdam": {},
              "RMSprop": {}, "Rprop": {}, "Adafactor": {}, "Muon": {}}
SMALL, LARGE = [(16, 16)] * 20, [(1024, 1024)]


def parameters(torch, sizes):
    params = [torch.randn(size, requires_grad=True) for size in sizes]
    for param in params:
        param.grad = torch.randn(param.shape) * 0.01
    return params


def cases(torch, layout):
    """Returns {name: update}. Here `layout` is the name of PyTorch's implementation: default, foreach or fused. Optimizers without this
    implementation are left out."""
    found = {}
    for name, options in OPTIMIZERS.items():
        kind = getattr(torch.optim, name.split()[0])
        for title, sizes in (("20 small", SMALL), ("one large", LARGE)):
            try:
                optimizer = kind(parameters(torch, sizes), **options, **({} if layout == "default" else {layout: True}))
                optimizer.step()
            except (TypeError, RuntimeError):
                continue
            found[f"{name}, {title}"] = optimizer.step
    for title, sizes in (("20 small", SMALL), ("one large", LARGE)):
        params = parameters(torch, sizes)
        found[f"clip_grad_norm_, {title}"] = lambda params=params: torch.nn.utils.clip_grad_norm_(params, 1e9)
        found[f"clip_grad_value_, {title}"] = lambda params=params: torch.nn.utils.clip_grad_value_(params, 1e9)
    for step in found.values():  # The first update, which may load code, is not timed.
        step()
    return found


if __name__ == "__main__":
    compare(cases, __doc__, layouts=("default", "foreach", "fused"))
