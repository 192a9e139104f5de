"""What `gate compare`, `run`, `update-baseline`, `history`, `ci`, `tests` and `validate` answer, as documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainflash.schema import to_plain
from trainflash.schema.gate_changes import CompareResult, GateTrend, GateValidation

_STATUS = {"fail": "rejected", "inconclusive": "inconclusive"}


def document(found: CompareResult | GateTrend | GateValidation) -> dict[str, Any]:
    """Any of the gate's answers with a `result`."""
    plain = to_plain(found)
    return {"schema": plain.pop("schema"), "status": _STATUS.get(found.result, "ok"), **plain}


def measured(files: Mapping[str, Path]) -> dict[str, Any]:
    """`gate run --no-compare`."""
    return {"schema": "gate_run.v1", "status": "ok", "files": {name: str(path) for name, path in files.items()}}


def updated(files: Sequence[Path], by: str) -> dict[str, Any]:
    """`gate update-baseline`."""
    return {"schema": "gate_update_baseline.v1", "status": "ok", "files": [str(path) for path in files], "by": by}


def written(command: str, path: Path) -> dict[str, Any]:
    """`gate ci` and `gate tests`."""
    return {"schema": f"{command}.v1", "status": "ok", "file": str(path)}
