"""Small adapters for libraries that hide the loop: by the function of theirs that runs, its phase.

Where a library puts its own call in the place of torch's (backward, the optimizer's step, the next batch), what it does around that is
part of the phase: the loop waits for all of it.

DeepSpeed's was never run: its hooks are written from its documented interface.
"""

from __future__ import annotations

import functools
import sys
from threading import get_ident

from .. import codes, imports, inside
from ..guard import swallow
from ..writer import emit
from .checkpoints import saver_method
from .logs import logged
from .loop import loop
from .spans import bracket, each_batch

# (module, class or "" for a function of the module, method, phase); what a library derives from such a class is seen with it.
_FUNCTIONS = (
    ("stable_baselines3.common.on_policy_algorithm", "OnPolicyAlgorithm", "collect_rollouts", "Data"),
    ("stable_baselines3.common.off_policy_algorithm", "OffPolicyAlgorithm", "collect_rollouts", "Data"),
    ("stable_baselines3.common.buffers", "ReplayBuffer", "sample", "Data"),
    ("stable_baselines3.common.evaluation", "", "evaluate_policy", "Eval"),
    ("torchrl.data.replay_buffers.replay_buffers", "ReplayBuffer", "sample", "Data"),
    ("torchrl.envs.common", "EnvBase", "rollout", "Data"),
    ("tianshou.data.collector", "BaseCollector", "collect", "Data"),
    ("fastai.learner", "Learner", "_do_epoch_validate", "Eval"),
    ("composer.trainer.trainer", "Trainer", "_eval_loop", "Eval"),
    ("speechbrain.core", "Brain", "_fit_valid", "Eval"),
    ("pytorch_tabnet.abstract_model", "TabModel", "_predict_epoch", "Eval"),
    ("pytorch_metric_learning.testers.base_tester", "BaseTester", "test", "Eval"),
)
_METRICS = (("torchmetrics.metric", "Metric"), ("torchmetrics.collections", "MetricCollection"))


def install() -> None:
    """Register the adapters; each runs when the program imports its framework."""
    for name, owner, method, phase in _FUNCTIONS:
        imports.after(name, functools.partial(_bracketed, owner, method, phase))
    for name, owner in _METRICS:
        imports.after(name, functools.partial(_measured, owner))
    imports.after("transformers.trainer", _hugging_face)
    imports.after("accelerate.data_loader", _accelerate)
    imports.after("accelerate.accelerator", lambda module: bracket(module.Accelerator, "backward", "Bwd"))
    imports.after("accelerate.optimizer", lambda module: bracket(module.AcceleratedOptimizer, "step", "Opt"))
    imports.after("deepspeed.runtime.engine", _deepspeed)
    for package in ("lightning.fabric", "lightning_fabric"):
        imports.after(f"{package}.fabric", lambda module: bracket(module.Fabric, "backward", "Bwd"))
        imports.after(f"{package}.wrappers", _fabric)
    for package in ("lightning.pytorch", "pytorch_lightning"):
        imports.after(f"{package}.loops.evaluation_loop", lambda module: bracket(module._EvaluationLoop, "run", "Eval"))
        imports.after(f"{package}.trainer.trainer", lambda module: saver_method(module.Trainer, "save_checkpoint"))
        imports.after(f"{package}.core.module", lambda module: _log_method(module.LightningModule, "log"))
        imports.after(f"{package}.strategies.strategy", lambda module: bracket(module.Strategy, "training_step", "Fwd"))


def _bracketed(owner: str, method: str, phase: str, module) -> None:
    bracket(getattr(module, owner, None) if owner else module, method, phase)


def _measured(owner: str, module) -> None:
    """A metric inside a trainer's step, or inside the network that it is a part of, is no forward."""
    in_dynamo = sys.modules["torch"].compiler.is_dynamo_compiling

    def enter() -> bool:
        if in_dynamo() or not loop.started or loop.tid != get_ident():
            return False
        emit(codes.OTHER)
        return True

    inside.hook(getattr(module, owner).forward, enter, lambda entered: emit(codes.OTHER_END))


def _hugging_face(module) -> None:
    trainer = module.Trainer
    bracket(trainer, "get_batch_samples", "Data")
    bracket(trainer, "compute_loss", "Fwd")
    bracket(trainer, "evaluate", "Eval")
    bracket(trainer, "predict", "Eval")
    saver_method(trainer, "_save_checkpoint")
    saver_method(trainer, "save_model")
    _log_method(trainer, "log")


def _accelerate(module) -> None:
    """Its loaders fetch one batch ahead, and move batches, in a generator around the DataLoader's own."""
    for name in ("DataLoaderShard", "DataLoaderDispatcher"):
        if hasattr(module, name):
            each_batch(getattr(module, name))


def _fabric(module) -> None:
    bracket(module._FabricOptimizer, "step", "Opt")
    each_batch(module._FabricDataLoader)


def _deepspeed(module) -> None:
    """`engine(batch)` is a root module's forward. `engine.backward` also reduces gradients; `engine.step` may update piece by piece."""
    engine = module.DeepSpeedEngine
    bracket(engine, "backward", "Bwd")
    engine.step = _engine_step(engine.step)
    saver_method(engine, "save_checkpoint")


def _engine_step(original):
    @functools.wraps(original)
    def step(self, *args, **kwargs):
        if loop.tid != get_ident():
            return original(self, *args, **kwargs)
        completes = self.is_gradient_accumulation_boundary()
        loop.in_opt += 1
        emit(codes.OPT)
        try:
            return original(self, *args, **kwargs)
        finally:
            loop.in_opt -= 1
            emit(codes.OPT_END)
            try:
                if completes and loop.clock.updated(self):
                    loop.mark_update()
            except Exception as error:
                swallow("deepspeed", error)

    return step


def _log_method(owner: object, name: str) -> None:
    original = getattr(owner, name, None)
    if original is not None:
        setattr(owner, name, logged(original, "framework"))
