"""A summary and its report as a W&B artifact. `wandb` is imported when something is uploaded, and only then."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.schema.profile_changes import ProfilePublication
from trainflash.schema.profiles import ProfileSummary

ARTIFACT_TYPE = "profile_summary"
DEFAULT_ALIAS = "latest"


@dataclass(frozen=True)
class Destination:
    """Where to publish; what is None comes from WANDB_ENTITY and WANDB_PROJECT."""

    entity: str | None = None
    project: str | None = None
    artifact_name: str | None = None
    aliases: tuple[str, ...] = ()


def plan(
    summary: ProfileSummary, files: Sequence[Path], to: Destination, environment: Mapping[str, str] | None = None
) -> ProfilePublication:
    """What would be published. Raises `UsageError` for a file that is not there or a name that W&B would refuse."""
    environment = os.environ if environment is None else environment
    for path in files:
        if not path.is_file():
            raise UsageError(f"{path}: no such file", "write it with trainflash profile summarize or report")
    run = summary.run_metadata.run_id or summary.digest[:12]
    name = to.artifact_name or f"profile-summary-{run}"
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,128}", name):
        raise UsageError(f"{name!r} is no name for an artifact", "use letters, digits, dots, dashes and underscores, at most 128")
    return ProfilePublication(
        artifact_name=name,
        artifact_type=ARTIFACT_TYPE,
        aliases=to.aliases or (DEFAULT_ALIAS,),
        files=tuple(str(path) for path in files),
        entity=to.entity or environment.get("WANDB_ENTITY") or None,
        project=to.project or environment.get("WANDB_PROJECT") or None,
        mode="offline" if environment.get("WANDB_MODE") in {"offline", "dryrun"} else "online",
        metadata={
            "schema_version": summary.schema_version,
            "digest": summary.digest,
            "trace_sha256": summary.trace_provenance.trace_sha256,
            "source_format": summary.source_format,
            "run_id": summary.run_metadata.run_id,
            "step_median_us": summary.step_time.steady_state_steps.median,
        },
    )


def publish(planned: ProfilePublication) -> ProfilePublication:
    """Upload it (or keep it for `wandb sync` where WANDB_MODE is offline). Raises `UsageError` without wandb, login or project."""
    try:
        import wandb
    except ImportError:
        raise UsageError("publishing needs the package wandb", "pip install wandb, then publish again; --dry-run needs nothing") from None
    if planned.mode == "online" and not wandb.api.api_key:
        raise UsageError(
            "there is no W&B login here", "run `wandb login`, or set WANDB_API_KEY; WANDB_MODE=offline keeps it for `wandb sync`"
        )
    if not planned.project:
        raise UsageError("no W&B project is named", "give --project, or set WANDB_PROJECT")
    try:
        with wandb.init(
            entity=planned.entity, project=planned.project, job_type="profile-summary", settings=wandb.Settings(silent=True, console="off")
        ) as run:
            artifact = wandb.Artifact(planned.artifact_name, type=planned.artifact_type, metadata=planned.metadata)
            for path in planned.files:
                artifact.add_file(path)
            logged = run.log_artifact(artifact, aliases=list(planned.aliases))
            if planned.mode == "online":
                logged.wait()
                return replace(planned, reference=logged.qualified_name)
            return replace(planned, reference=str(Path(run.dir).parent))
    except (wandb.errors.Error, OSError, ValueError) as bad:  # its own, the network's, and a name that it does not take
        said = next((line.strip() for line in str(bad).splitlines() if line.strip()), type(bad).__name__)
        raise UsageError(f"W&B refused it: {said[:300]}", "check --entity, --project and the login") from None
