"""`trainflash diagnose`: where the time goes, and which bottleneck dominates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from trainflash import config
from trainflash.cli.elsewhere import Submittable
from trainflash.cli.options import command_argument, json_option, sandbox_or_new_option
from trainflash.cli.output import Output


def _starts(params: Mapping[str, Any]) -> bool:
    return not params.get("run") and params.get("pid") is None


@click.command(cls=Submittable, starts=_starts, short_help="Where does the time go, and which line is to blame?")
@click.option("--steps", type=click.IntRange(min=1), help="Stop the program after this many training steps.")
@click.option("--warmup", type=click.IntRange(min=0), help="Leave out so many first steps, instead of finding the warm-up.")
@click.option("--sample-hz", type=click.FloatRange(min=0, max=1000), help="How often to sample source lines; 0: never. Default: 50.")
@click.option("--ceilings", is_flag=True, help="Measure how much faster it is without each cost: several more starts, about 90 s in all.")
@click.option("--run", help="Diagnose an earlier run again from its events, without running the program.")
@click.option("--pid", type=int, help="Watch a training that runs already, without a restart: slow or hung, and where.")
@click.option("--seconds", type=float, help="With --pid: how long to watch. Default: 10.")
@click.option("--in-place", is_flag=True, help="Run in the project itself instead of a sandbox; it stands in the result.")
@sandbox_or_new_option
@json_option
@command_argument
def diagnose(
    steps: int | None,
    warmup: int | None,
    sample_hz: float | None,
    ceilings: bool,
    run: str | None,
    pid: int | None,
    seconds: float | None,
    in_place: bool,
    sandbox: Path | None,
    as_json: bool,
    cmd: tuple[str, ...],
) -> None:
    """Run the unmodified program under a probe and name its bottleneck, with evidence and source line.

    The program is stopped at a step boundary once enough was seen.

    \b
    trainflash diagnose -- python train.py --epochs 3
    trainflash diagnose --ceilings -- python train.py
    trainflash diagnose --steps 200 -- torchrun --nproc-per-node 2 train.py
    trainflash diagnose --pid 4711
    trainflash diagnose --on slurm --slurm-option ntasks=8 -- srun python train.py
    """
    from trainflash import report
    from trainflash.workflow import answers, diagnosing, inputs, session

    output = Output(as_json)
    if pid is not None:
        given = {"--steps": steps, "--warmup": warmup, "--sample-hz": sample_hz, "--ceilings": ceilings, "--run": run}
        given |= {"--in-place": in_place, "--sandbox": sandbox}
        _watch(output, pid, seconds, [name for name, value in given.items() if value is not None and value is not False], cmd)
        return
    if seconds is not None:
        raise click.UsageError("--seconds goes with --pid; a run from the start takes --steps")
    project = Path.cwd()
    settings = config.load(session.project_of(project, sandbox))
    if run:
        found = session.existing_session(project, sandbox)
        diagnosis, _ = diagnosing.from_run(found, found.run_dir(run), warmup=warmup)
    else:
        command = inputs.command(cmd, settings)
        with output.progress() as progress:
            found, new = session.open_session(project, sandbox, on_progress=progress)
            if new:
                output.say(f"new sandbox: {found.sandbox.directory}")
            with found.locked():
                diagnosis, _ = diagnosing.diagnose(
                    found,
                    command,
                    steps=steps,
                    warmup=warmup,
                    sample_hz=sample_hz,
                    ceilings=ceilings,
                    in_place=in_place,
                    online=settings.online,
                    writable=settings.writable,
                )
            progress.finish()
    protection = diagnosing.protection(found, diagnosis.run)
    output.answer(answers.diagnosis(diagnosis, found.sandbox.directory, protection), report.diagnosis(diagnosis))


def _watch(output: Output, pid: int, seconds: float | None, others: list[str], cmd: tuple[str, ...]) -> None:
    """`--pid`: the program runs already, so nothing that shapes a run goes with it."""
    from trainflash import report
    from trainflash.workflow import watching

    if cmd:
        raise click.UsageError("--pid watches a program that runs already; leave out the command after `--`")
    if others:
        raise click.UsageError(f"--pid does not go with {', '.join(others)}")
    with output.progress() as progress:
        found = watching.watch(pid, seconds, progress)
        progress.finish()
    output.answer(watching.answer(found), report.live(found))
