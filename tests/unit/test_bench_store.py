"""What a comparison keeps, and when it may count again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from trainflash import bench
from trainflash.bench import fingerprint
from trainflash.bench.comparison import _Comparison
from trainflash.bench.paced import Plan, StartFailed
from trainflash.bench.store import Store
from trainflash.errors import UsageError
from trainflash.schema import Start, to_plain

MACHINE = {"machine": "here", "cores": "2"}


def start(n, y=0.4):
    return Start(n, "resident", y, y, "net", spent_s=9.0)


def begun(directory, *, compared="a", facts=MACHINE, resume=False):
    store = Store(directory)
    return store, store.begin(compared, facts, Plan(), resume=resume)


@pytest.fixture
def three(tmp_path):
    store, _ = begun(tmp_path)
    for n in (1, 2, 3):
        store.append(start(n), {"baseline": (5, [1.0]), "candidate": (5, [2.0])})
    store.agree({"torch": "2.13.0"}, resume=False)
    store.save_plan(Plan(warmup=20))
    return tmp_path


@pytest.mark.parametrize("resume", [False, True])
def test_the_same_comparison_goes_on_however_it_is_asked(three, resume):
    """A rule that may be asked afresh until it says yes has no error rate."""
    store, kept = begun(three, resume=resume)
    assert [each.n for each in kept.starts] == [1, 2, 3]
    assert kept.plan == Plan(warmup=20)
    assert kept.set_aside == ""
    assert [line["n"] for line in store.steps({2, 3})] == [2, 3]


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"facts": {"machine": "there", "cores": "2"}}, "machine was here, is there"),
        ({"facts": {**MACHINE, "OMP_NUM_THREADS": "4"}}, "OMP_NUM_THREADS was not set, is 4"),
        ({"compared": "b"}, "the programs, commands or settings are not those"),
    ],
)
def test_what_was_measured_under_other_conditions_is_named(three, other, named):
    with pytest.raises(UsageError, match=named):
        begun(three, resume=True, **other)
    _, kept = begun(three, **other)
    assert kept.starts == ()
    assert kept.set_aside.startswith("3 earlier starts do not count")
    assert named in kept.set_aside
    assert len((three / "starts-before-1.jsonl").read_text().splitlines()) == 3


def test_another_version_is_seen_with_the_first_start(three):
    store, _ = begun(three)
    assert store.agree({"torch": "2.13.0"}, resume=False) == ""
    with pytest.raises(UsageError, match=r"torch was 2.13.0, is 2.14.0"):
        store.agree({"torch": "2.14.0"}, resume=True)
    store, _ = begun(three)
    assert "torch was 2.13.0, is 2.14.0" in store.agree({"torch": "2.14.0"}, resume=False)
    assert begun(three)[1].starts == ()


def test_another_length_of_the_program_is_another_input(three):
    store, _ = begun(three)
    assert store.agree({"the number of its steps": "300"}, resume=False) == "", "the first that is known is no change"
    assert "the number of its steps was 300, is 150" in store.agree({"the number of its steps": "150"}, resume=False)


def test_a_line_torn_by_a_kill_is_cut_off(three):
    with (three / "starts.jsonl").open("a") as file:
        file.write('{"n": 4, "sched')
    store, kept = begun(three)
    assert len(kept.starts) == 3
    store.append(start(4))
    assert [each.n for each in begun(three)[1].starts] == [1, 2, 3, 4]


def test_starts_that_cannot_be_trusted_are_forgotten(three):
    bench.forget_after(three, 1)
    assert [each.n for each in begun(three)[1].starts] == [1]


def test_how_starts_were_measured_is_known_again(tmp_path):
    assert bench.asked_before(tmp_path) is None
    store, _ = begun(tmp_path)
    assert bench.asked_before(tmp_path) is None, "a state of an older kind"
    store.asked = {"first_epoch": 8, "work": [16.0, 32.0], "unit": "sample", "cycle": 40}
    store.save_plan(Plan())
    store.append(Start(1, "resident", None, None, "wall", reason="it crashed"))
    assert bench.asked_before(tmp_path) is None, "no start that counts binds anybody"
    assert begun(tmp_path, compared="b", resume=True)[1].starts == ()
    store, _ = begun(tmp_path, compared="b")
    store.asked = {"first_epoch": 8, "work": [16.0, 32.0], "unit": "sample", "cycle": 40}
    store.save_plan(Plan())
    store.append(start(1))
    assert bench.asked_before(tmp_path) == bench.Question(first_epoch=8, work=(16.0, 32.0), unit="sample", cycle=40)


def test_a_lost_state_begins_anew_and_says_so(three):
    (three / "bench.json").write_text("{")
    with pytest.raises(UsageError, match="cannot be read"):
        begun(three, resume=True)
    assert "3 earlier starts do not count" in begun(three)[1].set_aside


def test_a_full_disk_is_said_and_tears_no_line(tmp_path):
    """A real limit on the size of a file: the write fails half way, as it does where no room is left."""
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from trainflash.bench.paced import Plan\n"
        "from trainflash.bench.store import Store\n"
        "from trainflash.errors import Inconclusive\n"
        "from trainflash.schema import Start\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "store = Store(Path(sys.argv[1]))\n"
        "store.begin('a', {}, Plan(), resume=False)\n"
        "start = lambda n: Start(n, 'resident', 0.4, 0.4, 'net')\n"
        "store.append(start(1))\n"
        "size = store.starts_path.stat().st_size\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40, size + 40))\n"
        "try:\n"
        "    store.append(start(2))\n"
        "except Inconclusive as full:\n"
        "    print(full.message, '|', full.mend, '|', full.exit_code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert "the disk is full; the starts measured before are kept | make room there, then run it again with --resume | 3" in done.stdout
    assert [json.loads(line) for line in (tmp_path / "starts.jsonl").read_text().splitlines()] == [to_plain(start(1)) | {"spent_s": 0.0}]


def test_settings_that_bear_on_speed_and_no_secrets():
    inherited = {"OMP_NUM_THREADS": "1", "TORCH_LOGS": "x", "NVIDIA_API_KEY": "k", "HOME": "/root", "MALLOC_ARENA_MAX": "2"}
    assert fingerprint.settings(inherited) == {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}


def test_the_machine_is_known_by_its_cores():
    assert fingerprint.machine()["cores"] == str(len(os.sched_getaffinity(0)))
    assert Path("/proc/cpuinfo").exists() == ("processor" in fingerprint.machine())


def test_versions_come_from_the_processes_that_trained():
    assert fingerprint.versions([{"python": "3.11.7", "torch": "2.13.0", "rank": 0}]) == {"python": "3.11.7", "torch": "2.13.0"}
    assert fingerprint.versions([]) == {}


def test_a_baseline_of_another_length_moments_later_does_not_repeat_itself(tmp_path):
    """From one day to the next another input may explain it; within a comparison the program depends on time, or on chance."""
    store = Store(tmp_path / "kept")
    compared = SimpleNamespace(bench=SimpleNamespace(run_dir=lambda side, n: tmp_path), store=store, resume=False, length=None, starts=[])

    def start(steps: int | None) -> None:
        side = SimpleNamespace(device=False, ended_at=steps)
        _Comparison._refuse_unlike(compared, 1, {"baseline": side, "candidate": side})

    for steps in (None, 300, 300, None):
        start(steps)
    with pytest.raises(
        StartFailed, match="the baseline made 300 steps to its end, and 310 when it was started again; if its length"
    ) as failed:
        start(310)
    assert failed.value.kind == "unlike", "which ends the comparison"
