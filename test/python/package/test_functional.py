"""Compares functions of gradus.functional, padding, scattered reductions and normalization of channels with PyTorch: values and errors."""
import pytest
from beside_torch import check

import gradus

X = "x = torch.arange(12.).reshape(3, 4); "
CASES = """
w = torch.arange(6.).reshape(3, 2).requires_grad_(); torch.nn.functional.embedding(torch.tensor([0, 1, 0, 2]), w, padding_idx=0).sum().backward(); w.grad
w = torch.arange(6.).reshape(3, 2).requires_grad_(); torch.nn.functional.embedding(torch.tensor([0, 1, 0, 2]), w, padding_idx=-1).sum().backward(); w.grad
w = torch.nn.Embedding(3, 2, padding_idx=0); w(torch.tensor([0, 1])).sum().backward(); (w.weight[0], w.weight.grad)
s = torch.tensor([3., 1., 2., 2.]); torch.searchsorted(s, torch.tensor([2., 0., 5., 1.]), right=True, sorter=torch.argsort(s))
s = torch.tensor([3., 1., 2., 2.]); torch.searchsorted(s, torch.tensor([2., 0., 5., 1.]), side='right', sorter=torch.argsort(s), out_int32=True)
s = torch.tensor([3., 1., 2., 2.]); torch.searchsorted(s, torch.tensor([2., 0., 5., 1.]), sorter=torch.argsort(s))
s = torch.tensor([[3, 1, 2], [2, 2, 1]]); torch.searchsorted(s, torch.tensor([[2, 3], [2, 1]]), right=True, sorter=torch.argsort(s))
a = torch.tensor([[1 + 2j, 0], [3j, 1]]); torch.addmm(a, a, a, beta=2 - 1j, alpha=1j)
a = torch.tensor([[1 + 2j, 0], [3j, 1]], dtype=torch.complex128); torch.addmm(a, a, a, beta=-1j)
a = torch.tensor([[1 + 2j, 0], [3j, 1]]); torch.addmv(a[0], a, a[1], beta=1j, alpha=2)
a = torch.tensor([[1 + 2j, 0], [3j, 1]]); torch.baddbmm(a[None], a[None], a[None], beta=1j)
a = torch.tensor([[1 + 2j, 0], [3j, 1]], requires_grad=True); torch.addmm(a, a, a, beta=2 - 1j, alpha=1j).abs().sum().backward(); a.grad
a = torch.tensor([[float('nan'), 1.], [2., float('inf')]]); torch.addmm(a, torch.ones(2, 2), torch.ones(2, 2), beta=0)
torch.atleast_2d(torch.tensor(3.), torch.ones(2))
torch.atleast_1d([torch.tensor(3.), torch.ones(2)])
torch.atleast_3d(torch.ones(2, 3)).shape
torch.block_diag(torch.ones(2, 2), torch.arange(3), torch.tensor(5.))
torch.block_diag(torch.ones(1, 1, 1))
torch.cartesian_prod(torch.arange(2), torch.arange(3))
torch.cartesian_prod(torch.arange(2))
torch.cartesian_prod(torch.ones(2, 2), torch.ones(2))
torch.combinations(torch.arange(4))
torch.combinations(torch.arange(3), 2, True)
torch.combinations(torch.arange(3), 0)
torch.combinations(torch.arange(3), -1)
torch.combinations(torch.ones(2, 2))
torch.tensordot(x, x, 1)
torch.tensordot(x, x)
torch.tensordot(x, x, ([1, 0], [1, 0]))
torch.tensordot(x, x, -1)
torch.tensordot(x, x, 3)
torch.cdist(x, x[:2])
torch.cdist(x, x[:2], p=1)
torch.cdist(x, x[:, :2])
torch.cdist(x[0], x)
torch.cdist(x, x, p=-1)
torch.cdist(x, x[:2], p=-float('nan'))
torch.cdist(x.int(), x)
torch.cdist(x.to(torch.complex64), x)
torch.cdist(x.double(), x)
torch.cdist(x, x, compute_mode='mm')
torch.cdist(torch.ones(5, 1, 2, 3), torch.ones(4, 3, 3))
torch.cdist(torch.ones(2, 0), torch.ones(3, 0))
torch.cdist(torch.ones(0, 3), torch.ones(2, 3)).shape
torch.cdist(torch.ones(2, 2, 3), torch.ones(3, 1, 3))
torch.cdist(x, x.flip(0), p=0)
b = x.clone().requires_grad_(); c = (x.roll(4) * torch.tensor([1., 0.5, 1., 2.])).requires_grad_(); torch.cdist(b, c, p=0).square().sum().backward(); b.grad.mul(10).round() + 0.
b = x.clone().requires_grad_(); c = (x.roll(4) * torch.tensor([1., 0.5, 1., 2.])).requires_grad_(); torch.cdist(b, c, p=0).square().sum().backward(); c.grad.mul(10).round() + 0.
torch.cdist(x, x.flip(0), p=0.5)
b = x.clone().requires_grad_(); c = (x.roll(4) * torch.tensor([1., 0.5, 1., 2.])).requires_grad_(); torch.cdist(b, c, p=0.5).square().sum().backward(); b.grad.mul(10).round() + 0.
b = x.clone().requires_grad_(); c = (x.roll(4) * torch.tensor([1., 0.5, 1., 2.])).requires_grad_(); torch.cdist(b, c, p=0.5).square().sum().backward(); c.grad.mul(10).round() + 0.
torch.cdist(x, x.flip(0), p=1)
b = x.clone().requires_grad_(); c = (x.roll(4) * torch.tensor([1., 0.5, 1., 2.])).requires_grad_(); torch.cdist(b, c, p=1).square().sum().backward(); b.grad.mul(10).round() + 0.
b = x.clone().requires_grad_(); c = (x.roll(4) * torch.tensor([1., 0.5, 1., 2.])).requires_grad_(); torch.cdist(b, c, p=1).square().sum().backward(); c.grad.mul(10).round() + 0.
torch.cdist(x, x.flip(0), p=1.5)
b = x.clone().requires_grad_(); c = (x.roll(4) * torch.tensor([1., 0.5, 1., 2.])).requires_grad_(); torch.cdist(b, c, p=1.5).square().sum().backward(); b.grad.mul(10).round() + 0.
b = x.clone().requires_grad_(); c = (x.roll(4) * torch.tensor([1., 0.5, 1., 2.])).requires_grad_(); torch.cdist(b, c, p=1.5).square().sum().backward(); c.grad.mul(10).round() + 0.
torch.cdist(x, x.flip(0), p=2)
b = x.clone().requires_grad_(); c = (x.roll(4) * torch.tensor([1., 0.5, 1., 2.])).requires_grad_(); torch.cdist(b, c, p=2).square().sum().backward(); b.grad.mul(10).round() + 0.
b = x.clone().requires_grad_(); c = (x.roll(4) * torch.tensor([1., 0.5, 1., 2.])).requires_grad_(); torch.cdist(b, c, p=2).square().sum().backward(); c.grad.mul(10).round() + 0.
torch.cdist(x, x.flip(0), p=3)
b = x.clone().requires_grad_(); c = (x.roll(4) * torch.tensor([1., 0.5, 1., 2.])).requires_grad_(); torch.cdist(b, c, p=3).square().sum().backward(); b.grad.mul(10).round() + 0.
b = x.clone().requires_grad_(); c = (x.roll(4) * torch.tensor([1., 0.5, 1., 2.])).requires_grad_(); torch.cdist(b, c, p=3).square().sum().backward(); c.grad.mul(10).round() + 0.
torch.cdist(x, x.flip(0), p=float('inf'))
b = x.clone().requires_grad_(); c = (x.roll(4) * torch.tensor([1., 0.5, 1., 2.])).requires_grad_(); torch.cdist(b, c, p=float('inf')).square().sum().backward(); b.grad.mul(10).round() + 0.
b = x.clone().requires_grad_(); c = (x.roll(4) * torch.tensor([1., 0.5, 1., 2.])).requires_grad_(); torch.cdist(b, c, p=float('inf')).square().sum().backward(); c.grad.mul(10).round() + 0.
b = (torch.arange(120.).reshape(40, 3) / 7).sin().requires_grad_(); torch.cdist(b, b[:30]).pow(2).sum().backward(); b.grad.round(decimals=2)
torch.nonzero(x > 8)
torch.nonzero(x > 8, as_tuple=True)
(x > 8).nonzero(as_tuple=True)
torch.tril_indices(3, 4, -1)
torch.triu_indices(3, 4, 1, dtype=torch.int32)
torch.triu_indices(-1, 4)
torch.unique(torch.tensor([3, 1, 3, 2]))
torch.tensor([3, 1, 3, 2]).unique(return_inverse=True, return_counts=True)
torch.unique(torch.tensor([[1, 2], [0, 5], [1, 2]]), dim=0, return_inverse=True, return_counts=True)
torch.unique(torch.tensor([[1, 2, 1], [0, 5, 0]]), dim=1)
torch.unique_consecutive(torch.tensor([1, 1, 2, 1]), return_inverse=True, return_counts=True)
torch.unique_consecutive(torch.tensor([[1, 2], [1, 2], [0, 5]]), dim=0)
torch.unique_consecutive(torch.tensor([], dtype=torch.int64), return_counts=True)
torch.unravel_index(torch.tensor([0, 7, 11]), (3, 4))
torch.unravel_index(torch.tensor([0.]), (3, 4))
torch.zeros(2).resize_(3, 2).shape
torch.zeros(2).resize_as_(torch.ones(2, 2)).shape
torch.ones(3).__rdiv__(2.)
x.round(decimals=-1)
torch.tensor([1.25, -0.375]).round(decimals=1)
torch.clamp_min(x, torch.tensor([5.]))
torch.clamp_max(x, torch.tensor([1., 2., 3., 4.]))
torch.logspace(0, 4, 3, 2)
x.index_fill(0, torch.tensor([0]), torch.tensor(9.))
x.index_fill(0, torch.tensor([0]), torch.ones(2))
x.sum_to_size(1, 4)
x.tensor_split(torch.tensor([1, 2]))
x.tensor_split(torch.tensor(2), dim=1)
x.tensor_split(torch.ones(2))
torch.diff(x)
torch.diff(x, 2, 0)
torch.diff(x, n=-1)
torch.inner(x, x)
torch.inner(x, x[0, :2])
torch.nanmean(torch.tensor([1., float('nan'), 4.]))
torch.aminmax(x, dim=1)
torch.angle(torch.tensor([1., -1., 0.]))
torch.view_as_complex(torch.ones(2, 3))
torch.view_as_complex(x.reshape(2, 3, 2)).shape
torch.nn.functional.pad(x, (1, 2))
torch.nn.functional.pad(x, (1, -2, -1, 1), value=3)
torch.nn.functional.pad(x, (2, 1), mode='reflect')
torch.nn.functional.pad(x, (5, 5), mode='replicate')
torch.nn.functional.pad(x[None], (1, -1, -1, 1), mode='reflect')
torch.nn.functional.pad(x[None], (1, -1, -1, 1), mode='circular')
x.scatter_reduce(0, torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1]]), x, 'amax')
x.scatter_reduce(0, torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1]]), x, 'mean', include_self=False)
x.scatter_reduce(0, torch.tensor([[0, 0, 1, 1], [0, 1, 1, 1]]), x, 'prod')
x.scatter_reduce(0, torch.tensor([[0]]), x, 'mode')
x.long().scatter_reduce(0, torch.tensor([[0, 0, 1, 1]]), x.long(), 'amin', include_self=False)
x.scatter(0, torch.tensor([[0, 0, 1, 1]]), x, reduce='multiply')
x.scatter(0, torch.tensor([[0, 0, 1, 1]]), 2, reduce='add')
x.scatter(0, torch.tensor([[0, 0, 1, 1]]), 2, reduce='max')
x.index_reduce(0, torch.tensor([0, 0]), x[:2], 'amin')
m = torch.zeros(4); v = torch.ones(4); y = torch.nn.functional.batch_norm(x, m, v, training=True); y.round(decimals=3), m, v
m = torch.zeros(4); v = torch.ones(4); torch.nn.functional.batch_norm(x, m, v, torch.arange(4.), torch.ones(4))
torch.nn.functional.batch_norm(x[:1], None, None, training=True)
torch.nn.functional.batch_norm(x, torch.zeros(3), torch.ones(4))
m = torch.zeros(3); v = torch.ones(3); y = torch.nn.functional.instance_norm(x.reshape(2, 3, 2), m, v); y, m, v
torch.nn.functional.group_norm(x, 2, torch.arange(4.), torch.ones(4))
torch.nn.functional.group_norm(x, 3)
torch.nn.functional.pixel_shuffle(torch.arange(16.).reshape(1, 4, 2, 2), 2)
torch.nn.functional.pixel_unshuffle(torch.arange(16.).reshape(1, 1, 4, 4), 2)
torch.nn.functional.pixel_shuffle(x, 2)
torch.nn.functional.channel_shuffle(torch.arange(8.).reshape(1, 4, 2), 2)
"""


@pytest.mark.parametrize("expression", CASES.strip().splitlines())
def test_functions_agree_with_pytorch(expression):
    check(X + expression)


REFUSED = {
    "torch.zeros(2, requires_grad=True).resize_(3)": "requires grad",
    # In PyTorch resize_ of a view enlarges the storage of all views of the same base. Gradus refuses the call.
    "torch.zeros(4)[1:3].resize_(9)": "storage that is not resizable",
    "x.sum_to_size(3, 2)": r"size \[3, 2\] is not expandable to size \[3, 4\]",
    "torch.nn.functional.pad(x, (1, 2, 3))": "Length of pad must be even",
    "torch.nn.functional.pad(x, (-3, -3))": "resulted in a negative output size",
    "torch.nn.functional.pad(x, (4, -1), mode='circular')": "wrapping around more than once",  # PyTorch returns elements that it has not initialized
}


@pytest.mark.parametrize("expression", REFUSED)
def test_calls_that_gradus_refuses_with_its_own_text(expression):
    with pytest.raises(RuntimeError, match=REFUSED[expression]):
        eval(expression, {"torch": gradus, "x": gradus.arange(12.).reshape(3, 4)})
