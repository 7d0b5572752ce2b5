"""Defines functions that rebuild pickled tensors and storages. A pickle contains the names and the arguments of these functions. Therefore they have
the same names and parameters as in PyTorch, including an unused parameter for hooks."""
import gradus
from gradus._C import DisableTorchFunctionSubclass, UntypedStorage, _from_storage, _new_storage


def _rebuild_storage(content):
    storage = _new_storage(len(content))
    if content:
        memoryview(storage)[:] = content
    return storage


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    if not isinstance(storage, UntypedStorage):
        raise TypeError(f"a tensor is made over an UntypedStorage, not {type(storage).__name__}")
    return _from_storage(storage, storage_offset, size, stride, dtype).requires_grad_(requires_grad)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    return gradus.empty_strided(size, stride, dtype=dtype, device="meta", requires_grad=requires_grad)


def _rebuild_from_type_v2(function, kind, arguments, attributes):
    tensor = function(*arguments)
    requires_grad = tensor.requires_grad
    if type(tensor) is not kind:
        tensor = tensor.detach().as_subclass(kind)
        with DisableTorchFunctionSubclass():
            tensor.requires_grad_(requires_grad)
    tensor.__dict__.update(attributes)
    return tensor
