"""profile: a profiler's trace becomes one small summary that can be asked, compared and tracked."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from trainflash.errors import UsageError
from trainflash.mcp_server.verbs.arguments import Call, Command, Project, Sandbox, Verb, own_file, words
from trainflash.mcp_server.verbs.elsewhere import On, Slurm, in_a_job, place_of

Summary = Annotated[str, "A summary that profile_summarize wrote: its `output`."]
Rows = Annotated[int, "How many rows at most.", (1, 1000)]
Mode = Literal["exclusive_global", "exclusive_per_track", "inclusive"]


def capture(
    call: Call,
    command: Command = None,
    project: Project = None,
    sandbox: Sandbox = None,
    wait: Annotated[int, "Steps to let pass first.", (0, None)] = 5,
    warmup: Annotated[int, "Then steps in which the profiler warms up; not kept.", (0, None)] = 2,
    active: Annotated[int, "Then steps to record.", (1, None)] = 3,
    shapes: Annotated[bool, "Record the shapes of the operators' inputs."] = False,
    memory: Annotated[bool, "Record allocations."] = False,
    stacks: Annotated[bool, "Record Python stacks; slows the program down, so never compare such a run."] = False,
    to_the_end: Annotated[bool, "Let the program run to its end; it is stopped behind the window otherwise."] = False,
    on: On = None,
    slurm: Slurm = None,
) -> dict[str, Any]:
    """Run the unmodified program in a sandbox with torch's profiler over a few of its steps; one trace per rank."""
    from trainflash.workflow import capturing, inputs

    settings = call.settings(project, sandbox)
    typed = inputs.command(words(command), settings)
    found = call.any_session(project, sandbox)
    window = capturing.Window(wait, warmup, active, shapes, memory, stacks)
    given = {f"--{name}": value for name, value in asdict(window).items()} | {"--to-the-end": to_the_end}
    told = in_a_job(call, on, slurm, settings, ["profile", "capture"], given, typed.argv, place_of(found))
    if told is not None:
        return told
    with found.locked():
        made = capturing.capture(found, typed, window, online=settings.online, writable=settings.writable, to_the_end=to_the_end)
    return capturing.answer(made)


def summarize(
    call: Call,
    trace: Annotated[str | None, "A trace: a Kineto, Chrome or Perfetto JSON file (.gz too), an *.xplane.pb, or a directory."] = None,
    run: Annotated[str | None, "Instead: a run that trainflash itself recorded, such as diagnose-001."] = None,
    project: Project = None,
    sandbox: Sandbox = None,
    breakdown_mode: Annotated[Mode, "How concurrent events are counted."] = "exclusive_global",
    warmup_steps: Annotated[int | None, "Leave out so many first steps, instead of finding the warm-up.", (0, None)] = None,
    hot_op_limit: Annotated[int, "How many ops the summary lists.", (1, 1000)] = 25,
) -> dict[str, Any]:
    """Read a trace of PyTorch or JAX and write profile_summary.v1; `output` names the file that the other profile tools take."""
    from trainflash.workflow import answers, exporting, profiling

    if (trace is None) == (run is None):
        raise UsageError("give a trace or a run, one of them", "traces are files below the roots; runs stand in sandbox_status")
    how = profiling.Options(breakdown_mode=breakdown_mode, warmup_steps=warmup_steps, hot_op_limit=hot_op_limit, readability_run=False)
    if run is not None:
        made = profiling.summary_of(exporting.as_profile(call.existing(project, sandbox), run), how, call.on_progress)
    else:
        made = profiling.summary(_request(call.file(str(trace))), how, call.on_progress)
    output = own_file("profiles", "summary", ".json")
    profiling.write_summary(output, made)
    return answers.profile(made, output=str(output))


def _request(path: Path) -> Any:
    from trainflash.workflow import profiling

    if path.is_dir():
        return profiling.Request(profile_dir=path)
    return profiling.Request(xplane_file=(path,)) if path.suffix == ".pb" else profiling.Request(trace_file=(path,))


def query(
    call: Call,
    summary: Summary,
    question: Annotated[str | None, "The question in words; an unknown one lists what can be asked."] = None,
    select: Annotated[str | None, "Rows instead: ops, host_ops, families, collectives, gaps, regions, idle, ranks, steps, …"] = None,
    sort: Annotated[str | None, "With select: the field to sort by, such as exclusive, total, count; largest first."] = None,
    ascending: Annotated[bool, "With sort: smallest first."] = False,
    limit: Rows = 10,
) -> dict[str, Any]:
    """Answer one question about a summary, such as "What should we try next?"; the same question has the same answer."""
    from trainflash.workflow import answers, profiling

    if (question is None) == (select is None):
        raise UsageError("give a question or select, one of them", "ask in words, or select rows")
    return answers.profile(profiling.ask(profiling.load(call.file(summary)), question, select, sort, limit, ascending=ascending))


def report(call: Call, summary: Summary, top_k: Rows = 10) -> dict[str, Any]:
    """The root-cause report of a summary as a page with pictures; says where it lies."""
    from trainflash.workflow import profiling

    made = profiling.load(call.file(summary))
    output = own_file("profiles", "report", ".html")
    profiling.write_report(output, made, top_k=top_k)
    return {"schema": "profile_report.v1", "status": "ok", "digest": made.digest, "output": str(output)}


def compare(
    call: Call,
    before: Summary,
    after: Summary,
    strict_provenance: Annotated[bool, "Refuse one trace against itself, and workloads that share no identity."] = False,
    top_k: Rows = 10,
) -> dict[str, Any]:
    """How one profile differs from another: steps, classes, families and ops. That proves nothing about speed; verify does."""
    from trainflash.workflow import answers, profiling

    return answers.profile(profiling.compare(call.file(before), call.file(after), strict=strict_provenance, top_k=top_k))


def export(
    call: Call, run: Annotated[str, "A run of the sandbox, such as diagnose-001."], project: Project = None, sandbox: Sandbox = None
) -> dict[str, Any]:
    """Write a run as one file that ui.perfetto.dev and chrome://tracing open, in the run's directory."""
    from trainflash.workflow import answers, exporting

    return answers.exported(exporting.export(call.existing(project, sandbox), run, None), run)


VERBS = (
    Verb("profile_capture", capture, "Record a few steps with torch's profiler", "profile_capture", long=True),
    Verb("profile_summarize", summarize, "Summarize a trace", "profile_summarize", long=True),
    Verb("profile_query", query, "Ask a profile", "profile_query", reads_only=True),
    Verb("profile_report", report, "Report of a profile", "profile_report", long=True),
    Verb("profile_compare", compare, "Compare two profiles", "profile_compare", long=True, reads_only=True),
    Verb("profile_export", export, "Export a run as a time line", "profile_export", long=True),
)
