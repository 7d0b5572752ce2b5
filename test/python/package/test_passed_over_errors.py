"""If repr, hasattr, a comparison or a finalizer swallows an exception, no error may stay pending in the library. Otherwise the next call would raise
it."""
import copy
import gc
import operator
import pickle

import gradus
import pytest
from both import saving_function
from gradus import _C


def overwritten_view():
    """Returns a view whose grad_fn cannot be computed, because unbind() returned several views at once and the base was written after that."""
    base = gradus.ones(2, 2, requires_grad=True).clone()
    view = base.unbind()[0]
    with gradus.no_grad():
        base.add_(1)
    return view


def overwritten_view_of_no_grad():
    base = gradus.ones(4, requires_grad=True).clone()
    with gradus.no_grad():
        view = base[:2]
    base.add_(1)
    return view


def freed_function():
    y = saving_function(gradus).apply(gradus.ones(2, requires_grad=True))
    y.sum().backward()
    return y


STATES = {
    "overwritten view": overwritten_view,
    "overwritten view of no_grad": overwritten_view_of_no_grad,
    "function that is gone": freed_function,
    "meta": lambda: gradus.ones(2, device="meta", requires_grad=True),
    "meta number": lambda: gradus.ones((), device="meta"),
    "leaf": lambda: gradus.ones(2, 2, requires_grad=True),
    "conjugate": lambda: gradus.ones(2, 2, dtype=gradus.complex64).conj(),
    "quantized": lambda: gradus.zeros(3, dtype=gradus.qint8),
}
# Attributes of Tensor that the test does not use, because using them would change objects that other tests see.
LEFT_OUT = {"share_memory_", "__class__", "__init_subclass__", "__subclasshook__"}


def leaves_error_pending(call):
    """Runs a call and ignores any exception. Returns True if an error of the library is pending after the call."""
    try:
        call()
    except Exception:  # noqa: BLE001
        pass
    return _C._error_is_pending()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("state", STATES)
def test_attributes_and_methods_leave_no_error_pending(state):
    for name in sorted(set(dir(gradus.Tensor)) - LEFT_OUT):
        t = STATES[state]()
        assert not leaves_error_pending(lambda: getattr(t, name)), name
        for args in [(), (t,), (0,), (0, 1), ("x",), (gradus.ones(3),), (None,)]:
            assert not leaves_error_pending(lambda: getattr(t, name)(*args)), (name, args)
        for value in [None, 1, True, gradus.ones(2), t]:
            if name in ("data", "grad", "requires_grad", "real", "imag", "names", "_grad"):
                assert not leaves_error_pending(lambda: setattr(t, name, value)), (name, value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("state", STATES)
def test_operators_and_protocols_leave_no_error_pending(state):
    calls = [repr, str, hash, bool, int, float, complex, len, list, iter, copy.copy, copy.deepcopy, pickle.dumps, memoryview, format, operator.index, abs, dir,
             gradus.is_tensor, gradus.isfinite, lambda t: t in [t], lambda t: [1, 2][t], lambda t: gradus.ones(2)[t], lambda t: gradus.tensor([t, t]),
             lambda t: gradus.ones(2) == t, lambda t: t == "x", lambda t: t != None, lambda t: "x" in t, lambda t: range(t), lambda t: gradus.add(t, t, out=t),  # noqa: E711
             lambda t: gradus.ones(2).add_(t), lambda t: gradus.nn.Parameter(t), lambda t: gradus.from_dlpack(t), lambda t: t.untyped_storage()[0],
             lambda t: print(t, file=open("/dev/null", "w")), lambda t: gradus.utils.data.default_collate([t, t])]
    for at, call in enumerate(calls):
        t = STATES[state]()
        assert not leaves_error_pending(lambda: call(t)), (at, call)


def test_failing_finalizers_leave_no_error_pending():
    """A context, a hook and a finalizer raise exceptions while they are freed. Afterwards no error is pending in the library."""

    class Fails:
        def __del__(self):
            gradus.ones(2) + gradus.ones(3)

    x = gradus.ones(2, requires_grad=True)
    handle = x.register_hook(lambda grad, kept=Fails(): grad)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.unraisablehook", lambda unraisable: None)
        assert not leaves_error_pending(handle.remove)
        x.thing = Fails()
        del x
        gc.collect()
        assert not _C._error_is_pending()
    assert gradus.zeros(1).tolist() == [0]


def test_repr_of_a_view_whose_grad_fn_cannot_be_computed():
    view = overwritten_view()
    assert "grad_fn=<Invalid>" in repr(view)
    assert gradus.zeros(1).tolist() == [0]
