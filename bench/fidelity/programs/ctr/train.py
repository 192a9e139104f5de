"""Click prediction from a stream, with averaged weights that are evaluated, and a checkpoint after each epoch."""
import json
import os
import sys
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from model import Average, Ranker
from stream import CONTEXTS, ITEMS, USERS, Clicks, collate, write_log
from torch.utils.data import DataLoader


@dataclass
class Config:
    epochs: int = 5
    batch: int = 96
    lr: float = 4e-3
    decay: float = 0.97
    smoothing: float = 0.08
    weight_decay: float = 0.02
    clip: float = 1.0
    log_every: int = 5
    workers: int = 2
    save_every: int = 1


def smooth(labels, amount):
    return labels * (1 - amount) + 0.5 * amount


def auc(scores, labels):
    order = scores.argsort()
    ranks = torch.empty(len(scores), dtype=torch.double)
    ranks[order] = torch.arange(1, len(scores) + 1, dtype=torch.double)
    positives = labels.sum().double()
    return ((ranks[labels > 0].sum() - positives * (positives + 1) / 2) / (positives * (len(labels) - positives))).item()


def evaluate(model, loader):
    scores, labels, loss = [], [], 0.0
    model.eval()
    with torch.no_grad():
        for features, label in loader:
            logits = model(features)
            loss += F.binary_cross_entropy_with_logits(logits, label, reduction="sum").item()
            scores.append(logits)
            labels.append(label)
    labels = torch.cat(labels)
    return loss / len(labels), auc(torch.cat(scores), labels)


def train(config, resume=None):
    torch.manual_seed(3)
    stream = Clicks(write_log(680, seed=8), seed=21)
    held_out = list(Clicks(write_log(150, seed=9), seed=22))
    loader = DataLoader(stream, batch_size=config.batch, collate_fn=collate, num_workers=config.workers)
    eval_loader = DataLoader(held_out, batch_size=50, collate_fn=collate)
    model = Ranker(USERS + ITEMS + CONTEXTS)
    average = Average(model, config.decay)
    optimizer = torch.optim.AdamW(
        [
            {"params": model.table.parameters(), "weight_decay": 0.0},
            {"params": model.tower.parameters(), "weight_decay": config.weight_decay},
        ],
        lr=config.lr,
    )
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
    step, first = 0, 0
    if resume:
        saved = torch.load(resume, weights_only=False)
        model.load_state_dict(saved["model"])
        average.model.load_state_dict(saved["average"])
        optimizer.load_state_dict(saved["optimizer"])
        scheduler.load_state_dict(saved["scheduler"])
        torch.set_rng_state(saved["rng"])
        step, first = saved["step"], saved["epoch"]

    os.makedirs("ckpt", exist_ok=True)
    for epoch in range(first, config.epochs):
        stream.epoch = epoch
        model.train()
        for features, labels in loader:
            logits = model(features)
            loss = F.binary_cross_entropy_with_logits(logits, smooth(labels, config.smoothing))
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
            optimizer.step()
            average.update(model)
            step += 1
            if step % config.log_every == 0:
                print(json.dumps({"step": step, "loss": round(loss.item(), 6)}), flush=True)
        scheduler.step()
        loss, area = evaluate(average.model, eval_loader)
        print(json.dumps({"epoch": epoch, "held_out": round(loss, 6), "auc": round(area, 5)}), flush=True)
        if (epoch + 1) % config.save_every == 0:
            state = {
                "model": model.state_dict(),
                "average": average.model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scheduler": scheduler.state_dict(),
                "rng": torch.get_rng_state(),
                "step": step,
                "epoch": epoch + 1,
            }
            torch.save(state, f"ckpt/epoch_{epoch + 1}.pt")


if __name__ == "__main__":
    train(Config(), sys.argv[2] if sys.argv[1:2] == ["--resume"] else None)
