"""Graph regression with a GIN on molecule-like graphs."""
import json
import os
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from gin import GIN
from molecules import N_ATOMS, collate, draw_many

HERE = Path(__file__).resolve().parent
STEPS = int(os.environ.get("PLANTED_STEPS", 550))


def endless(loader):
    while True:
        yield from loader


def fit(model, loader, cfg):
    opt = torch.optim.Adam(model.parameters(), lr=cfg["optim"]["lr"])
    history = []
    for step, (atoms, edges, owner, target) in enumerate(endless(loader), 1):
        pred = model(atoms, edges, owner, len(target))
        loss = F.mse_loss(pred, target)
        opt.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), cfg["optim"]["clip"])
        opt.step()
        history.append({"step": step, "loss": loss.item(), "grad_norm": norm.item()})
        if step % cfg["log_every"] == 0:
            last = history[-cfg["log_every"]:]
            print(f"step {step:4d}  mse {sum(r['loss'] for r in last) / len(last):.4f}  |g| {norm.item():.2f}")
        if step >= STEPS:
            return history


@torch.no_grad()
def mean_error(model, loader):
    model.eval()
    wrong = [(model(a, e, o, len(t)) - t).abs() for a, e, o, t in loader]
    return torch.cat(wrong).mean().item()


def main():
    cfg = json.loads((HERE / "config.json").read_text())
    torch.manual_seed(cfg["seed"])
    d = cfg["data"]
    train_set = draw_many(d["train_graphs"], d["min_nodes"], d["max_nodes"], seed=1)
    test_set = draw_many(d["test_graphs"], d["min_nodes"], d["max_nodes"], seed=2)
    loader = DataLoader(train_set, batch_size=cfg["optim"]["batch_size"], shuffle=True, drop_last=True,
                        collate_fn=collate, num_workers=0)
    model = GIN(N_ATOMS, **cfg["model"])
    start = time.time()
    history = fit(model, loader, cfg)
    took = time.time() - start
    print(f"test MAE {mean_error(model, DataLoader(test_set, batch_size=100, collate_fn=collate)):.3f}")
    print(f"{len(history)} steps in {took:.2f} s, loss {history[-1]['loss']:.6f}")


if __name__ == "__main__":
    main()
