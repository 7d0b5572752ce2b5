"""Checks that Sobol sequences are PyTorch's, scrambled and not scrambled, for all dimensions."""
import gradus
import pytest
from nn_programs import attempt, same

from gradus.quasirandom import SobolEngine
from oracle import torch


@same(tolerance=0)
def test_sobol_points(t):
    for dimension in (1, 2, 5, 40, 300):
        engine = t.quasirandom.SobolEngine(dimension)
        yield engine.draw(), engine.draw(7), engine.num_generated, engine.draw_base2(3), engine.reset().draw(2), engine.fast_forward(100).draw(3, dtype=t.float64)
        yield engine.reset().fast_forward(5).draw(2), engine.num_generated, engine, engine.draw(0).shape
        out = t.empty(0)
        yield engine.draw(2, out=out) is out, out


@same(tolerance=0)
def test_scrambled_sobol_points(t):
    for dimension, seed in ((1, 0), (3, 7), (50, 2**40)):
        engine = t.quasirandom.SobolEngine(dimension, scramble=True, seed=seed)
        yield engine, engine.draw(5), engine.draw(3), engine.reset().draw(1), engine.fast_forward(9).draw(2), engine.shift, engine.quasi
    t.manual_seed(5)
    yield t.quasirandom.SobolEngine(3, scramble=True).draw(2), t.rand(1)


@same(tolerance=0)
def test_invalid_arguments_of_sobol_engine(t):
    for dimension in (0, 21202, -1):
        yield attempt(t.quasirandom.SobolEngine, dimension)
    engine = t.quasirandom.SobolEngine(2)
    engine.draw(3)
    yield attempt(engine.draw_base2, 2), engine.draw_base2(0)


@same(tolerance=0)
def test_sobol_operators(t):
    state = t.zeros(4, 30, dtype=t.int64)
    yield t._sobol_engine_initialize_state_(state, 4) is state, state
    point = t.zeros(4, dtype=t.int64)
    points, moved = t._sobol_engine_draw(point, 3, state, 4, 0, dtype=t.float64)
    yield points, moved, point, t._sobol_engine_ff_(point, 3, state, 4, 0), t.equal(point, moved)
    matrices = t.arange(4 * 30 * 30).reshape(4, 30, 30).remainder(7).remainder(2).tril()
    yield t._sobol_engine_scramble_(state, matrices, 4), t._sobol_engine_ff_(point, 1000, state, 4, 3)


def test_direction_numbers_of_all_dimensions():
    ours, theirs = (t._sobol_engine_initialize_state_(t.zeros(21201, 30, dtype=t.int64), 21201) for t in (gradus, torch))
    assert ours.numpy().tobytes() == theirs.numpy().tobytes()


def test_scrambled_points_are_evenly_distributed():
    # float64, because float32 would round some points up to the next multiple of 1/1024.
    points = SobolEngine(3, scramble=True).draw(1024, dtype=gradus.float64)
    assert ((points * 1024).long().sort(0).values == gradus.arange(1024)[:, None]).all() and (0 <= points).all() and (points < 1).all()


def test_invalid_arguments_of_sobol_operators():
    state, point = gradus.zeros(2, 30, dtype=gradus.int64), gradus.zeros(2, dtype=gradus.int64)
    with pytest.raises(RuntimeError, match="sobolstate needs to be of type torch.int64"):
        gradus._sobol_engine_initialize_state_(state.int(), 2)
    with pytest.raises(RuntimeError, match="sobolstate must have 3 entries in its first dimension and 30 in the others"):
        gradus._sobol_engine_initialize_state_(state, 3)
    with pytest.raises(RuntimeError, match="on the same device"):
        gradus._sobol_engine_ff_(point, 1, state.to("meta"), 2, 0)
    assert gradus._sobol_engine_draw(point.to("meta"), 3, state.to("meta"), 2, 0)[0].shape == (3, 2)
    for n, number in ((-1, 0), (1, -1), (2**30, 0), (2**62, 2**62)):
        with pytest.raises(ValueError, match="the Sobol sequence has 2.30 points"):
            gradus._sobol_engine_draw(point, n, state, 2, number)
        with pytest.raises(ValueError, match="the Sobol sequence has 2.30 points"):
            gradus._sobol_engine_ff_(point, n, state, 2, number)
