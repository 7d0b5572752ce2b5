"""Optimizes an image as in style transfer (Gatys et al., 2015), with L-BFGS and fixed random features."""
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super().__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.std = torch.tensor(std).view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


def build(cnn, content, style):
    model = nn.Sequential(Normalization([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
    contents, styles, i = [], [], 0
    for layer in cnn.children():
        if isinstance(layer, nn.Conv2d):
            i += 1
        elif isinstance(layer, nn.ReLU):
            layer = nn.ReLU(inplace=False)
        model.add_module(f"{type(layer).__name__.lower()}_{i}", layer)
        if isinstance(layer, nn.Conv2d):
            if i == 2:
                contents.append(ContentLoss(model(content)))
                model.add_module(f"content_loss_{i}", contents[-1])
            styles.append(StyleLoss(model(style).detach()))
            model.add_module(f"style_loss_{i}", styles[-1])
    return model, contents, styles


def main():
    torch.manual_seed(6)
    cnn = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(inplace=True), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU(inplace=True), nn.AvgPool2d(2),
                        nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(inplace=True)).eval()
    rows = torch.linspace(0, 1, 16)
    content = torch.stack([rows.expand(16, 16), rows.expand(16, 16).t(), torch.full((16, 16), 0.5)]).unsqueeze(0)
    style = torch.rand(1, 3, 16, 16)
    image = content.clone()
    model, contents, styles = build(cnn, content, style)
    image.requires_grad_(True)
    model.requires_grad_(False)
    optimizer = optim.LBFGS([image], max_iter=6)
    run = [0]
    while run[0] <= 15:
        def closure():
            with torch.no_grad():
                image.clamp_(0, 1)
            optimizer.zero_grad()
            model(image)
            style_score = sum(layer.loss for layer in styles) * 1000
            content_score = sum(layer.loss for layer in contents)
            loss = style_score + content_score
            loss.backward()
            run[0] += 1
            if run[0] % 5 == 0:
                print(f"run {run[0]}: style {style_score.item():.4f} content {content_score.item():.4f}")
            return loss

        optimizer.step(closure)
    with torch.no_grad():
        image.clamp_(0, 1)
    print(f"mean {image.mean().item():.4f}")

    x = torch.tensor([-1.5, 2.0], requires_grad=True)
    search = torch.optim.LBFGS([x], lr=1, max_iter=20, line_search_fn="strong_wolfe", history_size=5)

    def rosenbrock():
        search.zero_grad()
        value = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        value.backward()
        return value

    for _ in range(3):
        print(f"rosenbrock {search.step(rosenbrock).item():.2f}")


if __name__ == "__main__":
    main()
