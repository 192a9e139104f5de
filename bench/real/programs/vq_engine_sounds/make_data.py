"""Writes recordings of engines under changing load as wav files: recordings/{train,val}/*.wav (16 kHz, 16 bit)."""
import os

import numpy as np
import soundfile as sf

RATE, SECONDS = 16000, 8


def engine(rng):
    t = np.arange(RATE * SECONDS) / RATE
    cylinders = int(rng.choice([2, 3, 4, 6]))
    knots = rng.uniform(700, 3800, 5)
    rpm = np.interp(t, np.linspace(0, SECONDS, 5), knots)
    phase = 2 * np.pi * np.cumsum(rpm / 60 * cylinders / 2) / RATE
    sound = np.zeros_like(t)
    for k in range(1, 13):
        sound += rng.uniform(0.3, 1.0) / k**0.9 * np.sin(k * phase + rng.uniform(0, 6.28))
    noise = rng.normal(0, 1, t.size)
    noise = np.convolve(noise, np.ones(5) / 5, mode="same")
    sound = sound + noise * (0.15 + 0.25 * (1 + np.sin(phase)) / 2)
    if rng.random() < 0.3:  # a knocking rod
        sound += 1.5 * np.exp(-((phase / (2 * np.pi)) % 1) * 30) * np.sin(2 * np.pi * 1900 * t)
    return (0.6 * sound / np.abs(sound).max()).astype("float32")


def main(root="recordings"):
    rng = np.random.default_rng(5)
    for split, count in (("train", 96), ("val", 16)):
        os.makedirs(os.path.join(root, split), exist_ok=True)
        for i in range(count):
            sf.write(os.path.join(root, split, f"engine_{i:03d}.wav"), engine(rng), RATE, subtype="PCM_16")


if __name__ == "__main__":
    main()
