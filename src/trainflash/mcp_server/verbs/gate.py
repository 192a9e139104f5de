"""gate: measure throughput and quality, and stop changes that make them worse. What writes into the project is left to the command line."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from trainflash.errors import UsageError
from trainflash.mcp_server.verbs.arguments import Budget, Call, Command, Project, Sandbox, Verb, own_file, reserved_file, seconds, words
from trainflash.mcp_server.verbs.elsewhere import On, Slurm, in_a_job

Better = Annotated[Literal["lower", "higher"], "Which way each metric is better."]
Metrics = Annotated[
    list[str] | None, "What to read from the evaluation's output: a regular expression, FILE.json:$.path or MODULE:FUNCTION."
]
Tolerances = Annotated[list[str] | None, "NAME=VALUE instead of the settings' and the defaults, such as throughput_drop_pct=3."]


def env(call: Call, command: Command = None, project: Project = None) -> dict[str, Any]:
    """What this machine is: accelerators, driver, torch, processor, limits, commit; the same each time. Baselines belong to its profile."""
    from trainflash.workflow.gates import answers as gate_answers
    from trainflash.workflow.gates import gating

    return gate_answers.env(gating.env(call.roots.project(project), words(command)).env)


def bench(
    call: Call,
    command: Command = None,
    project: Project = None,
    sandbox: Sandbox = None,
    warmup: Annotated[int, "Steps before the measured ones.", (0, None)] = 200,
    steps: Annotated[int, "Steps to measure.", (1, None)] = 100,
    repeat: Annotated[int, "Starts of the program; each is one more measurement.", (1, 100)] = 1,
    tokens_per_step: Annotated[float | None, "Tokens of one step, all processes together. Default: those that enter the model."] = None,
    stalls: Annotated[bool, "Measure what waiting for data costs: one start more."] = True,
    on: On = None,
    slurm: Slurm = None,
) -> dict[str, Any]:
    """Measure how fast the training steps, in a sandbox; `metrics` names the file that gate_compare takes."""
    from trainflash.workflow import inputs
    from trainflash.workflow.gates import answers as gate_answers
    from trainflash.workflow.gates import gating

    settings = call.settings(project, sandbox)
    typed = inputs.command(words(command), settings)
    asked = gating.BenchConfig(warmup_steps=warmup, measure_steps=steps, repeat=repeat).check()
    with reserved_file("gate", "metrics", ".json") as output:
        given = {
            "--warmup": warmup, "--steps": steps, "--repeat": repeat, "--tokens-per-step": tokens_per_step, "--no-stall": not stalls,
            "--out": output,
        }  # fmt: skip
        place = call.roots.project(project)
        if (told := in_a_job(call, on, slurm, settings, ["gate", "bench"], given, typed.argv, (place, call.sandbox(sandbox)))) is not None:
            return told
        with gating.session_for(place, call.sandbox(sandbox), call.on_progress) as found:
            call.roots.inside(found.sandbox.project)
            made = gating.bench(
                found,
                typed,
                asked,
                how=gating.HowToRun(False, settings.online, settings.writable),
                env=gating.env(place, typed.argv).env,
                tokens_per_step=tokens_per_step,
                stalls=stalls,
            )
        gating.write(output, made)
        return gate_answers.bench(made, output)


def evaluate(
    call: Call, metric: Metrics, command: Command = None, project: Project = None, sandbox: Sandbox = None, better: Better = "lower"
) -> dict[str, Any]:
    """Run the project's own evaluation in a sandbox and read its metrics; `eval` names the file that gate_compare takes."""
    from trainflash.workflow import inputs
    from trainflash.workflow.gates import answers as gate_answers
    from trainflash.workflow.gates import gating

    if not metric:
        raise UsageError("no metric is named", "say what to read from the evaluation's output")
    settings = call.settings(project, sandbox)
    typed = inputs.command(words(command), settings)
    with gating.session_for(call.roots.project(project), call.sandbox(sandbox), call.on_progress) as found:
        call.roots.inside(found.sandbox.project)
        how = gating.HowToRun(False, settings.online, settings.writable)
        machine = gating.env(call.roots.project(project), typed.argv).env
        made = gating.evaluate(found, typed, metric, how=how, env=machine, better=better)
    output = own_file("gate", "eval", ".json")
    gating.write(output, made)
    return gate_answers.evaluation(made, output)


def compare(
    call: Call,
    command: Command = None,
    project: Project = None,
    against: Annotated[str | None, "Run that commit and this state in turn, here and now: holds on noisy machines too."] = None,
    metrics_file: Annotated[str | None, "Instead: `metrics` of gate_bench, held against the stored baseline of this machine."] = None,
    eval_file: Annotated[str | None, "Instead or beside: `eval` of gate_eval."] = None,
    baselines: Annotated[str, "Folder of the stored baselines, in the project."] = "bench/baselines",
    metric: Metrics = None,
    better: Better = "lower",
    tolerance: Tolerances = None,
    budget: Budget = None,
    on: On = None,
    slurm: Slurm = None,
) -> dict[str, Any]:
    """May this change pass? pass, warn, fail or inconclusive, with an interval for each figure.

    With `against` many starts of both sides, up to the budget (20 minutes); without, what was measured and a stored baseline.
    """
    from trainflash.workflow import inputs
    from trainflash.workflow.gates import checks as gate_checks
    from trainflash.workflow.gates import gating
    from trainflash.workflow.gates import pairs as gate_pairs
    from trainflash.workflow.gates import results as gate_results

    settings = call.settings(project, None)
    held = gate_checks.tolerances(settings, tuple(tolerance or ()))
    place = call.roots.project(project)
    if against is None:
        if on == "slurm":
            raise UsageError("a stored baseline is compared here", "leave out on, or add against")
        measured = gate_checks.Measured(call.file(metrics_file) if metrics_file else None, call.file(eval_file) if eval_file else None)
        return gate_results.document(gate_checks.compare(place, measured, call.file(str(place / baselines)), held))
    if metrics_file or eval_file:
        raise UsageError("`against` measures both sides itself", "leave out metrics_file and eval_file")
    typed = inputs.command(words(command), settings)
    given = {"--against": against, "--metric": metric, "--better": better, "--tolerance": tolerance, "--budget": budget}
    if (told := in_a_job(call, on, slurm, settings, ["gate", "compare"], given, typed.argv, (place, None))) is not None:
        return told
    demands = gate_pairs.Demands(
        tolerances=held,
        budget_s=seconds(budget) or settings.budget_s,
        how=gating.HowToRun(False, settings.online, settings.writable),
        metrics=tuple(metric or ()),
        better=better,
    )
    return gate_results.document(gate_pairs.compare(place, against, typed, demands, call.on_progress))


def history(
    call: Call,
    project: Project = None,
    file: Annotated[str, "The history, JSON lines, in the project."] = "bench/history.jsonl",
    machine_profile: Annotated[str | None, "Of this machine profile. Default: that of the last record."] = None,
) -> dict[str, Any]:
    """Levels and change points of each figure over time, so that many small losses are seen which each passed the gate."""
    from trainflash.workflow.gates import checks as gate_checks
    from trainflash.workflow.gates import results as gate_results

    path = call.roots.inside(str(call.roots.project(project) / file))
    return gate_results.document(gate_checks.trend(path, machine_profile, gate_checks.tolerances(call.settings(project, None))))


VERBS = (
    Verb("gate_env", env, "What this machine is", "gate_env", long=True, reads_only=True),
    Verb("gate_bench", bench, "Measure throughput", "gate_bench", long=True),
    Verb("gate_eval", evaluate, "Measure quality", "gate_eval", long=True),
    Verb("gate_compare", compare, "May this change pass?", "gate_compare", long=True),
    Verb("gate_history", history, "Throughput over time", "gate_history", long=True, reads_only=True),
)
