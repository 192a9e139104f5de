import os
import time

import torch
import torch.nn.functional as F
from torch import nn

FAST = os.environ.get("PLANTED_FIX") == "1"
MAX_STEPS = int(os.environ.get("PLANTED_STEPS", 800))
SAVE_EVERY = 1000 if FAST else 2


class VAE(nn.Module):
    def __init__(self, latent=32):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(784, 768), nn.ReLU(), nn.Linear(768, 2 * latent))
        self.dec = nn.Sequential(nn.Linear(latent, 768), nn.ReLU(), nn.Linear(768, 784))

    def forward(self, x):
        mean, logvar = self.enc(x).chunk(2, dim=1)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        return self.dec(z), mean, logvar


def elbo(x, out, mean, logvar):
    rec = F.binary_cross_entropy_with_logits(out, x, reduction="sum")
    return (rec - 0.5 * (1 + logvar - mean.square() - logvar.exp()).sum()) / len(x)


def digits(n, g):
    y, x = torch.meshgrid(torch.linspace(-1, 1, 28), torch.linspace(-1, 1, 28), indexing="ij")
    centre = torch.rand(n, 2, 1, 1, generator=g) - 0.5
    radius = 0.3 + 0.4 * torch.rand(n, 1, 1, generator=g)
    ring = ((x - centre[:, 0]) ** 2 + (y - centre[:, 1]) ** 2).sqrt() - radius
    return (ring.abs() < 0.12).float().flatten(1)


def save_checkpoint(model, optimizer, step, path="checkpoints"):
    os.makedirs(path, exist_ok=True)
    state = {"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    for name in ("last.pt", "previous.pt" if step % 100 else "milestone.pt"):
        torch.save(state, os.path.join(path, name))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(10)
    data = digits(4096, torch.Generator().manual_seed(1))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data), batch_size=32, shuffle=True)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    step, start = 0, time.time()
    while step < MAX_STEPS:
        for (x,) in loader:
            loss = elbo(x, *model(x))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            step += 1
            if step % SAVE_EVERY == 0:
                save_checkpoint(model, optimizer, step)
            if step >= MAX_STEPS:
                break
    print(f"{step} steps in {time.time() - start:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
