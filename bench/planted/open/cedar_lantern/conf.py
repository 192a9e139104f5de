"""Run configuration. Override anything from the shell: python pretrain.py model.width=128 optim.lr=1e-3"""

import dataclasses
import os
import sys
from dataclasses import dataclass, field


@dataclass
class DataCfg:
    recordings: int = 640
    channels: int = 6
    samples: int = 480
    patch: int = 5
    batch: int = 16
    seed: int = 11


@dataclass
class ModelCfg:
    width: int = 96
    depth: int = 4
    heads: int = 4
    top_k: int = 2
    keep: float = 0.35


@dataclass
class OptimCfg:
    lr: float = 6e-4
    weight_decay: float = 0.02
    warmup: int = 30
    tau_start: float = 0.99
    tau_end: float = 0.9995


@dataclass
class RunCfg:
    seed: int = 3
    steps: int = int(os.environ.get("PLANTED_STEPS", "240"))
    log_every: int = 40
    data: DataCfg = field(default_factory=DataCfg)
    model: ModelCfg = field(default_factory=ModelCfg)
    optim: OptimCfg = field(default_factory=OptimCfg)


def load(argv=None):
    cfg = RunCfg()
    for item in sys.argv[1:] if argv is None else argv:
        key, value = item.split("=", 1)
        node = cfg
        *path, leaf = key.split(".")
        for name in path:
            node = getattr(node, name)
        kinds = {f.name: f.type for f in dataclasses.fields(node)}
        setattr(node, leaf, kinds[leaf](value))
    return cfg
