"""`trainflash profile compare`, `track`, `history`, `bundle`, `publish`: two profiles, and many."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainflash.cli.options import json_option
from trainflash.cli.output import Output
from trainflash.cli.profile_options import (
    FILE,
    compared_options,
    limit_options,
    output_option,
    strict_option,
    summary_options,
    top_option,
    wandb_options,
)
from trainflash.errors import Inconclusive, Rejected, UsageError

if TYPE_CHECKING:
    from trainflash.workflow import profiling

EXIT = {"fail": Rejected.exit_code, "inconclusive": Inconclusive.exit_code}
SOURCES = ("profile_dir", "trace_file", "xplane_file", "artifact", "run_target")
REQUEST = (*SOURCES, "entity", "project", "download_root", "xplane_output_dir", "xplane_count_trace_events")


def request(trace: Path | None, given: dict[str, Any]) -> profiling.Request:
    """The one source that was named. Raises `UsageError` for none, or for several."""
    from trainflash.workflow import profiling

    named = [name for name in SOURCES if given.get(name)]
    if (trace is not None) + len(named) != 1:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in SOURCES)
        raise UsageError("name exactly one trace to summarize", f"give a file or a directory, or one of {names}, --run")
    chosen = {name: value for name, value in given.items() if name in REQUEST and value}
    if trace is not None:
        name = "profile_dir" if trace.is_dir() else "xplane_file" if trace.suffix == ".pb" else "trace_file"
        chosen[name] = trace if name == "profile_dir" else (trace,)
    return profiling.Request(**chosen)


def require_no_source(trace: Path | None, given: dict[str, Any], option: str) -> None:
    """Raises `UsageError` where a trace is named beside `option`, which names one too."""
    if trace is not None or any(given.get(name) for name in SOURCES):
        raise UsageError(f"{option} names what to summarize already", "leave the other trace out")


def options(given: dict[str, Any]) -> profiling.Options:
    """How to summarize."""
    from trainflash.workflow import profiling

    return profiling.Options(
        breakdown_mode=given["breakdown_mode"],
        warmup_steps=given["warmup_steps"],
        hot_op_limit=given["hot_op_limit"],
        readability_run=given["readability_run"],
    )


@click.command(short_help="How one profile differs from another.")
@compared_options
@strict_option
@top_option
@output_option
@json_option
def compare(before: Path, after: Path, strict_provenance: bool, top_k: int, output: Path | None, as_json: bool) -> None:
    """Compare two summaries: step time, classes, shares, families and ops, normalised by the work done.

    Readability runs are refused. A profile a side proves nothing about speed: `trainflash verify` does.

    \b
    trainflash profile compare --before before.json --after after.json --strict-provenance
    """
    from trainflash import report
    from trainflash.workflow import answers, profiling

    comparison = profiling.compare(before, after, strict=strict_provenance, top_k=top_k)
    if output is not None:
        profiling.write_report(output, comparison, top_k=top_k)
        Output(as_json).answer(answers.profile(comparison, output=str(output)), str(output), *comparison.said)
        return
    Output(as_json).answer(answers.profile(comparison), report.profiles.terminal(comparison))


@click.command(short_help="pass, warn or fail; kept in a history.")
@compared_options
@strict_option
@limit_options
@click.option("--label", help="What was changed, for the history.")
@click.option("--history", "history_path", type=FILE, help="Add one line to this JSONL file.")
@top_option
@output_option
@json_option
def track(
    before: Path,
    after: Path,
    strict_provenance: bool,
    label: str | None,
    history_path: Path | None,
    top_k: int,
    output: Path | None,
    as_json: bool,
    **limits: float,
) -> int:
    """Compare two summaries and judge: fail when steps got slower, warn when communication or stalls grew.

    Exit code 4 for fail, 3 where step times are missing.

    \b
    trainflash profile track --before before.json --after after.json --label "fused optimizer" --history history.jsonl
    """
    from trainflash import report
    from trainflash.workflow import answers, profiling

    if output is not None:
        profiling.check_place(output)
    comparison = profiling.compare(before, after, strict=strict_provenance, top_k=top_k)
    assessment = profiling.track(comparison, profiling.TrackLimits(**limits), label, history_path)
    if output is not None:
        profiling.write_report(output, comparison, assessment, top_k=top_k)
    if output is None:
        shown = [report.profiles.terminal(comparison, assessment)]
    else:
        shown = [assessment.result, *assessment.failures, *assessment.warnings, str(output)]
    Output(as_json).answer(answers.profile(assessment), *shown)
    return EXIT.get(assessment.result, 0)


@click.command(short_help="How tracked profiles went so far.")
@click.option("--history", "path", type=FILE, required=True, help="The JSONL file that track writes.")
@click.option("--tail", type=click.IntRange(min=1), default=20, show_default=True, help="How many of the newest records to list.")
@output_option
@json_option
def history(path: Path, tail: int, output: Path | None, as_json: bool) -> None:
    """Show the trend of tracked profiles; as .html with a picture.

    \b
    trainflash profile history --history history.jsonl
    trainflash profile history --history history.jsonl --output history.html
    """
    from trainflash import report
    from trainflash.workflow import answers, profiling

    found = profiling.history(path, tail)
    if output is not None:
        profiling.write_report(output, found)
        Output(as_json).answer(answers.profile(found, output=str(output)), str(output))
        return
    Output(as_json).answer(answers.profile(found), report.profiles.terminal(found))


def _side(side: str, given: dict[str, Any]) -> profiling.Side:
    from trainflash.workflow import profiling

    mine = {name.removeprefix(f"{side}_"): given[name] for name in given if name.startswith(f"{side}_")}
    summary = mine.pop("summary", None)
    named = [name for name, value in mine.items() if value]
    if (summary is not None) + len(named) != 1:
        raise UsageError(
            f"name exactly one {side} side",
            f"give one of --{side}-summary, --{side}-trace-file, --{side}-profile-dir, --{side}-run-target, …",
        )
    if summary is not None:
        return profiling.Side(summary=summary)
    shared = {name: given[name] for name in ("entity", "project", "download_root")}
    return profiling.Side(request=request(None, {**shared, **mine}))


def _sides(function: Any) -> Any:
    for side, what in (("after", "candidate"), ("before", "baseline")):
        for name, kind, says in (
            ("run-target", None, "a W&B run"),
            ("artifact", None, "a W&B artifact"),
            ("xplane-file", FILE, "an *.xplane.pb"),
            ("trace-file", FILE, "a trace"),
            ("profile-dir", FILE, "a directory of traces"),
            ("summary", FILE, "a summary"),
        ):
            several = name in {"trace-file", "xplane-file"}
            function = click.option(f"--{side}-{name}", type=kind, multiple=several, help=f"The {what}: {says}.")(function)
    return function


@click.command(short_help="Summaries, comparison, verdict and reports of two profiles at once.")
@_sides
@wandb_options
@summary_options
@strict_option
@limit_options
@click.option("--label", help="What was changed, for the history.")
@click.option("--history", "history_path", type=FILE, help="Add one line to this JSONL file.")
@click.option("--output-dir", type=FILE, required=True, help="A new directory for the files.")
@top_option
@json_option
def bundle(
    output_dir: Path, label: str | None, history_path: Path | None, strict_provenance: bool, top_k: int, as_json: bool, **given: Any
) -> int:
    """Summarize, compare, track and report two profiles in one go.

    \b
    trainflash profile bundle --before-trace-file old.json.gz --after-trace-file new.json.gz --output-dir bundle
    trainflash profile bundle --before-run-target entity/project/old --after-run-target entity/project/new --output-dir bundle
    """
    from trainflash.workflow import answers, profiling

    before, after = _side("before", given), _side("after", given)
    limits = profiling.TrackLimits(**{name: value for name, value in given.items() if name.startswith("max_")})
    shown = Output(as_json)
    with shown.progress() as progress:
        made, assessment = profiling.bundle(
            before,
            after,
            options(given),
            limits,
            output_dir,
            label=label,
            history_path=history_path,
            strict=strict_provenance,
            top_k=top_k,
            on_progress=progress,
        )
        progress.finish()
    files = "\n".join(f"  {name}" for name in ("bundle.json", *made.files.values()))
    shown.answer(answers.profile(made), made.result, *made.said, *assessment.failures, *assessment.warnings, f"{output_dir}:", files)
    return EXIT.get(made.result, 0)


@click.command(short_help="A summary and its report as a W&B artifact.")
@click.option("--summary", "path", type=FILE, required=True, help="A summary that summarize wrote.")
@click.option("--report", "reports", type=FILE, multiple=True, help="A report to publish with it; may be given again.")
@click.option("--entity", help="W&B entity. Default: WANDB_ENTITY.")
@click.option("--project", help="W&B project. Default: WANDB_PROJECT.")
@click.option("--artifact-name", help="Default: profile-summary- and the run's id.")
@click.option("--alias", "aliases", multiple=True, help="May be given again. Default: latest.")
@click.option("--dry-run", is_flag=True, help="Say what would be uploaded.")
@json_option
def publish(
    path: Path,
    reports: tuple[Path, ...],
    entity: str | None,
    project: str | None,
    artifact_name: str | None,
    aliases: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Upload a summary and reports to W&B; needs the package wandb and a login. WANDB_MODE=offline keeps it for `wandb sync`.

    \b
    trainflash profile publish --summary summary.json --report report.md --alias latest --project my-project
    """
    from trainflash.workflow import answers, profiling

    made = profiling.publish(path, reports, profiling.Destination(entity, project, artifact_name, aliases), dry_run=dry_run)
    Output(as_json).answer(answers.profile(made), f"published {made.reference}" if made.reference else _planned(made), *made.files)


def _planned(made: Any) -> str:
    place = f"project {made.project}" if made.project else "no project: name one with --project, or set WANDB_PROJECT"
    return f"would publish {made.artifact_name} as {', '.join(made.aliases)} to {made.entity or 'your default entity'}, {place}"
