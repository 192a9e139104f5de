"""Train the song classifier: `python train.py --batch-size 16`."""

import logging
import os
import tempfile
import time
from collections import Counter
from pathlib import Path

import torch
from config import Config, from_command_line
from dataset import Crops
from model import SongNet
from recordings import synthesise
from torch import nn
from torch.utils.data import DataLoader

log = logging.getLogger("warblers")
STEPS = int(os.environ.get("PLANTED_STEPS", "220"))


class Trainer:
    def __init__(self, config: Config, folder: Path) -> None:
        self.config = config
        torch.manual_seed(config.seed)
        listing = synthesise(folder, config.recordings, config.classes, config.rate, config.seconds, config.seed)
        self.batches = DataLoader(Crops(listing, config, STEPS * config.batch_size, True), config.batch_size)
        self.holdout = DataLoader(Crops(listing, config, 32, False), 32)
        self.model = SongNet(config.classes, config.width)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), config.lr, weight_decay=config.weight_decay)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, config.lr, total_steps=STEPS + 1)
        self.criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
        self.step, self.mean, self.seen = 0, 0.0, Counter()

    def fit(self) -> float:
        self.model.train()
        for spectrograms, species in self.batches:
            loss = self.update(spectrograms, species)
            self.seen.update(species.tolist())
            self.mean = loss if self.step == 1 else 0.95 * self.mean + 0.05 * loss
            if self.step % self.config.log_every == 0:
                log.info("step %d loss %.4f lr %.2e", self.step, self.mean, self.schedule.get_last_lr()[0])
            if self.step % self.config.eval_every == 0:
                log.info("hold-out accuracy %.3f, rarest %s", self.evaluate(), self.seen.most_common()[-1])
        return self.mean

    def update(self, spectrograms: torch.Tensor, species: torch.Tensor) -> float:
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.criterion(self.model(spectrograms), species)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
        self.optimizer.step()
        self.schedule.step()
        self.step += 1
        return loss.item()

    @torch.no_grad()
    def evaluate(self) -> float:
        self.model.eval()
        right = total = 0
        for spectrograms, species in self.holdout:
            right += int((self.model(spectrograms).argmax(1) == species).sum())
            total += len(species)
        self.model.train()
        return right / total


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(from_command_line(), Path(folder))
        began = time.perf_counter()
        loss = trainer.fit()
        print(f"{trainer.step} steps in {time.perf_counter() - began:.2f}s, loss {loss:.6f}")


if __name__ == "__main__":
    main()
