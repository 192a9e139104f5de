"""Options as dataclasses; `section.name=value` on the command line overrides."""

import sys
from dataclasses import dataclass, field


@dataclass
class Data:
    cells: int = 512
    samples: int = 18
    seed: int = 4


@dataclass
class Model:
    state: int = 6
    width: int = 48
    substeps: int = 1


@dataclass
class Numerics:
    flush_denormal: bool = True
    trace_backward: bool = True
    matmul: str = "highest"


@dataclass
class Fit:
    updates: int = 200
    accumulate: int = 2
    batch: int = 64
    rate: float = 3e-3
    clip: float = 1.0
    report: int = 20


@dataclass
class Options:
    data: Data = field(default_factory=Data)
    model: Model = field(default_factory=Model)
    numerics: Numerics = field(default_factory=Numerics)
    fit: Fit = field(default_factory=Fit)


def from_command_line() -> Options:
    options = Options()
    for word in sys.argv[1:]:
        path, text = word.split("=", 1)
        section, name = path.split(".")
        old = getattr(getattr(options, section), name)
        new = text.lower() in ("1", "true", "yes") if isinstance(old, bool) else type(old)(text)
        setattr(getattr(options, section), name, new)
    return options
