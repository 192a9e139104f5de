"""The harbour office's logs, one CSV a gauge: stamp, level in cm, quality flag."""

from pathlib import Path

import numpy as np

from almanac import SPEEDS, angles, hours_since


def write_logs(folder, era, gauges, readings, minutes, seed):
    rng = np.random.default_rng(seed)
    stamps = np.datetime64(era) + np.arange(readings) * np.timedelta64(minutes, "m")
    texts = np.datetime_as_string(stamps, unit="m").tolist()
    turn = np.outer(np.arange(readings) * minutes / 60, np.deg2rad(SPEEDS))
    for gauge in range(gauges):
        level = np.cos(turn + rng.uniform(0, 6.28, len(SPEEDS))) @ rng.gamma(2.0, 20.0, len(SPEEDS))
        level += 12 * np.sin(np.cumsum(rng.normal(0, 0.01, readings)))
        flags = rng.choice(["0", "0", "0", "0", "0", "0", "0", "0", "0", "4"], readings).tolist()
        rows = map(",".join, zip(texts, map(str, np.rint(level).astype(int).tolist()), flags))
        (Path(folder) / f"gauge{gauge:02d}.csv").write_text("stamp,cm,flag\n" + "\n".join(rows) + "\n")


def read_log(path, era):
    """Levels in metres on the log's own raster, the angles at each reading; doubtful readings hold the last good one."""
    with open(path) as file:
        next(file)
        stamps, levels, flags = zip(*(line.rstrip("\n").split(",") for line in file))
    hours = hours_since(era, stamps)
    level = np.array(levels, dtype=np.float32) / 100
    good = np.maximum.accumulate(np.where(np.array(flags) == "0", np.arange(len(level)), 0))
    return level[good] - level.mean(), angles(hours)


def read_all(folder, era):
    logs = [read_log(path, era) for path in sorted(Path(folder).glob("gauge*.csv"))]
    return np.stack([level for level, _ in logs]), np.stack([turn for _, turn in logs])
