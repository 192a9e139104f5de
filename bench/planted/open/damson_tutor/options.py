from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    features: int = 128
    kinds: int = 20
    tutor_width: int = 384
    pupil_width: int = 128
    batch: int = 128
    rehearsal: int = 150
    lessons: int = 110
    start_temperature: float = 6.0
    end_temperature: float = 1.5
    hard_share: float = 0.3
    lr: float = 2e-3
    backend: str = "eager"
    seed: int = 55
