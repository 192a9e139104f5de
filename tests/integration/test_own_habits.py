"""What the probe sees of a program's own ways, in one real process, and that the program trains as without it."""

from __future__ import annotations

import pytest
from probed import PROGRAMS, plain, probed

from trainflash.summary import summarize

STEPS = "40"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own_habits")
    (folder / "files").mkdir()
    return probed(folder / "run", "own_habits.py", str(folder / "files"), STEPS, "mode", capture="diagnose")


def line(text: str) -> int:
    """The line of the program that contains `text`."""
    return next(number for number, each in enumerate((PROGRAMS / "own_habits.py").read_text().splitlines(), 1) if text in each)


def test_the_probe_keeps_no_error_from_the_program(run):
    assert run.returncode == 0, run.output
    assert run.rank.swallowed == {}


def test_losses_are_the_same_to_the_last_bit(run, tmp_path):
    assert run.output == plain("own_habits.py", str(tmp_path), STEPS, "mode")


def test_a_database_is_written_often_and_a_pickled_state_is_known_as_such(run):
    written = {place.location.function: (place.often, place.state) for place in run.rank.written}
    assert written["note"] == (True, False)
    assert written["keep"] == (True, True)
    assert "feed" not in written and "Net.forward" not in written


def test_a_log_call_that_nobody_is_shown_is_known_and_asking_first_is_none(run):
    assert [place.location.line for place in run.rank.written if place.unheard] == [line("the loss is %s")]


def test_threads_are_counted_where_they_are_started(run):
    (started,) = run.rank.computing.starts
    assert (started.location.function, started.what) == ("main", "thread")
    assert started.count.value[-1] == pytest.approx(int(STEPS), abs=3) and started.ns.value[-1] > 0


def test_a_mode_is_told_by_its_function(run):
    mode = next(setting for setting in run.rank.settings if setting.name == "python_mode")
    assert mode.location.function == "Watch.__torch_dispatch__" and "Watch" in mode.value


def test_equal_operators_repeat_and_random_ones_do_not(run):
    seen = {call.location.line: call for call in run.rank.repeated if call.where == "operators"}
    equal = seen[line("torch.linalg.eigh")]
    assert equal.repeats == equal.calls - 1 and equal.qualname == "Net.forward"
    assert line("torch.randn(40, 40)") not in seen
    in_loss = seen[line("torch.cdist")]
    assert in_loss.repeats == in_loss.calls - 1 and in_loss.qualname == "Smooth.forward"


def test_samples_that_are_fed_one_by_one_are_counted(run):
    parts = run.rank.computing.parts
    assert (parts.location.function.partition(".")[0], parts.calls, parts.rows) == ("feed", 6, 1)


def test_gradients_switched_on_inside_backward_are_recomputation(run):
    (again,) = run.rank.computing.recompute
    assert again.location.function == "Rerun.backward" and again.location.line == line("with torch.enable_grad()")
    assert again.ns.value[-1] > 0 and again.calls.value[-1] >= 6 * (int(STEPS) - 2)


def test_neither_an_autograd_function_nor_a_mode_makes_data(run):
    assert [function.location.function for function in run.rank.data_functions] == ["batches"]


JUDGE = """
import pickle, torch
from torch.nn import functional
_known, _changed = {}, set()
_PLACES = {"torch": torch, "functional": functional, "linalg": torch.linalg, "fft": torch.fft, "special": torch.special}


def _all():
    return {f"{where}.{name}": value for where, module in _PLACES.items() for name, value in vars(module).items() if callable(value)}


def remember():
    _known.update(_all())


def judge():
    now = _all()
    _changed.update(name for name, value in _known.items() if now.get(name) is not value and name != "torch.manual_seed")  # torch's own
    pickle.dumps([torch.mean, functional.gelu])


def said():
    return sorted(_changed)
"""


@pytest.mark.full
def test_libraries_see_the_functions_of_torch_as_they_are(tmp_path):
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "judge.py").write_text(JUDGE)
    run = probed(tmp_path / "run", "identities.py", str(library), capture="diagnose")
    assert run.returncode == 0, run.output
    assert run.output == plain("identities.py", str(library)) and run.output.strip().endswith("[]")
    found = summarize(run.trace, run="r", project="p")
    again = {each.location.function: each.repeats for each in found.repeated if each.during == "operators"}
    assert again["Model.forward"] > 2
