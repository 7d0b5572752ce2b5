"""Checks that nn.init gives PyTorch's numbers for the same seed, bit for bit, and that nn.utils gives PyTorch's values."""
import pytest

from nn_programs import attempt, gradus, same

PLAIN = [("uniform_", ()), ("uniform_", (-2.0, 3.0)), ("normal_", ()), ("normal_", (1.0, 0.1)), ("constant_", (0.3,)), ("ones_", ()),
         ("zeros_", ()),
         ("xavier_uniform_", ()), ("xavier_uniform_", (2.0,)), ("xavier_normal_", ()), ("kaiming_uniform_", ()), ("kaiming_normal_", ()),
         ("kaiming_uniform_", (0.1, "fan_out", "leaky_relu")), ("kaiming_normal_", (0, "fan_out", "relu")),
         ("kaiming_uniform_", (0, "fan_in", "tanh"))]


@same(tolerance=0)
def test_initializers_draw_the_numbers_of_pytorch(t):
    for (name, args), size in [(call, size) for call in PLAIN for size in ((5, 3), (2, 3, 4), (40, 7))]:
        tensor = t.empty(*size, requires_grad=True)
        yield name, getattr(t.nn.init, name)(tensor, *args) is tensor, tensor


@same(tolerance=0)
def test_initializers_with_other_dtypes_and_generators(t):
    for dtype in (t.float64, t.float16, t.bfloat16):
        yield t.nn.init.kaiming_uniform_(t.empty(4, 3, dtype=dtype)), t.nn.init.uniform_(t.empty(3, dtype=dtype))
    generator = t.Generator().manual_seed(5)
    yield t.nn.init.xavier_uniform_(t.empty(4, 3), generator=generator), t.nn.init.uniform_(t.empty(3))


@same
def test_trunc_normal(t):
    for args in ((), (0.0, 1.0, -0.5, 0.5), (0.5, 2.0, -1.0, 4.0), (0.0, 1.0, 2.0, 3.0), (0.0, 0.02), (3.0, 1.0, -1.0, 0.5), (0, 1, -1e-3, 1e-3)):
        tensor = t.empty(30, 5, requires_grad=True)
        yield attempt(t.nn.init.trunc_normal_, tensor, *args), tensor


@same
def test_sparse(t):
    yield t.nn.init.sparse_(t.empty(10, 4), 0.35), t.nn.init.sparse_(t.empty(4, 3, requires_grad=True), 0.5, std=2.0)
    yield attempt(t.nn.init.sparse_, t.empty(3), 0.1)


@same
def test_eye_and_dirac(t):
    init = t.nn.init
    yield init.eye_(t.empty(2, 3, requires_grad=True)), attempt(init.eye_, t.empty(3))
    for size, groups in (((3, 2, 3), 1), ((2, 3, 2, 5), 1), ((4, 2, 3), 2), ((2, 2, 3, 3, 3), 1), ((1, 4, 1), 1)):
        yield init.dirac_(t.empty(*size), groups)
    yield attempt(init.dirac_, t.empty(2, 2)), attempt(init.dirac_, t.empty(3, 2, 1), 2)


@same
def test_calculate_gain(t):
    for name in ("linear", "conv2d", "conv_transpose3d", "sigmoid", "tanh", "relu", "leaky_relu", "selu", "other"):
        yield attempt(t.nn.init.calculate_gain, name)
    yield t.nn.init.calculate_gain("leaky_relu", 0.3), t.nn.init.calculate_gain("leaky_relu", 2)
    yield attempt(t.nn.init.calculate_gain, "leaky_relu", "x"), attempt(t.nn.init.calculate_gain, "leaky_relu", True)


@same
def test_initializers_refuse_wrong_arguments(t):
    init = t.nn.init
    yield attempt(init.xavier_uniform_, t.empty(3)), attempt(init.kaiming_normal_, t.empty(3))
    yield attempt(init.kaiming_uniform_, t.empty(2, 2), mode="x")
    yield attempt(init.kaiming_uniform_, t.empty(0, 2)), attempt(init.kaiming_normal_, t.empty(2, 0)), attempt(init.orthogonal_, t.empty(3))


def test_orthogonal():
    for size in ((4, 3), (3, 4), (2, 3, 2)):
        rows = gradus.nn.init.orthogonal_(gradus.empty(*size), gain=2.0).flatten(1)
        rows = rows if rows.size(0) <= rows.size(1) else rows.t()
        assert (rows @ rows.t() - 4 * gradus.eye(rows.size(0))).abs().max().item() < 1e-5


def with_grads(t):
    parameters = [t.nn.Parameter(t.zeros(2, 2)), t.nn.Parameter(t.zeros(3)), t.nn.Parameter(t.zeros(1))]
    parameters[0].grad, parameters[1].grad = t.tensor([[1.0, -2.0], [3.0, 4.0]]), t.tensor([0.5, -6.0, 2.0])
    return parameters


@same
def test_clip_grad_norm_and_clip_grad_value(t):
    utils = t.nn.utils
    for max_norm, norm_type in ((1.0, 2.0), (100.0, 2.0), (2, 1), (1.0, float("inf"))):
        parameters = with_grads(t)
        yield utils.clip_grad_norm_(parameters, max_norm, norm_type), [p.grad for p in parameters]
    parameters = with_grads(t)
    yield utils.clip_grad_norm_((p for p in parameters), 1.0), utils.clip_grad_norm_(parameters[0], 0.1), parameters[0].grad
    yield utils.clip_grad_value_(parameters, 0.05), [p.grad for p in parameters]
    yield utils.get_total_norm([t.ones(4), t.ones(5)]), utils.get_total_norm([]), attempt(utils.clip_grad_norm_, iter(()), 1.0)
    yield attempt(utils.clip_grad_norm_, (p for p in ()), 1.0)
    parameters[0].grad = t.tensor([[float("nan"), 1.0], [1.0, 1.0]])
    yield attempt(utils.clip_grad_norm_, parameters, 1.0, error_if_nonfinite=True)
    parameters = with_grads(t)
    utils.clip_grads_with_norm_(parameters, 1.0, t.tensor(10.0))
    yield [p.grad for p in parameters]


@same
def test_parameters_to_vector_and_vector_to_parameters(t):
    net = t.nn.Linear(2, 3)
    vector = t.nn.utils.parameters_to_vector(net.parameters())
    yield vector
    t.nn.utils.vector_to_parameters(t.arange(9.0), net.parameters())
    yield net.weight, net.bias, attempt(t.nn.utils.vector_to_parameters, 3, net.parameters())
