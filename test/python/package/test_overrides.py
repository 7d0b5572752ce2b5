"""Modes that take over calls, and what overrides says of functions, beside PyTorch."""
import threading

import gradus
import pytest
from both import part
from nn_programs import attempt, same

from oracle import torch


def recording(t, **answers):
    """A mode that notes names and types, and answers for some functions itself."""

    class Mode(t.overrides.TorchFunctionMode):
        def __init__(self, label=""):
            super().__init__()
            self.seen, self.label = [], label

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append((self.label, func.__name__, [kind.__name__ for kind in types], len(args), sorted(kwargs or {})))
            return answers[func.__name__] if func.__name__ in answers else func(*args, **(kwargs or {}))

    return Mode


@same
def test_calls_reach_the_mode(t):
    part(t, "overrides")
    x, y = t.ones(2, 3), t.nn.Parameter(t.ones(3))
    with recording(t)() as mode:
        for call in (lambda: x + y, lambda: x * 2, lambda: t.neg(x), lambda: x @ y, lambda: x.add(1, alpha=2), lambda: t.add(x, 1), lambda: t.ones(2),
                     lambda: t.zeros((2, 2), dtype=t.int64), lambda: t.cat([x, x]), lambda: x.sum(0), lambda: t.stack((x, x), dim=1), lambda: x.to(t.float64),
                     lambda: x.view(3, 2), lambda: x.size(0), lambda: x.float(), lambda: t.where(x > 0, x, 0), lambda: x.max(1).values, lambda: x.exp_(), lambda: t.pow(x, 2),
                     lambda: t.nn.functional.relu(x), lambda: t.nn.functional.linear(x, t.ones(4, 3))):
            before = len(mode.seen)
            result = call()
            yield result, [name for _, name, _, _, _ in mode.seen[before:]][:1], [[kind for kind in kinds if kind != "Tensor"] for _, _, kinds, _, _ in mode.seen[before:]][:1]
    yield len(mode.seen) > 20, t.ones(2) + 1


@same
def test_functions_of_tensors_given_one_by_one(t):
    part(t, "overrides")

    class Recorded(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, [kind.__name__ for kind in types if kind is not t.Tensor], len(args), kwargs

    recorded, plain = t.ones(3).as_subclass(Recorded), t.ones(2)
    for call in (lambda x: t.broadcast_tensors(plain[:, None], x), lambda x: t.block_diag(x, plain), lambda x: t.cartesian_prod(plain, x),
                 lambda x: t.meshgrid(x, plain, indexing="xy"), lambda x: t.meshgrid([plain, x], indexing="ij"), lambda x: t.block_diag()):
        yield call(recorded), call(t.zeros(3))
        with recording(t)() as mode:
            call(plain)
        yield [name for _, name, _, _, _ in mode.seen][:1]


@same
def test_answers_of_a_mode(t):
    part(t, "overrides")
    with recording(t, add=3, ones="made", __get__="read")():
        yield t.add(t.zeros(1), 1), t.zeros(1) + 1, t.ones(5), t.zeros(1).shape
    yield t.ones(1) + 1


@same
def test_nested_modes(t):
    part(t, "overrides")
    kind = recording(t)
    outer, inner = kind("outer"), kind("inner")
    with outer, inner:
        t.add(t.zeros(1), 1)
    yield [seen[:2] for seen in inner.seen], [seen[:2] for seen in outer.seen]
    with outer:
        with t.overrides.BaseTorchFunctionMode():
            t.zeros(1)
    yield [seen[:2] for seen in outer.seen], t.overrides._get_current_function_mode()
    same_again = kind("again")
    with same_again, same_again:
        t.zeros(1)
    yield [seen[:2] for seen in same_again.seen]


@same
def test_errors_leave_the_stack(t):
    part(t, "overrides")

    class Failing(t.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise KeyError(func.__name__)

    with Failing() as mode:
        yield attempt(t.ones, 2), attempt(lambda: t.overrides._get_current_function_mode() is mode), attempt(t.zeros, 2)
    with t.overrides.TorchFunctionMode():
        yield attempt(t.ones, 2)[0]
    yield t.ones(2), attempt(t.overrides._pop_mode)[0], attempt(t.overrides.BaseTorchFunctionMode.push)[1]


@same
def test_not_implemented(t):
    part(t, "overrides")

    class Mode(t.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    class Mine(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "mine"

    with Mode():
        yield attempt(lambda: t.ones(2))[0], t.add(mine, 1) if (mine := None) else None
    mine = t.ones(2).as_subclass(Mine)
    with Mode():
        yield t.add(mine, 1), attempt(lambda: t.nn.functional.relu(mine))
    with t._C.DisableTorchFunctionSubclass():
        yield type(t.add(mine, 1)).__name__
    with recording(t)() as mode, t._C.DisableTorchFunction():
        t.add(mine, 1)
    yield mode.seen


@same
def test_modes_are_of_a_thread(t):
    part(t, "overrides")
    seen = []
    with recording(t)() as mode:
        other = threading.Thread(target=lambda: seen.append((t.ones(2) + 1, len(mode.seen))))
        other.start()
        other.join()
        t.ones(1)
    yield seen, len(mode.seen)


@same
def test_backward_and_hooks_inside_of_a_mode(t):
    part(t, "overrides")
    x = t.ones(2, requires_grad=True)
    with t.overrides.BaseTorchFunctionMode():
        layer = t.nn.Linear(2, 1)
        loss = layer(x * 2).sum()
        loss.backward()
        optimizer = t.optim.SGD(layer.parameters(), 0.1)
        optimizer.step()
        yield x.grad, layer.weight, loss.item(), loss.tolist(), x[0], x[x > 0], list(x), len(x), bool((x > 0).all()), repr(x)
        x.data[0] = 3
    yield x


@same
def test_functions_that_can_be_taken_over(t):
    overrides = part(t, "overrides")

    @overrides.wrap_torch_function(lambda x, y=None: (x, y))
    def double(x, y=None):
        return x * 2

    class Mine:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, [kind.__name__ for kind in types], len(args)

    yield double(t.ones(1)), double(Mine()), double(t.ones(1), Mine()), overrides.has_torch_function((t.ones(1), 2)), overrides.has_torch_function((Mine(),))
    yield overrides.has_torch_function_unary(Mine()), overrides.has_torch_function_variadic(1, Mine()), overrides.is_tensor_like(Mine()), overrides.is_tensor_like(3)
    yield [overrides.resolve_name(f) for f in (t.add, t.Tensor.add, t.nn.functional.relu, t.Tensor.shape.__get__, print)]
    yield [overrides.is_tensor_method_or_property(f) for f in (t.add, t.Tensor.add, t.Tensor.shape.__get__)]
    with recording(t)() as mode:
        double(t.ones(1))
    yield [name for _, name, _, _, _ in mode.seen if name != "wrapped"][:2]


def test_overridable_functions():
    found = gradus.overrides.get_overridable_functions()
    assert gradus.add in found[gradus] and gradus.Tensor.add in found[gradus.Tensor] and gradus.manual_seed not in found[gradus]
    assert len(found[gradus]) > 300 and len(gradus.overrides.get_testing_overrides()) > 800
    theirs = {f.__name__ for f in torch.overrides.get_overridable_functions()[torch] if hasattr(gradus, f.__name__)}
    ours = {f.__name__ for f in found[gradus]}
    assert len(theirs - ours) < 10, sorted(theirs - ours)


@pytest.mark.filterwarnings("ignore")
def test_a_mode_may_push_and_pop_in_any_order():
    with pytest.raises(RuntimeError, match="no mode to pop"):
        gradus._C._pop_torch_function_stack()
    gradus._C._push_on_torch_function_stack(gradus.overrides.BaseTorchFunctionMode())
    assert gradus.ones(2).tolist() == [1, 1]
    gradus._C._pop_torch_function_stack()


def test_functions_of_pytorch_find_their_counterparts():
    x = gradus.arange(6.0).reshape(2, 3).requires_grad_()
    distance = torch.nn.PairwiseDistance()(x, gradus.ones(3))
    assert type(distance) is gradus.Tensor and distance.tolist() == gradus.nn.PairwiseDistance()(x, gradus.ones(3)).tolist() and distance.requires_grad
    assert gradus.equal(torch.add(x, x), x + x) and gradus.equal(torch.linalg.norm(x, dim=1), gradus.linalg.norm(x, dim=1))
    assert [part.shape for part in torch.split(x, 2, dim=1)] == [(2, 2), (2, 1)]
    with pytest.raises(TypeError, match="no implementation found for 'fbgemm_pack_gemm_matrix_fp16' on tensors of gradus"):
        torch.fbgemm_pack_gemm_matrix_fp16(x)

    class Subclass(gradus.Tensor):
        pass

    assert type(torch.mul(x.as_subclass(Subclass), 2)) is Subclass
