"""The collective operations as differentiable functions, for one process. Each returns a copy of the input, and gradients pass through unchanged."""
from gradus.distributed.distributed_c10d import ReduceOp, _check_rank, _member

__all__ = ["all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter", "scatter"]


def _passed(tensor, group):
    _member(group)
    return tensor.clone()


def broadcast(tensor, src, group=None):
    """Returns a copy of the tensor."""
    _check_rank(src)
    return _passed(tensor, group)


def gather(tensor, dst=0, group=None):
    """Returns a tuple with one item, a copy of the tensor."""
    _check_rank(dst)
    return (_passed(tensor, group),)


def scatter(tensors, src=0, group=None):
    """Returns a copy of the only tensor in `tensors`."""
    _check_rank(src)
    return _passed(tensors[0], group)


def reduce(tensor, dst, op=ReduceOp.SUM, group=None):
    """Returns a copy of the tensor."""
    _check_rank(dst)
    return _passed(tensor, group)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None):
    """Returns a copy of the only tensor in `input_list`. `output` is not used."""
    return _passed(input_list[0], group)


def all_gather(tensor, group=None):
    """Returns a tuple with one item, a copy of the tensor."""
    return (_passed(tensor, group),)


def all_to_all(output_tensor_list, input_tensor_list, group=None):
    """Returns a tuple with one item, a copy of the only tensor in `input_tensor_list`. output_tensor_list is not used."""
    return (_passed(input_tensor_list[0], group),)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None):
    """Returns a copy of `input`. `output` is not used."""
    return _passed(input, group)


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """Returns a copy of the tensor."""
    return _passed(tensor, group)
