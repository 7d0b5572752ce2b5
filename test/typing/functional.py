import gradus as torch
import gradus.nn.functional as F
from gradus import Tensor


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
    return F.softmax(scores, dim=-1) @ v


x = torch.randn(2, 3, 4)
y: Tensor = attention(x, x, x)
loss: Tensor = F.cross_entropy(torch.randn(3, 5), torch.tensor([1, 2, 3]), label_smoothing=0.1)
z = F.layer_norm(F.gelu(x), (4,)) + F.dropout(x, p=0.5, training=True)
image = F.pad(x, (1, 1), mode="constant", value=0.0)
one = F.one_hot(torch.tensor([0, 1]), num_classes=3)
similar: Tensor = F.cosine_similarity(x, x, dim=-1)
loss = F.mse_loss(x, x) + F.l1_loss(x, x) + F.binary_cross_entropy_with_logits(x, x.sigmoid())
F.softmax()  # error
F.cross_entropy(x)  # error
F.dropout(x, probability=0.5)  # error
F.no_such_function(x)  # error
F.layer_norm(x, "4")  # error
