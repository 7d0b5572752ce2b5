"""Trains a sequence-to-sequence network with attention (Bahdanau et al., 2015) to reverse digits. It has a GRU encoder over packed sequences and a
GRUCell decoder."""
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

PAD, SOS, EOS, DIGITS = 0, 1, 2, 3


class Encoder(nn.Module):
    def __init__(self, n_tokens, embed_dim, hidden_dim):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, embed_dim, padding_idx=PAD)
        self.rnn = nn.GRU(embed_dim, hidden_dim, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(2 * hidden_dim, hidden_dim)

    def forward(self, src, lengths):
        packed = pack_padded_sequence(self.embedding(src), lengths.cpu(), batch_first=True, enforce_sorted=False)
        outputs, hidden = self.rnn(packed)
        outputs, _ = pad_packed_sequence(outputs, batch_first=True)
        return outputs, torch.tanh(self.fc(torch.cat([hidden[0], hidden[1]], dim=1)))


class Attention(nn.Module):
    def __init__(self, hidden_dim):
        super().__init__()
        self.attn = nn.Linear(3 * hidden_dim, hidden_dim)
        self.v = nn.Linear(hidden_dim, 1, bias=False)

    def forward(self, hidden, outputs, mask):
        repeated = hidden.unsqueeze(1).expand(-1, outputs.size(1), -1)
        energy = self.v(torch.tanh(self.attn(torch.cat((repeated, outputs), dim=2)))).squeeze(2)
        weights = F.softmax(energy.masked_fill(mask, float("-inf")), dim=1)
        return torch.bmm(weights.unsqueeze(1), outputs).squeeze(1), weights


class Decoder(nn.Module):
    def __init__(self, n_tokens, embed_dim, hidden_dim):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, embed_dim)
        self.attention = Attention(hidden_dim)
        self.rnn = nn.GRUCell(embed_dim + 2 * hidden_dim, hidden_dim)
        self.out = nn.Linear(3 * hidden_dim, n_tokens)

    def forward(self, token, hidden, outputs, mask):
        context, weights = self.attention(hidden, outputs, mask)
        hidden = self.rnn(torch.cat((self.embedding(token), context), dim=1), hidden)
        return self.out(torch.cat((hidden, context), dim=1)), hidden, weights


def batch_of(n):
    sequences = [torch.randint(DIGITS, DIGITS + 6, (random.randint(2, 6),)) for _ in range(n)]
    sources = [torch.cat((s, torch.tensor([EOS]))) for s in sequences]
    targets = [torch.cat((s.flip(0), torch.tensor([EOS]))) for s in sequences]
    return pad_sequence(sources, batch_first=True), torch.tensor([len(s) for s in sources]), pad_sequence(targets, batch_first=True)


def main():
    random.seed(0)
    torch.manual_seed(0)
    encoder, decoder = Encoder(9, 16, 24), Decoder(9, 16, 24)
    parameters = [*encoder.parameters(), *decoder.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=5e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    for step in range(40):
        src, lengths, trg = batch_of(16)
        outputs, hidden = encoder(src, lengths)
        mask, token, logits = src == PAD, torch.full((16,), SOS), []
        for t in range(trg.size(1)):
            out, hidden, _ = decoder(token, hidden, outputs, mask)
            logits.append(out)
            token = trg[:, t] if random.random() < 0.7 else out.argmax(1)
        loss = criterion(torch.stack(logits, 1).transpose(1, 2), trg)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        if step % 10 == 9:
            print(f"step {step + 1} loss {loss.item():.3f}")
    with torch.no_grad():
        src, lengths, trg = batch_of(2)
        outputs, hidden = encoder(src, lengths)
        out, hidden, weights = decoder(torch.full((2,), SOS), hidden, outputs, src == PAD)
        print(weights.shape, [f"{w:.2f}" for w in weights[0].tolist()])


if __name__ == "__main__":
    main()
