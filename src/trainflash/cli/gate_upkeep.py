"""`trainflash gate update-baseline`, `history`, `ci`, `tests`, `validate`: what a gate rests on, and whether it holds."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from trainflash import config
from trainflash.cli import gate
from trainflash.cli.gate_options import (
    FILE,
    baselines_option,
    measured_options,
    out_option,
    quality_options,
    shown_options,
    tolerance_option,
)
from trainflash.cli.gate_shown import EXIT, annotate, write
from trainflash.cli.options import Duration, Launching, command_argument, json_option
from trainflash.cli.output import Output
from trainflash.errors import UsageError

HISTORY = Path("bench/history.jsonl")
BUDGET_S = 1200.0


@click.command("update-baseline", short_help="Make what was measured the baseline of this machine profile.")
@measured_options
@baselines_option
@click.option("--i-am-maintainer", is_flag=True, help="Do it from any branch and state. It stands in the file.")
@json_option
def update_baseline(metrics_file: Path | None, eval_file: Path | None, folder: Path, i_am_maintainer: bool, as_json: bool) -> None:
    """Store what was measured under its machine profile, with where it came from; on the main branch only.

    \b
    trainflash gate update-baseline --metrics perf-gate/metrics.json --eval perf-gate/eval.json
    """
    from trainflash.workflow.gates import checks as gate_checks
    from trainflash.workflow.gates import results as gate_results

    output = Output(as_json)
    measured = gate_checks.Measured(metrics_file, eval_file)
    files, by = gate_checks.update_baseline(Path.cwd(), measured, folder, config.load(Path.cwd()), maintainer=i_am_maintainer)
    output.answer(gate_results.updated(files, by), *(f"{path}: by {by}" for path in files))


@click.command("history", short_help="Figures over time, and the commits at which they changed.")
@click.option("--file", "path", type=FILE, default=HISTORY, show_default=True, help="The history, JSON lines.")
@click.option("--append", is_flag=True, help="Add --metrics and --eval as one more record first.")
@measured_options
@click.option("--label", help="What the added record is, such as a tag.")
@click.option("--profile", "machine_profile", help="Of this machine profile. Default: that of the last record.")
@click.option("--html", type=FILE, help="Write a page with pictures.")
@tolerance_option
@shown_options
@json_option
def history(
    path: Path,
    append: bool,
    metrics_file: Path | None,
    eval_file: Path | None,
    label: str | None,
    machine_profile: str | None,
    html: Path | None,
    words: tuple[str, ...],
    summary: Path | None,
    annotations: bool,
    as_json: bool,
) -> None:
    """Show levels and change points of each figure, so that many small losses are seen which each passed the gate.

    \b
    trainflash gate history --append --metrics perf-gate/metrics.json
    trainflash gate history --html history.html
    """
    from trainflash import report
    from trainflash.workflow.gates import checks as gate_checks
    from trainflash.workflow.gates import results as gate_results

    output = Output(as_json)
    held = gate_checks.tolerances(config.load(Path.cwd()), words)
    if append:
        gate_checks.add_to_history(path, gate_checks.Measured(metrics_file, eval_file), None, label)
    elif metrics_file or eval_file:
        raise UsageError("a measured file is for --append", "add --append, or leave the file out")
    found = gate_checks.trend(path, machine_profile, held)
    if html is not None:
        write(html, report.gates.trend_page(found), add=False)
    if summary is not None:
        write(summary, report.gates.trend_markdown(found))
    output.answer(gate_results.document(found), report.gates.trend(found))
    annotate(output, report.gates.trend_annotations(found) if annotations else [])


@click.command("ci", cls=Launching, short_help="Write the CI workflow for your command.")
@click.option("--mode", type=click.Choice(["paired", "stored", "verify"]), default="paired", show_default=True,
              help="paired: commits in turn, for shared runners; stored: against baselines, for runners that stay the same; verify: no "
              "gate, but a comment that says whether a labelled pull request is faster and trains the same.")  # fmt: skip
@quality_options
@click.option("--model", metavar="SPEC", help="A model to evaluate, as for gate eval --model.")
@tolerance_option
@click.option("--main-branch", default="main", show_default=True, help="Whose pushes update the baseline.")
@click.option("--runs-on", default="ubuntu-latest", show_default=True, help="Labels of the runner, comma-separated.")
@click.option("--python", "python_version", default="3.11", show_default=True, help="Python version.")
@click.option(
    "--install",
    "installed",
    help="What pip installs. Default: trainflash, from the repository it came from here, and requirements.txt or the project.",
)
@click.option("--budget", type=Duration(), help="Time for the paired starts. Default: 20m.")
@click.option("--warmup", type=click.IntRange(min=0), default=20, show_default=True, help="Steps before the measured ones.")
@click.option("--steps", type=click.IntRange(min=1), default=100, show_default=True, help="Steps to measure.")
@click.option("--repeat", type=click.IntRange(min=1), default=8, show_default=True, help="Runs of a stored baseline.")
@click.option("--out", type=FILE, help="Where it goes. Default: .github/workflows/perf_gate.yml, or verify_speed.yml beside it.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@json_option
@command_argument
def ci(
    words: tuple[str, ...], main_branch: str, runs_on: str, python_version: str, installed: str | None, budget: float | None,
    out: Path | None, force: bool, as_json: bool, cmd: tuple[str, ...], model: str | None, mode: str, warmup: int, steps: int,
    repeat: int, **given: Any,
) -> None:  # fmt: skip
    """Write a GitHub workflow that gates every pull request with this command, and keeps baseline and history on the main branch.

    With --mode verify one that verifies those that carry the label verify-speed, and comments on them.

    \b
    trainflash gate ci -- python train.py
    trainflash gate ci --metric 'val_loss=([0-9.]+)' --tolerance throughput_drop_pct=3 -- python train.py
    trainflash gate ci --mode verify --budget 20m -- python train.py --epochs 2
    trainflash gate ci --mode stored --runs-on self-hosted,gpu -- torchrun --nproc-per-node 8 train.py
    """
    from trainflash.workflow import inputs
    from trainflash.workflow.gates import checks as gate_checks
    from trainflash.workflow.gates import results as gate_results

    settings = config.load(Path.cwd())
    held = {name: float(value) for name, value in vars(gate_checks.tolerances(settings, words)).items()} if words else {}
    asked = gate_checks.Workflow(
        command=inputs.command(cmd, settings).argv,
        mode=mode,  # type: ignore[arg-type]
        metrics=given["metrics"],
        better=given["better"],
        evaluation=tuple(shlex.split(given["eval_command"] or "")),
        model=model,
        tolerances={name: held[name] for name in (word.partition("=")[0].strip() for word in words)},
        main_branch=main_branch,
        runs_on=tuple(label.strip() for label in runs_on.split(",")),
        python=python_version,
        install=tuple(shlex.split(installed)) if installed else gate_checks.installed(Path.cwd()),
        budget_s=budget or BUDGET_S,
        warmup=warmup,
        steps=steps,
        repeat=repeat,
    )
    written = gate_checks.write_workflow(out, asked, force=force)
    Output(as_json).answer(gate_results.written("gate_ci", written), str(written))


@click.command("tests", short_help="Write pytest tests that hold your gate.")
@baselines_option
@tolerance_option
@click.option("--out", type=FILE, default=Path("tests/test_perf_gate.py"), show_default=True, help="Where it goes.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@json_option
def tests(folder: Path, words: tuple[str, ...], out: Path, force: bool, as_json: bool) -> None:
    """Write tests: every baseline is sound, and each tolerance stops what it is there to stop. Nothing is trained in them.

    \b
    trainflash gate tests && pytest tests/test_perf_gate.py
    """
    from trainflash.workflow.gates import checks as gate_checks
    from trainflash.workflow.gates import results as gate_results

    gate_checks.write_tests(out, folder, gate_checks.tolerances(config.load(Path.cwd()), words), force=force)
    Output(as_json).answer(gate_results.written("gate_tests", out), str(out))


@click.command("validate", cls=Launching, short_help="Try the gate's promises on this machine.")
@gate.bench_options
@tolerance_option
@out_option
@json_option
@command_argument
def validate(words: tuple[str, ...], out_dir: Path, as_json: bool, cmd: tuple[str, ...], **given: Any) -> int:
    """Measure three times and say which promises hold here: documents that repeat, traces that open, a gate that stops a loss.

    \b
    trainflash gate validate --warmup 20 -- python train.py
    """
    from trainflash import report
    from trainflash.workflow import inputs
    from trainflash.workflow.gates import checks as gate_checks
    from trainflash.workflow.gates import gating
    from trainflash.workflow.gates import results as gate_results
    from trainflash.workflow.gates import runs as gate_runs

    output = Output(as_json)
    settings = config.load(Path.cwd())
    given.pop("workload", None)
    held = gate_checks.tolerances(settings, words)
    how = gating.HowToRun(False, settings.online, settings.writable)
    with output.progress() as progress:
        found = gate_runs.validate(Path.cwd(), inputs.command(cmd, settings), gate.config_of(given), how, held, out_dir, progress)
        progress.finish()
    output.answer(gate_results.document(found), report.gates.validation(found))
    return EXIT.get(found.result, 0)


COMMANDS = (update_baseline, history, ci, tests, validate)
