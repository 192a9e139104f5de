"""Keyword spotting on one-second clips with a log-mel front end and a small CNN."""

import os
import time
from dataclasses import dataclass

import numpy as np
import torch

from features import LogMel
from model import KeywordNet


@dataclass
class Config:
    sample_rate: int = 8000
    n_fft: int = 512
    hop: int = 160
    n_mels: int = 64
    f_min: float = 20.0
    f_max: float = 4000.0
    n_words: int = 10
    n_clips: int = 1500
    batch_size: int = 16
    lr: float = 1.5e-3
    steps: int = 700
    log_every: int = 70
    seed: int = 13


def make_clips(cfg):
    rng = np.random.default_rng(cfg.seed)
    t = np.arange(cfg.sample_rate) / cfg.sample_rate
    words = []
    for _ in range(cfg.n_words):
        words.append(dict(pitch=rng.uniform(90, 280), formants=rng.uniform(300, 3200, 3), glide=rng.uniform(-200, 200, 3)))
    clips = np.zeros((cfg.n_clips, cfg.sample_rate), dtype=np.float32)
    labels = rng.integers(cfg.n_words, size=cfg.n_clips)
    for n, k in enumerate(labels):
        w = words[k]
        voice = np.sign(np.sin(2 * np.pi * w["pitch"] * rng.uniform(0.9, 1.1) * t)) * 0.1
        for f, g in zip(w["formants"], w["glide"]):
            phase = 2 * np.pi * (f * rng.uniform(0.97, 1.03) * t + g * t**2 / 2)
            voice += 0.3 * np.sin(phase)
        centre = rng.uniform(0.35, 0.65)
        envelope = np.exp(-(((t - centre) / 0.18) ** 2))
        clips[n] = voice * envelope + rng.normal(0, 0.03, len(t))
    return torch.from_numpy(clips), torch.from_numpy(labels)


class ClipSampler:
    def __init__(self, clips, labels, batch_size, seed):
        self.clips, self.labels = clips, labels
        self.batch_size = batch_size
        self.gen = torch.Generator().manual_seed(seed)
        self.queue = torch.empty(0, dtype=torch.long)
        self.kept = None

    def normalize(self, wave):
        if os.environ.get("PLANTED_FIX") == "1":
            if self.kept is None:
                self.kept = self.clips.mean(), self.clips.std()
            mean, std = self.kept
            return (wave - mean) / std
        return (wave - self.clips.mean()) / self.clips.std()

    def next(self):
        if len(self.queue) < self.batch_size:
            self.queue = torch.randperm(len(self.clips), generator=self.gen)
        idx, self.queue = self.queue[: self.batch_size], self.queue[self.batch_size :]
        shift = int(torch.randint(-800, 800, (1,), generator=self.gen))
        wave = torch.roll(self.clips[idx], shift, dims=1)
        return self.normalize(wave), self.labels[idx]


def main():
    cfg = Config()
    cfg.steps = int(os.environ.get("PLANTED_STEPS", cfg.steps))
    torch.manual_seed(cfg.seed)
    clips, labels = make_clips(cfg)

    frontend = LogMel(cfg.sample_rate, cfg.n_fft, cfg.hop, cfg.n_mels, cfg.f_min, cfg.f_max)
    net = KeywordNet(cfg.n_words)
    optimizer = torch.optim.AdamW(net.parameters(), lr=cfg.lr)
    loss_fn = torch.nn.CrossEntropyLoss()
    sampler = ClipSampler(clips, labels, cfg.batch_size, cfg.seed)

    start = time.perf_counter()
    for step in range(1, cfg.steps + 1):
        wave, target = sampler.next()
        logits = net(frontend(wave))
        loss = loss_fn(logits, target)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

        if step % cfg.log_every == 0:
            acc = (logits.argmax(1) == target).float().mean()
            print(f"[{step}/{cfg.steps}] loss {loss.item():.4f} acc {acc.item():.2f}")
    print(f"{cfg.steps} steps in {time.perf_counter() - start:.2f} s, loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
