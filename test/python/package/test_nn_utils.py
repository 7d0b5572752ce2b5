"""Compares nn.utils with PyTorch: weight and spectral normalization by hooks, fused layers, skip_init and functional_call. Compares values, keys of
state_dict, reprs, errors and warnings."""
import copy
import io
import pickle

from nn_programs import attempt, same


def trained(t, module, x, steps=2):
    """Yields the loss and the gradients of each SGD step, then the module's state_dict, output and text after the last step."""
    optimizer = t.optim.SGD(module.parameters(), 0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = module(x).square().sum()
        loss.backward()
        yield loss, {name: parameter.grad for name, parameter in module.named_parameters()}
        optimizer.step()
    yield module.state_dict(), module.eval()(x), repr(module)


@same
def test_norm_except_dim(t):
    v = t.randn(3, 4, 5)
    for pow in (1, 2, 3):
        for dim in (-1, 0, 1, 2):
            yield t.norm_except_dim(v, pow, dim)
    for dim, sizes in ((0, (3, 1, 1)), (2, (1, 1, 5)), (-1, ())):
        g, v = t.rand(sizes, requires_grad=True), t.randn(3, 4, 5, requires_grad=True)
        w = t._weight_norm(v, g, dim)
        (w * w.detach().cos()).sum().backward()
        yield w, g.grad, v.grad


@same
def test_weight_norm(t):
    nn = t.nn
    for make, x in ((lambda: nn.Linear(3, 4), t.randn(2, 3)), (lambda: nn.Bilinear(3, 3, 2), None), (lambda: nn.Embedding(5, 3), t.tensor([1, 2]))):
        for dim in (0, 1, -1, None):
            layer = make()
            call = (lambda layer: (lambda x: layer(x, x)))(layer) if x is None else None
            yield attempt(nn.utils.weight_norm, layer, dim=dim)
            yield list(layer.state_dict().items())
            yield list(trained(t, layer, x)) if call is None else call(t.ones(2, 3))
            yield [tuple(p.shape) for p in layer.parameters()]
            yield attempt(nn.utils.weight_norm, layer, dim=dim), attempt(nn.utils.remove_weight_norm, layer), attempt(nn.utils.remove_weight_norm, layer)
            yield list(layer.state_dict())
    yield attempt(nn.utils.weight_norm, nn.LazyLinear(3)), attempt(nn.utils.weight_norm, nn.Linear(2, 2), "nothing")


@same
def test_spectral_norm(t):
    nn = t.nn
    for make, x in ((lambda: nn.Linear(3, 4), t.randn(2, 3)), (lambda: nn.Embedding(5, 3), t.tensor([1, 2]))):
        for kwargs in ({}, {"n_power_iterations": 3}, {"dim": 1}, {"eps": 1e-3}):
            layer = nn.utils.spectral_norm(make(), **kwargs)
            yield list(trained(t, layer, x)), layer.state_dict()._metadata
            other = nn.utils.spectral_norm(make(), **kwargs)
            yield other.load_state_dict(layer.state_dict()), other.eval()(x)
            yield attempt(nn.utils.spectral_norm, layer), attempt(nn.utils.remove_spectral_norm, layer), attempt(nn.utils.remove_spectral_norm, layer)
            yield list(layer.state_dict()), len(layer._forward_pre_hooks), len(layer._state_dict_hooks)
    yield attempt(nn.utils.spectral_norm, nn.Linear(2, 2), n_power_iterations=0), attempt(nn.utils.spectral_norm, nn.LazyLinear(2))
    yield attempt(nn.utils.spectral_norm, nn.Linear(2, 2, bias=False), "bias")


@same
def test_spectral_norm_with_two_forward_passes_before_backward(t):
    layer = t.nn.utils.spectral_norm(t.nn.Linear(3, 4))
    (layer(t.ones(2, 3)) - layer(t.zeros(2, 3))).sum().backward()
    yield layer.weight_orig.grad, layer.weight_u, layer.weight_v


@same
def test_fuse_linear_bn(t):
    nn, utils = t.nn, t.nn.utils
    for bias in (True, False):
        for features in (4, 1):
            linear, bn = nn.Linear(3, features, bias), nn.BatchNorm1d(features)
            bn(linear(t.randn(5, 3)))
            nn.init.uniform_(bn.weight)
            nn.init.uniform_(bn.bias)
            yield attempt(utils.fuse_linear_bn_eval, linear, bn)
            linear.eval(), bn.eval()
            fused = utils.fuse_linear_bn_eval(linear, bn)
            yield fused, list(fused.parameters()), fused(t.ones(2, 3)), bn(linear(t.ones(2, 3)))
    yield attempt(utils.fuse_linear_bn_eval, nn.Linear(2, 3).eval(), nn.BatchNorm1d(4).eval())
    yield attempt(utils.fuse_linear_bn_eval, nn.Linear(2, 3).eval(), nn.BatchNorm1d(3, track_running_stats=False).eval())
    w, b, mean, var, scale, shift = t.randn(4, 3, 2, 2), t.randn(4), t.randn(4), t.rand(4), t.randn(4), t.randn(4)
    for args in ((w, b, mean, var, 1e-5, scale, shift), (w, None, mean, var, 1e-5, None, None), (w.double(), b, mean, var, 0.1, scale, None),
                 (w.transpose(0, 1), b, mean, var, 1e-5, scale, shift, True)):
        yield utils.fuse_conv_bn_weights(*args)


@same
def test_fuse_conv_bn(t):
    conv, bn = t.nn.Conv2d(2, 3, 3).eval(), t.nn.BatchNorm2d(3).eval()
    bn.running_mean.uniform_()
    bn.running_var.uniform_()
    yield t.nn.utils.fuse_conv_bn_eval(conv, bn)(t.ones(1, 2, 5, 5)), attempt(t.nn.utils.fuse_conv_bn_eval, conv.train(), bn)


@same
def test_convert_weight_memory_format(t):
    utils, net = t.nn.utils, t.nn.Sequential(t.nn.Conv2d(2, 3, 3), t.nn.Linear(2, 2), t.nn.Conv3d(2, 3, 3))
    yield utils.convert_conv2d_weight_memory_format(net, t.channels_last) is net, net[0].weight.stride(), net[0].weight, net[2].weight.stride()
    yield utils.convert_conv3d_weight_memory_format(net, t.channels_last_3d) is net, net[2].weight.stride()


@same
def test_skip_init(t):
    layer = t.nn.utils.skip_init(t.nn.Linear, 3, 4, bias=False, dtype=t.float64)
    yield layer, layer.weight.shape, str(layer.weight.dtype), str(layer.weight.device), t.rand(1)
    yield attempt(t.nn.utils.skip_init, int), attempt(t.nn.utils.skip_init, t.nn.ReLU)


@same
def test_functional_call(t):
    layer = t.nn.Linear(2, 1)
    yield attempt(t.nn.utils.stateless.functional_call, layer, {"weight": t.ones(1, 2), "bias": t.zeros(1)}, t.tensor([3.0, 4.0])), layer.weight


@same
def test_lazy_modules(t):
    nn = t.nn
    layer = nn.LazyLinear(3)
    yield layer, repr(layer.weight), layer.has_uninitialized_params(), {name: repr(value) for name, value in layer.state_dict().items()}
    yield attempt(lambda: layer.weight.shape)[0], attempt(lambda: layer.weight + 1)[0], attempt(layer.weight.share_memory_)
    yield str(layer.double().weight.dtype), attempt(nn.LazyLinear(2).initialize_parameters, 3)[0]
    x = t.randn(2, 5, dtype=t.float64)
    yield layer(x), layer, type(layer).__name__, list(layer.state_dict().items()), hasattr(layer, "_initialize_hook"), len(layer._forward_pre_hooks)
    other = nn.LazyLinear(3, dtype=t.float64)
    yield other.load_state_dict(layer.state_dict()), other(x), other, other.in_features
    yield attempt(layer.load_state_dict, nn.LazyLinear(3).state_dict())[0]
    yield copy.deepcopy(nn.LazyLinear(3, bias=False)), repr(pickle.loads(pickle.dumps(nn.LazyLinear(3).weight)))
    net = nn.Sequential(nn.LazyLinear(4), nn.ReLU(), nn.LazyLinear(1))
    yield str(attempt(t.optim.SGD, net.parameters(), 0.1))[:3], net(t.ones(1, 7)), net, sum(p.numel() for p in net.parameters())

    class Lazy(nn.modules.lazy.LazyModuleMixin, nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.UninitializedParameter()
            self.register_buffer("count", nn.UninitializedBuffer())

        def forward(self, x):
            return x * self.scale

    lazy = Lazy()
    yield attempt(lazy, t.ones(2)), repr(lazy.count), isinstance(lazy.count, t.nn.UninitializedBuffer), list(lazy.state_dict())
    lazy.initialize_parameters = lambda x: None
    yield attempt(lazy, t.ones(2))


@same
def test_saving_and_loading_lazy_modules(t):
    file = io.BytesIO()
    t.save(t.nn.LazyLinear(3, bias=False).state_dict(), file)
    file.seek(0)
    loaded = t.load(file, weights_only=False)
    layer = t.nn.LazyLinear(3, bias=False)
    yield {name: repr(value) for name, value in loaded.items()}, layer.load_state_dict(loaded), layer(t.ones(1, 2)).shape


@same
def test_data_parallel(t):
    nn = t.nn
    net = nn.DataParallel(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), device_ids=[0, 1], output_device=0)
    yield net, list(net.state_dict().items()), net(t.ones(2, 3)), net.device_ids, net.module[0].weight is list(net.parameters())[0]
    yield attempt(nn.parallel.data_parallel, net, t.ones(2, 3))
