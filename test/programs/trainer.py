"""Trains a network with the features that a training library offers, namely autocast and GradScaler, gradient accumulation, OneCycle, early stopping, weighted sampling, workers,
resuming."""
import argparse
import os
import random
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Iterator, Optional

import numpy as np
import torch
import torch.backends.cudnn as cudnn
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, OneCycleLR, ReduceLROnPlateau, SequentialLR
from torch.utils.data import ConcatDataset, DataLoader, IterableDataset, Subset, TensorDataset, WeightedRandomSampler, get_worker_info
from torch.utils.checkpoint import checkpoint


def seed_everything(seed: int):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)
    cudnn.deterministic = True
    cudnn.benchmark = False
    os.environ["PYTHONHASHSEED"] = str(seed)


class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self) -> Iterator[torch.Tensor]:
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, self.n, step):
            yield torch.tensor([i, i * i], dtype=torch.float32)


class AverageMeter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, value, n=1):
        self.sum, self.count = self.sum + value * n, self.count + n

    @property
    def avg(self):
        return self.sum / max(1, self.count)


class SE(nn.Module):
    def __init__(self, c, r=2):
        super().__init__()
        self.fc = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(c, c // r, 1), nn.ReLU(inplace=True), nn.Conv2d(c // r, c, 1), nn.Hardsigmoid())

    def forward(self, x):
        return x * self.fc(x)


class Net(nn.Module):
    def __init__(self, classes=10, use_checkpoint=False):
        super().__init__()
        self.use_checkpoint = use_checkpoint
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU6())
        self.body = nn.ModuleList([nn.Sequential(nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.InstanceNorm2d(8, affine=True), nn.Conv2d(8, 8, 1), SE(8)) for _ in range(2)])
        self.drop = nn.Dropout2d(0.1)
        self.head = nn.Linear(8 * 16, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.InstanceNorm2d)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def forward(self, x: torch.Tensor, labels: Optional[torch.Tensor] = None):
        x = self.stem(x)
        for block in self.body:
            x = F.leaky_relu(x + (checkpoint(block, x, use_reentrant=False) if self.use_checkpoint and self.training else block(x)), 0.1)
        logits = self.head(self.drop(F.max_pool2d(x, 2)).flatten(1))
        return (logits, F.cross_entropy(logits, labels)) if labels is not None else logits


def run(args, device):
    seed_everything(args.seed)
    rows = np.loadtxt(args.data, delimiter=",", dtype=np.float32)[:256]
    images, labels = torch.from_numpy(rows[:, :64]).view(-1, 1, 8, 8).div_(16).sub_(0.5), torch.from_numpy(rows[:, 64]).long()
    data = ConcatDataset([TensorDataset(images[:100], labels[:100]), TensorDataset(images[100:], labels[100:])])
    train, valid = Subset(data, range(192)), Subset(data, range(192, 256))
    counts = torch.bincount(labels[:192], minlength=10)
    sampler = WeightedRandomSampler((1.0 / counts.float())[labels[:192]].tolist(), num_samples=192, replacement=True)
    loader = DataLoader(train, batch_size=32, sampler=sampler, num_workers=args.workers, pin_memory=torch.cuda.is_available(), drop_last=True,
                        worker_init_fn=lambda i: np.random.seed(i), prefetch_factor=2 if args.workers else None)
    model = Net(use_checkpoint=args.checkpoint).to(device, memory_format=torch.channels_last)
    if hasattr(torch, "compile") and args.compile:
        model = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)
    scheduler = {"one": lambda: OneCycleLR(optimizer, max_lr=0.1, total_steps=12), "warm": lambda: SequentialLR(optimizer, [LinearLR(optimizer, 0.1, total_iters=4), CosineAnnealingLR(optimizer, 8)], [4])}[args.schedule]()
    plateau = ReduceLROnPlateau(optimizer, "min", factor=0.5, patience=0)
    scaler = torch.amp.GradScaler(device.type, enabled=args.amp)
    context = torch.autocast(device_type=device.type, dtype=torch.bfloat16) if args.amp else nullcontext()
    start, best, bad = 0, float("inf"), 0
    path = Path(args.out) / "last.pt"
    if args.resume and path.exists():
        state = torch.load(path, map_location=device, weights_only=False)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        scaler.load_state_dict(state["scaler"])
        torch.set_rng_state(state["rng"])
        start, best = state["epoch"] + 1, state["best"]
        print(f"resumed at {start}")
    for epoch in range(start, args.epochs):
        model.train()
        meter = AverageMeter()
        optimizer.zero_grad(set_to_none=True)
        for i, (x, t) in enumerate(loader):
            x, t = x.to(device, non_blocking=True, memory_format=torch.channels_last), t.to(device, non_blocking=True)
            with context:
                _, loss = model(x, t)
            scaler.scale(loss / 2).backward()
            if (i + 1) % 2 == 0:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad(set_to_none=True)
                scheduler.step()
            meter.update(loss.item(), x.size(0))
        model.eval()
        with torch.no_grad():
            batch = next(iter(DataLoader(valid, batch_size=len(valid))))
            logits = model(batch[0].to(device))
            val = F.cross_entropy(logits, batch[1], label_smoothing=0.05)
            top = logits.topk(3, dim=1).indices.eq(batch[1].unsqueeze(1)).any(1).float().mean()
        print(f"epoch {epoch} loss {meter.avg:.{args.digits}f} val {val.item():.{args.digits}f} top3 {top:.2f} lr {optimizer.param_groups[0]['lr']:.4f} scale {scaler.get_scale()}")
        plateau.step(val)
        bad = 0 if val < best else bad + 1
        best = min(best, val.item())
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "scaler": scaler.state_dict(), "rng": torch.get_rng_state(),
                    "epoch": epoch, "best": best}, path)
        if bad > args.patience:
            print("early stop")
            break
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    for name, default in (("epochs", 3), ("seed", 1), ("workers", 2), ("patience", 2), ("digits", 3)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--schedule", default="one")
    for flag in ("amp", "resume", "compile", "checkpoint"):
        parser.add_argument(f"--{flag}", action="store_true")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as args.out:
        run(args, device)
        args.resume, args.epochs, args.checkpoint = True, 4, True
        model = run(args, device)
        args.resume, args.amp, args.schedule, args.digits, args.epochs = False, True, "warm", 1, 2
        run(args, device)
    print(sum(p.grad is not None for p in model.parameters()), model.stem[1].num_batches_tracked.item(), time.perf_counter() > start)
    batches = [b.tolist() for b in DataLoader(Stream(10), batch_size=2, num_workers=2)]
    print(batches)
    print(sorted(v for b in DataLoader(Stream(5)) for v in b.flatten().tolist()))


if __name__ == "__main__":
    main()
