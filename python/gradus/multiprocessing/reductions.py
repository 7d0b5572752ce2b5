"""Pickles tensors and storages for other processes: moves them to shared memory and sends a name or a file descriptor of that memory.

By default the receiver requests each file descriptor from a server in the sender (multiprocessing's DupFd), which takes several messages in each
direction. ``send`` and ``receive`` avoid this on a pipe between two processes: they pass the descriptors right after the message.
"""
import os
import socket
import threading
from multiprocessing.reduction import DupFd, ForkingPickler, recvfds, sendfds

import gradus
from gradus import _C
from gradus._C import Tensor, UntypedStorage, _from_storage

__all__ = ["init_reductions", "receive", "reduce_storage", "reduce_tensor", "send"]


def _share(storage, tensor=None):
    """Moves a storage to shared memory and returns it. If the memory cannot be moved, returns a copy in shared memory."""
    from gradus.multiprocessing import new_name

    try:
        _C._share_storage(storage, new_name(), tensor)
    except RuntimeError:
        storage = storage.clone()
        _C._share_storage(storage, new_name())
    return storage


def reduce_storage(storage):
    """Returns (function, arguments) that recreate the storage over the same memory in another process."""
    if storage.device.type != "cpu" or len(storage) == 0:
        return storage.__reduce_ex__(2)
    storage = _share(storage)
    descriptor, name = _C._shared_place(storage)
    if descriptor is not None:
        return _open_descriptor, (_duplicate(storage, descriptor), len(storage))
    _C._announce_shared(storage)
    return _C._open_shared, (name, len(storage))


def _open_descriptor(duplicate, nbytes):
    descriptor = duplicate.detach()
    try:
        return _C._open_shared(descriptor, nbytes)
    finally:
        os.close(descriptor)


def reduce_tensor(tensor):
    """Returns (function, arguments) that recreate the tensor over the same memory in another process. RuntimeError: the tensor requires a gradient
    and is not a leaf."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError("Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
                           "boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it "
                           "on the queue).")
    if tensor.device.type != "cpu" or tensor.is_conj() or tensor.is_neg():
        return tensor.__reduce_ex__(2)
    storage = _share(tensor.untyped_storage(), tensor) if tensor.untyped_storage().nbytes() else tensor.untyped_storage()
    return _rebuild_tensor, (type(tensor), storage, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.requires_grad)


def _rebuild_tensor(kind, storage, offset, size, stride, dtype, requires_grad):
    tensor = _from_storage(storage, offset, size, stride, dtype)
    return tensor.requires_grad_(requires_grad) if kind is Tensor else kind(tensor, requires_grad)


# ---- Sending descriptors through a socket -----------------------------------------------------------------------------------------------------

_AT_ONCE = 200  # number of descriptors sent in one message; Linux allows at most 253
_message = threading.local()  # .storages: list of (storage, descriptor) to send; .descriptors: {number: descriptor} received


class _Passed:
    """A placeholder in a pickled message for a file descriptor that is sent after the message. number: the index of the descriptor among all
    descriptors that follow the message."""

    def __init__(self, number):
        self.number = number

    def detach(self):
        return _message.descriptors.pop(self.number)


def _duplicate(storage, descriptor):
    sent = getattr(_message, "storages", None)
    if sent is None:
        return DupFd(descriptor)
    sent.append((storage, descriptor))
    return _Passed(len(sent) - 1)


def send(pipe, obj):
    """Sends an object through a connection that is a socket. The other end must call receive."""
    _message.storages = sent = []
    try:
        content = ForkingPickler.dumps(obj)
    finally:
        _message.storages = None
    pipe.send_bytes(len(sent).to_bytes(4, "little"))
    pipe.send_bytes(content)
    with socket.socket(fileno=os.dup(pipe.fileno())) as connection:
        for at in range(0, len(sent), _AT_ONCE):
            sendfds(connection, [descriptor for _, descriptor in sent[at:at + _AT_ONCE]])


def receive(pipe):
    """Returns the next object that the other end of a connection has sent. EOFError: the other end has closed the connection."""
    count, content, received = int.from_bytes(pipe.recv_bytes(), "little"), pipe.recv_bytes(), []
    try:
        with socket.socket(fileno=os.dup(pipe.fileno())) as connection:
            while len(received) < count:
                received += recvfds(connection, min(_AT_ONCE, count - len(received)))
        _message.descriptors = dict(enumerate(received))
        received = []
        return ForkingPickler.loads(content)
    finally:
        for descriptor in (*received, *_message.__dict__.pop("descriptors", {}).values()):
            os.close(descriptor)


def init_reductions():
    """Registers the functions by which multiprocessing sends tensors."""
    ForkingPickler.register(Tensor, reduce_tensor)
    ForkingPickler.register(gradus.nn.Parameter, reduce_tensor)
    ForkingPickler.register(UntypedStorage, reduce_storage)
