"""The JSON document that each command answers with; the same for the command line and for programs. Keys are stable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from trainflash import report
from trainflash import sandbox as sandboxes
from trainflash.errors import ProgramFailed, TrainFlashError
from trainflash.profile import Written
from trainflash.profile.slimming import Slimmed
from trainflash.schema import (
    Approval,
    Brief,
    Carried,
    Diagnosis,
    Experiment,
    LogEntry,
    Plan,
    Sandbox,
    Verdict,
    Verified,
    to_plain,
    training_change,
)
from trainflash.schema.health import Health
from trainflash.workflow.searching import Outcome
from trainflash.writeback import Proposal

_STATUS = {"accept": "ok", "reject": "rejected", "inconclusive": "inconclusive", "needs_agreement": "needs_approval"}
_CARRIED = {"carries over": "ok", "does not": "rejected", "undecided": "inconclusive"}
_TRACKED = {"fail": "rejected", "inconclusive": "inconclusive"}


def error(command: str, problem: TrainFlashError) -> dict[str, Any]:
    """Any command that ended with an error of ours."""
    told: dict[str, Any] = {"message": problem.message, "mend": problem.mend}
    if isinstance(problem, ProgramFailed):
        told |= {"returncode": problem.returncode, "output": problem.output}
    return {"schema": f"{command}.v1", "status": problem.status, "error": told}


def sandbox(made: Sandbox, command: str = "sandbox_create") -> dict[str, Any]:
    plain = to_plain(made)
    keys = ("project", "worktree", "baseline", "base_ref", "protection", "protection_reason", "warnings")
    return {"schema": f"{command}.v1", "status": "ok", "sandbox": made.directory, **{key: plain[key] for key in keys}}


def sandbox_status(made: Sandbox, status: sandboxes.Status, experiments: Sequence[Experiment]) -> dict[str, Any]:
    return {
        **sandbox(made, "sandbox_status"),
        "head": status.head,
        "dirty": list(status.dirty),
        "commits": [list(commit) for commit in status.commits],
        "drift": list(status.drift),
        "experiments": [_experiment(experiment) for experiment in experiments],
    }


def status_lines(status: sandboxes.Status, experiments: Sequence[Experiment]) -> list[str]:
    """The same for a person."""
    lines = [f"experiment {one.n}: {one.knob} {one.value}, {one.decision.replace('_', ' ')}" for one in experiments]
    if status.dirty:
        lines.append(f"worktree/ has edits that are in no experiment: {', '.join(status.dirty[:5])}")
    if status.drift:
        lines.append(f"changed in the project since: {', '.join(status.drift[:5])}")
    return lines or ["no experiments yet"]


def diagnosis(found: Diagnosis, sandbox_directory: str, protection: str | None) -> dict[str, Any]:
    plain = to_plain(found)
    plain.pop("schema")
    return {"schema": "diagnose.v1", "status": "ok", "sandbox": sandbox_directory, "protection": protection, **plain}


def plan(made: Plan) -> dict[str, Any]:
    plain = to_plain(made)
    plain.pop("schema")
    return {"schema": "optimize_plan.v1", "status": "ok", **plain}


def brief(made: Brief) -> dict[str, Any]:
    """`optimize brief`; `markdown` is the page that an author is given."""
    plain = to_plain(made)
    plain.pop("schema")
    return {"schema": "optimize_brief.v1", "status": "ok", **plain, "markdown": report.brief(made)}


def attempt(experiment: Experiment) -> dict[str, Any]:
    """`optimize try`: one experiment."""
    return attempts([experiment])


def attempts(experiments: Sequence[Experiment]) -> dict[str, Any]:
    """`optimize try --also`: several experiments on one state, of which at most one is accepted; the status is that of the best."""
    accepted = [one for one in experiments if one.decision == "accepted"]
    verdicts = [one.verdict for one in experiments if one.verdict]
    statuses = [_STATUS[judged.verdict] for judged in verdicts]
    return {
        "schema": "optimize_try.v1",
        "status": next((status for status in ("ok", "needs_approval", "inconclusive", "rejected") if status in statuses), "failed"),
        "experiments": [_experiment(one) for one in experiments],
        "accepted": [one.n for one in accepted],
        "speedup": to_plain(accepted[0].verdict.speedup) if accepted and accepted[0].verdict else None,
        "spent_s": sum(judged.spent_s for judged in verdicts),
        "stopped_because": "one experiment was asked for" if len(experiments) == 1 else f"{len(experiments)} experiments were asked for",
    }


def outcome(came_to: Outcome, accepted: Sequence[Experiment], command: str, shown: report.TuneView) -> dict[str, Any]:
    """`optimize auto` and `tune`."""
    combined = came_to.combined
    return {
        "schema": f"{command}.v1",
        "status": "needs_approval" if shown.approve_command else "ok",
        "experiments": [_experiment(experiment) for experiment in came_to.experiments],
        "accepted": [experiment.n for experiment in accepted],
        "speedup": to_plain(combined.speedup) if combined and combined.verdict == "accept" else None,
        "combined": to_plain(combined) if combined else None,
        "spent_s": came_to.spent_s,
        "ending": came_to.ending,
        "stopped_because": came_to.stopped_because,
        "briefs": [to_plain(brief) for brief in came_to.briefs],
        "attempts": [to_plain(each) for each in came_to.attempts],
        "ledger": [to_plain(each) for each in shown.ledger],
        "approve": shown.approve_command,
        "run_as": shown.run_as,
        "next": [asdict(each) for each in shown.next_steps],
    }


def verdict(judged: Verdict) -> dict[str, Any]:
    plain = to_plain(judged)
    plain.pop("schema")
    return {"schema": "verify.v1", "status": _STATUS[judged.verdict], **plain, "training": _training(judged)}


def verified(found: Verified, carried: Carried | None = None) -> dict[str, Any]:
    """`verify`: the verdict, and what it is about; with a bundle's, whether that carries over, which is then the status."""
    told = {**verdict(found.verdict), "compared": to_plain(found.compared), "machine": found.machine}
    return told if carried is None else {**told, "status": _CARRIED[carried.answer], "carried": to_plain(carried)}


def _training(judged: Verdict) -> dict[str, Any]:
    return to_plain(training_change(judged.fidelity, judged.verdict))


def proposal(made: Proposal) -> dict[str, Any]:
    return {
        "schema": "writeback.v1",
        "status": "needs_approval" if made.approvable else "rejected",
        "diff": made.diff,
        "digest": made.digest,
        "files": list(made.files),
        "approvable": made.approvable,
        "reason": made.reason,
        "run_as": made.run_as,
    }


def approval(given: Approval) -> dict[str, Any]:
    plain = to_plain(given)
    plain.pop("schema")
    return {"schema": "writeback.v1", "status": "ok", **plain}


def log(entries: Sequence[LogEntry], path: str) -> dict[str, Any]:
    return {"schema": "log.v1", "status": "ok", "path": path, "entries": [to_plain(entry) for entry in entries]}


def exported(written: Written, run: str) -> dict[str, Any]:
    """`profile export`."""
    return {"schema": "profile_export.v1", "status": "ok", "run": run, **asdict(written)}


def slimmed(written: Sequence[Slimmed], origin: str) -> dict[str, Any]:
    """`profile export` of a trace."""
    return {"schema": "profile_export.v1", "status": "ok", "source": origin, "files": [asdict(each) for each in written]}


def health(found: Health) -> dict[str, Any]:
    """`doctor`."""
    return {"schema": Health.SCHEMA, "status": "ok" if found.works else "failed", "checks": [asdict(check) for check in found.checks]}


def profile(made: Any, **beside: Any) -> dict[str, Any]:
    """What `trainflash profile` makes: summary, answer, comparison, assessment, history, bundle or publication."""
    plain = to_plain(made)
    status = _TRACKED.get(plain.get("result"), "ok")
    return {"schema": plain.pop("schema"), "status": status, **plain, **beside}


def _experiment(experiment: Experiment) -> dict[str, Any]:
    return {
        "n": experiment.n,
        "knob": experiment.knob,
        "value": experiment.value,
        "location": to_plain(experiment.location) if experiment.location else None,
        "diff_digest": experiment.diff_digest,
        "decision": experiment.decision,
        "agree": experiment.agree_command or None,
        "verdict": to_plain(experiment.verdict) if experiment.verdict else None,
        "training": _training(experiment.verdict) if experiment.verdict else None,
    }
