"""`trainflash profile`: a profiler's trace becomes one small summary that can be asked, compared and tracked; runs as timelines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from trainflash.cli import profile_capture, profile_changes
from trainflash.cli.options import json_option, sandbox_option
from trainflash.cli.output import Output
from trainflash.cli.profile_options import FILE, output_option, source_options, summary_options, top_option


@click.group("profile", short_help="Ask a profiler's trace: hot ops, idle time and its causes, collectives, what to try.")
def group() -> None:
    """Turn a profiler's trace into one small summary, ask it, compare two, track them.

    \b
    trainflash profile summarize --profile-dir DIR --output summary.json
    trainflash profile query --summary summary.json --question "What should we try next?"
    trainflash profile bundle --before-trace-file OLD --after-trace-file NEW --output-dir bundle
    trainflash profile export --run diagnose-001
    """


@group.command("summarize", short_help="A trace becomes profile_summary.v1.")
@click.argument("trace", type=FILE, required=False)
@source_options
@click.option("--run", help="A run that trainflash itself recorded, such as diagnose-001; with --sandbox, of that sandbox.")
@sandbox_option
@summary_options
@click.option("--output", type=FILE, help="Write the summary there, as JSON. Default: show it.")
@json_option
def summarize(trace: Path | None, run: str | None, sandbox: Path | None, output: Path | None, as_json: bool, **given: Any) -> None:
    """Read a trace of PyTorch or JAX and write profile_summary.v1: the same bytes for the same trace, whatever the machine.

    TRACE is a file or a directory; the options name one more exactly.

    \b
    trainflash profile summarize trace.json.gz --output summary.json
    trainflash profile summarize --profile-dir runs/1/profiler --breakdown-mode exclusive_global --output summary.json
    trainflash profile summarize --xplane-file host.xplane.pb --output summary.json
    trainflash profile summarize --run-target entity/project/run_id --download-root scratch/profiles --output summary.json
    trainflash profile summarize --run diagnose-001 --output summary.json
    """
    from trainflash import report
    from trainflash.workflow import answers, exporting, profiling, session

    if output is not None:
        profiling.check_place(output)
    shown = Output(as_json)
    with shown.progress() as progress:
        if run is None:
            summary = profiling.summary(profile_changes.request(trace, given), profile_changes.options(given), progress)
        else:
            profile_changes.require_no_source(trace, given, "--run")
            found = session.existing_session(Path.cwd(), sandbox, on_progress=progress)
            summary = profiling.summary_of(exporting.as_profile(found, run), profile_changes.options(given), progress)
        progress.finish()
    if output is not None:
        profiling.write_summary(output, summary)
        shown.answer(answers.profile(summary, output=str(output)), str(output), report.profiles.headline(summary))
        return
    shown.answer(answers.profile(summary), report.profiles.terminal(summary))


@group.command("query", short_help="Ask a summary, in words or by selecting rows.")
@click.option("--summary", "path", type=FILE, required=True, help="A summary that summarize wrote.")
@click.option("--question", help="The question; an unknown one lists what can be asked.")
@click.option("--select", "selected", help="Rows instead: ops, host_ops, families, collectives, gaps, regions, idle, ranks, steps, …")
@click.option("--sort", help="With --select: the field to sort by, such as exclusive, total, count; numbers largest first.")
@click.option("--ascending", is_flag=True, help="With --sort: smallest first.")
@click.option("--limit", type=click.IntRange(min=1), help="How many rows at most. Default: 10.")
@click.option("--top-k", type=click.IntRange(min=1), help="The same.")
@json_option
def query(
    path: Path,
    question: str | None,
    selected: str | None,
    sort: str | None,
    ascending: bool,
    limit: int | None,
    top_k: int | None,
    as_json: bool,
) -> None:
    """Answer one question about one summary; the same question has the same answer.

    \b
    trainflash profile query --summary summary.json --question "What are the top 10 ops by exclusive time?"
    trainflash profile query --summary summary.json --question "gap before fused_adam"
    trainflash profile query --summary summary.json --select ops --sort exclusive --limit 10
    """
    from trainflash import report
    from trainflash.workflow import answers, profiling

    if (question is None) == (selected is None):
        raise click.UsageError("give either --question or --select")
    if question is not None and (sort or ascending):
        raise click.UsageError("--sort and --ascending go with --select")
    answer = profiling.ask(profiling.load(path), question, selected, sort, limit or top_k or profiling.TOP, ascending=ascending)
    Output(as_json).answer(answers.profile(answer), report.profiles.terminal(answer))


@group.command("report", short_help="A summary as Markdown, or as a page with pictures.")
@click.option("--summary", "path", type=FILE, required=True, help="A summary that summarize wrote.")
@output_option
@top_option
@json_option
def report(path: Path, output: Path | None, top_k: int, as_json: bool) -> None:
    """Write the root-cause report of a summary; deterministic.

    \b
    trainflash profile report --summary summary.json --output report.md
    trainflash profile report --summary summary.json --output report.html
    """
    from trainflash import report as reports
    from trainflash.workflow import profiling

    summary = profiling.load(path)
    document = {"schema": "profile_report.v1", "status": "ok", "digest": summary.digest}
    if output is not None:
        profiling.write_report(output, summary, top_k=top_k)
        Output(as_json).answer({**document, "output": str(output)}, str(output))
        return
    markdown = reports.profiles.markdown(summary, top_k=top_k)
    if as_json:
        Output(as_json).answer({**document, "markdown": markdown})
    else:
        click.echo(markdown, nl=False)


@group.command("export", short_help="A run as a timeline; a trace slimmed.")
@click.argument("trace", type=FILE, required=False)
@source_options
@click.option("--run", help="The run, such as diagnose-001; an unknown one lists those that there are.")
@click.option("--output", type=FILE, help="The file to write; compressed if it ends in .gz. Default: in the run's directory.")
@sandbox_option
@json_option
def export(trace: Path | None, run: str | None, output: Path | None, sandbox: Path | None, as_json: bool, **given: Any) -> None:
    """Write a run, or any trace that can be read, as one file that ui.perfetto.dev and chrome://tracing open.

    Of a run, ranks and workers are its processes; steps, phases, device, evaluations, sampled source lines and the machine's counters its
    rows. A trace is given back slimmed, a file for each rank: the same events, and of their args only what a summary reads.

    \b
    trainflash profile export --run diagnose-001
    trainflash profile export --run diagnose-001 --output /tmp/run.json.gz
    trainflash profile export trace.json.gz --output slim.json.gz
    """
    from trainflash.workflow import answers, exporting, profiling, session

    shown = Output(as_json)
    if run is None:
        asked = profile_changes.request(trace, given)
        if output is None:
            raise click.UsageError("--output is missing: the file to write the trace to")
        with shown.progress() as progress:
            decoded = profiling.decoded(asked, progress)
            files = exporting.slim(decoded, output)
            progress.finish()
        sizes = f"{sum(each.events for each in files)} events, {sum(each.bytes for each in files) / 1e6:.1f} MB"
        shown.answer(answers.slimmed(files, decoded.origin), *(each.path for each in files), sizes)
        return
    profile_changes.require_no_source(trace, given, "--run")
    with shown.progress() as progress:
        found = session.existing_session(Path.cwd(), sandbox, on_progress=progress)
        written = exporting.export(found, run, output)
        progress.finish()
    size = f"{written.slices} slices, {written.marks} samples, {written.counters} counters, {written.bytes / 1e6:.1f} MB"
    shown.answer(answers.exported(written, run), written.path, f"{size}; open it at https://ui.perfetto.dev")


for command in (
    profile_capture.capture, profile_changes.compare, profile_changes.track, profile_changes.history, profile_changes.bundle,
    profile_changes.publish,
):  # fmt: skip
    group.add_command(command)
