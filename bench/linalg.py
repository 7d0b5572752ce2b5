"""Compares decompositions, solutions of linear equations, inverses and determinants with PyTorch, for batches of small matrices and for large
matrices.

    build/venv/bin/python bench/linalg.py --threads 2 --only "inverse 1000x"
"""
import functools

from beside import compare


def cases(torch, layout):
    found = {}
    linalg = torch.linalg
    for batch, n in ((1000, 3), (1000, 4), (1000, 8), (1000, 16), (1, 500), (1, 1000)):
        for dtype in (torch.float32, torch.float64):
            a, eye = torch.randn(batch, n, n, dtype=dtype), torch.eye(n, dtype=dtype)
            positive, b, tall = a @ a.mT + n * eye, torch.randn(batch, n, 1, dtype=dtype), torch.randn(batch, 2 * n, n, dtype=dtype)
            l, factors, right = linalg.cholesky(positive), linalg.lu_factor(a), torch.randn(batch, 2 * n, 1, dtype=dtype)
            name = f"{batch}x{n}x{n} {str(dtype).removeprefix('torch.')}"
            for title, call in {"cholesky": functools.partial(linalg.cholesky, positive), "cholesky_solve": functools.partial(torch.cholesky_solve, b, l),
                                "lu_factor": functools.partial(linalg.lu_factor, a), "lu_solve": functools.partial(linalg.lu_solve, *factors, b),
                                "inverse": functools.partial(torch.inverse, a), "solve": functools.partial(linalg.solve, a, b), "det": functools.partial(torch.det, a),
                                "slogdet": functools.partial(torch.slogdet, a), "triangular": functools.partial(linalg.solve_triangular, l, b, upper=False),
                                "qr": functools.partial(linalg.qr, a), "lstsq": functools.partial(linalg.lstsq, tall, right),
                                "matrix_exp": functools.partial(linalg.matrix_exp, a)}.items():
                found[f"{title} {name}"] = call
    return found


if __name__ == "__main__":
    compare(cases, __doc__)
