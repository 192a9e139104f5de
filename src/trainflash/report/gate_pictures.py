"""The history of one figure as inline SVG: every commit, the level of its segment, and where the level changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainflash.report import figures, pictures
from trainflash.schema.gate_changes import GateSeries

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TONES = {"pass": "good", "warn": "unsure", "fail": "bad", "inconclusive": "unsure", None: "unsure"}


def series(shown: GateSeries, size: pictures.Size = "wide") -> str:
    """Points coloured by their result, levels as lines, change points as dashed ones."""
    points = shown.points

    def draw(axes: Axes) -> None:
        levels = [point.level for point in points]
        axes.step(range(len(points)), levels, where="mid", color=pictures.colour("--quiet"), linewidth=1.4, zorder=1)
        for place, point in enumerate(points):
            axes.plot(place, point.value, "o", color=pictures.colour(f"--{TONES[point.result]}"), markersize=4.5, zorder=2)
        for change in shown.changes:
            colour = pictures.colour("--bad" if change.worse_pct > 0 else "--good")
            axes.axvline(change.index - 0.5, color=colour, linewidth=1.0, linestyle=(0, (2, 1.5)), zorder=0)
        named = range(0, len(points), max(1, len(points) // (12 if size == "wide" else 5)))
        labels = [figures.short(points[place].label or (points[place].commit or str(place + 1))[:8], 12) for place in named]
        axes.set_xticks(list(named), labels, rotation=30, ha="right")
        axes.set_ylabel(figures.words(shown.figure))

    name = "".join(char if char.isalnum() else "-" for char in shown.figure)
    return pictures.svg(draw, f"gate-{name}-{size}", size, height=2.8, spoken=f"{figures.words(shown.figure)} over time. {shown.said}")
