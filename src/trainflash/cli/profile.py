"""`trainflash profile`: timelines of runs."""

from __future__ import annotations

from pathlib import Path

import click

from trainflash.cli.options import json_option, sandbox_option
from trainflash.cli.output import Output


@click.group("profile", short_help="Timelines of runs, for trace viewers.")
def group() -> None:
    """Timelines of runs, for trace viewers.

    \b
    trainflash profile export --run diagnose-001
    """


@group.command("export")
@click.option("--run", required=True, help="The run, such as diagnose-001; an unknown one lists those that there are.")
@click.option(
    "--output", type=click.Path(path_type=Path), help="The file to write; compressed if it ends in .gz. Default: in the run's directory."
)
@sandbox_option
@json_option
def export(run: str, output: Path | None, sandbox: Path | None, as_json: bool) -> None:
    """Write a run as one file that ui.perfetto.dev and chrome://tracing open.

    Ranks and workers are its processes; steps, phases, device, evaluations, sampled source lines and the machine's counters its rows.

    \b
    trainflash profile export --run diagnose-001
    trainflash profile export --run diagnose-001 --output /tmp/run.json.gz
    """
    from trainflash.workflow import answers, exporting, session

    shown = Output(as_json)
    with shown.progress() as progress:
        found = session.existing_session(Path.cwd(), sandbox, on_progress=progress)
        written = exporting.export(found, run, output)
        progress.finish()
    size = f"{written.slices} slices, {written.marks} samples, {written.counters} counters, {written.bytes / 1e6:.1f} MB"
    shown.answer(answers.exported(written, run), written.path, f"{size}; open it at https://ui.perfetto.dev")
