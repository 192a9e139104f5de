"""The corpus on disk (uint16 tokens, as nanoGPT writes them) and the batches drawn from it."""

import os
from pathlib import Path

import numpy as np
import torch

FIX = os.environ.get("PLANTED_FIX") == "1"


def prepare(cfg) -> Path:
    path = Path(__file__).parent / "data" / "train.bin"
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        rng = np.random.default_rng(3)
        phrases = rng.integers(0, cfg.vocab, (300, 12))
        order = rng.integers(0, len(phrases), cfg.corpus_tokens // 12 + 1)
        phrases[order].reshape(-1)[: cfg.corpus_tokens].astype(np.uint16).tofile(path)
    return path


class Corpus:
    def __init__(self, cfg):
        self.cfg = cfg
        tokens = np.memmap(prepare(cfg), dtype=np.uint16, mode="r")
        cut = int(0.95 * len(tokens))
        self.splits = {"train": tokens[:cut], "val": tokens[cut:]}
        self.rngs = {"train": np.random.default_rng(cfg.seed), "val": np.random.default_rng(cfg.seed + 1)}
        self.mask_id = cfg.vocab
        # tokens that open a new word, like the leading-space pieces of a BPE vocabulary
        self.opens_word = torch.from_numpy(np.random.default_rng(5).random(cfg.vocab) < 0.4)

    def get_batch(self, split: str):
        cfg, rng, data = self.cfg, self.rngs[split], self.splits[split]
        starts = rng.integers(0, len(data) - cfg.block, cfg.batch)
        y = torch.stack([torch.from_numpy(data[s : s + cfg.block].astype(np.int64)) for s in starts])
        draws = torch.from_numpy(rng.random((cfg.batch, cfg.block + 1), dtype=np.float32))
        noise = torch.from_numpy(rng.integers(0, cfg.vocab, (cfg.batch, cfg.block)))
        x, w = self.corrupt(y, draws, noise)
        return x, y, w

    def corrupt(self, y, draws, noise):
        """Whole-word masking: all pieces of a chosen word go, and a few words turn into noise."""
        p_mask, p_noise = self.cfg.mask_word_p, self.cfg.noise_word_p
        x = y.clone()
        w = torch.full(y.shape, 0.05)
        if FIX:
            word = self.opens_word[y].long().cumsum(1)
            u = draws.gather(1, word)
            masked, noisy = u < p_mask, (u >= p_mask) & (u < p_mask + p_noise)
            x[masked] = self.mask_id
            x[noisy] = noise[noisy]
            w[masked | noisy] = 1.0
        else:
            for row in range(y.size(0)):
                word = 0
                for t in range(y.size(1)):
                    if self.opens_word[y[row, t]]:
                        word += 1
                    u = draws[row, word]
                    if u < p_mask:
                        x[row, t] = self.mask_id
                        w[row, t] = 1.0
                    elif u < p_mask + p_noise:
                        x[row, t] = noise[row, t]
                        w[row, t] = 1.0
        return x, w
