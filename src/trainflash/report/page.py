"""The page of a finished tuning: one offline HTML file. Its only script searches the call tree, and without it the page is whole."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import jinja2
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers.diff import DiffLexer

from trainflash.report import figures, icicles, ledger, pictures, sites, step_pictures
from trainflash.report.icicles import Calls
from trainflash.report.rendering import template
from trainflash.report.step_pictures import Steps
from trainflash.report.tune import MARKS, TONES, TuneView, fidelity_words, headline, next_step, phase_names, step_ms
from trainflash.schema import CallTree, LogEntry, Plan


@dataclass(frozen=True)
class Drawn:
    """A call tree on the page: the picture, the kinds of boxes in it, and the same as text."""

    picture: Markup
    kinds: dict[str, str]
    text: str


def html(view: TuneView, log: Sequence[LogEntry], plan: Plan | None, steps: Steps | None = None, calls: Calls | None = None) -> str:
    """The whole page; it loads nothing, reads well dark, light, on a phone and on paper."""
    steps, calls = steps or Steps(), calls or Calls()
    trees = (_call_tree(calls.before, "calls-before"), _call_tree(calls.after, "calls-after"))
    top = step_pictures.top_ms(steps)
    rows = pictures.interval_rows(view.experiments, view.combined)
    phases = phase_names(view.before, view.after)
    return _template().render(
        view=view,
        log=log,
        plan=plan,
        head=headline(view),
        next_step=next_step(view),
        ledger=(ledger.TITLE, ledger.HEAD, ledger.rows(view.ledger), ledger.NOTE) if view.ledger else None,
        phases=phases,
        steps=(step_ms(view.before), step_ms(view.after)),
        phase_chart=_both_sizes(partial(pictures.phases, view.before, view.after)) if phases else None,
        interval_chart=_both_sizes(partial(pictures.intervals, rows)) if rows else None,
        timelines=[_both_sizes(partial(step_pictures.timeline, shown, label, top)) for label, shown in steps.named],
        warmup=[(label, shown.warmup_steps) for label, shown in steps.named],
        tail_chart=_both_sizes(partial(step_pictures.tails, steps)) if steps.named else None,
        diff=_diff(view.diff) if view.diff.strip() else None,
        trees=trees,
        script=_script() if any(trees) else None,
    )


def _call_tree(tree: CallTree | None, name: str) -> Drawn | None:
    boxes = icicles.boxes(tree)
    if not boxes:
        return None
    return Drawn(_both_sizes(partial(icicles.picture, boxes, name)), icicles.kinds(boxes), figures.visible(icicles.text(boxes)))


def _script() -> tuple[Markup, str]:
    """The search of call trees, and its digest: the page lets no other script run."""
    source = template("icicle.js").render()
    return Markup(source), base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()


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
    made.globals.update(marks=MARKS, tones=TONES, missing=figures.MISSING)
    made.globals.update(sites=sites)
    return made
