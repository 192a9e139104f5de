"""Charts of the page as inline SVG: deterministic, text as text, colours as CSS variables so that dark and light both fit.

matplotlib is imported inside, on first use: `import trainflash.report` stays light.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Literal

from trainflash.report import figures
from trainflash.report.tune import MARKS, TONES, Tone, phase_names
from trainflash.schema import PHASES, Diagnosis, Experiment, Speedup, Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Size = Literal["wide", "narrow"]
_INCHES: dict[Size, float] = {"wide": 9.6, "narrow": 4.4}
_POINTS = 10.5

# Colours that stand for a CSS variable each; the page says what they look like in light and dark.
_STANDS_FOR = {
    **{f"#0000{n:02x}": f"--phase-{name.lower()}" for n, name in enumerate(PHASES, 0x10)},
    **{f"#0000{n:02x}": f"--kind-{name}" for n, name in enumerate(("own", "library", "torch", "python"), 0x20)},
    "#000030": "--good",
    "#000031": "--bad",
    "#000032": "--unsure",
    "#000040": "--text",
    "#000041": "--quiet",
    "#000042": "--line",
    "#000043": "--card",
    "#000044": "--on-phase",
}
_COLOUR = {variable: stand_in for stand_in, variable in _STANDS_FOR.items()}
_INK, _QUIET, _LINE, _CARD = (_COLOUR[name] for name in ("--text", "--quiet", "--line", "--card"))
_TONE: dict[Tone, str] = {"good": _COLOUR["--good"], "bad": _COLOUR["--bad"], "unsure": _COLOUR["--unsure"]}
_SETTINGS = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": _POINTS,
    "text.color": _INK,
    "axes.edgecolor": _LINE,
    "axes.labelcolor": _QUIET,
    "xtick.color": _QUIET,
    "ytick.color": _INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "path.simplify": False,
}


@dataclass(frozen=True)
class Interval:
    """One row of the interval plot."""

    label: str
    speedup: Speedup | None
    decision: str


def phases(before: Diagnosis | None, after: Diagnosis | None, size: Size = "wide") -> str:
    """Stacked bars of the mean milliseconds a step, before and after, on one scale."""
    rows = [(label, diagnosis) for label, diagnosis in (("before", before), ("after", after)) if diagnosis and diagnosis.phases]
    spoken = "; ".join(
        f"{label}: " + ", ".join(f"{name} {figures.ms(diagnosis.phases[name].mean_ms)}" for name in phase_names(diagnosis))
        for label, diagnosis in rows
    )

    def draw(axes: Axes) -> None:
        longest = max((sum(stat.mean_ms for stat in diagnosis.phases.values()) for _, diagnosis in rows), default=1.0)
        for place, (label, diagnosis) in enumerate(rows):
            parts = [(name, diagnosis.phases[name].mean_ms, f"--phase-{name.lower()}") for name in phase_names(diagnosis)]
            stack(axes, -place, parts, longest, size)
            axes.text(0, -place + 0.37, label, va="bottom", ha="left", color=_INK, fontweight="bold")
        axes.set_xlim(0, longest)
        axes.set_ylim(-len(rows) + 0.55, 0.75)
        axes.set_yticks([])
        axes.set_xlabel("milliseconds a step")

    return svg(draw, f"phases-{size}", size, height=0.75 + 0.72 * len(rows), spoken=f"Mean time of each phase in a step. {spoken}")


def intervals(rows: Sequence[Interval], size: Size = "wide") -> str:
    """One row an experiment: mean and 95 % interval of its speed-up beside the line at 1.0."""
    spoken = "; ".join(f"{row.label}: {figures.interval(row.speedup)}, {figures.words(row.decision)}" for row in rows)

    def draw(axes: Axes) -> None:
        for place, row in enumerate(rows):
            _interval(axes, -place, row, size)
        low = min((row.speedup.ci_low for row in rows if row.speedup), default=1.0)
        high = max((row.speedup.ci_high for row in rows if row.speedup), default=1.0)
        margin = max(high - min(low, 1.0), 0.05) * 0.06
        axes.set_xlim(min(low, 1.0) - margin, max(high, 1.0) + margin)
        axes.set_ylim(-len(rows) + 0.55, 0.75)
        axes.set_yticks([])
        axes.set_xlabel("speed-up (1.0 = as before)")

    return svg(
        draw,
        f"intervals-{size}",
        size,
        height=0.7 + 0.62 * len(rows),
        spoken=f"Speed-up of each experiment with its 95 % interval. {spoken}",
    )


def interval_rows(experiments: Sequence[Experiment], combined: Verdict | None) -> tuple[Interval, ...]:
    """The rows of the plot: each experiment, then all accepted ones together."""
    rows = [Interval(_label(tried), tried.verdict.speedup if tried.verdict else None, tried.decision) for tried in experiments]
    if combined:
        rows.append(Interval("all accepted together", combined.speedup, combined.verdict))
    return tuple(rows)


def _label(experiment: Experiment) -> str:
    return figures.visible(f"{experiment.n}  {experiment.knob}" + (f" = {experiment.value}" if experiment.value else ""))


def colour(variable: str) -> str:
    """What stands for a CSS variable of the page while a chart is drawn."""
    return _COLOUR[variable]


def stack(axes: Axes, place: float, parts: Sequence[tuple[str, float, str]], longest: float, size: Size) -> None:
    """One horizontal bar of (name, length, CSS variable of its colour); names stand inside where they fit."""
    room = _INCHES[size] * 72 / _POINTS * 1.9  # characters that fit into the whole width, cautiously
    left = 0.0
    for name, length, variable in parts:
        axes.barh(
            place,
            length,
            left=left,
            height=0.62,
            color=_COLOUR.get(variable, _COLOUR["--phase-other"]),
            edgecolor=_CARD,
            linewidth=1.5,
            zorder=2,
        )
        figure = figures.number(length)
        for text in (f"{name} {figure}", name):
            if length / longest * room > len(text) + 1.5:
                axes.text(left + length / 2, place, text, va="center", ha="center", color=_COLOUR["--on-phase"], zorder=3)
                break
        left += length


def _interval(axes: Axes, place: float, row: Interval, size: Size) -> None:
    tone = TONES.get(row.decision, "unsure")
    label = figures.short(row.label, 64 if size == "wide" else 26)
    said = f"{figures.interval(row.speedup)} {MARKS[tone]}" + (f" {figures.words(row.decision)}" if size == "wide" else "")
    beside = {"transform": axes.get_yaxis_transform(), "va": "bottom", "parse_math": False}
    axes.text(0, place + 0.14, label, color=_INK, **beside)
    axes.text(1, place + 0.14, said, color=_QUIET, ha="right", **beside)
    line = place - 0.06
    axes.axhline(line, color=_LINE, linewidth=0.6, zorder=0)
    axes.vlines(1.0, line - 0.24, line + 0.16, color=_QUIET, linewidth=1.2, linestyle=(0, (2, 1.5)), zorder=1)
    if row.speedup is None:
        return
    mean = row.speedup.mean
    reach = [[max(mean - row.speedup.ci_low, 0.0)], [max(row.speedup.ci_high - mean, 0.0)]]
    look = {"fmt": "o", "markersize": 6.5, "capsize": 4, "elinewidth": 2.2, "capthick": 2.2}
    axes.errorbar(mean, line, xerr=reach, color=_TONE[tone], zorder=3, **look)


def svg(draw: Callable[[Axes], None], name: str, size: Size, *, height: float, spoken: str) -> str:
    """The chart that `draw` makes, as an inline `<svg>`; `name` is unique on its page, `spoken` says what it shows."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context({**_SETTINGS, "svg.hashsalt": f"trainflash-{name}"}):
        figure: Figure = Figure(figsize=(_INCHES[size], height), layout="constrained")
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.tick_params(axis="x", length=3)
        draw(axes)
        out = StringIO()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph")  # the browser has its own fonts for letters that matplotlib's lacks
            figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _inline(out.getvalue(), name, spoken)


def _inline(svg: str, name: str, spoken: str) -> str:
    """The `<svg>` element alone: named, without fixed size, ids unique on the page, colours as variables."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r' d="[^"]*"', lambda path: re.sub(r"(\.\d)\d+", r"\1", path.group()), svg)  # a tenth of a point is finer than a screen
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r"#0000[1-4][0-9a-f]\b", lambda match: f"var({_STANDS_FOR[match.group()]})", svg)
    opening = re.search(r'viewBox="([^"]+)"', svg)
    assert opening is not None, "matplotlib writes a viewBox"
    spoken = figures.visible(spoken).replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    head = f'<svg role="img" aria-label="{spoken}" viewBox="{opening.group(1)}" xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    return head + svg[svg.index(">") + 1 :]
