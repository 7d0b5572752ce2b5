"""Compares recurrent networks with PyTorch: forward, forward with backward, cells, packed sequences and ctc_loss. Training steps are in
programs.py."""
from beside import compare

SHAPES = ((32, 16, 128, 128), (100, 1, 32, 32), (10, 4, 8, 16), (35, 20, 200, 200), (32, 64, 256, 256))  # steps, batch size, features, hidden


def network_cases(torch, name, steps, rows, features, hidden):
    network, x = getattr(torch.nn, name)(features, hidden), torch.randn(steps, rows, features)

    def forward():
        with torch.no_grad():
            network(x)

    def both():
        network(x)[0].sum().backward()

    title = f"{name} T{steps} N{rows} {features}->{hidden}"
    return {f"{title} forward": forward, f"{title} forward and backward": both}


def packed_case(torch):
    utils = torch.nn.utils.rnn
    network = torch.nn.LSTM(64, 64, 2, bidirectional=True)
    sequences = [torch.randn(n, 64) for n in (40, 37, 35, 22, 22, 14, 9, 3)]

    def both():
        output, _ = network(utils.pack_sequence(sequences))
        utils.pad_packed_sequence(output)[0].sum().backward()

    return {"LSTM packed, 2 layers, bidirectional, forward and backward": both}


def cell_cases(torch, rows, size):
    found = {}
    for name in ("LSTMCell", "GRUCell", "RNNCell"):
        cell, x = getattr(torch.nn, name)(size, size), torch.randn(rows, size)

        def both(cell=cell, x=x):
            state = cell(x)
            (state[0] if isinstance(state, tuple) else state).sum().backward()

        found[f"{name} N{rows} {size} forward and backward"] = both
    return found


def ctc_case(torch):
    scores, targets = torch.randn(60, 8, 40, requires_grad=True), torch.randint(1, 40, (8, 15))

    def both():
        torch.nn.functional.ctc_loss(scores.log_softmax(-1), targets, [60] * 8, [15] * 8).backward()

    return {"ctc_loss T60 N8 C40, 15 labels, forward and backward": both}


def cases(torch, layout):
    found = {}
    for name in ("LSTM", "GRU", "RNN"):
        for shape in SHAPES:
            found |= network_cases(torch, name, *shape)
    return found | packed_case(torch) | cell_cases(torch, 16, 64) | ctc_case(torch)


if __name__ == "__main__":
    compare(cases, __doc__)
