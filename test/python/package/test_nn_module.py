"""Checks that attributes, traversal, conversions, state and printing of nn.Module are PyTorch's."""
import copy
import pickle
from collections import OrderedDict

import gradus
from nn_programs import attempt, same


def network(t):
    class Net(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.ReLU())
            self.head = t.nn.Linear(4, 2, bias=False)
            self.shared = self.head
            self.scale = t.nn.Parameter(t.ones(2))
            self.register_buffer("count", t.zeros(1))
            self.register_buffer("scratch", t.zeros(1), persistent=False)
            self.register_parameter("absent", None)
            self.plain = 3

        def forward(self, x):
            return self.head(self.body(x)) * self.scale

    return Net()


@same
def test_iterating_over_parameters_modules_and_buffers(t):
    net = network(t)
    for remove_duplicate in (True, False):
        yield [name for name, _ in net.named_parameters(remove_duplicate=remove_duplicate)]
        yield [name for name, _ in net.named_modules(remove_duplicate=remove_duplicate)]
    yield [name for name, _ in net.named_parameters(prefix="p", recurse=False)]
    yield [name for name, _ in net.named_buffers("b")]
    yield [name for name, _ in net.named_children()]
    yield [type(module).__name__ for module in net.modules()], len(list(net.children())), len(list(net.parameters())), len(list(net.buffers()))
    yield repr(net)
    yield [name for name in dir(net) if name in ("body", "head", "scale", "count", "plain", "absent")]
    yield [name for name in dir(net.body) if name.isdigit()]


@same
def test_initial_values_are_those_of_pytorch(t):
    yield from network(t).parameters()


@same
def test_setting_and_deleting_attributes(t):
    net = network(t)
    yield attempt(getattr, net, "nothing")
    yield attempt(setattr, net, "head", 3)
    yield attempt(setattr, net, "scale", t.ones(2))
    yield attempt(setattr, net, "count", "text")
    net.scale = None
    yield net.scale, "scale" in net._parameters
    net.head = None
    yield net.head, list(net.state_dict())
    net.count = t.ones(3)
    yield net.count, list(net.state_dict())
    net.count = None
    yield list(net.state_dict())
    net.plain = t.nn.Parameter(t.zeros(1))
    yield list(net._parameters), "plain" in net.__dict__
    yield attempt(setattr, net, "plain", t.nn.Linear(1, 1))
    del net.plain
    net.plain = t.nn.Linear(1, 1)
    yield attempt(setattr, net, "plain", t.ones(1))
    net.body = t.nn.Parameter(t.zeros(1))
    yield sorted(net._parameters), sorted(net._modules)
    net.extra = t.nn.Buffer(t.zeros(1), persistent=False)
    yield list(net._buffers), sorted(net._non_persistent_buffers_set), isinstance(net.extra, t.nn.Buffer)
    del net.extra, net.body, net.shared
    yield list(net._buffers), sorted(net._non_persistent_buffers_set), sorted(net._parameters), sorted(net._modules)
    yield attempt(delattr, net, "nothing")


@same
def test_errors_of_registering_parameters_buffers_and_modules(t):
    net = network(t)
    parameter = t.nn.Parameter(t.zeros(1))
    for register, value in ((net.register_parameter, parameter), (net.register_buffer, t.zeros(1)), (net.add_module, t.nn.ReLU())):
        for name in ("a.b", "", 3, "plain", "forward"):
            yield attempt(register, name, value)
        yield attempt(register, "new", "text")
    yield attempt(net.register_parameter, "new", parameter * 2)
    yield attempt(net.register_module, "fresh", t.nn.ReLU()), net.fresh


@same
def test_using_a_module_before_init(t):
    class Early(t.nn.Module):
        def __init__(self, value):
            self.value = value
            super().__init__()

    for value in (t.nn.Parameter(t.zeros(1)), t.nn.ReLU(), 3):
        yield str(attempt(Early, value)).split("(")[0]

    class Late(t.nn.Module):
        def __init__(self):
            pass

    yield attempt(Late().register_parameter, "a", None)
    yield attempt(Late().register_buffer, "a", None)
    yield attempt(getattr, Late(), "a")


@same
def test_arguments_of_module_init(t):
    yield attempt(t.nn.Module, 1)
    yield attempt(t.nn.Module, a=1)

    class Other:
        def __init__(self, value):
            self.value = value

    class Both(t.nn.Module, Other):
        call_super_init = True

    yield Both(3).value


@same
def test_forward_is_required(t):
    class Empty(t.nn.Module):
        pass

    yield attempt(Empty(), 1)
    yield attempt(t.nn.Linear(2, 2)), attempt(t.nn.Linear(2, 2), 1, 2)


@same
def test_get_submodule_get_parameter_and_get_buffer(t):
    net = network(t)
    yield net.get_submodule(""), net.get_submodule("body.0"), net.get_parameter("body.0.weight"), net.get_buffer("count")
    for path in ("body.7", "scale", "body.0.weight"):
        yield attempt(net.get_submodule, path)
    for path in ("body.0", "nothing", "count"):
        yield attempt(net.get_parameter, path)
    for path in ("scale", "nothing"):
        yield attempt(net.get_buffer, path)
    net.set_submodule("body.1", t.nn.Tanh())
    net.set_submodule("body.new", t.nn.Tanh())
    yield net
    for path, module, strict in (("", t.nn.Tanh(), False), ("body.other", t.nn.Tanh(), True), ("scale", t.nn.Tanh(), False)):
        yield attempt(net.set_submodule, path, module, strict)
    yield attempt(net.set_submodule, "body.0", 3)


@same
def test_train_eval_requires_grad_and_zero_grad(t):
    net = network(t)
    yield [module.training for module in net.eval().modules()], [module.training for module in net.train().modules()]
    yield attempt(net.train, 1)
    yield [p.requires_grad for p in net.requires_grad_(False).parameters()]
    net.requires_grad_()
    net(t.ones(1, 3)).sum().backward()
    net.zero_grad(set_to_none=False)
    yield [p.grad for p in net.parameters()]
    net.zero_grad()
    yield [p.grad for p in net.parameters()]
    seen = []
    yield net.apply(lambda module: seen.append(type(module).__name__)) is net, seen


@same
def test_dtype_and_device_conversions(t):
    net = network(t)
    net.register_buffer("index", t.arange(3))
    net(t.ones(1, 3)).sum().backward()
    weight = net.head.weight
    grad = weight.grad
    for convert in (lambda: net.double(), lambda: net.to(t.float32), lambda: net.half(), lambda: net.bfloat16(), lambda: net.float(),
                    lambda: net.to("cpu", t.float64), lambda: net.to(device="cpu"), lambda: net.to(t.zeros(1)), lambda: net.cpu(),
                    lambda: net.type(t.float64)):
        yield convert() is net, net.head.weight is weight, weight.grad is grad
        yield [str(value.dtype) for value in net.state_dict().values()], str(grad.dtype), str(net.index.dtype)
    yield attempt(net.to, t.int64)
    yield attempt(net.to, nothing=1)[0], attempt(net.to, t.float32, t.float32)[0]
    yield attempt(net.cuda)
    meta = network(t).to("meta")
    yield [str(p.device) for p in meta.parameters()]
    yield attempt(meta.to, "cpu")
    yield [str(p.device) for p in meta.to_empty(device="cpu").parameters()]


@same
def test_state_dict(t):
    net = network(t)
    state = net.state_dict()
    yield type(state).__name__, list(state), state._metadata
    yield [value.requires_grad for value in state.values()], state["scale"].data_ptr() == net.scale.data_ptr()
    yield list(net.state_dict(prefix="p.", keep_vars=True)), net.state_dict(keep_vars=True)["scale"] is net.scale
    target = {}
    yield net.state_dict(destination=target) is target, list(target)
    yield attempt(net.state_dict, {}, "q.")


@same
def test_load_state_dict(t):
    net, other = network(t), network(t)
    yield other.load_state_dict(net.state_dict()), str(other.load_state_dict(net.state_dict()))
    yield other.state_dict()
    state = net.state_dict()
    del state["scale"], state["body.0.bias"]
    state["what"] = t.zeros(1)
    state["body.9.weight"] = t.zeros(1)
    yield attempt(other.load_state_dict, state)
    yield other.load_state_dict(state, strict=False)
    state["head.weight"] = t.zeros(3)
    state["count"] = 3
    yield attempt(other.load_state_dict, state, strict=False)
    yield attempt(other.load_state_dict, [1])
    yield attempt(t.nn.BCEWithLogitsLoss().load_state_dict, {"weight": t.zeros(1)})


@same
def test_load_state_dict_with_and_without_assign(t):
    net, other = network(t).double(), network(t)
    weight = other.head.weight
    other.load_state_dict(net.state_dict())
    yield other.head.weight is weight, str(weight.dtype)
    other.requires_grad_(False)
    other.load_state_dict(net.state_dict(), assign=True)
    yield other.head.weight is weight, str(other.head.weight.dtype), other.head.weight.requires_grad, isinstance(other.scale, t.nn.Parameter)
    scalar = t.nn.ParameterList([t.zeros(())])
    scalar.load_state_dict({"0": t.ones(1)})
    yield scalar[0]


@same
def test_extra_state(t):
    class Counter(t.nn.Module):
        def __init__(self, count):
            super().__init__()
            self.count = count

        def get_extra_state(self):
            return self.count

        def set_extra_state(self, state):
            self.count = state

    one, two = t.nn.Sequential(Counter(1)), t.nn.Sequential(Counter(2))
    yield one.state_dict(), two.load_state_dict(one.state_dict()), two[0].count
    yield attempt(two.load_state_dict, {})
    yield attempt(t.nn.Sequential(t.nn.ReLU()).load_state_dict, one.state_dict())


@same
def test_state_dict_hooks(t):
    net, log = network(t), []
    net.register_state_dict_pre_hook(lambda module, prefix, keep_vars: log.append(("pre", prefix, keep_vars)))
    handle = net.register_state_dict_post_hook(lambda module, state, prefix, metadata: state.update(count=3))
    yield net.state_dict()["count"], log
    handle.remove()
    yield net.state_dict()["count"]
    net.register_state_dict_post_hook(lambda *args: {})
    yield attempt(net.state_dict)
    net = network(t)
    net._register_state_dict_hook(lambda module, state, prefix, metadata: {"replaced": 1})
    yield net.state_dict()
    net.register_load_state_dict_pre_hook(lambda module, state, *rest: log.append((module is net, sorted(state), rest[0], rest[2])))
    net.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear())
    yield attempt(net.load_state_dict, {}), log
    net.register_load_state_dict_post_hook(lambda module, keys: 1)
    yield attempt(net.load_state_dict, {})


@same
def test_load_state_dict_of_an_older_version(t):
    class Renamed(t.nn.Linear):
        _version = 2

        def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
            if local_metadata.get("version", 1) < 2:
                state_dict[prefix + "weight"] = state_dict.pop(prefix + "w")
            super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    net = t.nn.Sequential(Renamed(1, 1))
    yield net.load_state_dict({"0.w": t.ones(1, 1), "0.bias": t.ones(1)}), net.state_dict()._metadata
    yield attempt(net.load_state_dict, net.state_dict()), net[0].weight


@same
def test_copies_of_modules(t):
    net = network(t)
    other = copy.deepcopy(net)
    yield other.shared is other.head, other.head.weight is net.head.weight, isinstance(other.scale, t.nn.Parameter), other.scale.requires_grad
    other.scale.data.fill_(7)
    yield net.scale, other.state_dict(), repr(other)
    shallow = copy.copy(net)
    yield shallow.head is net.head, shallow(t.ones(1, 3))


def test_pickling_modules():
    net = gradus.nn.Sequential(gradus.nn.Linear(2, 3), gradus.nn.Dropout(0.3)).eval()
    net[0].weight.note = "kept"
    other = pickle.loads(pickle.dumps(net))
    assert repr(other) == repr(net) and not other.training and other[0].weight.note == "kept"
    x = gradus.ones(1, 2)
    assert other(x).tolist() == net(x).tolist()
    assert all(isinstance(p, gradus.nn.Parameter) and p.requires_grad for p in other.parameters())


@same
def test_parameter(t):
    p = t.nn.Parameter(t.ones(2))
    yield p, repr(p), isinstance(p, t.nn.Parameter), isinstance(t.ones(2), t.nn.Parameter), isinstance(p, t.nn.Buffer), p.is_leaf
    yield t.nn.Parameter(), t.nn.Parameter(t.arange(2), requires_grad=False), attempt(t.nn.Parameter, t.arange(2))[0]
    yield type(p * 2).__name__, type(p.data).__name__, type(p.detach()).__name__, (p * 2).requires_grad
    with t.no_grad():
        yield t.nn.Parameter(t.ones(1)).requires_grad
    values = t.zeros(2)
    shared = t.nn.Parameter(values)
    values.fill_(3)
    yield shared
    again = copy.deepcopy(shared)
    yield again, type(again).__name__, again.data_ptr() != shared.data_ptr()
    memo = {}
    yield copy.deepcopy(shared, memo) is copy.deepcopy(shared, memo)
    yield t.nn.Buffer(t.ones(1)).persistent, isinstance(t.nn.Buffer(), t.nn.Buffer), isinstance(t.nn.Buffer(), t.nn.Parameter)


@same
def test_parameter_of_a_subclass(t):
    class Named(t.Tensor):
        pass

    p = t.nn.Parameter(t.ones(2).as_subclass(Named))
    yield type(p).__name__, isinstance(p, t.nn.Parameter), p.requires_grad
    module = t.nn.Module()
    module.p = p
    yield [name for name, _ in module.named_parameters()]


@same
def test_sequential(t):
    nn = t.nn
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    yield net, net[0], net[-1], net[:2], len(net), list(net), attempt(lambda: net[3]), attempt(lambda: net["a"])
    net[1] = nn.Tanh()
    net.append(nn.ReLU()).extend([nn.Tanh()]).insert(1, nn.Identity())
    yield net, net(t.ones(1, 2))
    del net[1]
    del net[-2:]
    yield net, list(net.state_dict()), net.pop(0), net
    yield attempt(net.insert, 9, nn.ReLU()), attempt(net.insert, 0, 3)[0], attempt(net.append, 3)
    yield nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh())), nn.Sequential()
    two = nn.Sequential(nn.ReLU(), nn.Tanh())
    yield two + two, two * 2, 2 * two, attempt(lambda: two + [1]), attempt(lambda: two * 0), attempt(lambda: two * "a")
    two *= 2
    two += nn.Sequential(nn.ReLU())
    yield two, attempt(setattr, two, "0", 3)


@same
def test_module_list(t):
    nn = t.nn
    layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    yield layers, len(layers), layers[1], layers[-1] is layers[2], layers[1:], nn.ModuleList()
    layers.append(nn.ReLU()).extend([nn.Tanh()])
    layers.insert(1, nn.Identity())
    layers += [nn.ReLU()]
    yield layers, layers + [nn.Tanh()], list(layers.state_dict())
    del layers[0]
    del layers[::2]
    yield layers, layers.pop(-1), layers, attempt(lambda: layers[10]), attempt(layers.extend, 3), attempt(layers.append, 3)
    layers[0] = nn.Sigmoid()
    yield layers, attempt(layers, 1)


@same
def test_module_dict(t):
    nn = t.nn
    heads = nn.ModuleDict({"a": nn.ReLU(), "b": nn.Tanh()})
    yield heads, list(heads), list(heads.items()), list(heads.values()), list(heads.keys()), len(heads), "a" in heads, heads["a"]
    heads.update([["c", nn.Linear(1, 1)], ("a", nn.Sigmoid())])
    heads.update(nn.ModuleDict({"d": nn.Identity()}))
    yield heads, heads.pop("b"), heads, attempt(heads.pop, "b"), attempt(lambda: heads["zz"])
    yield attempt(heads.update, 3), attempt(heads.update, [["a"]]), attempt(setattr(heads, "x", 1) or heads.__setitem__, "x.y", nn.ReLU())
    del heads["a"]
    heads.clear()
    yield heads


@same
def test_parameter_list(t):
    nn = t.nn
    values = nn.ParameterList([t.ones(2), nn.Parameter(t.zeros(1, 3)), "text"])
    yield values, len(values), values[0], values[-1], values[:2], list(values), [name for name, _ in values.named_parameters()]
    values.append(t.ones(1)).extend([3])
    values += [t.zeros(1)]
    values[0] = t.zeros(5)
    yield values, attempt(lambda: values[9]), attempt(values.extend, t.ones(1)), attempt(values), list(values.state_dict())


@same
def test_parameter_dict(t):
    nn = t.nn
    values = nn.ParameterDict({"b": t.ones(2), "a": nn.Parameter(t.zeros(1))})
    yield values, list(values), len(values), values["a"], "a" in values, list(values.items()), list(reversed(values))
    yield values.setdefault("c", t.ones(1)), values.get("zz", 3), values.get("a"), values.pop("c"), values
    yield values.copy(), values.fromkeys(["k"], t.ones(1)), values | nn.ParameterDict({"d": t.ones(1)})
    values.update([("x", t.ones(1))])
    values |= nn.ParameterDict({"a": t.ones(3)})
    yield values, values.popitem(), attempt(nn.ParameterDict().__setitem__, 3, t.ones(1)), attempt(values), attempt(values.update, 3)
    yield attempt(values.update, [["a"]]), list(values.values()), list(values.keys())
    del values["a"]
    values.clear()
    yield values, attempt(values.popitem)


def test_an_unknown_attribute_of_nn_is_an_attribute_error():
    assert attempt(getattr, gradus.nn, "Absent") == ("AttributeError", "module 'gradus.nn' has no attribute 'Absent'")


@same
def test_subclasses_that_override_call_and_attribute_access(t):
    Linear = t.nn.Linear

    class Seen(Linear):
        def __getattr__(self, name):
            found = super().__getattr__(name)
            return found * 2 if name == "weight" else found

    class Deputy(t.nn.Module):
        def __init__(self, module):
            super().__init__()
            self.module = module

        def __getattr__(self, name):
            try:
                return super().__getattr__(name)
            except AttributeError:
                return getattr(self.module, name)

    class All(Linear):
        def __getattribute__(self, name):
            return "all" if name == "anything" else super().__getattribute__(name)

    class Called(Linear):
        def __call__(self, x):
            return super().__call__(x) + 1

    class Property(Linear):
        failing = property(lambda self: self.nothing)
        hidden = 1

        @property
        def doubled(self):
            return self.weight * 2

    x = t.ones(1, 2)
    for kind in (Seen, Deputy, All, Called, Property):
        module = kind(Linear(2, 1)) if kind is Deputy else kind(2, 1)
        for parameter in module.parameters():
            parameter.data.fill_(1)
        yield kind.__name__, None if kind is Deputy else attempt(module, x)
        yield attempt(getattr, module, "weight"), attempt(getattr, module, "anything")
    module = Property(2, 1)
    t.nn.init.ones_(module.weight)
    yield attempt(getattr, module, "failing"), module.doubled / module.weight, module.hidden
    module.hidden = 2
    yield module.hidden
    module.forward = lambda x, scale=1: "own"
    yield module(x), module(x, scale=2)
    del module.forward
    yield module(input=x), module(x)
    Property.__call__ = lambda self, x: "class"
    yield module(x)
    del Property.__call__
    Property.__getattr__ = lambda self, name: name
    yield module.weight, module.anything
    del Property.__getattr__
    yield module(x), attempt(getattr, module, "anything")
    Property.forward = staticmethod(lambda x: x + 100)
    yield module(x)


@same
def test_direct_changes_of_parameters_buffers_and_modules(t):
    """Libraries that wrap layers replace a parameter in the dict _parameters. The module then uses the new parameter."""
    module = t.nn.Linear(2, 1)
    module._parameters["weight"] = t.nn.Parameter(t.full((1, 2), 3.0))
    yield module.weight, module(t.zeros(1, 2)) - module.bias
    weight = module._parameters.pop("weight")
    yield attempt(getattr, module, "weight"), attempt(module, t.ones(1, 2))
    module.weight = weight * 2
    yield module.weight, list(module.state_dict())
    module._buffers["b"], module._modules["m"] = t.ones(1), t.nn.ReLU()
    yield module.b, module.m
    module._parameters = {}
    yield attempt(getattr, module, "bias")
