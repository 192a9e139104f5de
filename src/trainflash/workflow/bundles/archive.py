"""The file of a bundle: a ZIP archive of a few known members, equal to the byte for equal contents, and read as if a stranger wrote it.

Nothing is ever extracted: members are read into memory, only those that are known by name, each up to its limit. So no member's name
can lead out of a folder, and an archive that unfolds to more than it should ends where the limit is.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainflash import __version__
from trainflash.errors import UsageError
from trainflash.schema import BundleManifest, from_plain, to_plain, write_atomically

MANIFEST = "manifest.json"
# Members beside the manifest, and their most bytes: a training program's change is a few lines, records are a line a step.
LIMITS = {
    "claim.json": 1 << 20, "verdict.json": 4 << 20, "change.diff": 16 << 20, "runs.json": 16 << 20, "steps.jsonl": 64 << 20,
    "records.jsonl": 64 << 20,
}  # fmt: skip
NEEDED = ("claim.json", "verdict.json", "change.diff")
_LARGEST = 128 << 20  # of the file
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first that ZIP knows
_TORN = "it was cut off or changed on its way: copy it again"


def pack(members: Mapping[str, bytes]) -> bytes:
    """The archive of these members. Raises `UsageError` for one that is larger than a reader takes."""
    for name, data in members.items():
        if len(data) > LIMITS[name]:
            raise UsageError(f"{name} has {len(data) >> 20} MiB, too much for a bundle", "verify with a shorter command")
    manifest = BundleManifest(__version__, {name: hashlib.sha256(data).hexdigest() for name, data in sorted(members.items())})
    manifest = replace(manifest, digest=_digest(manifest))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, data in [(MANIFEST, canonical(manifest)), *sorted(members.items())]:
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, data)
    return file.getvalue()


def write(path: Path, data: bytes) -> None:
    """Whole or not at all. Raises `UsageError` where it cannot be written; what was measured is kept in the sandbox."""
    try:
        write_atomically(path, data)
    except OSError as bad:
        mend = "what was measured is kept: the same command writes the bundle without measuring again"
        raise UsageError(f"{path}: {bad.strerror}", mend) from None


def read(path: Path) -> tuple[BundleManifest, dict[str, bytes]]:
    """Manifest and members of a bundle. Raises `UsageError` for what is torn, of another version, no bundle, or not what was bundled."""
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"{path}: has more than {_LARGEST >> 20} MiB, and is no bundle", "name a file that `verify --bundle` wrote")
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if not any(entry.filename == MANIFEST for entry in entries):
                raise UsageError(f"{path}: holds no {MANIFEST}, and is no bundle", "name a file that `verify --bundle` wrote")
            manifest = _manifest(path, _member(path, archive, MANIFEST, LIMITS["claim.json"]))
            names = [entry.filename for entry in entries if entry.filename != MANIFEST]
            if len(entries) != len(names) + 1 or sorted(names) != sorted(manifest.files) or not set(names) <= set(LIMITS):
                raise UsageError(f"{path}: holds other files than its manifest names", _TORN)
            members = {name: _member(path, archive, name, LIMITS[name]) for name in names}
    except OSError as bad:
        raise UsageError(f"{path}: {bad.strerror or bad}", "name a file that `trainflash verify --bundle` wrote") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OverflowError) as bad:
        raise UsageError(f"{path}: is torn, or no bundle: {bad}", _TORN) from None
    _refuse_changed(path, manifest, members)
    return manifest, members


def canonical(value: Any) -> bytes:
    """A document as bytes that are equal for equal documents."""
    return json.dumps(to_plain(value), sort_keys=True, indent=1, allow_nan=False).encode("ascii") + b"\n"


def plain(path: Path, name: str, data: bytes) -> Any:
    """The plain data of a JSON member."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as bad:
        raise UsageError(f"{path}: {name} is no JSON: {str(bad).splitlines()[0]}", _TORN) from None


def _manifest(path: Path, data: bytes) -> BundleManifest:
    found = plain(path, MANIFEST, data)
    schema = found.get("schema") if isinstance(found, dict) else None
    kind = BundleManifest.SCHEMA.partition(".")[0]
    if isinstance(schema, str) and schema.startswith(f"{kind}.") and schema != BundleManifest.SCHEMA:
        mend = "open it with the version of trainflash that wrote it, or bundle it again with this one"
        raise UsageError(f"{path}: is a {schema}, and this trainflash reads {BundleManifest.SCHEMA}", mend)
    return from_plain(BundleManifest, found, f"{path}: {MANIFEST}")


def _member(path: Path, archive: zipfile.ZipFile, name: str, limit: int) -> bytes:
    """Whatever size the archive says it has: no more than the limit is ever unfolded."""
    with archive.open(name) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise UsageError(f"{path}: {name} unfolds to more than {limit >> 20} MiB", "name a file that `trainflash verify --bundle` wrote")
    return data


def _refuse_changed(path: Path, manifest: BundleManifest, members: Mapping[str, bytes]) -> None:
    if manifest.digest != _digest(manifest):
        raise UsageError(f"{path}: its manifest is not what was bundled: the digest is another", _TORN)
    for name, data in sorted(members.items()):
        if hashlib.sha256(data).hexdigest() != manifest.files[name]:
            raise UsageError(f"{path}: {name} is not what was bundled: its digest is another", _TORN)
    missing = [name for name in NEEDED if name not in members]
    if missing:
        raise UsageError(f"{path}: holds no {missing[0]}", _TORN)


def _digest(manifest: BundleManifest) -> str:
    return hashlib.sha256(canonical(replace(manifest, digest=""))).hexdigest()
