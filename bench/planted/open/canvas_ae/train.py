import os
import tempfile
import time

import torch
from gallery import SHOW_EVERY, Gallery
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 32))
        self.decoder = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 1024), nn.Sigmoid())

    def forward(self, x):
        return self.decoder(self.encoder(x)).view_as(x)


def brushwork(n):
    t = torch.linspace(0, 6.28, 32)
    a, b = torch.rand(2, n, 1, 1) * 4
    return torch.sin(a * t[:, None] + b * t) * 0.4 + 0.5 + 0.03 * torch.randn(n, 32, 32)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(9)
    steps = int(os.environ.get("PLANTED_STEPS", 800))
    loader = DataLoader(TensorDataset(brushwork(2048)), batch_size=64, shuffle=True)
    model = AutoEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with tempfile.TemporaryDirectory() as folder:
        gallery = Gallery(folder, SHOW_EVERY)
        step, t0 = 0, time.time()
        while step < steps:
            for (x,) in loader:
                copies = model(x)
                loss = nn.functional.binary_cross_entropy(copies, x.clamp(0, 1))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                step += 1
                gallery.show(step, x.numpy(), copies.detach().numpy())
                if step == steps:
                    break
        print(f"{steps} steps in {time.time() - t0:.2f}s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
