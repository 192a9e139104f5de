"""The environment of one program: the probe on PYTHONPATH, what it is asked to record, and network clients switched offline."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PROBE_DIR = Path(__file__).resolve().parent.parent / "probe"

# A verdict starts the program many times; each start must neither fill the owner's dashboards nor wait for a server.
OFFLINE = {
    "WANDB_MODE": "offline",
    "NEPTUNE_MODE": "offline",
    "SWANLAB_MODE": "offline",
    "CLEARML_OFFLINE_MODE": "1",
    "COMET_START_ONLINE": "0",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}
_QUIETER = {"disabled", "dryrun", "debug"}  # modes that an owner chose and that send nothing either


@dataclass(frozen=True)
class Recording:
    """What the probe is asked to do in one run; None leaves the probe's own default.

    `capture` is what it records: diagnose, timing or fidelity. The program stops by itself at a step boundary after `max_steps` steps,
    or after `max_seconds` once `min_steps` are done, or `few_steps` of a training that by then ran for twice `max_seconds`.
    """

    capture: str
    max_steps: int | None = None
    max_seconds: float | None = None
    min_steps: int | None = None
    few_steps: int | None = None
    seed: int | None = None
    sample_hz: float | None = None
    peaks: str | None = None  # numbers of threads, joined by commas, with which this machine's peaks are known
    updates: str | None = None  # functions of the owner's that update the parameters, in JSON: see `own_updates`
    replay: str | None = None  # a what-if replay: its specification in JSON, see the probe's `replay` module
    profile: str | None = None  # a window of torch's profiler: its specification in JSON, see the probe's `profiler` module


def program_environment(
    inherited: Mapping[str, str],
    additions: Mapping[str, str],
    *,
    project: str,
    run_dir: Path,
    recording: Recording,
    pace_dir: Path | None,
    online: bool,
) -> dict[str, str]:
    """`inherited` and `additions` (the view's and the command's own, later wins), then ours; stale settings of ours are dropped."""
    environment = {name: value for name, value in inherited.items() if not name.startswith("TRAINFLASH_")}
    environment.update(additions)
    if not online:
        environment.update({name: value for name, value in OFFLINE.items() if environment.get(name) not in _QUIETER})
        environment["MLFLOW_TRACKING_URI"] = (run_dir / "mlruns").as_uri()
        environment["COMET_OFFLINE_DIRECTORY"] = str(run_dir / "comet")
    before = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([str(PROBE_DIR), before] if before else [str(PROBE_DIR)])
    ours = {
        "TRAINFLASH_RUN": run_dir,
        "TRAINFLASH_PROBE": PROBE_DIR,  # for a script whose PYTHONPATH is reset
        "TRAINFLASH_OWN": project,
        "TRAINFLASH_CAPTURE": recording.capture,
        "TRAINFLASH_MAX_STEPS": recording.max_steps,
        "TRAINFLASH_MAX_SECONDS": recording.max_seconds,
        "TRAINFLASH_MIN_STEPS": recording.min_steps,
        "TRAINFLASH_FEW_STEPS": recording.few_steps,
        "TRAINFLASH_SEED": recording.seed,
        "TRAINFLASH_SAMPLE_HZ": recording.sample_hz,
        "TRAINFLASH_PEAKS": recording.peaks,
        "TRAINFLASH_PACE": pace_dir,
        "TRAINFLASH_UPDATES": recording.updates,
        "TRAINFLASH_REPLAY": recording.replay,
        "TRAINFLASH_PROFILE": recording.profile,
        "TRAINFLASH_STEP": _slurm_step(inherited),  # we are in it ourselves: it says nothing about the program's ranks
    }
    environment.update({name: str(value) for name, value in ours.items() if value is not None})
    return environment


def _slurm_step(environment: Mapping[str, str]) -> str | None:
    step = environment.get("SLURM_STEP_ID")
    return f"{environment.get('SLURM_JOB_ID', '')}.{step}" if step else None
