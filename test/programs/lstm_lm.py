"""Trains a word-level language model like the one in PyTorch's examples, namely an LSTM with tied weights, truncated backpropagation through time, a decaying
learning rate."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class RNNModel(nn.Module):
    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, dropout=0.2, tie_weights=True):
        super().__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers, dropout=dropout)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        self.nhid, self.nlayers = nhid, nlayers
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(self.nlayers, bsz, self.nhid), weight.new_zeros(self.nlayers, bsz, self.nhid)


def corpus(n=1200, words=24):
    """Returns a tensor of `n` tokens from 0 to words - 1, drawn from a random Markov chain."""
    generator = torch.Generator().manual_seed(1)
    chain = torch.rand(words, words, generator=generator).pow(6)
    token, tokens = 0, []
    for _ in range(n):
        token = torch.multinomial(chain[token], 1, generator=generator).item()
        tokens.append(token)
    return torch.tensor(tokens)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


def main():
    torch.manual_seed(1111)
    tokens, bptt = corpus(), 12
    train, valid = batchify(tokens[:1000], 8), batchify(tokens[1000:], 4)
    model = RNNModel("LSTM", 24, 32, 32, 2)
    print(model)
    criterion, lr, best = nn.NLLLoss(), 5.0, None
    for epoch in range(1, 4):
        model.train()
        total, hidden, count = 0.0, model.init_hidden(8), 0
        for i in range(0, train.size(0) - 1, bptt):
            seq_len = min(bptt, len(train) - 1 - i)
            data, targets = train[i:i + seq_len], train[i + 1:i + 1 + seq_len].view(-1)
            model.zero_grad()
            hidden = repackage_hidden(hidden)
            output, hidden = model(data, hidden)
            loss = criterion(output, targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-lr)
            total, count = total + loss.item(), count + 1
        model.eval()
        with torch.no_grad():
            hidden, val = model.init_hidden(4), 0.0
            for i in range(0, valid.size(0) - 1, bptt):
                seq_len = min(bptt, len(valid) - 1 - i)
                output, hidden = model(valid[i:i + seq_len], hidden)
                val += seq_len * criterion(output, valid[i + 1:i + 1 + seq_len].view(-1)).item()
        val /= len(valid) - 1
        print(f"epoch {epoch} train {total / count:.3f} valid {val:.3f} ppl {math.exp(val):.2f}")
        if best is None or val < best:
            best = val
        else:
            lr /= 4.0


if __name__ == "__main__":
    main()
