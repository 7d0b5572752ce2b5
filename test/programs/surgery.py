"""Changes modules from outside, with hooks, parametrizations, pruning, deep copies, state dicts, lazy layers, functional_call with vmap and jvp."""
import copy
import pickle
import warnings
from collections import OrderedDict

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize
import torch.nn.utils.prune as prune
from torch.func import functional_call, grad, jacrev, jvp, stack_module_state, vmap
from torch.nn.utils import parameters_to_vector, spectral_norm, vector_to_parameters
from torch.nn.utils.parametrizations import orthogonal, weight_norm

torch.manual_seed(0)
torch.set_printoptions(precision=3, sci_mode=False)


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv = weight_norm(nn.Conv2d(c, c, 3, padding=1, bias=False))
        self.norm = nn.GroupNorm(2, c)
        self.act = nn.SiLU(inplace=True)

    def forward(self, x):
        return x + self.act(self.norm(self.conv(x)))


net = nn.Sequential(OrderedDict([
    ("stem", nn.LazyConv2d(4, 3, stride=2)), ("block", Block(4)), ("pool", nn.AdaptiveAvgPool2d((2, 2))), ("flat", nn.Flatten()),
    ("mix", orthogonal(nn.Linear(16, 8))), ("act", nn.PReLU()), ("head", nn.Linear(8, 3))]))
x = torch.randn(5, 3, 9, 9)
print(net(x).shape)
print(net)

seen = {}
handles = [m.register_forward_hook(lambda m, i, o, n=n: seen.__setitem__(n, (tuple(o.shape), round(o.abs().mean().item(), 3)))) for n, m in net.named_modules() if not list(m.children())]
grads = {}
handles.append(net.head.register_full_backward_hook(lambda m, gi, go: grads.__setitem__("head", [g.norm().item() for g in (*gi, *go)])))
handles.append(net.block.register_forward_pre_hook(lambda m, args, kwargs: ((args[0] * 2,), kwargs), with_kwargs=True))
handles.append(net.head.weight.register_hook(lambda g: g.clamp(-0.01, 0.01)))
loss = F.cross_entropy(net(x), torch.tensor([0, 1, 2, 0, 1]))
loss.backward()
for name, value in seen.items():
    print(name, value)
print(f"{loss.item():.4f}", [f"{g:.4f}" for g in grads["head"]], net.head.weight.grad.abs().max().item())
for h in handles:
    h.remove()

print([(n, tuple(p.shape)) for n, p in net.named_parameters()])
W = net.mix.weight
print(torch.allclose(W @ W.T, torch.eye(8), atol=1e-5), parametrize.is_parametrized(net.mix, "weight"), type(net.mix).__name__)
try:
    copy.deepcopy(net.mix)
    print("copied")
except Exception as error:
    print(type(error).__name__)
parametrize.remove_parametrizations(net.mix, "weight")
print(type(net.mix).__name__, net.mix)


class Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).T

    def right_inverse(self, w):
        return w.triu()


layer = nn.Linear(3, 3)
parametrize.register_parametrization(layer, "weight", Symmetric())
print(layer, layer.state_dict().keys())
with parametrize.cached():
    print(layer.weight is layer.weight, torch.equal(layer.weight, layer.weight.T))
layer.weight = torch.arange(9.0).view(3, 3)
print(layer.weight)

pruned = nn.Linear(6, 4)
prune.l1_unstructured(pruned, "weight", amount=0.5)
prune.ln_structured(pruned, "weight", amount=1, n=2, dim=0)
print(list(dict(pruned.named_buffers())), int(pruned.weight_mask.sum()), len(pruned._forward_pre_hooks))
prune.remove(pruned, "weight")
print(list(pruned.state_dict()), (pruned.weight == 0).sum().item())

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    sn = spectral_norm(nn.Linear(5, 5))
print(sorted(sn.state_dict()), sn(torch.ones(1, 5)).shape)

models = [nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1)) for _ in range(3)]
params, buffers = stack_module_state(models)
base = copy.deepcopy(models[0]).to("meta")
inputs = torch.randn(6, 2)
together = vmap(lambda p, b, v: functional_call(base, (p, b), (v,)), in_dims=(0, 0, None))(params, buffers, inputs)
print(together.shape, torch.allclose(together[1], models[1](inputs), atol=1e-6))
single = dict(models[0].named_parameters())
per_sample = vmap(grad(lambda p, v, t: F.mse_loss(functional_call(models[0], p, (v,)), t)), in_dims=(None, 0, 0))(single, inputs, torch.zeros(6, 1))
print({k: tuple(v.shape) for k, v in per_sample.items()})
value, tangent = jvp(lambda v: functional_call(models[0], single, (v,)), (inputs,), (torch.ones_like(inputs),))
print(value.shape, tangent.flatten())
print(jacrev(lambda v: models[0](v))(inputs[0]))

vector = parameters_to_vector(models[0].parameters())
vector_to_parameters(torch.zeros_like(vector), models[0].parameters())
print(vector.shape, models[0](inputs).abs().sum().item())
other = pickle.loads(pickle.dumps(models[1]))
print(torch.equal(other(inputs), models[1](inputs)), other.load_state_dict({"0.weight": torch.ones(4, 2)}, strict=False))
try:
    other.load_state_dict({"0.weight": torch.ones(3, 2), "9.bias": torch.ones(1)})
except RuntimeError as error:
    print(error)
print(net.get_submodule("block.norm"), net.block.get_parameter("norm.weight").shape)
net.apply(lambda m: nn.init.zeros_(m.bias) if isinstance(m, nn.Linear) else None)
print(net.head.bias.tolist(), net.double().head.weight.dtype, next(net.half().parameters()).dtype, net.requires_grad_(False).training)
