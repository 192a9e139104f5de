import time
import os
from pathlib import Path

import torch
import torch.nn.functional as F

from network import TileNet
from settings import load_config
from tiles import EpochSampler, TileDataset, make_loader, write_archive

FIXED = os.environ.get("PLANTED_FIX") == "1"
STEPS = int(os.environ.get("PLANTED_STEPS", "560"))
CONFIG = "config.fixed.yaml" if FIXED else "config.yaml"


def build_optimizer(model, cfg):
    kinds = {"adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    return kinds[cfg.name](model.parameters(), lr=cfg.lr, weight_decay=cfg.weight_decay)


def run_epoch(model, loader, optimizer, state, cfg):
    for images, labels in loader:
        logits = model(images)
        loss = F.cross_entropy(logits, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        state["step"] += 1
        if state["step"] % cfg.run.log_every == 0:
            acc = (logits.argmax(1) == labels).float().mean().item()
            print(f"step {state['step']:4d}  loss {loss.item():.6f}  acc {acc:.3f}", flush=True)
        state["loss"] = loss.detach()
        if state["step"] >= STEPS:
            break


def main():
    began = time.perf_counter()
    cfg = load_config(Path(__file__).parent / CONFIG)
    torch.manual_seed(cfg.run.seed)
    archive = write_archive(cfg.data, cfg.run.seed)
    dataset = TileDataset(archive, cfg.data)
    sampler = EpochSampler(len(dataset), cfg.run.seed)
    loader = make_loader(dataset, sampler, cfg.loader)
    model = TileNet(cfg.data.bands, cfg.data.classes)
    optimizer = build_optimizer(model, cfg.optim)

    state = {"step": 0, "loss": None}
    epoch = 0
    while state["step"] < STEPS:
        sampler.set_epoch(epoch)
        run_epoch(model, loader, optimizer, state, cfg)
        epoch += 1
    print(f"{epoch} epochs")
    print(f"{state['step']} steps in {time.perf_counter() - began:.2f}s, loss {state['loss'].item():.6f}")


if __name__ == "__main__":
    main()
