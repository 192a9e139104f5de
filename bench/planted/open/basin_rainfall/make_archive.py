"""Write the hourly archive of the basin: one raw file a year, hours by gauges, float32, and an index."""

import argparse
import json
from pathlib import Path

import numpy as np

HOURS, GAUGES = 8760, 480


def year(number: int) -> np.ndarray:
    rng = np.random.default_rng(number)
    hours = np.arange(HOURS, dtype=np.float32)[:, None]
    phase = rng.uniform(0, 6.28, GAUGES).astype(np.float32)
    wet = np.sin(hours / 160 + phase) + np.sin(hours / 37 + 2 * phase)
    return np.maximum(wet + 0.2 * rng.standard_normal((HOURS, GAUGES), dtype=np.float32), 0).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--years", type=int, default=3)
    options = parser.parse_args()
    names = []
    for number in range(options.years):
        names.append(f"basin_{2001 + number}.f32")
        year(number).tofile(options.folder / names[-1])
    (options.folder / "index.json").write_text(json.dumps({"files": names, "hours": HOURS, "gauges": GAUGES}))


if __name__ == "__main__":
    main()
