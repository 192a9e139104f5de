"""Borehole strain meters: drift, tides, slow slips, and loggers of various age."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Station:
    name: str
    tide: np.ndarray  # amplitude of each gauge
    dropout: float  # chance that the logger falls silent at a sample
    silence: int  # samples it stays silent


def network(count: int, gauges: int, old: int, seed: int) -> list[Station]:
    rng = np.random.default_rng(seed)
    stations = []
    for number in range(count):
        worn = number % (count // old) == 0
        dropout, silence = (0.012, 40) if worn else (0.0, 0)
        stations.append(Station(f"B{number:03d}", rng.uniform(0.5, 1.5, gauges), dropout, silence))
    return stations


def window(station: Station, samples: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Strain [gauge, sample] with NaN where the logger was silent, and 1 where the fault slips [sample]."""
    t = np.arange(samples)
    tide = station.tide[:, None] * np.sin(t * 2 * np.pi / 149 + rng.uniform(0, 6.28))
    slip = np.zeros(samples, np.int64)
    begin, length = rng.integers(0, samples - 60), rng.integers(30, 120)
    slip[begin : begin + length] = 1
    creep = np.cumsum(slip) * 0.03 * rng.choice([-1, 1], (len(station.tide), 1))
    strain = tide + creep + 0.2 * rng.standard_normal((len(station.tide), samples))
    if station.dropout:
        for gauge in strain:
            for start in np.flatnonzero(rng.random(samples) < station.dropout):
                gauge[start : start + station.silence] = np.nan
    return strain, slip
