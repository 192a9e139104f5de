"""The training of the denoiser."""

import copy
import logging
import tempfile
import time
from pathlib import Path

import torch

from glaze.config import Config
from glaze.diffusion import Denoiser, Schedule
from glaze.panel import Panel
from glaze.tiles import tiles

log = logging.getLogger("glaze")


class Engine:
    def __init__(self, config: Config) -> None:
        torch.manual_seed(config.seed)
        self.config = config
        self.tiles = tiles(config.tiles, config.size, config.seed)
        self.schedule = Schedule(config.noise_levels)
        self.model = Denoiser(config.width)
        self.average = copy.deepcopy(self.model).requires_grad_(False)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config.lr)
        self.folder = tempfile.TemporaryDirectory()
        self.panel = Panel(Path(self.folder.name), config.figure_every, config.figure_dpi)
        self.step = 0

    def draw(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        chosen = self.tiles[torch.randint(len(self.tiles), (self.config.batch_size,))]
        flipped = torch.where(torch.rand(len(chosen), 1, 1, 1) < 0.5, chosen, chosen.flip(-1))
        return flipped, torch.randint(self.schedule.levels, (len(chosen),)), torch.randn_like(chosen)

    def update(self) -> float:
        clean, levels, noise = self.draw()
        noised = self.schedule.noised(clean, levels, noise)
        guess = self.model(noised, levels)
        loss = torch.nn.functional.mse_loss(guess, noise)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()), list(self.model.parameters()), 1 - self.config.decay)
        self.panel.add(self.step, loss.item(), noised, self.schedule.restored(noised, levels, guess.detach()))
        return loss.item()

    def run(self) -> tuple[float, float]:
        began, loss = time.perf_counter(), 0.0
        while self.step < self.config.steps:
            loss = self.update()
            if self.step % 5 == 0:
                log.info("step %d/%d loss %.4f", self.step, self.config.steps, loss)
            if self.step % 100 == 0:
                torch.save({"model": self.model.state_dict(), "average": self.average.state_dict()}, Path(self.folder.name) / "last.pt")
        return time.perf_counter() - began, loss
