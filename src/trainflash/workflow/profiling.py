"""The verbs of `trainflash profile`: read → summarize → ask, compare, track, report, publish. Files appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from trainflash import report
from trainflash.errors import UsageError
from trainflash.profile import compare as comparing
from trainflash.profile import publish as publishing
from trainflash.profile import query, selecting, tracking
from trainflash.profile.analysis.build import Options, summarize
from trainflash.profile.analysis.columns import ANALYSED
from trainflash.profile.events import Profile
from trainflash.profile.sources import Request
from trainflash.profile.sources import load as read
from trainflash.schema import dump_json, read_document, write_atomically, write_document
from trainflash.schema.profile_changes import (
    ProfileAnswer,
    ProfileAssessment,
    ProfileBundle,
    ProfileComparison,
    ProfileHistory,
    ProfilePublication,
    TrackLimits,
)
from trainflash.schema.profiles import ProfileSummary

TOP = selecting.TOP

Destination = publishing.Destination
Progress = Callable[[str, int, int], None]
SUFFIXES = {".md": "Markdown", ".html": "HTML", ".htm": "HTML", ".json": "JSON"}


def summary(request: Request, options: Options, on_progress: Progress = lambda label, done, total: None) -> ProfileSummary:
    """Decode what is asked for and summarize it. Raises `UsageError` for a source that cannot be read or holds no trace."""
    return summary_of(decoded(request, on_progress), options, on_progress)


def decoded(request: Request, on_progress: Progress = lambda label, done, total: None) -> Profile:
    """What is asked for, with the columns that a summary reads. Raises `UsageError` like `summary`."""
    asked = replace(request, columns=ANALYSED)
    return read(asked, lambda name: on_progress(f"reading {Path(name).name}", 0, 0))


def summary_of(profile: Profile, options: Options, on_progress: Progress = lambda label, done, total: None) -> ProfileSummary:
    """Summarize a profile that was read already, such as `exporting.as_profile` of a run that the probe recorded."""
    on_progress("summarizing", 0, 0)
    return summarize(profile, options, generated_at_utc=now())


def now() -> str:
    """This moment, UTC, to the second."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def load(path: Path) -> ProfileSummary:
    """A summary from its file. Raises `UsageError` for a missing, malformed or foreign one."""
    try:
        return read_document(ProfileSummary, path)
    except UnicodeDecodeError:
        raise UsageError(f"{path}: is no summary", "write one with trainflash profile summarize --output FILE") from None


def write_summary(path: Path, made: ProfileSummary) -> None:
    """Write a summary as JSON, atomically."""
    check_place(path)
    write_atomically(path, dump_json(made) + "\n")


def ask(
    made: ProfileSummary, question: str | None, selected: str | None, sort: str | None, limit: int, *, ascending: bool
) -> ProfileAnswer:
    """The answer to a question in words, or rows of one kind."""
    if question is not None:
        return query.ask(made, question, limit)
    return selecting.select(made, selected or "", sort, limit, ascending=ascending)


def compare(before: Path, after: Path, *, strict: bool, top_k: int) -> ProfileComparison:
    """Two summaries in files, compared."""
    return comparing.compare(load(before), load(after), strict=strict, top_k=top_k)


def track(comparison: ProfileComparison, limits: TrackLimits, label: str | None, path: Path | None) -> ProfileAssessment:
    """Judge a comparison, and add the judgement to the history in `path`."""
    assessment = tracking.assess(comparison, limits, label=label, recorded_at_utc=now())
    if path is not None:
        tracking.append(path, assessment)
    return assessment


def history(path: Path, tail: int | None) -> ProfileHistory:
    """What the history in `path` says."""
    return tracking.history(path, tail)


def write_report(
    path: Path, value: ProfileSummary | ProfileComparison | ProfileHistory, assessment: ProfileAssessment | None = None, *, top_k: int = 10
) -> None:
    """Write a report as its name says: .md, .html or .json. Raises `UsageError` for another name, or no place for it."""
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise UsageError(f"{path}: a report is written as .md, .html or .json", "give the file one of these endings")
    check_place(path)
    if kind == "JSON":
        write_document(path, value)
        return
    render = report.profiles.html if kind == "HTML" else report.profiles.markdown
    write_atomically(path, render(value, assessment, top_k=top_k))


def check_place(path: Path) -> None:
    """Raises `UsageError` where no file can be written."""
    parent = path.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if path.is_dir() or not parent.is_dir() or not os.access(parent, os.W_OK):
        raise UsageError(f"{path} is no place for a file", "name a file in a directory that you may write to")


@dataclass(frozen=True)
class Side:
    """One side of a bundle: a summary in a file, or a trace still to be summarized."""

    summary: Path | None = None
    request: Request | None = None


def bundle(
    before: Side,
    after: Side,
    options: Options,
    limits: TrackLimits,
    output_dir: Path,
    *,
    label: str | None = None,
    history_path: Path | None = None,
    strict: bool = False,
    top_k: int = 10,
    on_progress: Progress = lambda label, done, total: None,
) -> tuple[ProfileBundle, ProfileAssessment]:
    """Summaries, comparison, assessment and reports of two profiles in one directory, which appears whole.

    Raises `UsageError` where one side cannot be read, the two must not be compared, or `output_dir` holds other files.
    """
    if output_dir.exists() and (not output_dir.is_dir() or (any(output_dir.iterdir()) and not (output_dir / "bundle.json").is_file())):
        raise UsageError(f"{output_dir} holds other things", "name a new or empty directory, or that of an earlier bundle")
    check_place(output_dir.parent / f".{output_dir.name}.new")
    old, new = (_side(side, options, on_progress) for side in (before, after))
    comparison = comparing.compare(old, new, strict=strict, top_k=top_k)
    assessment = track(comparison, limits, label, history_path)
    output_dir.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(dir=output_dir.parent, prefix=f".{output_dir.name}."))
    try:
        files = _fill(beside, old, new, comparison, assessment, top_k)
        made = ProfileBundle(str(output_dir), files, assessment.result, comparison.said)
        write_document(beside / "bundle.json", made)
        beside.chmod(0o777 & ~_umask())
        if output_dir.exists():
            shutil.rmtree(output_dir)
        beside.rename(output_dir)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return made, assessment


def _side(side: Side, options: Options, on_progress: Progress) -> ProfileSummary:
    if side.summary is not None:
        return load(side.summary)
    if side.request is None:
        raise UsageError("a bundle needs a before and an after", "name each by a summary, a trace or a run")
    return summary(side.request, options, on_progress)


def _fill(
    directory: Path, old: ProfileSummary, new: ProfileSummary, comparison: ProfileComparison, assessment: ProfileAssessment, top_k: int
) -> dict[str, str]:
    files = {
        "before_summary": "before.json", "after_summary": "after.json", "comparison": "comparison.json", "assessment": "assessment.json",
        "before_report": "before.md", "after_report": "after.md", "report": "comparison.md",
        "before_page": "before.html", "after_page": "after.html", "page": "comparison.html",
    }  # fmt: skip
    write_document(directory / files["before_summary"], old)
    write_document(directory / files["after_summary"], new)
    write_document(directory / files["comparison"], comparison)
    write_document(directory / files["assessment"], replace(assessment, comparison=None))
    for side, value, judged in (("before_", old, None), ("after_", new, None), ("", comparison, assessment)):
        write_report(directory / files[f"{side}report"], value, judged, top_k=top_k)
        write_report(directory / files[f"{side}page"], value, judged, top_k=top_k)
    return files


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def publish(path: Path, reports: Sequence[Path], to: publishing.Destination, *, dry_run: bool) -> ProfilePublication:
    """Publish a summary and its reports as a W&B artifact, or say what would be published."""
    planned = publishing.plan(load(path), [path, *reports], to)
    return replace(planned, mode="dry-run") if dry_run else publishing.publish(planned)
