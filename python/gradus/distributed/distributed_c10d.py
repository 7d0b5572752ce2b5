"""Process groups of one process, and their collective operations. A reduction leaves the tensor unchanged, and a gather copies it.

Arguments are checked as PyTorch does with gloo. A group of several processes, and sending to another process, raise NotImplementedError.
"""
from __future__ import annotations

import os
from datetime import timedelta
from enum import Enum

import gradus
from gradus._C import Tensor

__all__ = ["Backend", "DebugLevel", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "FileStore", "HashStore", "P2POp", "PrefixStore", "ProcessGroup", "QueueEmptyError", "ReduceOp",
           "Store", "TCPStore", "Work", "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_gather_single", "all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast", "broadcast_object_list",
           "default_pg_timeout", "destroy_process_group", "gather", "gather_object", "get_backend", "get_debug_level", "get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count",
           "get_process_group_ranks", "get_rank", "get_world_size", "init_process_group", "irecv", "is_available", "is_backend_available", "is_gloo_available", "is_initialized",
           "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "isend", "monitored_barrier", "new_group",
           "new_subgroups", "new_subgroups_by_enumeration", "recv", "recv_object_list", "reduce", "reduce_op", "reduce_scatter", "reduce_scatter_single", "reduce_scatter_tensor", "scatter", "scatter_object_list", "send", "send_object_list",
           "set_debug_level", "set_debug_level_from_env", "supports_complex"]

default_pg_timeout = timedelta(minutes=30)
_world = None  # the default process group; None before init_process_group


class Backend(str):
    """The name of a backend in lower case. All names are accepted and have the same effect."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish: {name}")
        return super().__new__(cls, name.lower())


class ReduceOp(Enum):
    """The operation that combines the tensors of all processes. With one process the result is the tensor of that process."""

    SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, PREMUL_SUM = range(9)


reduce_op = ReduceOp  # older name of ReduceOp


class DistError(RuntimeError):
    """Never raised, and neither are the subclasses, because no communication takes place that could fail."""


class DistBackendError(DistError):
    """Never raised, because no communication takes place."""


class DistNetworkError(DistError):
    """Never raised, because no communication takes place."""


class DistStoreError(DistError):
    """Never raised, because no communication takes place."""


class QueueEmptyError(DistStoreError):
    """Never raised, because no communication takes place."""


class DebugLevel(Enum):
    """The amount of checks and logs for communication. It has no effect."""

    OFF, INFO, DETAIL = range(3)


_debug_level = DebugLevel.OFF


class Work:
    """The result of a call with async_op=True. The operation is already complete."""

    def __init__(self, result=None):
        self._result = result

    def wait(self, timeout=None):
        """Returns True, because the operation is already complete."""
        return True

    def is_completed(self):
        """Returns True, because the operation is already complete."""
        return True

    def is_success(self):
        """Returns True, because the operation is already complete."""
        return True

    def exception(self):
        """Returns None, because the operation has not failed."""

    def result(self):
        """Returns the list of tensors that the call has written."""
        return self._result

    def get_future(self):
        """Returns this Work object, which has a method wait() like a future."""
        return self


class Store:
    """A store of keys and values that the processes of a group share. With one process it is a dictionary."""

    def __init__(self, *args, **kwargs):
        self._values = {}
        self.timeout = default_pg_timeout

    def set(self, key, value):
        """Stores `value`, a str or bytes, under `key`."""
        self._values[key] = value.encode() if isinstance(value, str) else bytes(value)

    def get(self, key):
        """Returns the value of `key` as bytes. RuntimeError: the key does not exist, and there is no other process that could set it."""
        if key not in self._values:
            raise RuntimeError(f"The key {key!r} is not in the store, and there is no other process to set it")
        return self._values[key]

    def add(self, key, amount):
        """Adds `amount` to the counter `key`, which starts at 0, and returns its new value."""
        value = int(self._values.get(key, b"0")) + amount
        self._values[key] = str(value).encode()
        return value

    def wait(self, keys, timeout=None):
        """Returns at once if all keys exist. RuntimeError: a key does not exist, and there is no other process that could set it."""
        for key in keys:
            self.get(key)

    def delete_key(self, key):
        """Deletes a key. Returns True if it existed."""
        return self._values.pop(key, None) is not None

    def num_keys(self):
        """Returns the number of keys."""
        return len(self._values)


class HashStore(Store):
    """A store in the memory of one process."""


class TCPStore(Store):
    """A store that opens no connection, because there is only one process."""

    def __init__(self, host_name, port, world_size=None, is_master=False, *args, **kwargs):
        super().__init__()
        _check_world_size(1 if world_size in (None, -1) else world_size)
        self.host, self.port = host_name, port


class FileStore(Store):
    """A store that writes no file, because there is only one process."""


class PrefixStore(Store):
    """A store that keeps its values in another store, under keys with "prefix/" in front."""

    def __init__(self, prefix, store):
        super().__init__()
        self._values = _Prefixed(prefix, store._values)


class _Prefixed(dict):
    def __init__(self, prefix, values):
        super().__init__()
        self._prefix, self._below = prefix, values

    def __contains__(self, key):
        return f"{self._prefix}/{key}" in self._below

    def __getitem__(self, key):
        return self._below[f"{self._prefix}/{key}"]

    def __setitem__(self, key, value):
        self._below[f"{self._prefix}/{key}"] = value

    def get(self, key, default=None):
        return self._below.get(f"{self._prefix}/{key}", default)

    def pop(self, key, default=None):
        return self._below.pop(f"{self._prefix}/{key}", default)

    def __len__(self):
        return sum(key.startswith(f"{self._prefix}/") for key in self._below)


class ProcessGroup:
    """A process group that consists of this process only."""

    def __init__(self, backend="gloo", name=""):
        self.group_name, self._backend = name, Backend(backend)

    def rank(self):
        """Returns 0, the rank of this process."""
        return 0

    def size(self):
        """Returns 1, the number of processes."""
        return 1

    def name(self):
        """Returns the name of the backend."""
        return str(self._backend)


class _Members(type):
    @property
    def WORLD(cls):
        """Returns the default group, or None before init_process_group."""
        return _world


class group(metaclass=_Members):
    """Holds the default group as the attribute group.WORLD."""


class GroupMember(metaclass=_Members):
    """WORLD is the default group. new_group returns NON_GROUP_MEMBER in a process that does not belong to the new group."""

    NON_GROUP_MEMBER = -100


# ---- Groups -------------------------------------------------------------------------------------------------------------------


def is_available():
    """Returns True, because groups of one process are supported."""
    return True


def is_initialized():
    """True between init_process_group and destroy_process_group."""
    return _world is not None


def is_torchelastic_launched():
    """True if torchrun has started this process (environment variable TORCHELASTIC_RUN_ID)."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def is_backend_available(backend):
    """True for "gloo", whose operations are implemented for one process. init_process_group also accepts any other name."""
    return backend.lower() == "gloo"


def get_node_local_rank(fallback_rank=None):
    """Returns the environment variable LOCAL_RANK as an int, or `fallback_rank` if it is not set. RuntimeError: both are missing."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, assuming you are not running in a "
                           "multi-device context and want the code to run locally instead.")
    return int(fallback_rank)


def get_pg_count():
    """Returns 1 if the default group exists, otherwise 0."""
    return int(_world is not None)


def get_debug_level():
    """Returns the debug level, which is OFF unless it was set."""
    return _debug_level


def set_debug_level(level):
    """Sets the debug level. It has no effect."""
    global _debug_level
    _debug_level = level


def set_debug_level_from_env():
    """Sets the debug level to the one named by the environment variable TORCH_DISTRIBUTED_DEBUG. RuntimeError: there is no such level."""
    name = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if name not in DebugLevel.__members__:
        raise RuntimeError("The value of TORCH_DISTRIBUTED_DEBUG must be one of `OFF`, `INFO`, or `DETAIL`.")
    set_debug_level(DebugLevel[name])


def is_gloo_available():
    """Returns True, because the operations of gloo are implemented for groups of one process."""
    return True


def is_nccl_available():
    """Returns False, because NCCL is not used."""
    return False


is_mpi_available = is_ucc_available = is_xccl_available = is_nccl_available


def _check_world_size(size):
    if size != 1:
        raise NotImplementedError(f"Gradus has process groups of one process; a world of {size} is not there")


def _from_environment(name, given):
    if given is not None and given >= 0:
        return given
    if name not in os.environ:
        raise ValueError(f"Error initializing {gradus.__name__}.distributed using env:// rendezvous: environment variable {name} expected, but not set")
    return int(os.environ[name])


def init_process_group(backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="", pg_options=None, device_id=None):
    """Creates the default group, which consists of this process.

    `world_size` is the number of processes. It defaults to the environment variable WORLD_SIZE. NotImplementedError: `world_size` is not 1.
    ValueError: the default group already exists, or neither `world_size` nor WORLD_SIZE is given.
    """
    global _world
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise AssertionError("Cannot specify both init_method and store.")
    if store is not None and (world_size <= 0 or rank < 0):
        raise AssertionError("world_size must be positive if using store" if world_size <= 0 else "rank must be non-negative if using store")
    if store is None and init_method in (None, "env://"):
        rank, world_size = _from_environment("RANK", rank), _from_environment("WORLD_SIZE", world_size)
        for name in ("MASTER_ADDR", "MASTER_PORT"):
            _from_environment(name, None if name not in os.environ else 0)
    elif store is None and (rank < 0 or world_size < 0):
        raise ValueError("Error initializing torch.distributed using a rendezvous without rank or world_size parameter")
    _check_world_size(world_size)
    if rank != 0:
        raise ValueError(f"The rank of the only process is 0, not {rank}")
    _world = ProcessGroup("gloo" if backend is None else backend, "0")


def destroy_process_group(group=None):
    """Ends the default group. Does nothing for another group."""
    global _world
    _member(group)
    if group is None or group is _world:
        _world = None


def new_group(ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, group_desc=None, device_id=None):
    """Returns a group of the processes with the given ranks, or GroupMember.NON_GROUP_MEMBER if `ranks` is empty. ValueError: a rank is not 0, the
    rank of the only process."""
    world = _member(None)
    for rank in ranks or ():
        if rank != 0:
            raise ValueError(f"Rank {rank} is out of range. Valid ranks are 0 to 0 (world_size=1)")
    return GroupMember.NON_GROUP_MEMBER if ranks is not None and not ranks else ProcessGroup(world.name() if backend is None else backend)


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Returns (the subgroup of this process, the list of all subgroups). ValueError: `group_size` is not 1."""
    if group_size not in (None, 1):
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size (1)")
    made = new_group([0], backend=backend)
    return made, [made]


def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Makes a subgroup for each list of ranks. Returns a pair: the subgroup that contains this process (None if there is none), and the list of all
    subgroups. ValueError: a rank is not 0, or occurs in two lists."""
    if len({rank for ranks in ranks_per_subgroup_list for rank in ranks}) < sum(map(len, ranks_per_subgroup_list)):
        raise ValueError("Rank 0 has appeared in both subgroups")
    made = [new_group(ranks, backend=backend) for ranks in ranks_per_subgroup_list]
    return next((group for group in made if group != GroupMember.NON_GROUP_MEMBER), None), made


def _member(group):
    """Returns `group`, or the default group if it is None. ValueError: there is no default group."""
    if _world is None:
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
    return _world if group is None else group


def get_rank(group=None):
    """Returns 0, or -1 if this process does not belong to the group. ValueError: there is no default group."""
    return -1 if _member(group) == GroupMember.NON_GROUP_MEMBER else 0


def get_world_size(group=None):
    """Returns 1, or -1 if this process does not belong to the group. ValueError: there is no default group."""
    return -1 if _member(group) == GroupMember.NON_GROUP_MEMBER else 1


def get_backend(group=None):
    """Returns the name of the backend with which the group was created."""
    return _member(group).name()


def get_default_backend_for_device(device):
    """Returns "gloo", whatever the device is."""
    return "gloo"


def get_process_group_ranks(group):
    """Returns [0], the rank of this process."""
    _member(group)
    return [0]


def get_global_rank(group, group_rank):
    """Returns 0, the rank of the only process. ValueError: `group_rank` is not 0."""
    _check_rank(group_rank)
    return 0


def get_group_rank(group, global_rank):
    """Returns 0, the rank of the only process in each group. ValueError: `global_rank` is not 0."""
    _check_rank(global_rank)
    return 0


def _check_rank(rank):
    if rank not in (None, 0):
        raise ValueError(f"Global rank {rank} is not part of group")


# ---- Collective operations on tensors -----------------------------------------------------------------------------------------


def _check_tensor(tensor, name):
    if not isinstance(tensor, Tensor):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type {gradus.__name__}.Tensor\n             but got {type(tensor)} instead.")


def _check_list(tensors, name, length=1):
    if not isinstance(tensors, list) or not all(isinstance(tensor, Tensor) for tensor in tensors):
        raise TypeError(f"Invalid function argument. Expected parameter `{name}` of type List[{gradus.__name__}.Tensor]\n             but got {type(tensors)} instead.")
    if length is not None and len(tensors) != length:
        raise ValueError(f"`{name}` must have one tensor for each process, which is {length}, not {len(tensors)}")


def _done(result, async_op):
    return Work(result) if async_op else None


def _copied(output, input, async_op, group):
    """Copies `input` into `output`, which must have the same number of elements. Returns None, or a completed Work if `async_op` is true."""
    _member(group)
    with gradus.no_grad():
        output.copy_(input.reshape(output.shape))
    return _done([output], async_op)


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """Leaves the tensor unchanged, because this process is the source. Returns None, or a completed Work if `async_op` is true."""
    _check_tensor(tensor, "tensor")
    _member(group)
    _check_rank(src)
    return _done([tensor], async_op)


def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
    """Leaves the tensor unchanged, because a reduction over one process gives its input. Returns None, or a completed Work if `async_op` is true."""
    _check_tensor(tensor, "tensor")
    _member(group)
    return _done([tensor], async_op)


def all_reduce_coalesced(tensors, op=ReduceOp.SUM, group=None, async_op=False):
    """Leaves the tensors unchanged, because a reduction over one process gives its input. Returns None, or a completed Work if `async_op` is true.
    TypeError: `tensors` is not a list of tensors."""
    _check_list([tensors] if isinstance(tensors, Tensor) else tensors, "tensors", None)
    _member(group)
    return _done(tensors, async_op)


def supports_complex(reduceOp):
    """True if the operation is defined for complex numbers."""
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


def reduce(tensor, dst=None, op=ReduceOp.SUM, group=None, async_op=False, group_dst=None):
    """Leaves the tensor unchanged, because a reduction over one process gives its input. Returns None, or a completed Work if `async_op` is true."""
    _check_rank(dst)
    return all_reduce(tensor, op, group, async_op)


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Copies `tensor` into the only tensor of `tensor_list`. Returns None, or a completed Work if `async_op` is true."""
    _check_list(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    return _copied(tensor_list[0], tensor, async_op, group)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """Copies `input_tensor` into `output_tensor`. Returns None, or a completed Work if `async_op` is true."""
    _check_tensor(input_tensor, "input_tensor")
    _check_tensor(output_tensor, "output_tensor")
    return _copied(output_tensor, input_tensor, async_op, group)


all_gather_single = all_gather_into_tensor


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """Copies tensor i of `input_tensor_list` into tensor i of each list in `output_tensor_lists`. Returns None, or a completed Work if `async_op` is
    true."""
    _check_list(input_tensor_list, "input_tensor_list", None)
    for outputs in output_tensor_lists:
        _check_list(outputs, "output_tensor_lists", len(input_tensor_list))
        for output, input in zip(outputs, input_tensor_list):
            _copied(output, input, False, group)
    return _done(output_tensor_lists, async_op)


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """Copies `tensor` into the only tensor of `gather_list`. Returns None, or a completed Work if `async_op` is true. ValueError: `gather_list` is
    missing."""
    _check_tensor(tensor, "tensor")
    _check_rank(dst)
    if not gather_list:
        _member(group)
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    return all_gather(gather_list, tensor, group, async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """Copies the only tensor of `scatter_list` into `tensor`. Returns None, or a completed Work if `async_op` is true. ValueError: `scatter_list` is
    missing."""
    _check_tensor(tensor, "tensor")
    _check_rank(src)
    if not scatter_list:
        _member(group)
        raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
    _check_list(scatter_list, "scatter_list")
    return _copied(tensor, scatter_list[0], async_op, group)


def reduce_scatter(output, input_list, op=ReduceOp.SUM, group=None, async_op=False):
    """Copies the only tensor of `input_list` into `output`. Returns None, or a completed Work if `async_op` is true."""
    _check_tensor(output, "output")
    _check_list(input_list, "input_list")
    return _copied(output, input_list[0], async_op, group)


def reduce_scatter_tensor(output, input, op=ReduceOp.SUM, group=None, async_op=False):
    """Copies `input` into `output`. Returns None, or a completed Work if `async_op` is true."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    return _copied(output, input, async_op, group)


reduce_scatter_single = reduce_scatter_tensor


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Copies the only tensor of `input_tensor_list` into the only tensor of `output_tensor_list`. Returns None, or a completed Work if `async_op` is
    true."""
    _check_list(output_tensor_list, "output_tensor_list")
    _check_list(input_tensor_list, "input_tensor_list")
    return _copied(output_tensor_list[0], input_tensor_list[0], async_op, group)


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """Copies `input` into `output`. Returns None, or a completed Work if `async_op` is true."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    return _copied(output, input, async_op, group)


def barrier(group=None, async_op=False, device_ids=None):
    """Returns at once, because there is no other process."""
    _member(group)
    return _done(None, async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """Returns at once, because there is no other process."""
    _member(group)


# ---- Collective operations on objects -----------------------------------------------------------------------------------------


def all_gather_object(object_list, obj, group=None):
    """Sets object_list[0] to `obj`, the object of the only process."""
    _member(group)
    object_list[0] = obj


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """Sets object_gather_list[0] to `obj`, the object of the only process. ValueError: `object_gather_list` is missing."""
    _check_rank(dst)
    if not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    all_gather_object(object_gather_list, obj, group)


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """Leaves the objects unchanged, because this process is the source."""
    _member(group)
    _check_rank(src)


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None, group_src=None):
    """Sets scatter_object_output_list[0] to the only object of `scatter_object_input_list`."""
    _member(group)
    _check_rank(src)
    scatter_object_output_list[0] = scatter_object_input_list[0]


# ---- Point-to-point communication ---------------------------------------------------------------------------------------------


class P2POp:
    """A send or receive operation for batch_isend_irecv."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        self.op, self.tensor, self.peer, self.group, self.tag = op, tensor, peer, group, tag


def _no_other_process(name):
    _member(None)
    raise NotImplementedError(f"{name}: there is no other process; Gradus has process groups of one process")


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Raises NotImplementedError, because there is no other process. ValueError: `dst` is this process."""
    _check_tensor(tensor, "tensor")
    if _member(group) is not None and dst == 0:
        raise ValueError("Invalid destination rank: destination rank should not be the same as the rank of the current process.")
    _no_other_process("send")


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Raises NotImplementedError, because there is no other process."""
    _check_tensor(tensor, "tensor")
    _no_other_process("recv")


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Raises NotImplementedError, because there is no other process. ValueError: `dst` is this process."""
    send(tensor, dst, group, tag, group_dst)


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """Raises NotImplementedError, because there is no other process."""
    recv(tensor, src, group, tag, group_src)


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False):
    """Raises NotImplementedError, because there is no other process."""
    _no_other_process("send_object_list")


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch=False):
    """Raises NotImplementedError, because there is no other process."""
    _no_other_process("recv_object_list")


def batch_isend_irecv(p2p_op_list):
    """Raises NotImplementedError, because there is no other process."""
    _no_other_process("batch_isend_irecv")
