"""diagnose: where the time goes, and which line is to blame."""

from __future__ import annotations

from typing import Annotated, Any

from trainflash.mcp_server.verbs.arguments import Call, Command, Project, Sandbox, Verb, words
from trainflash.mcp_server.verbs.elsewhere import On, Slurm, in_a_job, place_of


def diagnose(
    call: Call,
    command: Command = None,
    project: Project = None,
    sandbox: Sandbox = None,
    steps: Annotated[int | None, "Stop the program after this many training steps. Default: after about a minute.", (1, None)] = None,
    warmup: Annotated[int | None, "Leave out so many first steps, instead of finding the warm-up.", (0, None)] = None,
    sample_hz: Annotated[float | None, "How often to sample source lines; 0: never. Default: 50.", (0, 1000)] = None,
    ceilings: Annotated[bool, "Also measure how much faster it is without each cost: several more starts, about 90 s in all."] = False,
    on: On = None,
    slurm: Slurm = None,
) -> dict[str, Any]:
    """Run the unmodified training command in a sandbox under a probe and name its bottleneck, with evidence and source line.

    The first finding is the bottleneck. The program is stopped at a step boundary once enough was seen: a minute or two in all.
    """
    from trainflash.workflow import answers, diagnosing, inputs

    settings = call.settings(project, sandbox)
    typed = inputs.command(words(command), settings)
    found = call.any_session(project, sandbox)
    given = {"--steps": steps, "--warmup": warmup, "--sample-hz": sample_hz, "--ceilings": ceilings}
    if (told := in_a_job(call, on, slurm, settings, ["diagnose"], given, typed.argv, place_of(found))) is not None:
        return told
    with found.locked():
        made, _ = diagnosing.diagnose(
            found,
            typed,
            steps=steps,
            warmup=warmup,
            sample_hz=sample_hz,
            ceilings=ceilings,
            online=settings.online,
            writable=settings.writable,
        )
    return answers.diagnosis(made, found.sandbox.directory, diagnosing.protection(found, made.run))


def rediagnose(
    call: Call,
    run: Annotated[str, "An earlier run of the sandbox, such as diagnose-001."],
    project: Project = None,
    sandbox: Sandbox = None,
    warmup: Annotated[int | None, "Leave out so many first steps, instead of finding the warm-up.", (0, None)] = None,
) -> dict[str, Any]:
    """Diagnose an earlier run again from its events, without running the program."""
    from trainflash.workflow import answers, diagnosing

    found = call.existing(project, sandbox)
    made, _ = diagnosing.from_run(found, found.run_dir(run), warmup=warmup)
    return answers.diagnosis(made, found.sandbox.directory, diagnosing.protection(found, made.run))


def watch(
    call: Call,
    pid: Annotated[int, "Process of a training that runs already.", (1, None)],
    seconds: Annotated[float | None, "How long to watch. Default: 10."] = None,
) -> dict[str, Any]:
    """Look at a training that runs already, without a restart: slow or hung, and in which line. Nothing of it is stopped or changed."""
    from trainflash.workflow import watching

    return watching.answer(watching.watch(pid, seconds, call.on_progress))


VERBS = (
    Verb("diagnose", diagnose, "Find the bottleneck", "diagnose", long=True),
    Verb("diagnose_run", rediagnose, "Diagnose an earlier run again", "diagnose", long=True),
    Verb("diagnose_pid", watch, "Look at a running training", "live", long=True, reads_only=True),
)
