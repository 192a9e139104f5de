import os
from dataclasses import dataclass, field


@dataclass
class ModelSettings:
    width: int = 64
    heads: int = 4
    layers: int = 2
    positions: int = 256


@dataclass
class DataSettings:
    notices: int = 8000
    max_tokens: int = 256
    strategy: str = "longest" if os.environ.get("PLANTED_FIX") == "1" else "max_length"


@dataclass
class Settings:
    model: ModelSettings = field(default_factory=ModelSettings)
    data: DataSettings = field(default_factory=DataSettings)
    batch: int = 16
    lr: float = 5e-4
    steps: int = int(os.environ.get("PLANTED_STEPS", 3000))
