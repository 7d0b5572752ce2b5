"""Trains a toy recogniser. A bidirectional LSTM reads frames of strokes of different widths, and CTC aligns its outputs with the labels."""
import torch
import torch.nn as nn
import torch.nn.functional as F

CLASSES, FEATURES = 6, 8  # class 0 is the blank


def sample(prototypes):
    n = int(torch.randint(2, 5, (1,)))
    labels = torch.randint(1, CLASSES, (n,))
    frames = []
    for label in labels:
        width = int(torch.randint(2, 5, (1,)))
        frames.append(prototypes[label] + 0.3 * torch.randn(width, FEATURES))
        frames.append(0.3 * torch.randn(1, FEATURES))
    return torch.cat(frames), labels


class Recogniser(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.rnn = nn.LSTM(FEATURES, hidden, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, CLASSES)

    def forward(self, x, lengths):
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        out, _ = self.rnn(packed)
        out, _ = nn.utils.rnn.pad_packed_sequence(out)
        return F.log_softmax(self.fc(out), dim=-1)


def greedy(log_probs, length):
    best = log_probs[:length].argmax(-1)
    merged = torch.unique_consecutive(best)
    return merged[merged != 0].tolist()


def main():
    torch.manual_seed(7)
    prototypes = torch.randn(CLASSES, FEATURES)
    model = Recogniser()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    ctc = nn.CTCLoss(blank=0, zero_infinity=True)
    for step in range(1, 31):
        batch = [sample(prototypes) for _ in range(8)]
        x = nn.utils.rnn.pad_sequence([frames for frames, _ in batch])
        lengths = torch.tensor([len(frames) for frames, _ in batch])
        labels = torch.cat([label for _, label in batch])
        label_lengths = torch.tensor([len(label) for _, label in batch])
        log_probs = model(x, lengths)
        loss = ctc(log_probs, labels, lengths, label_lengths)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"step {step} loss {loss.item():.3f}")
    with torch.no_grad():
        frames, label = sample(prototypes)
        read = greedy(model(frames[:, None], torch.tensor([len(frames)]))[:, 0], len(frames))
        padded = F.ctc_loss(model(frames[:, None], [len(frames)]), label[None], (len(frames),), (len(label),), reduction="none")
        print(label.tolist(), read, f"{padded.item():.3f}")


if __name__ == "__main__":
    main()
