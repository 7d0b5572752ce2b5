"""The functional forms of the optimizers, e.g. adam(params, grads, ...), in one module, from which some programs import them."""
from gradus.optim.adadelta import adadelta  # noqa: F401
from gradus.optim.adagrad import adagrad  # noqa: F401
from gradus.optim.adam import adam  # noqa: F401
from gradus.optim.adamax import adamax  # noqa: F401
from gradus.optim.adamw import adamw  # noqa: F401
from gradus.optim.asgd import asgd  # noqa: F401
from gradus.optim.nadam import nadam  # noqa: F401
from gradus.optim.radam import radam  # noqa: F401
from gradus.optim.rmsprop import rmsprop  # noqa: F401
from gradus.optim.rprop import rprop  # noqa: F401
from gradus.optim.sgd import sgd  # noqa: F401
