"""verify: is it faster, and does it still train the same? And what a write-back would write."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Annotated, Any

from trainflash.mcp_server.verbs.arguments import Allow, Budget, Call, Command, Exact, Project, Sandbox, Verb, reserved_file, seconds, words
from trainflash.mcp_server.verbs.elsewhere import On, Slurm, in_a_job, place_of


def verify(
    call: Call,
    command: Command = None,
    project: Project = None,
    sandbox: Sandbox = None,
    experiment: Annotated[int | None, "Judge this experiment against the state it was built on.", (1, None)] = None,
    baseline: Annotated[
        str | None,
        "What the candidate is compared with: any branch, tag or commit. Default: where a candidate's branch left the main branch; for a "
        "patch the project as it is now.",
    ] = None,
    candidate: Annotated[
        str | None,
        "What is judged: any branch, tag or commit, or a patch file (*.diff, *.patch) of the project. Default without experiment and "
        "baseline: all accepted changes together.",
    ] = None,
    metric: Annotated[
        str | None,
        "The project's own metric, which decides instead of the loss: a regular expression with one group (on the output), $.path or "
        "FILE.json:$.path, or MODULE:FUNCTION.",
    ] = None,
    tolerance: Annotated[float | None, "Largest mean |loss delta|, or |delta| of the metric, that counts as the same."] = None,
    convergence: Annotated[bool, "Also train both versions whole under several seeds and compare where they end."] = False,
    seeds: Annotated[int, "How many seeds convergence trains under.", (1, 100)] = 5,
    restart_command: Annotated[str | None, "The command that goes on from a checkpoint."] = None,
    accept_change: Allow = None,
    exact: Exact = False,
    budget: Budget = None,
    bundle: Annotated[bool, "Also write the verdict as one file for other machines; the answer's `bundle` is its path."] = False,
    carried: Annotated[str | None, "A bundle of another machine: judge its change here, and say whether its verdict carries over."] = None,
    resume: Annotated[bool, "Go on with what an interrupted verify left; refuse when machine or versions are others now."] = False,
    on: On = None,
    slurm: Slurm = None,
) -> dict[str, Any]:
    """Run baseline and candidate in turn, many times, and judge speed and fidelity; fails closed. Minutes; cancelling keeps the starts."""
    from trainflash.workflow import answers, inputs, states, verifications

    brought = call.file(carried) if carried is not None else None
    asked = states.asked(experiment, baseline, candidate, call.project(project, sandbox), brought)
    if asked.patch is not None:
        asked = replace(asked, patch=call.file(str(asked.patch)))
    settings = call.settings(project, sandbox)
    demands = inputs.demands(
        settings, budget_s=seconds(budget), allow=accept_change, exact=exact, tolerance=tolerance, resume=resume, metric=metric,
        restart=restart_command, convergence=seeds if convergence else 0,
    )  # fmt: skip
    found = call.any_session(project, sandbox, as_it_is=asked.of_now) if asked.by_name else call.existing(project, sandbox)
    given = {
        "--experiment": experiment, "--baseline": baseline, "--candidate": candidate, "--metric": metric, "--tolerance": tolerance,
        "--convergence": convergence, "--seeds": seeds, "--restart-command": restart_command, "--accept-change": accept_change,
        "--exact": exact, "--budget": budget, "--resume": resume, "--carried": brought,
    }  # fmt: skip
    owners = inputs.command(words(command), settings).argv if command or experiment is None else ()
    with reserved_file("bundles", "verify", ".zip") if bundle else nullcontext() as place:
        beside = {"bundle": str(place)} if place else {}
        given |= {"--bundle": place}
        if (told := in_a_job(call, on, slurm, settings, ["verify"], given, owners, place_of(found))) is not None:
            return told | beside
        with found.locked():
            typed = inputs.command(words(command), settings) if command or experiment is None else None
            return answers.verified(*verifications.verify(found, asked, typed, demands, bundle=place)) | beside


def preview(
    call: Call,
    project: Project = None,
    sandbox: Sandbox = None,
    experiment: Annotated[int | None, "This accepted experiment and those below it. Default: all accepted ones.", (1, None)] = None,
) -> dict[str, Any]:
    """The diff that a write-back would write, its digest, and whether it can be approved; changes nothing."""
    from trainflash.workflow import answers, approving

    found = call.existing(project, sandbox)
    with found.locked():
        return answers.proposal(approving.propose(found, experiment))


VERBS = (
    Verb("verify", verify, "Judge speed and fidelity", "verify", long=True),
    Verb("writeback_preview", preview, "Show what a write-back would write", "writeback", reads_only=True),
)
