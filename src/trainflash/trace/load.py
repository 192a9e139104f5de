"""Reads one run's directory."""

from __future__ import annotations

import json
from bisect import bisect_left
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from trainflash.errors import ProgramFailed, UsageError
from trainflash.schema.notices import refused
from trainflash.schema.runs import PHASES
from trainflash.trace import between, compute_facts, device, generators, input_facts, stack_facts, trainings, unused_forwards
from trainflash.trace import facts as typed
from trainflash.trace import ranks as together
from trainflash.trace.accounting import Spans, occurrences, spans, step_of, steps, with_calls
from trainflash.trace.agreement import disagreements
from trainflash.trace.between import Sampled
from trainflash.trace.calls import CallTrace
from trainflash.trace.facts import Facts
from trainflash.trace.model import RankTrace, RepeatedCall, Samples, Trace, WorkerTrace
from trainflash.trace.repeats import repeated
from trainflash.trace.slim import FULL_RANKS, slim
from trainflash.trace.words import Codes, Words
from trainflash.trace.words import read as read_words

VERSION = "trainflash-probe.v1"


@dataclass(frozen=True)
class _Known:
    """One process without its events: those of many ranks are read one after the other."""

    header: dict
    codes: Codes
    run_dir: Path
    facts: Facts

    @property
    def pid(self) -> int:
        return int(self.header["pid"])

    @property
    def swallowed(self) -> dict[str, int]:
        return {place: int(entry["count"]) for place, entry in self.facts.newest("swallowed").get("places", {}).items()}

    def read(self) -> _Process:
        """The process with its events."""
        base_ns = int(self.header["base_ns"])
        words = read_words(self.run_dir / self.header["events"], self.codes, base_ns)
        return _Process(self.header, self.codes, self.run_dir, self.facts, words, device.read(self.run_dir, self.facts, base_ns))


@dataclass(frozen=True)
class _Process(_Known):
    words: Words
    device_marks: device.Marks | None


def load(run_dir: Path) -> Trace:
    """The trace of one run.

    Raises `ProgramFailed` when no training was seen, saying which: no torch imported, torch imported but no training step, or the
    probe could not enter (PYTHONPATH reset, `python -I`). Raises `UsageError` for a directory that is none, or files of another version of
    the probe. A tail that the process left half-written, or garbage after it, is dropped.
    """
    run_dir = Path(run_dir)
    if not run_dir.is_dir():
        raise UsageError(f"there is no run in {run_dir}", "run `trainflash diagnose` first")
    processes = [_known(run_dir, header) for header in _headers(run_dir)]
    repeats = repeated([(process.pid, str(process.header["role"]), process.facts) for process in processes])
    mains = [process for process in processes if process.header["role"] != "worker"]
    ranks = []
    sources: dict[tuple[tuple[str, int], ...], dict[str, int]] = {}  # 10,000 ranks that run the same files hold one list of them
    for process in mains:
        rank = _rank(process.read(), repeats.get(process.pid, ()))
        if rank.steps:
            rank = replace(rank, sources=sources.setdefault(tuple(rank.sources.items()), rank.sources))
            ranks.append(rank if rank.rank < FULL_RANKS else slim(rank))
    notices = _notices(run_dir)
    if not ranks:
        raise _no_training(processes, notices)
    parents = {process.pid: process.facts for process in mains}
    workers = [
        _worker(process.read(), parents, repeats.get(process.pid, ())) for process in processes if process.header["role"] == "worker"
    ]
    ours, others = trainings.longest(ranks)
    return Trace(
        run_dir=str(run_dir),
        ranks=ours,
        workers=tuple(sorted(workers, key=lambda worker: worker.process_start_ns)),
        notices=notices,
        others=(*others, *disagreements(ours)),
        stopped=(run_dir / "stopped.json").exists(),
    )


def _headers(run_dir: Path) -> list[dict]:
    headers = []
    for path in sorted(run_dir.glob("process-*.json")):
        try:
            header = json.loads(path.read_text())
        except (OSError, ValueError):
            continue  # the process died, or the disk was full, while it wrote its header
        if header.get("schema") != VERSION:
            raise UsageError(f"{path.name} was written by another version of the probe ({header.get('schema')})", "run the command again")
        headers.append(header)
    return headers


def _known(run_dir: Path, header: dict) -> _Known:
    codes = Codes({name: int(code) for name, code in header["codes"].items()}, tuple(header["phases"]))
    root = next(iter(header.get("own", [])), "")
    facts = typed.read(run_dir / header["facts"], root)
    return _Known(header, codes, run_dir, facts)


def _notices(run_dir: Path) -> tuple[str, ...]:
    path = run_dir / "notice.jsonl"
    if not path.exists():
        return ()
    notices = []
    for line in path.read_text(errors="replace").splitlines():
        try:
            notices.append(str(json.loads(line)["notice"]))
        except (ValueError, KeyError, TypeError):
            continue
    return tuple(dict.fromkeys(notices))


LET_IN = (
    "start the training with a plain `python` and let PYTHONPATH reach it; or put this at the top of the script that trains: "
    "`import os, sys; sys.path.append(os.environ['TRAINFLASH_PROBE']); import trainflash_probe`"
)


def _no_training(processes: list[_Known], notices: tuple[str, ...]) -> ProgramFailed:
    outside = [notice for notice in notices if "could not enter" in notice]
    if outside:
        return ProgramFailed(f"no training seen: {outside[0]} (python -I or -E, or PYTHONPATH was reset)", LET_IN)
    if not notices:
        return ProgramFailed(
            "no training seen: torch was not imported, or the probe could not enter (python -I or -E, or PYTHONPATH reset)",
            LET_IN,
        )
    what, mend = refused(notices)
    if what:
        return ProgramFailed(f"no training seen: {what}", mend)
    unwritten = [notice for notice in notices if "could not write" in notice]
    if unwritten:
        return ProgramFailed(f"no training seen: {unwritten[0]}", "make room or give access there, then run it again")
    if not any(notice.startswith("torch ") for notice in notices):
        return ProgramFailed(f"no training seen: {'; '.join(notices)}", LET_IN)
    if not processes:
        return ProgramFailed("no training step seen: torch was imported, but nothing was trained", "check that the command trains")
    return ProgramFailed(
        "no training step seen: the program loaded data or ran a model, but no update was completed",
        "let the command run for at least one training step",
    )


def _rank(process: _Process, repeats: tuple[RepeatedCall, ...]) -> RankTrace:
    words, codes, facts, header = process.words, process.codes, process.facts, process.header
    seen = with_calls(spans(words, codes), codes)
    announced, unused = unused_forwards.mark(seen, codes)
    sampled = _read_samples(process)
    fed, generated = generators.prolong(announced, codes, facts, sampled.due_ns, sampled.number)
    marks, divided = between.divide(fed, codes, facts, sampled)
    marks = with_calls(marks, codes)  # of what is left of a gap, too
    found = steps(marks, codes, words.steps)
    spent = occurrences(marks, found.start_ns)
    loaders = input_facts.with_samples(typed.loaders(facts, words, codes, typed.fetches(words, codes)), facts)
    training = [loader.iter_at_ns for loader in loaders if loader.role == "train"]
    epoch_at = np.sort(np.concatenate(training)) if training else np.zeros(0, dtype=np.int64)
    if not loaders:  # captured without facts
        epoch_at = _epochs_from_events(words, codes)
    rank, world_size = together.rank(facts, header)
    return RankTrace(
        pid=process.pid,
        rank=rank,
        world_size=world_size,
        argv=tuple(str(word) for word in header["argv"]),
        process_start_ns=int(header["start_ns"]),
        end_ns=int(words.t_ns[-1]) if len(words.t_ns) else int(header["start_ns"]),
        step_start_ns=found.start_ns,
        phase_ns={name: found.phase_ns[index] for index, name in enumerate(PHASES)},
        occurrences=spent,
        samples=_samples(process, sampled, marks, found.start_ns, divided, generated),
        device=str(facts.newest("device").get("device", "cpu")),
        epochs=len(epoch_at) or None,
        epoch_at_ns=epoch_at,
        loaders=loaders,
        repeated=repeats,
        data_functions=typed.data_functions(facts),
        settings=typed.settings(facts),
        written=typed.written(facts),
        startup=typed.startup(facts),
        evaluations=typed.evaluations(facts, spent["Eval"], unused),
        saves=typed.saves(facts),
        logs=typed.logs(facts),
        batch=typed.batch(facts),
        threads=typed.threads(facts),
        versions={"python": str(header["python"]), "torch": str(header["torch"]), **facts.newest("versions").get("versions", {})},
        swallowed=process.swallowed,
        dropped_events=words.dropped,
        steps_from=compute_facts.steps_from(facts),
        left_out=tuple(sorted({*compute_facts.left_out(facts), *input_facts.slowed(facts)})),
        computing=compute_facts.read_computing(facts),
        calls=_of_training(stack_facts.calls(facts), compute_facts.steps_from(facts)),
        peaks=stack_facts.peaks(facts),
        bare_modules=stack_facts.bare_modules(facts),
        forward_lines=between.forward_lines(facts),
        host=str(header.get("host", "")),
        sources=facts.newest("sources").get("files", {}),
        imported=tuple(dict.fromkeys(str(name) for told in facts.all("imported") for name in told.get("files", ()))),
        collectives=together.collectives(words, codes, marks, found.start_ns, facts),
        parallel=together.parallel(facts),
        device_timeline=device.timeline(process.device_marks, seen, found.start_ns, codes["step"]) if process.device_marks else None,
    )


def _of_training(calls: tuple[CallTrace, ...], since: int) -> tuple[CallTrace, ...]:
    """Recorded steps without those that turned out to be none."""
    return tuple(call for call in calls if call.step >= since)


def _epochs_from_events(words: Words, codes: Codes) -> np.ndarray:
    """Without facts: the loader that was fetched from most is the training loader."""
    fetched = words.code[(words.code >= codes["data_of"]) & (words.code < codes["iter_of"])] - codes["data_of"]
    if not len(fetched):
        return np.zeros(0, dtype=np.int64)
    return words.t_ns[words.code == codes["iter_of"] + np.argmax(np.bincount(fetched))]


def _read_samples(process: _Process) -> Sampled:
    words, codes, facts = process.words, process.codes, process.facts
    sampled = words.code >= codes["sample_of"]
    t, number = words.t_ns[sampled], words.code[sampled] - codes["sample_of"]
    due = _due(t, facts)
    places = {int(fact["id"]): facts.location(fact.get("at")) for fact in facts.all("place")}
    libraries = {int(fact["id"]): str(fact.get("library", "")) for fact in facts.all("place")}
    known = sorted(number for number, location in places.items() if location is not None)
    index = np.full(4096, -1, dtype=np.int64)
    index[known] = np.arange(len(known))
    weight = np.diff(t, prepend=t[:1])
    if len(weight) > 1:
        weight[0] = int(np.median(weight[1:]))
    known_stacks = stack_facts.stacks(facts)
    ids = sorted(known_stacks)
    of_place = np.full(4096, -1, dtype=np.int64)
    for fact in facts.all("place"):
        of_place[int(fact["id"])] = -1 if fact.get("stack") not in known_stacks else bisect_left(ids, fact["stack"])
    return Sampled(
        due,
        weight,
        number,
        index[number],
        tuple(places[number] for number in known),
        tuple(libraries[number] for number in known),
        of_place[number],
        tuple(known_stacks[each] for each in ids),
    )


def _due(t: np.ndarray, facts: Facts) -> np.ndarray:
    """When the timer went off, for samples noted at `t`: a long C call is interrupted only when it is over, often in another phase."""
    timer = facts.newest("sampling")
    if not timer or int(timer["interval_ns"]) <= 0:
        return t
    return t - (t - int(timer["armed_ns"])) % int(timer["interval_ns"])


def _samples(
    process: _Process,
    sampled: Sampled,
    marks: Spans | None,
    step_start: np.ndarray,
    divided: between.Divided | None = None,
    generated: generators.Generated | None = None,
) -> Samples:
    t = sampled.due_ns
    if marks is None:
        phase = np.full(len(t), PHASES.index("Data"), dtype=np.int64)
    else:
        before = np.searchsorted(marks.t_ns, t, side="right") - 1
        phase = np.where(before >= 0, marks.effective[np.maximum(before, 0)] if len(marks.t_ns) else 0, PHASES.index("Other"))
    if divided is not None:
        phase = divided.phase_of_samples(t, sampled.place, sampled.locations, phase)
    if generated is not None:
        phase = generated.phase_of_samples(t, phase)
    part = input_facts.parts(process.words, process.codes, t, worker=marks is None)
    return Samples(
        t,
        sampled.weight_ns,
        sampled.place,
        phase,
        step_of(t, step_start),
        sampled.locations,
        part,
        sampled.libraries,
        sampled.stack,
        sampled.stacks,
    )


def _worker(process: _Process, parents: dict[int, Facts], repeats: tuple[RepeatedCall, ...]) -> WorkerTrace:
    header = process.header
    parent = int(header["ppid"])
    loader = None
    for fact in parents[parent].all("iter") if parent in parents else ():
        if process.pid in fact.get("workers", ()):
            loader = int(fact["loader"])
    return WorkerTrace(
        pid=process.pid,
        parent=parent,
        loader=loader,
        process_start_ns=int(header["start_ns"]),
        fetches=typed.fetches(process.words, process.codes),
        samples=_samples(process, _read_samples(process), None, np.zeros(0, dtype=np.int64)),
        repeated=tuple(replace(call, loader=loader) for call in repeats),
        times=input_facts.sample_times(process.facts).get(-1),
        batched=bool(input_facts.batched(process.facts)),
        draws=input_facts.draws(process.facts).get(-1),
        joined_at=input_facts.joined(process.facts).get(-1),
        swallowed=process.swallowed,
        dropped_events=process.words.dropped,
        memory=input_facts.worker_memory(process.facts),
    )
