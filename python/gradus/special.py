"""Special functions under the names of torch.special."""
from gradus._C import (digamma, erf, erfc, erfinv, exp2, expm1, i0, log1p, log_softmax, logit, logsumexp, polygamma, round, sinc, softmax, xlogy)  # noqa: F401
from gradus._C import digamma as psi  # noqa: F401
from gradus._C import igamma as gammainc  # noqa: F401
from gradus._C import igammac as gammaincc  # noqa: F401
from gradus._C import lgamma as gammaln  # noqa: F401
from gradus._C import mvlgamma as multigammaln  # noqa: F401
from gradus._C import sigmoid as expit  # noqa: F401
from gradus._C.special import *  # noqa: F403
