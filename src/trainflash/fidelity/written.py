"""The files that a program writes of its own accord, such as metrics as JSON lines, histograms and plots: as often, and the same.

They are looked at in the layer of the run when it has ended, whoever wrote them and however. Two files are of one kind where their names
differ in numbers, dates or run names alone. Of text the records are counted and kept, to be compared like what is printed; of other files
their number and their size. A run that was stopped leaves what it had not flushed behind, so there only a difference counts that buffers
cannot make. What a second run of the baseline does not do as often is left to chance.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash.fidelity.outputs import View, files
from trainflash.fidelity.reuse import Run
from trainflash.schema import Check, Fidelity, Sandbox, write_atomically

CHECK = "written records"
FOLDER = "written"  # in a run's own folder: copies of its texts, and the listing
_LISTING = "listing.json"
_MOST_TEXT_BYTES = 8 << 20  # of one file; longer ones are counted and not kept
_MOST_KEPT_BYTES = 64 << 20  # of all that are kept
_BUFFER_BYTES = 2 * 8192  # own: what a stopped program may not have flushed of one file, io.DEFAULT_BUFFER_SIZE, in either run
_SIZE_PART = 0.2  # own: two sizes nearer to each other are equal; compression and the time of day move them
_OWN_NAME = re.compile(r"[0-9A-Za-z]*\d[0-9A-Za-z]*")  # a part of a name with a digit in it: a step, a date, a run's identity
_NUMBER = re.compile(rb"\d+")
# Checkpoints have checks of their own; sources, locks and a library's caches are no records; a profiler's trace is its instrument's.
_NO_RECORDS = (
    ".pt", ".pth", ".ckpt", ".bin", ".safetensors", ".py", ".pyc", ".so", ".lock", ".arrow", ".pid",
    ".pt.trace.json", ".pt.trace.json.gz", ".prof", ".pstats",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """What a run left of one kind of file. `records`: lines of texts, or numbers where each text is one line; None: no text."""

    files: int
    size: int  # bytes
    records: int | None


def keep(view: View, sandbox: Sandbox, run_dir: Path) -> None:
    """Look at what was written below the repository, and keep the texts of it. A file that cannot be read tells nothing."""
    target, kept, found = run_dir / FOLDER, 0, {}
    for path, name in files(view, sandbox):
        if name.endswith(_NO_RECORDS):
            continue
        try:
            size = path.stat().st_size
            with path.open("rb") as file:
                data = file.read(_MOST_TEXT_BYTES + 1)
        except OSError:
            continue
        text = b"\0" not in data
        found[name] = {"size": size, "records": _records(data) if text and size <= _MOST_TEXT_BYTES else None}
        if text and size <= _MOST_TEXT_BYTES and kept + size <= _MOST_KEPT_BYTES:
            kept += size
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / name)
    target.mkdir(parents=True, exist_ok=True)
    write_atomically(target / _LISTING, json.dumps(found))


def _records(text: bytes) -> int:
    lines = text.count(b"\n")
    return lines if lines > 1 else len(_NUMBER.findall(text))


def texts(run: Run) -> Iterator[tuple[str, Path]]:
    """The kept texts of a run, each with the kind of its name; those that come first in order of their names first."""
    folder = run.log.parent / FOLDER
    for name in sorted(_listing(run) or ()):
        if (folder / name).is_file():
            yield kind_of(name), folder / name


def kind_of(name: str) -> str:
    """The name of a file with `#` for each part in it that has a digit."""
    return _OWN_NAME.sub("#", name)


def kinds(run: Run) -> dict[str, Kind] | None:
    """What the run left, by kind; None where nobody looked."""
    listing = _listing(run)
    if listing is None:
        return None
    found: dict[str, Kind] = {}
    for name, facts in listing.items():
        before = found.get(kind_of(name), Kind(0, 0, 0))
        known = before.records is not None and facts["records"] is not None
        records = before.records + facts["records"] if known else None
        found[kind_of(name)] = Kind(before.files + 1, before.size + facts["size"], records)
    return found


def _listing(run: Run) -> dict[str, dict] | None:
    try:
        return json.loads((run.log.parent / FOLDER / _LISTING).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def judge(found: Fidelity, old: Run, new: Run, *, run: Callable[[str], Run | None]) -> Fidelity:
    """`found`, with whether the candidate writes as often as the baseline. `run` makes a further run of the baseline: `rerun`."""
    ours, theirs = kinds(old), kinds(new)
    if not ours or theirs is None:
        return found
    other = {name: said for name, kind in sorted(ours.items()) if (said := _difference(kind, theirs.get(name), old, new))}
    again = run("rerun") if other else None
    repeated = kinds(again) if again is not None else None
    if other and repeated is None:
        notes = (
            *found.notes,
            f"files are written otherwise, and no second run of the baseline tells whether it always writes so: {_told(other)}",
        )
        return replace(found, notes=notes)
    proven = {name: said for name, said in other.items() if not _difference(ours[name], repeated.get(name), old, again)}
    if not proven:
        return replace(found, checks=(*found.checks, Check(CHECK, True, f"{len(ours)} kinds of files, as often")))
    check = Check(CHECK, False, _told(proven))
    changed = tuple(dict.fromkeys((*found.changed, "cadence")))
    reasons = (*(found.reasons if found.verdict == "changed" else ()), f"{CHECK}: {check.evidence}")
    return replace(found, verdict="changed", changed=changed, checks=(*found.checks, check), reasons=reasons)


def _told(other: dict[str, str]) -> str:
    (name, said), *more = other.items()
    return f"{name}: {said}{f', and {len(more)} more' if more else ''}"


def _difference(ours: Kind, theirs: Kind | None, old: Run, new: Run) -> str:
    """What the second run wrote more or less of one kind than the first, in words; "": nothing that counts."""
    theirs = theirs or Kind(0, 0, 0 if ours.records is not None else None)
    if old.record.whole and new.record.whole:
        if ours.records is not None and theirs.records is not None:
            same = ours.records == theirs.records
            return "" if same else f"{ours.records} records → {theirs.records}"
        if ours.files != theirs.files:
            return f"{ours.files} files → {theirs.files}"
        return _sizes(ours.size, theirs.size, 0)
    if not old.record.updates or not new.record.updates:
        return ""
    scaled = round(theirs.size * old.record.updates / new.record.updates)
    said = _sizes(ours.size, scaled, _BUFFER_BYTES * max(ours.files, theirs.files))
    return f"{said} in {old.record.updates:,} updates" if said else ""


def _sizes(ours: int, theirs: int, slack: int) -> str:
    apart = abs(ours - theirs)
    return f"{ours:,} bytes → {theirs:,}" if apart > slack and apart > _SIZE_PART * max(ours, theirs) else ""
