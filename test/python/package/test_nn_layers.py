"""Checks that values, gradients, reprs and errors of layers, activations and losses, and of their functions, are PyTorch's."""
from itertools import product

import pytest
from nn_programs import attempt, same


def outcome(function, *inputs):
    """Computes a loss from the value of function(*inputs). Returns the value and the gradient of the loss for each input that requires one."""
    for x in inputs:
        if getattr(x, "grad", None) is not None:
            x.grad = None
    value = function(*inputs)
    if value.requires_grad:
        (value * (value.detach() + 0.5)).sum().backward()
    return [value, *(x.grad for x in inputs if getattr(x, "requires_grad", False))]


def module_outcome(module, *inputs):
    result = outcome(module, *inputs)
    return [repr(module), result, [parameter.grad for parameter in module.parameters()]]


def numbers(t, *sizes):
    """Returns random numbers that require a gradient. They lie on both sides of the points at which activations are not differentiable."""
    return (t.randn(*sizes) * 3).requires_grad_()


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@same
def test_linear(t):
    nn = t.nn
    for args, kwargs in (((3, 4), {}), ((3, 4, False), {}), ((3, 4), {"dtype": t.float64}), ((3, 0), {}), ((1, 1), {"device": "cpu"})):
        layer = nn.Linear(*args, **kwargs)
        yield layer, list(layer.parameters())
        yield module_outcome(layer, t.randn(2, 5, args[0], dtype=kwargs.get("dtype")).requires_grad_())
    yield attempt(nn.Linear(0, 3).reset_parameters), nn.Identity(1, a=2), nn.Identity()(3)
    yield attempt(nn.Linear)


@same(tolerance=1e-4)
def test_bilinear(t):
    layer = t.nn.Bilinear(3, 4, 5)
    yield list(layer.parameters())
    yield module_outcome(layer, numbers(t, 2, 7, 3), numbers(t, 2, 7, 4))
    yield module_outcome(t.nn.Bilinear(2, 2, 1, bias=False), numbers(t, 2), numbers(t, 2))
    yield attempt(t.nn.Bilinear, 0, 1, 1), attempt(layer, t.ones(1, 3), t.ones(2, 4))[0], attempt(layer, t.ones(1, 4), t.ones(1, 4))[0]


@same
def test_flatten(t):
    x = t.arange(24).reshape(2, 3, 4)
    for layer in (t.nn.Flatten(), t.nn.Flatten(0, 1), t.nn.Unflatten(2, (2, 2)), t.nn.Unflatten(-1, [4, 1])):
        yield layer, layer(x)
    yield attempt(t.nn.Unflatten, 0, 3), attempt(t.nn.Unflatten, 0, (1, "a"))


@same
def test_embedding(t):
    nn, indices = t.nn, t.tensor([[1, 2], [2, 0]])
    for kwargs in ({}, {"padding_idx": 2}, {"padding_idx": -1}, {"max_norm": 1.0}, {"max_norm": 1.0, "norm_type": 1.0},
                   {"scale_grad_by_freq": True}, {"dtype": t.float64}):
        layer = nn.Embedding(4, 3, **kwargs)
        yield layer, layer.weight
        yield module_outcome(layer, indices), layer.weight
    table = t.tensor([[3.0, 4.0], [0.5, 0.5]])
    layer = nn.Embedding.from_pretrained(table, max_norm=2.0)
    yield layer, layer(t.tensor([0, 0])), layer.weight, table, nn.Embedding.from_pretrained(table, freeze=False).weight.requires_grad
    for padding_idx in (4, -5):
        yield attempt(nn.Embedding, 4, 3, padding_idx)
        yield attempt(nn.functional.embedding, indices, t.ones(4, 3), padding_idx)
    yield attempt(nn.Embedding.from_pretrained, t.ones(2)), attempt(nn.Embedding, 1, 1, _weight=t.ones(2, 2))
    yield attempt(nn.Embedding(2, 2), t.tensor([5]))[0]
    yield nn.functional.one_hot(indices), nn.functional.one_hot(indices, num_classes=4)


ACTIVATIONS = {
    "ReLU": [(), (True,)], "ReLU6": [(), (True,)], "Sigmoid": [()], "Tanh": [()], "SiLU": [(), (True,)], "Mish": [(), (True,)],
    "Hardswish": [(), (True,)], "Hardsigmoid": [(), (True,)], "ELU": [(), (0.5,), (0.5, True)], "CELU": [(), (0.5,), (0.5, True)],
    "SELU": [(), (True,)], "GELU": [(), ("tanh",)], "LeakyReLU": [(), (0.2,), (0.2, True)], "Hardtanh": [(), (-2.0, 0.5), (-2, 1, True)],
    "Hardshrink": [(), (1.5,)], "Softshrink": [(), (1.5,)], "Tanhshrink": [()], "Softsign": [()], "Softplus": [(), (2.0, 3.0)],
    "LogSigmoid": [()], "Threshold": [(0.1, 20), (0.1, 20, True)], "PReLU": [(), (5,), (1, 0.5)], "RReLU": [(), (0.1, 0.3), (0.1, 0.3, True)],
    "GLU": [(), (0,)], "Softmax": [(0,), (-1,)], "Softmin": [(0,), (-1,)], "LogSoftmax": [(0,), (-1,)], "Softmax2d": [()],
}


def activation_program(name):
    def program(t):
        for args in ACTIVATIONS[name]:
            for sizes in ((4, 5, 6), (6,), (2, 5, 3, 2)):
                module, x = getattr(t.nn, name)(*args), numbers(t, *sizes)
                given = (lambda x: module(x * 1)) if args and args[-1] is True else module
                yield repr(module), attempt(outcome, given, x), [p.grad for p in module.parameters()]
                yield attempt(outcome, module.eval(), x.detach() * 1)

    return program


for _name in ACTIVATIONS:
    globals()[f"test_{_name}"] = same(activation_program(_name))


@same
def test_in_place_activations(t):
    F = t.nn.functional
    for name, args in (("relu_", ()), ("elu_", (0.5,)), ("selu_", ()), ("celu_", (0.5,)), ("leaky_relu_", (0.2,)), ("hardtanh_", (-1, 0.5)),
                       ("threshold_", (0.1, 3)), ("rrelu_", (0.1, 0.3, True))):
        x = t.randn(3, 4)
        yield getattr(F, name)(x, *args) is x, x


@same
def test_errors_of_activations(t):
    F, nn = t.nn.functional, t.nn
    yield attempt(F.hardtanh, t.ones(1), 2, 1), attempt(nn.Hardtanh, 1, 1), attempt(F.glu, t.ones(())), attempt(F.glu, t.ones(3))[0]
    yield attempt(nn.Softmax2d(), t.ones(2)), attempt(nn.Hardtanh, min_value=-3, max_value=2)
    for ndim in range(5):
        for function in (F.softmax, F.softmin, F.log_softmax):
            yield attempt(function, t.arange(2.0 ** ndim).reshape([2] * ndim))
    yield F.softmax(t.ones(2, dtype=t.float32), 0, dtype=t.float64), attempt(nn.Softmax(), t.ones(2, 2))
    yield F.sigmoid(t.ones(1)), F.tanh(t.ones(1))


@same
def test_gumbel_softmax(t):
    F = t.nn.functional
    for hard in (False, True):
        yield outcome(lambda x: F.gumbel_softmax(x, tau=0.5, hard=hard), t.randn(4, 3).requires_grad_())
    yield attempt(F.gumbel_softmax, t.ones(2), eps=1e-3)


@same
def test_dropout(t):
    nn, F = t.nn, t.nn.functional
    sizes = {"Dropout": (3, 4), "Dropout1d": (2, 3, 4), "Dropout2d": (2, 3, 4, 2), "Dropout3d": (2, 3, 2, 2, 2), "AlphaDropout": (3, 4),
             "FeatureAlphaDropout": (2, 3, 4)}
    for name, size in sizes.items():
        for p, inplace in product((0.0, 0.4, 1.0), (False, True)):
            module, x = getattr(nn, name)(p, inplace), t.randn(*size).requires_grad_()
            yield name, repr(module), outcome(lambda x: module(x * 1), x), module.eval()(x)
        yield attempt(getattr(nn, name), 1.5), attempt(getattr(F, "dropout1d"), t.ones(1), -1)
    for name, size in (("dropout1d", (3, 4)), ("dropout2d", (2, 3, 4)), ("dropout3d", (2, 3, 2, 2)), ("dropout2d", (3, 4))):
        for inplace in (False, True):
            x = t.ones(*size)
            yield attempt(getattr(F, name), x, 0.5, True, inplace), x
    yield attempt(F.dropout1d, t.ones(2)), attempt(F.dropout2d, t.ones(2)), attempt(F.dropout3d, t.ones(2))[0]
    yield F.dropout(t.ones(3), training=False), F.alpha_dropout(t.ones(3), inplace=True), F.feature_alpha_dropout(t.ones(3, 2), 0.5, True, True)


@same
def test_layer_norm_and_rms_norm(t):
    nn = t.nn
    for kwargs in ({}, {"eps": 0.1}, {"elementwise_affine": False}, {"bias": False}, {"dtype": t.float64}):
        for shape in (4, (4,), [3, 4]):
            layer = nn.LayerNorm(shape, **kwargs)
            yield module_outcome(layer, t.randn(2, 3, 4, dtype=kwargs.get("dtype")).requires_grad_())
            if "bias" not in kwargs:
                yield module_outcome(nn.RMSNorm(shape, **kwargs), t.randn(2, 3, 4, dtype=kwargs.get("dtype")).requires_grad_())
    for layer in (nn.LayerNorm(3), nn.RMSNorm(3), nn.RMSNorm((2, 3))):
        yield attempt(layer, t.ones(2, 4))[0]


CHANNEL_SIZES = {"1d": [(3, 3), (2, 3, 5)], "2d": [(2, 3, 2, 2)], "3d": [(2, 3, 2, 1, 2)]}


@pytest.mark.parametrize("kind", ["BatchNorm", "InstanceNorm"])
@pytest.mark.parametrize("dims", CHANNEL_SIZES)
@pytest.mark.parametrize("options", [{}, {"affine": True, "bias": False}, {"affine": False}, {"momentum": None}, {"momentum": 0.7, "eps": 0.1},
                                     {"track_running_stats": True}, {"track_running_stats": False}])
def test_batch_norm_and_instance_norm(kind, dims, options):
    def program(t):
        for sizes in CHANNEL_SIZES[dims]:
            layer = getattr(t.nn, kind + dims)(3, **options)
            for training in (True, True, False):
                layer.train(training)
                yield module_outcome(layer, t.randn(*sizes).requires_grad_())
            yield repr(layer), list(layer.state_dict().items())
            layer.reset_running_stats()
            yield list(layer.state_dict().values()), attempt(layer, t.ones(3)), attempt(layer, t.ones(1, 3))[0]
            if options.get("affine", kind == "BatchNorm"):
                yield attempt(layer, t.ones(2, 4, 5))[0]

    same(program)()


@same
def test_batch_norm_loads_states_of_version_1(t):
    layer, other = t.nn.BatchNorm1d(2), t.nn.BatchNorm1d(2)
    layer(t.randn(4, 2))
    state = layer.state_dict()
    del state["num_batches_tracked"]
    yield attempt(other.load_state_dict, state)[0]
    state._metadata[""]["version"] = 1
    yield repr(other.load_state_dict(state)), list(other.state_dict().items())


@same
def test_group_norm(t):
    for options in ({}, {"affine": False}, {"bias": False}, {"eps": 0.1, "dtype": t.float64}):
        layer = t.nn.GroupNorm(2, 4, **options)
        yield repr(layer), module_outcome(layer, t.randn(3, 4, 2, dtype=options.get("dtype")).requires_grad_())
    yield attempt(t.nn.GroupNorm, 3, 4)[0]


@same
def test_padding_layers(t):
    for kind, dims in [(kind, n) for kind in ("Constant", "Zero", "Reflection", "Replication", "Circular") for n in (1, 2, 3)]:
        x = t.arange(1.0, 1 + 3 ** (dims + 1)).reshape(1, *[3] * (dims + 1)).requires_grad_()
        for padding in (1, tuple(range(2)) * dims, (2, -1) * dims):
            layer = getattr(t.nn, f"{kind}Pad{dims}d")(*((padding, 1.5) if kind == "Constant" else (padding,)))
            yield repr(layer), layer.padding, attempt(outcome, layer, x) if padding != (2, -1) * dims or kind in ("Constant", "Zero") else None


@same
def test_pixel_shuffle_and_channel_shuffle(t):
    x = t.arange(96.0).reshape(2, 12, 2, 2).requires_grad_()
    for layer in (t.nn.PixelShuffle(2), t.nn.PixelUnshuffle(2), t.nn.ChannelShuffle(3)):
        yield repr(layer), outcome(layer, x)


@same
def test_pairwise_distance_cosine_similarity_and_normalize(t):
    nn, F = t.nn, t.nn.functional
    a, b = numbers(t, 3, 4), numbers(t, 3, 4)
    for kwargs in ({}, {"p": 1}, {"p": float("inf")}, {"keepdim": True}, {"eps": 0.1}):
        yield outcome(nn.PairwiseDistance(**kwargs), a, b)
    for dim in (0, 1, -1):
        yield outcome(nn.CosineSimilarity(dim), a, b), outcome(lambda a: F.normalize(a, dim=dim, p=3.0), a)
    yield F.cosine_similarity(t.zeros(2, 3), t.ones(3)), F.normalize(t.zeros(2, 2)), F.pairwise_distance(t.zeros(3), t.ones(2, 3))
    out = t.empty(2, 2)
    yield F.normalize(t.ones(2, 2), out=out) is out, out


@same(tolerance=1e-4)
def test_scaled_dot_product_attention(t):
    F = t.nn.functional
    q, k, v = numbers(t, 2, 4, 5, 8), numbers(t, 2, 4, 6, 8), numbers(t, 2, 4, 6, 3)
    allowed = t.rand(5, 6) > 0.5
    allowed[1] = False
    for kwargs in ({}, {"is_causal": True}, {"scale": 0.3}, {"attn_mask": t.randn(5, 6)}, {"attn_mask": allowed}):
        yield outcome(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, **kwargs), q, k, v)
    yield F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)
    yield attempt(F.scaled_dot_product_attention, q, k, v, allowed, 0.0, True)


def loss_program(name, options, sample):
    def program(t):
        for kwargs, reduction in product(options, ("mean", "sum", "none")):
            kwargs = {key: value(t) if callable(value) and key != "distance_function" else value for key, value in kwargs.items()}
            module = getattr(t.nn, name)(reduction=reduction, **kwargs)
            for inputs in sample(t):
                yield [repr(module)] + [attempt(outcome, module, *inputs)]
        yield list(module.state_dict())
        if name not in ("HuberLoss", "GaussianNLLLoss", "TripletMarginWithDistanceLoss"):
            for legacy in product((None, True, False), repeat=2):
                yield attempt(lambda: getattr(t.nn, name)(size_average=legacy[0], reduce=legacy[1]).reduction)
        yield attempt(getattr(t.nn, name)(reduction="other"), *inputs)[0] if name != "KLDivLoss" else None

    return program


def pair(t):
    yield numbers(t, 3, 4), numbers(t, 3, 4)


def probabilities(t):
    yield t.rand(3, 4).requires_grad_(), t.rand(3, 4).requires_grad_()


def signs(t, *sizes):
    return (t.rand(*sizes) > 0.5).float() * 2 - 1


def classes(t):
    yield numbers(t, 3, 5), t.tensor([1, 0, 4])
    yield numbers(t, 5), t.tensor(2)
    yield numbers(t, 2, 5, 3), t.tensor([[1, 0, 4], [2, 2, 3]])


LOSSES = {
    "L1Loss": ([{}], pair), "MSELoss": ([{}], pair), "SmoothL1Loss": ([{}, {"beta": 0.3}, {"beta": 0.0}], pair),
    "HuberLoss": ([{}, {"delta": 0.3}], pair), "KLDivLoss": ([{}, {"log_target": True}], probabilities),
    "BCELoss": ([{}, {"weight": lambda t: t.arange(4.0)}], probabilities),
    "BCEWithLogitsLoss": ([{}, {"weight": lambda t: t.arange(4.0)}, {"pos_weight": lambda t: t.arange(4.0)}],
                          lambda t: [(numbers(t, 3, 4), t.rand(3, 4))]),
    "NLLLoss": ([{}, {"weight": lambda t: t.arange(1.0, 6.0)}, {"ignore_index": 4}], classes),
    "CrossEntropyLoss": ([{}, {"weight": lambda t: t.arange(1.0, 6.0)}, {"ignore_index": 4}, {"label_smoothing": 0.1}],
                         lambda t: [*classes(t), (numbers(t, 3, 5), t.rand(3, 5).requires_grad_())]),
    "PoissonNLLLoss": ([{}, {"log_input": False}, {"full": True}], lambda t: [(t.rand(3, 4).requires_grad_(), t.rand(3, 4) * 5)]),
    "GaussianNLLLoss": ([{}, {"full": True}, {"eps": 0.4}],
                        lambda t: [(numbers(t, 3, 4), numbers(t, 3, 4), t.rand(*size).requires_grad_()) for size in ((3, 4), (3,), (3, 1))]
                        + [(numbers(t, 3, 4), numbers(t, 3, 4), 0.5)]),
    "MarginRankingLoss": ([{}, {"margin": 0.5}], lambda t: [(numbers(t, 4), numbers(t, 4), signs(t, 4))]),
    "CosineEmbeddingLoss": ([{}, {"margin": 0.5}], lambda t: [(numbers(t, 4, 3), numbers(t, 4, 3), signs(t, 4)),
                                                             (numbers(t, 3), numbers(t, 3), t.tensor(-1.0))]),
    "HingeEmbeddingLoss": ([{}, {"margin": 0.5}], lambda t: [(numbers(t, 4, 3), signs(t, 4, 3))]),
    "SoftMarginLoss": ([{}], lambda t: [(numbers(t, 4, 3), signs(t, 4, 3))]),
    "MultiLabelMarginLoss": ([{}], lambda t: [(numbers(t, 2, 4), t.tensor([[3, 0, -1, 1], [-1, 1, 2, 3]])),
                                             (numbers(t, 4), t.tensor([1, 2, -1, 0]))]),
    "MultiLabelSoftMarginLoss": ([{}, {"weight": lambda t: t.arange(4.0)}], lambda t: [(numbers(t, 3, 4), t.rand(3, 4))]),
    "MultiMarginLoss": ([{}, {"p": 2}, {"margin": 0.3}, {"weight": lambda t: t.arange(1.0, 6.0)}], lambda t: list(classes(t))[:2]),
    "TripletMarginLoss": ([{}, {"margin": 0.5, "p": 1}, {"swap": True}], lambda t: [tuple(numbers(t, 3, 4) for _ in range(3))]),
    "TripletMarginWithDistanceLoss": ([{}, {"swap": True}, {"distance_function": lambda x, y: (x - y).abs().sum(-1)}],
                                      lambda t: [tuple(numbers(t, 3, 4) for _ in range(3))]),
}

for _name, (_options, _sample) in LOSSES.items():
    globals()[f"test_{_name}"] = same(loss_program(_name, _options, _sample))


@same
def test_losses_with_weights(t):
    F = t.nn.functional
    a, b, weight = numbers(t, 3, 4), numbers(t, 3, 4), t.rand(3, 4)
    for function, reduction in product((F.mse_loss, F.l1_loss, F.huber_loss), ("mean", "sum", "none", "other")):
        yield attempt(lambda: outcome(lambda a, b: function(a, b, reduction=reduction, weight=weight), a, b))
    yield attempt(F.mse_loss, a, b, weight=t.ones(4)), attempt(F.huber_loss, a, b, weight=t.ones(4))
    yield attempt(F.binary_cross_entropy, t.rand(3, 4), t.rand(3, 4), t.rand(3, 1))


@same
def test_errors_of_losses(t):
    F, nn = t.nn.functional, t.nn
    for function in (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss):
        yield attempt(function, t.ones(2), t.ones(1, 2))
    yield attempt(F.binary_cross_entropy, t.ones(2), t.ones(3)), attempt(F.binary_cross_entropy_with_logits, t.ones(2), t.ones(3))
    yield attempt(F.binary_cross_entropy, t.full((1,), 2.0), t.ones(1))[0], attempt(nn.HuberLoss, delta="a")
    yield attempt(F.kl_div, t.ones(2), t.ones(2))
    yield attempt(F.mse_loss, t.ones(1), t.ones(1), True), attempt(F.mse_loss, t.ones(1), t.ones(1), reduction="x")
    yield attempt(F.mse_loss, t.ones(1), t.ones(1), None, False)
    yield attempt(F.poisson_nll_loss, t.ones(1), t.ones(1), reduction="x"), attempt(F.gaussian_nll_loss, t.ones(1), t.ones(1), -1.0)
    yield attempt(F.gaussian_nll_loss, t.ones(1), t.ones(1), -t.ones(1)), attempt(F.gaussian_nll_loss, t.ones(3), t.ones(3), t.ones(2))
    yield attempt(F.gaussian_nll_loss, t.ones(1), t.ones(1), 1.0, reduction="x")[0], attempt(F.cross_entropy, t.ones(2, 2), t.tensor([5, 0]))[0]
    yield attempt(F.nll_loss, t.ones(2, 3), t.ones(3)), attempt(F.cross_entropy, t.ones(2, 3), t.ones(3)), attempt(F.nll_loss, t.ones(2, 3), t.ones(2))[0]
    yield attempt(F.margin_ranking_loss, t.ones(1), t.ones(1), t.ones(1, 1))[0], attempt(F.cosine_embedding_loss, t.ones(1), t.ones(1), t.ones(1, 1))
    yield attempt(F.multi_margin_loss, t.ones(2), t.tensor(0), p=3), attempt(F.multi_margin_loss, t.ones(2), t.tensor(0), weight=t.ones(1, 2))
    yield attempt(nn.MultiMarginLoss, 3), attempt(nn.MultiMarginLoss, weight=t.ones(1, 2))
    yield attempt(F.multilabel_soft_margin_loss, t.ones(2), t.ones(2), reduction="x")
    for kwargs in ({"margin": 0}, {"reduction": "x"}):
        yield attempt(F.triplet_margin_loss, *[t.ones(1, 2)] * 3, **kwargs)
        yield attempt(F.triplet_margin_with_distance_loss, *[t.ones(1, 2)] * 3, **kwargs)
    yield attempt(nn.TripletMarginLoss, 0), attempt(nn.TripletMarginWithDistanceLoss, margin=0)
    yield attempt(F.triplet_margin_with_distance_loss, t.ones(1), t.ones(1), t.ones(1, 1))
