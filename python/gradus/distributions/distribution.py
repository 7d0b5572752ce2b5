"""The class that all distributions are, and what those with tensors for parameters share."""
import warnings

import gradus
from gradus.distributions import constraints
from gradus.distributions.utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A distribution of events of `event_shape`, or a batch of them, of `batch_shape`.

    `arg_constraints` names the parameters with their regions, `support` is the region of the values. Unless validate_args is false both are checked:
    ValueError: a parameter or a value lies outside.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    _batched = None  # name of a parameter or inner distribution -> number of its dimensions after the batch. `expand` expands these
    _shared = ()  # names of the attributes that an expanded distribution shares with this one

    @staticmethod
    def set_default_validate_args(value):
        """Says if distributions check their arguments from now on."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=gradus.Size(), event_shape=gradus.Size(), validate_args=None):
        self._batch_shape, self._event_shape = batch_shape, event_shape
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._validate_parameters()
        super().__init__()

    def _validate_parameters(self):
        try:
            expected = self.arg_constraints
        except NotImplementedError:
            warnings.warn(f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the distribution "
                          "with `validate_args=False` to turn off validation.", stacklevel=3)
            return
        for name, constraint in expected.items():
            lazy = name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property)
            if constraints.is_dependent(constraint) or lazy:
                continue
            value = getattr(self, name)
            if not constraint.check(value).all():
                raise ValueError(f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} "
                                 f"to satisfy the constraint {constraint!r}, but found invalid values:\n{value}")

    def _validate_sample(self, value):
        """Raises a ValueError if `value` is no tensor, its shape does not fit batch_shape and event_shape, or it is outside of the support."""
        if not isinstance(value, gradus.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        actual, expected = value.size(), self._batch_shape + self._event_shape
        if actual[len(actual) - len(self._event_shape):] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {actual} vs {self._event_shape}.")
        if any(i != 1 and j != 1 and i != j for i, j in zip(reversed(actual), reversed(expected))):
            raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {actual} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(f"{self.__class__} does not define `support` to enable sample validation. Please initialize the distribution with "
                          "`validate_args=False` to turn off validation.", stacklevel=3)
            return
        if support is None:
            raise AssertionError("support is unexpectedly None")
        if not support.check(value).all():
            raise ValueError(f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support ({support!r}) "
                             f"of the distribution {self!r}, but found invalid values:\n{value}")

    def _validate_value(self, value):
        if self._validate_args:
            self._validate_sample(value)

    # ---- Shapes -------------------------------------------------------------------------------------------------------------

    @property
    def batch_shape(self):
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one value."""
        return self._event_shape

    def _extended_shape(self, sample_shape=gradus.Size()):
        """Returns the shape of samples."""
        return gradus.Size(tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape))

    def expand(self, batch_shape, _instance=None):
        """Returns the distribution for a larger batch, with parameters that are expanded views. `_instance` is the new object, if a subclass has made one."""
        if self._batched is None:
            raise NotImplementedError
        owner = next(cls for cls in type(self).__mro__ if "_batched" in vars(cls))
        new = self._get_checked_instance(owner, _instance)
        batch_shape = gradus.Size(batch_shape)
        for name, dims in self._batched.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                shape = value.shape if isinstance(value, gradus.Tensor) else value.batch_shape
                new.__dict__[name] = value.expand(batch_shape + shape[len(shape) - dims:])
        for name in self._shared:
            new.__dict__[name] = self.__dict__[name]
        return new._finish_expanded(self, batch_shape)

    def _finish_expanded(self, source, batch_shape):
        Distribution.__init__(self, batch_shape, source.event_shape, validate_args=False)
        self._validate_args = source._validate_args
        return self

    def _get_checked_instance(self, cls, _instance=None):
        """Returns an object for `expand` to fill. NotImplementedError: a subclass has an __init__ of its own and no expand."""
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method must also define a custom "
                                      ".expand() method.")
        return self.__new__(type(self)) if _instance is None else _instance

    # ---- Facts, samples and probabilities: a distribution has those that it can say ------------------------------------------

    @property
    def arg_constraints(self):
        """The region of each parameter, by its name."""
        raise NotImplementedError

    @property
    def support(self):
        """The region of the values."""
        raise NotImplementedError

    @property
    def mean(self):
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self):
        """The most probable value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self):
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self):
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape=gradus.Size()):
        """Returns values of shape sample_shape + batch_shape + event_shape, without gradients."""
        with gradus.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=gradus.Size()):
        """Values whose gradients lead to the parameters."""
        raise NotImplementedError

    def sample_n(self, n):
        """Deprecated: sample((n,))."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample(gradus.Size((n,)))

    def log_prob(self, value):
        """Returns the logarithm of the density, or of the probability, at each value."""
        raise NotImplementedError

    def cdf(self, value):
        """Returns the probability of at most `value`."""
        raise NotImplementedError

    def icdf(self, value):
        """Returns the value of which `value` is the cdf."""
        raise NotImplementedError

    def enumerate_support(self, expand=True):
        """All values of a discrete distribution, along dimension 0; unless `expand`, with dimensions of size 1 for the batch."""
        raise NotImplementedError

    def entropy(self):
        """Returns the entropy, in nats."""
        raise NotImplementedError

    def perplexity(self):
        """Returns exp(entropy)."""
        return gradus.exp(self.entropy())

    def __repr__(self):
        given = [(name, self.__dict__[name]) for name in self.arg_constraints if name in self.__dict__]
        return f"{self.__class__.__name__}({', '.join(f'{name}: {value if value.numel() == 1 else value.size()}' for name, value in given)})"


class _WithProbs:
    """The base of distributions that have `probs` and `logits`: one is given, the other is computed. If `_binary`, logits are log odds."""

    _binary = True

    @staticmethod
    def _check_one_given(probs, logits):
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")

    def _set_given(self, probs, logits, **others):
        """Sets the one of `probs` and `logits` that is given, and other parameters by their names, broadcast to one shape, which it returns."""
        self._check_one_given(probs, logits)
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        *values, self._given = gradus.distributions.utils.broadcast_all(*others.values(), given)
        for key, value in zip((*others, name), (*values, self._given)):
            setattr(self, key, value)
        return self._given.size()

    @lazy_property
    def logits(self):
        """Log odds of the probabilities, or their logarithms."""
        return gradus.distributions.utils.probs_to_logits(self.probs, is_binary=self._binary)

    @lazy_property
    def probs(self):
        """The probabilities."""
        return gradus.distributions.utils.logits_to_probs(self.logits, is_binary=self._binary)

    @property
    def _param(self):
        return self.__dict__["_given"]

    @property
    def param_shape(self):
        """The shape of the parameter that was given."""
        return self._param.size()

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)
