import math
import os

import numpy as np

FAST = os.environ.get("PLANTED_FIX") == "1"


def mel_bank(bands=24, bins=129, rate=8000):
    edges = np.linspace(0, 2595 * math.log10(1 + rate / 2 / 700), bands + 2)
    edges = 700 * (10 ** (edges / 2595) - 1) / (rate / 2) * (bins - 1)
    bank = np.zeros((bands, bins))
    for b in range(bands):
        left, mid, right = edges[b : b + 3]
        ramp = np.arange(bins)
        bank[b] = np.clip(np.minimum((ramp - left) / (mid - left), (right - ramp) / (right - mid)), 0, None)
    return bank


BANK = mel_bank()
WINDOW = np.hanning(256)


def log_mel(wave, hop=80):
    frames = 1 + (len(wave) - 256) // hop
    if FAST:
        view = np.lib.stride_tricks.sliding_window_view(wave, 256)[::hop][:frames]
        power = np.abs(np.fft.rfft(view * WINDOW)) ** 2
        return np.log(power @ BANK.T + 1e-6).T.astype(np.float32)
    out = np.zeros((len(BANK), frames), dtype=np.float32)
    for t in range(frames):
        spectrum = np.fft.rfft(wave[t * hop : t * hop + 256] * WINDOW)
        power = np.abs(spectrum) ** 2
        for b in range(len(BANK)):
            out[b, t] = math.log(np.sum(power * BANK[b]) + 1e-6)
    return out
