import os

import numpy as np
import torch


def acceleration(q):
    return -q / (np.sum(q**2, axis=-1, keepdims=True) + 0.1) ** 1.5


def leapfrog(q, p, dt, count):
    track = []
    for _ in range(count):
        p = p + 0.5 * dt * acceleration(q)
        q = q + dt * p
        p = p + 0.5 * dt * acceleration(q)
        track.append(np.concatenate([q, p, p, acceleration(q)], axis=-1))
    return np.concatenate(track)


def survey(bodies=600, count=60, seed=14):
    """States of bodies round a soft centre, each with its time derivative."""
    rng = np.random.default_rng(seed)
    angle, radius = rng.uniform(0, 2 * np.pi, bodies), rng.uniform(0.6, 1.6, bodies)
    q = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    p = np.stack([-np.sin(angle), np.cos(angle)], axis=1) * rng.uniform(0.6, 1.0, (bodies, 1))
    states = leapfrog(q, p, 0.05, count)
    rng.shuffle(states)
    if os.environ.get("PLANTED_FIX") == "1":
        states = states.astype(np.float32)
    return torch.from_numpy(states)
