"""L-BFGS, a quasi-Newton method that approximates the inverse Hessian from the last changes of gradients and parameters.

All parameters are treated as one vector.
"""
from __future__ import annotations

import math

import gradus
from gradus.optim._options import number
from gradus.optim.optimizer import Optimizer

__all__ = ["LBFGS"]

_SUFFICIENT_DECREASE, _CURVATURE = 1e-4, 0.9  # the constants c1 and c2 of the strong Wolfe conditions (Nocedal and Wright, 2006)


class _Point:
    """A point of the line search: the step length t, and at t the loss, its gradient, and its slope, i.e. its derivative with respect to t."""

    __slots__ = ("grad", "loss", "slope", "t")

    def __init__(self, t, loss, grad, slope):
        self.t, self.loss, self.grad, self.slope = t, loss, grad, slope


def _minimum_of_cubic(a, b, bounds=None):
    """Returns the step length at the minimum of the cubic that interpolates the losses and slopes at points `a` and `b`, clamped to `bounds`.

    bounds: (least, greatest). When None, the bounds are the step lengths of `a` and `b`. Returns the middle of the interval if the cubic has no
    minimum.
    """
    least, greatest = bounds or sorted((a.t, b.t))
    if b.t < a.t:
        a, b = b, a
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t) if a.t != b.t else math.nan
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (least + greatest) / 2
    d2 = math.sqrt(square)
    below = b.slope - a.slope + 2 * d2
    best = b.t - (b.t - a.t) * (b.slope + d2 - d1) / below if below != 0 else math.nan
    return min(max(best, least), greatest)


def _bracket(evaluate, start, t, most):
    """Increases the step length until a point satisfies the Wolfe conditions, or until an interval contains such a point.

    Returns ([point], tries), or ([first end, second end], tries) for an interval. most: the largest number of tries.
    """
    previous, point = start, evaluate(t)
    for taken in range(most):
        if point.loss > start.loss + _SUFFICIENT_DECREASE * point.t * start.slope or (taken > 1 and point.loss >= previous.loss):
            return [previous, point], taken
        if abs(point.slope) <= -_CURVATURE * start.slope:
            return [point], taken
        if point.slope >= 0:
            return [previous, point], taken
        further = (point.t + 0.01 * (point.t - previous.t), point.t * 10)
        previous, point = point, evaluate(_minimum_of_cubic(previous, point, further))
    return [start, point], most


def _away_from_ends(t, points, stuck):
    """Keeps the trial step length `t` away from the ends of the bracket, because a trial near an end shrinks the bracket only little.

    Returns (t, new value of `stuck`). `stuck` is true if the last trial was close to an end and was not moved.
    Let the margin be a tenth of the bracket's length.

    - If t is inside the bracket and at least one margin from both ends, returns (t, False).
    - If t is inside the bracket but closer to an end, and `stuck` is false, returns (t, True).
    - Otherwise returns (u, False), where u is the point that is one margin inside of the end nearer to t.
    """
    least, greatest = sorted(point.t for point in points)
    margin = 0.1 * (greatest - least)
    if min(greatest - t, t - least) >= margin:
        return t, False
    if not (stuck or t >= greatest or t <= least):
        return t, True
    return (greatest - margin if abs(t - greatest) < abs(t - least) else least + margin), False


def _strong_wolfe(evaluate, start, t, longest, most, tolerance_change=1e-9):
    """Returns (point, evaluations). The point satisfies the strong Wolfe conditions or is the best one found. evaluations counts calls of `evaluate`.

    evaluate(t) returns the _Point at step length t. start: the point at t = 0. longest: the largest absolute element of the direction. most: the
    largest number of tries.
    """
    points, taken = _bracket(evaluate, start, t, most)
    evaluations, stuck, done = taken + 1, False, len(points) == 1
    points.sort(key=lambda point: point.loss)  # points[0] is the point with the smaller loss
    while not done and taken < most and abs(points[1].t - points[0].t) * longest >= tolerance_change:
        t, stuck = _away_from_ends(_minimum_of_cubic(*points), points, stuck)
        point = evaluate(t)
        evaluations += 1
        taken += 1
        if point.loss > start.loss + _SUFFICIENT_DECREASE * t * start.slope or point.loss >= points[0].loss:
            points[1] = point
            points.sort(key=lambda point: point.loss)
            continue
        done = abs(point.slope) <= -_CURVATURE * start.slope
        if not done and point.slope * (points[1].t - points[0].t) >= 0:
            points[1] = points[0]
        points[0] = point
    return points[0], evaluations


class LBFGS(Optimizer):
    """L-BFGS (Nocedal, 1980) for one parameter group on one device. A step calls its closure several times to compute the loss.

    Args:
        params: tensors or ``(name, tensor)`` pairs.
        lr (float or Tensor): the first step length tried along each direction.
        max_iter (int): the largest number of directions per step.
        max_eval (int, optional): the largest number of loss evaluations per step; ``max_iter * 5 // 4`` when None.
        tolerance_grad (float): the step ends if no element of the gradient has a larger absolute value.
        tolerance_change (float): the step ends if the loss or all parameters change by less.
        history_size (int): the number of past changes of gradient and parameters from which the inverse Hessian is approximated.
        line_search_fn (str, optional): ``"strong_wolfe"`` searches a step length that satisfies the strong Wolfe conditions.

    Raises ValueError for a negative learning rate and for several groups, RuntimeError for another line_search_fn.

    >>> import gradus
    >>> w = gradus.tensor([3.0, 1.0], requires_grad=True)
    >>> optimizer = gradus.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (w * w).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    10.0
    >>> w.abs().max().item() < 1e-6
    True
    """

    def __init__(self, params, lr: float | gradus.Tensor = 1, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
                 tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None):
        if isinstance(lr, gradus.Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not 0.0 <= lr:
            raise ValueError(f"Invalid learning rate: {lr}")
        super().__init__(params, {"lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                                  "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
                                  "line_search_fn": line_search_fn})
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self):
        return self.param_groups[0]["params"]

    def _gradient(self):
        """Returns the gradients of all parameters as one real vector; a complex number becomes two elements."""
        grads = [gradus.zeros_like(param) if param.grad is None else param.grad for param in self._params]
        return gradus.cat([(gradus.view_as_real(grad.resolve_conj()) if grad.is_complex() else grad).reshape(-1) for grad in grads])

    def _move(self, t, direction):
        """Adds t * direction to the parameters."""
        params = [gradus.view_as_real(param) if param.is_complex() else param for param in self._params]
        for param, change in zip(params, direction.split([param.numel() for param in params])):
            param.add_(change.view_as(param), alpha=t)

    def _evaluator(self, closure, direction):
        """Returns a function evaluate(t), which returns the _Point (loss, gradient and slope) at parameters + t * direction. The parameters are the
        same before and after a call of evaluate."""
        origin = [param.clone() for param in self._params]

        def evaluate(t):
            self._move(t, direction)
            loss, grad = float(closure()), self._gradient()
            for param, value in zip(self._params, origin):
                param.copy_(value)
            return _Point(t, loss, grad, grad.dot(direction).item())

        return evaluate

    @staticmethod
    def _direction(state, grad, history_size):
        """Returns the quasi-Newton direction by the two-loop recursion of L-BFGS. First adds the last changes (of gradient and parameters) to
        the history in `state`."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return grad.neg()
        change, step = grad - state["prev_flat_grad"], state["d"] * state["t"]
        curvature = change.dot(step)
        changes, steps, inverses = state["old_dirs"], state["old_stps"], state["ro"]
        if curvature.item() > 1e-10:
            if len(changes) == history_size:
                for kept in (changes, steps, inverses):
                    kept.pop(0)
            changes.append(change)
            steps.append(step)
            inverses.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        direction, factors = grad.neg(), []
        for change, step, inverse in zip(reversed(changes), reversed(steps), reversed(inverses)):
            factors.append(step.dot(direction) * inverse)
            direction.sub_(factors[-1] * change)
        direction.mul_(state["H_diag"])
        for change, step, inverse in zip(changes, steps, inverses):
            direction.add_((factors.pop() - change.dot(direction) * inverse) * step)
        return direction

    def step(self, closure):
        """Updates the parameters several times and returns the loss before the first update.

        Args:
            closure (callable): computes the loss and its gradients, and returns the loss.
        """
        with gradus.no_grad():
            return self._step(gradus.enable_grad()(closure))

    def _step(self, closure):
        """Does the work of step(), which calls it with autograd disabled. Returns the loss before the first update, as `closure` returned it."""
        group, state = self.param_groups[0], self.state[self._params[0]]
        search = group["line_search_fn"]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        first_loss = closure()
        loss, grad, evaluations = float(first_loss), self._gradient(), 1
        state["func_evals"] += 1
        if grad.abs().max().item() <= group["tolerance_grad"]:
            return first_loss
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = state["d"] = self._direction(state, grad, group["history_size"])
            t = lr = number(group["lr"])
            if state["n_iter"] == 1:
                t = min(1.0, 1.0 / grad.abs().sum().item()) * lr
            slope = grad.dot(direction).item()
            previous_loss = state["prev_loss"] = loss
            state["prev_flat_grad"] = grad.clone()
            state["t"] = t
            if slope > -group["tolerance_change"]:
                break
            new_evaluations = 0
            if search == "strong_wolfe":
                start = _Point(0, loss, grad, slope)
                point, new_evaluations = _strong_wolfe(self._evaluator(closure, direction), start, t, direction.abs().max().item(),
                                                       group["max_eval"] - evaluations)
                t, loss, grad = point.t, point.loss, point.grad
                self._move(t, direction)
            elif search is not None:
                raise RuntimeError("only 'strong_wolfe' is supported")
            else:
                self._move(t, direction)
                if iteration < group["max_iter"]:
                    loss, grad, new_evaluations = float(closure()), self._gradient(), 1
            state["t"] = t
            evaluations += new_evaluations
            state["func_evals"] += new_evaluations
            if (iteration == group["max_iter"] or evaluations >= group["max_eval"] or grad.abs().max().item() <= group["tolerance_grad"]
                    or direction.abs().max().item() * abs(t) <= group["tolerance_change"] or abs(loss - previous_loss) < group["tolerance_change"]):
                break
        return first_loss
