"""The switch for the fast path of TransformerEncoderLayer. There is no such path, but TransformerEncoder reads the switch, because with PyTorch it
changes the output at padded positions."""
from gradus.backends._switch import Switch

_fastpath = Switch()
get_fastpath_enabled = _fastpath.get
set_fastpath_enabled = _fastpath.set
