"""Synthesises short "bird call" clips and stores their log-mel features as .npz archives."""
from pathlib import Path

import numpy as np

SR = 8000
N_FFT = 512
HOP = 164
N_MELS = 40
N_FRAMES = 46
CLASSES = ["chirp_up", "chirp_down", "trill", "whistle", "warble", "click", "buzz", "noise"]


def mel_filters(n_mels=N_MELS, n_fft=N_FFT, sr=SR, fmin=60.0):
    def to_mel(f):
        return 2595.0 * np.log10(1.0 + f / 700.0)

    edges = np.linspace(to_mel(fmin), to_mel(sr / 2), n_mels + 2)
    hz = 700.0 * (10 ** (edges / 2595.0) - 1.0)
    freqs = np.fft.rfftfreq(n_fft, 1.0 / sr)
    lower = (freqs[None] - hz[:-2, None]) / (hz[1:-1] - hz[:-2])[:, None]
    upper = (hz[2:, None] - freqs[None]) / (hz[2:] - hz[1:-1])[:, None]
    return np.maximum(0.0, np.minimum(lower, upper)).astype(np.float32)


def synth(label, rng):
    t = np.arange(SR) / SR
    base = rng.uniform(500, 1500)
    name = CLASSES[label]
    if name == "chirp_up":
        y = np.sin(2 * np.pi * (base * t + 600 * t ** 2))
    elif name == "chirp_down":
        y = np.sin(2 * np.pi * ((base + 1200) * t - 600 * t ** 2))
    elif name == "trill":
        y = np.sin(2 * np.pi * base * t) * (np.sin(2 * np.pi * rng.uniform(8, 14) * t) > 0)
    elif name == "whistle":
        y = np.sin(2 * np.pi * base * t)
    elif name == "warble":
        y = np.sin(2 * np.pi * base * t + 30 * np.sin(2 * np.pi * 5 * t))
    elif name == "click":
        y = np.zeros_like(t)
        y[rng.integers(0, SR, 12)] = 8.0
    elif name == "buzz":
        y = np.sign(np.sin(2 * np.pi * base / 6 * t))
    else:
        y = rng.normal(size=SR)
    y = np.roll(y, rng.integers(0, SR)) * rng.uniform(0.3, 1.0)
    return (y + rng.normal(scale=0.35, size=SR)).astype(np.float32)


def log_mel(y, filters, window):
    pad = np.pad(y, (0, N_FFT))
    frames = np.stack([pad[i * HOP:i * HOP + N_FFT] for i in range(N_FRAMES)]) * window
    power = np.abs(np.fft.rfft(frames, axis=1)) ** 2
    return np.log(power @ filters.T + 1e-5).T.astype(np.float32)


def build(folder: Path, n_train=640, n_valid=160, seed=11):
    folder.mkdir(parents=True, exist_ok=True)
    filters = mel_filters()
    window = np.hanning(N_FFT).astype(np.float32)
    rng = np.random.default_rng(seed)
    for split, n in (("train", n_train), ("valid", n_valid)):
        labels = rng.integers(0, len(CLASSES), n)
        features = np.stack([log_mel(synth(l, rng), filters, window) for l in labels])
        np.savez(folder / f"{split}.npz", features=features, labels=labels.astype(np.int64))
        if split == "train":
            stats = dict(mean=features.mean((0, 2)), std=features.std((0, 2)))
    np.savez(folder / "stats.npz", **stats)
