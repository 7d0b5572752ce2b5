"""Decompositions, equations, inverses and determinants, of batches of small matrices and of large ones, beside PyTorch.

    build/venv/bin/python bench/linalg.py --threads 2
"""
import functools

from beside import compare


def cases(torch, layout):
    found = {}
    for batch, n in ((1000, 3), (1000, 4), (1000, 8), (1000, 16), (1, 500), (1, 1000)):
        for dtype in (torch.float32, torch.float64):
            a, eye = torch.randn(batch, n, n, dtype=dtype), torch.eye(n, dtype=dtype)
            positive, b = a @ a.mT + n * eye, torch.randn(batch, n, 1, dtype=dtype)
            name = f"{batch}x{n}x{n} {str(dtype).removeprefix('torch.')}"
            for title, call in {"cholesky": functools.partial(torch.linalg.cholesky, positive), "lu": functools.partial(torch.linalg.lu_factor, a), "inverse": functools.partial(torch.inverse, a),
                                "solve": functools.partial(torch.linalg.solve, a, b), "det": functools.partial(torch.det, a)}.items():
                found[f"{title} {name}"] = call
    return found


if __name__ == "__main__":
    compare(cases, __doc__)
