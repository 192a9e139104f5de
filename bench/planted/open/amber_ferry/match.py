import json
import os
import time
from pathlib import Path

import torch

from perfumes import House, rounds, smudge
from towers import Ferry, both_ways

HERE = Path(__file__).parent


def build(cfg):
    house = House(cfg["perfumes"], cfg["notes"], cfg["scan"], seed=1921)
    train, held = house.split(cfg["held_out"])
    ferry = Ferry(cfg)
    optimizer = torch.optim.AdamW(ferry.parameters(), cfg["lr"], weight_decay=0.05, foreach=True)
    return train, held, ferry, optimizer


@torch.no_grad()
def found_first(ferry, held):
    ferry.eval()
    logits = ferry(*held)
    ferry.train()
    return (logits.argmax(1) == torch.arange(len(logits))).float().mean().item()


def keep(path, step, ferry, optimizer):
    path.parent.mkdir(exist_ok=True)
    torch.save({"step": step, "ferry": ferry.state_dict(), "optimizer": optimizer.state_dict()}, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


def one_step(ferry, optimizer, batch, clip):
    loss = both_ways(ferry(*smudge(*batch)))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(ferry.parameters(), clip)
    optimizer.step()
    return loss.detach()


def main():
    torch.manual_seed(1921)
    torch.set_num_threads(1)
    cfg = json.loads((HERE / "house.json").read_text())
    steps = int(os.environ.get("PLANTED_STEPS", 450))
    train, held, ferry, optimizer = build(cfg)
    batches = rounds(train, cfg["batch"], torch.Generator().manual_seed(5))
    warm = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, total_iters=cfg["warm"])
    lately, began = [], time.perf_counter()
    for step in range(1, steps + 1):
        epoch, *batch = next(batches)
        loss = one_step(ferry, optimizer, batch, cfg["clip"])
        warm.step()
        lately.append(loss)
        if step % cfg["log_every"] == 0:
            print(f"epoch {epoch} step {step} loss {torch.stack(lately).mean().item():.4f}", flush=True)
            lately.clear()
        if step % cfg["eval_every"] == 0:
            print(f"  found first: {found_first(ferry, held):.3f}", flush=True)
        if step % cfg["keep_every"] == 0:
            keep(HERE / "checkpoints" / "ferry.pt", step, ferry, optimizer)
    print(f"{steps} steps in {time.perf_counter() - began:.3f} s, loss {loss.item():.5f}")


if __name__ == "__main__":
    main()
