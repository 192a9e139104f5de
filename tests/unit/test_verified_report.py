"""What is told of a verdict in a comment: the answer first, its figures, what changes in kind, what was run; nobody's text breaks out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from trainflash import report
from trainflash.schema import Carried, Check, Compared, Fidelity, Speedup, State, Verdict, Verified

CLOSE = Fidelity("close", ("numerics",), 3e-8, 1e-7, 1e-3, 240, ("evaluation",), ("checkpoint",), (Check("loss", True, "within"),))
STATES = State("5e5ace5", "5e5ace5aba73fcc72059", "a" * 40), State("feature|x", "ead531e7f1ad81796cb7", "b" * 40)
COMPARED = Compared(*STATES, "python train.py", "baseline: 5e5ace5, where ead531e left main")
FASTER = Verdict("accept", Speedup(1.31, 1.27, 1.36, 5), CLOSE, 5, ("faster: 1.31",))
MACHINE = {"processor": "EPYC", "cores": "2", "python": "3.11.7", "torch": "2.13.0", "machine": "node-17"}


def test_a_comment_says_all_that_a_maintainer_asks():
    text = report.verified.markdown(Verified(FASTER, COMPARED, MACHINE))
    assert text.startswith("<!-- trainflash verify -->\n## ✓ 1.31× faster, and it trains the same but for rounding\n")
    for told in (
        "1.31× [1.27, 1.36] over 5 paired starts", "other rounding", "`python train.py`", "`5e5ace5`", "where ead531e left main",
        "checkpoint", "EPYC, 2 cores, python 3.11.7, torch 2.13.0", "(tolerance", "faster: 1.31",
    ):  # fmt: skip
        assert told in text.replace("\\", ""), told
    assert "node-17" not in text
    assert "`feature|x (ead531e)`" in text


@pytest.mark.parametrize(
    ("judged", "said"),
    [
        (
            replace(FASTER, verdict="reject", fidelity=replace(CLOSE, verdict="changed", changed=("order",))),
            "trains differently: other order",
        ),
        (replace(FASTER, verdict="reject", fidelity=replace(CLOSE, verdict="changed", changed=("failed",))), "Rejected: it fails"),
        (replace(FASTER, verdict="reject", reasons=("speed: not faster by 2 %",)), "Rejected: not faster by 2 %"),
        (replace(FASTER, verdict="inconclusive"), "Inconclusive: there is not enough evidence"),
        (Verdict("inconclusive", None, None, 0, ("failed",)), "fidelity not measured"),
    ],
)
def test_what_is_not_accepted_is_told_as_such(judged, said):
    text = report.verified.markdown(Verified(judged, COMPARED))
    assert said in text and "faster, and it" not in text.split("\n")[1]


def test_a_carried_verdict_shows_each_machine_by_itself():
    there = replace(FASTER, speedup=Speedup(2.0, 1.9, 2.1, 4))
    carried = Carried("carries over", "0" * 64, there, {"processor": "Xeon", "cores": "8"}, COMPARED, ("cores was 8, is 2",))
    text = report.verified.markdown(Verified(FASTER, COMPARED, MACHINE), carried)
    assert "The verdict carries over. There: accept, 2.00× \\[1.90, 2.10\\]" in text and "Xeon, 8 cores" in text
    console = Console(width=200, record=True, file=None, no_color=True)
    with console.capture() as shown:
        console.print(report.verified.terminal(Verified(FASTER, COMPARED, MACHINE), carried))
    assert "✓ The verdict carries over" in shown.get() and "cores was 8, is 2" in shown.get()
