import gradus as torch
from gradus import Tensor
from gradus.utils.data import DataLoader, Dataset, TensorDataset, random_split


class Squares(Dataset[tuple[Tensor, Tensor]]):
    def __init__(self, n: int) -> None:
        self.x = torch.arange(n, dtype=torch.float32)

    def __len__(self) -> int:
        return self.x.size(0)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.x[index] ** 2


data = Squares(10)
loader = DataLoader(data, batch_size=4, shuffle=True, num_workers=0, drop_last=False)
for x, y in loader:
    print(x + y)
print(len(loader), data[0][1].item())
train, test = random_split(TensorDataset(torch.ones(4), torch.ones(4)), [3, 1])
DataLoader(data, batchsize=4)  # error
DataLoader(data, batch_size="4")  # error
Squares("ten")  # error
data[0].item()  # error
