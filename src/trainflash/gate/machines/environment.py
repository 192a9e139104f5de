"""`env.json`: machine, software and commit of a benchmark, and the machine profile under which its baseline stands."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trainflash import redact, telemetry
from trainflash.gate.machines import checkout, machine, torch_facts
from trainflash.schema import Accelerator, GateEnv, to_plain, write_document
from trainflash.telemetry.cgroups import memory_limits
from trainflash.telemetry.driver import amd_driver, nvidia_driver
from trainflash.telemetry.reading import HOST, meminfo, text

# Variables that change how fast the same program runs; values of others are nobody's business.
_VARIABLES = (
    "OMP_", "MKL_", "OPENBLAS_", "KMP_", "GOMP_", "NUMEXPR_", "NCCL_", "RCCL_", "GLOO_", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "NVIDIA_TF32_OVERRIDE", "PYTORCH_", "TORCH_",
    "TORCHINDUCTOR_", "CUBLAS_", "MALLOC_", "LD_PRELOAD",
)  # fmt: skip
_PLACES = ("_DIR", "_HOME", "_PATH", "_FILE")  # where something lies says nothing of speed


class CollectEnv:
    """The environment of one machine, asked once. `project`: whose commit counts; `interpreter`: that of the training program."""

    def __init__(self, project: str | Path = ".", interpreter: str | None = None, root: Path = HOST) -> None:
        self._project = Path(project)
        self._interpreter = interpreter
        self._root = root
        self._env: GateEnv | None = None

    @property
    def env(self) -> GateEnv:
        """The environment as a document."""
        if self._env is None:
            self._env = environment(
                torch_facts.ask(self._interpreter), project=self._project, root=self._root, variables=os.environ, driver=_driver
            )
        return self._env

    def collect(self) -> dict[str, Any]:
        """The environment as plain data; the same machine, software and commit give the same answer."""
        return to_plain(self.env)

    def machine_profile(self) -> str:
        """Such as `H100x8_driver550_cuda12.4_torch2.4_sm90`."""
        return self.env.machine_profile

    def save(self, path: str | Path) -> None:
        """Write `env.json`."""
        write_document(Path(path), self.env)


def environment(
    facts: Mapping[str, Any],
    *,
    project: Path,
    root: Path = HOST,
    variables: Mapping[str, str],
    driver: Any = lambda kind, root: None,
) -> GateEnv:
    """The environment from what torch said (`facts`), the machine below `root` and environment `variables`."""
    accelerators = tuple(
        Accelerator(each["kind"], each["name"], each["capability"], each["memory_bytes"], machine.slice_name(each["name"]))
        for each in facts.get("accelerators", ())
    )
    said_driver = driver(accelerators[0].kind, root) if accelerators else None
    said = telemetry.machine(root)
    cpu, budget = said.get("cpu"), telemetry.cpu_budget(root)
    limit, total = min((found for _, found in memory_limits(root)), default=None), meminfo(root).get("MemTotal")
    if limit is not None and total is not None and limit >= total:
        limit = None
    arch = platform.machine()
    profile = machine.profile(
        accelerators=accelerators, cpu=cpu, cpu_budget=budget, arch=arch, cpu_capability=facts.get("capability"), driver=said_driver,
        cuda=facts.get("cuda"), rocm=facts.get("rocm"), torch=facts.get("torch"),
    )  # fmt: skip
    return GateEnv(
        machine_profile=profile,
        os=_os(root),
        kernel=platform.release(),
        arch=arch,
        cpu=cpu,
        cpu_capability=facts.get("capability"),
        cores=os.cpu_count(),
        cpu_budget=budget,
        cpu_quota=telemetry.cpu_quota(root),
        memory_bytes=total,
        memory_limit_bytes=limit,
        container=_in_container(root, variables),
        accelerators=accelerators,
        driver=said_driver,
        cuda=facts.get("cuda"),
        rocm=facts.get("rocm"),
        cudnn=None if facts.get("cudnn") is None else str(facts["cudnn"]),
        nccl=None if facts.get("nccl") is None else str(facts["nccl"]),
        python=facts.get("python") or platform.python_version(),
        torch=facts.get("torch"),
        torch_commit=facts.get("commit"),
        torch_threads=facts.get("threads"),
        interop_threads=facts.get("interop"),
        packages=dict(sorted(facts.get("packages", {}).items())),
        variables=_chosen(variables),
        commit=checkout.commit_of(project),
        dirty=checkout.is_dirty(project),
    )


def interpreter_of(argv: Sequence[str]) -> str | None:
    """The Python that `argv` starts, as far as its first word tells: itself, or that of a script's first line; None: ours stands for it."""
    if not argv:
        return None
    found = shutil.which(argv[0]) or argv[0]
    if Path(found).name.startswith(("python", "pypy")):
        return found
    try:
        with open(found, "rb") as file:
            line = file.read(256).split(b"\n")[0]
    except OSError:
        return None
    word = os.fsdecode(line[2:].strip().split()[-1]) if line.startswith(b"#!") and line[2:].strip() else ""
    return shutil.which(word) if "python" in Path(word).name else None


def _chosen(variables: Mapping[str, str]) -> dict[str, str]:
    names = [name for name in sorted(variables) if name.startswith(_VARIABLES) and not name.endswith(_PLACES)]
    return redact.environment({name: variables[name] for name in names})


def _driver(kind: str, root: Path) -> str | None:
    return {"cuda": nvidia_driver, "rocm": amd_driver}.get(kind, lambda root: None)(root)


def _os(root: Path) -> str:
    for line in (text(root / "etc/os-release") or "").splitlines():
        name, _, value = line.partition("=")
        if name == "PRETTY_NAME":
            return value.strip().strip('"')
    return f"macOS {platform.mac_ver()[0]}" if platform.system() == "Darwin" else platform.system()


def _in_container(root: Path, variables: Mapping[str, str]) -> bool:
    if (root / ".dockerenv").exists() or (root / "run/.containerenv").exists() or "KUBERNETES_SERVICE_HOST" in variables:
        return True
    return any(word in (text(root / "proc/1/cgroup") or "") for word in ("docker", "kubepods", "containerd", "lxc"))
