"""The fast path of TransformerEncoderLayer: the switch is kept and has no effect."""
from gradus.backends._switch import Switch

_fastpath = Switch()
get_fastpath_enabled = _fastpath.get
set_fastpath_enabled = _fastpath.set
