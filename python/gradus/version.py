"""Which version this is. Gradus has a number of its own, and is built for no accelerator."""
from gradus import _C

__version__ = _C.__version__
debug = False
cuda = None
hip = None
xpu = None
