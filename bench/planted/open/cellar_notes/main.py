"""Train the sommelier: python main.py [cellar.json]"""

import os
import sys
import tempfile
import time
from pathlib import Path

import torch
from hooks import Best, Journal, Last
from settings import load
from tasting import Notes, Sommelier
from trainer import Trainer


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("cellar.json")
    settings = load(path)
    torch.manual_seed(settings.seed)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / settings.keep.directory
        folder.mkdir()
        hooks = [
            Journal(folder / "journal.jsonl", settings.run.log_every),
            Last(folder, settings.keep),
            Best(folder / "best.pt"),
        ]
        trainer = Trainer(Sommelier(settings.data, settings.model), Notes(settings.data, settings.seed), settings, hooks)
        began = time.perf_counter()
        trainer.run(int(os.environ.get("PLANTED_STEPS", settings.run.steps)))
        print(f"{trainer.step} steps in {time.perf_counter() - began:.2f}s, loss {trainer.loss:.6f}")


if __name__ == "__main__":
    main()
