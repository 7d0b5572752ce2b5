"""Compares the names of nodes in printed tensors, for example grad_fn=<MulBackward0>, with PyTorch."""
import ast
import warnings

import pytest
from both import gradus, torch
from operator_calls import arguments, call, public_calls, sample_texts

# Expressions whose grad_fn has the same name in both libraries. x and y are 2 x 2 matrices, i contains indices.
ALIKE = """x + y | x - 2 | x * y | x / y | x.sum() | x.sum(0) | x.sum((0, 1)) | x.mean() | x.mean(1) | x.prod() | x.prod(0) | x.max() | x.max(0)[0] | x.min() |
x.min(1)[0] | x.median() | x.median(0)[0] | x ** 2 | x ** y | x.fmod(2) | x.fmod(y) | x.remainder(2) | x.remainder(y) | torch.lerp(x, y, 0.5) |
torch.lerp(x, y, y) | x.unsqueeze(0).squeeze(0) | x.squeeze() | x.masked_fill(x > 1, 0) | x.masked_fill(x > 1, y[0, 0]) | x.masked_fill(x > 1, y.detach()[0, 0]) | x.index_fill(0, i, 0) |
x.index_fill(0, i, y[0, 0]) | x.scatter(0, i[None], 1.5) | x.scatter(0, i[None], y) | x.log1p() | x.norm() | torch.linalg.vector_norm(x) | x.clamp(0, 1) |
x.clamp(y, y) | torch.nn.functional.layer_norm(x, (2,)) | torch.nn.functional.nll_loss(x, i) | x.exp() | x.relu() | x.sigmoid() | x.tanh() | x.softmax(0) |
x.log_softmax(1) | x @ y | x.t() | x.transpose(0, 1) | x.view(4) | x.reshape(4) | x[0] | x[:, 0] | x[i] | x.gather(0, i[None]) | torch.cat([x, y]) | x.clone() |
x.expand(3, 2, 2) | x.permute(1, 0) | x.flip(0) | x.cumsum(0) | x.std() | x.var(0) | x.logsumexp(0) | torch.where(x > 1, x, y) | x.abs() | x.sqrt() |
x.neg() | x.unbind()[0] | x.diagonal() | x.index_select(0, i) | x.sort()[0] | x.topk(1)[0] | x.double() | torch.addmm(x, x, y) | torch.nn.functional.elu(x) |
torch.normal(x, 1.0) | torch.normal(x, y) | x.amax(0) | x.tril() | torch.nn.functional.embedding(i, x) |
torch.nn.functional.mse_loss(x, y) | torch.nn.functional.smooth_l1_loss(x, y) | torch.nn.functional.huber_loss(x, y) | torch.nn.functional.binary_cross_entropy_with_logits(x, y) | torch.stack([x, y]) |
1 - x | x.repeat(2, 1) | x.split(1)[0] | x.chunk(2)[0] |
x.trace() | x.repeat_interleave(2, 0) | x.square() | torch.nn.functional.glu(x) |
torch.nn.functional.prelu(x, y[0, :1]) | x.t().reshape(4) | x.view(2, 1, 2) @ y | torch.nn.functional.batch_norm(x, None, None, training=True) | torch.nn.BatchNorm1d(2)(x) |
torch.nn.LayerNorm(2)(x) | torch.nn.CrossEntropyLoss()(x, i) | torch.nn.functional.normalize(x) | torch.nn.functional.gelu(x) | torch.nn.functional.dropout(x) |
torch.nn.functional.relu(x.clone(), inplace=True) | torch.nn.functional.relu6(x.clone(), inplace=True) | torch.nn.functional.selu(x.clone(), inplace=True) |
torch.nn.functional.l1_loss(x, y[0], reduction="none") | torch.nn.Linear(2, 3)(x) | torch.nn.functional.triplet_margin_loss(x, y, x * y) | x.clone().add_(y) |
x / y | x / 2 | 2 / x | x // 2 + x | -x"""

# DIFFERENT maps each call whose grad_fn has another name than in PyTorch to (name in Gradus, name in PyTorch, reason). Several calls share the
# reasons in the constants before DIFFERENT.
ORDERED = "in place PyTorch names the node of a comparison, whose gradient is 0; here all operators without a derivative leave the same node"
LOGICAL = "PyTorch keeps the node from before the write; the node of Gradus has no derivative"
PARTS = "in Gradus the mean or sum and its operand have separate nodes"
REFUSED = "PyTorch's node only raises; here the result does not require a gradient, or has one"
COPY = "Gradus records the view and a clone"
LAYER = "a layer and direction is one node here, and its last states are views; PyTorch has nodes of single steps, or of a library's layer"
DIFFERENT = {
    "histogram": ("HistogramBackward0", "NotImplemented", REFUSED),
    **dict.fromkeys(("_histogramdd_bin_edges", "_histogramdd_from_bin_cts", "_histogramdd_from_bin_tensors"), (None, "NotImplemented", REFUSED)),
    "_dirichlet_grad": ("DirichletGradBackward0", "NotImplemented", "neither has a derivative"),
    "_chunk_cat": ("ViewBackward0", "NotImplemented", "it is made of views and a copy"),
    "gradient": ("DivBackward0", "CatBackward0", "the differences are joined before they are divided"),
    **dict.fromkeys(("renorm", "renorm_"), ("MulBackward0", "RenormBackward0", "it is a product with a factor for each part")),
    "cholesky": ("LinalgCholeskyExBackward0", "CholeskyBackward0", "it is linalg.cholesky"),
    "triangular_solve": ("LinalgSolveTriangularBackward0", "TriangularSolveBackward0", "it is linalg.solve_triangular"),
    "conv_tbc": ("RestridedBackward0", "ConvTbcBackward0", "it is conv1d"),
    "geqrf": (None, "GeqrfBackward0", "it has no derivative, and that is said at once"),
    **dict.fromkeys(("householder_product", "orgqr"), ("TransposeBackward0", "LinalgHouseholderProductBackward0", "it is made of products")),
    **dict.fromkeys(("ldl_factor", "ldl_factor_ex"), ("LinalgLdlFactorExBackward0", "NotImplemented", "neither has a derivative")),
    "ldl_solve": ("LinalgLdlSolveBackward0", "NotImplemented", "neither has a derivative"),
    "ormqr": ("TransposeBackward0", "OrmqrBackward0", "it is made of products"),
    "lu": ("AddBackward0", "LinalgLuBackward0", "the triangles are taken from one matrix"),
    "solve": ("TransposeBackward0", "LinalgSolveExBackward0", "vectors are solved as columns of matrices"),
    "solve_ex": ("TransposeBackward0", "LinalgSolveExBackward0", "vectors are solved as columns of matrices"),
    "segment_reduce": ("ViewBackward0", "SegmentReduceBackward0", "it is a reduction of padded rows"),
    "logdet": ("AddBackward0", "WhereBackward0", "log(-1) is NaN without a choice"),
    "diag": ("CloneBackward0", "DiagonalBackward0_copy", "PyTorch's name is made from that of diagonal_copy"),
    "diff": ("CloneBackward0", "CopyBackwards", "a copy of no differences is a clone here"),
    "einsum": ("ViewBackward0", "SumBackward1", "the diagonal is summed as one of several places"),
    "fill_": (None, "FillBackward3", "an integer tensor requires no gradient"),
    "scatter": ("ScatterAddBackward0", "NotImplemented", REFUSED),
    "scatter_": ("ScatterAddBackward0", "NotImplemented", REFUSED),
    **{f"{name}_": ("NotDifferentiableBackward0", node + "Backward1", ORDERED)
       for name, node in {"eq": "Eq", "ne": "Ne", "not_equal": "Ne", "lt": "Lt", "less": "Lt", "le": "Le", "less_equal": "Le", "gt": "Gt", "greater": "Gt",
                          "ge": "Ge", "greater_equal": "Ge"}.items()},
    **{f"logical_{name}_": ("NotDifferentiableBackward0", "CloneBackward0", LOGICAL) for name in ("and", "or", "xor", "not")},
    "multi_margin_loss": ("MeanBackward0", "MultiMarginLossBackward0", PARTS),
    "multilabel_margin_loss": ("MeanBackward0", "MultilabelMarginLossBackward0", PARTS),
    "index_reduce": ("ScatterReduceBackward0", "IndexReduceBackward0", "it is scatter_reduce of an index that is expanded"),
    "index_reduce_": ("ScatterReduceBackward0", "IndexReduceBackward0", "it is scatter_reduce of an index that is expanded"),
    "matmul": ("SqueezeBackward1", "SqueezeBackward4", "PyTorch squeezes a fresh product in place"),
    "conv1d": ("ConvolutionBackward0", "SqueezeBackward1", "one sample without a batch is convolved as it is"),
    "cross_entropy": ("DivBackward0", "DivBackward1", "PyTorch divides by a number of C++"),
    "cdist": ("CdistBackward0", "ViewBackward0", "PyTorch has another operator for distances by a product"),
    "rms_norm": ("NativeLayerNormBackward0", "MulBackward0", "one node here, parts in PyTorch"),
    "norm_except_dim": ("SqueezeBackward1", "ViewBackward0", "one reduction of any dimensions here, one of rows in PyTorch"),
    "_weight_norm": ("WeightNormInterfaceBackward0", "MulBackward0", "PyTorch has one node for the first and the last dimension alone"),
    "pad": ("CatBackward0", "CopySlices", "a circle is made of views and a cat, which are recorded"),
    "scaled_dot_product_attention": ("ScaledDotProductFlashAttentionForCpuBackward0", "MmBackward0", "one node here; parts in PyTorch where its kernel does not serve"),
    "_pack_padded_sequence": ("CatBackward0", "PackPaddedSequenceBackward0", "it is made of views and a cat, which are recorded"),
    "_pad_packed_sequence": ("CatBackward0", "CopySlices", "made of views and a cat, where PyTorch writes slices"),
    "ctc_loss": ("MaskedFillBackward0", "WhereBackward0", "infinities become zeros by masked_fill"),
    "native_channel_shuffle": ("ChannelShuffleBackward0", "NotImplemented", REFUSED),
    "rnn_tanh": ("TransposeBackward0", "TransposeBackward1", "which of its signatures PyTorch calls inside"),
    **{f"{name}_cell": ("RnnLayerBackward0", node + "Backward0", LAYER) for name, node in {"gru": "Add", "lstm": "Add", "rnn_relu": "Relu", "rnn_tanh": "Tanh"}.items()},
    **{name: ("ViewBackward0", "StackBackward0", LAYER) for name in ("gru", "lstm", "rnn_relu")},
    **{f"{name}_copy": ("CloneBackward0", node + "Backward0_copy", COPY)
       for name, node in {"alias": "Alias", "diagonal": "Diagonal", "expand": "Expand", "permute": "Permute", "select": "Select", "slice": "Slice", "split": "Split",
                          "split_with_sizes": "SplitWithSizes", "squeeze": "Squeeze", "t": "T", "transpose": "Transpose", "unbind": "Unbind", "unfold": "Unfold",
                          "unsqueeze": "Unsqueeze", "view": "View"}.items()},
    "narrow_copy": ("CloneBackward0", "NarrowCopyBackward0", COPY),
    "detach_copy": (None, "NotImplemented", "what is detached has no derivative"),
    "fill_diagonal_": ("MaskedFillBackward0", "CopySlices", "a diagonal that begins again is filled by a mask"),
    "tensorinv": ("ViewBackward0", "ReshapeAliasBackward0", "a reshape that is a view is a view here"),
    "vander": ("CatBackward0", "CopySlices", "made of a cat and a flip, where PyTorch writes slices"),
    "lstsq": ("SumBackward1", "LinalgLstsqBackward0", "it is made of decompositions"),
    "matrix_norm": ("PermuteBackward0", "AmaxBackward0", "the dimensions of the matrices are moved back"),
    "squeeze_": ("SqueezeBackward3", "SqueezeBackward5", "one dimension and a list of one are the same call here"),
    "stft": ("SqueezeBackward1", "SqueezeBackward4", "PyTorch squeezes and transposes in place"),
    "squeeze": ("SqueezeBackward1", "SqueezeBackward2", "one dimension and a list of one are the same call here"),
    "combinations": ("ViewBackward0", "StackBackward0", "elements are taken by their places"),
    "round": ("RoundBackward0", "RoundBackward1", "special.round of PyTorch always rounds to decimals, of which there are 0"),
    "dist": ("LinalgVectorNormBackward0", "DistBackward0", "it is the norm of a difference"),
    **{name: ("DivBackward0", "DivBackward1", "PyTorch divides and multiplies by numbers of C++") for name in ("trapezoid", "trapz", "cumulative_trapezoid")},
    **{name: ("SqueezeBackward1", "SqueezeBackward4", "PyTorch squeezes in place") for name in ("quantile", "nanquantile")},
}
# Name of a call -> further accepted pairs (name of grad_fn in Gradus, name in PyTorch). The call gives these pairs for some of the sample arguments
# in the operator's schema entry. Equal names and the pair in DIFFERENT are always accepted.
ALSO = {**{name: {("MulBackward0", "MulBackward1")} for name in ("trapezoid", "trapz")}, **{name: {("ViewBackward0", "SqueezeBackward4")} for name in ("quantile", "nanquantile")},
        **{f"native_{name}": {("MeanBackward1", theirs), ("RsqrtBackward0", theirs)} for name, theirs in (("layer_norm", None), ("group_norm", "NativeGroupNormBackward0"))},
        "vander": {("FlipBackward0", None)}, "squeeze_copy": {("CloneBackward0", "SqueezeBackward2_copy")}, "stft": {("TransposeBackward0", "TransposeBackward1")},
        "lstsq": {(node, "LinalgLstsqBackward0") for node in ("SliceBackward0", "UnsafeSplitWithSizesBackward0", "SqueezeBackward1", "TransposeBackward0")},
        "lu": {("TriuBackward0", "LinalgLuBackward0")}, "solve": {("SqueezeBackward1", "LinalgSolveExBackward0")}, "triangular_solve": {("CloneBackward0", "TriangularSolveBackward0")},
        "multi_margin_loss": {("ViewBackward0", "MultiMarginLossBackward0")},
        "multilabel_margin_loss": {(node, "MultilabelMarginLossBackward0") for node in ("SumBackward0", "DivBackward0")},
        "histogram": {("HistogramBinsBackward0", "NotImplemented"), (None, "NotImplemented")}, "scatter_": {("ScatterReduceBackward0", "NotImplemented")}, "bilinear": {("ViewBackward0", "AddBackward0"), ("MmBackward0", "ViewBackward0")},
        "norm_except_dim": {("SqueezeBackward1", "TransposeBackward0"), ("LinalgVectorNormBackward0", "NormBackward0")},
        "gru": {("RnnLayerBackward0", "CatBackward0"), ("ViewBackward0", "CatBackward0")}, "lstm_cell": {("RnnLayerBackward0", "MulBackward0")},
        "lstm": {("RnnLayerBackward0", "ViewBackward0"), ("ViewBackward0", "CatBackward0"), ("ViewBackward0", "MkldnnRnnLayerBackward0")},
        "rnn_relu": {("RnnLayerBackward0", "CatBackward0")}, "rnn_tanh": {("RnnLayerBackward0", "CatBackward0"), ("ViewBackward0", "StackBackward0")},
        "scatter": {("ScatterReduceBackward0", "NotImplemented")}, "matmul": {("UnsafeViewBackward0", "CloneBackward0")},
        "scaled_dot_product_attention": {("ScaledDotProductFlashAttentionForCpuBackward0", "UnsafeViewBackward0"), ("ScaledDotProductFlashAttentionForCpuBackward0", "AddBackward0"),
                                         ("ViewBackward0", "UnsafeViewBackward0")},
        # Gradus records a function of lists as operators on single tensors. The node in PyTorch depends on an internal choice.
        "_foreach_add": {("AddBackward0", "CppFunction")}, "_foreach_sub": {("SubBackward0", "CppFunction")}, "_foreach_mul": {("MulBackward0", "CppFunction")},
        "_foreach_div": {("DivBackward0", "CppFunction"), ("DivBackward0", "ForeachDivBackward0")}, "_foreach_norm": {("LinalgVectorNormBackward0", "ForeachNormBackward0")}}

# Expression -> (name of grad_fn in Gradus, name in PyTorch, reason for the difference).
OTHERS = {
    "2 % x": ("RemainderBackward1", "NotImplemented", REFUSED),
    "2 ** x": ("PowBackward1", "PowBackward2", "a number that is raised counts as a tensor here"),
    "torch.nn.functional.linear(x[0], y)": DIFFERENT["matmul"],
}


def name_of(torch, expression):
    x = torch.tensor([[0.5, 2.0], [1.5, 3.0]], requires_grad=True)
    y = torch.tensor([[1.0, 0.25], [0.75, 2.0]], requires_grad=True)
    result = eval(expression, {"torch": torch, "x": x, "y": y, "i": torch.tensor([0, 1])})
    node = type(result.grad_fn).__name__
    assert f"grad_fn=<{node}>" in repr(result)
    return node


@pytest.mark.filterwarnings("ignore")
def test_node_names_of_selected_expressions():
    expressions = [e.strip() for e in ALIKE.split("|")]
    found = {e: (name_of(gradus, e), name_of(torch, e)) for e in expressions}
    assert {e: names for e, names in found.items() if names[0] != names[1]} == {}
    assert {e: (name_of(gradus, e), name_of(torch, e)) for e in OTHERS} == {e: names[:2] for e, names in OTHERS.items()}


def of_torch(value):
    """Converts a value of Gradus to one of PyTorch."""
    if isinstance(value, gradus.Tensor):
        return torch.tensor(value.tolist(), dtype=of_torch(value.dtype)).reshape(tuple(value.shape))
    if isinstance(value, list) and value and isinstance(value[0], gradus.Tensor):
        return [of_torch(item) for item in value]
    return getattr(torch, str(value).split(".")[-1]) if isinstance(value, gradus.dtype) else value


def constants(operator, text):
    """Returns the names of the arguments that require no gradient. The sample `text` has C(...) for such a tensor, instead of T(...)."""
    made = ast.parse(f"f({text.removeprefix('~')})", mode="eval").body
    nodes = dict(zip((a.name for a in operator.args), made.args)) | {k.arg: k.value for k in made.keywords}
    return {name for name, node in nodes.items() if isinstance(node, ast.Call) and node.func.id == "C"}


def names_of(function, operator, values, fixed, in_place):
    """Returns the names of the grad_fn of a call's results, or None if the call is refused. Arguments that are not in `fixed` require a gradient."""
    for name, value in values.items():
        for t in value if isinstance(value, list) else [value]:
            if name not in fixed and hasattr(t, "requires_grad_") and (t.is_floating_point() or t.is_complex()):
                t.requires_grad_()
    if in_place:
        values[operator.args[0].name] = values[operator.args[0].name].clone()
    words = {a.name: values.pop(a.name) for a in operator.args if a.kind in ("str", "bool") and a.has_default and not a.keyword and a.name in values}
    try:
        results = call(function, operator, values, **words)
    except (TypeError, ValueError, RuntimeError):
        return None
    results = [results] if hasattr(results, "grad_fn") else [r for r in results or [] if r is not None]
    return [r.grad_fn and type(r.grad_fn).__name__ for r in results]


def differing():
    """Calls every operator with every sample, in all forms except out=. Returns the set of (name of the call, node name in Gradus, node name in
    PyTorch) where the node names differ."""
    homes, found, compared = {"function": torch, "nn": torch.nn.functional, "linalg": torch.linalg, "special": torch.special, "fft": torch.fft, "windows": torch.signal.windows, "method": torch.Tensor}, set(), 0
    for full, function, operator, form in public_calls():
        home, name = full.split(".")
        theirs = getattr(homes[home], name, None)
        theirs = function.like(theirs) if theirs is not None and hasattr(function, "like") else theirs
        for text in sample_texts(operator) if theirs is not None and form != "out" else []:
            given, fixed = arguments(operator, text), constants(operator, text)
            expected = names_of(theirs, operator, {k: of_torch(v) for k, v in given.items()}, fixed, form == "inplace")
            got = names_of(function, operator, given, fixed, form == "inplace")
            if got is not None and expected is not None:
                compared += 1
                found |= {(name, a, b) for a, b in zip(got, expected) if a != b}
    assert compared > 2500
    return found


def test_a_loss_records_an_expand_node_for_the_smaller_tensor_only():
    def below(library):
        x, y = library.ones(2, 3, requires_grad=True), library.ones(3, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            difference = library.nn.functional.l1_loss(x, y, reduction="none").grad_fn.next_functions[0][0]
        return [node.name() for node, _ in difference.next_functions]

    assert below(gradus) == below(torch) == ["torch::autograd::AccumulateGrad", "ExpandBackward0"]


def test_node_names_of_every_operator():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = differing()
    listed = {(name, *pair) for name, pairs in ALSO.items() for pair in pairs} | {(name, ours, theirs) for name, (ours, theirs, _) in DIFFERENT.items()}
    assert sorted(map(repr, found - listed)) == []
    assert listed - found == set(), "these have PyTorch's names now"
