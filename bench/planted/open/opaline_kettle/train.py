"""Denoising diffusion on small images of glazed pottery; EMA weights are used for the previews."""

import copy
import os
import time
from pathlib import Path

import numpy as np
import torch
import yaml
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset

from diffusion import Diffusion
from unet import UNet


class Pottery(Dataset):
    """Solids of revolution with a random profile and glaze; kept as uint8, flipped at random."""

    def __init__(self, count, side, seed):
        rng = np.random.default_rng(seed)
        v = np.linspace(0, 1, side)
        u = np.linspace(-1, 1, side)
        self.images = np.empty((count, side, side, 3), np.uint8)
        for i in range(count):
            knots = rng.uniform(0.25, 0.9, 5)
            profile = np.interp(v, np.linspace(0.1, 0.95, 5), knots)
            inside = (np.abs(u)[None] < profile[:, None]) & (v[:, None] > 0.1) & (v[:, None] < 0.95)
            shade = np.sqrt(np.clip(1 - (u[None] / profile[:, None]) ** 2, 0, 1)) * 0.7 + 0.3
            band = (np.sin(v * rng.uniform(8, 30) + rng.uniform(0, 6)) > rng.uniform(-0.5, 0.9))[:, None, None]
            glaze = np.where(band, rng.uniform(60, 255, 3), rng.uniform(60, 255, 3))
            img = np.where(inside[..., None], shade[..., None] * glaze, 235.0)
            self.images[i] = img.clip(0, 255)

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        x = torch.from_numpy(self.images[i]).permute(2, 0, 1).float() / 127.5 - 1
        return x.flip(2) if torch.rand(()) < 0.5 else x


class EMA:
    def __init__(self, model, decay):
        self.model = copy.deepcopy(model).requires_grad_(False).eval()
        self.decay = decay

    @torch.no_grad()
    def update(self, source):
        for p, q in zip(self.model.parameters(), source.parameters()):
            p.lerp_(q, 1 - self.decay)


def save_grid(x, path):
    x = ((x + 1) * 127.5).clamp(0, 255).byte().permute(0, 2, 3, 1).numpy()
    Image.fromarray(np.concatenate(list(x), 1)).save(path)


def main():
    with open(Path(__file__).with_name("config.yaml")) as f:
        cfg = yaml.safe_load(f)
    tr, pv = cfg["train"], cfg["preview"]
    total = int(os.environ.get("PLANTED_STEPS", tr["steps"]))
    torch.manual_seed(cfg["seed"])

    data = Pottery(cfg["data"]["count"], cfg["data"]["side"], cfg["seed"])
    loader = DataLoader(data, tr["batch_size"], shuffle=True, drop_last=True, num_workers=0)
    model = UNet(**cfg["model"])
    ema = EMA(model, tr["ema"])
    diffusion = Diffusion(cfg["diffusion"]["timesteps"])
    opt = torch.optim.AdamW(model.parameters(), lr=tr["lr"])
    folder = Path(pv["folder"])
    folder.mkdir(exist_ok=True)
    preview_rng = torch.Generator()

    step, running = 0, []
    start = time.perf_counter()
    while step < total:
        for x in loader:
            loss = diffusion.loss(model, x)
            opt.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), tr["grad_clip"]).item()
            opt.step()
            ema.update(model)
            step += 1
            running.append(loss.item())
            if step % tr["log_every"] == 0:
                print(f"step {step:4d}  loss {np.mean(running[-tr['log_every'] :]):.4f}  grad norm {norm:.3f}")
            if step % pv["every"] == 0:
                side = cfg["data"]["side"]
                x = diffusion.sample(ema.model, (pv["count"], 3, side, side), pv["sampler_steps"], preview_rng.manual_seed(1))
                save_grid(x, folder / f"{step:05d}.png")
                torch.save({"ema": ema.model.state_dict(), "step": step}, folder / "last.pt")
            if step == total:
                break
    wall = time.perf_counter() - start
    print(f"{step} steps in {wall:.1f} s, loss {running[-1]:.6f}")


if __name__ == "__main__":
    main()
