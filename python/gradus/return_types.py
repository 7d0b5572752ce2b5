"""The classes of results with names, such as that of max along a dimension. Each is made when it is first asked for."""
import gradus

_CALLS = {
    "aminmax": lambda x: gradus.aminmax(x),
    "cummax": lambda x: gradus.cummax(x, 0),
    "cummin": lambda x: gradus.cummin(x, 0),
    "kthvalue": lambda x: gradus.kthvalue(x, 1),
    "linalg_cholesky_ex": lambda x: gradus.linalg.cholesky_ex(x.reshape(1, 1)),
    "linalg_qr": lambda x: gradus.linalg.qr(x.reshape(1, 1)),
    "max": lambda x: gradus.max(x, 0),
    "median": lambda x: gradus.median(x, 0),
    "min": lambda x: gradus.min(x, 0),
    "mode": lambda x: gradus.mode(x, 0),
    "qr": lambda x: gradus.qr(x.reshape(1, 1)),
    "sort": lambda x: gradus.sort(x),
    "topk": lambda x: gradus.topk(x, 1),
    "triangular_solve": lambda x: gradus.triangular_solve(x.reshape(1, 1), x.reshape(1, 1)),
}

__all__ = list(_CALLS)


def __getattr__(name):
    if name not in _CALLS:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return globals().setdefault(name, type(_CALLS[name](gradus.zeros(1, dtype=gradus.float32, device="cpu"))))


def __dir__():
    return sorted({*globals(), *_CALLS})
