"""A thread beside training: its CPU time and its line, and how long training stands still while it computes."""

from __future__ import annotations

import pytest
from probed import probed

pytestmark = [pytest.mark.full, pytest.mark.alone]  # on cores that others want too, few samples find the thread


def beside(tmp_path, work, seconds="5"):
    run = probed(tmp_path / work, "thread_beside.py", work, seconds, capture="diagnose")
    assert run.returncode == 0 and run.rank.swallowed == {}, run.output
    return run.rank.threads.beside


def standing(found):
    return 1 - (found.work_cpu_ns + found.work_runq_ns) / found.work_ns


@pytest.mark.parametrize(("function", "stands"), [("letters", True), ("digests", False)])
def test_training_stands_still_beside_a_thread_that_holds_the_lock_only(tmp_path, function, stands):
    found = beside(tmp_path, function)
    (thread,) = found.threads
    assert (thread.name, thread.location.function.split(".")[0], thread.makes) == ("clerk", function, False)
    assert thread.cpu_ns > 0.1 * found.wall_ns and found.helpers_ns < 0.1 * found.wall_ns
    assert (standing(found) > 0.4) == stands


def test_without_a_busy_thread_nothing_is_asked(tmp_path):
    run = probed(tmp_path, "plain_loop.py", "steps=500", "data_ms=8", "workers=1", capture="diagnose")
    assert run.returncode == 0 and run.rank.threads.beside is None
