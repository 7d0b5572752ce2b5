"""Implements derivatives of functions of tensors, and of nested tuples, lists and dicts of tensors.

Autograd records the operators of the function on new input tensors. If the caller has autograd enabled, the new tensors keep the history of the
original inputs. Inside vmap, the function sees tensors with the sizes of one element of the batch, but derivatives are computed with the tensors of
the whole batch. The elements of a batch are independent, so the gradient of a sum over the batch contains the gradient of each element.
"""
import functools

import gradus
from gradus import _C
from gradus.autograd.graph import leaves_of
from gradus.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten, treespec_pprint

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


# ---- Recording ----------------------------------------------------------------------------------------------------------------------------


class _Recording:
    """An autograd recording of a function call. The function is called with `inputs`, which are new tensors with the values of `values`. Gradients
    are computed with respect to `inputs`."""

    def __init__(self, values):
        self.outside = _C.is_grad_enabled()  # True if the caller has autograd enabled, so that results may need a history
        self.batched = _C._batch_size() >= 0
        leaves, self.spec = tree_flatten(values)
        for value in leaves:
            if not isinstance(value, gradus.Tensor):
                raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
        self.leaves = [self._leaf(value) for value in self.physical(leaves)]
        with _C.enable_grad():
            self.inputs = self._logical(self.leaves)

    def _leaf(self, value):
        if self.outside and value.requires_grad:
            return value.view_as(value)
        tangents = _tangents([value])
        value = value.detach()
        return (_C._make_dual(value, tangents[0]) if tangents else value).requires_grad_()

    def physical(self, tensors):
        """Inside vmap, where each tensor looks like one element, returns the tensors that hold the whole batch, with the batch in dimension 0.
        Outside of vmap, returns `tensors`."""
        return [_C._unbatch(t, 0) for t in tensors] if self.batched else tensors

    def _logical(self, tensors):
        return tree_unflatten([_C._batch(t, 0) for t in tensors] if self.batched else tensors, self.spec)

    def reaches_outside(self, outputs):
        """Returns True if gradients must be able to flow from `outputs` to tensors of the caller. That is so if an original input requires a
        gradient, or if the function uses another tensor that requires one. Inside vmap `outputs` hold the whole batch."""
        if not self.outside:
            return False
        own = [leaf for leaf in self.leaves if leaf.grad_fn is None]
        return len(own) < len(self.leaves) or any(not any(leaf is one for one in own) for leaf in leaves_of([*outputs, *_tangents(outputs)]))

    def result(self, tree, keep):
        """Returns `tree`, a nested structure of tensors. If `keep` is false, the autograd history of the tensors is removed."""
        return tree if keep else tree_map(_without_history, tree)

    def gradients(self, outputs, vectors, retain_graph, keep):
        """Returns the gradients of `outputs` with respect to the inputs, in the structure of the inputs. The gradient of an input on which the
        outputs do not depend is zeros.

        vectors: the gradients with respect to the outputs. Inside vmap `outputs` and `vectors` hold the whole batch. keep: if true, the
        gradients can be differentiated again.
        """
        used = [i for i, y in enumerate(outputs) if y.requires_grad]
        grads = [None] * len(self.leaves)
        if used and self.leaves:
            grads = gradus.autograd.grad(
                [outputs[i] for i in used], self.leaves, [vectors[i] for i in used], retain_graph=retain_graph or keep, create_graph=keep, allow_unused=True
            )
        grads = [gradus.zeros_like(leaf) if grad is None else grad for grad, leaf in zip(grads, self.leaves)]
        return self._logical([grad if keep or not grad.requires_grad else _detached(grad) for grad in grads])


def _without_history(value):
    if not isinstance(value, gradus.Tensor):
        raise RuntimeError(f"Expected tensors, got unsupported type {type(value)}")
    return _detached(value)


def _tangents(tensors):
    return [tangent for tangent in (_C._unpack_dual(t)[1] for t in tensors) if tangent is not None]


def _detached(value):
    """Returns the tensor `value` detached from its autograd history. If `value` has a forward-mode tangent, the result has the same tangent,
    detached."""
    if _C._is_batched(value):
        return _C._batch(_detached(_C._unbatch(value)))
    tangents = _tangents([value])
    return _C._make_dual(value.detach(), tangents[0].detach()) if tangents else value.detach()


# ---- Arguments ----------------------------------------------------------------------------------------------------------------------------


def _place(argnum, n):
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -n <= argnum < n:
        raise RuntimeError(f"Got argnum={argnum}, but only {n} positional inputs")
    return argnum % n


def _places(argnums, n):
    """Returns `argnums` as a tuple of non-negative indices of n arguments. RuntimeError: `argnums` is not valid."""
    if isinstance(argnums, int):
        return (_place(argnums, n),)
    if not isinstance(argnums, tuple):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    places = tuple(_place(argnum, n) for argnum in argnums)
    if not places:
        raise RuntimeError("argnums must be non-empty")
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {places}")
    return places


def _with_argnums(func, args, argnums):
    """Returns (function, values). `function` takes only the arguments of `func` whose indices are in `argnums`. It calls `func`, with the other
    arguments taken from `args`. `values` holds the items of `args` at these indices."""
    places = _places(argnums, len(args))

    def function(*values):
        given = dict(zip(places, values))
        return func(*(given.get(i, arg) for i, arg in enumerate(args)))

    return function, tuple(args[place] for place in places)


def _split_aux(result, has_aux, api):
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{api}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return result


def _check_outputs(outputs, api):
    if len(outputs) < 1 or (len(outputs) == 1 and outputs[0] is None):
        raise RuntimeError(f"{api}: Expected f to be a function that has non-empty output (got output = {outputs})")
    for y in outputs:
        if not isinstance(y, gradus.Tensor):
            raise RuntimeError(f"{api}: expected f(*primals) to return only tensors, got unsupported type {type(y)}")


def _refuse_complex(api, tree, what):
    for i, value in enumerate(tree_leaves(tree)):
        if isinstance(value, gradus.Tensor) and value.is_complex():
            raise RuntimeError(f"{api}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}")


# ---- Reverse mode -------------------------------------------------------------------------------------------------------------------------


def grad(func, argnums=0, has_aux=False):
    """Returns a function that computes the gradient of `func` with respect to the arguments in `argnums`. The value of `func` must be a single
    number. The gradients have the shapes of these arguments. If `has_aux` is true, `func` returns (value, aux) and the result is (gradient, aux).

    >>> gradus.func.grad(lambda x: (x * x).sum())(gradus.tensor([1.0, 2.0]))
    tensor([2., 4.])
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return wrapper


def grad_and_value(func, argnums=0, has_aux=False):
    """Returns a function that computes (gradient, value). The value of `func` must be a single number. The gradient is with respect to the arguments
    in `argnums`. If `has_aux` is true, `func` returns (value, aux), and the result is (gradient, (value, aux)).

    >>> gradus.func.grad_and_value(lambda x: x * x)(gradus.tensor(3.0))
    (tensor(6.), tensor(9.))
    """
    api = "grad_and_value(f)(*args)"

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        function, inputs = _with_argnums(lambda *args: func(*args, **kwargs), args, argnums)
        recording = _Recording(inputs[0] if isinstance(argnums, int) else inputs)
        with gradus.enable_grad():
            values = (recording.inputs,) if isinstance(argnums, int) else recording.inputs
            output, aux = _split_aux(function(*values), has_aux, api)
            if not isinstance(output, gradus.Tensor):
                raise RuntimeError(f"{api}: Expected f(*args) to return a Tensor, got {type(output)}")
            if output.dim() != 0:
                raise RuntimeError(
                    f"{api}: Expected f(*args) to return a scalar Tensor, got tensor with {output.dim()} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            outputs = recording.physical([output])
            keep = recording.reaches_outside(outputs)
            gradients = recording.gradients(outputs, [gradus.ones_like(y) for y in outputs], has_aux, keep)
        output = recording.result(output, keep)
        return gradients, (output, recording.result(aux, keep)) if has_aux else output

    return wrapper


def vjp(func, *primals, has_aux=False):
    """Returns (outputs, product), where outputs = func(*primals). product(v) returns v^T J, where J is the Jacobian of `func` and v has the structure
    of the outputs. v^T J is a tuple with one tensor of the shape of each primal. If `has_aux` is true, `func` returns (outputs, aux), and aux is
    returned as a third item.

    >>> value, product = gradus.func.vjp(lambda x: x.sin(), gradus.tensor([0.0, 0.0]))
    >>> product(gradus.tensor([1.0, 2.0]))
    (tensor([1., 2.]),)
    """
    api = "vjp(f, *primals)"
    recording = _Recording(primals)
    with gradus.enable_grad():
        primals_out, aux = _split_aux(func(*recording.inputs), has_aux, api)
        outputs, spec = tree_flatten(primals_out)
        _check_outputs(outputs, api)
        for y in outputs:
            if not (y.is_floating_point() or y.is_complex()):
                raise RuntimeError(f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {y.dtype}")
        outputs = recording.physical(outputs)
        reaches = recording.reaches_outside(outputs)

    def product(cotangents, retain_graph=True, create_graph=None):
        vectors, vectors_spec = tree_flatten(cotangents)
        if vectors_spec != spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {treespec_pprint(vectors_spec)}, primal output: {treespec_pprint(spec)}"
            )
        vectors = recording.physical(vectors)
        keep = (_C.is_grad_enabled() if create_graph is None else create_graph) and (reaches or any(v.requires_grad for v in vectors))
        return recording.gradients(outputs, vectors, retain_graph, keep)

    results = recording.result(primals_out, reaches)
    return (results, product, recording.result(aux, reaches)) if has_aux else (results, product)


# ---- Forward mode -------------------------------------------------------------------------------------------------------------------------


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """Returns (outputs, J t), where outputs = func(*primals), J is the Jacobian of `func`, and t are the tangents. The tangents have the structure
    and shapes of the primals; J t has the structure and shapes of the outputs. If `has_aux` is true, `func` returns (outputs, aux), and aux is
    returned as a third item.

    >>> gradus.func.jvp(lambda x: x * x, (gradus.tensor(3.0),), (gradus.tensor(1.0),))
    (tensor(9.), tensor(6.))
    """
    api = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{api}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    flat, spec = tree_flatten(primals)
    flat_tangents, tangents_spec = tree_flatten(tangents)
    if spec != tangents_spec:
        raise RuntimeError(
            f"{api}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 tensors, tangents also must be. "
            f"Got primals with structure {spec} and tangents with structure {tangents_spec}"
        )
    for tensors, name in ((flat, "primals"), (flat_tangents, "tangents")):
        if not tensors:
            raise RuntimeError(f"{api}: Expected {name} to contain at least one Tensor.")
        for t in tensors:
            if not isinstance(t, gradus.Tensor):
                raise RuntimeError(f"{api}: Expected {name} to only contain Tensors, got {type(t)}")
    with gradus.autograd.forward_ad.dual_level():
        duals = tree_unflatten([_C._make_dual(p, t) for p, t in zip(flat, flat_tangents)], spec)
        result, aux = _split_aux(func(*duals), has_aux, api)
        outputs, spec = tree_flatten(result)
        _check_outputs(outputs, api)
        parts = [_unpack(y, strict) for y in outputs]
        aux = tree_map(lambda t: _C._unpack_dual(t)[0], aux) if has_aux else None
    results = tuple(tree_unflatten(list(part), spec) for part in zip(*parts))
    return (*results, aux) if has_aux else results


def _unpack(dual, strict):
    primal, tangent = _C._unpack_dual(dual)
    if tangent is None and strict:
        raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with strict=True.")
    return primal, gradus.zeros_like(primal) if tangent is None else tangent


def linearize(func, *primals):
    """Returns (outputs, product), where outputs = func(*primals). product(*t) returns J t, where J is the Jacobian of `func` at the primals and t are
    tangents. Each call of `product` calls `func` again.

    >>> value, product = gradus.func.linearize(lambda x: x * x, gradus.tensor(3.0))
    >>> product(gradus.tensor(2.0))
    tensor(12.)
    """
    return func(*primals), lambda *tangents: jvp(func, primals, tangents)[1]


# ---- Jacobians ----------------------------------------------------------------------------------------------------------------------------


def _basis(tensors, chunk_size):
    """Yields all unit vectors, in chunks of at most chunk_size vectors. A unit vector has one component for each element of all `tensors`. A chunk is
    a list with a tensor of shape (number of vectors, *t.shape) for each t in `tensors`."""
    sizes = [t.numel() for t in tensors]
    total = sum(sizes)
    for start in range(0, total, chunk_size or max(total, 1)):
        n, offset, parts = min(chunk_size or total, total - start), start, []
        for t, size in zip(tensors, sizes):
            part = t.new_zeros((n, size))
            part.diagonal(offset).fill_(1)
            parts.append(part.reshape((n, *t.shape)))
            offset -= size
        yield parts


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """Returns a function that computes the Jacobian of `func` with respect to the arguments in `argnums`, in reverse mode. For each output and input
    the Jacobian has a tensor with the sizes of the output followed by the sizes of the input. `chunk_size` is the number of rows that are computed at
    once; None means all. If `has_aux` is true, `func` returns (outputs, aux), and the result is (Jacobian, aux).

    >>> gradus.func.jacrev(lambda x: x * x)(gradus.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapper(*args):
        _refuse_complex("jacrev", args, "inputs")
        function, inputs = _with_argnums(func, args, argnums)
        output, product, *aux = vjp(function, *inputs, has_aux=has_aux)
        outputs, spec = tree_flatten(output)
        _refuse_complex("jacrev", output, "outputs")
        flat, inputs_spec = tree_flatten(inputs)
        chunks = [_rows(product, parts, spec) for parts in _basis(outputs, chunk_size)]
        columns = [chunk[0] if len(chunk) == 1 else gradus.cat(chunk) for chunk in zip(*chunks)]
        split = [column.split([y.numel() for y in outputs]) for column in columns]
        jacobian = [
            tree_unflatten([rows[i].reshape((*y.shape, *x.shape)) for rows, x in zip(split, flat)], inputs_spec) for i, y in enumerate(outputs)
        ]
        result = tree_unflatten([row[0] if isinstance(argnums, int) else row for row in jacobian], spec)
        return (result, aux[0]) if has_aux else result

    return wrapper


def _rows(product, parts, spec):
    """Returns the products v^T J for the unit vectors v in `parts`, as a tensor of sizes [number of vectors, *sizes of the input] for each input.

    product: a function that returns v^T J, where J is the Jacobian. spec: the structure of the outputs. If there is only one vector, `product` is
    called without vmap.
    """
    if len(parts[0]) == 1:
        return [row.unsqueeze(0) for row in tree_leaves(product(tree_unflatten([part.squeeze(0) for part in parts], spec)))]
    return tree_leaves(gradus.func.vmap(product)(tree_unflatten(parts, spec)))


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """Returns a function that computes the Jacobian of `func` with respect to the arguments in `argnums`, in forward mode. Forward mode is faster
    than reverse mode (jacrev) if there are more outputs than inputs.

    >>> gradus.func.jacfwd(lambda x: x * x)(gradus.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def wrapper(*args):
        _refuse_complex("jacfwd", args, "inputs")
        function, inputs = _with_argnums(func, args, argnums)
        flat, inputs_spec = tree_flatten(inputs)

        def column(*tangents):
            value, tangent, *aux = jvp(function, inputs, tree_unflatten(tangents, inputs_spec), has_aux=has_aux)
            _refuse_complex("jacfwd", value, "outputs")
            return (tangent, *aux)

        parts = next(_basis(flat, None), [t.new_zeros((0, *t.shape)) for t in flat])
        columns, *aux = gradus.func.vmap(column, randomness=randomness)(*parts)
        outputs, spec = tree_flatten(columns)
        result = []
        for y in outputs:
            split = y.movedim(0, -1).split([x.numel() for x in flat], dim=-1)
            row = tree_unflatten([part.reshape((*y.shape[1:], *x.shape)) for part, x in zip(split, flat)], inputs_spec)
            result.append(row[0] if isinstance(argnums, int) else row)
        result = tree_unflatten(result, spec)
        return (result, tree_map(lambda t: t[0], aux[0])) if has_aux else result

    return wrapper


def hessian(func, argnums=0):
    """Returns jacfwd(jacrev(func)), a function that computes the Hessian of `func` with respect to the arguments in `argnums`. The value of `func`
    must be a single number. For each pair of arguments (a, b) the Hessian is a tensor of shape (*a.shape, *b.shape).

    >>> gradus.func.hessian(lambda x: (x ** 3).sum())(gradus.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
