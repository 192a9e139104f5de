"""Map the cover of tundra from drone images."""

import argparse
import logging
import os
import time
from collections.abc import Callable

import torch
from diary import Diary
from model import CoverNet
from scores import CoverTable, PixelAccuracy, ScoreBoard
from torch import nn

log = logging.getLogger("tundra")
COVERS = ("moss", "lichen", "shrub", "sedge", "water", "rock", "snow")


class Drone:
    """Images with patches of cover; a few pixels are void."""

    def __init__(self, count: int, size: int, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        coarse = torch.rand(count, len(COVERS), size // 16, size // 16, generator=generator)
        cover = nn.functional.interpolate(coarse, size=(size, size), mode="bilinear").argmax(1)
        colours = torch.randn(len(COVERS), 4, generator=torch.Generator().manual_seed(0))
        self.images = colours[cover].permute(0, 3, 1, 2) + 0.8 * torch.randn(count, 4, size, size, generator=generator)
        self.covers = torch.where(torch.rand(cover.shape, generator=generator) < 0.02, 255, cover)
        self.generator = generator

    def batches(self, size: int):
        while True:
            for rows in torch.randperm(len(self.covers), generator=self.generator).split(size):
                yield self.images[rows], self.covers[rows]


class Loop:
    """A loop with hooks: `loop.after_step.append(function)`."""

    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.data = Drone(options.images, options.size, options.seed)
        self.model = CoverNet(4, options.width, len(COVERS))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=options.lr, momentum=0.9, weight_decay=1e-4)
        self.options, self.step, self.loss = options, 0, 0.0
        self.after_step: list[Callable[["Loop", torch.Tensor, torch.Tensor], None]] = []

    def run(self) -> None:
        for images, covers in self.data.batches(self.options.batch_size):
            self.optimizer.zero_grad()
            scores = self.model(images)
            loss = nn.functional.cross_entropy(scores, covers, ignore_index=255)
            loss.backward()
            self.optimizer.step()
            self.step, self.loss = self.step + 1, loss.item()
            for hook in self.after_step:
                hook(self, scores.detach(), covers)
            if self.step == self.options.steps:
                break


class Watch:
    """Keeps the scores and writes the diary."""

    def __init__(self, every: int) -> None:
        self.board, self.diary, self.every = ScoreBoard(PixelAccuracy(), CoverTable(len(COVERS))), Diary(), every

    def __call__(self, loop: Loop, scores: torch.Tensor, covers: torch.Tensor) -> None:
        self.board.add(scores, covers)
        self.diary.step(loop.step, loop.model, loss=loop.loss, **self.board.values())
        if loop.step % self.every == 0:
            log.info("step %d loss %.4f %s", loop.step, loop.loss, {name: round(v, 3) for name, v in self.board.values().items()})
            self.board.reset()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=96)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=28)
    parser.add_argument("--steps", type=int, default=int(os.environ.get("PLANTED_STEPS", "240")))
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    loop, watch = Loop(options), Watch(every=10)
    loop.after_step.append(watch)
    began = time.perf_counter()
    loop.run()
    seconds = time.perf_counter() - began
    watch.diary.close()
    print(f"{loop.step} steps in {seconds:.2f}s, loss {loop.loss:.6f}")


if __name__ == "__main__":
    main()
