"""`trainflash gate compare` and `run`: may this change pass?"""

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
from trainflash.cli.gate_shown import EXIT, annotate, write
from trainflash.cli.options import command_argument, json_option
from trainflash.cli.output import Output
from trainflash.errors import UsageError


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
        write(summary, report.gates.markdown(result))
    output.answer(gate_results.document(result), report.gates.terminal(result))
    annotate(output, report.gates.annotations(result) if annotations else [])
    return EXIT.get(result.result, 0)


COMMANDS = (compare, run)
