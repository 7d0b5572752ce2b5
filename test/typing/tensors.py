import gradus as torch
from gradus import Tensor

x = torch.zeros(2, 3, dtype=torch.float64, device="cpu")
values, indices = x.max(dim=1)
top = torch.topk(x, 2)
rows: list[list[float]] = x.tolist()
mask = (x > 0) & ~torch.isnan(x)
x[mask] = 1.0
picked: Tensor = x[:, None, ..., 0]
size: torch.Size = x.shape
n: int = x.size(0) * size[1]
total: float = float(x.sum())
d: torch.dtype = x.dtype
where: torch.device = x.device
same: bool = torch.equal(x, x)
first, *rest = x.unbind(0)
joined = torch.cat([first, *rest]).view(-1, 3).permute(1, 0).contiguous()
made = torch.einsum("ij,kj->ik", x, x)
with torch.no_grad():
    x += 1
torch.save({"x": x}, "/dev/null")
x.unsqueeze()  # error
x + "one"  # error
torch.cat(x)  # error
x.no_such_method()  # error
name: str = torch.relu(x)  # error
torch.zeros("two")  # error
