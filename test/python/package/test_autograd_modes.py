"""Compares no_grad and the other modes with PyTorch, as context managers, decorators and functions."""
import threading

import pytest
from both import caught, gradus, same

MODES = ["no_grad", "enable_grad", "inference_mode"]


def modes(torch):
    return torch.is_grad_enabled(), torch.is_inference_mode_enabled()


@pytest.fixture(autouse=True)
def unchanged():
    yield
    assert modes(gradus) == (True, False)


@pytest.mark.parametrize("outer", MODES)
@pytest.mark.parametrize("inner", MODES)
def test_nested_grad_modes(outer, inner):
    def program(torch):
        seen = []
        with getattr(torch, outer)():
            seen.append(modes(torch))
            with getattr(torch, inner)():
                seen.append(modes(torch))
                with torch.set_grad_enabled(True):
                    seen.append(modes(torch))
                with torch.inference_mode(False):
                    seen.append(modes(torch))
            seen.append(modes(torch))
        return seen, modes(torch)

    same(program)


def test_operators_are_recorded_only_with_grad_mode_on():
    def program(torch):
        x = torch.ones(2, requires_grad=True)
        with torch.no_grad():
            y = x * 2
            with torch.enable_grad():
                z = x * 3
        return y.requires_grad, y.grad_fn, z.requires_grad, torch.ones(1, requires_grad=True).requires_grad

    same(program)


def test_set_grad_enabled():
    def program(torch):
        seen = []
        torch.set_grad_enabled(False)
        seen.append(modes(torch))
        torch.set_grad_enabled(mode=True)
        seen.append(modes(torch))
        mode = torch.set_grad_enabled(False)
        seen.append(modes(torch))
        with mode:
            seen.append(modes(torch))
        seen.append(modes(torch))
        return seen, mode.mode, torch.inference_mode().mode, torch.inference_mode(False).mode

    same(program)


@pytest.mark.parametrize("decorate", [
    lambda torch: torch.no_grad(), lambda torch: torch.no_grad, lambda torch: torch.enable_grad(), lambda torch: torch.inference_mode,
    lambda torch: torch.inference_mode(), lambda torch: torch.inference_mode(False), lambda torch: torch.set_grad_enabled(False),
])
def test_grad_modes_as_decorators(decorate):
    def program(torch):
        @decorate(torch)
        def function(a, *, b=2):
            """Text."""
            return modes(torch), a, b

        class Holder:
            @decorate(torch)
            def method(self, a):
                return modes(torch), a

        return function(1, b=3), function.__name__, function.__doc__, Holder().method(4), modes(torch)

    same(program)


def test_a_decorated_recursive_function():
    @gradus.no_grad()
    def count(n):
        assert modes(gradus) == (False, False)
        return 0 if n == 0 else 1 + count(n - 1)

    assert count(50) == 50


def test_grad_modes_as_decorators_of_generators():
    def program(torch):
        closed = []

        @torch.no_grad()
        def steps():
            got = yield modes(torch)
            try:
                while got is not None:
                    try:
                        got = yield got, modes(torch)
                    except KeyError as error:
                        got = yield "caught", error.args, modes(torch)
                return "end"
            finally:
                closed.append(modes(torch))

        generator = steps()
        seen = [next(generator), modes(torch), generator.send(5), generator.throw(KeyError("thrown")), modes(torch), generator.send(6)]
        with pytest.raises(StopIteration) as stop:
            generator.send(None)
        other = steps()
        next(other)
        other.close()
        failing = steps()
        next(failing)
        return seen, stop.value.value, closed, caught(failing.throw, ValueError("out")), modes(torch), list(torch.no_grad()(range_of)(torch))

    same(program)


def range_of(torch):
    yield from (modes(torch) for _ in range(2))


@pytest.mark.filterwarnings("ignore:Decorating classes")
def test_grad_modes_as_decorators_of_classes():
    def program(torch):
        @torch.no_grad()
        class Holder:
            def __init__(self):
                self.seen = modes(torch)

            def method(self):
                return modes(torch)

        holder = Holder()
        return holder.seen, holder.method()

    same(program)
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        gradus.no_grad()(type("Holder", (), {}))


def test_an_exception_leaves_the_mode_and_is_propagated():
    def program(torch):
        def fail():
            with torch.no_grad():
                raise KeyError("inside")

        return caught(fail), modes(torch)

    same(program)


def test_subclasses_of_grad_modes():
    def program(torch):
        class Loud(torch.no_grad):
            def __enter__(self):
                self.seen = [modes(torch)]
                super().__enter__()

        mode = Loud()
        with mode:
            mode.seen.append(modes(torch))
        return mode.seen, Loud.__name__, torch.no_grad.__name__, torch.no_grad.__module__.split(".", 1)[1]

    same(program)


def test_one_mode_object_may_be_entered_recursively():
    mode = gradus.no_grad()
    with mode, mode, mode:
        assert modes(gradus) == (False, False)


def test_grad_modes_are_thread_local():
    seen = []
    with gradus.inference_mode():
        thread = threading.Thread(target=lambda: seen.append(modes(gradus)))
        thread.start()
        thread.join()
    assert seen == [(True, False)]


@pytest.mark.parametrize("call", [
    lambda: gradus.set_grad_enabled(), lambda: gradus.no_grad(1, 2), lambda: gradus.no_grad(mode=3), lambda: gradus.inference_mode(1, 2),
    lambda: gradus.no_grad()(), lambda: gradus.no_grad(3),
])
def test_wrong_arguments_of_modes_are_type_errors(call):
    assert caught(call)[0] == "TypeError"
