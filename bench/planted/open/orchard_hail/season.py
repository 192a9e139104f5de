"""Train the hail alarm of an orchard on the storms of a season."""

import os
import tempfile
from pathlib import Path

import torch
from alarm import Alarm, Fit
from feeds import Feed
from radar import Season

STEPS = int(os.environ.get("PLANTED_STEPS", "480"))


def main() -> None:
    torch.manual_seed(61)
    feed = Feed()
    loader, valid = feed.train(Season()), Feed(workers=0).valid(Season(storms=6, seed=9061))
    with tempfile.TemporaryDirectory() as folder:
        fit = Fit(Alarm(width=32), lr=1e-3, folder=Path(folder))
        seconds = fit.rounds(loader, valid, STEPS, check_every=10)
    print(f"{fit.steps} steps in {seconds:.2f}s, loss {fit.loss:.6f}")


if __name__ == "__main__":
    main()
