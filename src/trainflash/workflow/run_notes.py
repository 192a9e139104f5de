"""What the record of a run says that its owner should know, as notes for the diagnosis."""

from __future__ import annotations

from pathlib import Path

from trainflash import launch
from trainflash.schema import RunRecord, read_document
from trainflash.workflow.session import some_of

TOLD_BYTES = 50 << 20  # outputs above this fill a disk where a program is started a hundred times


def of(run_dir: Path) -> tuple[str, ...]:
    """What the program could not write or start, what it wrote, where it connected to; () for a run that was killed before its record."""
    path = run_dir / "run.json"
    if not path.is_file():
        return ()
    record = read_document(RunRecord, path)
    notes = []
    if record.refused_writes:
        paths = some_of(record.refused_writes)
        notes.append(f"The program could not write {paths}: the sandbox protects it; name a folder in `writable` to allow it.")
    if record.outputs_bytes >= TOLD_BYTES:
        name, size = next(iter(record.outputs.items()))
        files = f"{record.outputs_files} files, {record.outputs_bytes >> 20} MiB"
        notes.append(f"The run wrote {files}, which are gone with it; the largest is {name}, {size >> 20} MiB.")
    if record.connections:
        notes.append(f"The program connected to {some_of(record.connections)}: what it did there is not undone with the sandbox.")
    what, mend = launch.daemons.refused(run_dir)
    if what:
        notes.append(f"{what[:1].upper()}{what[1:]}; {mend}.")
    return tuple(notes)
