"""Trains a temporal convolutional network (Bai et al., 2018) with weight_norm, on the adding problem."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import weight_norm
from torch.nn.utils.parametrizations import weight_norm as parametrized_weight_norm


class Chomp1d(nn.Module):
    def __init__(self, chomp_size):
        super().__init__()
        self.chomp_size = chomp_size

    def forward(self, x):
        return x[:, :, :-self.chomp_size].contiguous()


class TemporalBlock(nn.Module):
    def __init__(self, n_inputs, n_outputs, kernel_size, stride, dilation, padding, norm, dropout=0.2):
        super().__init__()
        self.conv1 = norm(nn.Conv1d(n_inputs, n_outputs, kernel_size, stride=stride, padding=padding, dilation=dilation))
        self.conv2 = norm(nn.Conv1d(n_outputs, n_outputs, kernel_size, stride=stride, padding=padding, dilation=dilation))
        self.net = nn.Sequential(self.conv1, Chomp1d(padding), nn.ReLU(), nn.Dropout(dropout), self.conv2, Chomp1d(padding), nn.ReLU(), nn.Dropout(dropout))
        self.downsample = nn.Conv1d(n_inputs, n_outputs, 1) if n_inputs != n_outputs else None
        self.relu = nn.ReLU()
        self.init_weights()

    def init_weights(self):
        self.conv1.weight.data.normal_(0, 0.01)
        self.conv2.weight.data.normal_(0, 0.01)
        if self.downsample is not None:
            self.downsample.weight.data.normal_(0, 0.01)

    def forward(self, x):
        out = self.net(x)
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


class TCN(nn.Module):
    def __init__(self, input_size, channels, kernel_size, norm):
        super().__init__()
        layers = []
        for i, outer in enumerate(channels):
            dilation = 2 ** i
            layers.append(TemporalBlock(input_size if i == 0 else channels[i - 1], outer, kernel_size, 1, dilation, (kernel_size - 1) * dilation, norm))
        self.network = nn.Sequential(*layers)
        self.linear = nn.Linear(channels[-1], 1)
        self.linear.weight.data.normal_(0, 0.01)

    def forward(self, x):
        return self.linear(self.network(x)[:, :, -1])


def adding_problem(n, length):
    x = torch.rand(n, 2, length)
    x[:, 1] = 0
    for i in range(n):
        x[i, 1, torch.randperm(length)[:2]] = 1
    return x, (x[:, 0] * x[:, 1]).sum(1, keepdim=True)


def main():
    for norm in (weight_norm, parametrized_weight_norm):
        torch.manual_seed(1111)
        model = TCN(2, [12, 12, 12], 5, norm)
        print(*model.state_dict())
        optimizer = getattr(torch.optim, "Adam")(model.parameters(), lr=4e-3)
        for step in range(5):
            x, y = adding_problem(16, 40)
            optimizer.zero_grad()
            loss = F.mse_loss(model(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.4)
            optimizer.step()
            print(f"step {step} loss {loss.item():.5f}")
        model.eval()
        x, y = adding_problem(4, 40)
        print(f"evaluated {F.mse_loss(model(x), y).item():.5f}")
    torch.nn.utils.parametrize.remove_parametrizations(model.network[0].conv1, "weight")
    print(f"evaluated {F.mse_loss(model(x), y).item():.5f}", "weight" in dict(model.network[0].conv1.named_parameters()))


if __name__ == "__main__":
    main()
