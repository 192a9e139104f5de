"""Infrared spectra of peat cores; how much carbon is in each?"""

import numpy as np

BANDS = np.array([1080, 1270, 1420, 1510, 1630, 1720, 2850, 2920, 3400.0])


def cores(count: int, points: int = 256, seed: int = 3):
    rng = np.random.default_rng(seed)
    axis = np.linspace(900, 3700, points)
    share = rng.dirichlet(np.ones(len(BANDS)), count)
    width = rng.uniform(30, 90, (count, len(BANDS)))
    peaks = share[:, :, None] * np.exp(-((axis - BANDS[:, None]) ** 2) / (2 * width[:, :, None] ** 2))
    spectra = peaks.sum(1) + 0.02 * rng.standard_normal((count, points)) + 0.1 * rng.random((count, 1))
    carbon = 0.4 + 0.5 * share[:, 3] + 0.3 * share[:, 6] - 0.2 * share[:, 0]
    spectra = (spectra - spectra.mean(1, keepdims=True)) / spectra.std(1, keepdims=True)
    return spectra, (carbon - carbon.mean()) / carbon.std()
