"""Eigenvalues and singular values of many small matrices and of a large one, beside PyTorch's."""
from beside import compare

SHAPES = ((1000, 3, 3), (1000, 4, 4), (1000, 8, 8), (1000, 16, 16), (500, 500))


def cases(torch, layout):
    found = {}
    for shape in SHAPES:
        a = torch.randn(*shape)
        symmetric = a + a.mT
        found |= {f"eigh {shape}": lambda x=symmetric: torch.linalg.eigh(x), f"eigvalsh {shape}": lambda x=symmetric: torch.linalg.eigvalsh(x),
                  f"svd {shape}": lambda x=a: torch.linalg.svd(x), f"svdvals {shape}": lambda x=a: torch.linalg.svdvals(x)}
    return found


if __name__ == "__main__":
    compare(cases, __doc__)
