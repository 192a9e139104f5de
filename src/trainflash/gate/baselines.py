"""Measured documents and stored baselines: read with every field checked, written with where they came from.

A baseline is `<machine_profile>.metrics.json` or `.eval.json`. Each field of the measured document has a seal (a digest of its value), so
that an edit by hand is refused by name. Seals guard against mistakes; who may write into the repository, the repository decides.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Literal

from trainflash import __version__
from trainflash.errors import UsageError
from trainflash.schema import GateEval, GateMetrics, from_plain, to_plain, write_document
from trainflash.schema.gate_changes import GateBaseline, Provenance

Kind = Literal["metrics", "eval"]
FOLDER = "bench/baselines"  # in the project
_KINDS: dict[str, tuple[Kind, type]] = {GateMetrics.SCHEMA: ("metrics", GateMetrics), GateEval.SCHEMA: ("eval", GateEval)}
_SEAL_CHARS = 16
_AGAIN = "measure it again: trainflash gate bench, or gate eval"
_UPDATE = "make it anew: trainflash gate update-baseline"


@dataclass(frozen=True)
class Loaded:
    """A measured document, with where it came from if it is a baseline."""

    kind: Kind
    document: GateMetrics | GateEval
    source: str
    provenance: Provenance | None = None


def path_of(folder: Path, machine_profile: str, kind: Kind) -> Path:
    """Where the baseline of a machine profile stands. Raises `UsageError` for a profile that is no file name."""
    if not machine_profile or "/" in machine_profile or machine_profile.startswith("."):
        raise UsageError(f"{machine_profile!r} is no machine profile", "trainflash gate env shows this machine's")
    return folder / f"{machine_profile}.{kind}.json"


def load(path: Path) -> Loaded:
    """A measured document or a baseline. Raises `UsageError` that names the file and the field that cannot be."""
    plain = _read(path)
    name = plain.get("schema")
    if name == GateBaseline.SCHEMA:
        return _baseline(plain, path)
    if name in _KINDS:
        kind, cls = _KINDS[name]
        return Loaded(kind, _checked(from_plain(cls, plain, str(path)), str(path), _AGAIN), str(path))
    known = ", ".join((*_KINDS, GateBaseline.SCHEMA))
    raise UsageError(f"{path}: is {name if name else 'of no schema'}, expected one of {known}", _AGAIN)


def stored(folder: Path, machine_profile: str, kind: Kind) -> Loaded | None:
    """The baseline of a machine profile; None where there is none yet.

    Raises `UsageError` for one that cannot be read, was edited, is of another profile, or does not say where it came from.
    """
    path = path_of(folder, machine_profile, kind)
    if not path.exists():
        return None
    found = load(path)
    if found.provenance is None:
        raise UsageError(f"{path}: schema: a measured document that does not say where it came from is no baseline", _UPDATE)
    if found.kind != kind:
        raise UsageError(f"{path}: kind is {found.kind}, expected {kind}", _UPDATE)
    if found.document.machine_profile != machine_profile:
        raise UsageError(f"{path}: machine_profile is {found.document.machine_profile}, not that of the file's name", _UPDATE)
    return found


def known_profiles(folder: Path, kind: Kind) -> tuple[str, ...]:
    """Machine profiles that have a baseline."""
    return tuple(sorted(path.name.removesuffix(f".{kind}.json") for path in folder.glob(f"*.{kind}.json")))


def write(measured: Loaded, dest: Path, *, by: Literal["main branch", "maintainer", "library call"], branch: str | None = None) -> Path:
    """Make a measured document the baseline; `dest` is a file, or the folder of baselines. Returns the file.

    Raises `UsageError` for a document that nothing could be compared with.
    """
    document = measured.document
    if dest.suffix != ".json":
        dest = path_of(dest, document.machine_profile, measured.kind)
    baseline = GateBaseline(
        kind=measured.kind,
        document=document.SCHEMA,
        machine_profile=document.machine_profile,
        provenance=Provenance(document.commit, branch, by, _now(), __version__),
        seals=seals(document),
        metrics=document if isinstance(document, GateMetrics) else None,
        eval=document if isinstance(document, GateEval) else None,
    )
    write_document(dest, baseline)
    return dest


def seals(document: GateMetrics | GateEval) -> dict[str, str]:
    """A digest of each field."""
    return {name: _digest(value) for name, value in to_plain(document).items() if name != "schema"}


def _baseline(plain: dict[str, Any], path: Path) -> Loaded:
    kind = plain.get("kind")
    inside = plain.get(kind) if isinstance(kind, str) and kind in ("metrics", "eval") else None
    if not isinstance(inside, dict):
        raise UsageError(f"{path}: kind is {kind!r}, and there is no measured document of it", _UPDATE)
    wanted = GateMetrics.SCHEMA if kind == "metrics" else GateEval.SCHEMA
    if plain.get("document") != wanted:
        raise UsageError(f"{path}: document is {plain.get('document')}, expected {wanted}", _UPDATE)
    known = plain.get("seals")
    if not isinstance(known, dict):
        raise UsageError(f"{path}: seals are missing", _UPDATE)
    for field in sorted({*inside, *known}):
        if field not in inside or field not in known or _digest(inside[field]) != known[field]:
            raise UsageError(f"{path}: {kind}.{field} was edited by hand", _UPDATE)
    made = from_plain(GateBaseline, plain, str(path))
    document = made.metrics if kind == "metrics" else made.eval
    assert document is not None
    if made.machine_profile != document.machine_profile:
        raise UsageError(f"{path}: machine_profile was edited by hand: measured on {document.machine_profile}", _UPDATE)
    return Loaded(made.kind, _checked(document, str(path), _UPDATE), str(path), made.provenance)


def _read(path: Path) -> dict[str, Any]:
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is no text", _AGAIN) from None
    except OSError as bad:
        raise UsageError(f"{path}: {bad.strerror or bad}", _AGAIN) from None
    except (ValueError, RecursionError) as bad:
        raise UsageError(f"{path}: is no JSON: {str(bad).splitlines()[0]}", _AGAIN) from None
    if not isinstance(plain, dict):
        raise UsageError(f"{path}: is no JSON object", _AGAIN)
    _refuse_nonfinite(plain, str(path), "")
    return plain


def _refuse_nonfinite(value: Any, source: str, field: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{source}: {field} is {value}", _AGAIN)
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        _refuse_nonfinite(child, source, f"{field}[{name}]" if isinstance(value, list) else f"{field}.{name}" if field else str(name))


def _checked(document: Any, source: str, mend: str) -> Any:
    """`document`, when its figures can be real ones. Raises `UsageError` naming the first field that cannot."""

    def refuse(field: str, why: str) -> None:
        raise UsageError(f"{source}: {field} {why}", mend)

    if isinstance(document, GateMetrics):
        if not document.repeats or any(not repeat.step_ms for repeat in document.repeats):
            refuse("repeats", "hold no measured step")
        if any(value <= 0 for repeat in document.repeats for value in repeat.step_ms):
            refuse("repeats", "hold a step that took no time")
        if document.measure_steps < 1:
            refuse("measure_steps", f"is {document.measure_steps}")
        positive = ("step_time_mean_ms", "step_time_p50_ms", "step_time_p90_ms", "tokens_per_sec_p50", "samples_per_sec_p50",
                    "tokens_per_step", "samples_per_step", "memory_peak_bytes")  # fmt: skip
    else:
        positive = ("perplexity",)
        for probe in document.probes:
            if not 0 <= probe.accuracy <= 100:
                refuse(f"probes[{probe.name}].accuracy", f"is {probe.accuracy:g} per cent")
    for name in positive:
        value = getattr(document, name)
        if value is not None and value <= 0:
            refuse(name, f"is {value:g}")
    return document


def _digest(value: Any) -> str:
    """Of the value as JSON: whitespace and the order of keys in the file do not matter."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:_SEAL_CHARS]


def _now() -> str:
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
