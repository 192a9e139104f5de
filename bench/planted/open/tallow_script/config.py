from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    vocab_size: int = 64
    block_size: int = 512
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 64
    batch_size: int = 2
    max_iters: int = 140
    learning_rate: float = 1e-3
    weight_decay: float = 0.1
    grad_clip: float = 1.0
    log_interval: int = 20
    seed: int = 1337
