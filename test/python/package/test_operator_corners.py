"""Tests special cases of operators, with values recorded from PyTorch, and objects that must live exactly as long as a call."""
import gc
import math
import random
import threading

import pytest
from both import caught, same
from leaks import lost

import gradus as torch

UNSORTED = torch.tensor([3.0, 1.0, 2.0, 2.0])
ORDER = torch.tensor([1, 2, 3, 0])
KEYS = torch.tensor([2.0, 0.0, 5.0, 1.0])


@pytest.mark.parametrize("padding_idx, wanted", [(None, [2, 1, 1]), (0, [0, 1, 1]), (1, [2, 0, 1]), (2, [2, 1, 0]), (-1, [2, 1, 0]), (-3, [0, 1, 1])])
def test_gradients_of_embedding_with_padding_idx(padding_idx, wanted):
    """The row of padding_idx gets no gradient of first or second order."""
    weight, rows = torch.arange(6.0).reshape(3, 2).requires_grad_(), torch.tensor([0, 1, 0, 2])
    result = torch.nn.functional.embedding(rows, weight, padding_idx=padding_idx)
    assert result.tolist() == [[0.0, 1.0], [2.0, 3.0], [0.0, 1.0], [4.0, 5.0]]
    seed = torch.ones(4, 2, requires_grad=True)
    first, = torch.autograd.grad(result, weight, seed, create_graph=True)
    assert first.tolist() == [[float(n)] * 2 for n in wanted]
    second, = torch.autograd.grad(first.sum(), seed)
    assert second.tolist() == [[float(wanted[i] > 0)] * 2 for i in rows.tolist()]


def test_searchsorted_with_sorter():
    assert torch.searchsorted(UNSORTED, KEYS, sorter=ORDER).tolist() == [1, 0, 4, 0]
    assert torch.searchsorted(UNSORTED, KEYS, right=True, sorter=ORDER).tolist() == [3, 0, 4, 1]
    found = torch.searchsorted(UNSORTED, KEYS, side="right", sorter=ORDER, out_int32=True)
    assert found.tolist() == [3, 0, 4, 1] and found.dtype is torch.int32


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_alpha_and_beta_of_addmm_baddbmm_and_addmv(dtype):
    a = torch.tensor([[1 + 2j, 0], [3j, 1]], dtype=dtype)
    beta, alpha = 2 - 1j, 1j
    wanted = beta * a + alpha * (a @ a)
    assert torch.addmm(a, a, a, beta=beta, alpha=alpha).tolist() == wanted.tolist()
    assert torch.baddbmm(a[None], a[None], a[None], beta=beta, alpha=alpha)[0].tolist() == wanted.tolist()
    assert torch.addmv(a[0], a, a[1], beta=beta, alpha=alpha).tolist() == (beta * a[0] + alpha * (a @ a[1])).tolist()
    assert torch.addmm(a, a, a, beta=1j).tolist() == (1j * a + a @ a).tolist()


def test_addmm_with_beta_0_ignores_nan_in_the_summand():
    """With beta=0, NaN and infinity in the first argument of addmm, the summand, are ignored."""
    nothing, ones = torch.tensor([[math.nan, 1.0], [2.0, math.inf]]), torch.ones(2, 2)
    assert torch.addmm(nothing, ones, ones, beta=0).tolist() == [[2.0, 2.0], [2.0, 2.0]]
    assert torch.baddbmm(nothing[None], ones[None], ones[None], beta=0).tolist() == [[[2.0, 2.0], [2.0, 2.0]]]
    assert torch.addmv(nothing[0], ones, ones[0], beta=0).tolist() == [2.0, 2.0]


def test_numpy_leaks_no_references():
    x, recorded = torch.ones(3), torch.ones(3, requires_grad=True) * 2
    for call in (x.numpy, lambda: x.numpy(force=True), lambda: recorded.numpy(force=True), lambda: recorded.detach().numpy(), lambda: x.__array__()):
        assert lost(call, x, recorded) == 0


def test_arguments_stay_alive_during_a_call_without_the_gil():
    """A tensor must stay alive while an operator reads it without the GIL, even if another thread removes the last reference to it from a list."""
    stop, holder = threading.Event(), [None]

    def drop():
        while not stop.is_set():
            holder[0] = None
            gc.collect(0)

    thread = threading.Thread(target=drop)
    thread.start()
    try:
        for _ in range(60):
            holder[0] = torch.ones(300_000)
            given = [torch.ones(300_000), holder[0] if holder[0] is not None else torch.ones(300_000)]
            taken = torch.cat(given).sum()
            del given[:]
            assert taken.item() == 600_000
    finally:
        stop.set()
        thread.join()


def test_equal_and_allclose():
    x = torch.ones(2, 3, requires_grad=True)
    assert torch.equal(x, torch.ones(2, 3)) and not torch.equal(x, torch.ones(1, 3)) and not torch.equal(x, torch.ones(3)) and not torch.equal(x, x * 2)
    assert torch.allclose(x, torch.ones(1, 3)) and not torch.allclose(x, x + 1e-3)
    assert torch.allclose(100 * x, 101 * x, rtol=0.02, atol=0) and not torch.allclose(100 * x, 101 * x, rtol=0, atol=0.02)
    assert torch.allclose(0 * x, 0.01 * x, rtol=0, atol=0.02) and not torch.allclose(0.01 * x, 0 * x, rtol=0.02, atol=0)
    assert torch.is_grad_enabled() and (x * 2).requires_grad


def test_strides_of_empty_tensors():
    """In the strides of a contiguous tensor, a dimension of size 0 counts as size 1."""
    assert torch.empty(2, 0, 3).stride() == (3, 3, 1) and torch.empty(0).stride() == (1,) and torch.empty(4, 2, 0, 5).stride() == (10, 5, 5, 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.int64])
def test_remainder_has_the_sign_of_the_divisor(dtype):
    """The remainder has the sign of the divisor. Zero remainders are compared without their sign."""
    for a in range(-6, 7):
        for b in (-3, -2, -1, 1, 2, 3):
            x, y = torch.tensor([a] * 20, dtype=dtype), torch.tensor([b] * 20, dtype=dtype)
            assert torch.remainder(x, y).tolist() == [a % b] * 20 == (x % b).tolist() and torch.fmod(x, y).tolist() == [math.fmod(a, b)] * 20
            assert torch.div(x, y, rounding_mode="floor").tolist() == [a // b] * 20 == (x // b).tolist()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_zero_remainders_have_the_sign_of_the_divisor(dtype):
    for a in (-4.0, -0.0, 0.0, 4.0):
        for b in (-2.0, 2.0, math.inf, -math.inf):
            if a == 0 or math.isfinite(b):
                for rest in (torch.tensor([a] * 20, dtype=dtype) % torch.tensor([b] * 20, dtype=dtype), torch.remainder(torch.tensor([a] * 3, dtype=dtype), b)):
                    assert all(r == 0 and math.copysign(1, r) == math.copysign(1, b) for r in rest.tolist()), (a, b)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_the_signs_of_zeros_in_a_complex_divisor_have_no_effect(dtype):
    inf = math.inf
    for zero in (complex(0.0, 0.0), complex(0.0, -0.0), complex(-0.0, 0.0), complex(-0.0, -0.0)):
        found = torch.tensor([complex(1, 2), complex(1, -2), complex(-1, 1)] * 5, dtype=dtype) / torch.tensor([zero] * 15, dtype=dtype)
        assert found.tolist() == [complex(inf, inf), complex(inf, -inf), complex(-inf, inf)] * 5


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
def test_pow_of_integers_with_negative_exponents(dtype):
    """A negative power x^-n of an integer is 1 / x^n rounded toward zero, which is 0 unless x is 1 or -1."""
    x, n = torch.tensor([1, 1, -1, -1, 2, -3], dtype=dtype), torch.tensor([-2, -3, -2, -3, -1, -2], dtype=dtype)
    assert torch.pow(x, n).tolist() == [1, 1, 1, -1, 0, 0]


def test_cummax_and_cummin_return_the_last_index_of_equal_elements():
    x = torch.tensor([1.0, 3.0, 3.0, 2.0, 3.0])
    values, indices = torch.cummax(x, 0)
    assert values.tolist() == [1.0, 3.0, 3.0, 3.0, 3.0] and indices.tolist() == [0, 1, 2, 2, 4]
    values, indices = torch.cummin(-x, 0)
    assert values.tolist() == [-1.0, -3.0, -3.0, -3.0, -3.0] and indices.tolist() == [0, 1, 2, 2, 4]


def test_an_empty_list_of_dimensions_of_squeeze_and_sum():
    """For squeeze an empty list of dimensions means no dimension, and no list means all dimensions. For reductions an empty list means all
    dimensions."""
    x = torch.ones(1, 2, 1)
    assert x.squeeze(()).shape == x.squeeze([]).shape == (1, 2, 1) and x.squeeze().shape == (2,) and x.sum(()).shape == ()


@pytest.mark.parametrize("start, count, step", [(2**53, 3, 1), (2**62, 3, 1), (-(2**63), 3, 1), (2**62 + 3, 3, -1), (2**63 - 8, 3, 2), (-5, 0, 1)])
def test_arange_of_integers_is_exact_beyond_2_to_the_53(start, count, step):
    """arange of integers is exact beyond 2^53, where doubles are not."""
    wanted = list(range(start, start + count * step, step))
    assert torch.arange(start, start + count * step, step).tolist() == wanted
    if step > 1:
        assert torch.arange(start, start + count * step - 1, step).tolist() == wanted


def test_var_and_std_with_a_correction_above_the_number_of_elements():
    """If `correction` is at least the number of elements, the divisor is clamped to 0. The result is then inf, or NaN if all elements are equal."""
    x, equal = torch.tensor([1.0, 2.0, 4.0]), torch.ones(3)
    for correction in (3, 4, 5.5):
        assert torch.var(x, 0, correction=correction).item() == torch.std(x, 0, correction=correction).item() == math.inf
        assert torch.var_mean(x, 0, correction=correction)[0].item() == torch.std_mean(x, 0, correction=correction)[0].item() == math.inf
        assert torch.var(equal, 0, correction=correction).isnan()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64])
def test_the_mean_beside_the_variance_of_infinite_elements(dtype):
    """The mean of one element is the element. An infinity that is not the first of several elements makes their mean infinite."""
    x = torch.tensor([math.inf, -math.inf, 2.0], dtype=dtype)
    for function in (torch.var_mean, torch.std_mean):
        for given, dim in ((x[:, None], 1), (x[None], 0)):
            spread, mean = function(given, dim=dim, correction=0)
            assert torch.equal(mean, x) and spread.isnan().tolist() == [True, True, False]
        assert function(torch.tensor([1.0, math.inf, math.inf], dtype=dtype))[1].real == math.inf


@pytest.mark.parametrize("weight, wanted", [(None, {"mean": 1.6778, "sum": 3.3557, "none": [2.0387, 0, 1.3170]}),
                                            ([1.0, 2.0, 3.0], {"mean": 1.4862, "sum": 5.9446, "none": [2.2710, 0, 3.6737]})])
def test_cross_entropy_with_label_smoothing_and_ignore_index(weight, wanted):
    """Targets equal to ignore_index count neither in the sum nor in the number of samples, with every reduction."""
    x = torch.tensor([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.5, 0.25, 0.25]]).log().requires_grad_()
    weight = None if weight is None else torch.tensor(weight)
    for reduction, value in wanted.items():
        loss = torch.nn.functional.cross_entropy(x, torch.tensor([0, 1, 2]), weight, ignore_index=1, label_smoothing=0.3, reduction=reduction)
        assert torch.allclose(loss, torch.tensor(value), rtol=0, atol=1e-4)
        grad, = torch.autograd.grad(loss.sum(), x)
        assert grad[1].tolist() == [0.0] * 3 and grad[0].abs().sum() > 0


@pytest.mark.parametrize("count", [1, 9, 10, 16, 17, 100])
def test_isin_keeps_the_value_of_a_single_element(count):
    """PyTorch's results depend on the number of test elements (docs/differences.md)."""
    small, tenth = torch.arange(count, dtype=torch.uint8), torch.full((count,), 0.1)
    for number, inside in ((256, False), (-256, False), (0, True), (2.5, False), (0.0, True)):
        for element in (number, torch.tensor(number), torch.tensor([number])):
            assert torch.isin(element, small).tolist() in (inside, [inside]) and torch.isin(element, small, invert=True).tolist() in (not inside, [not inside])
        assert torch.isin(small, number).any().item() is inside
    assert torch.isin(0.1, tenth) and torch.isin(tenth, 0.1).all() and not torch.isin(torch.tensor(0.1, dtype=torch.float64), tenth)


def test_scatter_refuses_a_source_smaller_than_its_index():
    """A source with fewer elements than its index is refused, so that no element is read out of bounds."""
    def index(*sizes):
        return torch.zeros(*sizes, dtype=torch.int64)

    x = torch.zeros(3, 3)
    for dim, i, source in ((0, index(2, 3), torch.ones(1, 3)), (0, index(2, 3), torch.ones(2, 2)), (1, index(2, 3), torch.ones(3, 2))):
        for call in (lambda: x.scatter(dim, i, source), lambda: x.scatter_add(dim, i, source), lambda: x.scatter_reduce(dim, i, source, "amax"),
                     lambda: x.scatter(dim, i, source, reduce="multiply"), lambda: x.scatter_(dim, i, source)):
            with pytest.raises(RuntimeError, match="to be no larger size than src"):
                call()
    assert x.tolist() == [[0.0] * 3] * 3


def test_fill_with_a_tensor_copies_the_value():
    value, x = torch.tensor(3.0, requires_grad=True), torch.zeros(3, 2).t()
    filled = torch.fill(x, value)
    with torch.no_grad():
        value.add_(1)
    assert filled.tolist() == [[3.0] * 3] * 2 and filled.stride() == x.stride() and filled._base is None
    filled.sum().backward()
    assert value.grad.item() == 6


@pytest.mark.parametrize("value", ["5 + 1j", "2 + 0j", "module.tensor(2 + 0j)", "module.tensor(2.5)", "module.tensor([2.5])"])
@pytest.mark.parametrize("dtype", ["float32", "complex64", "int64"])
def test_index_fill_takes_a_complex_value_only_for_a_complex_tensor(dtype, value):
    def program(module):
        try:
            return module.zeros(2, dtype=getattr(module, dtype)).index_fill(0, module.tensor([0]), eval(value, {"module": module})).tolist()
        except RuntimeError as error:
            return str(error)

    same(program)


@pytest.mark.parametrize("dtype, step", [(torch.float32, 2.0**-23), (torch.float64, 2.0**-52)])
def test_uniform_never_returns_its_upper_bound(dtype, step):
    """uniform_ never returns its upper bound, although half of the random numbers here would be rounded up to that bound."""
    assert torch.empty(1000, dtype=dtype).uniform_(1, 1 + step).tolist() == [1.0] * 1000


@pytest.mark.parametrize("seed", range(200))
def test_strides_of_copies(seed):
    """A copy is dense. Its dimensions have the order of the original's strides, even if elements overlap or strides are equal."""
    chosen = random.Random(seed)
    n = chosen.randint(1, 4)
    sizes, strides = [chosen.choice([0, 1, 2, 2, 3, 3]) for _ in range(n)], [chosen.choice([0, 1, 1, 2, 3, 6, 6, 12]) for _ in range(n)]

    def program(module):
        x = module.zeros(100).as_strided(sizes, strides)
        return [t.stride() for t in (module.empty_like(x), module.ones_like(x, dtype=module.int8), x.clone(), x.to(module.float64), x.clone(memory_format=module.contiguous_format))]

    same(program)


@pytest.mark.parametrize("accumulate", [False, True])
def test_the_result_of_put_lies_in_memory_as_a_copy_does(accumulate):
    def program(module):
        base, index, source = module.arange(24.0).view(2, 3, 4), module.tensor([1, -2]), module.tensor([50.0, 60.0])
        for x in (base, base.permute(2, 0, 1), base.permute(1, 2, 0), base[:, 1:2].transpose(0, 1), base[:, ::2].mT, base[:, :1].expand(2, 5, 4), base[0, 0]):
            for y in (x.put(index, source, accumulate), x.clone().put_(index, source, accumulate)):
                yield y.stride(), y.tolist()

    same(lambda module: list(program(module)))


@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_linspace_and_logspace_with_tensor_bounds(name):
    """linspace and logspace accept tensors as bounds. As in PyTorch, the result requires no gradient, even if a bound does."""
    import gradus
    from oracle import torch as pytorch
    for module in (gradus, pytorch):
        function, start = getattr(module, name), module.tensor(0.5, requires_grad=True)
        for end in (2.0, module.tensor(2, dtype=module.int64), module.tensor(2.0, requires_grad=True)):
            assert function(start, end, 4).tolist() == getattr(pytorch, name)(0.5, 2.0, 4).tolist()
            assert not function(start, end, 4).requires_grad
        with pytest.raises(RuntimeError, match=f"{name} only supports 0-dimensional start and end tensors"):
            function(start, module.ones(1), 4)
    assert gradus.logspace(0.9, 3, 1, dtype=gradus.int64).tolist() == pytorch.logspace(0.9, 3, 1, dtype=pytorch.int64).tolist() == [7]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "float16"])
def test_randperm_at_the_largest_size_of_a_dtype(dtype):
    def program(module):
        kind, found = getattr(module, dtype), []
        most = {"uint8": 256, "int8": 128, "int16": 32768, "float16": 2049}[dtype]
        for n in (most - 1, most, most + 1, most + 2):
            try:
                found.append(sorted(module.randperm(n, dtype=kind).tolist()) == list(range(n)))
            except RuntimeError as error:
                found.append(type(error).__name__)
        return found

    same(program)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_dropout_rounds_its_scale_factor_once(dtype):
    def program(module):
        x = module.full((2000,), 1.0, dtype=getattr(module, dtype))
        return [sorted(set(module.nn.functional.dropout(x, p).tolist())) for p in (0.1, 0.3, 0.37, 0.5, 0.9)]

    same(program)


def test_kron_refuses_more_than_64_dimensions():
    x = torch.ones([1] * 32)
    assert torch.kron(x, x).dim() == 32
    with pytest.raises(RuntimeError, match="too many dimensions"):
        torch.kron(torch.ones([1] * 33), x)


@pytest.mark.parametrize("beta, alpha", [(True, True), (False, True), (True, False), (2, 3), (0, 1)])
def test_addr_of_bools(beta, alpha):
    same(lambda module: module.addr(module.tensor([[True, False]] * 2), module.tensor([True, False]), module.tensor([False, True]), beta=beta, alpha=alpha))


def test_pos_weight_that_would_broadcast_the_loss_is_refused():
    x = torch.zeros(3)
    with pytest.raises(RuntimeError, match="output with shape \\[3\\] doesn't match the broadcast shape \\[2, 3\\]"):
        torch.nn.functional.binary_cross_entropy_with_logits(x, x, pos_weight=torch.ones(2, 3))


@pytest.mark.parametrize("values", [[1, 2], [True, False], [1j, 2j]])
def test_logsigmoid_refuses_integers_bools_and_complex_numbers(values):
    with pytest.raises(NotImplementedError, match="\"log_sigmoid_cpu\" not implemented for '(Long|Bool|ComplexFloat)'"):
        torch.nn.functional.logsigmoid(torch.tensor(values))


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0, 2.0, 3.0])
def test_cdist_of_points_with_nan(p):
    def program(module):
        x, y = module.tensor([[math.nan, 1], [1, 2], [math.inf, 0], [0, 0]]), module.tensor([[1.0, 1], [math.inf, 2]])
        return module.cdist(x, y, p=p).isnan().tolist()

    same(program)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(9000, 10), (300, 700), (3, 7, 90, 100)])
def test_nll_loss_does_not_depend_on_the_number_of_threads(shape, dtype):
    """nll_loss sums blocks of elements and then adds the sums of the blocks. The blocks do not depend on the number of threads. Targets equal to 2
    are ignored (ignore_index)."""
    generator, threads = torch.Generator().manual_seed(0), torch.get_num_threads()
    x = torch.rand(shape, generator=generator, dtype=dtype, requires_grad=True)
    weight = torch.rand(shape[1], generator=generator, dtype=dtype)
    target = torch.randint(0, shape[1], (shape[0], *shape[2:]), generator=generator)

    def losses():
        loss = torch.nn.functional.nll_loss(x, target, weight=weight, ignore_index=2)
        return loss.tolist(), torch.autograd.grad(loss, x)[0].tolist()

    found = []
    try:
        for n in (1, 2, 3, 8):
            torch.set_num_threads(n)
            found.append(losses())
    finally:
        torch.set_num_threads(threads)
    assert all(each == found[0] for each in found)
    chosen = weight[target] * (target != 2)
    wanted = -(x.gather(1, target.unsqueeze(1)).squeeze(1) * chosen).sum() / chosen.sum()
    assert math.isclose(found[0][0], wanted.item(), rel_tol=1e-5)
    assert torch.allclose(torch.tensor(found[0][1], dtype=dtype), torch.autograd.grad(wanted, x)[0])
    target.view(-1)[-1] = shape[1]
    with pytest.raises(IndexError, match=f"Target {shape[1]} is out of bounds."):
        losses()


def test_reductions_refuse_dtypes_with_the_texts_of_pytorch():
    def program(t):
        whole, truth, complex_ones = t.ones(3, dtype=t.int64), t.ones(3) > 0, t.ones(3) * 1j
        calls = [lambda: whole.mean(), lambda: truth.mean(0), lambda: t.ones(3).mean(dtype=t.int32), lambda: whole.nanmean(), lambda: complex_ones.nanmean(), lambda: t.norm(whole), lambda: whole.norm(2, 0), lambda: whole.std(),
                 lambda: t.nansum(complex_ones), lambda: complex_ones.max(0), lambda: t.min(complex_ones, 0)]
        calls += [lambda f=f, x=x, d=d: f(x, *d) for f in (t.argmax, t.argmin) for x in (truth, complex_ones) for d in ((), (0,))]
        return [caught(call) for call in calls]

    same(program)


def test_median_cond_and_triangular_solve_of_empty_tensors():
    def program(t):
        nothing = [t.median(t.empty(0, dtype=dtype)).item() for dtype in (t.int64, t.int32, t.uint8)] + [t.nanmedian(t.empty(0, dtype=t.int16)).item()]
        conditions = [t.linalg.cond(t.empty(3, 0), p).item() for p in (1, -1, float("inf"))]
        matrix = t.tensor([[2.0, 0.0], [1.0, 3.0]])
        copies = [t.triangular_solve(t.ones(*sizes, 2, 3), m, upper=False).cloned_coefficient for sizes, m in (((), matrix), ((), matrix.expand(2, 2, 2)), ((4, 1), matrix), ((3, 1), matrix.expand(2, 2, 2)))]
        return nothing, conditions, [c.tolist() for c in copies]

    same(program)


def test_lu_without_pivoting_of_empty_matrices():
    def program(t):
        matrices = [t.zeros(sizes) for sizes in ((0, 0), (0, 3), (3, 0), (2, 3, 0), (0, 2, 2))]
        found = [part for a in matrices for part in (*t.linalg.lu(a, pivot=False), *t.linalg.lu_factor(a, pivot=False), *t.linalg.lu_factor_ex(a, pivot=False))]
        return [(tuple(part.shape), part.stride(), part.dtype.itemsize) for part in found]

    same(program)


def test_error_texts_of_clamp_median_and_norm():
    def program(t):
        x = t.ones(2, 3)
        calls = [lambda: t.clamp(x), lambda: x.clamp_(), lambda: t.clip(x, None, None), lambda: t.median(x, dim=1, out=x), lambda: t.nanmedian(x, "a", True)]
        return [caught(call) for call in calls]

    same(program)
    assert caught(lambda: torch.norm(torch.ones(3), p="q")) == ("RuntimeError", 'linalg.matrix_norm: Order q not supported. It must be "fro" or "nuc".')


def sizes_that_do_not_fit(t):
    x, v = t.ones(2, 3), t.ones(3)
    return [lambda: t.outer(x, v), lambda: t.outer(v, x), lambda: t.tril(v), lambda: t.triu(v), lambda: t.cat([]), lambda: t.stack([]), lambda: t.stack([x, v]),
            lambda: x.flatten(1, 0), lambda: x.unflatten(1, ()), lambda: x.unflatten(1, (2, 2)), lambda: x.permute(0, 0), lambda: x.movedim((0, 0), (0, 1)),
            lambda: x.movedim((0, 1), (0,)), lambda: x.select(0, 5), lambda: t.tensor(1.0).select(0, 0), lambda: t.tensor(1.0).split(1), lambda: v.split(-1),
            lambda: v.split([1, 1]), lambda: v.split([-1, 4]), lambda: t.tensor(1.0).chunk(2), lambda: v.chunk(0), lambda: t.repeat_interleave(v, -1),
            lambda: t.index_select(t.tensor(1.0), 0, t.tensor([0, 0])), lambda: t.index_select(x, 0, t.tensor([[0]]))]


def dtypes_that_do_not_fit(t):
    x, v, whole = t.ones(2, 3), t.ones(3), t.tensor([0, 1])
    c, double = t.ones(2, dtype=t.complex64), t.ones(3, dtype=t.float64)
    return [lambda: ~x, lambda: ~c, lambda: x.bitwise_not(), lambda: c.sign(), lambda: c.sign_(), lambda: c.isposinf(), lambda: c.isneginf(), lambda: t.special.entr(c),
            lambda: t.special.i0e(c), lambda: t.special.bessel_j0(c), lambda: t.complex(v, double), lambda: t.complex(whole, whole), lambda: t.complex(v, whole),
            lambda: t.polar(v, double), lambda: t.repeat_interleave(v), lambda: t.repeat_interleave(v, v), lambda: t.where(x, x, x), lambda: x.masked_fill(x, 0),
            lambda: x.masked_scatter(x, x), lambda: whole.uniform_(), lambda: t.bincount(v), lambda: t.bincount(x), lambda: t.bincount(whole > 0), lambda: t.bincount(c)]


def extremes_of_empty_tensors(t):
    none, rows = t.ones(0), t.ones(2, 0)
    return [lambda: none.max(), lambda: none.min(), lambda: none.amax(), lambda: none.argmin(), lambda: rows.max(1), lambda: rows.amin(1), lambda: rows.argmax(1),
            lambda: none.aminmax()]


def equations(t):
    x, v = t.ones(2, 3), t.ones(3)
    terms = [("ij,jk,kl", x, x), ("ij", x, x), ("ij,jk", x, x), ("ijk", x), ("...ijk", x), ("i?", x), ("ij->?", x), ("ij->ii", x), ("ij->k", x), ("ii", x), ("i,i", v, v[:2])]
    return [lambda term=term: t.einsum(*term) for term in terms]


def copies_by_index(t):
    x, v, two = t.ones(2, 3), t.ones(3), t.tensor([0, 1])
    calls = [(0, t.tensor([[0, 1], [1, 0]]), x), (0, two, t.tensor(1.0)), (0, two, v), (0, v[:2], x), (0, two, x.double()), (0, two, t.ones(3, 3))]
    return [lambda call=call: x.index_copy(*call) for call in calls]


def searches(t):
    x, v = t.ones(2, 3), t.ones(3)
    return [lambda: t.searchsorted(v[0], v), lambda: t.searchsorted(x, v), lambda: t.searchsorted(v, v, side="q"), lambda: t.searchsorted(v, v, side="left", right=True),
            lambda: t.searchsorted(v, v, sorter=v)]


def numbers_that_do_not_fit(t):
    """Returns calls that must be refused, e.g. because a number is complex while the result is real, or exceeds the range of the dtype. No part of
    such a number may be dropped silently."""
    x, bytes_ = t.ones(2, 3), t.ones(2, 2, dtype=t.uint8)
    return [lambda: t.addmm(x, x[:, :2], x, alpha=1j), lambda: t.addmm(x, x[:, :2], x, beta=1j), lambda: t.addmv(x[:, 0], x, x[0], alpha=1j),
            lambda: t.baddbmm(x, x[None, :, :2], x[None], alpha=1j), lambda: t.addbmm(x, x[None, :, :2], x[None], beta=1j), lambda: t.addmm(x, x[:, :2], x, alpha=1e300),
            lambda: t.addmm(bytes_, bytes_, bytes_, alpha=300), lambda: t.addr(x, x[:, 0], x[0], alpha=True), lambda: t.addr(x, x[:, 0], x[0], beta=False),
            lambda: t.arange(1j, 2), lambda: t.arange(1, 2j), lambda: t.arange(1, 2, 1j), lambda: x.histc(min=1j), lambda: x.histc(max=1j), lambda: t.dist(x, x, 1j),
            lambda: x.norm(1j), lambda: t.linalg.vector_norm(x, 1j)]


def dtypes_of_results_that_do_not_fit(t):
    x, c = t.ones(2, 3), t.ones(2, dtype=t.complex64)
    return [lambda: x.norm(dtype=t.int64), lambda: x.norm(dtype=t.float16), lambda: x.norm(dtype=t.complex64), lambda: c.norm(dtype=t.float32), lambda: x.nanmean(dtype=t.int64),
            lambda: c.deg2rad(), lambda: c.rad2deg(), lambda: t.heaviside(c, c), lambda: t.isin(c, c), lambda: (x > 0).mvlgamma(1), lambda: t.polar(x.long(), x.long()),
            lambda: x.index_fill(0, t.tensor([[0, 1]]), 1)]


def parameters_of_norms(t):
    x, v, nn = t.ones(5, 5, 5), t.ones(5), t.nn.functional
    calls = [(x.double(), v, v), (x, v.double(), v), (x, v, v.double()), (x, None, v.half()), (x.half(), v.half(), v), (x.half(), v, v.half()), (x.bfloat16(), v.half(), v)]
    return [*(lambda call=call: nn.group_norm(call[0], 5, *call[1:]) for call in calls),
            *(lambda training=training, given=given: nn.batch_norm(x, *given, training=training) for training in (False, True) for given in ((None, v), (v, None))),
            lambda: t.native_batch_norm(x, v, v, None, v, True, 0.5, 0.6), lambda: nn.instance_norm(x, v, None), lambda: nn.instance_norm(x, None, v, use_input_stats=False)]


@pytest.mark.parametrize("calls", [sizes_that_do_not_fit, dtypes_that_do_not_fit, extremes_of_empty_tensors, equations, copies_by_index, searches,
                                   numbers_that_do_not_fit, dtypes_of_results_that_do_not_fit, parameters_of_norms], ids=lambda calls: calls.__name__)
def test_error_texts_are_those_of_pytorch(calls):
    same(lambda t: [caught(call) for call in calls(t)])


def test_error_texts_that_are_more_precise_than_those_of_pytorch():
    x, v, rows = torch.ones(2, 3), torch.ones(3), torch.ones(2, 0)
    c, double = torch.ones(2, dtype=torch.complex64), torch.ones(3, dtype=torch.float64)
    refusals = {
        "index_select(): Expected dtype int32 or int64 for index, but got float32": lambda: x.index_select(0, v),
        "masked_select: expected BoolTensor for mask, but got mask with dtype float": lambda: x.masked_select(x),
        "scatter(): Expected self.dtype to be equal to src.dtype, but got float32 and float64": lambda: v.scatter(0, torch.tensor([0]), double),
        "both dimension lists should have same length, got 1 and 2": lambda: torch.tensordot(x, x, ([0], [0, 1])),
        "torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: 2 dimensions": lambda: torch.meshgrid(x, v, indexing="ij"),
        "dot: expected both vectors to have same dtype, but found Float and Double": lambda: torch.dot(v, double),
        "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor [3] and got sorter tensor [1]":
            lambda: torch.searchsorted(v, v, sorter=torch.tensor([0])),
        "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: [2, 4] at dimension 1 "
        "and source slice shape: [2, 5] at dimension 1.": lambda: torch.ones(2, 3, 4).index_copy(1, torch.tensor([0, 1]), torch.ones(2, 2, 5)),
        "Sort does not support complex dtypes on CPU": c.sort,
        "topk does not support complex dtypes on CPU": lambda: c.topk(1),
        "permute(): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions "
        "i.e. input.dim() = 2 is not equal to len(dims) = 1": lambda: x.permute(0),
    }
    assert [caught(call) for call in refusals.values()] == [("RuntimeError", text) for text in refusals]
    assert caught(x.index_fill, 0, v, 1) == ("IndexError", "index_fill_(): Expected dtype int32/int64 for index, but got float32")
    assert caught(torch.cross, x > 0, x > 0) == ("NotImplementedError", "\"cross_cpu\" not implemented for 'Bool'")
    assert caught(rows.aminmax, dim=1) == ("IndexError", "aminmax(): Expected reduction dim 1 to have non-zero size.")
    assert caught(rows.aminmax, dim=5) == ("IndexError", "Dimension out of range (expected to be in range of [-2, 1], but got 5)")


def test_dim_order():
    def program(t):
        x, shifted = t.ones(2, 3, 5, 7), t.ones(2, 3, 5, 7).permute(2, 0, 3, 1)
        channels, ones, rows = x.contiguous(memory_format=t.channels_last), t.empty(1, 4, 1, 4), t.empty(3, 1).expand(3, 4)
        found = [one.dim_order() for one in (x, shifted, channels, ones, rows, t.tensor(1), t.ones(3), t.empty(2, 1, 3).transpose(0, 2))]
        formats = [t.contiguous_format, t.channels_last]
        found += [one.dim_order(ambiguity_check=formats) for one in (x, channels, ones)]
        return found, [caught(one.dim_order, ambiguity_check=check) for one, check in ((ones, True), (rows, True), (rows, formats), (x, "no"), (x, ["no"]))]

    same(program)


def test_embedding_bag_with_the_deprecated_argument_order():
    def program(t):
        rows, bags = t.tensor([[1.0, 2.0], [3.0, 4.0]]), t.tensor([[0, 1], [1, 1]])
        with pytest.warns(UserWarning, match="Argument order of nn.functional.embedding_bag was changed"):
            return t.nn.functional.embedding_bag(rows, bags, mode="sum")

    same(program)


def test_calls_that_pytorch_refuses():
    """Calls that PyTorch refuses and Gradus computes give the results in docs/differences.md."""
    x, mask, whole = torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([True, False, True]), torch.tensor([1, 2, 3])
    half = torch.tensor([[0.0, 0.0], [3.0, 4.0]], dtype=torch.float16)
    assert torch.full(2, 0.5).tolist() == [0.5, 0.5] and torch.flip(x, dims=1).tolist() == [[4.0, 2.0, 1.0]]
    out = torch.empty(0)
    assert torch.flip(x, [1], out=out) is out and out.tolist() == [[4.0, 2.0, 1.0]]
    assert mask.topk(2).values.tolist() == [True, True] and mask.kthvalue(1).values.item() is False and mask.median().item() is True
    assert torch.isin(mask, torch.tensor([True])).tolist() == mask.tolist()
    assert torch.nn.functional.hardshrink(whole, 2).tolist() == [0, 0, 3] and torch.cdist(half, half).tolist() == [[0.0, 5.0], [5.0, 0.0]]
    assert torch.lerp(whole, whole + 2, 0.5).tolist() == [2.0, 3.0, 4.0]
    start = torch.tensor([1.0, 2.0, 4.0], requires_grad=True)
    between = torch.lerp(start, torch.zeros(3), mask)
    between.sum().backward()
    assert between.tolist() == [0.0, 2.0, 0.0] and start.grad.tolist() == [0.0, 1.0, 0.0]
    product = torch.cross(whole, x[0], dim=0)
    assert product.dtype is torch.float32 and product.tolist() == [2.0, -1.0, 0.0]


def gradient_of_exponent(torch, base):
    exponent = torch.tensor([3.0, 2.0], dtype=torch.float64, requires_grad=True)
    torch.pow(base, exponent).sum().backward()
    return (exponent.grad * 2**40).round() / 2**40  # the last bits depend on the implementations of pow and log


def gradient_of_margins_of_0(t):
    x = t.tensor([[1.0, 0, 0.5, 0]], requires_grad=True)
    t.nn.functional.multi_margin_loss(x, t.tensor([0])).backward()
    return x.grad


COMBINATIONS = {
    "rms_norm of bfloat16 with the default eps": lambda t: t.nn.functional.rms_norm(t.tensor([2.0**-5, 2.0**-4], dtype=t.bfloat16), [2]),
    "rms_norm of float16 with the default eps": lambda t: t.nn.functional.rms_norm(t.tensor([2.0**-5, 2.0**-4], dtype=t.float16), [2]),
    "rms_norm of complex numbers with the default eps": lambda t: t.nn.functional.rms_norm(t.tensor([3e-4j, 4e-4], dtype=t.complex64), [2]).abs().mul(2**10).round(),
    "multi_margin_loss with margins of 0": gradient_of_margins_of_0,
    "topk of a number with k = 0": lambda t: t.topk(t.tensor(2.0), 0),
    "topk of a vector with k = 0": lambda t: t.topk(t.tensor([2.0]), 0),
    "nextafter from float16 infinities": lambda t: t.nextafter(t.tensor([math.inf, -math.inf, 65504], dtype=t.float16), t.tensor([0, 0, math.inf], dtype=t.float16)),
    "nextafter from a bfloat16 infinity": lambda t: t.nextafter(t.tensor(math.inf, dtype=t.bfloat16), t.tensor(0.0, dtype=t.bfloat16)),
    "float64 gradient of the exponent of a number": lambda t: gradient_of_exponent(t, 2.5),
    "float64 gradient of the exponent of integers": lambda t: gradient_of_exponent(t, t.tensor([3, 5])),
    "float64 gradient of the exponent of float32 numbers": lambda t: gradient_of_exponent(t, t.tensor([3.0, 5.0])),
    "clamp of integers by a 0-d float64 bound": lambda t: t.clamp(t.tensor([1, 2]), max=t.tensor(1.5, dtype=t.float64)),
    "clamp of a number by a 0-d bound of a wider dtype": lambda t: t.clamp(t.tensor(1, dtype=t.bfloat16), min=t.tensor(2.0)),
    "clamp of a bool by a 0-d bound": lambda t: t.clamp(t.tensor([True]), t.tensor(False)),
    "clamp by a tensor and a number": lambda t: t.clamp(t.tensor([1.0]), t.tensor(2.0), 3.0),
    "isclose of integers at both ends of int64": lambda t: t.isclose(t.tensor([2**63 - 1, 0, 5]), t.tensor([1 - 2**63, -(2**63), 5])),
    "bincount of nothing with weights": lambda t: t.bincount(t.tensor([], dtype=t.int64), t.tensor([]), 2),
    "sum of large integers into float64": lambda t: t.sum(t.tensor([2**62] * 4), 0, out=t.zeros((), dtype=t.float64)),
    "cumulative product of uint8 into float64": lambda t: t.cumprod(t.tensor([200] * 9, dtype=t.uint8), 0, out=t.zeros(9, dtype=t.float64)),
    "sum of integers into int32": lambda t: t.sum(t.tensor([7, 8]), 0, out=t.zeros((), dtype=t.int32)),
    "addbmm of matrices without rows": lambda t: t.addbmm(t.ones(0, 3), t.ones(2, 0, 4), t.ones(2, 4, 3)),
    "addbmm of no matrices": lambda t: t.addbmm(t.ones(2, 3), t.ones(0, 2, 4), t.ones(0, 4, 3)),
    "einsum of bools over a dimension of size 1": lambda t: t.einsum("aa,b->b", t.ones(1, 1, dtype=t.bool), t.ones(2, dtype=t.bool)),
    "einsum of one bool tensor over a dimension of size 1": lambda t: t.einsum("ab->b", t.ones(1, 2, dtype=t.bool)),
}


@pytest.mark.parametrize("name", COMBINATIONS)
def test_unusual_combinations_agree_with_pytorch(name):
    def program(t):
        results = COMBINATIONS[name](t)
        return [(str(result.dtype).split(".")[-1], result) for result in (results if isinstance(results, tuple) else (results,))]

    same(program)


def test_gradient_of_ldexp_by_large_integers_is_computed_in_float64():
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    torch.ldexp(x, torch.tensor([200, -200])).sum().backward()
    assert x.grad.tolist() == [2.0**200, 2.0**-200]
