"""Distribution, the base class of all distributions, and _WithProbs, a base of distributions with probabilities as parameters."""
import warnings

import gradus
from gradus.distributions import constraints
from gradus.distributions.utils import lazy_property

__all__ = ["Distribution"]


class Distribution:
    """Base class of distributions. An instance is a batch of distributions of the same class, with the shape batch_shape.

    An event is one random value, and event_shape is its shape: () for a number, (n,) for a vector. Parameters are tensors or numbers, which are
    broadcast to batch_shape. `arg_constraints` maps the names of parameters to constraints; `support` is the constraint on events. If validate_args
    is true, invalid parameters and events raise ValueError. The default is True unless Python runs with -O.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    # The attributes that are expanded by `expand`: parameters and inner distributions. The keys are their names. Each value is the number of
    # dimensions that the attribute has after the batch dimensions.
    _batched = None
    _shared = ()  # names of attributes that `expand` copies unchanged to the expanded distribution

    @staticmethod
    def set_default_validate_args(value):
        """Sets whether distributions check parameters and values by default. Raises ValueError if `value` is neither True nor False."""
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
        """Raises ValueError if a parameter violates its constraint. Parameters that are computed from others are skipped."""
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
        """Raises ValueError if `value` is not a tensor, its shape does not match batch_shape and event_shape, or it is outside the support."""
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
        """Calls _validate_sample if validation is on."""
        if self._validate_args:
            self._validate_sample(value)

    # ---- Shapes -------------------------------------------------------------------------------------------------------------

    @property
    def batch_shape(self):
        """The shape of the batch of distributions, () for a single one."""
        return self._batch_shape

    @property
    def event_shape(self):
        """The shape of one event."""
        return self._event_shape

    def _extended_shape(self, sample_shape=gradus.Size()):
        """Returns the shape of samples: sample_shape + batch_shape + event_shape."""
        return gradus.Size(tuple(sample_shape) + tuple(self._batch_shape) + tuple(self._event_shape))

    def expand(self, batch_shape, _instance=None):
        """Returns the distribution expanded to batch_shape. The parameters are expanded views.

        _instance: the object to fill, if a subclass has created one. Raises NotImplementedError for a subclass that does not support `expand`.
        """
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
        """Sets the shapes and the validation setting of `self`, which is `source` expanded to batch_shape. Returns self."""
        Distribution.__init__(self, batch_shape, source.event_shape, validate_args=False)
        self._validate_args = source._validate_args
        return self

    def _get_checked_instance(self, cls, _instance=None):
        """Returns the object that `expand` fills: _instance, or a new one.

        Raises NotImplementedError if a subclass of `cls` overrides __init__ but not expand.
        """
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method must also define a custom "
                                      ".expand() method.")
        return self.__new__(type(self)) if _instance is None else _instance

    # ---- Properties, samples and probabilities, of which a subclass overrides those that it supports -------------------------

    @property
    def arg_constraints(self):
        """Maps the name of each parameter to its constraint."""
        raise NotImplementedError

    @property
    def support(self):
        """The constraint that values of the distribution satisfy."""
        raise NotImplementedError

    @property
    def mean(self):
        """The mean, of shape batch_shape + event_shape."""
        raise NotImplementedError

    @property
    def mode(self):
        """The most probable value, of shape batch_shape + event_shape."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self):
        """The variance, of shape batch_shape + event_shape."""
        raise NotImplementedError

    @property
    def stddev(self):
        """The standard deviation, of shape batch_shape + event_shape."""
        return self.variance.sqrt()

    def sample(self, sample_shape=gradus.Size()):
        """Returns random values of shape sample_shape + batch_shape + event_shape, without gradients."""
        with gradus.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=gradus.Size()):
        """Returns random values of shape sample_shape + batch_shape + event_shape, with gradients with respect to the parameters."""
        raise NotImplementedError

    def sample_n(self, n):
        """Returns sample((n,)). This method is deprecated and warns."""
        warnings.warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning, stacklevel=2)
        return self.sample(gradus.Size((n,)))

    def log_prob(self, value):
        """Returns the logarithm of the probability density, or of the probability of discrete values, at `value`."""
        raise NotImplementedError

    def cdf(self, value):
        """Returns the cumulative distribution function: the probability that a random value is less than or equal to `value`."""
        raise NotImplementedError

    def icdf(self, value):
        """Returns the number x for which cdf(x) is `value`, a probability."""
        raise NotImplementedError

    def enumerate_support(self, expand=True):
        """Returns a tensor of all possible values of a discrete distribution, one for each index of dimension 0. Its shape is (number of values,) +
        batch_shape + event_shape. If `expand` is false, the batch dimensions have size 1 instead."""
        raise NotImplementedError

    def entropy(self):
        """Returns the entropy in nats, of shape batch_shape."""
        raise NotImplementedError

    def perplexity(self):
        """Returns exp(entropy), of shape batch_shape."""
        return gradus.exp(self.entropy())

    def __repr__(self):
        given = [(name, self.__dict__[name]) for name in self.arg_constraints if name in self.__dict__]
        return f"{self.__class__.__name__}({', '.join(f'{name}: {value if value.numel() == 1 else value.size()}' for name, value in given)})"


class _WithProbs:
    """Base of distributions with the parameters `probs` and `logits`. One of the two is given, and the other is computed from it.

    _binary: True if logits are the log odds of one probability, False if they are log-probabilities along the last dimension.
    """

    _binary = True

    @staticmethod
    def _check_one_given(probs, logits):
        """Raises ValueError unless exactly one of `probs` and `logits` is given."""
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")

    def _set_given(self, probs, logits, **others):
        """Broadcasts `others` and one of `probs` and `logits`, whichever is not None, to one shape. Sets the results as attributes and returns the
        shape. Raises ValueError unless exactly one of `probs` and `logits` is None."""
        self._check_one_given(probs, logits)
        name, given = ("logits", logits) if probs is None else ("probs", probs)
        *values, self._given = gradus.distributions.utils.broadcast_all(*others.values(), given)
        for key, value in zip((*others, name), (*values, self._given)):
            setattr(self, key, value)
        return self._given.size()

    @lazy_property
    def logits(self):
        """The log odds of the probabilities if `_binary` is true, otherwise the logarithms of the probabilities."""
        return gradus.distributions.utils.probs_to_logits(self.probs, is_binary=self._binary)

    @lazy_property
    def probs(self):
        """The probabilities, computed from the logits. If `_binary` is true, each is the probability of the value 1. Otherwise the last dimension
        holds the probabilities of the classes."""
        return gradus.distributions.utils.logits_to_probs(self.logits, is_binary=self._binary)

    @property
    def _param(self):
        """The tensor `probs` or `logits`, whichever was given to the constructor."""
        return self.__dict__["_given"]

    @property
    def param_shape(self):
        """The shape of `probs` or `logits`, whichever was given to the constructor."""
        return self._param.size()

    def _new(self, *args, **kwargs):
        """Returns param.new(*args, **kwargs), a new tensor with the dtype and device of the parameter that was given to the constructor."""
        return self._param.new(*args, **kwargs)
