"""The fast path of TransformerEncoderLayer: the switch is kept; TransformerEncoder heeds it for what it gives at padded places."""
from gradus.backends._switch import Switch

_fastpath = Switch()
get_fastpath_enabled = _fastpath.get
set_fastpath_enabled = _fastpath.set
