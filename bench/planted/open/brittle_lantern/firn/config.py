import os
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Core:
    slices: int = 1024
    proxies: int = 5
    count: int = 48
    breaks: int = 9


@dataclass(frozen=True)
class Net:
    width: int = 32
    heads: int = 2
    depth: int = 2


@dataclass(frozen=True)
class Run:
    core: Core = field(default_factory=Core)
    net: Net = field(default_factory=Net)
    seed: int = 1966
    lr: float = 2e-3
    warm: int = 30
    say_every: int = 50
    steps: int = int(os.environ.get("PLANTED_STEPS", 450))
