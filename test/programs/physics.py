"""Scientific machine learning: a physics-informed network with second derivatives, a neural ODE by RK4 with vmap, a Gaussian process by Cholesky, Hamiltonian Monte Carlo, implicit layers, ensembles, jacobians, forward-mode, optimisation by LBFGS and Newton."""
import math

import torch
from torch import nn
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
pi = torch.pi


class Sine(nn.Module):
    def forward(self, x):
        return torch.sin(x)


net = nn.Sequential(nn.Linear(1, 16), Sine(), nn.Linear(16, 16), Sine(), nn.Linear(16, 1))


def residual(x):
    u = net(x)
    (du,) = torch.autograd.grad(u, x, torch.ones_like(u), create_graph=True)
    (ddu,) = torch.autograd.grad(du, x, torch.ones_like(du), create_graph=True)
    return ddu + pi ** 2 * torch.sin(pi * x)


x = torch.linspace(0, 1, 20).unsqueeze(1).requires_grad_()
edge = torch.tensor([[0.0], [1.0]])
lbfgs = torch.optim.LBFGS(net.parameters(), max_iter=40, line_search_fn="strong_wolfe", tolerance_grad=1e-9)


def closure():
    lbfgs.zero_grad()
    loss = residual(x).pow(2).mean() + 10 * net(edge).pow(2).mean()
    loss.backward()
    return loss


print(f"pinn {lbfgs.step(closure).item():.4f} {closure().item():.3f}")

params = dict(net.named_parameters())
u = lambda p, v: functional_call(net, p, (v.reshape(1, 1),)).squeeze()
second = vmap(grad(grad(u, argnums=1), argnums=1), in_dims=(None, 0))(params, x.detach().squeeze(1))
print(torch.allclose(second.unsqueeze(1) + pi ** 2 * torch.sin(pi * x), residual(x)), f"{second[3]:.2f}")

field = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))


def rk4(f, y, t0, t1, n=10):
    h = (t1 - t0) / n
    for _ in range(n):
        k1 = f(y)
        k2 = f(y + h / 2 * k1)
        k3 = f(y + h / 2 * k2)
        k4 = f(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


start = torch.randn(16, 2)
angle = torch.tensor(0.7)
turn = torch.stack([torch.stack([angle.cos(), -angle.sin()]), torch.stack([angle.sin(), angle.cos()])])
target = start @ turn.mT
opt = torch.optim.Adamax(field.parameters(), lr=0.05)
for i in range(40):
    opt.zero_grad()
    loss = nn.functional.smooth_l1_loss(rk4(field, start, 0.0, 1.0), target, beta=0.5)
    loss.backward()
    opt.step()
print(f"ode {loss.item():.4f}")
J = vmap(jacrev(lambda y: rk4(field, y, 0.0, 1.0)))(start[:3])
print(torch.allclose(J, vmap(jacfwd(lambda y: rk4(field, y, 0.0, 1.0)))(start[:3])), J.shape, f"{torch.linalg.vector_norm(J).item():.3f}")
out, tangent = jvp(lambda y: rk4(field, y, 0.0, 1.0), (start[0],), (torch.tensor([1.0, 0.0]),))
_, pull = vjp(lambda y: rk4(field, y, 0.0, 1.0), start[0])
print(torch.allclose(tangent, J[0, :, 0]), [round(v, 4) for v in pull(torch.ones(2))[0].tolist()])


class GP(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_length, self.log_noise = nn.Parameter(torch.tensor(0.0)), nn.Parameter(torch.tensor(-1.0))

    def kernel(self, a, b):
        return torch.exp(-0.5 * torch.cdist(a, b).square() / self.log_length.exp() ** 2)

    def nll(self, X, y):
        L = torch.linalg.cholesky(self.kernel(X, X) + self.log_noise.exp() * torch.eye(len(X)))
        alpha = torch.cholesky_solve(y.unsqueeze(1), L)
        return 0.5 * y @ alpha.squeeze(1) + L.diagonal().log().sum() + 0.5 * len(X) * math.log(2 * pi)

    @torch.no_grad()
    def predict(self, X, y, Z):
        L = torch.linalg.cholesky(self.kernel(X, X) + self.log_noise.exp() * torch.eye(len(X)))
        v = torch.linalg.solve_triangular(L, self.kernel(X, Z), upper=False)
        return v.T @ torch.linalg.solve_triangular(L, y.unsqueeze(1), upper=False), 1 - v.square().sum(0)


X = torch.rand(25, 1) * 4
y = torch.sin(2 * X.squeeze(1)) + 0.1 * torch.randn(25)
gp = GP()
opt = torch.optim.Adagrad(gp.parameters(), lr=0.3)
for _ in range(30):
    opt.zero_grad()
    loss = gp.nll(X, y)
    loss.backward()
    opt.step()
mean, var = gp.predict(X, y, torch.tensor([[1.0], [9.0]]))
print(f"gp {loss.item():.3f} {gp.log_length.exp().item():.3f}", [round(v, 3) for v in (*mean.flatten().tolist(), *var.tolist())])

banana = torch.distributions.TransformedDistribution(torch.distributions.Independent(torch.distributions.Normal(torch.zeros(2), torch.tensor([1.0, 0.5])), 1), [])
potential = lambda q: -banana.log_prob(torch.stack([q[0], q[1] - 0.5 * q[0] ** 2]))
force = grad(potential)
q, total, accepted = torch.zeros(2), torch.zeros(2), 0
for _ in range(60):
    p = torch.randn(2)
    q1, p1 = q, p - 0.1 * force(q)
    for step in range(8):
        q1 = q1 + 0.2 * p1
        p1 = p1 - 0.2 * force(q1) * (0.5 if step == 7 else 1.0)
    if torch.rand(()) < torch.exp(potential(q) + p.square().sum() / 2 - potential(q1) - p1.square().sum() / 2):
        q, accepted = q1, accepted + 1
    total += q
print("hmc", accepted, [round(v, 3) for v in (total / 60).tolist()])


class Fixed(torch.autograd.Function):
    @staticmethod
    def forward(W, b):
        z = torch.zeros_like(b)
        for _ in range(60):
            z = torch.tanh(W @ z + b)
        return z

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output)

    @staticmethod
    def backward(ctx, g):
        W, z = ctx.saved_tensors
        d = 1 - z ** 2
        v = g
        for _ in range(60):
            v = g + W.T @ (d * v)
        return torch.outer(d * v, z), d * v


W, b = (0.3 * torch.randn(4, 4)).requires_grad_(), torch.randn(4, requires_grad=True)
print(torch.autograd.gradcheck(Fixed.apply, (W, b)))
rosenbrock = lambda v: (1 - v[0]) ** 2 + 100 * (v[1] - v[0] ** 2) ** 2
v = torch.tensor([-1.2, 1.0])
for i in range(8):
    H, g = hessian(rosenbrock)(v), grad(rosenbrock)(v)
    L = torch.linalg.cholesky(H + 1e-3 * torch.eye(2) if H[0, 0] > 0 else torch.eye(2))
    v = v - torch.cholesky_solve(g.unsqueeze(1), L).squeeze(1)
print([round(a, 4) for a in v.tolist()], torch.autograd.functional.jacobian(lambda a: a.square().sum(), v).round(decimals=3).tolist())
print(torch.matrix_exp(torch.tensor([[0.0, -1.0], [1.0, 0.0]])).round(decimals=4), f"{torch.trapezoid(torch.sin(torch.linspace(0, 3, 7)), dx=0.5).item():.6f}")
print(torch.einsum("bi,ij,bj->b", start[:2], J[0], start[:2]).round(decimals=3), torch.tensordot(J, J, dims=([1, 2], [1, 2])).shape, torch.logsumexp(J, (1, 2)).shape, torch.cummax(start[:, 0], 0).values[-1].round(decimals=3))
