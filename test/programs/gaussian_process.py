"""Gaussian processes: hyperparameters by the marginal likelihood (Rasmussen and Williams, 2006), the posterior by Cholesky's decomposition and by conjugate gradients, inducing points from a Sobol sequence."""
import math

import torch

torch.set_default_dtype(torch.float64)


def kernel(x, y, length, scale):
    squares = ((x / length).unsqueeze(1) - (y / length).unsqueeze(0)).square().sum(-1)
    return scale**2 * torch.exp(-0.5 * squares)


def marginal_likelihood(x, y, length, scale, noise):
    covariance = kernel(x, x, length, scale) + noise**2 * torch.eye(len(x))
    factor = torch.linalg.cholesky(covariance)
    weights = torch.cholesky_solve(y.unsqueeze(1), factor).squeeze(1)
    return -0.5 * y.dot(weights) - factor.diagonal().log().sum() - 0.5 * len(x) * math.log(2 * math.pi)


def conjugate_gradients(matrix, b, steps):
    x, r = torch.zeros_like(b), b.clone()
    p, rs = r.clone(), r.dot(r)
    for _ in range(steps):
        product = torch.mv(matrix, p)
        alpha = rs / torch.vdot(p, product)
        x.add_(p, alpha=alpha.item())
        r.sub_(product, alpha=alpha.item())
        fresh = r.dot(r)
        p, rs = torch.addcmul(r, fresh / rs, p), fresh
    return x, rs.sqrt()


def main():
    torch.manual_seed(0)
    x = torch.rand(60, 2) * 4 - 2
    y = torch.sinc(x[:, 0]) + 0.3 * x[:, 1] + 0.05 * torch.randn(60)
    hyper = torch.zeros(4, requires_grad=True)
    optimizer = torch.optim.LBFGS([hyper], lr=0.3, max_iter=8, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        length, scale, noise = hyper[:2].exp(), hyper[2].exp(), (hyper[3] - 2).exp()
        loss = -marginal_likelihood(x, y, length, scale, noise)
        loss.backward()
        return loss

    for step in range(4):
        print(f"likelihood {step}: {-optimizer.step(closure).item():.4f}")
    with torch.no_grad():
        length, scale, noise = hyper[:2].exp(), hyper[2].exp(), (hyper[3] - 2).exp()
        covariance = kernel(x, x, length, scale) + noise**2 * torch.eye(60)
        points = torch.quasirandom.SobolEngine(2, scramble=True, seed=3).draw(5, dtype=torch.float64) * 4 - 2
        cross = kernel(points, x, length, scale)
        mean = cross @ torch.linalg.solve(covariance, y)
        factor = torch.linalg.cholesky(covariance)
        half = torch.linalg.solve_triangular(factor, cross.mT, upper=False)
        variance = scale**2 - half.square().sum(0)
        print([round(v, 4) for v in mean.tolist()], [round(v, 5) for v in variance.tolist()])
        weights, residual = conjugate_gradients(covariance, y, 60)
        print(bool(residual < 1e-6), round((cross @ weights - mean).abs().max().item(), 6))
        sign, logdet = torch.linalg.slogdet(covariance)
        print(sign.item(), round(logdet.item(), 6), round(torch.logdet(covariance).item(), 6), round(torch.linalg.cond(covariance).log10().item(), 4))
        eigenvalues = torch.linalg.eigvalsh(covariance)
        print([round(v, 5) for v in eigenvalues[-4:].tolist()], torch.linalg.matrix_rank(kernel(x, x, length, scale), hermitian=True, rtol=1e-3).item())

    # Laplace's method: the Hessian of the negative log likelihood, and the standard errors of the parameters from its inverse.
    def negative(theta):
        return -marginal_likelihood(x, y, theta[:2].exp(), theta[2].exp(), (theta[3] - 2).exp())

    hessian = torch.func.hessian(negative)(hyper.detach())
    print([[round(v, 3) for v in row] for row in hessian.tolist()])
    print([round(v, 4) for v in torch.linalg.inv(hessian).diagonal().sqrt().tolist()])
    samples = torch.distributions.MultivariateNormal(mean, covariance_matrix=torch.diag(variance.clamp_min(1e-9))).sample((2,))
    print([[round(v, 4) for v in row] for row in samples.tolist()])


if __name__ == "__main__":
    main()
