"""A graph network with scatter and index_add, a tagger over packed sequences with einsum pooling, contrastive losses within batches, custom
functions."""
import math
import torch
from torch import nn
from torch.autograd import Function
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pack_sequence
from torch.nn.parameter import Parameter
from torch.nn import Module, Sequential, Linear, ReLU, Dropout, ModuleDict, ParameterList

torch.manual_seed(7)


class GCN(Module):
    def __init__(self, i, o):
        super().__init__()
        self.weight = Parameter(torch.empty(i, o))
        self.bias = Parameter(torch.empty(o))
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        self.bias.data.uniform_(-stdv, stdv)

    def forward(self, x, edges):
        src, dst = edges
        deg = torch.zeros(x.size(0)).scatter_add_(0, dst, torch.ones_like(dst, dtype=x.dtype)).clamp_(min=1)
        norm = deg.pow(-0.5)
        out = torch.zeros(x.size(0), self.weight.size(1)).index_add(0, dst, (x @ self.weight)[src] * (norm[src] * norm[dst]).unsqueeze(-1))
        return out + self.bias

    def extra_repr(self):
        return f"{self.weight.size(0)} -> {self.weight.size(1)}"


class GAT(Module):
    def __init__(self, i, o, heads=2):
        super().__init__()
        self.lin, self.att = Linear(i, o * heads, bias=False), Parameter(torch.randn(1, heads, 2 * o) * 0.1)
        self.heads, self.o = heads, o

    def forward(self, x, edges):
        h = self.lin(x).view(-1, self.heads, self.o)
        src, dst = edges
        e = F.leaky_relu((torch.cat([h[src], h[dst]], -1) * self.att).sum(-1), 0.2)
        top = torch.full((x.size(0), self.heads), -torch.inf).scatter_reduce(0, dst[:, None].expand_as(e), e, "amax", include_self=False)
        a = (e - top[dst]).exp()
        a = a / torch.zeros(x.size(0), self.heads).index_add(0, dst, a)[dst]
        return torch.zeros_like(h).index_add_(0, dst, h[src] * a.unsqueeze(-1)).flatten(1)


class GNN(Module):
    def __init__(self):
        super().__init__()
        self.layers = ModuleDict({"a": GCN(6, 8), "b": GAT(8, 4), "c": GCN(8, 3)})
        self.drop = Dropout(0.3)

    def forward(self, x, edges):
        x = F.elu(self.layers["a"](x, edges))
        x = F.elu(self.layers["b"](self.drop(x), edges))
        return F.log_softmax(self.layers["c"](x, edges), dim=1)


x, edges = torch.randn(30, 6), torch.randint(0, 30, (2, 120))
edges = torch.cat([edges, torch.arange(30).repeat(2, 1)], 1).unique(dim=1)
target = (x[:, 0] > 0).long() + (x[:, 1] > 0.5).long()
gnn = GNN()
print(gnn)
opt = torch.optim.RMSprop(gnn.parameters(), lr=0.01, centered=True, momentum=0.5)
mask = torch.rand(30) < 0.7
for epoch in range(30):
    gnn.train()
    opt.zero_grad()
    out = gnn(x, edges)
    loss = F.nll_loss(out[mask], target[mask], weight=torch.tensor([1.0, 2.0, 1.0]))
    loss.backward()
    opt.step()
    if epoch % 10 == 9:
        gnn.eval()
        print(f"gnn {epoch} {loss.item():.3f} {gnn(x, edges)[~mask].max(1)[1].eq(target[~mask]).sum().item()}")


class RoundSTE(Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.save_for_backward(x)
        ctx.levels = levels
        return torch.round(x * levels) / levels

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x.abs() <= 1).to(grad.dtype), None


class Tagger(Module):
    def __init__(self, vocab=20, e=8, h=6, tags=4):
        super().__init__()
        self.emb = nn.Embedding(vocab, e, padding_idx=0, max_norm=2.0)
        self.lstm = nn.LSTM(e, h, num_layers=2, batch_first=True, bidirectional=True, dropout=0.2, proj_size=4)
        self.gru = nn.GRU(8, 5, batch_first=True)
        self.query = ParameterList([torch.randn(5) * 0.5 for _ in range(2)])
        self.out = nn.Linear(5, tags)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.emb(tokens), lengths, batch_first=True, enforce_sorted=False)
        h, (hn, cn) = self.lstm(packed)
        h, last = self.gru(h)
        padded, lengths = pad_packed_sequence(h, batch_first=True, padding_value=-1.0)
        scores = torch.einsum("bte,e->bt", padded, self.query[0] + self.query[1])
        scores = scores.masked_fill(torch.arange(padded.size(1)) >= lengths[:, None], float("-inf"))
        pooled = torch.einsum("bt,bte->be", scores.softmax(-1), padded)
        return self.out(RoundSTE.apply(torch.tanh(padded), 8)), pooled, last[-1], cn


tagger = Tagger()
print(tagger, [n for n, _ in tagger.named_parameters()][:6])
lengths = torch.tensor([5, 2, 7, 3])
tokens = torch.randint(1, 20, (4, 7)).masked_fill(torch.arange(7) >= lengths[:, None], 0)
tags = torch.randint(0, 4, (4, 7)).masked_fill(tokens == 0, -100)
opt = torch.optim.NAdam(tagger.parameters(), lr=0.02)
for step in range(20):
    logits, pooled, last, cn = tagger(tokens, lengths)
    similar = F.normalize(pooled, dim=-1) @ F.normalize(last, dim=-1).T / 0.2
    loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten()) + 0.5 * F.cross_entropy(similar, torch.arange(4)) + F.triplet_margin_loss(pooled, last, last.roll(1, 0), margin=0.3)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 10 == 9:
        print(f"tagger {step} {loss.item():.3f} {cn.shape} {tagger.emb.weight.norm(dim=1).max().item():.3f} {tagger.emb.weight.grad[0].abs().sum().item()}")
print(pack_sequence([torch.arange(3), torch.arange(2)], enforce_sorted=True))
print(torch.autograd.gradcheck(lambda v: RoundSTE.apply(v, 2.0).sum() * 0 + v.sin().sum(), torch.rand(3, dtype=torch.double, requires_grad=True)))
emb, bag = nn.EmbeddingBag(10, 3, mode="sum"), torch.tensor([1, 2, 4, 5, 4, 3])
print(emb(bag, torch.tensor([0, 4])).shape, emb(bag.view(2, 3), per_sample_weights=torch.ones(2, 3)).sum(1).shape)
hessian = torch.autograd.functional.hessian(lambda v: (v ** 3).sum() + v.prod(), torch.tensor([1.0, 2.0, 3.0]))
print(hessian)
