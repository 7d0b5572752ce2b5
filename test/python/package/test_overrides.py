"""Compares modes that intercept calls, and the functions of torch.overrides, with PyTorch."""
import copy
import io
import operator
import pickle
import threading
import warnings

import gradus
import numpy
import pytest
from both import submodule
from nn_programs import attempt, same

from oracle import needs_torch, torch


def recording(t, **answers):
    """Returns a subclass of TorchFunctionMode that records the names and types of intercepted calls. A call of a function named in `answers` returns
    answers[name]."""

    class Mode(t.overrides.TorchFunctionMode):
        def __init__(self, label=""):
            super().__init__()
            self.seen, self.label = [], label

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append((self.label, func.__name__, [kind.__name__ for kind in types], len(args), sorted(kwargs or {})))
            return answers[func.__name__] if func.__name__ in answers else func(*args, **(kwargs or {}))

    return Mode


@same
def test_a_torch_function_mode_receives_calls(t):
    submodule(t, "overrides")
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
def test_functions_with_variable_numbers_of_tensors_call_torch_function(t):
    submodule(t, "overrides")

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
def test_a_mode_receives_functions_of_linalg_fft_and_special(t):
    submodule(t, "overrides")
    x = t.eye(2).requires_grad_()
    with recording(t)() as mode:
        for call in (lambda: t.linalg.solve(x, x), lambda: t.linalg.matmul(x, x), lambda: t.fft.fft(x), lambda: t.special.entr(x), lambda: t.special.psi(x), lambda: t.digamma(x),
                     lambda: t.special.polygamma(1, x), lambda: t.special.round(x, decimals=1)):
            before = len(mode.seen)
            call()
            yield [name for _, name, _, _, _ in mode.seen[before:]][:1]

    class Named(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    named = x.detach().as_subclass(Named)
    yield t.autograd.grad(named, x), t.special.gammaln(named), t.lgamma(named), attempt(lambda: t.linalg.solve(3, 4)), attempt(lambda: t.special.psi(3)), attempt(lambda: t.fft.fft(3))
    for space, names in ((t.linalg, ("solve", "matmul")), (t.fft, ("fft", "rfft2")), (t.special, ("psi", "entr", "expit")), (t.autograd, ("grad", "backward"))):
        functions = [getattr(space, name) for name in names]
        yield [function.__name__ for function in functions], [pickle.loads(pickle.dumps(function)) is function for function in functions]


@same
def test_results_of_a_mode_replace_those_of_the_function(t):
    submodule(t, "overrides")
    with recording(t, add=3, ones="made", __get__="read")():
        yield t.add(t.zeros(1), 1), t.zeros(1) + 1, t.ones(5), t.zeros(1).shape
    yield t.ones(1) + 1


@same
def test_nested_modes(t):
    submodule(t, "overrides")
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
def test_an_exception_in_a_mode_keeps_the_mode_stack_valid(t):
    submodule(t, "overrides")

    class Failing(t.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise KeyError(func.__name__)

    with Failing() as mode:
        yield attempt(t.ones, 2), attempt(lambda: t.overrides._get_current_function_mode() is mode), attempt(t.zeros, 2)
    with t.overrides.TorchFunctionMode():
        yield attempt(t.ones, 2)[0]
    yield t.ones(2), attempt(t.overrides._pop_mode)[0], attempt(t.overrides.BaseTorchFunctionMode.push)[1]


@same
def test_a_mode_that_returns_not_implemented(t):
    submodule(t, "overrides")

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
def test_modes_are_thread_local(t):
    submodule(t, "overrides")
    seen = []
    with recording(t)() as mode:
        other = threading.Thread(target=lambda: seen.append((t.ones(2) + 1, len(mode.seen))))
        other.start()
        other.join()
        t.ones(1)
    yield seen, len(mode.seen)


@same
def test_backward_and_hooks_inside_of_a_mode(t):
    submodule(t, "overrides")
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
def test_wrap_torch_function_and_handle_torch_function(t):
    overrides = submodule(t, "overrides")

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


def test_get_overridable_functions():
    found = gradus.overrides.get_overridable_functions()
    assert gradus.add in found[gradus] and gradus.Tensor.add in found[gradus.Tensor] and gradus.manual_seed not in found[gradus]
    assert len(found[gradus]) > 300 and len(gradus.overrides.get_testing_overrides()) > 800
    theirs = {f.__name__ for f in torch.overrides.get_overridable_functions()[torch] if hasattr(gradus, f.__name__)}
    ours = {f.__name__ for f in found[gradus]}
    assert len(theirs - ours) < 10, sorted(theirs - ours)


@pytest.mark.filterwarnings("ignore")
def test_push_and_pop_of_the_mode_stack():
    with pytest.raises(RuntimeError, match="no mode to pop"):
        gradus._C._pop_torch_function_stack()
    gradus._C._push_on_torch_function_stack(gradus.overrides.BaseTorchFunctionMode())
    assert gradus.ones(2).tolist() == [1, 1]
    gradus._C._pop_torch_function_stack()


def test_functions_of_pytorch_given_gradus_tensors():
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


# ---- __torch_function__ of subclasses -------------------------------------------------------------------------------------------------------


def logging(t):
    """Returns (a subclass of Tensor, a list). The subclass appends to the list the names of the functions that its __torch_function__ receives."""
    seen = []

    class Logged(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(f"{func.__self__.__name__}.__get__" if func.__name__ == "__get__" else func.__name__)
            with t._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

    return Logged, seen


def functions_received(t, call, dtype="float32"):
    """Returns the names of the functions that the __torch_function__ of a subclass receives during a call."""
    kind, seen = logging(t)
    tensor = t.ones(2, 2, dtype=getattr(t, dtype)).as_subclass(kind)
    seen.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            call(tensor)
        except Exception as error:
            return list(seen), type(error).__name__
    return list(seen), "returned"


# Methods for which __torch_function__ receives other calls than in PyTorch, with the reason.
NOT_ASKED_ALIKE = {
    "_grad": "another name of grad; __torch_function__ receives the name by which the gradient was read",
    "logsumexp": "dim may be absent here",
    "__dir__": "the method is that of object",
    "__rdiv__": "like all slots it calls __torch_function__ before it checks its arguments; "
                "test_torch_function_of_subclasses_receives_arithmetic_operators calls these with arguments",
}
NOT_ASKED_ALIKE.update(dict.fromkeys(("__floordiv__", "__ipow__", "__pow__", "__rfloordiv__", "__rlshift__", "__rmatmul__", "__rmod__", "__rpow__", "__rrshift__",
                                      "__rsub__", "__rtruediv__"), NOT_ASKED_ALIKE["__rdiv__"]))


METHODS = sorted(set(dir(gradus.Tensor)) & set(dir(torch.Tensor)) - {"__class__", "__init_subclass__", "__subclasshook__", "__torch_function__"})


@pytest.mark.parametrize("name", METHODS)
def test_torch_function_of_subclasses_receives_methods(name):
    def use(tensor):
        value = getattr(tensor, name)
        return value() if callable(value) else None

    ours, theirs = functions_received(gradus, use), functions_received(torch, use)
    if theirs == ([], "TypeError"):  # arguments are missing, so PyTorch does not call __torch_function__
        return
    assert (ours[0] != theirs[0]) == (name in NOT_ASKED_ALIKE), (ours, theirs)


def test_listed_exceptions_name_existing_methods():
    needs_torch()
    assert not NOT_ASKED_ALIKE.keys() - set(METHODS)


ARITHMETIC = [getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and_", "or_", "xor", "lshift", "rshift", "eq", "ne", "lt", "le", "gt", "ge",
                                                   "matmul", "iadd", "isub", "imul", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift", "irshift")]


@same
def test_torch_function_of_subclasses_receives_arithmetic_operators(t):
    plain = t.ones(2, 2, dtype=t.int64)
    for function in ARITHMETIC:
        yield function.__name__, functions_received(t, lambda x: function(x, 2), "int64"), functions_received(t, lambda x: function(x, plain), "int64"), functions_received(t, lambda x: function(plain, x), "int64")
        if function not in (operator.truediv, operator.matmul):  # in Gradus int @ tensor does not call __torch_function__, because the int is no matrix
            yield functions_received(t, lambda x: function(2, x), "int64")
    for function in (operator.neg, operator.pos, operator.abs, operator.invert):
        yield functions_received(t, function, "int64")
    yield [name.replace("rtruediv", "rdiv") for name in functions_received(t, lambda x: 2 / x)[0]]


@same
def test_torch_function_of_subclasses_receives_calls(t):
    for call in (len, lambda x: float(x[0, 0]), lambda x: int(x[0, 0]), lambda x: complex(x[0, 0]), lambda x: bool(x[0, 0]), lambda x: f"{x[0, 0]:.2f}", repr, str, lambda x: 1 in x, list,
                 lambda x: [*x], reversed, numpy.asarray, numpy.array, copy.copy, lambda x: x.new_tensor([1]), lambda x: x.new(2), lambda x: x.type(t.float64), lambda x: x.numpy(force=True),
                 lambda x: x.map_(x, lambda a, b: a + b), lambda x: x.map2_(x, x, lambda a, b, c: a), lambda x: x.apply_(lambda a: a), lambda x: x.__dlpack__(), lambda x: x.is_set_to(x),
                 lambda x: x.requires_grad_().register_hook(print), lambda x: x.requires_grad_().register_post_accumulate_grad_hook(print),
                 lambda x: x.requires_grad_().sum().backward(), lambda x: copy.deepcopy(x.requires_grad_()[0]), lambda x: x.set_(x), lambda x: x.share_memory_(),
                 lambda x: x.__array_wrap__(numpy.ones(2, "float32")), lambda x: x.__reduce_ex__(2), lambda x: x.unique(return_inverse=True), lambda x: x.resize_as_(t.ones(4)),
                 lambda x: t.unique(x, dim=0), lambda x: t.unique(input=x), t.unique_consecutive, lambda x: t.histogramdd(x, [2, 2]), lambda x: t.histogramdd(x, [t.ones(2)] * 2),
                 lambda x: t.einsum("ij,jk", x, x), lambda x: t.einsum("ij,jk", [x, x]), lambda x: t.tensordot(x, x), lambda x: t.atleast_1d(x, x), lambda x: t.chain_matmul(x, x),
                 lambda x: t.lobpcg(x, 1), t.nonzero, lambda x: t.nonzero(x, as_tuple=True), t.lu, lambda x: x.lu(), t.is_conj, t.get_device, t.sym_not, t.sym_float, t.is_nonzero):
        yield functions_received(t, call)


@same
def test_torch_function_receives_the_public_function(t):
    answers = []

    class Told(t.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return answers.append(func)

    x = t.ones(2, 2).as_subclass(Told)
    for call in (t.unique, lambda x: x.unique(), t.unique_consecutive, lambda x: t.histogramdd(x, [2, 2]), lambda x: t.einsum("ii", x), t.lu, lambda x: x.dim(), lambda x: x.numpy(),
                 lambda x: 1 - x, lambda x: x == 1, lambda x: x.is_shared()):
        call(x)
    yield [found is wanted for found, wanted in zip(answers, (t.unique, t.Tensor.unique, t.unique_consecutive, t.histogramdd, t.functional.einsum, t.functional.lu, t.Tensor.dim,
                                                              t.Tensor.numpy, t.Tensor.__rsub__, t.Tensor.__eq__, t.Tensor.is_shared), strict=True)]


@same
def test_torch_function_results_of_special_methods(t):
    def answering(answer):
        class Answering(t.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return answer

        return t.ones(3).as_subclass(Answering)

    yield len(answering(7)), bool(answering(True)), int(answering(4)), float(answering(0.5)), [1, 2, 3][answering(1)], 1 in answering([0]), 1 in answering([]), repr(answering("text"))
    for call, answer in ((len, -1), (len, "x"), (bool, 1), (int, 0.5), (float, "x"), (repr, 3)):
        yield attempt(call, answering(answer))[0]


def test_a_mode_receives_methods_written_in_c():
    with recording(gradus)() as mode:
        x = gradus.ones(2)
        x.dim(), len(x), x.tolist(), numpy.asarray(x), x.is_shared(), 1 - x
    assert [name for _, name, _, _, _ in mode.seen] == ["ones", "dim", "__len__", "tolist", "__array__", "is_shared", "__rsub__"]
    with gradus._C.DisableTorchFunction(), mode:
        assert len(memoryview(x)) == 2


class Reduced(gradus.Tensor):
    """A subclass whose objects are pickled with a label."""

    def __reduce_ex__(self, protocol):
        return labelled, (super().__reduce_ex__(protocol), "label")


def labelled(reduced, label):
    tensor = reduced[0](*reduced[1]).as_subclass(Reduced)
    tensor.label = label
    return tensor


@pytest.mark.parametrize("zipped", [True, False])
def test_save_uses_reduce_ex_of_subclasses(zipped):
    file = io.BytesIO()
    gradus.save([gradus.arange(3).as_subclass(Reduced)], file, _use_new_zipfile_serialization=zipped)
    file.seek(0)
    [found] = gradus.load(file, weights_only=False)
    assert type(found) is Reduced and found.label == "label" and found.tolist() == [0, 1, 2]
