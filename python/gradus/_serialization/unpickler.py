"""Defines two unpicklers. ClosedUnpickler can do only what checkpoints need. The unpickler that open_unpickler returns does whatever the file says.

ClosedUnpickler derives from the standard library's unpickler in pure Python, and supports fewer pickle instructions. It refuses every name of a class
or function that is not on the list of names that a checkpoint may contain (globals.py).
"""
import pickle
import struct
from collections import Counter, OrderedDict

from gradus._serialization import rebuild
from gradus._serialization.globals import allowed_by_user, find, find_any

__all__ = ["ClosedUnpickler", "open_unpickler"]

_INSTRUCTIONS = [
    pickle.PROTO, pickle.STOP, pickle.MARK, pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE, pickle.BININT, pickle.BININT1, pickle.BININT2,
    pickle.LONG1, pickle.BINFLOAT, pickle.BINUNICODE, pickle.SHORT_BINUNICODE, pickle.BINBYTES, pickle.SHORT_BINBYTES,
    pickle.EMPTY_TUPLE, pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3, pickle.EMPTY_LIST, pickle.EMPTY_DICT, pickle.EMPTY_SET,
    pickle.GLOBAL, pickle.STACK_GLOBAL, pickle.BINPERSID, pickle.BINGET, pickle.LONG_BINGET, pickle.BINPUT, pickle.LONG_BINPUT,
    pickle.MEMOIZE, pickle.FRAME,
]
_COPYING = [rebuild.make_bytearray, rebuild.make_bytes, rebuild.make_counter, rebuild.make_set, rebuild.make_size]
_FUNCTIONS = [value for name, value in vars(rebuild).items() if name.startswith(("rebuild_", "make_"))]


def _is_one_of(thing, things):
    """True if `thing` is one of `things`. Compares identities, because the class of an object from a file may define its own ==."""
    return any(thing is other for other in things)


class ClosedUnpickler(pickle._Unpickler):
    """An unpickler for untrusted files. It refuses every name that is not on the list of names that a checkpoint may contain (globals.py).
    ``persistent_load`` is a function that returns the storage for a reference in the pickle. ``size`` is the number of bytes of the file."""

    dispatch = {code[0]: pickle._Unpickler.dispatch[code[0]] for code in _INSTRUCTIONS}

    def __init__(self, file, persistent_load, size):
        super().__init__(file, encoding="bytes")
        self.persistent_load = persistent_load
        self._left = size

    def load(self):
        """Returns the unpickled object. UnpicklingError: the pickle is damaged, or it contains something that is not allowed."""
        try:
            return super().load()
        except KeyError as exception:
            raise pickle.UnpicklingError(f"instruction or reference {exception} is not supported") from None
        except (IndexError, TypeError, AttributeError, ValueError, ArithmeticError, EOFError, RecursionError, struct.error) as exception:
            raise pickle.UnpicklingError(f"the pickle is damaged ({exception})") from exception

    def find_class(self, module, name):
        return find(module, name)

    def load_reduce(self):
        args = self.stack.pop()
        function = self.stack[-1]
        if type(args) is not tuple or not (_is_one_of(function, _FUNCTIONS) or allowed_by_user(function)):
            raise pickle.UnpicklingError(f"Trying to call reduce for unrecognized function {function!r}")
        if args and _is_one_of(function, _COPYING):
            self._account(args[0])
        self.stack[-1] = function(*args)

    def _account(self, content):
        """Counts a copy of len(content) bytes. Raises UnpicklingError if all copies together exceed the size of the file. Without this limit, a small
        file could exhaust the memory by having one long text copied many times."""
        self._left -= len(content)
        if self._left < 0:
            raise pickle.UnpicklingError("the pickle copies more than it holds")

    def load_newobj(self):
        args = self.stack.pop()
        kind = self.stack[-1]
        if type(args) is not tuple or not (isinstance(kind, type) and allowed_by_user(kind)):
            raise pickle.UnpicklingError("Can only create new object for classes allowlisted via "
                                         f"`add_safe_globals` but got {kind!r}")
        self.stack[-1] = kind.__new__(kind, *args)

    def load_build(self):
        state = self.stack.pop()
        target = self.stack[-1]
        if type(target) is OrderedDict:
            # PyTorch stores a state dict as an OrderedDict with an attribute for the metadata of its modules.
            if type(state) is not dict or any(type(key) is not str or hasattr(OrderedDict, key) for key in state):
                raise pickle.UnpicklingError("attributes of an OrderedDict")
            target.__dict__.update(state)
        elif allowed_by_user(type(target)):
            self.stack.append(state)
            pickle._Unpickler.load_build(self)
        else:
            raise pickle.UnpicklingError("Can only build OrderedDict or types allowlisted via "
                                         f"`add_safe_globals`, but got {type(target)}")

    def load_append(self):
        self._fill(list, [self.stack.pop()])

    def load_appends(self):
        self._fill(list, self.pop_mark())

    def load_additems(self):
        self._fill(set, self.pop_mark())

    def load_setitem(self):
        value, key = self.stack.pop(), self.stack.pop()
        self._fill(dict, [key, value])

    def load_setitems(self):
        self._fill(dict, self.pop_mark())

    def _fill(self, kind, items):
        """Adds `items` to the list, set or dictionary on top of the stack. For a dictionary, keys and values alternate in `items`. UnpicklingError:
        the object on top of the stack is not of type `kind`."""
        target = self.stack[-1]
        if type(target) is not kind and not (kind is dict and type(target) in (OrderedDict, Counter)):
            raise pickle.UnpicklingError(f"Can only put items into a {kind.__name__}, but got {type(target)}")
        if kind is list:
            target.extend(items)
            return
        for key in items if kind is set else items[::2]:
            rebuild.check_key(key)
        if kind is set:
            target.update(items)
        else:
            for index in range(0, len(items), 2):
                target[items[index]] = items[index + 1]

    dispatch.update({
        pickle.REDUCE[0]: load_reduce, pickle.NEWOBJ[0]: load_newobj, pickle.BUILD[0]: load_build, pickle.APPEND[0]: load_append,
        pickle.APPENDS[0]: load_appends, pickle.ADDITEMS[0]: load_additems, pickle.SETITEM[0]: load_setitem,
        pickle.SETITEMS[0]: load_setitems,
    })


def open_unpickler(pickle_module, file, persistent_load, **arguments):
    """Returns an unpickler of ``pickle_module`` that imports and calls any function that the file asks for. Only for trusted files."""
    class OpenUnpickler(pickle_module.Unpickler):
        def find_class(self, module, name):
            return find_any(module, name, super().find_class)

        def persistent_load(self, reference):
            return persistent_load(reference)

    return OpenUnpickler(file, **arguments)
