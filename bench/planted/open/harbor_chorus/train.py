"""Build everything from config.yaml, and run."""

import os
import sys
import tempfile
from pathlib import Path

import data
import model  # noqa: F401
import torch
import trainer
import yaml
from registry import build
from torch.utils.data import DataLoader
from transforms import Chain


def main() -> None:
    config = yaml.safe_load(Path(sys.argv[1] if len(sys.argv) > 1 else "config.yaml").read_text())
    steps = int(os.environ.get("PLANTED_STEPS", config["steps"]))
    torch.manual_seed(config["seed"])
    chain = Chain([build("transform", part) for part in config["transforms"]])
    plain = Chain([build("transform", {"name": "level"})])
    learn = build("data", config["data"], transform=chain)
    held_out = build("data", config["data"] | {"clips": 120, "seed": config["data"]["seed"] + 1}, transform=plain)
    net = build("model", config["model"], classes=len(data.SHIPS))
    order = torch.Generator().manual_seed(config["seed"])
    with tempfile.TemporaryDirectory() as folder:
        run = trainer.Trainer(
            net,
            torch.optim.AdamW(net.parameters(), **config["optimizer"]),
            DataLoader(learn, **config["loader"], shuffle=True, generator=order, drop_last=True),
            DataLoader(held_out, **config["loader"]),
            [build("hook", hook) for hook in config["hooks"]],
            steps,
            Path(folder),
        )
        run.run()
    print(f"{run.step} steps in {run.seconds:.2f}s, loss {run.loss.item():.6f}")


if __name__ == "__main__":
    main()
