"""Forecast the load of the next day."""

import argparse
import json
import os
import tempfile
from pathlib import Path

import torch
from mixer import PatchMixer
from series import Windows
from sinks import make_sinks
from trainer import Trainer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, default=Path(__file__).with_name("config.json"))
    config = json.loads(parser.parse_args().config.read_text())
    steps = int(os.environ.get("PLANTED_STEPS", config["steps"]))
    torch.manual_seed(config["seed"])
    windows = Windows(**config["series"], seed=config["seed"])
    model = PatchMixer(windows.past, windows.future, **config["model"])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        trainer = Trainer(model, windows, make_sinks(config["sinks"], folder), folder, **config["optimizer"])
        trainer.fit(steps, config["batch_size"], config["check_every"])
    print(f"{steps} steps in {trainer.seconds:.2f}s, loss {trainer.figures['loss']:.6f}")


if __name__ == "__main__":
    main()
