"""The page of a finished tuning: one offline HTML file without scripts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial

import jinja2
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers.diff import DiffLexer

from trainflash.report import figures, pictures, step_pictures
from trainflash.report.rendering import template
from trainflash.report.step_pictures import Steps
from trainflash.report.tune import FIDELITY, MARKS, TONES, TuneView, fidelity_words, headline, next_step, phase_names, step_ms
from trainflash.schema import LogEntry, Plan


def html(view: TuneView, log: Sequence[LogEntry], plan: Plan | None, steps: Steps | None = None) -> str:
    """The whole page; it loads nothing, reads well dark, light, on a phone and on paper."""
    steps = steps or Steps()
    top = step_pictures.top_ms(steps)
    rows = pictures.interval_rows(view.experiments, view.combined)
    phases = phase_names(view.before, view.after)
    return _template().render(
        view=view,
        log=log,
        plan=plan,
        head=headline(view),
        next_step=next_step(view),
        phases=phases,
        steps=(step_ms(view.before), step_ms(view.after)),
        phase_chart=_both_sizes(partial(pictures.phases, view.before, view.after)) if phases else None,
        interval_chart=_both_sizes(partial(pictures.intervals, rows)) if rows else None,
        timelines=[_both_sizes(partial(step_pictures.timeline, shown, label, top)) for label, shown in steps.named],
        warmup=[(label, shown.warmup_steps) for label, shown in steps.named],
        tail_chart=_both_sizes(partial(step_pictures.tails, steps)) if steps.named else None,
        diff=_diff(view.diff) if view.diff.strip() else None,
    )


def _both_sizes(draw: Callable[[pictures.Size], str]) -> Markup:
    """Two drawings of which the page shows the one that fits its width."""
    return Markup(f'<div class="wide">{draw("wide")}</div><div class="narrow">{draw("narrow")}</div>')


def _diff(text: str) -> Markup:
    """The diff, a `span` for each line with its kind as a class inside; everything in it escaped."""
    lines = highlight(figures.visible(text), DiffLexer(stripnl=False), HtmlFormatter(nowrap=True)).splitlines()
    return Markup("".join(f'<span class="line">{line or " "}\n</span>' for line in lines))


@functools.cache
def _template() -> jinja2.Template:
    names = ("percent", "ms", "number", "seconds", "times", "interval", "cell", "tails", "delta", "loss", "count", "evidence", "words",
             "place", "command", "short", "clock", "visible", "whole_run", "memory", "cpu")  # fmt: skip
    made = template("report.html.j2", fidelity=fidelity_words, **{name: getattr(figures, name) for name in names})
    made.globals.update(marks=MARKS, tones=TONES, fidelity_names=FIDELITY, missing=figures.MISSING)
    return made
