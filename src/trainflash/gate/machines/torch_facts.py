"""What the training program's torch says of itself and of the accelerators, asked in a process of its own.

So the asking process loads no torch and starts no CUDA, and the program's own interpreter answers, which may be another than ours.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

_ASK_S = 120.0  # a cold import of torch from a network file system takes tens of seconds

_SCRIPT = r"""
import json, platform, sys
found = {"python": platform.python_version()}
try:
    import torch
except ImportError:
    torch = None
if torch is not None:
    def ask(call):
        try:
            return call()
        except Exception:
            return None
    nccl = ask(lambda: torch.cuda.nccl.version()) if torch.version.cuda or torch.version.hip else None
    found.update(
        torch=torch.__version__, commit=ask(lambda: torch.version.git_version), cuda=torch.version.cuda, rocm=torch.version.hip,
        cudnn=ask(lambda: torch.backends.cudnn.version()), nccl=".".join(map(str, nccl)) if isinstance(nccl, tuple) else nccl,
        threads=torch.get_num_threads(), interop=torch.get_num_interop_threads(),
        capability=ask(lambda: torch.backends.cpu.get_cpu_capability()), accelerators=[],
    )
    if ask(torch.cuda.is_available):
        for index in range(torch.cuda.device_count()):
            device = torch.cuda.get_device_properties(index)
            hip = torch.version.hip is not None
            found["accelerators"].append({
                "kind": "rocm" if hip else "cuda", "name": device.name, "memory_bytes": device.total_memory,
                "capability": device.gcnArchName.split(":")[0] if hip else "sm%d%d" % (device.major, device.minor),
            })
    elif ask(lambda: torch.backends.mps.is_available()):
        found["accelerators"].append({"kind": "mps", "name": platform.processor() or "Apple", "memory_bytes": None, "capability": None})
from importlib import metadata
packages = {}
for name in ("numpy", "transformers", "accelerate", "lightning", "datasets", "deepspeed", "triton", "flash-attn", "torchvision", "apex"):
    try:
        packages[name] = metadata.version(name)
    except metadata.PackageNotFoundError:
        pass
found["packages"] = packages
print("\x1e" + json.dumps(found))
"""


def ask(interpreter: str | None = None) -> dict[str, Any]:
    """The facts of `interpreter` (None: our own); {} where it cannot be started or does not answer."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TRAINFLASH_")}
    try:
        done = subprocess.run(
            [interpreter or sys.executable, "-c", _SCRIPT],
            capture_output=True,
            text=True,
            check=False,
            timeout=_ASK_S,
            env=environment,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return {}
    _, mark, answer = done.stdout.rpartition("\x1e")
    try:
        return json.loads(answer) if mark else {}
    except ValueError:
        return {}
