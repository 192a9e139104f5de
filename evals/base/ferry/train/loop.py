"""The loop: batches, updates, and hooks at fixed moments."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.utils.data import DataLoader

from ferry.data.batches import Batch
from ferry.optim.losses import Criterion, Losses
from ferry.train.hooks.base import Hook
from ferry.train.state import TrainState


class Loop:
    def __init__(self, state: TrainState, loader: DataLoader, criterion: Criterion, hooks: Sequence[Hook]) -> None:
        self.state = state
        self.loader = loader
        self.criterion = criterion
        self.hooks = hooks

    def run(self) -> None:
        state = self.state
        self._call("before_training")
        for epoch in range(state.epoch, state.config.train.epochs):
            state.epoch = epoch
            state.data.sampler.set_epoch(epoch)
            self.loader.dataset.set_epoch(epoch)
            self._call("before_epoch")
            self._epoch()
            self._call("after_epoch")
            if state.stop:
                break
        self._call("after_training")

    def _epoch(self) -> None:
        state = self.state
        accumulate = state.config.optim.accumulate
        state.model.train()
        for position, batch in enumerate(self.loader):
            self._forward_backward(batch, accumulate)
            state.samples += len(batch)
            if (position + 1) % accumulate == 0:
                self._update()
                self._call("after_step")
            if state.stop:
                return

    def _forward_backward(self, batch: Batch, accumulate: int) -> None:
        prediction = self.state.model(batch.tokens, batch.mask)
        losses = self.criterion(prediction, batch)
        (losses.total / accumulate).backward()
        self.state.losses = Losses(losses.total.detach(), losses.queue.detach(), losses.urgency.detach())
        self.state.recent.append(losses.total.detach())

    def _update(self) -> None:
        state = self.state
        state.gradient_norm = torch.nn.utils.clip_grad_norm_(state.model.parameters(), state.config.optim.clip_norm)
        state.optimizer.step()
        state.scheduler.step()
        state.optimizer.zero_grad(set_to_none=True)
        state.step += 1

    def _call(self, moment: str) -> None:
        for hook in self.hooks:
            getattr(hook, moment)(self.state)
