from dataclasses import dataclass


@dataclass
class Config:
    seed: int = 17
    num_classes: int = 60
    per_class: int = 40
    image_size: int = 24
    classes_per_batch: int = 16
    samples_per_class: int = 4
    embed_dim: int = 64
    width: int = 8
    margin: float = 0.3
    lr: float = 5e-4
    weight_decay: float = 1e-4
    steps: int = 600
    print_every: int = 50
