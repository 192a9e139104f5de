"""`trainflash gate compare`, `update-baseline`, `run`, `history`, `ci`, `tests`, `validate`: may this change pass?"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from trainflash import config
from trainflash.cli import gate
from trainflash.cli.elsewhere import Submittable
from trainflash.cli.gate_options import (
    FILE,
    baselines_option,
    measured_options,
    out_option,
    paired_options,
    permitted_option,
    quality_options,
    shown_options,
    tolerance_option,
)
from trainflash.cli.options import Duration, Launching, command_argument, json_option
from trainflash.cli.output import Output
from trainflash.errors import Inconclusive, Rejected, UsageError

HISTORY = Path("bench/history.jsonl")
EXIT = {"fail": Rejected.exit_code, "inconclusive": Inconclusive.exit_code}
BUDGET_S = 1200.0


@click.command(
    "compare",
    cls=Submittable,
    starts=lambda given: given["against"] is not None,
    short_help="May this change pass? pass, warn, fail or inconclusive.",
)
@measured_options
@click.option("--baseline", type=FILE, help="Compare with this file instead of the machine profile's own.")
@baselines_option
@paired_options
@quality_options
@tolerance_option
@permitted_option
@click.option("--out", type=FILE, help="Write the result there, as JSON.")
@shown_options
@json_option
@command_argument
def compare(
    metrics_file: Path | None,
    eval_file: Path | None,
    baseline: Path | None,
    folder: Path,
    against: str | None,
    words: tuple[str, ...],
    permitted: bool,
    out: Path | None,
    summary: Path | None,
    annotations: bool,
    as_json: bool,
    cmd: tuple[str, ...],
    **given: Any,
) -> int:
    """Hold what was measured against a baseline, or run a commit and this state in turn.

    \b
    trainflash gate compare --metrics metrics.json --eval eval.json
    trainflash gate compare --against origin/main -- python train.py
    trainflash gate compare --against HEAD~1 --metric 'val_loss=([0-9.]+)' -- python train.py

    A figure fails when the whole interval of its change lies beyond the tolerance, passes when all of it lies within, and is
    inconclusive between. Stored baselines hold on machines that stay the same and quiet; --against holds on shared runners too.
    Another machine profile is never compared. Exit codes: 0 pass or warn, 4 fail, 3 inconclusive, 2 bad input.
    """
    from trainflash.workflow.gates import checks as gate_checks

    output = Output(as_json)
    project = Path.cwd()
    settings = config.load(project)
    held = gate_checks.tolerances(settings, words)
    if against is None:
        if cmd:
            raise UsageError("a command is run in the paired mode only", "add --against REF, or see `trainflash gate run`")
        measured = gate_checks.Measured(metrics_file, eval_file)
        result = gate_checks.compare(project, measured, folder, held, baseline, permitted=permitted)
    else:
        if metrics_file or eval_file or baseline:
            raise UsageError("--against measures both sides itself", "leave out --metrics, --eval and --baseline")
        result = _paired(output, project, settings, held, against, cmd, given)
    if out is not None:
        gate_checks.keep(out, result)
    return _answer(output, result, summary, annotations)


@click.command("run", cls=Submittable, short_help="env, bench, eval and compare in one go.")
@paired_options
@gate.bench_options
@quality_options
@click.option("--model", metavar="SPEC", help="A model to evaluate, as for gate eval --model.")
@click.option("--no-compare", is_flag=True, help="Only measure.")
@baselines_option
@tolerance_option
@permitted_option
@out_option
@shown_options
@json_option
@command_argument
def run(
    against: str | None,
    no_compare: bool,
    folder: Path,
    words: tuple[str, ...],
    permitted: bool,
    out_dir: Path,
    summary: Path | None,
    annotations: bool,
    model: str | None,
    as_json: bool,
    cmd: tuple[str, ...],
    **given: Any,
) -> int:
    """Collect the environment, measure, evaluate and compare; an unclear result is measured again up to --max-repeats.

    \b
    trainflash gate run -- python train.py
    trainflash gate run --against origin/main --metric 'val_loss=([0-9.]+)' -- python train.py
    trainflash gate run --no-compare --repeat 8 -- python train.py
    """
    from trainflash.workflow import inputs
    from trainflash.workflow.gates import checks as gate_checks
    from trainflash.workflow.gates import gating
    from trainflash.workflow.gates import results as gate_results
    from trainflash.workflow.gates import runs as gate_runs

    output = Output(as_json)
    project = Path.cwd()
    settings = config.load(project)
    if given.pop("workload", None) is not None:
        raise UsageError("a step function is not run by this command", "trainflash gate bench --workload SPEC, then gate compare")
    if against is not None and no_compare:
        raise UsageError("--against compares, --no-compare does not", "leave one of them out")
    asked = gate_runs.Asked(
        out_dir=out_dir,
        folder=folder,
        config=gate.config_of(given),
        tolerances=gate_checks.tolerances(settings, words),
        how=gating.HowToRun(False, settings.online, settings.writable),
        against=against,
        compare=not no_compare,
        permitted=permitted,
        budget_s=given["budget"] or settings.budget_s,
        model=model,
        tokens_per_step=given["tokens_per_step"],
        profile_dir=given["profile_dir"] if given["profile"] != "off" else None,
        **_limits(given),
        **_quality(given),
    )
    output.say(gate_runs.cost(asked))
    with output.progress() as progress:
        result, files = gate_runs.run(project, inputs.command(cmd, settings), asked, progress)
        progress.finish()
    if result is None:
        output.answer(gate_results.measured(files), *(f"{name}: {path}" for name, path in files.items()))
        return 0
    return _answer(output, result, summary, annotations)


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
        _write(html, report.gates.trend_page(found), add=False)
    if summary is not None:
        _write(summary, report.gates.trend_markdown(found))
    output.answer(gate_results.document(found), report.gates.trend(found))
    _annotate(output, report.gates.trend_annotations(found) if annotations else [])


@click.command("ci", cls=Launching, short_help="Write the CI workflow for your command.")
@click.option("--mode", type=click.Choice(["paired", "stored"]), default="paired", show_default=True,
              help="paired: commits in turn, for shared runners; stored: against baselines, for runners that stay the same.")  # fmt: skip
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
@click.option("--out", type=FILE, default=Path(".github/workflows/perf_gate.yml"), show_default=True, help="Where it goes.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@json_option
@command_argument
def ci(
    words: tuple[str, ...], main_branch: str, runs_on: str, python_version: str, installed: str | None, budget: float | None, out: Path,
    force: bool, as_json: bool, cmd: tuple[str, ...], model: str | None, mode: str, warmup: int, steps: int, repeat: int, **given: Any,
) -> None:  # fmt: skip
    """Write a GitHub workflow that gates every pull request with this command, and keeps baseline and history on the main branch.

    \b
    trainflash gate ci -- python train.py
    trainflash gate ci --metric 'val_loss=([0-9.]+)' --tolerance throughput_drop_pct=3 -- python train.py
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
    gate_checks.write_workflow(out, asked, force=force)
    Output(as_json).answer(gate_results.written("gate_ci", out), str(out))


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


def _paired(
    output: Output, project: Path, settings: config.Settings, held: Any, against: str, cmd: tuple[str, ...], given: dict[str, Any]
) -> Any:
    from trainflash.workflow import inputs
    from trainflash.workflow.gates import gating
    from trainflash.workflow.gates import pairs as gate_pairs

    limits = _limits(given)
    demands = gate_pairs.Demands(
        tolerances=held,
        budget_s=given["budget"] or settings.budget_s,
        most_starts=limits["most_starts"],
        how=gating.HowToRun(False, settings.online, settings.writable),
        **_quality(given),
    )
    output.say(gate_pairs.cost(demands))
    with output.progress() as progress:
        result = gate_pairs.compare(project, against, inputs.command(cmd, settings), demands, progress)
        progress.finish()
    return result


def _limits(given: dict[str, Any]) -> dict[str, int]:
    most = given["max_repeats"]
    return {"most_repeats": most or 8, "most_starts": most or 16}


def _quality(given: dict[str, Any]) -> dict[str, Any]:
    from trainflash.workflow.gates import checks as gate_checks

    argv = tuple(shlex.split(given["eval_command"] or ""))
    if argv and not given["metrics"]:
        raise UsageError("--eval-command without --metric shows nothing", "name what to read from it with --metric")
    return {"metrics": given["metrics"], "better": given["better"], "evaluation": gate_checks.evaluation(argv)}


def _answer(output: Output, result: Any, summary: Path | None, annotations: bool) -> int:
    from trainflash import report
    from trainflash.workflow.gates import results as gate_results

    if summary is not None:
        _write(summary, report.gates.markdown(result))
    output.answer(gate_results.document(result), report.gates.terminal(result))
    _annotate(output, report.gates.annotations(result) if annotations else [])
    return EXIT.get(result.result, 0)


def _annotate(output: Output, lines: list[str]) -> None:
    """GitHub reads them from both streams; with --json stdout is the document's alone."""
    for line in lines:
        click.echo(line, err=output.as_json)


def _write(path: Path, text: str, *, add: bool = True) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a" if add else "w", encoding="utf-8") as file:
        file.write(text)


COMMANDS = (compare, run, update_baseline, history, ci, tests, validate)
