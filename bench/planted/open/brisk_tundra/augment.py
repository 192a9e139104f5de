"""Waveform augmentation; every stage is a closure wave, rng -> wave."""

import os

import numpy as np
from scipy import signal

FIXED = os.environ.get("PLANTED_FIX") == "1"


def room_responses(rooms, length, rng):
    out = []
    for _ in range(rooms):
        decay = np.exp(-np.arange(length) / (length * rng.uniform(0.08, 0.25)))
        tail = rng.standard_normal(length) * decay
        tail[0] = 3.0
        out.append((tail / np.abs(tail).sum() * 2).astype(np.float32))
    return out


def reverb(prob, rooms, seconds, rate, seed):
    bank = room_responses(rooms, int(seconds * rate), np.random.default_rng(seed))

    def apply(wave, rng):
        if rng.random() >= prob:
            return wave
        room = bank[rng.integers(len(bank))]
        if FIXED:
            wet = signal.fftconvolve(wave, room)
        else:
            wet = np.convolve(wave, room)
        return wet[: len(wave)]

    return apply


def gain(low, high):
    return lambda wave, rng: wave * np.float32(rng.uniform(low, high))


def noise(level):
    return lambda wave, rng: wave + level * rng.standard_normal(len(wave), dtype=np.float32)


def chain(cfg, rate, seed):
    stages = [reverb(rate=rate, seed=seed, **cfg["reverb"]), gain(**cfg["gain"]), noise(**cfg["noise"])]

    def run(wave, rng):
        for stage in stages:
            wave = stage(wave, rng)
        return wave

    return run
