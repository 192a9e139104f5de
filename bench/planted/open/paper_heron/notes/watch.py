"""What we keep an eye on during a run."""

import logging
import os

import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

FIXED = os.environ.get("PLANTED_FIX") == "1"
log = logging.getLogger(__name__)


def gradients(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}


class GradientWatch(TrainerCallback):
    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, model: torch.nn.Module, **_
    ) -> None:
        if FIXED:
            log.debug("step %d: %s", state.global_step, gradients(model))
        else:
            log.debug(f"step {state.global_step}: {gradients(model)}")


class LossWatch(TrainerCallback):
    def on_log(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, logs: dict, **_) -> None:
        if "loss" in logs:
            log.info("step %d loss %.4f", state.global_step, float(logs["loss"]))
