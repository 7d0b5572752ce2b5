"""Transformations of functions: derivatives, and vmap, which applies a function of one element to a whole batch.

    >>> from gradus.func import grad, vmap
    >>> grad(lambda x: x ** 3)(gradus.tensor(2.0))
    tensor(12.)
"""
from gradus import _stand_ins
from gradus.func.batching import vmap
from gradus.func.derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from gradus.func.stateless import functional_call, replace_all_batch_norm_modules_, stack_module_state

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "replace_all_batch_norm_modules_",
           "stack_module_state", "vjp", "vmap"]

__getattr__ = _stand_ins.of_module(__name__)
