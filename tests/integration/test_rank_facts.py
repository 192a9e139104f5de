"""Real ranks over gloo: who is slow, who waits, what talking costs, and that losses stay the same."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from probed import plain, probed

from trainflash.schema import Summary
from trainflash.summary import summarize


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def ranks(folder: Path, *options: str) -> Summary:
    """Summary of two ranks started by torchrun."""
    torchrun = ("-m", "torch.distributed.run", "--nproc_per_node=2", f"--master_port={free_port()}")
    run = probed(folder, "ranks_slow.py", *options, capture="diagnose", launcher=torchrun)
    assert run.returncode == 0, run.output
    found = summarize(run.trace, run="r", project="p")
    assert (found.ranks, found.swallowed) == (2, {})
    return found


def own(summary: Summary, phase: str) -> list[float]:
    return [stat.own_ms[phase] for stat in summary.rank_stats]


def test_a_rank_slow_in_backward_is_told_from_the_one_that_waits_for_it(tmp_path):
    """Ranks of mp.spawn have no rank in their environment."""
    options = ("slow=backward", "ms=80", "steps=16", "launch=spawn", f"port={free_port()}")
    run = probed(tmp_path, "ranks_slow.py", *options, capture="diagnose")
    assert run.returncode == 0, run.output
    found = summarize(run.trace, run="r", project="p")
    assert [(stat.rank, stat.host) for stat in found.rank_stats] == [(0, socket.gethostname()), (1, socket.gethostname())]
    first, second = own(found, "Bwd")
    assert second > 80 and second > first + 30  # 80 planted milliseconds, on a machine that may be busy
    equally_long = [stat.phases_ms["Bwd"] for stat in found.rank_stats]
    assert min(equally_long) > 70
    assert found.rank_stats[0].waiting_ms > found.rank_stats[1].waiting_ms
    assert found.rank_stats[1].hottest["Bwd"].function == "Spin.backward"
    talk = found.communication
    assert (talk.backend, talk.wrapper, talk.location.function, talk.syncs_per_step) == ("gloo", "DDP", "wrapped", 1.0)
    assert talk.share > 0.25 and talk.wait_share > 0.25 and talk.bytes_per_step == 4 * (32 * 256 + 256 + 256 * 8 + 8)


@pytest.mark.full
def test_a_rank_slow_outside_the_phases_makes_the_other_wait_in_backward(tmp_path):
    found = ranks(tmp_path, "slow=data", "reduce_loss=1", "ms=80", "steps=16")
    assert own(found, "Other")[1] > own(found, "Other")[0] + 30
    assert abs(own(found, "Bwd")[0] - own(found, "Bwd")[1]) < 40
    assert found.communication.calls_per_step == 2.0 and found.rank_stats[1].hottest["Other"].line == line_of("time.sleep(OPTIONS")


@pytest.mark.full
def test_accumulation_without_no_sync_reduces_each_time(tmp_path):
    found = ranks(tmp_path, "accumulate=4", "wrap=unused")
    assert found.communication.syncs_per_step == 4.0 and found.communication.find_unused_parameters
    assert found.communication.wait_share < 0.9
    assert found.rank_stats[0].samples_per_step == 16.0


@pytest.mark.full
def test_sharded_ranks_are_compared_too(tmp_path):
    found = ranks(tmp_path, "wrap=fsdp2", "slow=backward", "ms=80", "steps=16")
    assert (found.communication.wrapper, found.communication.location.function) == ("FSDP2", "wrapped")
    assert found.communication.calls_per_step >= 4 and found.communication.bytes_per_step > 0
    assert own(found, "Bwd")[1] > own(found, "Bwd")[0] + 30


@pytest.mark.full
def test_the_owner_s_own_collectives_are_named_by_line(tmp_path):
    found = ranks(tmp_path, "wrap=none", "slow=data", "ms=80", "steps=16")
    assert (found.communication.wrapper, found.communication.calls_per_step) == ("collectives", 4.0)
    assert found.communication.location.line == line_of("dist.all_reduce(parameter.grad)")
    assert found.communication.wait_share > 0.2


@pytest.mark.full
@pytest.mark.parametrize("wrap", ["ddp", "fsdp2"])
def test_losses_of_ranks_are_the_same_with_and_without_the_probe(tmp_path, wrap):
    options = ("launch=spawn", "steps=20", "reduce_loss=1", f"wrap={wrap}")
    alone = plain("ranks_slow.py", *options, f"port={free_port()}")
    run = probed(tmp_path, "ranks_slow.py", *options, f"port={free_port()}", capture="diagnose")
    assert sorted(run.output.split()) == sorted(alone.split()) and len(alone.split()) == 6


@pytest.mark.full
def test_a_timing_run_wraps_no_collective(tmp_path):
    run = probed(tmp_path, "ranks_slow.py", "launch=spawn", "steps=12", f"port={free_port()}", capture="timing")
    assert run.returncode == 0, run.output
    assert [(rank.rank, rank.world_size, rank.collectives, rank.parallel) for rank in run.trace.ranks] == [
        (0, 2, None, None),
        (1, 2, None, None),
    ]


def line_of(text: str, which: int = 1) -> int:
    lines = (Path(__file__).parents[1] / "data" / "programs" / "ranks_slow.py").read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if text in line][which - 1]
