from typing import Any

import gradus as torch
import gradus.nn as nn
from gradus import Tensor
from gradus.utils.data import DataLoader, TensorDataset


class LightningLike(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(2, 1)
        self.loss = nn.MSELoss()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)

    def training_step(self, batch: tuple[Tensor, Tensor], index: int) -> Tensor:
        x, y = batch
        return self.loss(self(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


class Trainer:
    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def fit(self, model: LightningLike, loader: DataLoader[Any]) -> None:
        optimizer = model.configure_optimizers()
        for _ in range(self.epochs):
            for index, batch in enumerate(loader):
                loss = model.training_step(batch, index)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


Trainer(2).fit(LightningLike(), DataLoader(TensorDataset(torch.ones(4, 2), torch.ones(4, 1)), batch_size=2))
nn.MSELoss(reduce_by="sum")  # error
Trainer(2).fit(nn.Linear(2, 1), DataLoader(TensorDataset(torch.ones(4, 2))))  # error
torch.optim.SGD()  # error
LightningLike().training_step(3, 0)  # error
