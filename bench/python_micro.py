"""Times Python code on one package: python_micro.py {gradus|torch|numpy} [PART]. Prints a line with the name and the nanoseconds of each case whose
name contains PART.

The statements run inside timeit's loop, so the times do not include a call of a function of this file.
"""
import importlib
import sys
import timeit

ROUNDS, LEAST_SECONDS = 9, 0.01


def nanoseconds(statement, names):
    """Returns the shortest time of `statement` in several rounds, each of which is long compared with the resolution of the clock."""
    timer = timeit.Timer(statement, globals=names)
    count = 1
    while timer.timeit(count) < LEAST_SECONDS:
        count *= 2
    return min(timer.repeat(ROUNDS, count)) / count * 1e9


def small(torch):
    names = {"torch": torch, "x": torch.rand(4), "y": torch.rand(4), "out": torch.empty(4), "leaf": torch.rand(4, requires_grad=True),
             "matrix": torch.rand(4, 4), "row": torch.rand(1, 8), "one": torch.tensor(1.0), "linear": torch.nn.Linear(8, 8)}
    return names, {
        "add": "x + y",
        "add_number": "x + 1",
        "add_recorded": "leaf + y",
        "add_out": "torch.add(x, y, out=out)",
        "x[1]": "x[1]",
        "x[1:, 0]": "matrix[1:, 0]",
        "view": "matrix.view(16)",
        "t": "matrix.t()",
        "zeros": "torch.zeros(4)",
        "sum": "x.sum()",
        "matmul": "matrix @ matrix",
        "item": "one.item()",
        "linear": "linear(row)",
        "backward": "(leaf * y).sum().backward()",
    }


def training(torch):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss_of = torch.nn.CrossEntropyLoss()
    inputs, targets = torch.rand(16, 64), torch.randint(0, 10, (16,))

    def step():
        optimizer.zero_grad()
        loss_of(model(inputs), targets).backward()
        optimizer.step()

    return {"step": step}, {"training_step": "step()"}


def transforms(torch):
    """Returns the cases of vmap: the gradients of a small network for each of 64 samples, and the sums of 64 pairs of vectors."""
    func = importlib.import_module(f"{torch.__name__}.func")
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh(), torch.nn.Linear(64, 10))
    params = {name: p.detach() for name, p in model.named_parameters()}

    def loss(params, x, y):
        return torch.nn.functional.cross_entropy(func.functional_call(model, params, (x,)), y)

    names = {"params": params, "x": torch.rand(64, 32), "y": torch.randint(0, 10, (64,)), "gradients": func.vmap(func.grad(loss), in_dims=(None, 0, 0)),
             "add": func.vmap(torch.add), "a": torch.rand(64, 4)}
    return names, {"per_sample_gradients": "gradients(params, x, y)", "vmapped_add": "add(a, a)"}


def large(torch, threads):
    torch.set_num_threads(threads)
    names = {"torch": torch, "x": torch.rand(2048, 2048), "y": torch.rand(2048, 2048), "a": torch.rand(512, 512), "b": torch.rand(512, 512)}
    cases = {
        "add": "x + y",
        "exp": "x.exp()",
        "tanh": "x.tanh()",
        "gelu": "torch.nn.functional.gelu(x)",
        "sum": "x.sum()",
        "sum_rows": "x.sum(1)",
        "softmax": "x.softmax(1)",
        "transposed_copy": "x.t().contiguous()",
        "matmul_512": "a @ b",
        "layer_norm": "torch.nn.functional.layer_norm(x, (2048,))",
    }
    return names, {f"{name}/{threads}": statement for name, statement in cases.items()}


def numpy_cases(numpy):
    return {"x": numpy.ones(4, numpy.float32), "y": numpy.ones(4, numpy.float32)}, {"add": "x + y"}


def main():
    name, part = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    package = importlib.import_module(name)
    if name == "numpy":
        groups = [lambda: numpy_cases(package)]
    else:
        package.set_num_threads(1)
        groups = [lambda: small(package), lambda: training(package), lambda: transforms(package), lambda: large(package, 1), lambda: large(package, 2)]
    for group in groups:
        names, cases = group()
        for case, statement in cases.items():
            if part in case:
                print(f"{case}\t{nanoseconds(statement, names):.1f}", flush=True)
    print(f"{name} {package.__version__}, Python {sys.version.split()[0]}", file=sys.stderr)


if __name__ == "__main__":
    main()
