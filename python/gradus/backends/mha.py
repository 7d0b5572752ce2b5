"""The switch for the fast path of TransformerEncoderLayer. PyTorch's fast path sets the output at padded positions to 0. Gradus has
no fast path, but if the switch is on, its TransformerEncoder sets these outputs to 0 in the same cases."""
from gradus.backends._switch import Switch

_fastpath = Switch()
get_fastpath_enabled = _fastpath.get
set_fastpath_enabled = _fastpath.set
