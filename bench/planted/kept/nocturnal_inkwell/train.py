"""Class-conditional DDPM on little polygons, with EMA weights and classifier-free guidance."""
import copy
import os
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from glyphs import glyph_set
from unet import UNet

OPTIONS = dict(
    steps=int(os.environ.get("PLANTED_STEPS", 300)),
    batch_size=16,
    lr=4e-4,
    timesteps=200,
    ema=0.995,
    drop_label=0.1,
    clip=1.0,
    seed=31,
)


class Diffusion:
    def __init__(self, timesteps):
        self.timesteps = timesteps
        s = torch.linspace(0, 1, timesteps + 1, dtype=torch.float64)
        bar = torch.cos((s + 0.008) / 1.008 * torch.pi / 2) ** 2
        self.betas = (1 - bar[1:] / bar[:-1]).clamp(max=0.999).float()
        self.alpha_bar = torch.cumprod(1 - self.betas, 0)

    def add_noise(self, x, t, noise):
        a = self.alpha_bar[t].view(-1, 1, 1, 1)
        return a.sqrt() * x + (1 - a).sqrt() * noise

    @torch.no_grad()
    def sample(self, model, labels, stride=10):
        x = torch.randn(len(labels), 1, 24, 24)
        times = list(range(self.timesteps - 1, -1, -stride))
        for t, prev in zip(times, times[1:] + [-1]):
            eps = model(x, torch.full((len(labels),), t), labels)
            a = self.alpha_bar[t]
            b = self.alpha_bar[prev] if prev >= 0 else torch.tensor(1.0)
            x0 = ((x - (1 - a).sqrt() * eps) / a.sqrt()).clamp(-1, 1)
            x = b.sqrt() * x0 + (1 - b).sqrt() * eps
        return x


class DDPMTrainer:
    def __init__(self, opt):
        self.opt = opt
        torch.manual_seed(opt["seed"])
        self.loader = DataLoader(TensorDataset(*glyph_set(2000, opt["seed"])), opt["batch_size"],
                                 shuffle=True, drop_last=True, num_workers=0)
        self.model = UNet()
        self.ema = copy.deepcopy(self.model).requires_grad_(False)
        self.diffusion = Diffusion(opt["timesteps"])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=opt["lr"])
        self.history = []

    def update_ema(self):
        with torch.no_grad():
            for slow, fast in zip(self.ema.state_dict().values(), self.model.state_dict().values()):
                slow.lerp_(fast, 1 - self.opt["ema"])

    def training_step(self, x, y):
        t = torch.randint(0, self.diffusion.timesteps, (len(x),))
        noise = torch.randn_like(x)
        y = torch.where(torch.rand(len(y)) < self.opt["drop_label"], 4, y)
        pred = self.model(self.diffusion.add_noise(x, t, noise), t, y)
        loss = F.mse_loss(pred, noise)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.opt["clip"])
        self.optimizer.step()
        self.update_ema()
        return loss.item()

    def fit(self):
        start = time.time()
        while len(self.history) < self.opt["steps"]:
            for x, y in self.loader:
                self.history.append(self.training_step(x, y))
                if len(self.history) % 25 == 0:
                    print(f"{len(self.history):5d}  loss {np.mean(self.history[-25:]):.4f}")
                if len(self.history) == self.opt["steps"]:
                    break
        return time.time() - start

    def save_grid(self, path):
        images = self.diffusion.sample(self.ema, torch.arange(16) % 4)
        grid = images.view(4, 4, 24, 24).permute(0, 2, 1, 3).reshape(96, 96)
        Image.fromarray(((grid + 1) * 127.5).clamp(0, 255).byte().numpy()).save(path)


if __name__ == "__main__":
    trainer = DDPMTrainer(OPTIONS)
    seconds = trainer.fit()
    trainer.save_grid(Path(__file__).with_name("samples.png"))
    print(f"{len(trainer.history)} steps in {seconds:.2f} s, loss {trainer.history[-1]:.6f}")
