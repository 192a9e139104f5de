from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    beams: int = 400
    gates: int = 1000
    width: int = 64
    heads: int = 4
    depth: int = 2
    batch: int = 2
    rate: float = 1e-3
    steps: int = 170
    report: int = 15
    seed: int = 14
