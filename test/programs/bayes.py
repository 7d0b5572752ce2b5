"""Fits a linear model by variational inference and a mixture model by maximum likelihood, and samples by the Metropolis algorithm. All distributions
are from torch.distributions."""
import torch
import torch.distributions as dist
from torch import nn, optim
from torch.distributions import constraints, transform_to, kl_divergence
from torch.distributions.transforms import AffineTransform, ExpTransform, SigmoidTransform

torch.manual_seed(3)
torch.distributions.Distribution.set_default_validate_args(True)
X = torch.linspace(-2, 2, 40).unsqueeze(1)
y = 1.5 * X.squeeze(1) - 0.7 + 0.3 * torch.randn(40)


class BayesLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(2))
        self.raw = nn.Parameter(torch.full((2,), -1.0))
        self.noise = nn.Parameter(torch.tensor(0.0))

    def posterior(self):
        return dist.Independent(dist.Normal(self.loc, transform_to(constraints.positive)(self.raw)), 1)

    def elbo(self, n=8):
        q = self.posterior()
        w = q.rsample((n,))
        prior = dist.Independent(dist.Normal(torch.zeros(2), 2 * torch.ones(2)), 1)
        mean = w[:, :1] * X.T + w[:, 1:]
        likelihood = dist.StudentT(5.0, mean, self.noise.exp()).log_prob(y).sum(-1).mean()
        return likelihood - kl_divergence(q, prior)


model = BayesLinear()
opt = optim.Adam(model.parameters(), lr=0.05)
sched = optim.lr_scheduler.ExponentialLR(opt, 0.995)
for step in range(150):
    opt.zero_grad(set_to_none=True)
    loss = -model.elbo()
    loss.backward()
    opt.step()
    sched.step()
    if step % 50 == 49:
        print(f"step {step + 1}: elbo {-loss.item():.3f}, slope {model.loc[0].item():.3f}, noise {model.noise.exp().item():.3f}, lr {sched.get_last_lr()[0]:.4f}")
print(model.posterior(), model.posterior().event_shape)

# A mixture model.
data = torch.cat([dist.Normal(-2.0, 0.5).sample((50,)), dist.Normal(1.0, 1.0).sample((80,)), dist.Gamma(9.0, 2.0).sample((30,))])
logits = nn.Parameter(torch.zeros(3))
locs = nn.Parameter(torch.tensor([-1.0, 0.0, 3.0]))
log_scales = nn.Parameter(torch.zeros(3))
opt = optim.LBFGS([logits, locs, log_scales], lr=0.5, max_iter=20, history_size=5, line_search_fn="strong_wolfe")


def closure():
    opt.zero_grad()
    mixture = dist.MixtureSameFamily(dist.Categorical(logits=logits), dist.Normal(locs, log_scales.exp()))
    nll = -mixture.log_prob(data).mean()
    nll.backward()
    return nll


for _ in range(3):
    print(f"mixture {opt.step(closure).item():.4f}")
mixture = dist.MixtureSameFamily(dist.Categorical(logits=logits), dist.Normal(locs, log_scales.exp()))
print([f"{v:.2f}" for v in locs.tolist()], [f"{v:.2f}" for v in mixture.mixture_distribution.probs.tolist()], mixture)
print(f"{mixture.mean.item():.3f} {mixture.variance.item():.3f} {mixture.cdf(torch.tensor(0.5)).item():.3f}", mixture.sample((2, 2)).shape)

# Metropolis sampling of a transformed variable.
target = dist.TransformedDistribution(dist.Normal(0.0, 1.0), [AffineTransform(0.5, 0.4), ExpTransform()])
state, accepted, total = torch.tensor(1.0), 0, 0.0
for i in range(300):
    proposal = dist.LogNormal(state.log(), 0.5)
    new = proposal.sample()
    ratio = target.log_prob(new) - target.log_prob(state) + dist.LogNormal(new.log(), 0.5).log_prob(state) - proposal.log_prob(new)
    if torch.rand(()).log() < ratio:
        state, accepted = new, accepted + 1
    total += state.item()
print(f"accepted {accepted}, mean {total / 300:.3f}")

# Conjugate updates, entropies, divergences, and enumeration of discrete variables.
posterior = dist.Beta(2.0 + 7, 2.0 + 3)
print(f"{posterior.mean:.3f} {posterior.variance:.4f} {posterior.entropy():.4f} {kl_divergence(posterior, dist.Beta(2.0, 2.0)):.4f}")
d = dist.Dirichlet(torch.tensor([1.0, 2.0, 3.0]))
p = d.rsample()
print(p, d.log_prob(p), dist.Multinomial(10, p).sample(), dist.OneHotCategorical(p).sample((3,)).tolist())
print(dist.Bernoulli(torch.tensor([0.2, 0.7])).enumerate_support(), dist.Categorical(torch.ones(3)).entropy())
mvn = dist.MultivariateNormal(torch.zeros(2), covariance_matrix=torch.tensor([[2.0, 0.5], [0.5, 1.0]]))
print(mvn.sample((2,)), mvn.entropy(), mvn.precision_matrix, dist.Wishart(torch.tensor(4.0), torch.eye(2)).mean)
logistic = dist.TransformedDistribution(dist.Uniform(0.0, 1.0), [SigmoidTransform().inv, AffineTransform(2.0, 0.5)])
print(logistic.log_prob(torch.tensor([1.0, 2.0])), logistic.icdf(torch.tensor([0.1, 0.9])), logistic.cdf(torch.tensor(2.0)))
relaxed = dist.RelaxedOneHotCategorical(torch.tensor(0.5), logits=torch.zeros(3, requires_grad=True)).rsample()
print(relaxed, relaxed.grad_fn is not None)
for make in (lambda: dist.Normal(0.0, -1.0), lambda: dist.Categorical(probs=torch.tensor([-0.1, 1.1])), lambda: dist.Beta(1.0, 1.0).log_prob(torch.tensor(1.5)),
             lambda: dist.Binomial(5, 0.5).log_prob(torch.tensor(7.0)), lambda: kl_divergence(dist.Cauchy(0.0, 1.0), dist.Poisson(1.0)), lambda: dist.Cauchy(0.0, 1.0).cdf("a"),
             lambda: dist.MultivariateNormal(torch.zeros(2), torch.tensor([[1.0, 2.0], [2.0, 1.0]])), lambda: dist.Poisson(1.0).rsample(), lambda: dist.Gamma(1.0, 1.0).icdf(torch.tensor(0.5))):
    try:
        print(make())
    except Exception as error:
        print(type(error).__name__, str(error).split("\n")[0])
