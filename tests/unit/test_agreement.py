"""Ranks that are not all there, never started, or run other versions or other files than the first."""

from __future__ import annotations

import json

import pytest
from probe_events import plain_step, write_run

from trainflash.errors import ProgramFailed
from trainflash.launch import absent, require_success
from trainflash.schema import Command, RunRecord
from trainflash.trace import load

STEPS = [event for step in range(12) for event in plain_step(1 + 10 * step)]


def write_rank(directory, rank: int, *, world_size: int = 2, files: dict | None = None, host: str = "n1", **header):
    facts = [
        {"k": "rank", "rank": rank, "world_size": world_size, "backend": "gloo"},
        *([{"k": "sources", "files": files}] if files else []),
    ]
    write_run(directory, STEPS, facts=facts, pid=7 + rank, host=host, **header)


def test_ranks_that_agree_are_not_spoken_of(tmp_path):
    for rank in (0, 1):
        write_rank(tmp_path, rank, files={"train.py": 1})
    trace = load(tmp_path)
    assert trace.others == ()
    assert trace.ranks[0].sources is trace.ranks[1].sources  # held once, for jobs of thousands


def test_a_rank_without_files_is_named(tmp_path):
    for rank in (0, 2):
        write_rank(tmp_path, rank, world_size=4)
    (said,) = load(tmp_path).others
    assert said.startswith("ranks 1, 3 of 4 have left no steps: these figures are of the others")


def test_other_versions_are_named_with_their_machines(tmp_path):
    write_rank(tmp_path, 0, torch="2.4.0")
    write_rank(tmp_path, 1, torch="2.5.1", host="n2")
    assert load(tmp_path).others == ("ranks run different versions of torch: 2.4.0 on rank 0 (n1); 2.5.1 on rank 1 (n2)",)


def test_another_checkout_on_a_node_is_named_by_file(tmp_path):
    write_rank(tmp_path, 0, world_size=3, files={"train.py": 1, "model.py": 5, "only_here.py": 3})
    write_rank(tmp_path, 1, world_size=3, files={"train.py": 1, "model.py": 6}, host="n2")
    write_rank(tmp_path, 2, world_size=3, files={"train.py": 1, "model.py": 6}, host="n2")
    assert load(tmp_path).others == ("ranks run different code: model.py on ranks 1, 2 (n2) is not that of rank 0 on n1",)


def tell(run_dir, *ranks: int, world_size: int) -> None:
    with (run_dir / "notice.jsonl").open("a") as file:
        for rank in ranks:
            file.write(json.dumps({"pid": rank, "notice": "torch 2.5.0", "rank": rank, "world_size": world_size, "host": "n1"}) + "\n")


def test_ranks_that_never_start_are_waited_for_and_then_named(tmp_path):
    now = [0.0]
    looking = absent.Absent(tmp_path, patience_s=60, clock=lambda: now[0])

    def after(seconds: float) -> bool:
        now[0] += seconds
        return looking.for_long()

    assert not after(500) and absent.missing(tmp_path) == ""  # nobody has started yet
    tell(tmp_path, 0, world_size=1)  # the launcher itself
    assert not after(500)
    tell(tmp_path, 0, 2, world_size=4)
    assert not after(10) and not after(50) and after(20)
    assert absent.missing(tmp_path) == "of 4 ranks only 2 started (n1): ranks 1, 3 never imported torch"
    tell(tmp_path, 1, 3, world_size=4)
    assert not after(10) and absent.missing(tmp_path) == ""


def test_a_job_that_failed_says_which_ranks_never_started(tmp_path):
    tell(tmp_path, 0, world_size=2)
    record = RunRecord(
        id="diagnose-001", kind="diagnose", command=Command(("srun", "python")), side="candidate", protection="manifest",
        status="timed_out", returncode=-9, wall_s=301.0, started_utc="2026-01-01T00:00:00Z", output_tail="",
    )  # fmt: skip
    with pytest.raises(
        ProgramFailed, match=r"did not end within 301 s \(run diagnose-001\); of 2 ranks only 1 started \(n1\): rank 1 never"
    ):
        require_success(record, tmp_path)
