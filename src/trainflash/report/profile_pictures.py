"""Charts of profiles as inline SVG, drawn as those of the tuning page are: deterministic, in colours that fit dark and light."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainflash.report import figures, pictures
from trainflash.report.profile_sheets import US_PER_MS, breakdown_rows
from trainflash.schema.profile_changes import ProfileComparison, ProfileHistory
from trainflash.schema.profiles import ProfileSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Parts of a profile take the colours of the phases that they are nearest to.
COLOURS = {
    "compute": "--phase-fwd", "communication": "--phase-opt", "copy": "--phase-h2d", "host": "--phase-data", "stall": "--phase-other",
    "other": "--phase-log",
}  # fmt: skip
TONES = {"pass": "good", "warn": "unsure", "fail": "bad", "inconclusive": "unsure"}
MOST_BARS = 12
NAME_WIDTH = {"wide": 52, "narrow": 24}


def breakdown(summary: ProfileSummary, size: pictures.Size = "wide") -> str:
    """One stacked bar of the window."""
    rows = breakdown_rows(summary)
    spoken = ", ".join(f"{name} {figures.percent(part.share_of_total)}" for name, part in rows)

    def draw(axes: Axes) -> None:
        pictures.stack(axes, 0.0, [(name, part.share_of_total * 100, COLOURS[name]) for name, part in rows], 100.0, size)
        axes.set_xlim(0, 100)
        axes.set_yticks([])
        axes.set_xlabel("percent of the window")

    return pictures.svg(draw, f"breakdown-{size}", size, height=1.2, spoken=f"Where the time goes: {spoken}")


def idle(summary: ProfileSummary, size: pictures.Size = "wide") -> str:
    """A bar for each cause of idle time."""
    causes = summary.idle.causes[:MOST_BARS] if summary.idle else ()
    rows = [(figures.words(each.cause), each.share_of_window * 100, figures.percent(each.share_of_window)) for each in causes]
    return _bars(rows, f"idle-{size}", size, "percent of the window", "--phase-data", "Idle time by cause")


def hot_ops(summary: ProfileSummary, size: pictures.Size = "wide") -> str:
    """A bar for each of the costliest ops."""
    rows = [
        (op.canonical_name, op.exclusive_duration / US_PER_MS, f"{figures.number(op.exclusive_duration / US_PER_MS)} ms")
        for op in summary.hot_ops[:MOST_BARS]
    ]
    return _bars(rows, f"ops-{size}", size, "milliseconds, exclusive", "--phase-fwd", "Costliest ops")


def steps(summary: ProfileSummary, size: pictures.Size = "wide") -> str:
    """Every step's duration, warm-up in a quiet colour."""
    found = summary.step_time.steps
    spoken = "; ".join(f"step {each.number}: {figures.ms(each.duration_us / US_PER_MS)}" for each in found[:MOST_BARS])

    def draw(axes: Axes) -> None:
        for warmup, colour in ((False, "--phase-fwd"), (True, "--phase-other")):
            mine = [(each.number, each.duration_us / US_PER_MS) for each in found if each.warmup == warmup]
            if mine:
                axes.bar([number for number, _ in mine], [value for _, value in mine], width=0.8, color=pictures.colour(colour))
        axes.set_ylabel("milliseconds")
        axes.set_xlabel("step")
        axes.xaxis.get_major_locator().set_params(integer=True)

    return pictures.svg(draw, f"steps-{size}", size, height=2.4, spoken=f"Step times. {spoken}")


def waiting(summary: ProfileSummary, size: pictures.Size = "wide") -> str:
    """Time of each rank in collectives: waiting and transfer."""
    rows = [each for each in summary.ranks if each.waiting_us is not None]
    spoken = "; ".join(f"rank {each.rank}: {figures.percent(each.waiting_share)} waiting" for each in rows)
    longest = max(((each.waiting_us or 0) + (each.transfer_us or 0) for each in rows), default=1.0) / US_PER_MS

    def draw(axes: Axes) -> None:
        for place, each in enumerate(rows):
            parts = [
                ("waiting", (each.waiting_us or 0) / US_PER_MS, "--phase-other"),
                ("transfer", (each.transfer_us or 0) / US_PER_MS, "--phase-opt"),
            ]
            pictures.stack(axes, -float(place), parts, longest, size)
        axes.set_yticks([-float(place) for place in range(len(rows))], [f"rank {each.rank}" for each in rows])
        axes.set_xlim(0, longest or 1.0)
        axes.set_xlabel("milliseconds in collectives")

    return pictures.svg(draw, f"waiting-{size}", size, height=0.8 + 0.42 * len(rows), spoken=f"Waiting in collectives. {spoken}")


def change(comparison: ProfileComparison, size: pictures.Size = "wide") -> str:
    """Both breakdowns as stacked bars of milliseconds a step (or a rank)."""
    rows = [
        (
            side,
            [
                (each.part, (getattr(each.per_unit_us, side) or 0) / US_PER_MS, COLOURS[each.part])
                for each in comparison.time_breakdown_share_delta
            ],
        )
        for side in ("before", "after")
    ]
    longest = max((sum(value for _, value, _ in parts) for _, parts in rows), default=1.0) or 1.0
    spoken = "; ".join(f"{side}: " + ", ".join(f"{name} {figures.ms(value)}" for name, value, _ in parts if value) for side, parts in rows)

    def draw(axes: Axes) -> None:
        for place, (_, parts) in enumerate(rows):
            pictures.stack(axes, -float(place), parts, longest, size)
        axes.set_yticks([0.0, -1.0], [side for side, _ in rows])
        axes.set_xlim(0, longest)
        axes.set_xlabel(f"milliseconds a {comparison.normalized_by}")

    return pictures.svg(draw, f"change-{size}", size, height=1.9, spoken=f"Where the time goes, before and after. {spoken}")


def trend(history: ProfileHistory, size: pictures.Size = "wide") -> str:
    """Median step time after each tracked change."""
    known = [(place, each) for place, each in enumerate(history.trend) if each.step_median_after_us is not None]
    spoken = "; ".join(
        f"{each.label or each.recorded_at_utc}: {figures.ms((each.step_median_after_us or 0) / US_PER_MS)}" for _, each in known
    )

    def draw(axes: Axes) -> None:
        values = [(each.step_median_after_us or 0) / US_PER_MS for _, each in known]
        axes.plot([place for place, _ in known], values, color=pictures.colour("--quiet"), linewidth=1.2, zorder=1)
        for (place, each), value in zip(known, values, strict=True):
            axes.plot(place, value, "o", color=pictures.colour(f"--{TONES[each.result]}"), markersize=6, zorder=2)
        axes.set_xticks(
            [place for place, _ in known],
            [figures.short(each.label or str(place + 1), 14) for place, each in known],
            rotation=30,
            ha="right",
        )
        axes.set_ylim(bottom=0)
        axes.set_ylabel("median step, ms")

    return pictures.svg(draw, f"trend-{size}", size, height=2.8, spoken=f"Median step time. {spoken}")


def _bars(rows: list[tuple[str, float, str]], name: str, size: pictures.Size, unit: str, colour: str, title: str) -> str:
    longest = max((value for _, value, _ in rows), default=1.0) or 1.0
    spoken = "; ".join(f"{label}: {said}" for label, _, said in rows)

    def draw(axes: Axes) -> None:
        for place, (label, value, said) in enumerate(rows):
            axes.barh(-place, value, height=0.3, color=pictures.colour(colour), zorder=2)
            axes.text(
                0,
                -place + 0.22,
                figures.short(figures.visible(label), NAME_WIDTH[size]),
                color=pictures.colour("--text"),
                va="bottom",
                parse_math=False,
            )
            axes.text(longest, -place + 0.22, said, color=pictures.colour("--quiet"), va="bottom", ha="right", parse_math=False)
        axes.set_yticks([])
        axes.set_xlim(0, longest)
        axes.set_ylim(-len(rows) + 0.6, 0.95)
        axes.set_xlabel(unit)

    return pictures.svg(draw, name, size, height=0.7 + 0.5 * max(len(rows), 1), spoken=f"{title}. {spoken}")
