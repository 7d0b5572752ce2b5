"""Calls modules as functions of their parameters and buffers."""
from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager

import gradus

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]

_MISSING = object()  # marks a name that the module did not have before the call


def functional_call(module, parameter_and_buffer_dicts, args=None, kwargs=None, *, tie_weights=True, strict=False):
    """Returns module(*args, **kwargs), computed with other parameters and buffers. parameter_and_buffer_dicts is a dict from names to tensors, or a
    sequence of such dicts. Parameters and buffers that are not in it keep the module's values. If `tie_weights` is true and the module has one tensor
    under several names, a new value for one of these names is used for all of them. If `strict` is true, parameter_and_buffer_dicts must contain
    every name.

    >>> layer = gradus.nn.Linear(2, 1)
    >>> gradus.func.functional_call(layer, {"weight": gradus.ones(1, 2), "bias": gradus.zeros(1)}, gradus.tensor([3.0, 4.0]))
    tensor([7.])
    """
    given = parameter_and_buffer_dicts
    if not isinstance(given, dict):
        given = _merged(given)
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, given, tie_weights, strict):
        return module(*args, **(kwargs or {}))


def _merged(dicts):
    if not isinstance(dicts, Sequence):
        raise ValueError(f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}")
    if not all(isinstance(d, dict) for d in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    repeated = [name for name, n in Counter(name for d in dicts for name in d).items() if n > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for d in dicts for name, value in d.items()}


def _places(module, prefix="", places=None):
    """Returns {name: (dict that holds the parameter or buffer, key in that dict)} for the module and all modules below it."""
    places = {} if places is None else places
    for members in (module._parameters, module._buffers):
        for last, tensor in members.items():
            if tensor is not None:
                places[prefix + last] = members, last
    for name, below in module._modules.items():
        if below is not None:
            _places(below, f"{prefix}{name}.", places)
    return places


def _tied(places, given):
    """Returns a copy of `given`, a dict from names to tensors, with entries added for tied tensors. A tensor of the module is tied if it has
    several names. An entry for one of these names is added for the others. Raises ValueError if different tensors are given for the names of a
    tied tensor."""
    names, result = {}, dict(given)
    for name, (members, last) in places.items():
        names.setdefault(id(members[last]), []).append(name)
    for alike in names.values():
        values = [given[name] for name in alike if name in given] if len(alike) > 1 else []
        if any(value is not values[0] for value in values):
            raise ValueError(f"functional_call got multiple values for keys {sorted(alike)}, which are tied. Consider using tie_weights=False")
        if values:
            result |= dict.fromkeys(alike, values[0])
    return result


def _check_names(module, places, given):
    unexpected, missing = [name for name in given if name not in places], [name for name in sorted(places) if name not in given]
    errors = [f"{what} key(s): {', '.join(map(repr, names))}." for what, names in (("Unexpected", unexpected), ("Missing", missing)) if names]
    if errors:
        raise RuntimeError("Error(s) in reparametrizing for {}:\n\t{}".format(module._get_name(), "\n\t".join(errors)))


@contextmanager
def _replaced(module, given, tie_weights, strict):
    places, before = _places(module), {}
    tensors = _tied(places, given) if tie_weights else given
    if strict:
        _check_names(module, places, tensors)
    try:
        for name, tensor in tensors.items():
            if not isinstance(tensor, (gradus.Tensor, type(None))):
                raise TypeError(f"{tensor} is not an instance of torch.Tensor")
            if name not in places:
                path, _, last = name.rpartition(".")
                places[name] = vars(module.get_submodule(path)), last
            members, last = places[name]
            before[name] = members.get(last, _MISSING)
            members[last] = tensor
        yield
    finally:
        for name, value in before.items():
            members, last = places[name]
            if name in given:
                given[name] = members[last]  # the call may have assigned another tensor to this name
            if value is _MISSING:
                del members[last]
            else:
                members[last] = value


def stack_module_state(models):
    """Returns (parameters, buffers) of several modules of one class, as dicts of tensors that are stacked along a new dimension 0. With vmap and
    functional_call the modules then run as an ensemble.

    >>> params, buffers = gradus.func.stack_module_state([gradus.nn.Linear(3, 2) for _ in range(4)])
    >>> params["weight"].shape
    torch.Size([4, 2, 3])
    """
    if len(models) == 0:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return _stacked([dict(model.named_parameters()) for model in models]), _stacked([dict(model.named_buffers()) for model in models])


def _stacked(states):
    return {name: _stacked_leaf([state[name] for state in states], name) for name in states[0]}


def _stacked_leaf(tensors, name):
    if len({t.requires_grad for t in tensors}) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    result = gradus.stack(tensors)
    return result.detach().requires_grad_() if tensors[0].requires_grad else result


def replace_all_batch_norm_modules_(root):
    """Removes the running statistics from all batch norm layers in the module, and returns the module. These layers then always use the statistics of
    their input.

    Inside vmap, running statistics cannot be updated in place, because they have no batch dimension.

    >>> gradus.func.replace_all_batch_norm_modules_(gradus.nn.BatchNorm1d(3)).running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, gradus.nn.modules.batchnorm._BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
