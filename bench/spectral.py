"""Compares eigenvalues and singular values with PyTorch, for batches of small matrices and for large matrices.

    build/venv/bin/python bench/spectral.py --threads 2 --only "eigh 1000x"
"""
import functools

from beside import compare


def cases(torch, layout):
    found = {}
    linalg = torch.linalg
    for batch, n in ((1000, 3), (1000, 4), (1000, 8), (1000, 16), (1, 500), (1, 1000)):
        for dtype in (torch.float32, torch.float64, torch.complex64, torch.complex128):
            a = torch.randn(batch, n, n, dtype=dtype)
            name = f"{batch}x{n}x{n} {str(dtype).removeprefix('torch.')}"
            for title, call in {"eigh": functools.partial(linalg.eigh, a + a.mH), "eigvalsh": functools.partial(linalg.eigvalsh, a + a.mH), "svd": functools.partial(linalg.svd, a),
                                "svdvals": functools.partial(linalg.svdvals, a), "eig": functools.partial(linalg.eig, a), "pinv": functools.partial(linalg.pinv, a)}.items():
                found[f"{title} {name}"] = call
    return found


if __name__ == "__main__":
    compare(cases, __doc__)
