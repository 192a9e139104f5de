from dataclasses import dataclass


@dataclass
class Config:
    # data
    corpus_tokens: int = 400_000
    vocab: int = 512
    block: int = 96
    batch: int = 24
    mask_word_p: float = 0.15
    noise_word_p: float = 0.03
    # model
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 64
    # optimisation
    lr: float = 1e-3
    min_lr: float = 1e-4
    warmup: int = 40
    max_iters: int = 700
    grad_clip: float = 1.0
    weight_decay: float = 0.05
    # i/o
    eval_interval: int = 350
    eval_iters: int = 4
    log_interval: int = 1
    seed: int = 1337
    out_dir: str = "out"
