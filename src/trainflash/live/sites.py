"""Sampled stacks → cost sites, as a diagnosis from the start has them, in the words of `trainflash.stacks`.

A running process tells less: backward has no sequence numbers that lead back to forward, so it stays a site of its own where it is called.
Shares are of the samples of one thread (the one that trains), or of the main threads of all its DataLoader workers together.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby

from trainflash.live import places
from trainflash.live.stacks import Frame
from trainflash.live.stacks import Stack as Sampled
from trainflash.live.window import Watched, Window
from trainflash.schema import Location, Site
from trainflash.stacks import LEAVES, Node, Stack, StackFrame, anchored, frame_at, kind_of, loop_lines, owners

MOST_SITES = 5  # own: as in a diagnosis from the start
DEEPEST = 160  # frames, from the leaf outwards: recursion may go on for thousands; as deep as the probe looks
_LOADER = ("torch/utils/data/dataloader.py", "torch/utils/data/_utils/fetch.py")
_WAITS = ("_try_get_data", "_get_data")
_PROBE = "/trainflash_probe/"


@dataclass(frozen=True)
class Cost:
    """A site, and the library's function below its line that most of its time goes to."""

    site: Site
    calls: Location | None = None  # None: the line itself, or it only waits for others
    calls_share: float = 0.0  # of the samples, like the site's own share


@dataclass
class _Gathered:
    frame: StackFrame
    under: Location | None
    stacks: list[Stack] = field(default_factory=list)  # below the frame
    called_back: Counter[str] = field(default_factory=Counter)  # of them, by `kind_of`


def cost_sites(window: Window) -> tuple[tuple[Cost, ...], ...]:
    """For each training process with stacks, lowest rank first: the places of its thread and its workers, costliest first."""
    training = sorted(window.of("training"), key=lambda each: (each.rank or 0, each.pid))
    return tuple(_of(each, window) for each in training if each.main_stacks)


def _of(each: Watched, window: Window) -> tuple[Cost, ...]:
    found = [*_main(each), *_workers([worker for worker in window.of("worker") if worker.parent == each.pid])]
    return tuple(sorted(found, key=lambda cost: -cost.site.share))


def _main(each: Watched) -> list[Cost]:
    weighed = [(frames_of(stack, each.cwd), places.phase(stack, told)) for stack, told in zip(each.main_stacks, each.doing, strict=False)]
    weighed = list(_with_forward(weighed))
    loops = loop_lines((frames, phase, 1.0) for frames, phase in weighed)
    found: dict[tuple[str, Location], _Gathered] = {}
    for frames, phase in weighed:
        at, under = anchored(frames, loops)
        if at is not None:
            _gather(found, phase, frames, at, under)
    return _costs(found, len(weighed), "main")


def _with_forward(weighed: list[tuple[Stack, str]]) -> Iterator[tuple[Stack, str]]:
    """A line that calls modules is in forward too while it stands in an operator of torch, which leaves no frame."""
    lines = {frames[own].location for frames, phase in weighed if phase == "Fwd" and (own := owners(frames)) is not None}
    for frames, phase in weighed:
        own = owners(frames) if phase == "Other" else None
        alone = own is not None and frames[own].location in lines and not any(frame.kind == "library" for frame in frames[own + 1 :])
        yield frames, "Fwd" if alone else phase


def _workers(workers: list[Watched]) -> list[Cost]:
    """Waiting for a request is time of a worker, but no place."""
    found: dict[tuple[str, Location], _Gathered] = {}
    whole = 0
    for each in workers:
        for stack, told in zip(each.main_stacks, each.doing, strict=False):
            whole += 1
            if told.doing == places.NO_REQUEST:
                continue
            frames = frames_of(places.of_worker(stack), each.cwd)
            at, under = anchored(frames, frozenset())
            if at is None:
                at = next((place for place in reversed(range(len(frames))) if frames[place].kind == "library"), None)
            if at is not None:
                _gather(found, "Data", frames, at, under)
    return _costs(found, whole, "worker")


def frames_of(stack: Sampled, cwd: str | None) -> Stack:
    """The stack from outside to its leaf: recursion as its innermost frame, then at most `DEEPEST` frames and the owner's deepest one."""
    once = [next(group) for _, group in groupby(stack, key=lambda frame: (frame.file, frame.function))]
    kept = once[:DEEPEST]
    if not any(places.is_own(frame) for frame in kept):
        kept += [frame for frame in once[DEEPEST:] if places.is_own(frame)][:1]
    return tuple(_frame(frame, cwd) for frame in reversed(kept) if _PROBE not in frame.file)


@lru_cache(maxsize=16384)
def _frame(frame: Frame, cwd: str | None) -> StackFrame:
    if places.is_own(frame):
        return frame_at(places.location(frame, cwd), True)
    return frame_at(Location(frame.file, frame.line, frame.function), False)


def _gather(found: dict[tuple[str, Location], _Gathered], phase: str, frames: Stack, at: int, under: Location | None) -> None:
    place = found.setdefault((phase, frames[at].location), _Gathered(frames[at], under))
    place.stacks.append(frames[at + 1 :])
    place.called_back[kind_of(frames, phase in ("Fwd", "Bwd"), phase == "Bwd")] += 1


def _costs(found: dict[tuple[str, Location], _Gathered], whole: int, role: str) -> list[Cost]:
    functions: dict[tuple[str, str, str], int] = defaultdict(int)
    for (phase, at), place in found.items():
        functions[(phase, at.file, at.function)] += len(place.stacks)
    return [_cost(phase, place, whole, role, functions[(phase, at.file, at.function)]) for (phase, at), place in found.items()]


def _cost(phase: str, place: _Gathered, whole: int, role: str, of_function: int) -> Cost:
    tree = Node(place.frame)
    for stack in place.stacks:
        tree.add(stack, 1)
    path = _to_library(_each_once(tree.way_down()))
    kind, most = place.called_back.most_common(1)[0]
    share = round(len(place.stacks) / whole, 4)
    site = Site(
        role=role,  # type: ignore[arg-type]
        phase=phase,
        location=place.frame.location,
        share=share,
        run_share=share,
        function_share=round(of_function / whole, 4),
        forward=0.0 if phase == "Bwd" else share,
        backward=share if phase == "Bwd" else 0.0,
        under=place.under,
        path=tuple(frame.location for frame in path),
        called_back=kind if 2 * most >= len(place.stacks) else "",
    )
    if path and _waits(path[-1]):
        return Cost(site)
    if place.frame.kind == "library":
        return Cost(site, place.frame.location, share)
    if not path or path[-1].location.file.startswith(_LOADER):
        return Cost(site)
    within = sum(any(_function(frame) == _function(path[-1]) for frame in stack) for stack in place.stacks)
    return Cost(site, path[-1].location, round(within / whole, 4))


def _to_library(way: list[StackFrame]) -> list[StackFrame]:
    """As far as the deepest function of a library that is no mere arithmetic: what that calls, it answers for. Or to where it waits."""
    way = way[: next((n for n, frame in enumerate(way, 1) if _waits(frame)), len(way))]
    found = [n for n, frame in enumerate(way) if frame.kind == "library" and frame.package not in LEAVES]
    return way[: found[-1] + 1] if found else way


def _each_once(way: list[StackFrame]) -> list[StackFrame]:
    """Functions that call one another again and again, each once."""
    return list({_function(frame): frame for frame in way}.values())


def _function(frame: StackFrame) -> tuple[str, str]:
    return frame.location.file, frame.location.function


def _waits(frame: StackFrame) -> bool:
    return frame.location.file == _LOADER[0] and frame.location.function.rpartition(".")[2] in _WAITS
