"""A round of experiments: each judged in a sandbox of its own, the best one kept; the judging is replaced by given verdicts."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from trainflash import sandbox
from trainflash.errors import UsageError
from trainflash.schema import Candidate, Command, Speedup, Verdict, WordChange
from trainflash.workflow import optimizing, rounds, session, verifying
from trainflash.workflow.verifying import Demands

COMMAND = Command(("python", "train.py"))
LINES = [f"line {n}\n" for n in range(1, 31)]


@pytest.fixture
def found(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text("".join(LINES))
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-c", "user.name=o", "-c", "user.email=o@localhost", *words], cwd=project, check=True)
    monkeypatch.setattr(optimizing, "propose", lambda made, name, value, at, command: change(int(name.removeprefix("line_"))))
    return session.create(project)


def change(place: int) -> Candidate:
    around = range(max(1, place - 3), min(30, place + 3) + 1)
    body = "".join(f"-line {n}\n+LINE {n}\n" if n == place else f" line {n}\n" for n in around)
    diff = f"--- a/train.py\n+++ b/train.py\n@@ -{around[0]},{len(around)} +{around[0]},{len(around)} @@\n{body}"
    return Candidate("memoize_function", str(place), "repeated_work", None, "same", diff, f"line {place}")


def judged(verdict: str, gain: float = 1.0) -> Verdict:
    return Verdict(verdict=verdict, speedup=Speedup(gain, gain - 0.1, gain + 0.1, 4), fidelity=None, starts=4, reasons=("measured",))


def run_with(**verdicts: Verdict | None):
    """What a job would do in each sandbox; None: it was never judged."""
    seen: list[rounds.Tried] = []

    def run(tried):
        seen.extend(tried)
        for each in tried:
            own = session.Session(sandbox.load(each.directory))
            came_to = verdicts[each.knob]
            if came_to is not None:
                one = optimizing.make(own, each.candidate, COMMAND, Demands())
                verifying.settle(own, one, came_to, None)
        return ["" if verdicts[each.knob] else "job 7 did not start" for each in tried]

    return run, seen


def held(made: session.Session) -> list[str]:
    made.rest()
    return [line for line in Path(made.sandbox.worktree, "train.py").read_text().splitlines() if line.startswith("LINE")]


def test_the_best_that_is_proven_is_kept_and_the_others_say_what_came_of_them(found):
    run, seen = run_with(
        line_2=judged("accept", 1.2), line_8=judged("reject"), line_15=judged("accept", 1.5), line_22=None, line_28=judged("inconclusive")
    )
    experiments = rounds.at_once(found, ("line_2", "line_8", "line_15", "line_22", "line_28"), COMMAND, Demands(), run)
    assert [one.decision for one in experiments] == ["inconclusive", "rejected", "accepted", "inconclusive", "inconclusive"]
    assert held(found) == ["LINE 15"]
    assert experiments[0].verdict.reasons[0].startswith("it was proven alone, on the state before experiment 3")
    assert experiments[3].verdict.reasons == ("job 7 did not start",)
    assert [entry.experiment for entry in found.log_entries() if entry.kind == "experiment"] == [1, 2, 3, 4, 5]
    assert len({each.directory for each in seen}) == 5 and not any(each.directory.exists() for each in seen)
    assert sandbox.newest(Path(found.sandbox.project)).directory == found.sandbox.directory


def test_a_round_stands_on_what_was_accepted_before(found):
    rounds.at_once(found, ("line_2",), COMMAND, Demands(), run_with(line_2=judged("accept", 1.3))[0])
    states: list[list[str]] = []
    run, _ = run_with(line_9=judged("accept", 1.1), line_20=judged("accept", 1.4))

    def look(tried):
        states.extend(held(session.Session(sandbox.load(each.directory))) for each in tried)
        return run(tried)

    experiments = rounds.at_once(found, ("line_9", "line_20"), COMMAND, Demands(), look)
    assert states == [["LINE 2"], ["LINE 2"]]
    assert [(one.n, one.parent, one.decision) for one in experiments] == [(2, 1, "inconclusive"), (3, 1, "accepted")]
    assert held(found) == ["LINE 2", "LINE 20"]


def test_a_verdict_on_another_change_is_none(found):
    run, _ = run_with(line_2=judged("accept", 1.3))

    def swap(tried):
        return run([replace(each, candidate=change(9)) for each in tried])

    (only,) = rounds.at_once(found, ("line_2",), COMMAND, Demands(), swap)
    assert only.decision == "inconclusive" and held(found) == []


def test_what_cannot_be_a_round_is_refused_before_anything_runs(found):
    def never(tried):
        raise AssertionError("nothing may run")

    with pytest.raises(UsageError, match="the same change"):
        rounds.at_once(found, ("line_2", "line_2"), COMMAND, Demands(), never)
    Path(found.sandbox.project, "train.py").write_text("other\n")
    with pytest.raises(UsageError, match="was edited since"):
        rounds.at_once(found, ("line_2", "line_3"), COMMAND, Demands(), never)
    assert found.experiments() == ()


def test_sandboxes_of_a_round_that_fails_are_gone(found):
    def fail(tried):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rounds.at_once(found, ("line_2", "line_3"), COMMAND, Demands(), fail)
    assert not (found.directory / "round").exists()
    assert sandbox.newest(Path(found.sandbox.project)).directory == found.sandbox.directory


def test_the_verdict_on_an_accepted_change_of_the_command_is_none_on_another(found, monkeypatch):
    """Both have an empty diff; the sandbox of the round holds the accepted one."""

    def word(after: str) -> Candidate:
        return Candidate("option", after, "input_cpu", None, "same", "", f"option {after}", words=(WordChange(1, COMMAND.argv[1], after),))

    verifying.settle(found, optimizing.make(found, word("other.py"), COMMAND, Demands()), judged("accept", 1.3), None)
    again = Candidate("option", "-O", "input_cpu", None, "same", "", "option -O", words=(WordChange(2, None, "-O"),))
    monkeypatch.setattr(optimizing, "propose", lambda made, name, value, at, command: again)
    (only,) = rounds.at_once(found, ("option",), COMMAND, Demands(), run_with(option=None)[0])
    assert (only.decision, only.verdict.reasons) == ("inconclusive", ("job 7 did not start",))
