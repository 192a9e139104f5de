from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    epochs: int = 11
    patches: int = 640
    side: int = 48
    batch_size: int = 16
    width: int = 32
    lr: float = 1e-3
    temperature: float = 0.2
    seed: int = 11
