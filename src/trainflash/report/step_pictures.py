"""Pictures of single steps: every step in order with its phases, and how slow the slow ones are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from trainflash.report import figures
from trainflash.report.pictures import Size, colour, svg
from trainflash.schema import PHASES, Spread, Timeline

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARGIN = 1.1
_OUTLIER = 3.0  # a rare long step (an evaluation, a checkpoint) may stand out of the picture rather than flatten all others
_VISIBLE = 0.004  # of the height: half a pixel
_TAILS = (("median", "p50_ms"), ("p95", "p95_ms"), ("p99", "p99_ms"), ("slowest", "max_ms"))


@dataclass(frozen=True)
class Steps:
    """The steps of the runs before and after; None: that run's steps were not kept."""

    before: Timeline | None = None
    after: Timeline | None = None

    @property
    def named(self) -> tuple[tuple[str, Timeline], ...]:
        """Those that there are, with their names."""
        return tuple(
            (name, found) for name, found in (("before", self.before), ("after", self.after)) if found and found.step_ms.max_ms > 0
        )


def timeline(shown: Timeline, label: str, top_ms: float, size: Size = "wide") -> str:
    """The phases of every step, stacked, in order; a thin line is the slowest step where neighbours share a bin."""
    edges = (*shown.first_step, shown.steps)
    names = [name for name in PHASES if name in shown.phases]
    layers = list(
        accumulate((shown.phases[name] for name in names), lambda below, above: [a + b for a, b in zip(below, above, strict=True)])
    )

    def draw(axes: Axes) -> None:
        for name, layer in reversed(list(zip(names, layers, strict=True))):
            if max(shown.phases[name]) < _VISIBLE * top_ms:
                continue
            axes.fill(*_steps(edges, layer), color=colour(f"--phase-{name.lower()}"), linewidth=0, zorder=2)
        if len(shown.first_step) < shown.steps:
            axes.plot(*_steps(edges, shown.slowest_ms), color=colour("--quiet"), linewidth=0.7, zorder=3)
        _mark_warmup(axes, shown)
        _mark_highest(axes, shown, top_ms)
        axes.set_xlim(0, shown.steps)
        axes.set_ylim(0, top_ms)
        axes.set_ylabel("ms a step")
        axes.set_xlabel(f"{label}: step")
        axes.locator_params(axis="y", nbins=4)

    means = ", ".join(f"{name} {figures.ms(sum(shown.phases[name]) / len(shown.phases[name]))}" for name in names)
    spoken = f"Steps {label}, in order, {figures.count(shown.steps, 'step')}, warm-up {shown.warmup_steps}. Mean of the picture: {means}"
    return svg(draw, f"timeline-{label}-{size}", size, height=1.75, spoken=spoken)


def top_ms(steps: Steps) -> float:
    """The height of both timelines, so that they compare: all bins, but for outliers."""
    tops = []
    for _, shown in steps.named:
        heights = sorted(sum(column) for column in zip(*shown.phases.values(), strict=True)) or [0.0]
        tops.append(min(heights[-1], _OUTLIER * heights[int(0.95 * (len(heights) - 1))]))
    return max(tops, default=0.0) * _MARGIN or 1.0


def tails(steps: Steps, size: Size = "wide") -> str:
    """Median, p95, p99 and slowest step before and after, on a logarithmic scale; `steps` names one run at least."""
    rows = [(name, [(label, _value(shown.step_ms, field)) for label, shown in steps.named]) for name, field in _TAILS]
    rows = [(name, known) for name, values in rows if (known := [(label, value) for label, value in values if value])]

    def draw(axes: Axes) -> None:
        axes.set_xscale("log")
        for place, (name, values) in enumerate(rows):
            _tail(axes, -place, name, values)
        every = [value for _, values in rows for _, value in values]
        axes.set_xlim(min(every) / 1.2, max(every) * 1.2)
        axes.set_ylim(-len(rows) + 0.55, 0.75)
        axes.set_yticks([])
        axes.minorticks_off()
        axes.set_xticks([])
        axes.spines["bottom"].set_visible(False)

    spoken = "; ".join(f"{name}: " + ", ".join(f"{figures.ms(value)} {label}" for label, value in values) for name, values in rows)
    height = 0.15 + 0.52 * len(rows)
    return svg(draw, f"tails-{size}", size, height=height, spoken=f"How long steps take, each run's steady steps. {spoken}")


def _tail(axes: Axes, place: float, name: str, values: Sequence[tuple[str, float]]) -> None:
    beside = {"transform": axes.get_yaxis_transform(), "va": "bottom", "parse_math": False}
    said = " → ".join(figures.number(value) for _, value in values) + " ms" + (f" ({values[0][0]})" if len(values) == 1 else "")
    axes.text(0, place + 0.14, name, color=colour("--text"), **beside)
    axes.text(1, place + 0.14, said, color=colour("--quiet"), ha="right", **beside)
    line = place - 0.06
    axes.axhline(line, color=colour("--line"), linewidth=0.6, zorder=0)
    if len(values) == 2:
        axes.plot([value for _, value in values], [line, line], color=colour("--quiet"), linewidth=2, zorder=1)
    for label, value in values:
        inside = colour("--card") if label == "before" else colour("--text")
        axes.plot([value], [line], marker="o", markersize=7, color=colour("--text"), markerfacecolor=inside, zorder=3)


def _steps(edges: Sequence[int], heights: Sequence[float]) -> tuple[list[float], list[float]]:
    """Corners of a row of bars, from the ground and back to it."""
    across = [edges[0], *(edge for inner in edges[1:-1] for edge in (inner, inner)), edges[-1]]
    up = [height for height in heights for _ in range(2)]
    return [edges[0], *across, edges[-1]], [0.0, *up, 0.0]


def _mark_warmup(axes: Axes, shown: Timeline) -> None:
    if shown.warmup_steps:
        axes.axvline(shown.warmup_steps, color=colour("--text"), linewidth=1.0, linestyle=(0, (3, 2)), zorder=4)


def _mark_highest(axes: Axes, shown: Timeline, limit: float) -> None:
    """Says how high the highest bin is where the picture cuts it."""
    heights = [sum(column) for column in zip(*shown.phases.values(), strict=True)]
    highest = max(heights, default=0.0)
    if highest > limit:
        at = shown.first_step[heights.index(highest)] / shown.steps
        where = {"transform": axes.transAxes, "va": "bottom", "ha": "left" if at < 0.5 else "right", "parse_math": False}
        axes.text(at, 1.01, f"▲ {figures.ms(highest)}", color=colour("--quiet"), **where)


def _value(spread: Spread, field: str) -> float | None:
    return getattr(spread, field)
