"""The call tree as a picture: a row for each depth, a box for each line, as wide as its share of the time."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from trainflash.report import figures, sites
from trainflash.report.pictures import Size, colour, svg
from trainflash.schema import CallNode, CallTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS = {"own": "your code", "library": "libraries", "torch": "torch", "python": "Python"}
DEEPEST = 18  # rows; below them a page is too long to be looked at
SPOKEN = 6  # lines that the picture's label names
TEXT_SHARE = 0.01  # of the time, to stand in the text version
_MOST: dict[Size, int] = {"wide": 300, "narrow": 140}  # boxes: a few hundred are 150 kB
_ROOM: dict[Size, float] = {"wide": 152.0, "narrow": 56.0}  # characters that fit into the whole width, cautiously
_LEAST: dict[Size, float] = {"wide": 0.004, "narrow": 0.01}  # of the width: three pixels
_POINTS: dict[Size, float] = {"wide": 8.0, "narrow": 9.0}
_ROW = 0.265  # inches
# Frames around every call of a module or an optimizer, which say nothing: what they call stands at their callers.
_PLUMBING = {
    "torch/nn/modules/module.py": ("_wrapped_call_impl", "_call_impl"),
    "torch/optim/optimizer.py": ("wrapper", "_use_grad", "maybe_fallback"),
    "torch/utils/_contextlib.py": ("decorate_context",),
}
_HANDED_ON = 0.97  # a frame outside of the owner's code that only calls one other, which takes all of its time, is left out too


@dataclass(frozen=True)
class Calls:
    """The call trees of the runs before and after; None: that run kept no stacks."""

    before: CallTree | None = None
    after: CallTree | None = None


@dataclass(frozen=True)
class Box:
    """One box: `left` and `share` are parts of the whole time, `depth` is its row; `through` are frames on the way that have no box."""

    node: CallNode
    left: float
    depth: int
    through: tuple[CallNode, ...] = ()

    @property
    def share(self) -> float:
        return self.node.share


def boxes(tree: CallTree | None) -> tuple[Box, ...]:
    """All boxes that may be drawn, each before those below it, as a reader of the tree would go."""
    found: list[Box] = []
    left = 0.0
    for root in sorted(tree.roots, key=lambda each: -each.share) if tree else ():
        found += _below(Box(root, left, 0))
        left += root.share
    return tuple(found)


def picture(drawn: Sequence[Box], name: str, size: Size = "wide") -> str:
    """The picture of some boxes; `name` is unique on its page."""
    chosen = _chosen(drawn, size)
    rows = 1 + max(box.depth for box in chosen)

    def draw(axes: Axes) -> None:
        for n, box in enumerate(chosen):
            _box(axes, n, box, size)
        axes.set_xlim(0, 100)
        axes.set_ylim(-rows, 0)
        axes.set_yticks([])
        axes.set_xlabel("percent of the time")

    lines = [box for box in drawn if box.node.kind == "own" and box.depth]
    spoken = "; ".join(f"{figures.place(box.node.location)} {figures.percent(box.share)}" for box in _largest(lines)[:SPOKEN])
    spoken = f"Call tree, each box as wide as its share of the time. {spoken}"
    made = svg(draw, f"{name}-{size}", size, height=0.55 + _ROW * rows, spoken=spoken)
    return _told(made, f"{name}-{size}", chosen)


def kinds(drawn: Sequence[Box]) -> dict[str, str]:
    """The kinds that there are, with what a person calls them."""
    there = {box.node.kind for box in drawn}
    return {kind: name for kind, name in KINDS.items() if kind in there}


def text(drawn: Sequence[Box]) -> str:
    """The same tree as indented lines."""
    shown = [box for box in drawn if box.share >= TEXT_SHARE]
    return "\n".join(f"{figures.percent(box.share):>8}  {'  ' * box.depth}{_place(box)}" for box in shown)


def _below(box: Box) -> Iterator[Box]:
    yield box
    if box.depth + 1 >= DEEPEST:
        return
    left = box.left
    for child in sorted(_callees(box.node), key=lambda each: -each.share):
        yield from _below(replace(child, left=left, depth=box.depth + 1))
        left += child.share


def _callees(node: CallNode, through: tuple[CallNode, ...] = ()) -> Iterator[Box]:
    """What a node calls, behind frames that only hand the call on."""
    for child in node.children:
        if _hands_on(child):
            yield from _callees(child, (*through, child))
        else:
            yield Box(child, 0.0, 0, through)


def _hands_on(node: CallNode) -> bool:
    if node.kind in ("own", "phase") or not node.children:
        return False
    if node.location.function.rpartition(".")[2] in _PLUMBING.get(node.location.file, ()):
        return True
    return len(node.children) == 1 and node.children[0].share >= _HANDED_ON * node.share


def _chosen(drawn: Sequence[Box], size: Size) -> list[Box]:
    """The largest boxes; a box is no wider than the one above it, which comes first, so no box hangs in the air."""
    wide = _largest([box for box in drawn if box.share >= _LEAST[size]])[: _MOST[size]]
    kept = {id(box) for box in wide}
    return [box for box in drawn if id(box) in kept] or list(drawn[:1])


def _largest(drawn: Sequence[Box]) -> list[Box]:
    return sorted(drawn, key=lambda box: -box.share)


def _box(axes: Axes, n: int, box: Box, size: Size) -> None:
    from matplotlib.patches import Rectangle

    phase = box.node.kind == "phase"
    inside = colour(f"--phase-{_phase(box).lower()}" if phase else f"--kind-{box.node.kind}")
    made = Rectangle((100 * box.left, -box.depth - 1), 100 * box.share, 1, facecolor=inside, edgecolor=colour("--card"), linewidth=0.8)
    made.set(gid=f"box{n}", clip_on=False, zorder=2 + n / 1e4)
    axes.add_patch(made)
    label = _label(box, int(box.share * _ROOM[size] - 1.2))
    if label:
        look = {"va": "center_baseline", "fontsize": _POINTS[size], "parse_math": False, "clip_on": False}
        ink = colour("--on-phase" if phase else "--text")
        said = axes.text(100 * (box.left + 0.6 / _ROOM[size]), -box.depth - 0.5, label, color=ink, zorder=2 + (n + 0.5) / 1e4, **look)
        said.set(gid=f"label{n}", in_layout=False)


def _label(box: Box, room: int) -> str:
    """What fits: of the owner's code the line first, of others' the function."""
    share = figures.percent(box.share)
    at = box.node.location
    if box.node.kind == "phase":
        said = (f"{_phase_name(box)} {share}", _phase_name(box), _phase(box))
    else:
        line, name = f"{at.file.rpartition('/')[2]}:{at.line}", sites.function(at.function)
        short = name.rpartition(".")[2]
        if box.node.kind == "own":
            said = (f"{line} in {name}, {share}", f"{line} in {name}", f"{line} {short}", line, f":{at.line}")
        else:
            said = (f"{name}, {line}, {share}", f"{name}, {line}", name, short)
    fitting = next((each for each in map(figures.visible, said) if len(each) <= room), "")
    return fitting or (figures.short(figures.visible(said[-1]), room) if room >= 5 else "")


def _told(made: str, name: str, chosen: Sequence[Box]) -> str:
    """The picture with what a search needs at each box, and what a pointer is told."""

    def box(found: re.Match[str]) -> str:
        each = chosen[int(found[1])]
        return f'<g class="box" data-depth="{each.depth}" data-share="{each.share:.5f}"><title>{html.escape(_tooltip(each))}</title>'

    made = re.sub(rf'<g id="{re.escape(name)}-box(\d+)">', box, made)
    made = re.sub(rf'<g id="{re.escape(name)}-label\d+">', '<g class="label">', made)
    made = re.sub(r"font-family: [^;\"]*; ", "", made)  # the page says it
    return re.sub(r"\n\s*", "\n", made)


def _tooltip(box: Box) -> str:
    """Line 1: the place; line 2: share and kind; then the frames on the way. The page's search looks at all but line 2."""
    kind = KINDS.get(box.node.kind)
    lines = [_place(box), f"{figures.percent(box.share)} of the time" + (f", {kind}" if kind else "")]
    lines += [f"through {figures.place(each.location)}" for each in box.through]
    return figures.visible("\n".join(lines))


def _place(box: Box) -> str:
    return _phase_name(box) if box.node.kind == "phase" else figures.place(box.node.location)


def _phase(box: Box) -> str:
    return box.node.location.function


def _phase_name(box: Box) -> str:
    return "Fwd+Bwd" if _phase(box) == "Fwd" else _phase(box)
