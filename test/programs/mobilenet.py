"""Trains a network like MobileNetV3 (Howard et al., 2019), which consists of inverted residuals, depthwise convolutions, and squeeze and excitation."""
import torch
from torch import nn
from torch.nn import functional as F


def make_divisible(value, divisor=8):
    return max(divisor, int(value + divisor / 2) // divisor * divisor)


class SqueezeExcitation(nn.Module):
    def __init__(self, channels):
        super().__init__()
        squeezed = make_divisible(channels // 4)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Conv2d(channels, squeezed, 1)
        self.fc2 = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x):
        scale = F.hardsigmoid(self.fc2(F.relu(self.fc1(self.avgpool(x)))))
        return scale * x


class ConvBNActivation(nn.Sequential):
    def __init__(self, inner, outer, kernel_size=3, stride=1, groups=1, activation=nn.Hardswish):
        padding = (kernel_size - 1) // 2
        layers = [nn.Conv2d(inner, outer, kernel_size, stride, padding, groups=groups, bias=False), nn.BatchNorm2d(outer, eps=0.001, momentum=0.01)]
        if activation is not None:
            layers.append(activation(inplace=True))
        super().__init__(*layers)


class InvertedResidual(nn.Module):
    def __init__(self, inner, kernel, expanded, outer, excite, activation, stride):
        super().__init__()
        self.residual = stride == 1 and inner == outer
        layers = []
        if expanded != inner:
            layers.append(ConvBNActivation(inner, expanded, 1, activation=activation))
        layers.append(ConvBNActivation(expanded, expanded, kernel, stride, groups=expanded, activation=activation))
        if excite:
            layers.append(SqueezeExcitation(expanded))
        layers.append(ConvBNActivation(expanded, outer, 1, activation=None))
        self.block = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.block(x) if self.residual else self.block(x)


class MobileNet(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        settings = [(16, 3, 16, 16, True, nn.ReLU, 2), (16, 3, 72, 24, False, nn.ReLU, 2), (24, 3, 88, 24, False, nn.ReLU, 1), (24, 5, 96, 40, True, nn.Hardswish, 2),
                    (40, 5, 240, 40, True, nn.Hardswish, 1)]
        self.features = nn.Sequential(ConvBNActivation(3, 16, 3, 2), *(InvertedResidual(*setting) for setting in settings), ConvBNActivation(40, 240, 1))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Sequential(nn.Linear(240, 64), nn.Hardswish(inplace=True), nn.Dropout(p=0.2, inplace=True), nn.Linear(64, num_classes))
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out")
                if m.bias is not None:
                    nn.init.zeros_(m.bias)
            elif isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, 0, 0.01)
                nn.init.zeros_(m.bias)

    def forward(self, x):
        return self.classifier(torch.flatten(self.avgpool(self.features(x)), 1))


def main():
    torch.manual_seed(0)
    model = MobileNet()
    print(model.features[2])
    print(sum(p.numel() for p in model.parameters()))
    optimizer = torch.optim.RMSprop(model.parameters(), lr=0.002, momentum=0.9, weight_decay=1e-5, alpha=0.9, eps=0.0316)
    ema = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
    for step in range(5):
        images, target = torch.randn(8, 3, 64, 64), torch.randint(10, (8,))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(images), target)
        loss.backward()
        optimizer.step()
        scheduler.step()
        ema.update_parameters(model)
        print(f"step {step} loss {loss.item():.4f} lr {scheduler.get_last_lr()[0]:.6f}")
    model.eval()
    ema.eval()
    with torch.no_grad():
        x = torch.randn(2, 3, 64, 64)
        print(f"{model(x).softmax(1).max().item():.4f} {ema(x).softmax(1).max().item():.4f}")


if __name__ == "__main__":
    main()
