"""Watches processes for some seconds: stacks through py-spy, CPU and waiting of every thread, GPUs and machine."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.live import kernel, permission, places
from trainflash.live.stacks import Look, Recording, Refused, Stack, find_spy, look
from trainflash.live.target import Target, is_helper, is_python, looks_like_launcher, rank, uses_torch
from trainflash.live.threads import trains_beside
from trainflash.schema import Telemetry
from trainflash.schema.live import Lack, Role
from trainflash.telemetry import Watch, derive, processes
from trainflash.telemetry.reading import HOST, pairs, text

OnProgress = Callable[[str, int, int], None]

_TICK_S = 0.5
_LOOK_EVERY = 2  # ticks between two looks at who computes in Python
_MOST_WATCHED = 24  # processes whose stacks are sampled
_MOST_LOOKED_AT = 4
_HERTZ = 20.0
_ALL_HERTZ = 160.0  # of all processes together: py-spy takes about 1 ms of CPU a sample
_LEAST_LEFT_S = 2.0  # a process that begins later is not sampled
_FIRST_LOOKS = 3
_LOOKS_INSTEAD = 50  # single looks at a process whose samples did not come
_LOOKS_INSTEAD_S = 10.0
_MOST_UNREAD = 0.2  # own: as many lost samples move a share by so much
_NS_PER_S = 1e9


@dataclass(frozen=True)
class Counters:
    """One thread since it began."""

    name: str
    run_s: float
    queued_s: float  # ready to run, but without a core
    switches: int  # times it gave its core away by itself


@dataclass
class Watched:
    """One Python process while it is watched; everything is over the time that it was seen."""

    pid: int
    parent: int
    argv: tuple[str, ...]
    cwd: str | None
    rank: int | None
    torch: bool
    first: processes.Stat
    last: processes.Stat
    from_s: float
    to_s: float
    before: dict[int, Counters]
    after: dict[int, Counters] = field(default_factory=dict)
    io_before: processes.Io | None = None
    io_after: processes.Io | None = None
    recording: Recording | None = None
    stacks: dict[int, list[Stack]] = field(default_factory=dict)
    unread: int = 0  # stacks that the sampler could not read, of all threads together
    looks: list[Look] = field(default_factory=list)
    waits: dict[int, tuple[str | None, str | None]] = field(default_factory=dict)  # by thread
    beside: int | None = None  # the thread that trains, where it is not the main one
    waits_for: tuple[str | None, str | None] = (None, None)
    reads_terminal: bool = False
    ended: bool = False
    role: Role = "helper"
    doing: tuple[places.Place, ...] = ()

    @property
    def seconds(self) -> float:
        return max(self.to_s - self.from_s, 1e-3)

    @property
    def thread(self) -> int:
        """The thread that is looked at: the main one, whose number is the process's, unless another one trains."""
        return self.pid if self.beside is None else self.beside

    @property
    def main_stacks(self) -> list[Stack]:
        """Samples of that thread."""
        return [stack for stack in self.stacks.get(self.thread, ()) if stack]

    @property
    def cpu(self) -> float:
        """Cores, all threads."""
        return max(0.0, self.last.cpu_s - self.first.cpu_s) / self.seconds

    @property
    def reads_bytes_s(self) -> float | None:
        if self.io_before is None or self.io_after is None:
            return None
        return max(0, self.io_after.read - self.io_before.read) / self.seconds

    def thread_cpu(self, tid: int) -> float | None:
        """Cores of one thread; None when it was not there at both ends."""
        return self._per_s(tid, "run_s")

    def thread_queued(self, tid: int) -> float | None:
        """Share of the time in which a thread was ready and had no core."""
        return self._per_s(tid, "queued_s")

    def active(self, tid: int) -> float | None:
        """Share of the time in which a thread computed, or would have if it had got a core."""
        cpu, queued = self.thread_cpu(tid), self.thread_queued(tid)
        return None if cpu is None or queued is None else min(1.0, cpu + queued)

    def switches_s(self, tid: int) -> float | None:
        return self._per_s(tid, "switches")

    def share(self, *doing: str) -> float:
        """Share of the main thread's samples in which it did one of these."""
        return sum(each.doing in doing for each in self.doing) / len(self.doing) if self.doing else 0.0

    def python_share(self) -> float | None:
        """Share of the looks in which the main thread computed in Python, not in a library's native code; None without looks."""
        held = [each.holds_gil == self.thread for each in self.looks]
        return sum(held) / len(held) if held else None

    def _per_s(self, tid: int, name: str) -> float | None:
        if tid not in self.after:
            return None
        begin = getattr(self.before[tid], name) if tid in self.before else 0
        return max(0.0, getattr(self.after[tid], name) - begin) / self.seconds


@dataclass(frozen=True)
class Window:
    """Everything that was seen."""

    target: Target
    seconds: float
    watched: tuple[Watched, ...]
    telemetry: Telemetry | None
    lacks: tuple[Lack, ...]

    def of(self, role: Role) -> tuple[Watched, ...]:
        return tuple(each for each in self.watched if each.role == role)


def watch(target: Target, seconds: float, on_progress: OnProgress, root: Path = HOST) -> Window:
    """Watch `target` for `seconds`. Raises `UsageError` when it ends meanwhile."""
    spy = find_spy()
    lacks = [] if spy else [permission.no_spy()]
    if spy:
        try:
            _readable(spy, target.roots[0])
        except Refused as bad:
            lacks.append(permission.refused(target.roots[0], str(bad), root))
            spy = None
    watcher = Watch(lambda: list(target.roots), root=root)
    seen: dict[int, Watched] = {}
    samples = []
    began = time.monotonic()
    ticks = 0
    try:
        while True:
            samples.append(watcher.sample())
            now = time.monotonic()
            left = seconds - (now - began)
            _meet(watcher.tree, seen, now, root)
            alive = [each for pid in target.roots if (each := watcher.tree.get(pid)) and each.state not in "ZX"]
            if not alive:
                raise _ended(target, now - began)
            _record(seen, spy, left)
            if spy and ticks % _LOOK_EVERY == 0:
                _look(spy, seen, target)
            on_progress(f"watching {target.pid}", min(round(now - began), round(seconds)), round(seconds))
            if left <= 0:
                break
            ticks += 1
            time.sleep(min(_TICK_S, max(0.05, left)))
        for each in seen.values():
            _close(each, root)
        lasted = time.monotonic() - began
    finally:
        watcher.close()
        _finish(seen)
    if spy:
        _look_instead(spy, seen)
    for each in seen.values():
        each.beside = trains_beside(each.pid, each.stacks, each.thread_cpu)
        each.waits_for = each.waits.get(each.thread, (None, None))
        each.role = _role(each, seen, target, root)
        tell = places.worker_place if each.role == "worker" else places.place
        each.doing = tuple(tell(stack) for stack in each.main_stacks)
    _leave_launchers(seen)
    kept = tuple(each for each in seen.values() if not each.ended or each.stacks)
    lacks += [permission.unread(each.pid, each.unread, len(each.main_stacks)) for each in kept if _much_unread(each)]
    return Window(target, lasted, kept, derive(samples), tuple(lacks))


def _much_unread(each: Watched) -> bool:
    return each.role in ("training", "worker") and each.unread > _MOST_UNREAD * (each.unread + len(each.main_stacks))


def _readable(spy: str, pid: int) -> None:
    """Raises `Refused` when no look at `pid` succeeds; one alone may meet a moment of change."""
    for _ in range(_FIRST_LOOKS - 1):
        with contextlib.suppress(Refused):
            look(spy, pid)
            return
    look(spy, pid)


def _meet(tree: dict[int, processes.Stat], seen: dict[int, Watched], now: float, root: Path) -> None:
    """Note what is new, what goes on and what has ended."""
    for pid, stat in tree.items():
        if pid in seen:
            if stat.state not in "ZX":
                seen[pid].last, seen[pid].to_s = stat, now
        elif stat.state not in "ZX" and is_python(pid, root) and not is_helper(pid, root):
            seen[pid] = Watched(
                pid, stat.parent, processes.argv(pid, root), processes.cwd(pid, root), rank(pid, root), uses_torch(pid, root),
                stat, stat, now, now, counters(pid, root), io_before=processes.io(pid, root),
            )  # fmt: skip
    for pid, each in seen.items():
        each.ended = pid not in tree or tree[pid].state in "ZX"


def _record(seen: dict[int, Watched], spy: str | None, left: float) -> None:
    for each in seen.values():
        if each.recording is not None and each.recording.failed and not each.ended:
            each.recording.finish()
            each.recording = None  # once more, as long as there is time
    running = sum(each.recording is not None for each in seen.values())
    new = [each for each in seen.values() if each.recording is None and not each.ended]
    if spy is None or left < _LEAST_LEFT_S:
        return
    hertz = max(4.0, min(_HERTZ, _ALL_HERTZ / max(1, len(seen))))
    for each in new[: max(0, _MOST_WATCHED - running)]:
        each.recording = Recording(spy, each.pid, left, hertz)


def _look(spy: str, seen: dict[int, Watched], target: Target) -> None:
    """Who computes in Python now, in the training processes."""
    mains = [each for each in seen.values() if not each.ended and _started(each, seen, target)]
    for each in mains[:_MOST_LOOKED_AT]:
        try:
            each.looks.append(look(spy, each.pid))
        except Refused:
            continue


def _close(each: Watched, root: Path) -> None:
    if each.ended:
        return
    each.after = counters(each.pid, root)
    each.io_after = processes.io(each.pid, root)
    each.waits = {tid: kernel.waits_for(each.pid, tid, root) for tid in each.after}
    each.reads_terminal = kernel.is_terminal_input(each.pid, each.pid, root)


def _finish(seen: dict[int, Watched]) -> None:
    """Collect all recordings; one that the caller no longer wants (an exception, Ctrl-C) ends at once."""
    for each in seen.values():
        if each.recording is not None:
            if not each.after and not each.ended:
                each.recording.stop()
            each.stacks = each.recording.finish()
            each.unread = each.recording.unread
            each.recording = None


def _look_instead(spy: str, seen: dict[int, Watched]) -> None:
    """Look at what lives on and was not sampled: py-spy gives a recording up where its first looks meet moments of change."""
    missed = [each for each in seen.values() if not each.ended and not each.stacks][:_MOST_WATCHED]
    until = time.monotonic() + _LOOKS_INSTEAD_S
    for _ in range(_LOOKS_INSTEAD if missed else 0):
        for each in missed:
            if time.monotonic() > until:
                return
            with contextlib.suppress(Refused):
                for thread, stack in look(spy, each.pid).stacks.items():
                    each.stacks.setdefault(thread, []).append(stack)


def counters(pid: int, root: Path = HOST) -> dict[int, Counters]:
    """Of all threads of a process; nanosecond counters where the kernel has them."""
    found = {}
    for thread in processes.threads(pid, root):
        folder = root / f"proc/{pid}/task/{thread.pid}"
        words = (text(folder / "schedstat") or "").split()
        ran, queued = (int(words[0]) / _NS_PER_S, int(words[1]) / _NS_PER_S) if len(words) >= 2 else (thread.cpu_s, 0.0)
        switches = pairs(text(folder / "status")).get("voluntary_ctxt_switches", 0)
        found[thread.pid] = Counters(thread.name, ran, queued, switches)
    return found


def _role(each: Watched, seen: dict[int, Watched], target: Target, root: Path) -> Role:
    stacks, started = each.main_stacks, _started(each, seen, target)
    if stacks:
        if any(places.is_worker(stack) for stack in stacks):
            return "worker"
        if sum(places.is_launcher(stack) for stack in stacks) > 0.9 * len(stacks):
            return "launcher"
        doing = Counter(places.place(stack).doing for stack in stacks)
        trains = sum(doing[name] for name in (*places.COMPUTING, places.COLLECTIVE, places.WAITS_FOR_DATA))
        spawned = any("torch/multiprocessing/spawn.py" in frame.file for frame in stacks[0])
        return "training" if started or (each.torch and (trains or spawned)) else "helper"
    if looks_like_launcher(each.pid, root):
        return "launcher"
    return "training" if started else "worker" if _forked(each, seen) and each.torch else "helper"


def _started(each: Watched, seen: dict[int, Watched], target: Target) -> bool:
    """Whether this is the program itself or one of its ranks, not something that one of them has started."""
    return each.pid in target.roots or (each.rank is not None and not _forked(each, seen))


def _forked(each: Watched, seen: dict[int, Watched]) -> bool:
    """Whether the process was made by multiprocessing: its command line is its parent's, or that of a spawned child."""
    parent = seen.get(each.parent)
    return parent is not None and (parent.argv == each.argv or any("spawn_main" in word for word in each.argv))


def _leave_launchers(seen: dict[int, Watched]) -> None:
    """A process that waits for its children is a launcher only while one of them trains."""
    for each in seen.values():
        if each.role == "launcher" and not any(other.role == "training" and _below(other, each.pid, seen) for other in seen.values()):
            each.role = "training"


def _below(each: Watched, pid: int, seen: dict[int, Watched]) -> bool:
    parent: Watched | None = each
    while parent is not None:
        if parent.parent == pid:
            return True
        parent = seen.get(parent.parent)
    return False


def _ended(target: Target, after_s: float) -> UsageError:
    return UsageError(
        f"process {target.roots[0]} ended after {after_s:.1f} s of watching",
        "start it again under `trainflash diagnose -- CMD`, or watch one that runs longer",
    )
