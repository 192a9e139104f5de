import json
import os
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader

from recs import build

STEPS = int(os.environ.get("PLANTED_STEPS", "450"))


def forever(loader):
    while True:
        yield from loader


def main():
    cfg = json.loads((Path(__file__).parent / "settings.json").read_text())
    torch.manual_seed(cfg["seed"])
    data = build("data", cfg["data"], seed=cfg["seed"])
    data.negatives = build("negatives", cfg["negatives"], counts=data.counts, seed=cfg["seed"] + 1)
    model = build("model", cfg["model"], users=cfg["data"]["users"], items=cfg["data"]["items"])
    criterion = build("loss", cfg["loss"])
    opts = [torch.optim.SparseAdam(model.tables(), lr=cfg["lr"]), torch.optim.Adam(model.dense(), lr=cfg["lr"])]
    loader = DataLoader(data, cfg["batch_size"], shuffle=True, drop_last=True, generator=torch.Generator().manual_seed(cfg["seed"]))

    hits, seen, last = 0, 0, 0.0
    began = time.perf_counter()
    for step, batch in zip(range(1, STEPS + 1), forever(loader)):
        scores = model(batch)
        loss = criterion(scores)
        for o in opts:
            o.zero_grad()
        loss.backward()
        for o in opts:
            o.step()
        last = loss.item()
        hits += int((scores.argmax(1) == 0).sum())
        seen += len(scores)
        if step % cfg["log_every"] == 0:
            print(f"step {step} loss {last:.4f} hit@1 {hits / seen:.3f}", flush=True)
            hits = seen = 0
    print(f"{STEPS} steps in {time.perf_counter() - began:.2f} s, loss {last:.6f}")


if __name__ == "__main__":
    main()
