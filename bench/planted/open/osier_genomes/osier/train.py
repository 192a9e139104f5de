"""python -m osier.train: masked letters of genomes."""

import argparse
import math
import time

import torch
import torch.nn.functional as F
from torch.utils.data import DataLoader

from osier.genomes import Windows
from osier.model import GenomeModel
from osier.settings import read


def rate(step: int, steps: int) -> float:
    return min(1.0, step / 50) * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * min(step / steps, 1.0))))


def masked_loss(logits, truth, hidden):
    return F.cross_entropy(logits[hidden], truth[hidden])


def keep(model, step, folder="."):
    torch.save({"step": step, "model": model.state_dict()}, f"{folder}/osier_last.pt")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--settings", default="osier.yaml")
    settings = read(parser.parse_args().settings)
    torch.manual_seed(settings.seed)
    loader = DataLoader(Windows(settings), batch_size=settings.batch)
    model = GenomeModel(settings)
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.lr)
    value, smooth, began = float("nan"), None, time.time()
    for step, (letters, truth, hidden) in enumerate(loader, 1):
        for group in optimizer.param_groups:
            group["lr"] = settings.lr * rate(step, 5000)
        loss = masked_loss(model(letters), truth, hidden)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        value = loss.item()
        smooth = value if smooth is None else 0.98 * smooth + 0.02 * value
        if step % settings.report == 0:
            print(f"step {step} loss {value:.4f} smooth {smooth:.4f}", flush=True)
        if step % settings.keep_every == 0:
            keep(model, step)
        if step >= settings.steps:
            break
    print(f"{step} steps in {time.time() - began:.3f}s, loss {value:.6f}")


if __name__ == "__main__":
    main()
