"""Near-infrared spectra of barley, by season: a few bumps, a slope, and the protein content that shapes them."""

import numpy as np

POINTS = 256


def season(index: int, samples: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1000 + index)
    axis = np.linspace(0, 1, POINTS, dtype=np.float32)
    protein = rng.uniform(8, 15, size=samples).astype(np.float32)
    spectra = 0.4 * axis + rng.normal(0, 0.05, size=(samples, 1)).astype(np.float32)
    for centre, weight in ((0.2, 0.05), (0.45, -0.03), (0.7, 0.04)):
        shift = rng.normal(0, 0.01, size=(samples, 1))
        bump = np.exp(-((axis - centre - shift) ** 2) / 0.004).astype(np.float32)
        spectra = spectra + weight * (protein[:, None] - 11) * bump
    noise = rng.normal(0, 0.02, size=spectra.shape).astype(np.float32)
    return (spectra + noise).astype(np.float32), (protein - 11.5) / 2
