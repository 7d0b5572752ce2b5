"""The functions and classes of torch.fx. There is no symbolic tracing. `wrap` does nothing, so that libraries can call it at import. All other
functions and classes raise an error when called."""
from gradus import _stand_ins

__all__ = ["wrap"]


def wrap(fn_or_name):
    """Returns the function, or its name, unchanged. RuntimeError: the argument is neither callable nor a str."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    return fn_or_name


__getattr__ = _stand_ins.of_module(__name__)
