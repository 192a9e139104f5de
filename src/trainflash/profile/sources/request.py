"""Which reader answers a request."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

from trainflash.errors import UsageError
from trainflash.profile.events import Profile
from trainflash.profile.sources import archives, directories, wandb_runs, xplane_tables
from trainflash.profile.sources.asked import Request
from trainflash.profile.sources.files import read_file


def load(request: Request, on_file: Callable[[str], None] = lambda name: None) -> Profile:
    """The traces that the request names. `on_file` hears the name of each file before it is read."""
    named = {
        "--trace-file": request.trace_file,
        "--xplane-file": request.xplane_file,
        "--profile-dir": request.profile_dir,
        "--artifact": request.artifact,
        "--run-target": request.run_target,
    }
    given = [option for option, value in named.items() if value]
    if len(given) != 1:
        what = "no trace was named" if not given else " and ".join(given) + " exclude each other"
        raise UsageError(what, "name one: " + ", ".join(named))
    if request.artifact or request.run_target:
        found = wandb_runs.download(request)
        read = load(replace(request, artifact=None, run_target=None, profile_dir=found.directory), on_file)
        return replace(read, origin=request.artifact or request.run_target or "", provenance={**read.provenance, **found.provenance})
    if request.profile_dir is not None:
        profile, xplanes = directories.read(request.profile_dir, on_file, request.columns)
    elif request.xplane_file:
        xplanes = list(request.xplane_file)
        profile = _of(xplanes, on_file, request.columns, xplane=True)
    elif len(request.trace_file) == 1 and archives.is_archive(_existing(request.trace_file[0])):
        profile, xplanes = archives.read(request.trace_file[0], on_file, request.columns), []
    else:
        profile, xplanes = _of(list(request.trace_file), on_file, request.columns, xplane=False), []
    return xplane_tables.added(profile, xplanes, request.xplane_output_dir, request.xplane_count_trace_events)


def _of(paths: list[Path], on_file: Callable[[str], None], columns: Collection[str], xplane: bool) -> Profile:
    traces = []
    for path in paths:
        on_file(str(path))
        traces += read_file(_existing(path), path.name, xplane, columns)
    return Profile(directories.by_rank(traces), ", ".join(map(str, paths)))


def _existing(path: Path) -> Path:
    if path.is_dir():
        raise UsageError(f"{path} is a directory", "name it with --profile-dir")
    if not path.is_file():
        raise UsageError(f"{path} does not exist", "name a trace that the profiler wrote")
    return path
