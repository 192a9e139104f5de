"""A run from configuration to final checkpoint."""

from __future__ import annotations

import random
from pathlib import Path

import torch

from ferry.config import Config
from ferry.data.module import DataModule
from ferry.io.checkpoints import CheckpointStore, load_checkpoint
from ferry.metrics import MetricCollection
from ferry.models import build_model
from ferry.models.build import parameter_count
from ferry.optim.averaging import WeightAverage
from ferry.optim.build import build_optimizer
from ferry.optim.losses import Criterion
from ferry.registry import HOOKS, SCHEDULES
from ferry.train import hooks as _hooks  # noqa: F401  registers them
from ferry.train.evaluation import evaluate
from ferry.train.loop import Loop
from ferry.train.ranks import Ranks
from ferry.train.state import TrainState


class Session:
    def __init__(self, config: Config, out: Path) -> None:
        self.config = config
        self.out = out
        torch.set_num_threads(config.train.threads)
        self.seed(config.train.seed)
        self.ranks = Ranks()
        self.data = DataModule(config.data, config.train.seed, self.ranks.rank, self.ranks.size)
        self.criterion = Criterion(config.optim)
        self.model = build_model(config.model, len(self.data.vocabulary), config.data.max_length)

    @staticmethod
    def seed(seed: int) -> None:
        random.seed(seed)
        torch.manual_seed(seed)

    def train(self) -> TrainState:
        config = self.config
        self.out.mkdir(parents=True, exist_ok=True)
        loader = self.data.train_loader()
        total = config.train.epochs * (len(loader) // config.optim.accumulate)
        optimizer = build_optimizer(self.model, config.optim)
        factor = SCHEDULES.make(config.optim.schedule, total, config.optim.warmup_steps)
        state = TrainState(
            config=config,
            data=self.data,
            model=self.ranks.wrap(self.model),
            optimizer=optimizer,
            scheduler=torch.optim.lr_scheduler.LambdaLR(optimizer, factor),
            ranks=self.ranks,
            average=WeightAverage(self.model, config.optim.ema_decay) if "ema" in config.train.hooks else None,
            total_steps=total,
        )
        if self.ranks.first:
            print(f"ferry: {parameter_count(self.model):,} parameters, {len(self.data.vocabulary):,} words, {total} steps")
            self.data.vocabulary.save(self.out / "vocabulary.json")
        hooks = [HOOKS.make(name, self) for name in config.train.hooks]
        Loop(state, loader, self.criterion, hooks).run()
        self.ranks.close()
        return state

    def scores(self) -> dict[str, float]:
        metrics = MetricCollection(self.config.train.metrics, self.config.model.queues)
        return evaluate(self.model, self.data.valid_loader(), self.criterion, metrics)

    def evaluate(self, checkpoint: Path | None) -> dict[str, float]:
        path = checkpoint or CheckpointStore(self.out / "checkpoints", self.config.train.keep_checkpoints).latest()
        if path is None:
            raise FileNotFoundError(f"no checkpoint below {self.out}")
        self.model.load_state_dict(load_checkpoint(path)["model"])
        return self.scores()
