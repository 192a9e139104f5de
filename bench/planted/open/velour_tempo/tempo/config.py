from dataclasses import dataclass, field


@dataclass
class DataConfig:
    tracks: int = 512
    frames: int = 48
    bands: int = 12
    noise: float = 0.08


@dataclass
class ModelConfig:
    hidden: int = 64
    cells: int = 1


@dataclass
class OptimConfig:
    lr: float = 0.002
    clip: float = 1.0


@dataclass
class TrainerConfig:
    batch_size: int = 32
    epochs: int = 8
    log_every: int = 20
    detect_anomaly: bool = True
    seed: int = 17


@dataclass
class Config:
    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
