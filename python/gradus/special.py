"""Special functions under the names of torch.special, as far as there are operators for them."""
from gradus._C import erf, erfc, erfinv, exp2, expm1, log1p, log_softmax, logit, logsumexp, round, softmax, xlogy
from gradus._C import igamma as gammainc
from gradus._C import igammac as gammaincc
from gradus._C import lgamma as gammaln
from gradus._C import mvlgamma as multigammaln
from gradus._C import sigmoid as expit
from gradus.functional import digamma, polygamma
from gradus.functional import digamma as psi

__all__ = ["digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammainc", "gammaincc", "gammaln", "log1p", "log_softmax", "logit",
           "logsumexp", "multigammaln", "polygamma", "psi", "round", "softmax", "xlogy"]
