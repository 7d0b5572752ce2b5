"""Compares training steps of complete programs (forward, backward, optimizer) with PyTorch. The peak memory that it prints covers all cases
that ran. `--only resnet` shows the peak of that program alone."""
import functools

from beside import compare


def training(model, optimizer, loss):
    def step():
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()
    return step


def lenet(torch, layout):
    """Returns a training step of LeNet on a batch of 32 images of 8 by 8 pixels."""
    nn, F = torch.nn, torch.nn.functional
    model = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    images, labels = torch.rand(32, 1, 8, 8), torch.randint(0, 10, (32,))
    return training(model, torch.optim.Adam(model.parameters()), lambda model: F.cross_entropy(model(images), labels))


def resnet18(torch, layout):
    """Returns a training step of ResNet-18 in its variant for CIFAR (a 3x3 convolution first, and no pooling after it), on 8 images of 32 by 32
    pixels."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, inner, outer, stride):
            super().__init__()
            self.conv1 = nn.Conv2d(inner, outer, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(outer)
            self.conv2 = nn.Conv2d(outer, outer, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(outer)
            self.shortcut = nn.Sequential() if stride == 1 and inner == outer else nn.Sequential(nn.Conv2d(inner, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))

        def forward(self, x):
            y = F.relu(self.bn1(self.conv1(x)))
            return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))

    blocks = [Block(inner, outer, stride) for first, outer, stride in ((64, 64, 1), (64, 128, 2), (128, 256, 2), (256, 512, 2))
              for inner, stride in ((first, stride), (outer, 1))]
    model = nn.Sequential(nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    images, labels = torch.rand(8, 3, 32, 32), torch.randint(0, 10, (8,))
    if layout == "channels_last":
        model, images = model.to(memory_format=torch.channels_last), images.contiguous(memory_format=torch.channels_last)
    return training(model, torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9), lambda model: F.cross_entropy(model(images), labels))


def gpt(torch, layout):
    """Returns a training step of a transformer with 4 layers, 4 heads and 128 features, on 8 sequences of 64 characters."""
    nn, F = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            b, t, c = x.shape
            q, k, v = self.qkv(self.norm1(x)).split(c, dim=2)
            q, k, v = (part.view(b, t, self.heads, c // self.heads).transpose(1, 2) for part in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).contiguous().view(b, t, c)
            x = x + self.out(y)
            return x + self.mlp(self.norm2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.tokens, self.places = nn.Embedding(65, 128), nn.Embedding(64, 128)
            self.blocks = nn.Sequential(*(Block(128, 4) for _ in range(4)))
            self.norm, self.head = nn.LayerNorm(128), nn.Linear(128, 65, bias=False)

        def forward(self, tokens):
            return self.head(self.norm(self.blocks(self.tokens(tokens) + self.places(torch.arange(tokens.size(1))))))

    model = GPT()
    tokens = torch.randint(0, 65, (8, 65))
    return training(model, torch.optim.AdamW(model.parameters(), lr=3e-4), lambda model: F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()))


def lstm(torch, layout):
    """Returns a training step of a recurrent language model with 2 LSTM layers of 128 units, on 16 sequences of 32 characters."""
    nn, F = torch.nn, torch.nn.functional

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.lstm, self.head = nn.Embedding(65, 128), nn.LSTM(128, 128, 2, batch_first=True), nn.Linear(128, 65)

        def forward(self, tokens):
            return self.head(self.lstm(self.embedding(tokens))[0])

    model = Model()
    tokens = torch.randint(0, 65, (16, 33))
    return training(model, torch.optim.Adam(model.parameters()), lambda model: F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten()))


def ppo(torch, layout):
    """Returns a training step of proximal policy optimization on a minibatch of 64 time steps. A state is 4 numbers, and there are 2 actions.
    Gradients are clipped."""
    nn, F = torch.nn, torch.nn.functional
    actor = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2))
    critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    parameters = [*actor.parameters(), *critic.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=3e-4, eps=1e-5)
    states, actions, advantages, returns = torch.randn(64, 4), torch.randint(0, 2, (64,)), torch.randn(64), torch.randn(64)
    old = torch.full((64,), -0.7)

    def step():
        distribution = torch.distributions.Categorical(logits=actor(states))
        ratio = (distribution.log_prob(actions) - old).exp()
        gained = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        loss = -gained + 0.5 * F.mse_loss(critic(states).squeeze(-1), returns) - 0.01 * distribution.entropy().mean()
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 0.5)
        optimizer.step()

    return step


def cases(torch, layout):
    """Returns {name: training step}. A model is made when its step is first called, so that the peak of memory counts only programs that run."""
    def made_late(program):
        made = functools.cache(lambda: program(torch, layout))
        return lambda: made()()

    return {program.__name__: made_late(program) for program in (lenet, resnet18, gpt, lstm, ppo)}


if __name__ == "__main__":
    compare(cases, __doc__, layouts=("default", "channels_last"))
