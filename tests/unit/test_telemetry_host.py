"""Control groups of both versions, process trees, sums over processes that end, and what is derived from samples."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from fake_nvml import FakeNvml
from hypothesis import given
from hypothesis import strategies as st
from test_telemetry import MEMINFO, tree

from trainflash.telemetry import GpuSample, HostSample, Recorder, Sample, Watch, cgroups, derive, processes, read
from trainflash.telemetry.derive import rate, sawtooth
from trainflash.telemetry.samples import line
from trainflash.telemetry.tally import Tally

GIB = 1 << 30
S = 1_000_000_000


def stat(pid: int, parent: int, cpu: int, waited: int = 0, name: str = "python", state: str = "S") -> str:
    return f"{pid} ({name}) {state} {parent} 1 1 0 -1 0 0 0 0 0 {cpu} 0 {waited} 0 20 0 3 0 777 0 0\n"


def process(pid: int, parent: int, cpu: int, children: str = "", **more: str) -> dict[str, str]:
    io = f"rchar: {cpu * 1000}\nwchar: 5\nsyscr: 1\nsyscw: 1\nread_bytes: {cpu * 10}\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n"
    return {
        f"proc/{pid}/stat": stat(pid, parent, cpu),
        f"proc/{pid}/task/{pid}/stat": stat(pid, parent, cpu),
        f"proc/{pid}/task/{pid}/children": children,
        f"proc/{pid}/io": io,
        **{f"proc/{pid}/{name}": text for name, text in more.items()},
    }


V2 = {
    "proc/meminfo": MEMINFO,
    "proc/9/cgroup": "0::/pod/box\n",
    "sys/fs/cgroup/pod/cpu.max": "400000 100000\n",
    "sys/fs/cgroup/pod/cpu.stat": "usage_usec 9\nnr_periods 80\nnr_throttled 40\nthrottled_usec 2500000\n",
    "sys/fs/cgroup/pod/box/cpu.max": "150000 100000\n",
    "sys/fs/cgroup/pod/box/cpu.stat": "usage_usec 9\nnr_periods 10\nnr_throttled 4\nthrottled_usec 500000\n",
    "sys/fs/cgroup/pod/memory.max": f"{8 * GIB}\n",
    "sys/fs/cgroup/pod/box/memory.max": f"{4 * GIB}\n",
    "sys/fs/cgroup/pod/box/memory.current": f"{3 * GIB}\n",
    "sys/fs/cgroup/pod/box/memory.stat": f"anon {2 * GIB}\ninactive_file {GIB // 2}\n",
    "sys/fs/cgroup/pod/box/memory.events": "low 0\nhigh 9\nmax 5\noom 1\noom_kill 2\n",
    "sys/fs/cgroup/pod/box/memory.swap.current": "4096\n",
    "sys/fs/cgroup/pod/box/cpu.pressure": "some avg10=1.00 avg60=1 avg300=1 total=3000000\nfull avg10=0 avg60=0 avg300=0 total=1\n",
    "proc/pressure/cpu": "some avg10=1.00 avg60=1 avg300=1 total=9000000\n",
    "proc/pressure/memory": "some avg10=1.00 avg60=1 avg300=1 total=250000\n",
}
V1 = {
    "proc/meminfo": MEMINFO,
    "proc/9/cgroup": "4:memory:/kube/box\n2:cpu,cpuacct:/kube/box\n1:name=systemd:/kube\n",
    "sys/fs/cgroup/cpu,cpuacct/kube/box/cpu.cfs_quota_us": "-1\n",
    "sys/fs/cgroup/cpu,cpuacct/kube/box/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpu,cpuacct/kube/cpu.cfs_quota_us": "250000\n",
    "sys/fs/cgroup/cpu,cpuacct/kube/cpu.cfs_period_us": "100000\n",
    "sys/fs/cgroup/cpu,cpuacct/kube/cpu.stat": "nr_periods 100\nnr_throttled 7\nthrottled_time 1500000000\n",
    "sys/fs/cgroup/memory/kube/box/memory.limit_in_bytes": f"{2 * GIB}\n",
    "sys/fs/cgroup/memory/kube/box/memory.usage_in_bytes": f"{GIB}\n",
    "sys/fs/cgroup/memory/kube/box/memory.memsw.usage_in_bytes": f"{GIB + 8192}\n",
    "sys/fs/cgroup/memory/kube/box/memory.stat": f"inactive_file 1\ntotal_inactive_file {GIB // 4}\n",
    "sys/fs/cgroup/memory/kube/box/memory.failcnt": "6\n",
    "sys/fs/cgroup/memory/kube/box/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
}
HYBRID = {
    **V1,
    "proc/9/cgroup": V1["proc/9/cgroup"] + "0::/kube/box\n",
    "sys/fs/cgroup/unified/kube/box/cpu.pressure": V2["proc/pressure/cpu"],
}


def test_version_2_with_nested_groups(tmp_path):
    root = tree(tmp_path, V2)
    assert cgroups.quota(root, 9) == 1.5
    assert cgroups.throttling(root, 9) == cgroups.Throttling(2.5, 40), "the level that was stopped longest"
    assert cgroups.memory(root, 9) == cgroups.MemoryUse(3 * GIB - GIB // 2, 4 * GIB, 7, 4096)
    assert cgroups.pressure_s("cpu", root, 9) == 3.0
    assert cgroups.pressure_s("memory", root, 9) == 0.25, "the machine's where the group has none"


def test_version_1_with_nested_groups(tmp_path):
    root = tree(tmp_path, V1)
    assert cgroups.quota(root, 9) == 2.5
    assert cgroups.throttling(root, 9) == cgroups.Throttling(1.5, 7)
    assert cgroups.memory(root, 9) == cgroups.MemoryUse(GIB - GIB // 4, 2 * GIB, 7, 8192)
    assert cgroups.pressure_s("cpu", root, 9) is None


def test_both_versions_at_once(tmp_path):
    root = tree(tmp_path, HYBRID)
    assert cgroups.quota(root, 9) == 2.5
    assert cgroups.memory(root, 9).limit_bytes == 2 * GIB
    assert cgroups.pressure_s("cpu", root, 9) == 9.0


def test_a_limit_above_the_machine_is_the_machine(tmp_path):
    root = tree(tmp_path, {**V2, "sys/fs/cgroup/pod/memory.max": "max\n", "sys/fs/cgroup/pod/box/memory.max": f"{64 * GIB}\n"})
    assert cgroups.memory(root, 9).limit_bytes == 16384000 * 1024
    assert cgroups.memory(root, 9).used_bytes == 8192000 * 1024


@pytest.mark.parametrize("text", ["", "junk\n", "0::\n", "x:y\n", "2:cpu:/../..\n"])
def test_a_group_file_that_says_nothing(tmp_path, text):
    root = tree(tmp_path, {"proc/9/cgroup": text})
    assert cgroups.quota(root, 9) is None
    assert cgroups.memory(root, 9) == cgroups.MemoryUse(None, None, None, None)


def test_a_tree_of_processes(tmp_path):
    family = {**process(10, 1, 100, "11 12"), **process(11, 10, 7, "13"), **process(12, 10, 8), **process(13, 11, 9)}
    root = tree(tmp_path, {**family, **process(99, 1, 3)})
    assert list(processes.tree([10], root)) == [10, 11, 12, 13]
    assert processes.io(11, root) == processes.Io(7000, 5, 70, 4096)
    assert processes.io(404, root) is None and processes.stat(404, root) is None


def test_children_without_the_kernels_list(tmp_path):
    root = tree(tmp_path, {**process(10, 1, 1), **process(11, 10, 1), **process(12, 11, 1)})
    for listed in root.glob("proc/*/task/*/children"):
        listed.unlink()
    assert list(processes.tree([10], root)) == [10, 11, 12]


def test_a_name_with_brackets_and_spaces(tmp_path):
    root = tree(tmp_path, {"proc/5/stat": stat(5, 1, 300, name="a) (b c"), "proc/6/stat": "6 (cut"})
    assert processes.stat(5, root).name == "a) (b c"
    assert processes.stat(5, root).cpu_s == 300 / processes.TICKS_PER_S
    assert processes.stat(6, root) is None


def test_network_without_loopback(tmp_path):
    zeros = " 0" * 7
    table = f"Inter-| Receive | Transmit\n face |bytes\n    lo: 9{zeros} 9 0\n  eth0: 100{zeros} 20 1\n  eth1:7{zeros} 3 1\n"
    root = tree(tmp_path, {"proc/5/net/dev": table})
    assert processes.network_bytes(5, root) == 130
    assert processes.network_bytes(6, root) is None


def test_a_child_that_was_waited_for_counts_once():
    tally = Tally()
    tally.add({1: 0}, {1: 50})
    assert tally.add({1: 0, 2: 1}, {1: 51, 2: 10}) == 11
    assert tally.add({1: 0, 2: 1}, {1: 51, 2: None}) == 11, "a zombie's figure is not readable"
    assert tally.add({1: 0}, {1: 64}) == 14, "the parent has the child's 12 now"


def test_an_orphan_that_ends_is_kept_and_a_late_root_starts_at_zero():
    tally = Tally()
    tally.add({1: 0}, {1: 5})
    assert tally.add({1: 0, 7: 3}, {1: 5, 7: 1000}) == 0, "what it did before it was known is not ours"
    assert tally.add({1: 0, 7: 3}, {1: 5, 7: 1004}) == 4
    assert tally.add({1: 0}, {1: 6}) == 5


def test_no_counter_is_not_measured():
    assert Tally().add({1: 0}, {1: None}) is None


@given(st.lists(st.dictionaries(st.integers(1, 6), st.one_of(st.none(), st.integers(0, 100)), max_size=6), max_size=12))
def test_a_sum_never_goes_backwards(history):
    tally, last = Tally(), 0.0
    for values in history:
        total = tally.add({pid: pid - 1 for pid in values}, values)
        assert total is None or total >= last
        last = last if total is None else total


def samples(**columns: list) -> list[Sample]:
    length = max(len(values) for values in columns.values())
    return [Sample(n * S, HostSample(**{name: values[n] for name, values in columns.items()})) for n in range(length)]


def test_rates_by_differences():
    found = derive(samples(cpu_s=[1.0, 2.5, 4.0], device_read_bytes=[0, 5_000_000, 10_000_000], throttled_s=[0.0, 0.2, 0.4])).host
    assert (found.cpu_used, found.disk_read_mb_s, found.throttled_share) == (1.5, 5.0, 0.2)
    assert found.network_mb_s is None and found.load is None


def test_peaks_and_counts():
    found = derive(samples(memory_used_bytes=[5, 9, 2], memory_events=[3, 3, 8], throttled_periods=[4, 4, 4], processes=[1, 3, 2])).host
    assert (found.memory_used_bytes, found.memory_events, found.throttled_periods, found.processes) == (9, 5, 0, 3)


def test_only_what_lies_between_the_moments():
    taken = samples(cpu_s=[0.0, 9.0, 10.0, 11.0, 50.0])
    assert derive(taken, S, 3 * S).host.cpu_used == 1.0
    assert derive(taken, 100 * S, 200 * S) is None
    assert derive([]) is None


def test_a_counter_that_goes_backwards():
    assert rate([0, S, 2 * S, 3 * S], [10, 20, 5, 15]) == 10.0
    assert rate([0, S], [10, 5]) is None
    assert rate([0, S, 2 * S], [1, None, 5]) == 2.0
    assert rate([0], [1]) is None


@pytest.mark.parametrize(
    ("busy", "expected"),
    [
        ([0.9, 0.1] * 8, True),
        ([0.95, 0.9, 0.1, 0.0, 0.92, 0.97, 0.05, 0.02, 0.9, 0.9, 0.0, 0.1, 0.95], True),
        ([0.95] * 16, False),
        ([0.3, 0.4] * 8, False),
        ([0.95] * 8 + [0.0] * 3 + [0.95] * 8, False),  # one pause: a checkpoint
        ([0.9, 0.1] * 2, None),
    ],
)
def test_a_sawtooth_swings_again_and_again(busy, expected):
    assert sawtooth(busy) is expected


def gpu(index=0, **values) -> GpuSample:
    return GpuSample(index, "NVIDIA H200", **values)


def test_gpus_of_the_program_only():
    both = [Sample(n * S, HostSample(), (gpu(0, busy=0.9, ours=True), gpu(1, busy=0.0, ours=False))) for n in range(3)]
    [found] = derive(both).gpus
    assert (found.index, found.busy, found.samples) == (0, 0.9, 3)


def test_throttling_without_what_is_harmless():
    taken = [Sample(n * S, HostSample(), (gpu(reasons=("idle", "hardware_thermal") if n else ("idle",)),)) for n in range(4)]
    [found] = derive(taken).gpus
    assert found.throttled == {"hardware_thermal": 0.75}
    assert found.busy is None and found.sawtooth is None


def test_samples_survive_the_file(tmp_path):
    taken = [Sample(n, HostSample(cpu_s=n / 2, memory_events=None), (gpu(busy=0.5, reasons=("idle",)),)) for n in range(3)]
    path = tmp_path / "telemetry.jsonl"
    whole = "".join(line(sample) for sample in taken)
    path.write_text('not json\n{"schema":"telemetry.v9","t_ns":1,"host":{}}\n[]\n' + whole + line(taken[0])[:40])
    assert read(path) == tuple(taken)
    assert "None" not in whole and "null" not in whole
    assert read(tmp_path / "none") == ()


def recorded(directory: Path, root: Path, **options) -> None:
    recorder = Recorder(directory, interval_s=0.01, root=root, nvml=FakeNvml(count=1), **options)
    recorder.start()
    deadline = time.monotonic() + 20
    while len(read(directory / "telemetry.jsonl")) < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
    recorder.stop()


def test_a_recording_watches_the_announced_processes(tmp_path, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})  # a process 9 of this machine may have one core
    root = tree(tmp_path / "root", {**V2, **process(9, 1, 100, "10"), **process(10, 9, 50)})
    run = tmp_path / "run"
    tree(run, {"process-9.json": json.dumps({"pid": 9}), "process-8.json": "{", "process-7.json": "{}"})
    recorded(run, root)
    taken = read(run / "telemetry.jsonl")
    assert len(taken) >= 3
    assert (taken[0].host.processes, taken[0].host.cpus, taken[0].host.memory_limit_bytes) == (2, 1.5, 4 * GIB)
    assert taken[0].host.cpu_s == 0 and taken[0].gpus[0].busy == 0.4
    times = [sample.t_ns for sample in taken]
    assert times == sorted(times)


def test_a_place_that_cannot_be_written_only_ends_the_recording(tmp_path):
    recorder = Recorder(tmp_path / "gone", root=tmp_path, nvml=FakeNvml(count=0))
    recorder.start()
    recorder.stop()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "telemetry.jsonl").symlink_to("/dev/full")
    recorder = Recorder(tmp_path / "full", root=tmp_path, nvml=FakeNvml(count=0))
    recorder.start()
    recorder.stop()


def test_nothing_to_read_is_an_empty_sample(tmp_path):
    watch = Watch(lambda: [5], root=tmp_path, nvml=FakeNvml(count=0))
    sample = watch.sample()
    watch.close()
    measured = {name for name, value in vars(sample.host).items() if value is not None}
    assert measured == {"cpus"}, "the affinity of this process"
    assert sample.gpus == ()
