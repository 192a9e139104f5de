import copy
import gc
import os
import time
import tomllib
from collections import defaultdict
from pathlib import Path

import torch
from torch.utils.data import DataLoader

from galaxy.data import Galaxies
from galaxy.net import GalaxyNet, task_losses


@torch.no_grad()
def update_ema(ema, model, decay):
    for a, b in zip(ema.state_dict().values(), model.state_dict().values()):
        if a.dtype.is_floating_point:
            a.lerp_(b, 1 - decay)
        else:
            a.copy_(b)


@torch.no_grad()
def validate(model, loader):
    model.eval()
    hits = dz = n = 0
    for batch in loader:
        out = model(batch["image"])
        hits += (out["kind"].argmax(1) == batch["kind"]).sum().item()
        dz += (out["redshift"].squeeze(1) - batch["redshift"]).abs().sum().item()
        n += len(batch["kind"])
    gc.collect()
    return hits / n, dz / n


def main():
    cfg = tomllib.loads((Path(__file__).parent / "config.toml").read_text())
    tr = cfg["train"]
    max_steps = int(os.environ.get("PLANTED_STEPS", tr["max_steps"]))
    torch.manual_seed(cfg["seed"])

    train_set = Galaxies(cfg["data"]["n_train"], cfg["data"]["size"], cfg["seed"])
    valid_set = Galaxies(cfg["data"]["n_valid"], cfg["data"]["size"], cfg["seed"] + 10, augment=False)
    train_loader = DataLoader(train_set, tr["batch_size"], shuffle=True, drop_last=True, num_workers=0)
    valid_loader = DataLoader(valid_set, 128, num_workers=0)

    model = GalaxyNet(**cfg["model"])
    ema = copy.deepcopy(model)
    opt = torch.optim.SGD(model.parameters(), lr=tr["lr"] * 10, momentum=tr["momentum"], weight_decay=tr["weight_decay"], nesterov=True)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=tr["lr"] * 10, total_steps=max(max_steps, 10))

    history = defaultdict(list)
    step = 0
    start = time.perf_counter()
    while step < max_steps:
        for batch in train_loader:
            model.train()
            opt.zero_grad(set_to_none=False)
            losses = task_losses(model(batch["image"]), batch)
            loss = sum(tr["weights"][k] * v for k, v in losses.items())
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
            sched.step()
            update_ema(ema, model, tr["ema"])
            step += 1

            history["loss"].append(loss.item())
            history["grad_norm"].append(norm.item())
            for k, v in losses.items():
                history[k].append(v.item())
            if step % 20 == 0:
                recent = "  ".join(f"{k} {sum(v[-20:]) / 20:.4f}" for k, v in history.items())
                print(f"step {step}  {recent}")
            if step % tr["valid_every"] == 0:
                acc, dz = validate(ema, valid_loader)
                print(f"step {step}  valid: kind accuracy {acc:.3f}  |dz| {dz:.3f}")
            if step >= max_steps:
                break
    print(f"{step} steps in {time.perf_counter() - start:.2f} s, loss {history['loss'][-1]:.6f}")


if __name__ == "__main__":
    main()
