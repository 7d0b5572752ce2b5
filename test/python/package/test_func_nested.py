"""Compares vmap inside of vmap, and the Jacobian for each element of a batch, with PyTorch."""
from nn_programs import attempt, same


@same(tolerance=1e-4)
def test_nested_vmap_and_jacobians_under_vmap(t):
    vmap, jacrev, jacfwd, hessian, grad = t.func.vmap, t.func.jacrev, t.func.jacfwd, t.func.hessian, t.func.grad
    a, b, w = t.randn(3, 4), t.randn(5, 4), t.randn(4, 4)

    def f(x):
        return t.tanh(w @ x)

    yield vmap(lambda x: vmap(lambda y: (x * y).sum())(b))(a), vmap(vmap(t.dot, in_dims=(None, 0)), in_dims=(0, None))(a, b)
    yield vmap(vmap(lambda x, y: x * y, in_dims=(0, None), out_dims=-1))(a, a[:, 0])
    yield vmap(jacrev(f))(a), vmap(jacfwd(f))(a), vmap(hessian(lambda x: f(x).sum()))(a), vmap(jacrev(jacrev(lambda x: f(x).prod())))(a)
    yield vmap(lambda x: vmap(grad(lambda y: (y * x).sin().sum()))(b))(a), jacrev(lambda w: vmap(jacrev(lambda x: t.tanh(w @ x)))(a[:2]).sum((1, 2)))(w).detach()
    yield vmap(vmap(lambda x: {"s": x.sum(), "m": (x.max(), x * 2)}, out_dims={"s": 0, "m": (0, -1)}))(t.arange(24.0).view(2, 3, 4))
    yield attempt(vmap(vmap(lambda x: x, out_dims=(0, 1))), a)[0]
