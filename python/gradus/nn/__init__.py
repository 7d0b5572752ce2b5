"""Neural networks: modules, parameters, losses, initialization. The names and their meaning are those of torch.nn."""
from . import functional as functional
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
