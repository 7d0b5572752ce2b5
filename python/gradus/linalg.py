"""The functions of torch.linalg: matrix products, norms, decompositions, and solvers of linear systems."""
from gradus._C import _LinAlgError as LinAlgError
from gradus._C.linalg import (cholesky, cholesky_ex, cond, cross, det, diagonal, eig, eigh, eigvals, eigvalsh, householder_product, inv, inv_ex, ldl_factor, ldl_factor_ex, ldl_solve,
                              lstsq, lu, lu_factor, lu_factor_ex, lu_solve, matmul, matrix_exp, matrix_norm, matrix_power, matrix_rank, multi_dot, norm, pinv, qr, slogdet, solve, solve_ex,
                              solve_triangular, svd, svdvals, tensorinv, tensorsolve, vander, vecdot, vector_norm)

__all__ = ["LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "householder_product", "inv", "inv_ex", "ldl_factor",
           "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv",
           "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm"]
