"""Neural networks: modules, parameters, losses and initialization, with the names and semantics of torch.nn."""
from . import attention as attention
from . import common_types as common_types
from . import functional as functional
from . import grad as grad
from . import init as init
from . import modules as modules
from . import parallel as parallel
from . import parameter as parameter
from . import utils as utils
from .modules import *
from .parameter import Buffer as Buffer
from .parameter import Parameter as Parameter
from .parallel import DataParallel as DataParallel
from .parameter import UninitializedBuffer as UninitializedBuffer
from .parameter import UninitializedParameter as UninitializedParameter


def factory_kwargs(kwargs):
    """Returns the arguments device, dtype and memory_format that occur in `kwargs` or in the dictionary `kwargs["factory_kwargs"]`.

    Raises TypeError for other names, and for a name that is given both directly and in "factory_kwargs".

    >>> nn.factory_kwargs({"dtype": torch.float64, "factory_kwargs": {"device": "cpu"}})
    {'device': 'cpu', 'dtype': torch.float64}
    """
    if kwargs is None:
        return {}
    names = ("device", "dtype", "memory_format")
    unexpected = kwargs.keys() - {*names, "factory_kwargs"}
    if unexpected:
        raise TypeError(f"unexpected kwargs {unexpected}")
    options = dict(kwargs.get("factory_kwargs", {}))
    for name in names:
        if name in kwargs:
            if name in options:
                raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
            options[name] = kwargs[name]
    return options
