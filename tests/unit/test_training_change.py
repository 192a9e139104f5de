"""What a change does to the training: one vocabulary and one sentence, the same in every answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainflash import verdict
from trainflash.fidelity import judgement
from trainflash.report.tune import fidelity_words
from trainflash.schema import CONSENTS, KINDS_OF_CHANGE, Check, Fidelity, Speedup, SpeedVerdict, training_change
from trainflash.workflow import answers

SAME = Fidelity("same", (), 0.0, 0.0, 1e-3, 40, (), (), (Check("loss", True, "equal"),))
FASTER = SpeedVerdict("accept", Speedup(1.3, 1.2, 1.4, 4), "faster")


def changed(*names: str, checks: tuple[Check, ...] = ()) -> Fidelity:
    return replace(SAME, verdict="changed", changed=names, checks=(*SAME.checks, *checks))


def test_every_name_that_a_verdict_can_hold_has_its_words():
    named = (
        {rule.change for rule in judgement.RULES}
        | set(CONSENTS)
        | {"loss", "gradients", "weights", "metric", "convergence", "work", "failed"}
    )
    assert named <= set(KINDS_OF_CHANGE)
    assert len(set(KINDS_OF_CHANGE.values())) == len(KINDS_OF_CHANGE), "two names, one word"


@pytest.mark.parametrize(
    ("fidelity", "word", "sentence", "kinds"),
    [
        (None, "reject", "fidelity not measured", ()),
        (SAME, "accept", "trains the same", ("same training",)),
        (replace(SAME, verdict="close", changed=("numerics",)), "accept", "trains the same but for rounding", ("other rounding",)),
        (changed("precision", "numerics"), "reject", "trains differently: other precision", ("other precision", "other rounding")),
        (changed("order"), "accept", "trains the same but for what was agreed to: other order", ("other order",)),
        (replace(SAME, verdict="inconclusive"), "reject", "fidelity unknown", ()),
        (changed("failed"), "reject", "trains differently: failed", ("failed",)),
    ],
)
def test_one_sentence_says_what_changes(fidelity, word, sentence, kinds):
    told = training_change(fidelity, word)
    assert (told.sentence, told.kinds) == (sentence, kinds)
    assert fidelity_words(fidelity, word) == sentence


def test_what_was_counted_is_fewer_or_more():
    rarer = (Check("evaluation cadence", False, "20 times → 5", (20, 5)), Check("log cadence", False, "20 times → 20", (20, 20)))
    assert training_change(changed("cadence", checks=rarer)).kinds == ("fewer evaluations", "other log lines")
    oftener = Check("checkpoint cadence", False, "1 times → 3", (1, 3))
    assert training_change(changed("cadence", checks=(oftener,))).kinds == ("more checkpoints",)
    assert training_change(changed("updates", checks=(Check("updates", False, "160 → 80", (160, 80)),))).kinds == ("fewer updates",)
    assert training_change(changed("updates", checks=(Check("updates", False, "2 processes → 1"),))).kinds == ("other updates",)
    assert training_change(changed("cadence")).kinds == (KINDS_OF_CHANGE["cadence"],), "an old document, which has no counts"


def test_the_verdict_and_the_answer_say_the_same_sentence():
    ordered = changed("order")
    judged = verdict.judge(FASTER, ordered, allowed=frozenset({"order"}))
    told = "trains the same but for what was agreed to: other order"
    assert judged.verdict == "accept"
    assert judged.reasons[1].startswith(f"{told}, over 40 updates")
    assert answers.verdict(judged)["training"] == {"sentence": told, "kinds": ("other order",)}
    asked = answers.verdict(verdict.judge(FASTER, ordered))
    assert asked["verdict"] == "needs_agreement"
    assert asked["training"]["sentence"] == "trains the same but for what needs agreement: other order"
