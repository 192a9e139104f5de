"""Which fetches are looked at closely, and of which the kernel is asked for CPU time: with a clock and a kernel of the test's own."""

from __future__ import annotations

import pytest
from probe_events import part

MS = 1_000_000


@pytest.fixture
def machine(monkeypatch):
    """A machine whose time and waiting the test sets; `asked` counts questions for CPU time, `values` what was written."""
    fetches = part("phases.fetches")

    class Machine:
        now, waited, asked, values = 0, 0, 0, ()

        def fetch(self, record, wall_ns, waited_ns):
            def run(*_):
                self.now, self.waited = self.now + wall_ns, self.waited + waited_ns
                return "batch"

            record.fetches += 1
            assert fetches._closely(None, run, None, [1], record) == "batch"

        def cpu(self):
            self.asked += 1
            return self.now - self.waited

    made = Machine()
    monkeypatch.setattr(fetches, "monotonic_ns", lambda: made.now)
    monkeypatch.setattr(fetches, "waited_ns", lambda: made.waited)
    monkeypatch.setattr(fetches.time, "thread_time_ns", made.cpu)
    monkeypatch.setattr(fetches, "emit", lambda code: None)
    monkeypatch.setattr(fetches, "emit_value", lambda value: setattr(made, "values", (*made.values, value)))
    return made


@pytest.fixture
def record():
    return part("facts.samples").Record(0)


def test_a_fetch_that_had_no_core_is_not_long(machine, record):
    machine.fetch(record, 20 * MS, waited_ns=19_500_000)
    assert record.close_until == part("facts.samples").CLOSE_UNTIL
    record.fetches = 1000
    machine.fetch(record, 20 * MS, waited_ns=10 * MS)
    assert record.close_until == 1001 + part("facts.samples").LOOK_ON


def test_after_one_that_took_long_for_an_unknown_reason_only_the_next_few_are_looked_at(record):
    record.fetches = 500
    record.seems_long()
    assert record.close_until == 500 + part("facts.samples").LOOK_AGAIN
    record.was_long()
    record.seems_long()
    assert record.close_until == 500 + part("facts.samples").LOOK_ON


def test_the_kernel_is_asked_in_one_of_several_fetches(machine, record):
    """Asking in each would make a busy machine wait in the fetches."""
    for _ in range(4 * part("phases.fetches").ASK_EVERY):
        machine.fetch(record, MS // 2, waited_ns=MS // 8)
    assert machine.asked == 2 * 4
    assert machine.values == (MS // 2 - MS // 8, MS // 8) * 4
