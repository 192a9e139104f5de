"""Counters read from file trees as they look on real machines: bare metal, a v2 container, a v1 container."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainflash import telemetry

MEMINFO = "MemTotal:       16384000 kB\nMemFree:         1000000 kB\nMemAvailable:    8192000 kB\nHugePages_Total:       0\n"
GIB = 1 << 30


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.fixture
def bare(tmp_path):
    return tree(tmp_path, {"proc/meminfo": MEMINFO, "proc/self/cgroup": "0::/user.slice/session-1.scope\n"})


@pytest.fixture
def container_v2(tmp_path):
    """Kubernetes with cgroup v2: the namespace shows the container's own group as the root."""
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cpu.max": "150000 100000\n",
        "sys/fs/cgroup/memory.max": f"{4 * GIB}\n",
        "sys/fs/cgroup/memory.current": f"{3 * GIB}\n",
        "sys/fs/cgroup/memory.stat": f"anon {2 * GIB}\nfile {GIB}\ninactive_file {GIB // 2}\n",
    }
    return tree(tmp_path, files)


@pytest.fixture
def container_v1(tmp_path):
    """Docker with cgroup v1, its controllers mounted together, the process in a subgroup."""
    group = "docker/4f1c"
    files = {
        "proc/meminfo": MEMINFO,
        "proc/self/cgroup": f"4:memory:/{group}\n3:cpuset:/{group}\n2:cpu,cpuacct:/{group}\n1:name=systemd:/{group}\n",
        f"sys/fs/cgroup/cpu,cpuacct/{group}/cpu.cfs_quota_us": "50000\n",
        f"sys/fs/cgroup/cpu,cpuacct/{group}/cpu.cfs_period_us": "100000\n",
        f"sys/fs/cgroup/memory/{group}/memory.limit_in_bytes": f"{2 * GIB}\n",
        f"sys/fs/cgroup/memory/{group}/memory.usage_in_bytes": f"{GIB}\n",
        "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
    }
    return tree(tmp_path, files)


def test_without_a_quota_the_budget_is_the_affinity(bare, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 3, 5})
    assert telemetry.cpu_quota(bare) is None
    assert telemetry.cpu_budget(bare) == 3.0


@pytest.mark.parametrize(("affinity", "budget"), [(range(8), 1.5), ({0}, 1.0)])
def test_the_smaller_of_quota_and_affinity_counts(container_v2, monkeypatch, affinity, budget):
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: set(affinity))
    assert telemetry.cpu_budget(container_v2) == budget


def test_an_unlimited_group_sets_no_quota(container_v2):
    (container_v2 / "sys/fs/cgroup/cpu.max").write_text("max 100000\n")
    assert telemetry.cpu_quota(container_v2) is None


def test_the_tightest_quota_on_the_way_up_counts(tmp_path):
    files = {
        "proc/self/cgroup": "0::/pod/container\n",
        "sys/fs/cgroup/pod/cpu.max": "200000 100000\n",
        "sys/fs/cgroup/pod/container/cpu.max": "400000 100000\n",
    }
    assert telemetry.cpu_quota(tree(tmp_path, files)) == 2.0


def test_quota_of_version_1(container_v1):
    assert telemetry.cpu_quota(container_v1) == 0.5


def test_version_1_without_quota_writes_minus_one(container_v1):
    (container_v1 / "sys/fs/cgroup/cpu,cpuacct/docker/4f1c/cpu.cfs_quota_us").write_text("-1\n")
    assert telemetry.cpu_quota(container_v1) is None


def test_memory_of_a_container_is_its_limit(container_v2):
    assert telemetry.memory_limit_bytes(container_v2) == 4 * GIB
    assert telemetry.memory_available_bytes(container_v2) == GIB + GIB // 2


def test_memory_of_version_1_ignores_the_number_that_means_none(container_v1):
    assert telemetry.memory_limit_bytes(container_v1) == 2 * GIB
    assert telemetry.memory_available_bytes(container_v1) == GIB


def test_memory_of_a_bare_machine_is_all_of_it(bare):
    assert telemetry.memory_limit_bytes(bare) == 16384000 * 1024
    assert telemetry.memory_available_bytes(bare) == 8192000 * 1024


def test_pressure_is_a_share(tmp_path):
    files = {"proc/pressure/cpu": "some avg10=37.50 avg60=1.00 avg300=0.10 total=99\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"}
    assert telemetry.pressure_cpu(tree(tmp_path, files)) == 0.375


def test_what_cannot_be_read_is_not_measured(tmp_path):
    assert telemetry.cpu_quota(tmp_path) is None
    assert telemetry.memory_limit_bytes(tmp_path) is None
    assert telemetry.memory_available_bytes(tmp_path) is None
    assert telemetry.pressure_cpu(tmp_path) is None


@pytest.mark.parametrize("text", ["some avg10=x avg60=1\n", "", "nonsense\n"])
def test_a_broken_pressure_file_is_not_measured(tmp_path, text):
    assert telemetry.pressure_cpu(tree(tmp_path, {"proc/pressure/cpu": text})) is None


def test_free_disk_of_a_place_that_does_not_exist_yet(tmp_path):
    assert telemetry.disk_free_bytes(tmp_path / "not" / "yet") == pytest.approx(telemetry.disk_free_bytes(tmp_path), rel=0.05)


def test_the_machine_names_what_makes_timings_comparable(container_v2):
    tree(container_v2, {"proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC 7B13\n"})
    found = telemetry.machine(container_v2)
    assert found["cpu"] == "AMD EPYC 7B13"
    assert found["memory_gb"] == "4.3"
    assert set(found) <= {"cpu", "cores", "cpu_budget", "memory_gb", "kernel", "gpus"}


def test_this_machine_can_be_measured():
    assert telemetry.cpu_budget() > 0
    assert telemetry.memory_limit_bytes() >= telemetry.memory_available_bytes() > 0
    assert telemetry.machine()["gpus"]
