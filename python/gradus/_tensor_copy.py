"""Implements Tensor.__deepcopy__, which copy.deepcopy calls, and Tensor.__reduce_ex__, which pickle and copy.copy call."""
import copy
from collections import OrderedDict

from gradus import _utils
from gradus._C import Tensor, _from_storage
from gradus._overridable import add_methods


def _over(storage, tensor):
    """Returns a tensor over `storage` with the offset, sizes, strides and dtype of `tensor`."""
    return _from_storage(storage, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype)


def __deepcopy__(self, memo):
    """Returns a copy of the tensor with copies of its gradient and attributes. If tensors that share a storage are copied with the same `memo`, their
    copies share a storage too. RuntimeError: the tensor is not a leaf."""
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.")
    if self.device.type == "cpu" and not self.is_conj() and not self.is_neg():
        result = _over(copy.deepcopy(self.untyped_storage(), memo), self)
    else:
        result = self.detach().clone()
    if type(self) is not Tensor:
        result = result.as_subclass(type(self))
    result.requires_grad_(self.requires_grad)
    memo[id(self)] = result
    if self.grad is not None:
        result.grad = copy.deepcopy(self.grad, memo)
    result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return result


def __reduce_ex__(self, protocol):
    """Returns the pickled form of the tensor, which consists of its storage, offset, sizes and strides. If tensors that share a
    storage are pickled together, they share a storage again after unpickling."""
    function, arguments = _reduce_data(self)
    if type(self) is Tensor and not self.__dict__:
        return function, arguments
    return _utils._rebuild_from_type_v2, (function, type(self), arguments, self.__dict__)


def _reduce_data(tensor):
    if tensor.device.type == "meta":
        return _utils._rebuild_meta_tensor_no_storage, (tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad)
    if tensor.device.type != "cpu":
        raise RuntimeError(f"cannot pickle a tensor of device {tensor.device}: move it to the cpu first")
    requires_grad, tensor = tensor.requires_grad, tensor.detach().resolve_conj().resolve_neg()
    return _utils._rebuild_tensor_v3, (tensor.untyped_storage(), tensor.storage_offset(), tuple(tensor.shape), tensor.stride(),
                                       requires_grad, OrderedDict(), tensor.dtype)


add_methods(__deepcopy__, __reduce_ex__)
