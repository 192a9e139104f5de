"""The machine profile and env.json: deterministic, for every kind of machine."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace

import fake_nvml
import pytest

from trainflash.errors import UsageError
from trainflash.gate.machines import environment, machine
from trainflash.gate.machines.environment import CollectEnv, interpreter_of
from trainflash.schema import Accelerator, GateEnv, from_plain, to_plain
from trainflash.telemetry.driver import amd_driver, nvidia_driver

H100 = Accelerator("cuda", "NVIDIA H100 80GB HBM3", "sm90", 85_000_000_000)
SOFTWARE = {"driver": "550.54.15", "cuda": "12.4", "rocm": None, "torch": "2.4.1+cu124"}
HOST = {"cpu": "AMD EPYC 7763 64-Core Processor", "cpu_budget": 4.0, "arch": "x86_64", "cpu_capability": "AVX2"}


def profile(*accelerators: Accelerator, **given) -> str:
    return machine.profile(accelerators=accelerators, **{**SOFTWARE, **HOST, **given})


def test_the_profile_of_eight_gpus():
    assert profile(*[H100] * 8) == "H100x8_driver550_cuda12.4_torch2.4_sm90"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("NVIDIA H100 PCIe", "H100-PCIe"),
        ("NVIDIA H100 NVL", "H100-NVL"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM4-40GB"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("Tesla V100-SXM2-16GB", "V100-SXM2-16GB"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", "A100-SXM4-40GB-MIG-1g.5gb"),
        ("AMD Instinct MI300X", "MI300X"),
    ],
)
def test_boards(name, expected):
    assert machine.board(name) == expected


def test_boards_of_different_speed_have_different_names():
    names = ["NVIDIA H100 80GB HBM3", "NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA H200"]
    assert len({machine.board(name) for name in names}) == len(names)


def test_rocm_mps_and_cpu():
    amd = Accelerator("rocm", "AMD Instinct MI300X", "gfx942", None)
    assert profile(amd, amd, driver="6.10.5", cuda=None, rocm="6.2.41133") == "MI300Xx2_driver6.10_rocm6.2_torch2.4_gfx942"
    assert profile(Accelerator("mps", "Apple M2 Max", None, None), driver=None, cuda=None) == "Apple-M2-Maxx1_torch2.4_mps"
    assert profile() == "cpu-EPYC-7763x4_x86_64_AVX2_torch2.4"


def test_a_quota_makes_another_machine():
    assert profile(cpu_budget=1.5) == "cpu-EPYC-7763x1.5_x86_64_AVX2_torch2.4" != profile(cpu_budget=2.0)


def test_mixed_accelerators_are_all_named_in_one_order():
    a100 = Accelerator("cuda", "NVIDIA A100-SXM4-80GB", "sm80", None)
    assert profile(H100, a100) == profile(a100, H100) == "A100-SXM4-80GBx1+H100x1_driver550_cuda12.4_torch2.4_sm80+sm90"


@pytest.mark.parametrize("cpu", ["Intel(R) Xeon(R) Platinum 8480+", "AMD Ryzen 9 7950X 16-Core Processor", None, "weird / name @ 3.0GHz"])
def test_a_profile_is_a_file_name(cpu):
    text = profile(cpu=cpu)
    assert "/" not in text and " " not in text and not text.startswith((".", "-"))


def test_what_is_not_known_is_left_out_not_guessed():
    assert profile(H100, driver=None, cuda=None) == "H100x1_torch2.4_sm90"
    assert profile(torch=None).endswith("_notorch")


def host(tmp_path, quota: str = "150000 100000", limit: str = "4294967296"):
    """A container of version 2 below a host of 8 GB."""
    files = {
        "proc/cpuinfo": "model name : AMD EPYC 7763 64-Core Processor\n",
        "proc/meminfo": "MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n",
        "proc/self/cgroup": "0::/\n",
        "sys/fs/cgroup/cpu.max": quota + "\n",
        "sys/fs/cgroup/memory.max": limit + "\n",
        "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
        ".dockerenv": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


FACTS = {
    "python": "3.11.7", "torch": "2.4.1+cu124", "commit": "abc", "cuda": "12.4", "rocm": None, "cudnn": 90100, "nccl": "2.20.5",
    "threads": 4,
    "interop": 8, "capability": "AVX2", "packages": {"numpy": "2.0"},
    "accelerators": [{"kind": "cuda", "name": "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "memory_bytes": 5 << 30, "capability": "sm80"}],
}  # fmt: skip


def collected(root, project, variables) -> GateEnv:
    return environment.environment(FACTS, project=project, root=root, variables=variables, driver=lambda kind, root: "550.54.15")


def test_a_container_with_quota_limit_and_mig(tmp_path):
    found = collected(host(tmp_path), tmp_path, {"OMP_NUM_THREADS": "4", "HOME": "/root", "TORCH_HOME": "/x", "NCCL_DEBUG": "INFO"})
    assert (found.cpu_quota, found.memory_limit_bytes, found.memory_bytes, found.container) == (1.5, 4 << 30, 8 << 30, True)
    assert found.cpu_budget is not None and found.cpu_budget <= 1.5
    assert found.accelerators[0].mig == "1g.5gb" and "MIG-1g.5gb" in found.machine_profile
    assert (found.cudnn, found.nccl, found.os) == ("90100", "2.20.5", "Debian GNU/Linux 12 (bookworm)")
    assert found.variables == {"NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "4"}


def test_no_limit_is_none_not_the_machine(tmp_path):
    found = collected(host(tmp_path, quota="max 100000", limit="max"), tmp_path, {})
    assert found.cpu_quota is None and found.memory_limit_bytes is None


def test_equal_machines_give_equal_bytes(tmp_path):
    root = host(tmp_path)
    first, second = (collected(root, tmp_path, {"OMP_NUM_THREADS": "1", "MKL_DYNAMIC": "FALSE"}) for _ in range(2))
    assert json.dumps(to_plain(first)) == json.dumps(to_plain(second))
    assert from_plain(GateEnv, json.loads(json.dumps(to_plain(first)))) == first


def test_commit_and_dirty_state(tmp_path):
    project = tmp_path / "project"
    project.mkdir()

    def git(*words):
        identity = ("-c", "user.name=o", "-c", "user.email=o@localhost")
        subprocess.run(["git", "-C", project, *identity, *words], check=True, capture_output=True)

    git("init", "--quiet")
    (project / "train.py").write_text("x = 1\n")
    (project / ".gitignore").write_text("*.log\n")
    git("add", "--all")
    git("commit", "--quiet", "--message", "start")
    root = host(tmp_path / "host")
    clean = collected(root, project, {})
    (project / "ignored.log").write_text("")
    assert collected(root, project, {}) == clean and clean.dirty is False and len(clean.commit) == 40
    (project / "train.py").write_text("x = 2\n")
    assert collected(root, project, {}) == replace(clean, dirty=True)


def test_outside_git_nothing_is_claimed(tmp_path):
    found = collected(host(tmp_path / "host"), tmp_path / "host", {"GIT_CEILING_DIRECTORIES": str(tmp_path)})
    assert (found.commit, found.dirty) == (None, None)


def test_secrets_do_not_reach_the_document(tmp_path):
    found = collected(host(tmp_path), tmp_path, {"TORCH_API_KEY": "hf_" + "a1" * 20})
    assert "a1a1" not in json.dumps(to_plain(found))


def test_the_driver_by_nvml_then_by_its_file(tmp_path):
    class Nvml:
        NVMLError = fake_nvml.NVMLError if hasattr(fake_nvml, "NVMLError") else RuntimeError

        def __init__(self, said):
            self.said = said

        def nvmlInit(self):
            if self.said is None:
                raise self.NVMLError(9)

        def nvmlShutdown(self):
            pass

        def nvmlSystemGetDriverVersion(self):
            return self.said

    assert nvidia_driver(tmp_path, Nvml(b"550.54.15")) == "550.54.15"
    assert nvidia_driver(tmp_path, Nvml(None)) is None
    version = tmp_path / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19\n")
    assert nvidia_driver(tmp_path, Nvml(None)) == "535.104.05"
    assert amd_driver(tmp_path) is None


def test_the_interpreter_of_a_command(tmp_path):
    script = tmp_path / "torchrun"
    script.write_text("#!/usr/bin/env python3\nprint()\n")
    script.chmod(0o755)
    assert interpreter_of(("/usr/bin/python3.11", "train.py")) == "/usr/bin/python3.11"
    assert interpreter_of((str(script), "x.py")).rpartition("/")[2].startswith("python")
    assert interpreter_of(("./run.sh",)) is None and interpreter_of(()) is None


def test_an_interpreter_without_torch_or_none_at_all_is_said(tmp_path):
    found = CollectEnv(tmp_path, interpreter=str(tmp_path / "nowhere"))
    assert found.env.torch is None and found.machine_profile().endswith("_notorch")
    from trainflash.gate import BenchConfig, BenchTrain

    with pytest.raises(UsageError, match="torch cannot be imported"):
        BenchTrain(BenchConfig(), env=found.env).run()
