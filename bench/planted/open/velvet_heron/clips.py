"""Synthetic spoken-command style clips: chirps, tones and noise bursts."""

import numpy as np


def synth_clip(label, rng, sr, seconds):
    n = int(sr * seconds)
    t = np.arange(n, dtype=np.float32) / sr
    base = 180.0 * (1.0 + 0.35 * label) * rng.uniform(0.92, 1.08)
    sweep = (label % 3 - 1) * rng.uniform(60, 140)
    phase = 2 * np.pi * (base * t + 0.5 * sweep * t * t)
    x = np.sin(phase) + 0.5 * np.sin(2 * phase) * (label % 2) + 0.25 * np.sin(3 * phase)
    onset = rng.uniform(0.1, 0.5)
    env = np.clip((t - onset) * 12, 0, 1) * np.exp(-np.clip(t - onset, 0, None) * rng.uniform(0.8, 2.0))
    x = x * env + rng.normal(0, 0.12, n)
    return (x / (np.abs(x).max() + 1e-6)).astype(np.float32)


def make_clips(count, classes, sr, seconds, seed):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, count)
    waves = np.stack([synth_clip(int(y), rng, sr, seconds) for y in labels])
    return waves, labels
