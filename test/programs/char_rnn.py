"""Trains a character-level RNN on a nursery rhyme and lets it continue the rhyme. The hidden state is carried from one chunk of text to the next."""
import torch
import torch.nn as nn

TEXT = """the wheels on the bus go round and round, round and round, round and round.
the wheels on the bus go round and round, all through the town.
""" * 4


class CharRNN(nn.Module):
    def __init__(self, vocab_size, hidden_size, n_layers=2, model="gru"):
        super().__init__()
        self.model = model
        self.encoder = nn.Embedding(vocab_size, hidden_size)
        self.rnn = getattr(nn, model.upper())(hidden_size, hidden_size, n_layers, batch_first=True, dropout=0.1)
        self.decoder = nn.Linear(hidden_size, vocab_size)

    def forward(self, x, hidden=None):
        output, hidden = self.rnn(self.encoder(x), hidden)
        return self.decoder(output), hidden


def detach(hidden):
    return tuple(h.detach() for h in hidden) if isinstance(hidden, tuple) else hidden.detach()


def main():
    chars = sorted(set(TEXT))
    stoi = {c: i for i, c in enumerate(chars)}
    data = torch.tensor([stoi[c] for c in TEXT], dtype=torch.long)
    for model in ("gru", "lstm", "rnn"):
        torch.manual_seed(3)
        net = CharRNN(len(chars), 32, model=model)
        criterion = nn.CrossEntropyLoss()
        optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
        batch, seq = 4, 16
        length = (len(data) - 1) // batch
        x = data[:batch * length].view(batch, length)
        y = data[1:batch * length + 1].view(batch, length)
        for epoch in range(3):
            hidden, total = None, 0.0
            for i in range(0, length - seq, seq):
                optimizer.zero_grad()
                out, hidden = net(x[:, i:i + seq], hidden)
                hidden = detach(hidden)
                loss = criterion(out.reshape(-1, len(chars)), y[:, i:i + seq].reshape(-1))
                loss.backward()
                nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
                total += loss.item()
            print(f"{model} epoch {epoch} loss {total:.3f}")
        net.eval()
        with torch.no_grad():
            out, hidden = net(torch.tensor([[stoi[c] for c in "the w"]]))
            token = out[:, -1].argmax(-1, keepdim=True)
            text = "the w" + chars[token.item()]
            for _ in range(20):
                out, hidden = net(token, hidden)
                token = out[:, -1].argmax(-1, keepdim=True)
                text += chars[token.item()]
        print(repr(text))


if __name__ == "__main__":
    main()
