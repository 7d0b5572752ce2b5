"""Tests anomaly mode in Gradus and PyTorch: an error in a backward pass shows the forward call that made the node, and a NaN gradient is an error."""
import threading
import warnings

import pytest
from both import caught, gradus, same


def outcome(torch, program, **mode):
    """Runs a program in anomaly mode. Returns its exception, if any, and a pair for each warning. The pair consists of the first line of the warning
    and a list with the line of this file that the warning's traceback quotes last."""
    with warnings.catch_warnings(record=True) as seen, torch.autograd.set_detect_anomaly(True, **mode):
        warnings.simplefilter("always")
        try:
            program(torch)
            raised = None
        except Exception as error:
            raised = type(error).__name__, plain_names(str(error))
    return raised, [shorten(str(warning.message)) for warning in seen]


def plain_names(text):
    return text.replace("torch::autograd::CopySlices", "CopySlices")


def shorten(text):
    lines = plain_names(text).split(" (Triggered internally")[0].rstrip("\n").split("\n")
    sources = [line for before, line in zip(lines, lines[1:]) if "test_anomaly.py" in before]
    return lines[0], sources[-1:]


def negative(torch):
    return torch.tensor([-1.0, 2.0], requires_grad=True)


def square_root(torch):
    y = negative(torch).sqrt()
    (y * 0).sum().backward()


def hook_returning_nan(torch):
    y = negative(torch) * 1
    y.register_hook(lambda grad: grad * float("nan"))
    y.sum().backward()


def hook_replacing_nan(torch):
    y = negative(torch).sqrt()
    y.grad_fn.register_hook(lambda inputs, outputs: (torch.zeros(2),))
    (y * 0).sum().backward()


def one_of_a_list(torch):
    first, second = negative(torch).sqrt().unbind()
    (first * 0 + second).backward()


def in_place(torch):
    x = negative(torch)
    y = x * 1
    y.sqrt_()
    (y * 0).sum().backward()


def through_a_view(torch):
    y = negative(torch) * 1
    y[0:1].sqrt_()
    (y * 0).sum().backward()


def of_grad(torch):
    x = negative(torch)
    torch.autograd.grad((x.sqrt() * 0).sum(), x)


def second_derivative(torch):
    x = torch.tensor([1.0], requires_grad=True)
    (slope,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
    (slope.sqrt() * float("nan")).sum().backward()


def failing_custom_function(torch):
    class Mine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("mine")

    Mine.apply(negative(torch)).sum().backward()


def custom_function_returning_nan(torch):
    class Mine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, grad):
            return grad, grad * float("nan")

    Mine.apply(negative(torch), negative(torch)).sum().backward()


def program_without_error(torch):
    x = torch.ones(3, requires_grad=True)
    a, b = (x * 2).split([1, 2])
    (a.sum() * b.exp().sum() + x.sum()).backward()
    assert x.grad.isfinite().all()


PROGRAMS = [square_root, hook_returning_nan, hook_replacing_nan, one_of_a_list, in_place, through_a_view, of_grad, second_derivative,
            failing_custom_function, custom_function_returning_nan, program_without_error]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("check_nan", [True, False])
def test_errors_and_warnings_are_those_of_pytorch(program, check_nan):
    same(outcome, program) if check_nan else same(lambda torch: outcome(torch, program, check_nan=False))


def test_an_overwritten_saved_tensor_shows_the_forward_call():
    def program(torch):
        y = negative(torch).exp()
        y.add_(1)
        y.sum().backward()

    raised, warned = outcome(gradus, program)
    assert raised[0] == "RuntimeError" and "modified by an inplace operation" in raised[1]
    assert warned == [("Error detected in ExpBackward0. Traceback of forward call that caused the error:", ["    y = negative(torch).exp()"])]


def test_a_node_recorded_before_the_mode_has_no_forward_call():
    def program(torch):
        y = negative(torch).sqrt()
        return outcome(torch, lambda torch: (y * 0).sum().backward())

    raised, warned = same(program)
    assert "SqrtBackward0" in raised[1] and "No forward pass information available" in warned[0][0]


def test_anomaly_modes_nest_and_are_restored():
    def program(torch):
        def now():
            return torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()

        seen = [now()]
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            with torch.autograd.detect_anomaly(check_nan=False):
                seen.append(now())
                with torch.autograd.set_detect_anomaly(False):
                    seen.append(now())
                with torch.autograd.set_detect_anomaly(True, True):
                    seen.append(now())
                seen.append(now())
        seen.append(now())
        torch.autograd.set_detect_anomaly(True)
        seen.append(now())
        torch.autograd.set_detect_anomaly(False)
        return seen, [(w.category.__name__, str(w.message), w.filename) for w in warned], now()

    same(program)


def test_nothing_is_checked_after_the_mode_is_left():
    with gradus.autograd.set_detect_anomaly(True):
        pass
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        square_root(gradus)


def test_a_warning_turned_into_an_error_is_raised():
    with gradus.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        kind, text = caught(square_root, gradus)
    assert kind == "UserWarning" and text.startswith("Error detected in SqrtBackward0.")


def test_the_error_survives_an_error_in_showwarning(monkeypatch):
    def show(*args, **kwargs):
        assert caught(gradus.ones(2).view, 3)[0] == "RuntimeError"

    monkeypatch.setattr(warnings, "showwarning", show)
    with gradus.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("always")
        assert caught(failing_custom_function, gradus) == ("ValueError", "mine")


def test_the_mode_applies_to_all_threads():
    results = []
    with gradus.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = [threading.Thread(target=lambda: results.append(caught(square_root, gradus))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == [("RuntimeError", "Function 'SqrtBackward0' returned nan values in its 0th output.")] * 4
