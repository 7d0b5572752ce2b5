"""Kullback-Leibler divergences KL(p || q) = E[log(p(x) / q(x))] for x drawn from p, with one function for each pair of distribution classes.

Many functions use KL(p || q) = -H(p) - E[log q(x)], where H is the entropy.
"""
import math
import warnings

import gradus
from gradus.distributions.bernoulli import Bernoulli
from gradus.distributions.beta import Beta
from gradus.distributions.binomial import Binomial
from gradus.distributions.categorical import Categorical
from gradus.distributions.cauchy import Cauchy
from gradus.distributions.continuous_bernoulli import ContinuousBernoulli
from gradus.distributions.dirichlet import Dirichlet
from gradus.distributions.distribution import Distribution
from gradus.distributions.exp_family import ExponentialFamily
from gradus.distributions.exponential import Exponential
from gradus.distributions.gamma import Gamma
from gradus.distributions.geometric import Geometric
from gradus.distributions.gumbel import Gumbel
from gradus.distributions.half_normal import HalfNormal
from gradus.distributions.independent import Independent
from gradus.distributions.laplace import Laplace
from gradus.distributions.lowrank_multivariate_normal import LowRankMultivariateNormal, _batch_lowrank_logdet, _batch_lowrank_mahalanobis
from gradus.distributions.multivariate_normal import MultivariateNormal, _batch_mahalanobis, _half_log_det
from gradus.distributions.normal import Normal
from gradus.distributions.one_hot_categorical import OneHotCategorical
from gradus.distributions.pareto import Pareto
from gradus.distributions.poisson import Poisson
from gradus.distributions.transformed_distribution import TransformedDistribution
from gradus.distributions.uniform import Uniform
from gradus.distributions.utils import _sum_rightmost
from gradus.distributions.utils import euler_constant as _euler_gamma
from gradus.nn.functional import softplus

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY = {}  # maps a pair of registered distribution classes to the function that computes the divergence
# A cache of lookups. Maps (class of p, class of q) to the function that computes the divergence, or to NotImplemented if there is none. The classes
# may be subclasses of registered classes.
_KL_MEMOIZE = {}

# ---- Lookup of the function -------------------------------------------------------------------------------------------------


def register_kl(type_p, type_q):
    """Returns a decorator that registers a function of (p, q) for two distribution classes. Raises TypeError if one is not a subclass of
    Distribution.

    If several registered functions match, kl_divergence calls the one for the most derived classes.
    """
    for name, kind in (("type_p", type_p), ("type_q", type_q)):
        if not (isinstance(kind, type) and issubclass(kind, Distribution)):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {kind}")

    def decorator(function):
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function
    return decorator


def _closest(matches):
    """Returns the pair with the most derived first class in `matches`, a list of pairs of classes. Among pairs with the same first class, the most
    derived second class wins."""
    best = matches[0]
    for match in matches[1:]:
        first_differs = match[0] is not best[0]
        if issubclass(match[0], best[0]) if first_differs else issubclass(match[1], best[1]):
            best = match
    return best


def _dispatch_kl(type_p, type_q):
    """Returns the function that is registered for type_p and type_q or for base classes of theirs. Returns NotImplemented if there is none.

    Among several matching pairs of classes, the pair with the most derived first class wins. A warning is issued if the pair with the
    most derived second class has a different function, because the choice is then ambiguous.
    """
    matches = [pair for pair in _KL_REGISTRY if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])]
    if not matches:
        return NotImplemented
    left = _closest(matches)
    right = _closest([pair[::-1] for pair in matches])[::-1]
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({left[0].__name__}, {right[1].__name__})",
                      RuntimeWarning, stacklevel=3)
    return _KL_REGISTRY[left]


def kl_divergence(p, q):
    """Returns KL(p || q), of shape batch_shape. Raises NotImplementedError if no function is registered for the classes of p and q.

    >>> from gradus.distributions import Normal, kl_divergence
    >>> kl_divergence(Normal(gradus.tensor(0.0), 1.0), Normal(gradus.tensor(1.0), 1.0))
    tensor(0.5000)
    """
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _dispatch_kl(*pair)
    function = _KL_MEMOIZE[pair]
    if function is NotImplemented:
        raise NotImplementedError(f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}")
    return function(p, q)


def _infinite_where(condition, value):
    """Returns `value`, with infinity where `condition` is true."""
    return gradus.where(condition, gradus.inf, value)


def _x_log_x(x):
    return gradus.xlogy(x, x)


# ---- Infinite divergences, because p has values outside the support of q ----------------------------------------------------

_INFINITE = {
    Beta: [Pareto],
    ContinuousBernoulli: [Pareto],
    Exponential: [Beta, ContinuousBernoulli, Pareto, Uniform],
    Gamma: [Beta, ContinuousBernoulli, Pareto, Uniform],
    Gumbel: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Laplace: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Normal: [Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform],
    Pareto: [Beta, ContinuousBernoulli, Uniform],
    Poisson: [Bernoulli, Binomial],
}


def _kl_infinity(p, q):
    """Returns KL(p || q) = infinity for each distribution in the batch of p."""
    return gradus.full(p.batch_shape, gradus.inf, dtype=p.mean.dtype, device=p.mean.device)


for _type_p, _types_q in _INFINITE.items():
    for _type_q in _types_q:
        register_kl(_type_p, _type_q)(_kl_infinity)

# ---- Distributions of the same class ----------------------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p, q):
    of_one = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    of_zero = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    of_one = gradus.where(p.probs == 0, 0.0, _infinite_where(q.probs == 0, of_one))
    return of_one + gradus.where(p.probs == 1, 0.0, _infinite_where(q.probs == 1, of_zero))


@register_kl(Beta, Beta)
def _kl_beta_beta(p, q):
    a, b, c, d = p.concentration1, p.concentration0, q.concentration1, q.concentration0
    normalizers = c.lgamma() + d.lgamma() + (a + b).lgamma() - (a.lgamma() + b.lgamma() + (c + d).lgamma())
    return normalizers + (a - c) * a.digamma() + (b - d) * b.digamma() + (c + d - (a + b)) * (a + b).digamma()


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    result = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return _infinite_where(p.total_count > q.total_count, result)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p, q):
    terms = _infinite_where(q.probs == 0, p.probs * (p.logits - q.logits))
    return gradus.where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p, q):
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p, q):
    of_p = p._cont_bern_log_norm() + gradus.log1p(-p.probs)
    return p.mean * (p.logits - q.logits) + of_p - q._cont_bern_log_norm() - gradus.log1p(-q.probs)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p, q):
    a, b = p.concentration, q.concentration
    normalizers = a.sum(-1).lgamma() - b.sum(-1).lgamma() - (a.lgamma() - b.lgamma()).sum(-1)
    return normalizers + ((a - b) * (a.digamma() - a.sum(-1, True).digamma())).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p, q):
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    """Returns KL(p || q) as the Bregman divergence of the log normalizer between the natural parameters of q and p."""
    if type(p) is not type(q):
        raise NotImplementedError("The cross KL-divergence between different exponential families cannot be computed using Bregman divergences")
    params = [x.detach().requires_grad_() for x in p._natural_params]
    normalizer = p._log_normalizer(*params)
    result = q._log_normalizer(*q._natural_params) - normalizer
    for of_p, of_q, grad in zip(params, q._natural_params, gradus.autograd.grad(normalizer.sum(), params, create_graph=True)):
        result = result - _sum_rightmost((of_q - of_p) * grad, len(q.event_shape))
    return result


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p, q):
    a, b = p.concentration, q.concentration
    return b * (p.rate / q.rate).log() + gradus.lgamma(b) - gradus.lgamma(a) + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p, q):
    return -p.entropy() - gradus.log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p, q):
    ratio, of_q, of_p = p.scale / q.scale, q.loc / q.scale, p.loc / q.scale
    return -ratio.log() - of_q + of_p + ratio * _euler_gamma + gradus.exp(of_q + (1 + ratio).lgamma() - of_p) - (1 + _euler_gamma)


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p, q):
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p, q):
    ratio, way = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + way / q.scale + ratio * gradus.exp(-way / p.scale) - 1


@register_kl(Normal, Normal)
def _kl_normal_normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p, q):
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p, q):
    ratio = q.alpha / p.alpha
    return _infinite_where(p.scale < q.scale, q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p, q):
    return _infinite_where((q.low > p.low) | (q.high < p.high), ((q.high - q.low) / (p.high - p.low)).log())


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _kl_independent_independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# ---- Multivariate normal: (log(det(C_q) / det(C_p)) + tr(C_q^-1 C_p) + (m_q - m_p)^T C_q^-1 (m_q - m_p) - n) / 2 -------------


def _sum_of_squares(matrices):
    """Returns tr(M M^T), the sum of the squared elements, for each matrix M in `matrices`."""
    return matrices.pow(2).sum((-2, -1))


def _check_events(p, q, kinds):
    """Raises ValueError if the event shapes of p and q differ. kinds: the plural name of the class of p and q, for the error text."""
    if p.event_shape != q.event_shape:
        raise ValueError(f"KL-divergence between two {kinds} with different event shapes cannot be computed")


def _solved(factor, right):
    """Returns L^-1 B for the lower triangular matrix L = `factor` and B = `right`. The batch dimensions are broadcast."""
    batch = gradus.broadcast_shapes(factor.shape[:-2], right.shape[:-2])
    return gradus.linalg.solve_triangular(factor.expand(batch + factor.shape[-2:]), right.expand(batch + right.shape[-2:]), upper=False)


def _woodbury(q):
    """Returns the matrix A for which C^-1 = D^-1 - A^T A, by Woodbury's identity. Here C = W W^T + D is the covariance matrix of q, with W
    its cov_factor and D the diagonal matrix of its cov_diag."""
    factor, diagonal, tril = q._covariance()
    return gradus.linalg.solve_triangular(tril, factor.mT / diagonal.unsqueeze(-2), upper=False)


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p, q):
    _check_events(p, q, "Multivariate Normals")
    of_p, of_q = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    trace, distance = _sum_of_squares(_solved(of_q, of_p)), _batch_mahalanobis(of_q, q.loc - p.loc)
    return _half_log_det(of_q) - _half_log_det(of_p) + 0.5 * (trace + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p, q):
    _check_events(p, q, "Low Rank Multivariate Normals")
    factor, diagonal, tril = q._covariance()
    p_factor, p_diagonal = p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag
    inner = _woodbury(q)
    trace = ((p_diagonal / diagonal).sum(-1) + _sum_of_squares(p_factor * diagonal.rsqrt().unsqueeze(-1))
             - _sum_of_squares(inner * p_diagonal.sqrt().unsqueeze(-2)) - _sum_of_squares(inner.matmul(p_factor)))
    determinants = _batch_lowrank_logdet(factor, diagonal, tril) - _batch_lowrank_logdet(*p._covariance())
    return 0.5 * (determinants + trace + _batch_lowrank_mahalanobis(factor, diagonal, q.loc - p.loc, tril) - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p, q):
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    factor, diagonal, tril = q._covariance()
    of_p = p._unbroadcasted_scale_tril
    trace = _sum_of_squares(of_p * diagonal.rsqrt().unsqueeze(-1)) - _sum_of_squares(_woodbury(q).matmul(of_p))
    determinants = _batch_lowrank_logdet(factor, diagonal, tril) - 2 * _half_log_det(of_p)
    return 0.5 * (determinants + trace + _batch_lowrank_mahalanobis(factor, diagonal, q.loc - p.loc, tril) - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p, q):
    _check_events(p, q, "(Low Rank) Multivariate Normals")
    of_q = q._unbroadcasted_scale_tril
    roots = gradus.diag_embed(p._unbroadcasted_cov_diag.sqrt())
    trace = _sum_of_squares(_solved(of_q, p._unbroadcasted_cov_factor)) + _sum_of_squares(_solved(of_q, roots))
    determinants = 2 * _half_log_det(of_q) - _batch_lowrank_logdet(*p._covariance())
    return 0.5 * (determinants + trace + _batch_mahalanobis(of_q, q.loc - p.loc) - p.event_shape[0])


# ---- Distributions of different classes, computed as -E[log q(x)] - H(p) ----------------------------------------------------


def _from_normal(p, q, mean, square):
    """Returns KL(p || q) for a normal distribution q. mean and square: E[x] and E[x^2] for x drawn from p."""
    variance = q.scale.pow(2)
    return -p.entropy() + 0.5 * (variance * 2 * math.pi).log() + (square * 0.5 - q.loc * mean + q.loc.pow(2) * 0.5) / variance


def _from_gamma(p, q, mean, mean_log):
    """Returns KL(p || q) for a gamma distribution q. mean and mean_log: E[x] and E[log(x)] for x drawn from p."""
    return -p.entropy() + q.concentration.lgamma() - q.concentration * q.rate.log() - (q.concentration - 1) * mean_log + q.rate * mean


def _from_exponential(p, q, mean):
    """Returns KL(p || q) for an exponential distribution q. mean: E[x] for x drawn from p."""
    return -p.entropy() - q.rate.log() + q.rate * mean


def _from_continuous_bernoulli(p, q):
    """Returns KL(p || q) for a continuous Bernoulli distribution q."""
    return -p.entropy() - p.mean * q.logits - gradus.log1p(-q.probs) - q._cont_bern_log_norm()


def _from_gumbel(p, q, mean, mean_exp):
    """Returns KL(p || q) for a Gumbel distribution q. mean and mean_exp: E[z] and E[exp(-z)] for z = (x - q.loc) / q.scale and x drawn from p."""
    return -p.entropy() + q.scale.log() + mean + mean_exp


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, ContinuousBernoulli)
def _kl_beta_continuous_bernoulli(p, q):
    return _from_continuous_bernoulli(p, q)


@register_kl(Beta, Exponential)
def _kl_beta_exponential(p, q):
    return _from_exponential(p, q, p.mean)


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p, q):
    return _from_gamma(p, q, p.mean, p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma())


@register_kl(Beta, Normal)
def _kl_beta_normal(p, q):
    return _from_normal(p, q, p.mean, p.mean * (1 - p.mean) / (p.concentration1 + p.concentration0 + 1) + p.mean.pow(2))


@register_kl(Beta, Uniform)
def _kl_beta_uniform(p, q):
    return _infinite_where((q.low > 0) | (q.high < 1), -p.entropy() + (q.high - q.low).log())


@register_kl(ContinuousBernoulli, Exponential)
def _kl_continuous_bernoulli_exponential(p, q):
    return _from_exponential(p, q, p.mean)


@register_kl(ContinuousBernoulli, Normal)
def _kl_continuous_bernoulli_normal(p, q):
    return _from_normal(p, q, p.mean, p.variance + p.mean.square())


@register_kl(ContinuousBernoulli, Uniform)
def _kl_continuous_bernoulli_uniform(p, q):
    return _infinite_where((q.low >= 0) | (q.high <= 1), -p.entropy() + (q.high - q.low).log())


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p, q):
    ratio = q.rate / p.rate
    return -q.concentration * gradus.log(ratio) + ratio + q.concentration.lgamma() + q.concentration * _euler_gamma - (1 + _euler_gamma)


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p, q):
    rate = p.rate * q.scale
    return rate.log() - 1 - q.loc / q.scale + gradus.exp(q.loc / q.scale) * rate / (rate + 1) + rate.reciprocal()


@register_kl(Exponential, Normal)
def _kl_exponential_normal(p, q):
    return _from_normal(p, q, p.mean, 2 * p.rate.pow(2).reciprocal())


@register_kl(Gamma, Exponential)
def _kl_gamma_exponential(p, q):
    return _from_exponential(p, q, p.mean)


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p, q):
    rate, way = p.rate * q.scale, q.loc / q.scale
    return _from_gumbel(p, q, p.concentration / rate - way, gradus.exp(way) * (1 + rate.reciprocal()).pow(-p.concentration))


@register_kl(Gamma, Normal)
def _kl_gamma_normal(p, q):
    return _from_normal(p, q, p.mean, (p.concentration.pow(2) + p.concentration) / p.rate.pow(2))


@register_kl(Gumbel, Normal)
def _kl_gumbel_normal(p, q):
    return _from_normal(p, q, p.mean, p.variance + p.mean.pow(2))


@register_kl(Laplace, Normal)
def _kl_laplace_normal(p, q):
    return _from_normal(p, q, p.loc, p.variance + p.loc.pow(2))


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p, q):
    mean, ratio = (p.loc - q.loc) / q.scale, (p.scale / q.scale).pow(2)
    return _from_gumbel(p, q, mean, gradus.exp(-mean + 0.5 * ratio))


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p, q):
    way = p.loc - q.loc
    relative = way / p.scale
    mean = math.sqrt(2 / math.pi) * p.scale * gradus.exp(-0.5 * relative.pow(2)) + way * gradus.erf(math.sqrt(0.5) * relative)
    return -(p.scale / q.scale).log() + mean / q.scale - 0.5 * (1 + math.log(0.5 * math.pi))


@register_kl(Pareto, Exponential)
def _kl_pareto_exponential(p, q):
    return _infinite_where(p.alpha <= 1, _from_exponential(p, q, p.alpha * p.scale / (p.alpha - 1)))


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p, q):
    return _infinite_where(p.alpha <= 1, _from_gamma(p, q, p.alpha * p.scale / (p.alpha - 1), p.scale.log() + p.alpha.reciprocal()))


@register_kl(Pareto, Normal)
def _kl_pareto_normal(p, q):
    mean, square = p.alpha * p.scale / (p.alpha - 1), p.alpha * p.scale.pow(2) / (p.alpha - 2)
    return _infinite_where(p.alpha <= 2, _from_normal(p, q, mean, square))


def _mean_log(low, high):
    """Returns the mean of log(x) for x uniform in [low, high]."""
    return (_x_log_x(high) - _x_log_x(low) - (high - low)) / (high - low)


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p, q):
    a, b = q.concentration1, q.concentration0
    normalizer = a.lgamma() + b.lgamma() - (a + b).lgamma()
    result = normalizer - p.entropy() - (a - 1) * _mean_log(p.low, p.high) - (b - 1) * _mean_log(1 - p.high, 1 - p.low)
    return _infinite_where((p.high > 1) | (p.low < 0), result)


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p, q):
    return _infinite_where((p.high >= 1) | (p.low <= 0), _from_continuous_bernoulli(p, q))


@register_kl(Uniform, Exponential)
def _kl_uniform_exponential(p, q):
    return _infinite_where(p.low < 0, _from_exponential(p, q, p.mean))


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p, q):
    return _infinite_where(p.low < 0, _from_gamma(p, q, p.mean, _mean_log(p.low, p.high)))


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p, q):
    low, high = (p.low - q.loc) / q.scale, (p.high - q.loc) / q.scale
    return _from_gumbel(p, q, 0.5 * (low + high), -(gradus.exp(-high) - gradus.exp(-low)) / (high - low))


@register_kl(Uniform, Normal)
def _kl_uniform_normal(p, q):
    return _from_normal(p, q, p.mean, p.variance + p.mean.pow(2))


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p, q):
    result = -p.entropy() - (q.alpha * q.scale.pow(q.alpha)).log() + (q.alpha + 1) * _mean_log(p.low, p.high)
    return _infinite_where(p.low < q.scale, result)
