"""Neural networks: modules, parameters, losses, initialization. The names and their meaning are those of torch.nn."""
from . import functional, init, modules, parameter, utils
from .modules import *
from .parameter import Buffer, Parameter
