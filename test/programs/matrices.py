"""Linear algebra as programs use it: principal components, least squares, a Kalman filter, rotations by the matrix exponential, whitening with gradients through eigenvectors, spectral clustering."""
import torch

torch.set_default_dtype(torch.float64)


def rounded(x, digits=4):
    return [rounded(v, digits) for v in x] if isinstance(x, list) else round(x, digits) + 0.0


def components():
    torch.manual_seed(0)
    x = torch.randn(80, 3) @ torch.randn(3, 12) + 0.01 * torch.randn(80, 12)
    centred = x - x.mean(0)
    u, s, vh = torch.linalg.svd(centred, full_matrices=False)
    print(rounded(s[:5].tolist()), torch.allclose((u * s) @ vh, centred))
    _, low, v = torch.pca_lowrank(x, q=4)
    print(rounded(low[:3].tolist(), 3), rounded((v[:, :3].mT @ vh[:3].mT).abs().diagonal().tolist(), 3))
    covariance = torch.cov(x.mT)
    values, vectors = torch.linalg.eigh(covariance)
    print(rounded(values[-3:].tolist()), rounded((s[:3].square() / 79).tolist()), rounded(torch.corrcoef(x.mT[:3])[0].tolist()))
    print(rounded(torch.linalg.norm(covariance, "nuc").item()), rounded(torch.linalg.matrix_norm(covariance, 2).item()), torch.linalg.matrix_rank(covariance, tol=0.01).item())


def fits():
    torch.manual_seed(1)
    t = torch.linspace(-1, 1, 40)
    design = torch.linalg.vander(t, N=4)
    y = design @ torch.tensor([1.0, -2.0, 0.5, 3.0]) + 0.01 * torch.randn(40)
    solution = torch.linalg.lstsq(design, y.unsqueeze(1))
    q, r = torch.linalg.qr(design)
    print(rounded(solution.solution.squeeze(1).tolist()), rounded(solution.residuals.tolist(), 6))
    print(rounded(torch.linalg.solve_triangular(r, q.mT @ y.unsqueeze(1), upper=True).squeeze(1).tolist()), rounded((torch.linalg.pinv(design) @ y).tolist()))
    ridge = torch.tensor(0.1, requires_grad=True)
    weights = torch.linalg.solve(design.mT @ design + ridge * torch.eye(4), design.mT @ y)
    (gradient,) = torch.autograd.grad(weights.square().sum(), ridge, create_graph=True)
    (second,) = torch.autograd.grad(gradient, ridge)
    print(rounded(gradient.item()), rounded(second.item()))


def kalman():
    torch.manual_seed(2)
    step = torch.tensor([[1.0, 0.1], [0.0, 1.0]])
    seen = torch.tensor([[1.0, 0.0]])
    log_noise = torch.zeros(2, requires_grad=True)
    path = torch.cumsum(torch.cat([torch.ones(20) * 0.1, -torch.ones(20) * 0.05]), 0)
    measured = path + 0.1 * torch.randn(40)
    optimizer = torch.optim.Adam([log_noise], lr=0.1)
    for iteration in range(5):
        state, covariance, loss = torch.zeros(2, 1), torch.eye(2), 0.0
        process, noise = log_noise[0].exp() * 0.01 * torch.eye(2), log_noise[1].exp() * torch.eye(1)
        for z in measured:
            state, covariance = step @ state, step @ covariance @ step.mT + process
            innovation = z - seen @ state
            s = seen @ covariance @ seen.mT + noise
            gain = torch.linalg.solve(s, seen @ covariance).mT
            loss = loss + 0.5 * (torch.logdet(s) + innovation.mT @ torch.linalg.inv(s) @ innovation).squeeze()
            state, covariance = state + gain @ innovation, (torch.eye(2) - gain @ seen) @ covariance
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"kalman {iteration}: {loss.item():.4f} {rounded(state.squeeze(1).tolist())}")


def rotations():
    torch.manual_seed(3)
    points, angles = torch.randn(20, 3), torch.tensor([0.3, -0.5, 0.8])

    def rotation(w):
        zero = w.new_zeros(())
        return torch.linalg.matrix_exp(torch.stack([zero, -w[2], w[1], w[2], zero, -w[0], -w[1], w[0], zero]).reshape(3, 3))

    turned = points @ rotation(angles).mT
    w = torch.zeros(3, requires_grad=True)
    for iteration in range(6):
        loss = (points @ rotation(w).mT - turned).square().mean()
        (gradient,) = torch.autograd.grad(loss, w)
        with torch.no_grad():
            w -= 0.6 * gradient
        print(f"rotation {iteration}: {loss.item():.5f}")
    u, _, vh = torch.linalg.svd(points.mT @ turned)
    print(torch.allclose((u @ vh).mT, rotation(angles)), rounded(torch.linalg.det(rotation(w.detach())).item()))
    batch = torch.linalg.matrix_power(torch.stack([rotation(angles), rotation(-angles)]), 3)
    print(rounded(torch.linalg.multi_dot([batch[0], batch[1], points.mT]).sum().item()), rounded(points.sum().item()))


def whitening():
    torch.manual_seed(4)
    mixing = torch.randn(4, 4).requires_grad_()
    noise = torch.randn(100, 4)
    x = noise @ mixing
    values, vectors = torch.linalg.eigh(x.mT @ x / 100 + 0.1 * torch.eye(4))
    white = x @ vectors @ torch.diag(values.rsqrt()) @ vectors.mT
    loss = white.pow(4).mean() + torch.linalg.eigvals(mixing).abs().log().sum() + torch.linalg.svdvals(mixing).log().sum()
    loss.backward()
    print(rounded(loss.item()), rounded(mixing.grad.tolist()))


def clusters():
    torch.manual_seed(5)
    points = torch.cat([torch.randn(15, 2) * 0.3, torch.randn(15, 2) * 0.3 + 2, torch.randn(15, 2) * 0.3 + torch.tensor([4.0, 0.0])])
    near = torch.exp(-torch.cdist(points, points).square())
    scale = near.sum(1).rsqrt()
    laplacian = torch.eye(45) - scale[:, None] * near * scale
    values, vectors = torch.linalg.eigh(laplacian)
    least = torch.lobpcg(laplacian.contiguous(), k=3, largest=False, niter=200, tol=1e-9)[0]
    print(rounded(values[:4].tolist()), rounded(least.sort().values.tolist(), 3))
    rows = vectors[:, :3]
    same = (rows @ rows.mT).abs() > 0.02
    print(torch.unique(same.int(), dim=0).shape[0], same[0].sum().item(), torch.kron(torch.eye(2), torch.ones(1, 2)).tolist())


if __name__ == "__main__":
    for part in (components, fits, kalman, rotations, whitening, clusters):
        part()
