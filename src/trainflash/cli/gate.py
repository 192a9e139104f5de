"""`trainflash gate`: what a machine is, how fast a training runs on it, how good a model is. Comparing them is in `gate_compare`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from trainflash import config
from trainflash.cli.elsewhere import Submittable
from trainflash.cli.options import Launching, PathName, command_argument, json_option, sandbox_as_it_is_option
from trainflash.cli.output import Output
from trainflash.errors import UsageError


@click.group("gate", short_help="Measure throughput and quality, and stop changes that make them worse.")
def group() -> None:
    """Measure throughput and quality on this machine, and compare them with a baseline.

    \b
    trainflash gate env
    trainflash gate bench --warmup 20 --steps 100 -- python train.py
    trainflash gate eval --model mymodel.py:build
    trainflash gate compare --against origin/main -- python train.py
    """


def bench_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a benchmark is asked for; `config_of` takes them."""
    for option in reversed(
        (
            click.option("--warmup", type=click.IntRange(min=0), default=200, show_default=True, help="Steps before the measured ones."),
            click.option("--steps", type=int, default=100, show_default=True, help="Steps to measure."),
            click.option("--repeat", type=int, default=1, show_default=True, help="Starts of the program; each is one more measurement."),
            click.option("--mode", type=click.Choice(["e2e", "synthetic"]), default="e2e", show_default=True,
                         help="With the real data, or with a few batches replayed."),
            click.option("--world-size", type=int, default=1, show_default=True, help="Processes, by torchrun; -1: all accelerators."),
            click.option("--peak-tflops", type=float, help="Peak of one accelerator, for MFU. Default: from the registry."),
            click.option("--mfu", "estimator", type=click.Choice(["6ND", "transformer_aware"]), default="6ND", show_default=True,
                         help="How operations of a step are estimated."),
            click.option("--profile", type=click.Choice(["off", "trace", "tb"]), default="off", show_default=True,
                         help="Write a few more steps as traces for TensorBoard and Perfetto; tb: with memory and stacks."),
            click.option("--profile-dir", type=PathName(), default=Path("profile"), show_default=True),
            click.option("--tokens-per-step", type=click.FloatRange(min=0, min_open=True),
                         help="Tokens of one step, all processes together. Default: those that enter the model."),
            click.option("--no-stall", is_flag=True, help="Do not measure what waiting for data costs: one start less."),
            click.option("--workload", metavar="SPEC", help="A step function instead: MODULE:FUNCTION or FILE.py:FUNCTION."),
        )
    ):  # fmt: skip
        function = option(function)
    return function


@group.command("env", cls=Launching)
@click.option("--out", type=PathName(), help="Write env.json here.")
@json_option
@command_argument
def env(out: Path | None, as_json: bool, cmd: tuple[str, ...]) -> None:
    """Say what this machine is: accelerators, driver, torch, processor, limits, commit; the same each time.

    With CMD it is asked of the torch of that command's Python.

    \b
    trainflash gate env
    trainflash gate env --out env.json -- python train.py
    """
    from trainflash.workflow.gates import answers as gate_answers
    from trainflash.workflow.gates import gating

    output = Output(as_json)
    found = gating.env(Path.cwd(), cmd)
    if out is not None:
        found.save(out)
    output.answer(gate_answers.env(found.env), gate_answers.env_lines(found.env))


@group.command("bench", cls=Submittable)
@bench_options
@click.option("--out", type=PathName(), default=Path("metrics.json"), show_default=True, help="Where metrics.json goes.")
@click.option("--in-place", is_flag=True, help="Run in the project itself instead of a sandbox; it stands in the result.")
@sandbox_as_it_is_option
@json_option
@command_argument
def bench(
    out: Path, in_place: bool, sandbox: Path | None, as_json: bool, cmd: tuple[str, ...], workload: str | None, **options: Any
) -> None:
    """Measure how fast a training steps, and write metrics.json.

    The program runs as it is: once for facts, once with data replayed, once for each repeat.

    \b
    trainflash gate bench --warmup 20 --steps 100 -- python train.py
    trainflash gate bench --repeat 3 --profile trace -- python train.py
    trainflash gate bench --world-size 2 -- python train_ddp.py
    trainflash gate bench --workload bench_step.py:build
    """
    from trainflash.workflow.gates import answers as gate_answers
    from trainflash.workflow.gates import gating

    output = Output(as_json)
    asked = config_of(options)
    if workload is not None and cmd:
        raise UsageError("--workload and a command were given", "bench one of the two")
    with output.progress() as progress:
        if workload is not None:
            found = gating.bench_workload(workload, asked, Path.cwd(), profile_dir=options["profile_dir"], on_progress=progress)
        else:
            found = bench_program(progress, asked, options, cmd, sandbox, in_place=in_place)
        progress.finish()
    gating.write(out, found)
    output.answer(gate_answers.bench(found, out), gate_answers.bench_lines(found, out))


@group.command("eval", cls=Launching)
@click.option("--model", metavar="SPEC", help="MODULE:FUNCTION or FILE.py:FUNCTION that gives a model, (model, tokenizer) or an adapter.")
@click.option(
    "--metric",
    multiple=True,
    help="With a command: what to read from its output. A regular expression, FILE.json:$.path or MODULE:FUNCTION.",
)
@click.option(
    "--better", type=click.Choice(["lower", "higher"]), default="lower", show_default=True, help="Which way each metric is better."
)
@click.option("--shard", help="Text to score. Default: the bundled one.")
@click.option("--probe", "probes", multiple=True, help="Only these probes. Default: all three.")
@click.option("--no-probes", is_flag=True, help="Only the shard.")
@click.option("--out", type=PathName(), default=Path("eval.json"), show_default=True, help="Where eval.json goes.")
@click.option("--in-place", is_flag=True, help="Run the command in the project itself instead of a sandbox.")
@sandbox_as_it_is_option
@json_option
@command_argument
def evaluate(
    model: str | None,
    metric: tuple[str, ...],
    better: str,
    shard: str | None,
    probes: tuple[str, ...],
    no_probes: bool,
    out: Path,
    in_place: bool,
    sandbox: Path | None,
    as_json: bool,
    cmd: tuple[str, ...],
) -> None:
    """Measure how good a model is, on fixed data and greedily, and write eval.json: the same bytes for the same model.

    \b
    trainflash gate eval --model mymodel.py:build
    trainflash gate eval --metric 'val_loss=([0-9.]+)' -- python evaluate.py
    trainflash gate eval --metric 'scores.json:$.accuracy' --better higher -- python evaluate.py
    """
    from trainflash.workflow import inputs
    from trainflash.workflow.gates import answers as gate_answers
    from trainflash.workflow.gates import gating

    output = Output(as_json)
    if bool(cmd) != bool(metric) or (cmd and model):
        raise UsageError("an evaluation is a --model, or a command with --metric", "see `trainflash gate eval --help`")
    with output.progress() as progress:
        if cmd:
            settings = config.load(Path.cwd())
            with gating.session_for(Path.cwd(), sandbox, progress) as session:
                how = gating.HowToRun(in_place, settings.online, settings.writable)
                found = gating.evaluate(
                    session, inputs.command(cmd, settings), metric, how=how, env=gating.env(Path.cwd(), cmd).env, better=better
                )
        else:
            found = gating.evaluate_model(model, Path.cwd(), shard=shard, probes=() if no_probes else probes or None)
        progress.finish()
    gating.write(out, found)
    output.answer(gate_answers.evaluation(found, out), gate_answers.evaluation_lines(found, out))


def config_of(options: dict[str, Any]) -> Any:
    """The benchmark that the options ask for. Raises `UsageError` for what cannot be."""
    from trainflash.gate.config import BenchConfig

    return BenchConfig(
        warmup_steps=options["warmup"],
        measure_steps=options["steps"],
        mode=options["mode"],
        world_size=options["world_size"],
        profile=options["profile"],
        repeat=options["repeat"],
        peak_tflops=options["peak_tflops"],
        mfu_estimator=options["estimator"],
    ).check()


def bench_program(progress: Any, asked: Any, options: dict[str, Any], cmd: tuple[str, ...], sandbox: Path | None, *, in_place: bool) -> Any:
    """The program behind `--`, else the one in the project's settings, benched in its sandbox."""
    from trainflash.workflow import inputs
    from trainflash.workflow.gates import gating

    settings = config.load(Path.cwd())
    command = inputs.command(cmd, settings)
    with gating.session_for(Path.cwd(), sandbox, progress) as session:
        return gating.bench(
            session,
            command,
            asked,
            how=gating.HowToRun(in_place, settings.online, settings.writable),
            env=gating.env(Path.cwd(), command.argv).env,
            tokens_per_step=options["tokens_per_step"],
            profile_dir=options["profile_dir"],
            stalls=not options["no_stall"],
        )
