import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
torch.manual_seed(0)

generator = nn.Sequential(
    nn.ConvTranspose2d(16, 64, 4),
    nn.ReLU(),
    nn.ConvTranspose2d(64, 48, 4, 2, 1),
    nn.ReLU(),
    nn.ConvTranspose2d(48, 24, 4, 2, 1),
    nn.ReLU(),
    nn.Conv2d(24, 1, 3, padding=1),
    nn.Tanh(),
)
critic = nn.Sequential(
    nn.Conv2d(1, 32, 4, 2, 1),
    nn.LeakyReLU(0.2),
    nn.Conv2d(32, 64, 4, 2, 1),
    nn.LeakyReLU(0.2),
    nn.Conv2d(64, 1, 4),
)
opt_g = torch.optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(critic.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()

y, x = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
angle = torch.rand(2048, 1, 1) * 3.14
textures = torch.sin(x * angle.cos() + y * angle.sin())[:, None]
loader = DataLoader(TensorDataset(textures), batch_size=64, shuffle=True, drop_last=True)

limit, step, start = int(os.environ.get("PLANTED_STEPS", 500)), 0, time.time()
while step < limit:
    for (real,) in loader:
        fake = generator(torch.randn(len(real), 16, 1, 1))
        opt_d.zero_grad()
        score_real, score_fake = critic(real), critic(fake.detach())
        loss_d = bce(score_real, torch.ones_like(score_real)) + bce(score_fake, torch.zeros_like(score_fake))
        loss_d.backward()
        opt_d.step()

        opt_g.zero_grad()
        score = critic(fake)
        loss_g = bce(score, torch.ones_like(score))
        loss_g.backward()
        opt_g.step()
        step += 1
        if step % 100 == 0:
            print(step, loss_d.item(), loss_g.item(), flush=True)
        if step == limit:
            break
print(f"{step} steps in {time.time() - start:.2f}s, loss {loss_g.item():.6f}")
