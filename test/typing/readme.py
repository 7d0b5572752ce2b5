import gradus as torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
x = torch.randn(64, 4)
loss = torch.zeros(())
for step in range(200):
    loss = torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
torch.nn.Linear(4)  # error
torch.nn.Linear("4", 16)  # error
torch.optim.AdamW(model.parameters(), learning_rate=1e-2)  # error
torch.manual_sed(0)  # error
