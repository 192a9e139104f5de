"""Profiles that lie in Weights & Biases: an artifact, or what a run logged; a directory of an offline run needs no server.

The package wandb is loaded only here. Accepted targets: `entity/project/name:alias` for an artifact; a run's id (with entity and project),
`entity/project/run` or its URL, or the directory of an offline run (`wandb/offline-run-…`).
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlparse

from trainflash.errors import UsageError
from trainflash.profile.sources.asked import Request

ARTIFACT_TYPES = ("jax_profile", "profile", "profiler", "trace")  # Levanter's first; the others are in common use
_ARTIFACT = re.compile(r"^(?P<entity>[^/\s:]+)/(?P<project>[^/\s:]+)/(?P<name>[^/\s:]+)(:(?P<version>[^/\s:]+))?$")
_PART = re.compile(r"^[\w.\- ]+$")
_PROFILE_FILE = re.compile(r"(\.xplane\.pb|trace[^/]*\.json|\.pt\.trace\.json)(\.gz)?$")
_LOGIN = "log in with `wandb login`, or set WANDB_API_KEY"


@dataclass(frozen=True)
class Found:
    """Where the profile lies now, and what W&B says about it."""

    directory: Path
    provenance: dict[str, Any]


@dataclass(frozen=True)
class RunTarget:
    entity: str
    project: str
    run: str

    @property
    def path(self) -> str:
        return f"{self.entity}/{self.project}/{self.run}"


def download(request: Request) -> Found:
    """Fetch the profile that `request.artifact` or `request.run_target` names. Raises `UsageError` where it cannot be had."""
    offline = _offline(request.artifact or request.run_target or "")
    if offline is not None:
        return Found(offline, {"wandb_offline": True})
    if request.artifact:
        if not _ARTIFACT.match(request.artifact):
            raise UsageError(f"{request.artifact} is no artifact", "name it as entity/project/name:version")
        reference = request.artifact if ":" in request.artifact else f"{request.artifact}:{request.alias}"
        api = _api()
        with _said(reference):
            artifact = api.artifact(reference)
            return _fetched(artifact, request.download_root, _run_of(artifact))
    target = run_target(request.run_target or "", request.entity, request.project)
    api = _api()
    with _said(target.path):
        run = api.run(target.path)
        artifact = _newest(run, request.alias)
        if artifact is not None:
            return _fetched(artifact, request.download_root, run)
        return _files(run, target, request.download_root)


def run_target(text: str, entity: str | None, project: str | None) -> RunTarget:
    """`text` as a run id, entity/project/run or URL. Raises `UsageError` where it is none of them."""
    path = text
    if text.startswith(("http://", "https://")):
        path = urlparse(text).path
    parts = [part for part in path.split("/") if part]
    if len(parts) >= 4 and parts[2] in ("runs", "sweeps"):
        parts = [*parts[:2], parts[3]] if parts[2] == "runs" else []
    if len(parts) == 1 and path is text:
        if not entity or not project:
            raise UsageError(f"the run id {text} alone says not whose it is", "add --entity and --project, or name entity/project/run")
        parts = [entity, project, parts[0]]
    if len(parts) != 3 or not all(_PART.match(part) and part.strip(".") for part in parts):
        raise UsageError(f"{text} is no W&B run", "name a run id with --entity and --project, entity/project/run, or the run's URL")
    return RunTarget(*parts)


def _offline(text: str) -> Path | None:
    """The directory of an offline run, if that is what the text names."""
    path = Path(text)
    if "://" in text or not path.is_dir():
        return None
    return path / "files" if (path / "files").is_dir() else path


def _api() -> Any:
    try:
        import wandb
    except ImportError:
        raise UsageError(
            "W&B sources need the package wandb, which is not installed here", "pip install wandb, or name --profile-dir"
        ) from None
    if not _has_key(wandb):
        raise UsageError("there are no credentials for W&B", _LOGIN)
    return wandb.Api(timeout=30)


def _has_key(wandb: Any) -> bool:
    """Whether a key is set, so that wandb never asks for one on the terminal."""
    import os

    if os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_IDENTITY_TOKEN_FILE"):
        return True
    try:
        return bool(wandb.api.api_key)
    except (AttributeError, OSError, ValueError, wandb.errors.Error):  # another layout of the package, an unreadable netrc: there is none
        return False


def _faults() -> tuple[type[Exception], ...]:
    """What the package raises: its own errors, those of the network (all are `OSError`), and `ValueError` for what it does not find."""
    import wandb

    return wandb.errors.Error, OSError, ValueError


@contextmanager
def _said(what: str) -> Iterator[None]:
    """What wandb raises, as one line."""
    try:
        yield
    except _faults() as fault:
        line = next((line.strip() for line in str(fault).splitlines() if line.strip()), type(fault).__name__)
        lowered = line.lower()
        denied = any(word in lowered for word in ("api key", "api_key", "login", "permission", "401", "403", "unauthorized"))
        raise UsageError(f"W&B does not give {what}: {line[:300]}", _LOGIN if denied else "check the name, and that it exists") from None


def _newest(run: Any, alias: str) -> Any | None:
    """The run's profile artifact of this alias, else the newest one; None if it logged none."""
    found = [artifact for artifact in run.logged_artifacts() if artifact.type in ARTIFACT_TYPES]
    named = [artifact for artifact in found if alias in artifact.aliases]
    return max(named or found, key=lambda artifact: str(artifact.created_at), default=None)


def _run_of(artifact: Any) -> Any | None:
    try:
        return artifact.logged_by()
    except _faults():  # its run was deleted, or may not be read
        return None


def _fetched(artifact: Any, root: Path | None, run: Any | None) -> Found:
    where = root / _folder(artifact.name) if root else Path(tempfile.mkdtemp(prefix="trainflash-profile-"))
    directory = Path(artifact.download(root=str(where)))
    return Found(directory, {"wandb_artifact": artifact.qualified_name, **_about(run)})


def _files(run: Any, target: RunTarget, root: Path | None) -> Found:
    """The profiler's files among those of the run."""
    names = [file for file in run.files() if _PROFILE_FILE.search(file.name)]
    if not names:
        log_dir = _log_dir(run)
        if log_dir is not None and log_dir.is_dir():
            return Found(log_dir, _about(run))
        raise UsageError(
            f"the run {target.path} has neither a profile artifact nor profiler files", "name an artifact with --artifact, or --profile-dir"
        )
    where = root / _folder(target.run) if root else Path(tempfile.mkdtemp(prefix="trainflash-profile-"))
    for file in names:
        if PurePosixPath(file.name).is_absolute() or ".." in PurePosixPath(file.name).parts:
            continue
        file.download(root=str(where), replace=True)
    return Found(where, {"wandb_run": target.path, **_about(run)})


def _log_dir(run: Any) -> Path | None:
    """Levanter's profiler directory, <trainer.log_dir>/<run id>/profiler, as the run's config names it."""
    trainer = dict(run.config).get("trainer")
    log_dir = trainer.get("log_dir") if isinstance(trainer, dict) else dict(run.config).get("trainer.log_dir")
    return Path(str(log_dir)) / run.id / "profiler" if log_dir else None


def _about(run: Any | None) -> dict[str, Any]:
    if run is None:
        return {}
    return {"wandb_run": "/".join(run.path), "wandb_run_name": run.name}


def _folder(name: str) -> str:
    return re.sub(r"[^\w.\-]+", "_", name)
