"""The classes of the named tuples that operators return, e.g. ``max`` for gradus.max(x, dim). Each class is looked up on first access."""
import gradus

_CALLS = {
    "aminmax": lambda x: gradus.aminmax(x),
    "cummax": lambda x: gradus.cummax(x, 0),
    "cummin": lambda x: gradus.cummin(x, 0),
    "frexp": lambda x: gradus.frexp(x),
    "geqrf": lambda x: gradus.geqrf(x.reshape(1, 1)),
    "histogram": lambda x: gradus.histogram(x, 1),
    "histogramdd": lambda x: gradus.histogramdd(x.reshape(1, 1), 1),
    "kthvalue": lambda x: gradus.kthvalue(x, 1),
    "linalg_cholesky_ex": lambda x: gradus.linalg.cholesky_ex(x.reshape(1, 1)),
    "linalg_eig": lambda x: gradus.linalg.eig(x.reshape(1, 1)),
    "linalg_eigh": lambda x: gradus.linalg.eigh(x.reshape(1, 1)),
    "linalg_inv_ex": lambda x: gradus.linalg.inv_ex(x.reshape(1, 1)),
    "linalg_ldl_factor": lambda x: gradus.linalg.ldl_factor(x.reshape(1, 1) + 1),
    "linalg_ldl_factor_ex": lambda x: gradus.linalg.ldl_factor_ex(x.reshape(1, 1)),
    "linalg_lstsq": lambda x: gradus.linalg.lstsq(x.reshape(1, 1), x.reshape(1, 1)),
    "linalg_lu": lambda x: gradus.linalg.lu(x.reshape(1, 1)),
    "linalg_lu_factor": lambda x: gradus.linalg.lu_factor(x.reshape(1, 1) + 1),
    "linalg_lu_factor_ex": lambda x: gradus.linalg.lu_factor_ex(x.reshape(1, 1)),
    "linalg_qr": lambda x: gradus.linalg.qr(x.reshape(1, 1)),
    "linalg_slogdet": lambda x: gradus.linalg.slogdet(x.reshape(1, 1)),
    "linalg_solve_ex": lambda x: gradus.linalg.solve_ex(x.reshape(1, 1), x),
    "linalg_svd": lambda x: gradus.linalg.svd(x.reshape(1, 1)),
    "lu_unpack": lambda x: gradus.lu_unpack(x.reshape(1, 1), gradus.ones(1, dtype=gradus.int32, device="cpu")),
    "max": lambda x: gradus.max(x, 0),
    "median": lambda x: gradus.median(x, 0),
    "min": lambda x: gradus.min(x, 0),
    "mode": lambda x: gradus.mode(x, 0),
    "nanmedian": lambda x: gradus.nanmedian(x, 0),
    "qr": lambda x: gradus.qr(x.reshape(1, 1)),
    "slogdet": lambda x: gradus.slogdet(x.reshape(1, 1)),
    "sort": lambda x: gradus.sort(x),
    "svd": lambda x: gradus.svd(x.reshape(1, 1)),
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
