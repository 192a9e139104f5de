"""Synthetic bird-call recordings and their log-mel features."""

import numpy as np
import torch

SR = 8000
N_FFT = 256
HOP = 80
N_MELS = 32


def mel_matrix():
    def hz_to_mel(f):
        return 2595 * np.log10(1 + f / 700)

    def mel_to_hz(m):
        return 700 * (10 ** (m / 2595) - 1)

    edges = mel_to_hz(np.linspace(hz_to_mel(80), hz_to_mel(SR / 2), N_MELS + 2))
    freqs = np.linspace(0, SR / 2, N_FFT // 2 + 1)
    up = (freqs - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    down = (edges[2:, None] - freqs) / (edges[2:] - edges[1:-1])[:, None]
    return torch.tensor(np.maximum(0, np.minimum(up, down)), dtype=torch.float32)


def call(rng, species, seconds):
    """A train of syllables; species sets base pitch, sweep and syllable rate."""
    n = int(seconds * SR)
    t = np.arange(n) / SR
    base = 700 + 260 * species
    sweep = 250 * np.sin(2 * np.pi * (2 + species % 4) * t + rng.uniform(0, 6.28))
    phase = 2 * np.pi * np.cumsum(base * rng.uniform(0.93, 1.07) + sweep) / SR
    gate = 0.5 * (1 + np.sign(np.sin(2 * np.pi * (3 + species // 2) * t + rng.uniform(0, 6.28))))
    return (gate * np.sin(phase) + rng.normal(0, 0.6, n)).astype(np.float32)


def make_corpus(n_clips, n_species, min_s, max_s, seed):
    """List of (frames x mels tensor, species). Most clips are short; a few are long soundscapes."""
    rng = np.random.default_rng(seed)
    mel = mel_matrix()
    window = torch.hann_window(N_FFT)
    corpus = []
    for _ in range(n_clips):
        species = int(rng.integers(n_species))
        seconds = float(np.clip(rng.lognormal(-0.25, 0.45), min_s, max_s))
        wave = torch.from_numpy(call(rng, species, seconds))
        spec = torch.stft(wave, N_FFT, HOP, window=window, return_complex=True).abs().square()
        logmel = torch.log(mel @ spec + 1e-4).T
        corpus.append(((logmel - logmel.mean()) / logmel.std(), species))
    return corpus
