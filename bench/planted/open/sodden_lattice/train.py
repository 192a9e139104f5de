import os
import time

import numpy as np
import torch
import torch.nn.functional as F
import yaml
from torch.utils.data import DataLoader

from model import MoleculeNet
from molecules import Collator, make_set


@torch.no_grad()
def evaluate(model, loader, mean, std):
    model.eval()
    err, n = 0.0, 0
    for atoms, bonds, mask, y in loader:
        pred = model(atoms, bonds, mask) * std + mean
        err += (pred - y).abs().sum().item()
        n += len(y)
    model.train()
    return err / n


def main():
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "config.yaml")) as f:
        cfg = yaml.safe_load(f)
    tr = cfg["train"]
    max_steps = int(os.environ.get("PLANTED_STEPS", tr["max_steps"]))
    torch.manual_seed(cfg["seed"])
    rng = np.random.default_rng(cfg["seed"])
    train_set = make_set(cfg["data"]["n_molecules"], cfg["data"], rng)
    valid_set = make_set(cfg["data"]["n_valid"], cfg["data"], rng)
    max_atoms = max(len(e) for e, _, _ in train_set + valid_set)
    collate = Collator(max_atoms)
    print(f"{len(train_set)} molecules, mean {np.mean([len(m[0]) for m in train_set]):.1f} atoms, largest {max_atoms}")
    y = torch.tensor([m[2] for m in train_set])
    mean, std = y.mean().item(), y.std().item()

    loader = DataLoader(train_set, batch_size=tr["batch_size"], shuffle=True, drop_last=True, collate_fn=collate)
    valid_loader = DataLoader(valid_set, batch_size=tr["batch_size"], collate_fn=collate)
    model = MoleculeNet(cfg["data"]["n_elements"], cfg["data"]["n_bond_types"], **cfg["model"])
    opt = torch.optim.AdamW(model.parameters(), lr=tr["lr"])

    step = 0
    start = time.perf_counter()
    while step < max_steps:
        for atoms, bonds, mask, y in loader:
            loss = F.smooth_l1_loss(model(atoms, bonds, mask), (y - mean) / std)
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            step += 1
            if step % tr["log_every"] == 0:
                print(f"step {step} loss {loss.item():.4f}")
            if step % tr["valid_every"] == 0:
                print(f"step {step} valid MAE {evaluate(model, valid_loader, mean, std):.4f}")
            if step >= max_steps:
                break
    print(f"{step} steps in {time.perf_counter() - start:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
