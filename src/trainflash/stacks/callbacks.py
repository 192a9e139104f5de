"""What is called back inside forward, backward or step: hooks, metrics, trackers. Never the network's computing."""

from __future__ import annotations

from itertools import pairwise

from trainflash.stacks.frames import METRICS, Stack

TRACKERS = (
    *("wandb/", "mlflow/", "comet_ml/", "tensorboard/", "tensorboardX/", "torch/utils/tensorboard/", "aim/", "neptune/", "clearml/"),
    *("swanlab/", "torch/profiler/", "trackio/"),
)
_CALLS = ("torch/nn/modules/module.py", "torch/optim/optimizer.py")
_ENGINE = "torch/autograd/graph.py"


def kind_of(stack: Stack, in_network: bool, backward: bool) -> str:
    """ "hook", "metric" or "tracker" for what the network's time is not; "" for the network itself, and outside of it."""
    files = [frame.location.file for frame in stack if frame.kind in ("library", "torch")]
    if any(file.startswith(METRICS) for file in files):
        return "metric"
    if any(file.startswith(TRACKERS) for file in files):
        return "tracker"
    if not in_network:
        return ""
    for caller, called in pairwise(stack):
        if called.kind in ("own", "library"):
            if caller.location.file.endswith(_CALLS) and "hook" in caller.text and "forward_call" not in caller.text:
                return "hook"
            if backward and caller.location.file.endswith(_ENGINE):
                return "hook"
    return ""
