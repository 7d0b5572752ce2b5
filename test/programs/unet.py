"""Trains a U-Net (Ronneberger et al., 2015) that segments discs in noise."""
import torch
import torch.nn as nn
import torch.nn.functional as F


class DoubleConv(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.double_conv = nn.Sequential(
            nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1, bias=False), nn.BatchNorm2d(out_channels), nn.ReLU(inplace=True),
            nn.Conv2d(out_channels, out_channels, kernel_size=3, padding=1, bias=False), nn.BatchNorm2d(out_channels), nn.ReLU(inplace=True))

    def forward(self, x):
        return self.double_conv(x)


class Down(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.maxpool_conv = nn.Sequential(nn.MaxPool2d(2), DoubleConv(in_channels, out_channels))

    def forward(self, x):
        return self.maxpool_conv(x)


class Up(nn.Module):
    def __init__(self, in_channels, out_channels, bilinear):
        super().__init__()
        if bilinear:
            self.up = nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            self.conv = DoubleConv(in_channels + out_channels, out_channels)
        else:
            self.up = nn.ConvTranspose2d(in_channels, in_channels // 2, kernel_size=2, stride=2)
            self.conv = DoubleConv(in_channels // 2 + out_channels, out_channels)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        dy, dx = x2.size()[2] - x1.size()[2], x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, n_channels, n_classes, bilinear):
        super().__init__()
        self.inc = DoubleConv(n_channels, 8)
        self.down1, self.down2 = Down(8, 16), Down(16, 32)
        self.up1, self.up2 = Up(32, 16, bilinear), Up(16, 8, bilinear)
        self.outc = nn.Conv2d(8, n_classes, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        x2 = self.down1(x1)
        x3 = self.down2(x2)
        return self.outc(self.up2(self.up1(x3, x2), x1))


def dice_loss(logits, target, smooth=1.0):
    p = torch.softmax(logits, 1)[:, 1]
    return 1 - (2 * (p * target).sum((1, 2)) + smooth).div(p.sum((1, 2)) + target.sum((1, 2)) + smooth).mean()


def batch(n, size=30):
    y, x = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    cy, cx, r = (torch.randint(low, high, (n, 1, 1)) for low, high in ((8, 22), (8, 22), (3, 8)))
    mask = ((y - cy) ** 2 + (x - cx) ** 2 <= r ** 2)
    return mask.unsqueeze(1).float() + 0.5 * torch.randn(n, 1, size, size), mask.long()


def main():
    for bilinear in (True, False):
        torch.manual_seed(7)
        net = UNet(1, 2, bilinear)
        optimizer = torch.optim.RMSprop(net.parameters(), lr=1e-3, weight_decay=1e-8, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=2)
        for step in range(5):
            images, masks = batch(4)
            logits = net(images)
            loss = F.cross_entropy(logits, masks, weight=torch.tensor([0.5, 2.0])) + dice_loss(logits, masks.float())
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_value_(net.parameters(), 0.1)
            optimizer.step()
            score = (logits.argmax(1) == masks).float().mean()
            scheduler.step(score)
            print(f"bilinear {bilinear} step {step} loss {loss.item():.4f} right {score.item():.3f}")
        net.eval()
        with torch.no_grad():
            images, masks = batch(2)
            print(f"evaluated {F.cross_entropy(net(images), masks).item():.4f}")


if __name__ == "__main__":
    main()
