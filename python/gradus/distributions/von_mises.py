"""The von Mises distribution."""
import math

import gradus
from gradus.distributions import constraints
from gradus.distributions.distribution import Distribution
from gradus.distributions.utils import broadcast_all, lazy_property

__all__ = ["VonMises"]

# Polynomial approximations of the modified Bessel functions I0 and I1 (Abramowitz and Stegun, 9.8.1 to 9.8.4). For x < 3.75, I0 and I1 / x are
# polynomials in (x / 3.75)^2. For larger x, I0 and I1 are polynomials in 3.75 / x multiplied by exp(x) / sqrt(x).
_SMALL = (((1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813)),
          ((0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411)))
_LARGE = ((0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633, 0.00392377),
          (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312, 0.01787654, -0.00420059))


def _polynomial(coefficients, x):
    """Returns the polynomial at x. coefficients: from the constant term upwards."""
    result = coefficients[-1]
    for c in coefficients[-2::-1]:
        result = c + x * result
    return result


def _log_bessel(x, order):
    """Returns log(I0(x)) if `order` is 0, log(I1(x)) if `order` is 1, for x > 0. I0 and I1 are modified Bessel functions."""
    y = x / 3.75
    small = _polynomial(_SMALL[order], y * y)
    small = (x.abs() * small if order == 1 else small).log()
    large = x - 0.5 * x.log() + _polynomial(_LARGE[order], 3.75 / x).log()
    return gradus.where(x < 3.75, small, large)


class VonMises(Distribution):
    """The von Mises distribution of angles in radians, with density exp(concentration cos(x - loc)) / (2 pi I0(concentration))."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    _batched = {"loc": 0, "concentration": 0}

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, gradus.Size(), validate_args)

    @property
    def mean(self):
        """The mean angle."""
        return self.loc

    mode = mean

    @lazy_property
    def variance(self):
        """The circular variance, 1 - I1(concentration) / I0(concentration)."""
        return 1 - (_log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0)).exp()

    def log_prob(self, value):
        self._validate_value(value)
        return self.concentration * gradus.cos(value - self.loc) - math.log(2 * math.pi) - _log_bessel(self.concentration, 0)

    @lazy_property
    def _proposal(self):
        """The parameter of the wrapped Cauchy distribution from which the rejection sampler draws proposals (Best and Fisher, 1979)."""
        kappa = self.concentration.to(gradus.float64)
        tau = 1 + (1 + 4 * kappa ** 2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return gradus.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho ** 2) / (2 * rho))

    def sample(self, sample_shape=gradus.Size()):
        with gradus.no_grad():
            shape, kappa, r = self._extended_shape(sample_shape), self.concentration.to(gradus.float64), self._proposal
            angles = gradus.zeros(shape, dtype=gradus.float64, device=self.loc.device)
            done = gradus.zeros(shape, dtype=gradus.bool, device=self.loc.device)
            while not done.all():
                u1, u2, u3 = gradus.rand((3,) + tuple(shape), dtype=gradus.float64, device=self.loc.device).unbind()
                z = gradus.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accepted = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                # As in PyTorch, an element that was accepted before is replaced if it is accepted again in a later round.
                angles = gradus.where(accepted, (u3 - 0.5).sign() * f.acos(), angles)
                done = done | accepted
            return ((angles + math.pi + self.loc.to(gradus.float64)) % (2 * math.pi) - math.pi).to(self.loc.dtype)
