"""Evaluations and checkpoints that go through helpers are placed where the owner decides about them."""

from __future__ import annotations

import pytest
from probed import PROGRAMS, probed

PROGRAM = "interruptions.py"


def line_of(text: str) -> int:
    return 1 + next(number for number, line in enumerate((PROGRAMS / PROGRAM).read_text().splitlines()) if text in line)


def run_of(tmp_path, style):
    run = probed(tmp_path, PROGRAM, style, capture="diagnose")
    assert run.returncode == 0 and run.rank.swallowed == {}, run.output
    return run.rank


@pytest.mark.parametrize("style", ["by_helper", *(pytest.param(style, marks=pytest.mark.full) for style in ("by_context", "by_itself"))])
def test_an_evaluation_is_the_function_s_that_still_runs_at_its_forwards(tmp_path, style):
    found = run_of(tmp_path, style).evaluations
    assert len(found) == 8 and {each.location.function.partition(".")[0] for each in found} == {style}
    assert {place.function for place in found[-1].forwards} >= {"predict", style, "main"}
    assert line_of("return model(rows)") in {place.line for place in found[-1].forwards}


def test_an_evaluation_is_placed_at_its_forward(tmp_path):
    where = run_of(tmp_path, "by_itself").evaluations[-1].location
    assert where.line == line_of("def by_itself") + 3


@pytest.mark.parametrize(
    ("style", "line", "function", "times"),
    [
        ("in_the_loop", "to_disk(model.state_dict(), None)  # in the loop", "main", 8),
        pytest.param("every_third", "to_disk(model.state_dict(), None)  # every third", "every_third", 8, marks=pytest.mark.full),
        ("at_the_end", "to_disk(model.state_dict(), None)  # at the end", "main", 1),
        pytest.param("save_and_train", "torch.save(model.state_dict(), io.BytesIO())", "save_and_train", 24, marks=pytest.mark.full),
    ],
)
def test_a_checkpoint_is_placed_where_its_cadence_is_decided(tmp_path, style, line, function, times):
    found = run_of(tmp_path, style).saves[1 - times :]  # of a step that trains, the first end was not seen before the first save
    assert {(each.location.line, each.location.function) for each in found} == {(line_of(line), function)}
