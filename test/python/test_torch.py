"""Calls every operator with the sample arguments in its schema entry, and compares values, dtypes, shapes, strides and gradients with PyTorch."""
import ast
import math
import sys
import tomllib

import numpy
import pytest

import binding as g

sys.path.insert(0, str(g.ROOT))
from codegen.python import homes, names
from codegen.samples import evaluate, sample_texts
from codegen.schema import read_schema
from oracle import torch

pytestmark = pytest.mark.filterwarnings("ignore")  # only PyTorch warns here
OPERATORS = read_schema(g.ROOT / "schema")
FLOATING = ["float64", "float32", "bfloat16", "float16", "complex32", "complex64", "complex128"]
INTEGERS = ["int64", "int32", "int16", "int8", "uint8", "bool"]
EPSILON = {"float16": 2e-3, "complex32": 2e-3, "bfloat16": 1.6e-2, "float32": 2e-6, "complex64": 4e-6}

def at(ndim, indices, dims):
    """Returns a tuple t for self[t], where self has `ndim` dimensions. t applies `indices` to the dimensions `dims` (in ascending order) and full
    slices to the dimensions between them. If `dims` is None, `indices` apply to the first dimensions."""
    named, where = iter(indices), range(len(indices)) if dims is None else [d % ndim for d in dims]
    return tuple(next(named) if d in where else slice(None) for d in range(max(where, default=-1) + 1))


def put(self, indices, values, accumulate=False, dims=None):
    places = [None if isinstance(i, slice) else i for i in at(self.dim(), indices, dims)]
    return torch.ops.aten.index_put(self, places, values, accumulate) if places else self.clone().copy_(values)


def lstm(*args, **options):
    """Calls torch.lstm without oneDNN, which corrupts memory if sizes or dtypes do not match."""
    with torch.backends.mkldnn.flags(enabled=False):
        return torch.lstm(*args, **options)


def copied(function):
    """Returns a function that copies its first argument, calls the in-place function `function` on the copy, and returns the copy."""
    def call(first, *rest, **options):
        first = [t.clone() for t in first] if isinstance(first, list) else first.clone()
        if first or not isinstance(first, list):  # PyTorch refuses empty lists
            function(first, *rest, **options)
        return first
    return call


def adjoint(function, size):
    """Returns the transpose of `function`, computed by autograd. `function` must be linear in its first argument, a batch of images of the size
    `size`."""
    def call(grad, *rest):
        x = torch.zeros(*grad.shape[:-len(size)], *size, dtype=floating_only(grad).dtype, requires_grad=True)
        return torch.autograd.grad(function(x, *rest), x, grad, create_graph=True)[0]
    return call


def planes(t, size):
    return t.flatten(-len(size))


def floating_only(t):
    if not t.is_floating_point():
        raise RuntimeError("not of a floating dtype")
    return t


def window_gather(self, size, indices):
    return planes(floating_only(self), size).gather(-1, planes(indices, size)).reshape(indices.shape)


def window_scatter(self, size, indices):
    flat = torch.zeros(*self.shape[:-len(size)], math.prod(size), dtype=floating_only(self).dtype)
    return flat.scatter_add(-1, planes(indices, size), planes(self, size)).unflatten(-1, size)


def linear_scan(self, factor, dim):
    if factor.shape != self.shape or not (self.is_floating_point() or self.is_complex()):
        raise RuntimeError("not of one shape, or integers")
    lines, last = [], 0
    for added, times in zip(self.unbind(dim), factor.unbind(dim)):
        last = times * last + added
        lines.append(last)
    return torch.stack(lines, dim)


def attention_scores(query, key, bias, mask, is_causal, scale):
    scores = query @ key.mT * scale + (0 if bias is None else bias)
    seen = torch.ones_like(scores, dtype=torch.bool) & (True if mask is None else mask)
    return torch.where(seen.tril() if is_causal else seen, scores, -torch.inf)


def nll_loss_forward(self, target, weight, reduction, ignore_index):
    weights = (torch.ones(self.shape[1], dtype=self.dtype) if weight is None else weight)[target]
    return F.nll_loss(self, target, weight, reduction=reduction, ignore_index=ignore_index), weights[target != ignore_index].sum().double()


# NAMES: name of an operator -> function that computes it with PyTorch. The other operators have the names and arguments of PyTorch's functions, so
# oracle() finds these functions by name.
F = torch.nn.functional
FOREACH = {operator.name: getattr(torch, names(operator)[0]) for operator in OPERATORS.values() if operator.file == "schema/foreach.toml"}
NAMES = {
    **{name: copied(function) if name.endswith("_inplace") else lambda self, *rest, of=function, **options: list(of(self, *rest, **options)) if self else [] for name, function in FOREACH.items()},
    "amp_foreach_non_finite_check_and_unscale": copied(torch._amp_foreach_non_finite_check_and_unscale_),
    "amp_update_scale": copied(lambda scale, tracker, *rest: torch._amp_update_scale_(scale, tracker.int(), *rest)),
    **{f"max_pool{n}d_with_indices_backward": getattr(torch.ops.aten, f"max_pool{n}d_with_indices_backward") for n in (2, 3)},
    "window_gather": window_gather, "window_scatter": window_scatter,
    "avg_pool_backward": lambda self, size, *windows: adjoint(getattr(F, f"avg_pool{len(size)}d"), size)(self, *windows),
    "adaptive_avg_pool_backward": lambda self, size, output_size: adjoint(getattr(F, f"adaptive_avg_pool{len(size)}d"), size)(self, output_size),
    "linear_scan": linear_scan, "attention_scores": attention_scores, "cdist_forward": lambda x1, x2, p: torch.cdist(x1, x2, p, compute_mode="donot_use_mm_for_euclid_dist"),
    "cdist_backward": torch.ops.aten._cdist_backward,
    "nll_loss_forward": nll_loss_forward, "nll_loss2d_forward": nll_loss_forward,
    "unsafe_view": torch.ops.aten._unsafe_view, "to_copy": torch.ops.aten._to_copy,
    "lstm": lstm, "lstm_packed": lstm, "pad_sequence": torch.nn.utils.rnn.pad_sequence,
    "convolution_input": lambda input_size, weight, *rest: getattr(torch.nn.grad, f"conv{weight.dim() - 2}d_input")(input_size, weight, *rest),
    "convolution_weight": lambda input, *rest: getattr(torch.nn.grad, f"conv{input.dim() - 2}d_weight")(input, *rest),
    "max_dim": lambda self, dim, keepdim=False: torch.max(self, dim, keepdim),
    "min_dim": lambda self, dim, keepdim=False: torch.min(self, dim, keepdim),
    "slice": lambda self, dim=0, start=None, end=None, step=1: torch.ops.aten.slice(self, dim, start, end, step),
    "embedding": lambda weight, indices, padding_idx=-1, scale_grad_by_freq=False: torch.embedding(weight, indices, padding_idx, scale_grad_by_freq),
    "embedding_renorm": torch.embedding_renorm_, "index": lambda self, indices, dims=None: self[at(self.dim(), indices, dims)], "index_put": put,
    "std_unbiased": torch.std, "std_dim": torch.std, "var_unbiased": torch.var, "var_dim": torch.var, "max_other": torch.max, "min_other": torch.min,
    "std_mean_unbiased": torch.std_mean, "std_mean_dim": torch.std_mean, "var_mean_unbiased": torch.var_mean, "var_mean_dim": torch.var_mean,
    "arange_end": torch.arange, "norm_name": lambda self, p, dim=None, keepdim=False, dtype=None: torch.norm(self, p, dim, keepdim, dtype=dtype),
    "tensordot": lambda self, other, dims_self, dims_other: torch.tensordot(self, other, dims=(dims_self, dims_other)),
    **{name: lambda tensors, f=getattr(torch, name): f(*tensors) for name in ("block_diag", "broadcast_tensors", "cartesian_prod")},
    "meshgrid": lambda tensors, indexing="ij": torch.meshgrid(*tensors, indexing=indexing),
    "repeat_interleave_each": torch.repeat_interleave, "repeat_interleave_indices": torch.repeat_interleave, "tensor_split_indices": torch.tensor_split,
    "batch_norm": lambda input, running_mean=None, running_var=None, **options: F.batch_norm(input, running_mean, running_var, **options),
    "where_condition": torch.where, "elu": torch.ops.aten.elu, "unfold": torch.Tensor.unfold, "resize": lambda self, size: self.clone().resize_(size),
    "median_dim": torch.median, "polygamma": lambda self, n: torch.polygamma(n, self),
    "chain_matmul": lambda matrices: torch.chain_matmul(*matrices),
    "einsum": lambda equation, operands: torch.einsum(equation, *operands),
    "clamp_tensor": lambda self, min=None, max=None: torch.clamp(self, min, max),
    "masked_fill_tensor": torch.masked_fill,
    "scatter_value": torch.scatter,
    "unique_dim": torch.ops.aten.unique_dim, "unique_consecutive": torch.ops.aten.unique_consecutive,
    "prod": lambda self, dim=None, keepdim=False, dtype=None: torch.prod(self, dtype=dtype).reshape([1] * self.dim() if keepdim else []) if dim is None else torch.prod(self, dim, keepdim, dtype=dtype),
    "any": lambda self, dim=None, keepdim=False: torch.any(self, dim=dim, keepdim=keepdim),
    "all": lambda self, dim=None, keepdim=False: torch.all(self, dim=dim, keepdim=keepdim),
    "norm": lambda self, p=None, dim=None, keepdim=False, dtype=None: torch.norm(self, 2 if p is None else p, dim, keepdim, dtype=dtype),
    "permute": lambda self, dims: self.permute(dims),
    "expand": lambda self, size, implicit=False: self.expand(size),
    "view": lambda self, size: self.view(size),
    "repeat": lambda self, repeats: self.repeat(repeats),
    "squeeze_dims": lambda self, dim: torch.squeeze(self, dim),
    "split_with_sizes": lambda self, split_sizes, dim=0: torch.split(self, split_sizes, dim),
    "split": lambda self, split_size, dim=0: torch.split(self, split_size, dim),
    "mT": lambda self: self.mT,
    "one_hot": lambda self, num_classes=-1: F.one_hot(self, num_classes),
    "fill_diagonal": lambda self, *rest, **options: self.clone().fill_diagonal_(*rest, **options),
    "fill": lambda self, value: self.clone().fill_(value), "zero": lambda self: self.clone().zero_(),
    "copy": lambda self, src, non_blocking=False: self.clone().copy_(src),
    "to": lambda self, dtype=None, device=None, copy=False: self.to(dtype=dtype or self.dtype, copy=copy),
    "scalar_tensor": lambda s, dtype=None, device=None, requires_grad=False: torch.tensor(s, dtype=dtype),
    "where": lambda condition, self, other: torch.where(condition, self, other),
    **{name.lstrip("_"): getattr(torch._C._nn, name) for name in dir(torch._C._nn)
       if name.startswith(("adaptive_max_pool", "col2im", "fractional_max_pool", "im2col", "max_pool", "max_unpool", "upsample_", "_upsample_"))},
    "lp_pool1d": lambda input, norm_type, kernel_size, stride=(None,), ceil_mode=False: F.lp_pool1d(input, norm_type, kernel_size[0], stride[0], ceil_mode),
    **{f"{how}_pad{n}d": getattr(torch.ops.aten, f"{how}_pad{n}d") for how in ("reflection", "replication") for n in (1, 2, 3)},
}


# Public operators that this test leaves out -> the reason, or the test that compares them with PyTorch.
OWN = {
    **{operator.name: "steps of optimizers: test_torch_optim.py and package/test_optim_steps.py" for operator in OPERATORS.values() if operator.file == "schema/optim.toml"},
    "attention": "as scaled_dot_product_attention, with and without dropout",
    **{name: "PyTorch's writes beyond its memory where the state is of other sizes: package/test_quasirandom.py" for name in OPERATORS if name.startswith("sobol_engine_")},
    "gradient_spacings": "a list of numbers in PyTorch: package/test_differences.py",
    "windows_general_cosine": "a list of numbers in PyTorch: package/test_signal_windows.py",
    "mode": "of equal elements PyTorch gives the one that its sort leaves: package/test_statistics.py",
    "segment_reduce": "offsets that do not rise, and which PyTorch refuses: package/test_segment_reduce.py",
    **{name: "PyTorch's mean and rstd have no gradient: package/test_nn_normalization.py" for name in ("native_layer_norm", "native_group_norm")},
    "histogram_bins": "PyTorch has a kernel of bfloat16, too: package/test_histogram.py",
    "histc": "PyTorch finds bins of bfloat16 in bfloat16: package/test_histogram.py",
    **{name: "PyTorch takes bool tensors of nothing: package/test_statistics.py" for name in ("trapezoid", "trapezoid_x")},
    **{name: "as upsample_, of which each is a case" for name in ("resample", "resample_backward")},
}

# Calls that Gradus refuses on purpose although PyTorch computes them.
REFUSED = {("clamp_tensor", "bool"): "PyTorch clamps bools by one tensor, not by two and not by numbers",
           **{("affine_grid_generator", d): "points of a grid are no integers" for d in ("uint8", "int8", "int16", "int32", "int64")},
           **{(n, d): "PyTorch asks for no order of a single element" for n in ("kthvalue", "cummax", "cummin") for d in ("complex32", "complex64", "complex128")}}


# Operators that return eigenvectors or singular vectors. These are determined only up to a sign or a phase, so they are not compared here.
# package/test_spectral.py compares the properties that do not depend on the sign or phase.
UP_TO_SIGNS = {"linalg_eigh", "linalg_svd", "svd"}

# Operators for which PyTorch's result is NaN, because its coefficients exceed the range of the dtype float16 or bfloat16.
NOT_A_NUMBER = {(name, dtype) for name in ("matrix_exp", "linalg_matrix_exp") for dtype in ("float16", "bfloat16")}


# SUPERSETS lists the calls that Gradus computes on purpose although PyTorch refuses them.
HOMES = {"linalg": torch.linalg, "special": torch.special, "fft": torch.fft, "windows": torch.signal.windows}
SUPERSETS = tomllib.loads((g.ROOT / "test/data/supersets.toml").read_text())


def is_superset(kind, operator, what):
    """True if SUPERSETS[kind] lists the dtype of the call for this operator, or the word "transposed" if the arguments are transposed. `what`
    is a text that ends with the dtype of the call, followed by "transposed" if the arguments are transposed."""
    return bool(set(SUPERSETS[kind].get(operator.name, "").split()) & set(what.split()[-2:]))


# Operators whose derivatives PyTorch computes with float32 precision only, because of rounded constants or a short series. Those in ROUGH_RESULTS
# also have results with errors of 1e-7.
ROUGH_RESULTS = {"special_airy_ai", "special_bessel_j0", "special_bessel_j1", "special_bessel_y0", "special_bessel_y1"}
ROUGH = {"digamma", "hardsigmoid", "polygamma", "lstm", "lstm_packed", "gru", "gru_packed"}


def oracle(operator):
    """Returns PyTorch's function for the operator. NAMES holds the functions that have another name than the operator."""
    if operator.name in NAMES:
        return NAMES[operator.name]
    places = (F, torch, torch.Tensor) if operator.file == "schema/loss.toml" or "nn" in homes(operator) else (torch, F, torch.Tensor)
    places = (*(place for home, place in HOMES.items() if home in homes(operator)), *places)
    found = [getattr(place, name) for name in (operator.name, *names(operator)) for place in places if hasattr(place, name)]
    return found[0]


def to_gradus(t):
    """Returns a Gradus tensor with the elements and strides of a PyTorch tensor."""
    flat = t.detach()
    dtype = str(t.dtype).split(".")[1]
    contiguous = flat.clone(memory_format=torch.contiguous_format)
    result = g.c.c_void_p(g.from_bytes(contiguous.view(torch.uint8).numpy().tobytes() if contiguous.numel() and t.dim() else
                                       contiguous.reshape(-1).view(torch.uint8).numpy().tobytes() if contiguous.numel() else b"", t.shape, dtype))
    if not t.is_contiguous() and t.numel():
        order = sorted(range(t.dim()), key=lambda d: -t.stride(d))
        inverse = [order.index(d) for d in range(t.dim())]
        result = g.call("permute", {"self": g.call("contiguous", {"self": g.call("permute", {"self": result, "dims": order})[0]})[0], "dims": inverse})[0]
    return result


def make(call, dtype, seed, transposed):
    """Returns a random PyTorch tensor for `call`, the AST node of an argument such as T(2, 3) in a sample of the schema. B(sizes) stands for dtype
    bool, I(sizes) for int64, and T(sizes) for `dtype`."""
    generator = torch.Generator().manual_seed(seed)
    shape = [ast.literal_eval(a) for a in call.args]
    bounds = {k.arg: ast.literal_eval(k.value) for k in call.keywords}
    kind = call.func.id
    low, high = bounds.get("lo", 0), bounds.get("hi", 2)
    if kind == "B":
        return torch.randint(0, 2, shape, generator=generator).bool()
    if kind == "I":
        return torch.randint(low, high, shape, generator=generator)
    low, high = bounds.get("lo", make.domain[0]), bounds.get("hi", make.domain[1])
    t = torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low
    t = t + bounds["ridge"] * torch.eye(*shape[-2:], dtype=torch.float64) if "ridge" in bounds else t
    if "complex" in dtype:
        t = torch.complex(t, torch.rand(shape, generator=generator, dtype=torch.float64) * (high - low) + low)
    elif dtype == "bool":
        t = t > (low + high) / 2
    elif "int" in dtype:
        t = (t * 2).round().abs() if dtype[0] == "u" else (t * 2).round()
    t = t.to(getattr(torch, dtype))
    if transposed and t.dim() >= 2:
        t = t.transpose(0, -1).contiguous().transpose(0, -1)
    return t


def arguments(operator, text, dtype, transposed):
    """Returns {name: PyTorch tensor or Python value} for the arguments in `text`. `text` holds sample arguments from the operator's schema entry,
    e.g. "T(2, 3), dim=1"."""
    make.domain = operator.test.get("domain", [-2, 2])
    call = ast.parse(f"f({text.removeprefix('~')})", mode="eval").body
    nodes = dict(zip((a.name for a in operator.args), call.args)) | {k.arg: k.value for k in call.keywords}
    values = {}
    for position, (name, node) in enumerate(nodes.items()):
        if isinstance(node, ast.Call):
            values[name] = make(node, dtype, position, transposed)
        elif isinstance(node, ast.List) and any(isinstance(e, ast.Call) for e in node.elts):
            values[name] = [make(e, dtype, 10 * position + i, transposed) for i, e in enumerate(node.elts)]
        else:
            values[name] = evaluate(node, operator)
    return values


def torch_call(operator, function, values):
    """Calls PyTorch's function with tensors and required arguments by position, and with all other arguments by keyword."""
    values = dict(values)
    for a in operator.args:
        if a.kind == "dtype" and values.get(a.name):
            values[a.name] = getattr(torch, values[a.name])
        if a.name == "memory_format" and a.name in values:
            values[a.name] = getattr(torch, values[a.name].replace("contiguous", "contiguous_format").replace("preserve", "preserve_format"))
    positional = []
    for a in operator.args:
        if a.has_default or a.keyword or a.name not in values:
            break
        positional.append(values.pop(a.name))
    if operator.name in ("transpose", "cat", "stack") or not values:
        return function(*positional, **values)
    return function(*positional, **{k: v for k, v in values.items()})


def as_list(result):
    return list(result) if isinstance(result, (tuple, list)) else [result]


def to_numpy(t):
    t = t.detach()
    wide = torch.complex128 if t.is_complex() else torch.float64 if t.is_floating_point() else torch.uint64 if t.dtype == torch.uint64 else torch.int64
    return t.to(wide).resolve_conj().numpy()


def compare(got, wanted, dtype, what):
    assert g.dtype(got) == str(wanted.dtype).split(".")[1], f"{what}: dtype"
    assert g.sizes(got) == tuple(wanted.shape), f"{what}: shape"
    tolerance = EPSILON.get(g.dtype(got), 1e-12)
    tolerance = max(tolerance, EPSILON.get(dtype, 0)) if "float" in g.dtype(got) or "complex" in g.dtype(got) else 0
    expected = to_numpy(wanted)
    scale = max(1.0, float(numpy.nanmax(numpy.abs(expected[numpy.isfinite(expected)]), initial=0))) if expected.size else 1.0
    numpy.testing.assert_allclose(g.numpy_of(got), expected, rtol=tolerance * 4, atol=tolerance * scale, err_msg=what)


def tensors_of(values):
    return [t for v in values.values() for t in (v if isinstance(v, list) else [v]) if isinstance(t, torch.Tensor)]


def cases():
    for operator in OPERATORS.values():
        if operator.hidden or "skip" in operator.test or operator.name in OWN.keys() | UP_TO_SIGNS:
            continue
        for text in sample_texts(operator):
            yield pytest.param(operator, text, id=f"{operator.name}({text})")


@pytest.mark.parametrize("operator, text", list(cases()))
def test_operator_agrees_with_pytorch_on_its_samples(operator, text):
    function = oracle(operator)
    floats = "T(" in text or "C(" in text
    for dtype in FLOATING + INTEGERS if floats else ["float64"]:
        for transposed in (False, True) if floats and not operator.test.get("contiguous") else (False,):
            what = f"{operator.name}({text}) {dtype}{' transposed' if transposed else ''}"
            with g.scope():
                check_operator(operator, function, arguments(operator, text, dtype, transposed), dtype, what)


def check_operator(operator, function, values, dtype, what):
    try:
        wanted = as_list(torch_call(operator, function, {k: v for k, v in values.items()}))
    except (RuntimeError, NotImplementedError, ValueError, TypeError, IndexError) as error:
        wanted = error
    mine = {k: [to_gradus(t) for t in v] if isinstance(v, list) and v and isinstance(v[0], torch.Tensor) else to_gradus(v) if isinstance(v, torch.Tensor) else v
            for k, v in values.items()}
    form = g.FUNCTIONAL if "functional" in operator.forms else g.INPLACE
    try:
        got = g.call(operator.name, mine, form)
    except g.GradusError as error:
        empty = any(t.numel() == 0 for t in tensors_of(values)) or isinstance(wanted, list) and all(t.numel() == 0 for t in tensors_of({"": wanted}))
        nothing_computed = "not implemented" in str(error) and empty  # without elements PyTorch does not check the dtype
        refused = (operator.name, dtype) in REFUSED and ("not implemented" in str(error) or "expected scalar type" in str(error))
        if not isinstance(wanted, Exception) and not nothing_computed and not refused:
            raise AssertionError(f"{what}: {error.class_name}: {error}") from None
        return
    if isinstance(wanted, Exception):
        # PyTorch has few kernels for complex32, so it may refuse that dtype. test_matrix compares complex32 results with complex128 results.
        assert dtype == "complex32" or is_superset("values", operator, what), f"{what}: PyTorch refuses, and test/data/supersets.toml does not list it: {wanted}"
        return
    assert len(got) == len(wanted), what
    if (operator.name, dtype) in NOT_A_NUMBER:
        return
    for i, (a, b) in enumerate(zip(got, wanted)):
        if isinstance(b, torch.Tensor):
            compare(a, b, "float32" if operator.name in ROUGH_RESULTS and dtype == "float64" else dtype, f"{what} result {i}")
            if operator.view and b.numel():
                assert g.strides(a) == b.stride(), f"{what}: strides"
    if dtype in ("float64", "complex128") and operator.test.get("grad", True):
        check_gradients(operator, function, values, wanted, dtype, what)


def is_differentiable(t):
    return t.is_floating_point() or t.is_complex()


def check_gradients(operator, function, values, wanted, dtype, what):
    if operator.grads == {} or ("complex" in dtype and "dtype='float" in what):
        # Gradients are not compared if the operator's argument dtype= casts a complex input to a real dtype, because PyTorch computes the gradient of
        # cumprod from the input before the cast.
        return
    leaves, named = [], {}
    for name, v in values.items():
        if isinstance(v, list) and v and isinstance(v[0], torch.Tensor):
            named[name] = [t.detach().requires_grad_() if is_differentiable(t) else t for t in v]
            leaves += [t for t in named[name] if t.requires_grad]
        elif isinstance(v, torch.Tensor) and is_differentiable(v) and name not in SUPERSETS["arguments"].get(operator.name, []):
            named[name] = v.detach().requires_grad_()
            leaves.append(named[name])
        else:
            named[name] = v
    if not leaves:
        return
    try:
        results = [r for r in as_list(torch_call(operator, function, named)) if isinstance(r, torch.Tensor) and r.requires_grad]
        seeds = [torch.ones_like(r) * (0.5 + 0.25 * i) for i, r in enumerate(results)]
        expected = torch.autograd.grad(results, leaves, seeds, allow_unused=True) if results else []
    except RuntimeError as error:
        assert is_superset("gradients", operator, what), f"{what}: PyTorch has no derivative, and test/data/supersets.toml does not list it: {error}"
        return
    if not results:
        return
    mine, inputs = {}, []
    for name, v in named.items():
        if isinstance(v, list) and v and isinstance(v[0], torch.Tensor):
            mine[name] = [g.c.c_void_p(g.lib.grd_set_requires_grad(to_gradus(t), t.requires_grad)) for t in v]
            inputs += [m for m, t in zip(mine[name], v) if t.requires_grad]
        elif isinstance(v, torch.Tensor) and v.requires_grad:
            mine[name] = g.c.c_void_p(g.lib.grd_set_requires_grad(to_gradus(v), True))
            inputs.append(mine[name])
        else:
            mine[name] = to_gradus(v) if isinstance(v, torch.Tensor) else v
    form = g.FUNCTIONAL if "functional" in operator.forms else None
    if form is None:
        return
    outputs = [r for r in g.call(operator.name, mine) if g.lib.grd_requires_grad(r)]
    assert len(outputs) == len(results), f"{what}: which results require grad"
    options = g.BackwardOptions(g.tensors([to_gradus(s).value for s in seeds]), False, False, True)
    grads = (g.c.c_void_p * len(inputs))()
    g.lib.grd_grad(g.tensors([o.value for o in outputs]), g.tensors([i.value for i in inputs]), options, grads)
    g.check()
    for i, wanted_grad in enumerate(expected):
        if wanted_grad is None:
            assert not grads[i] or not numpy.any(g.numpy_of(g.c.c_void_p(grads[i]))), f"{what}: gradient {i} should be absent"
        elif not grads[i]:
            assert not wanted_grad.abs().sum(), f"{what}: gradient {i} is absent"
        else:
            wanted_grad = wanted_grad + 0  # turns PyTorch's ZeroTensor, a tensor of zeros without memory, into an ordinary tensor
            compare(g.c.c_void_p(grads[i]), wanted_grad, "float32" if operator.name in ROUGH else dtype, f"{what} gradient {i}")


@pytest.mark.parametrize("name, dtype", [(name, dtype) for name, dtypes in SUPERSETS["values"].items() for dtype in dtypes.split()])
def test_pytorch_refuses_the_calls_listed_as_supersets(name, dtype):
    operator = OPERATORS[name]
    for text in sample_texts(operator):
        try:
            torch_call(operator, oracle(operator), arguments(operator, text, dtype.replace("transposed", "float64"), dtype == "transposed"))
        except (RuntimeError, ValueError, TypeError):
            return
    raise AssertionError(f"PyTorch computes {name} of {dtype}: test/data/supersets.toml need not list it")


# Calls that combine a tensor of a 16-bit dtype with a number: name of the operator, its arguments, and PyTorch's call. Products, quotients and lerp
# use the number in float32; the other operators round it to the 16-bit dtype.
HALF_CALLS = {
    **{f"{name} by {number!r}": (name, lambda x, y, name=name, number=number: {"self": x, "other": number},
                                 lambda x, y, name=name, number=number: getattr(torch, name)(x, number))
       for name in ("mul", "div", "add", "sub", "floor_divide", "remainder", "xlogy") for number in (0.3, -1.7, 7, 300.7, 1e-3)},
    **{f"{name} by a {kind}": (name, lambda x, y, kind=kind: {"self": x, "other": zero_dimensional(kind)},
                               lambda x, y, name=name, kind=kind: getattr(torch, name)(x, zero_dimensional(kind)))
       for name in ("mul", "div", "floor_divide", "add", "sub", "xlogy", "logaddexp") for kind in ("float16", "bfloat16", "float32", "float64", "int64")},
    **{f"{name} {mode}": (name, lambda x, y, mode=mode: {"self": x, "other": 0.3, "rounding_mode": mode},
                          lambda x, y, mode=mode: torch.div(x, 0.3, rounding_mode=mode)) for name in ("div",) for mode in ("floor", "trunc")},
    **{f"{name} alpha={alpha}": (name, lambda x, y, alpha=alpha: {"self": x, "other": y, "alpha": alpha},
                                 lambda x, y, name=name, alpha=alpha: getattr(torch, name)(x, y, alpha=alpha)) for name in ("add", "sub", "rsub") for alpha in (0.3, -1.7, 7)},
    "xlogy": ("xlogy", lambda x, y: {"self": x, "other": y}, lambda x, y: torch.xlogy(x, y)),
    "logaddexp": ("logaddexp", lambda x, y: {"self": x, "other": y}, lambda x, y: torch.logaddexp(x, y)),
    "log_sigmoid": ("log_sigmoid", lambda x, y: {"self": x}, lambda x, y: F.logsigmoid(x)),
    "logit": ("logit", lambda x, y: {"self": y / 8}, lambda x, y: torch.logit(y / 8)),
    **{f"lerp by {weight}": ("lerp", lambda x, y, weight=weight: {"self": x, "end": y, "weight": weight}, lambda x, y, weight=weight: torch.lerp(x, y, weight))
       for weight in (0.3, 0.7, -1.7)},
}


def zero_dimensional(dtype):
    return torch.tensor(2.7).to(getattr(torch, dtype))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", HALF_CALLS)
def test_half_types_combined_with_numbers(name, dtype):
    """Results in 16-bit dtypes must be equal bit by bit, except for up to 3 elements of logarithms and of lerp. For lerp, PyTorch rounds the product
    and the sum together only once. The tensors have 1024 elements, so that PyTorch uses only its vectorized loops. Its scalar loops would give other
    results, because they round products separately."""
    operator, arguments_of, call = HALF_CALLS[name]
    x, y = torch.linspace(-3, 3, 1024).to(getattr(torch, dtype)), torch.linspace(0.5, 7.5, 1024).to(getattr(torch, dtype))
    wanted = call(x, y)
    with g.scope():
        got = g.call(operator, {k: to_gradus(v) if isinstance(v, torch.Tensor) else v for k, v in arguments_of(x, y).items()})[0]
        assert g.dtype(got) == str(wanted.dtype).split(".")[1]
        mine, its = g.numpy_of(got), to_numpy(wanted)
        different = int((~((mine == its) | (numpy.isnan(mine) & numpy.isnan(its)))).sum())
    assert different <= (3 if "lerp" in name or "log" in name else 0), f"{different} of {len(mine)}"


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "bfloat16"])
@pytest.mark.parametrize("n", [5, 16, 17, 64, 1000, 40000])
def test_sort_kthvalue_and_median_return_the_indices_of_pytorch_for_ties(dtype, n):
    for distinct in (2, 100):
        x = torch.randint(0, distinct, (n,), generator=torch.Generator().manual_seed(n)).to(getattr(torch, dtype))
        calls = [("sort", {"descending": d, "stable": s}) for d in (False, True) for s in (False, True)]
        calls += [("kthvalue", {"k": k}) for k in (1, n // 2, n)] + [("median_dim", {"dim": 0})] if dtype != "bool" else []
        with g.scope():
            for name, options in calls:
                got = g.call(name, {"self": to_gradus(x)} | options)[1]
                assert g.numpy_of(got).tolist() == oracle(OPERATORS[name])(x, **options).indices.tolist(), (name, options)
