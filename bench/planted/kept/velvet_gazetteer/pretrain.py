import os
import time
from pathlib import Path

import torch
import torch.nn as nn
import torch.nn.functional as F
import yaml

from corpus import MaskedBatches, synthetic_corpus
from model import Encoder, LMHead

FIX = os.environ.get("PLANTED_FIX") == "1"


class MaskedLM(nn.Module):
    def __init__(self, vocab, length, **kwargs):
        super().__init__()
        self.encoder = Encoder(vocab, length, **kwargs)
        self.head = LMHead(kwargs["dim"], self.encoder.tokens.weight)

    def forward(self, ids, labels):
        hidden = self.encoder(ids)
        if FIX:
            hidden, labels = hidden[labels != -100], labels[labels != -100]
        logits = self.head(hidden)
        loss = F.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=-100)
        return loss


def make_optimizer(model, cfg):
    decay = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decay, "weight_decay": cfg["weight_decay"]}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=cfg["lr"], betas=(0.9, 0.98))
    warmup = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: min(1.0, (n + 1) / cfg["warmup"]))
    return optimizer, warmup


def main():
    cfg = yaml.safe_load((Path(__file__).parent / "config.yaml").read_text())
    steps = int(os.environ.get("PLANTED_STEPS", cfg["steps"]))
    torch.manual_seed(cfg["seed"])

    vocab = cfg["corpus"]["vocab"]
    stream = synthetic_corpus(**cfg["corpus"], seed=cfg["seed"])
    data = MaskedBatches(stream, **cfg["batch"], vocab=vocab, masking=cfg["masking"], seed=cfg["seed"])
    model = MaskedLM(vocab, cfg["batch"]["length"], **cfg["model"])
    optimizer, scheduler = make_optimizer(model, cfg["optim"])
    print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.2f}M parameters, {len(data.rows)} rows")

    start = time.time()
    for step, (ids, labels) in enumerate(data, 1):
        loss = model(ids, labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), cfg["optim"]["clip"])
        optimizer.step()
        scheduler.step()
        if step % cfg["print_every"] == 0:
            print(f"step {step:4d}  loss {loss.item():.4f}  ppl {loss.exp().item():.0f}")
        if step >= steps:
            break
    print(f"{step} steps in {time.time() - start:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
