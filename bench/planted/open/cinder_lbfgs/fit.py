"""Fit the surface of a cinder cone with L-BFGS, and keep what was tried."""

import argparse
import json
import logging
import os
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch
from surface import Surface, roughness
from terrain import survey

log = logging.getLogger("cinder")


@dataclass
class History:
    """All values of the loss that the line search saw."""

    path: Path
    values: list[list[float]] = field(default_factory=lambda: [[]])

    def note(self, loss: float) -> None:
        self.values[-1].append(loss)

    def close_step(self) -> int:
        count = len(self.values[-1])
        self.values.append([])
        self.path.write_text(json.dumps(self.values[-20:]))
        return count


class Fitter:
    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        torch.manual_seed(options.seed)
        self.options, self.folder = options, folder
        self.points, self.heights = survey(options.points, options.seed)
        self.check_points, self.check_heights = survey(400, options.seed + 1)
        self.surface = Surface(options.width, options.depth)
        self.optimizer = torch.optim.LBFGS(
            self.surface.parameters(), lr=1.0, max_iter=options.inner, history_size=20, line_search_fn="strong_wolfe"
        )
        self.history = History(folder / "history.json")
        self.step, self.loss = 0, 0.0

    def closure(self) -> torch.Tensor:
        self.optimizer.zero_grad()
        misfit = (self.surface(self.points) - self.heights).square().mean()
        loss = misfit + self.options.smooth * roughness(self.surface, self.points[:256])
        loss.backward()
        self.history.note(loss.item())
        return loss

    def run(self) -> None:
        while self.step < self.options.steps:
            self.loss = float(self.optimizer.step(self.closure))
            self.step += 1
            tries = self.history.close_step()
            log.info("step %d: loss %.3e after %d evaluations", self.step, self.loss, tries)
            if self.step % 10 == 0:
                with torch.no_grad():
                    error = (self.surface(self.check_points) - self.check_heights).abs().mean()
                log.info("mean error at the check points %.4f", error)
            if self.step % 20 == 0:
                torch.save({"surface": self.surface.state_dict(), "step": self.step}, self.folder / "surface.pt")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=1500)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--inner", type=int, default=8)
    parser.add_argument("--smooth", type=float, default=1e-5)
    parser.add_argument("--seed", type=int, default=50)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "180")))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    with tempfile.TemporaryDirectory() as folder:
        fitter = Fitter(options, Path(folder))
        began = time.perf_counter()
        fitter.run()
        print(f"{fitter.step} steps in {time.perf_counter() - began:.2f}s, loss {fitter.loss:.6f}")


if __name__ == "__main__":
    main()
