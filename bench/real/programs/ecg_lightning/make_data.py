"""Synthetic 8-lead ECG records, in the layout of our export: data/records.npy (int16, microvolt) and data/labels.csv."""
import csv
import os

import numpy as np

FS, SECONDS, LEADS, N = 100, 10, 8, 1200
LABELS = ["NORM", "AFIB", "STD", "PVC", "BRADY"]


def beat(t, centre, width, height):
    return height * np.exp(-0.5 * ((t - centre) / width) ** 2)


def record(rng):
    y = np.zeros(5, dtype=int)
    y[1:] = rng.random(4) < (0.2, 0.25, 0.25, 0.2)
    y[0] = int(not y[1:].any())
    t = np.arange(FS * SECONDS) / FS
    rr = rng.normal(1.3 if y[4] else 0.8, 0.05)
    sig, c = np.zeros((LEADS, t.size)), rng.uniform(0, rr)
    gains = rng.normal(1, 0.25, LEADS)
    while c < SECONDS:
        ectopic = y[3] and rng.random() < 0.2
        p = 0 if (y[1] or ectopic) else beat(t, c - 0.16, 0.025, 120)
        qrs = beat(t, c, 0.045 if ectopic else 0.014, 1300 if ectopic else 1000) - beat(t, c + 0.035, 0.015, 250)
        st = beat(t, c + 0.13, 0.05, -160) if y[2] else 0
        sig += gains[:, None] * (p + qrs + st + beat(t, c + 0.28, 0.05, 260))
        c += rr * (rng.uniform(0.6, 1.4) if y[1] else rng.normal(1, 0.02))
    sig += 200 * np.sin(2 * np.pi * rng.uniform(0.1, 0.4) * t + rng.uniform(0, 6))        # breathing
    sig += 60 * np.sin(2 * np.pi * 49.5 * t) + rng.normal(0, 60, sig.shape)
    return sig.astype(np.int16), y


if __name__ == "__main__":
    rng = np.random.default_rng(11)
    os.makedirs("data", exist_ok=True)
    rows = [record(rng) for _ in range(N)]
    np.save("data/records.npy", np.stack([r for r, _ in rows]))
    with open("data/labels.csv", "w", newline="") as f:
        w = csv.writer(f)
        w.writerow(["record"] + LABELS)
        for i, (_, y) in enumerate(rows):
            w.writerow([i] + y.tolist())
