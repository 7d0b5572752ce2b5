"""The function load_url of gradus.hub under an older module name."""
from gradus.hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
