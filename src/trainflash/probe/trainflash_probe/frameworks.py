"""Small adapters for trainers that hide the loop: Hugging Face's and Lightning's."""

from __future__ import annotations

from . import imports
from .checkpoints import saver_method
from .logs import logged
from .spans import bracket


def install() -> None:
    """Register the adapters; each runs when the program imports its framework."""
    imports.after("transformers.trainer", _hugging_face)
    for package in ("lightning.pytorch", "pytorch_lightning"):
        imports.after(f"{package}.loops.evaluation_loop", lambda module: bracket(module._EvaluationLoop, "run", "Eval"))
        imports.after(f"{package}.trainer.trainer", lambda module: saver_method(module.Trainer, "save_checkpoint"))
        imports.after(f"{package}.core.module", lambda module: _log_method(module.LightningModule, "log"))


def _hugging_face(module) -> None:
    trainer = module.Trainer
    bracket(trainer, "get_batch_samples", "Data")
    bracket(trainer, "compute_loss", "Fwd")
    bracket(trainer, "evaluate", "Eval")
    bracket(trainer, "predict", "Eval")
    saver_method(trainer, "_save_checkpoint")
    saver_method(trainer, "save_model")
    _log_method(trainer, "log")


def _log_method(owner: object, name: str) -> None:
    original = getattr(owner, name, None)
    if original is not None:
        setattr(owner, name, logged(original, "framework"))
