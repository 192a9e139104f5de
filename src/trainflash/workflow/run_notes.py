"""What the record of a run says that its owner should know, as notes for the diagnosis."""

from __future__ import annotations

from pathlib import Path

from trainflash.schema import RunRecord, read_document


def of(run_dir: Path) -> tuple[str, ...]:
    """Paths that the program could not write, and where it connected to; () for a run that was killed before it was written down."""
    path = run_dir / "run.json"
    if not path.is_file():
        return ()
    record = read_document(RunRecord, path)
    notes = []
    if record.refused_writes:
        paths = _some(record.refused_writes)
        notes.append(f"The program could not write {paths}: the sandbox protects it; name a folder in `writable` to allow it.")
    if record.connections:
        notes.append(f"The program connected to {_some(record.connections)}: what it did there is not undone with the sandbox.")
    return tuple(notes)


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
