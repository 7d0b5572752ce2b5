"""Compares the functions sym_int, sym_max and so on with PyTorch, which has them for programs that it traces."""
import gradus
from both import same
from nn_programs import attempt


def test_functions_of_symbolic_numbers():
    def program(t):
        numbers = (3, 2.5, -1, True)
        yield [(f.__name__, f(a), type(f(a)).__name__) for f in (t.sym_int, t.sym_float, t.sym_not) for a in numbers]
        yield [(f(a, b), type(f(a, b)).__name__) for f in (t.sym_max, t.sym_min) for a in numbers[:3] for b in numbers[:3]]
        yield t.sym_sum(1, 2, 3), t.sym_sum([1, 2.5]), t.sym_sum([]), t.sym_sqrt(9), t.sym_ite(True, 1, 2), t.sym_ite(False, 1, 2)
        yield [attempt(*call)[0] for call in ((t.sym_max, "a", 1), (t.sym_ite, 1, 2, 3), (t.sym_ite, True, 2, 3.0))]

    same(lambda t: list(program(t)))


def test_sym_int_keeps_the_size_of_a_ragged_dimension():
    size = gradus.nested.as_nested_tensor([gradus.ones(2), gradus.ones(3)], layout=gradus.jagged).size(1)
    assert gradus.sym_int(size) is size
